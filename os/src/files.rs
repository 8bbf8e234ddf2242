//! Reading files that come from elsewhere, without waiting for them and within limits.
//!
//! A directory that somebody hands over may hold named pipes, devices and links to them. A file found in one
//! is opened with [`open_regular`], which never waits, and read with [`read_regular`], which never reads more
//! than its caller allows.

use std::error::Error;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading. Links are followed; a pipe, a device or a directory is refused without
/// waiting for it.
///
/// # Errors
/// When the file cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(File::options().read(true), path)
}

/// Opens a regular file for reading, and for writing behind its end, as [`open_regular`] does.
///
/// # Errors
/// As [`open_regular`]; also when the file cannot be written.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    regular(File::options().read(true).append(true), path)
}

/// Opens a file for lines of a log behind those that it has, and makes it if it is missing.
///
/// # Errors
/// When the file cannot be opened, or holds something else: a log begins with a digit of its first line's
/// date, or with `{"timestamp"`. A name given by mistake spoils no file.
pub fn open_log(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        let mut begin = Vec::new();
        File::open(path)?.take(LOG_OBJECT.len() as u64).read_to_end(&mut begin)?;
        if begin != LOG_OBJECT && !begin.first().is_none_or(u8::is_ascii_digit) {
            let what = "lines would be appended to it, and it is no log: give another name";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    File::options().create(true).append(true).open(path)
}

/// The beginning of a log of JSON.
const LOG_OBJECT: &[u8] = b"{\"timestamp\"";

fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK, opening a named pipe waits for its other side.
    let file = options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = if kind.is_dir() { "it is a directory" } else { "it is a pipe or a device" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what}, expected a regular file")))
}

/// Whether an error, or what it is due to, is the system's failure, such as a lack of file descriptors or a
/// broken disk: nothing is wrong with what was asked for.
pub fn failed_by_system(error: &(dyn Error + 'static)) -> bool {
    use libc::{EDQUOT, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC};
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| {
        let code = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        matches!(code, Some(EDQUOT | EIO | EMFILE | ENFILE | ENOMEM | ENOSPC))
    })
}

/// Whether these are metadata of one and the same file, whatever its names.
pub fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether two paths lead to one and the same file that is there.
pub fn lead_to_same_file(one: &Path, other: &Path) -> bool {
    let found = [one, other].map(std::fs::metadata);
    matches!(&found, [Ok(one), Ok(other)] if is_same_file(one, other))
}

/// Whether the user that this process acts as owns what these metadata are of.
pub fn belongs_to_user(found: &Metadata) -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    found.uid() == unsafe { libc::geteuid() }
}

/// Opens a regular file of this user, and nothing else, for reading and if asked for writing. Links are not
/// followed: in a directory that others can write, they may have put one there, or a pipe.
///
/// # Errors
/// When the file cannot be opened; [`io::ErrorKind::InvalidInput`] when it is a link or not a regular file,
/// or belongs to another user.
pub fn open_own_regular(path: &Path, write: bool) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let other = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file of this user");
    let opened = File::options().read(true).write(write).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => other(),
        _ => error,
    })?;
    let found = file.metadata()?;
    if found.is_file() && belongs_to_user(&found) { Ok(file) } else { Err(other()) }
}

/// The bytes of a regular file that has at most `most` of them.
///
/// # Errors
/// As [`open_regular`]; also when the file is larger, or cannot be read.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let size = file.metadata()?.len();
    let too_large = |size: u64| {
        let what = format!("it has {size} bytes, expected at most {most}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    };
    if size > most {
        return too_large(size);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // The file may grow meanwhile, and files of /proc state no size.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { too_large(bytes.len() as u64) } else { Ok(bytes) }
}

/// The text of a regular file that has at most `most` bytes, read as [`read_regular`] does.
///
/// # Errors
/// As [`read_regular`]; also when the bytes are not UTF-8.
pub fn read_regular_text(path: &Path, most: u64) -> io::Result<String> {
    text(read_regular(path, most)?)
}

/// The bytes of what was named itself, on a command line for example: a file, or a pipe, which is waited for;
/// at most `most` of them.
///
/// # Errors
/// When it cannot be opened or read, or brings more.
pub fn read_named(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, most)
}

/// The text of what was named itself, at most `most` bytes, read as [`read_named`] does.
///
/// # Errors
/// As [`read_named`]; also when the bytes are not UTF-8.
pub fn read_named_text(path: &Path, most: u64) -> io::Result<String> {
    text(read_named(path, most)?)
}

/// All that a reader brings, which is at most `most` bytes. It may never end.
///
/// # Errors
/// When it cannot be read, or brings more.
pub fn read_all(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most {
        return Ok(bytes);
    }
    let what = format!("it has more than {most} bytes, expected at most so many");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The text that a reader brings, at most `most` bytes, read as [`read_all`] does.
///
/// # Errors
/// As [`read_all`]; also when the bytes are not UTF-8.
pub fn read_all_text(reader: impl Read, most: u64) -> io::Result<String> {
    text(read_all(reader, most)?)
}

/// The text of these bytes. A byte order mark, which editors of other systems write before a text, is no part
/// of it.
fn text(bytes: Vec<u8>) -> io::Result<String> {
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    let mut text = String::from_utf8(bytes).map_err(wrong)?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;

    fn pipe(path: &Path) {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends with a NUL and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }

    #[test]
    fn pipes_devices_and_directories_are_refused_at_once() {
        let dir = std::env::temp_dir().join(format!("kernmill-input-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        pipe(&dir.join("pipe"));
        std::os::unix::fs::symlink("/dev/zero", dir.join("zero")).unwrap();
        for (name, says) in [("pipe", "pipe or a device"), ("zero", "pipe or a device"), (".", "directory")] {
            let error = read_regular(&dir.join(name), 100).unwrap_err();
            assert!(error.to_string().contains(says), "{name}: {error}");
        }
        std::fs::write(dir.join("file"), b"12345").unwrap();
        std::os::unix::fs::symlink("file", dir.join("link")).unwrap();
        assert_eq!(read_regular(&dir.join("link"), 5).unwrap(), b"12345");
        let error = read_regular(&dir.join("file"), 4).unwrap_err();
        assert_eq!(error.to_string(), "it has 5 bytes, expected at most 4");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn only_regular_files_of_this_user_are_its_own() {
        let dir = std::env::temp_dir().join(format!("kernmill-own-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        pipe(&dir.join("pipe"));
        std::fs::write(dir.join("file"), b"12345").unwrap();
        std::os::unix::fs::symlink("file", dir.join("link")).unwrap();
        for name in ["pipe", "link", "."] {
            let error = open_own_regular(&dir.join(name), false).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        open_own_regular(&dir.join("file"), true).unwrap().write_all(b"9").unwrap();
        assert_eq!(read_regular(&dir.join("file"), 5).unwrap(), b"92345");
        let other = std::os::unix::fs::chown(dir.join("file"), Some(1234), None);
        assert_eq!(open_own_regular(&dir.join("file"), false).is_err(), other.is_ok());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_was_named_is_read_up_to_its_limit_also_if_it_never_ends() {
        let error = read_named(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 1000 bytes, expected at most so many");
        assert_eq!(read_named(Path::new("/dev/null"), 0).unwrap(), b"");
        assert_eq!(read_all(&b"12345"[..], 5).unwrap(), b"12345");
        assert!(read_all(&b"12345"[..], 4).is_err());
        assert!(read_named_text(Path::new("/dev/zero"), 1000).is_err());
        assert_eq!(read_all_text("\u{feff}{}\u{feff}".as_bytes(), 100).unwrap(), "{}\u{feff}");
        let path = std::env::temp_dir().join(format!("kernmill-named-{}", std::process::id()));
        pipe(&path);
        let writer = path.clone();
        let writer = std::thread::spawn(move || std::fs::write(writer, b"\xff").unwrap());
        assert_eq!(read_named_text(&path, 10).unwrap_err().to_string(), "it is not UTF-8 text");
        writer.join().unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
