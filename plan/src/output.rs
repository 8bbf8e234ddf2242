//! Files that appear whole or not at all, even when the program is killed.

use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Temporary names given out so far.
static TEMPORARY: AtomicU32 = AtomicU32::new(0);

/// A file without a name until it is finished. Dropped before, it leaves nothing behind.
///
/// Where the file system has no unnamed files, it has a hidden temporary name, which only a kill leaves behind.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    /// Temporary name, if it has one.
    named: Option<PathBuf>,
}

impl NewFile {
    /// Starts a file that will be at `path`, and replace what is there.
    ///
    /// # Errors
    /// When the directory is missing or not writable.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        let temporary = temporary_name(path)?;
        let path = path.to_owned();
        let unnamed = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o666)
            .open(directory(&path));
        match unnamed {
            Ok(file) => Ok(NewFile { path, file, named: None }),
            Err(_) => NewFile::create_named(path, temporary),
        }
    }

    fn create_named(path: PathBuf, temporary: PathBuf) -> io::Result<NewFile> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary)?;
        Ok(NewFile { path, file, named: Some(temporary) })
    }

    /// Where to write.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// When the system refuses; nothing is left then.
    pub fn finish(mut self) -> io::Result<()> {
        if self.named.is_none() {
            match link(&self.file, &self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link replaces nothing, a renamed file does.
                    let temporary = temporary_name(&self.path)?;
                    link(&self.file, &temporary)?;
                    self.named = Some(temporary);
                }
                result => return result,
            }
        }
        if let Some(temporary) = &self.named {
            std::fs::rename(temporary, &self.path)?;
        }
        self.named = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.named {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// The directory that `path` is in.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A hidden name beside `path`, another one each time.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let name =
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    let mut temporary = OsString::from(".");
    temporary.push(name);
    let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}.{number}.unfinished", std::process::id()));
    Ok(path.with_file_name(temporary))
}

/// Names an open file.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    let (at, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both names end with a NUL and live through the call.
    match unsafe { libc::linkat(at, from.as_ptr(), at, to.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(dir: &Path) -> Vec<OsString> {
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_file_appears_when_it_is_finished_and_replaces_what_was_there() {
        let dir = std::env::temp_dir().join(format!("kernmill-output-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("file");
        let named = || NewFile::create_named(path.clone(), temporary_name(&path).unwrap()).unwrap();
        let unnamed = || NewFile::create(&path).unwrap();
        for (i, new) in [unnamed(), unnamed(), named()].into_iter().enumerate() {
            new.file().write_all(&[b'0' + i as u8]).unwrap();
            new.finish().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), [b'0' + i as u8]);
        }
        for new in [unnamed(), named()] {
            new.file().write_all(b"lost").unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"2");
        assert_eq!(names(&dir), ["file"]);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_place_that_cannot_hold_a_file_is_refused() {
        assert!(NewFile::create(Path::new("no such directory/file")).is_err());
        assert!(NewFile::create(Path::new("..")).is_err());
        assert_eq!(directory(Path::new("file")), Path::new("."));
        assert_eq!(directory(Path::new("a/file")), Path::new("a"));
    }
}
