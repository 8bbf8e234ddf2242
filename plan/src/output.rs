//! Files that appear whole or not at all, even when the program is killed.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Temporary names given out so far.
static TEMPORARY: AtomicU32 = AtomicU32::new(0);

/// A file without a name until it is finished. Dropped before, it leaves nothing behind.
///
/// Where the file system has no unnamed files, and for a moment when it replaces a file, it has a hidden temporary name. Only a kill leaves
/// one behind, which the next start of a file at the same place removes.
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
        large_files_are_errors();
        remove_abandoned(&path);
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
        // A lock says that its owner lives; on file systems without locks, the process number in its name must do.
        let _ = file.try_lock();
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

    /// Gives it its name once its contents are on the disk: after a power cut the name means the old file or the whole new one.
    ///
    /// # Errors
    /// As [`NewFile::finish`]; also when the disk fails.
    pub fn finish_synced(self) -> io::Result<()> {
        self.file.sync_all()?;
        let directory = File::open(directory(&self.path))?;
        self.finish()?;
        directory.sync_all()
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
                    let _ = self.file.try_lock();
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
    temporary.push(format!(".{}.{number}{UNFINISHED}", std::process::id()));
    Ok(path.with_file_name(temporary))
}

/// How temporary names end.
const UNFINISHED: &str = ".unfinished";

/// Removes temporary files for `path` whose processes are gone.
fn remove_abandoned(path: &Path) {
    let (Some(name), Ok(entries)) = (path.file_name(), std::fs::read_dir(directory(path))) else { return };
    for entry in entries.flatten() {
        if process_of(&entry.file_name(), name).is_some_and(|process| is_abandoned(&entry.path(), process)) {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process in a name that [`temporary_name`] made for `name`.
fn process_of(temporary: &OsStr, name: &OsStr) -> Option<u32> {
    let rest = temporary.as_bytes().strip_prefix(b".")?.strip_prefix(name.as_bytes())?.strip_prefix(b".")?;
    let numbers = std::str::from_utf8(rest).ok()?.strip_suffix(UNFINISHED)?;
    let (process, number) = numbers.split_once('.')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

/// Whether the process is gone, as far as this one can see, and nobody, seen or not, has the file's lock.
fn is_abandoned(path: &Path, process: u32) -> bool {
    let gone = !Path::new("/proc").join(process.to_string()).exists();
    gone && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Makes a file that grows past the process's limit an error of the write, not the end of the process.
fn large_files_are_errors() {
    static ONCE: Once = Once::new();
    // SAFETY: ignoring a signal runs no handler.
    ONCE.call_once(|| unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    });
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
    fn files_of_dead_processes_are_removed_and_no_others() {
        let dir = std::env::temp_dir().join(format!("kernmill-abandoned-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("a.plan");
        let alive = format!(".a.plan.{}.77.unfinished", std::process::id());
        let kept = ["..unfinished", ".b.plan.4194999.0.unfinished", ".a.plan.4194999.unfinished", &alive];
        for name in kept.into_iter().chain([".a.plan.4194999.0.unfinished"]) {
            std::fs::write(dir.join(name), b"half").unwrap();
        }
        let locked = File::create(dir.join(".a.plan.4194999.1.unfinished")).unwrap();
        locked.lock().unwrap();
        drop(NewFile::create(&path).unwrap());
        assert_eq!(names(&dir).len(), 5);
        drop(locked);
        NewFile::create(&path).unwrap().finish_synced().unwrap();
        let mut left = names(&dir);
        left.sort();
        let mut expected: Vec<OsString> = kept.into_iter().chain(["a.plan"]).map(OsString::from).collect();
        expected.sort();
        assert_eq!(left, expected);
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
