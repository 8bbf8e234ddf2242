//! Temporary names, and the files that killed processes left under them.
//!
//! A name is `.NAME.PROCESS.NUMBER.unfinished`, where NAME is the output's, PROCESS the number of the writing
//! process, and NUMBER random. Process numbers repeat, in containers from run to run, so that they say
//! nothing by themselves: a leftover is removed if its process is gone, or has this process's own number, and
//! nobody holds the file's lock.

use super::directory;
use crate::files::open_own_regular;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How temporary names end.
const UNFINISHED: &str = ".unfinished";
/// Bytes of the output's name in a temporary one: file systems allow 255 in all.
const NAME_BYTES: usize = 200;
/// Names that are tried when others have taken them.
const TRIES: usize = 100;

/// Makes something under a temporary name beside `path`; if that is taken, under another one.
///
/// # Errors
/// Those of `make`; when so many names are taken.
pub(super) fn with_new_name<T>(
    path: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let mut last = io::ErrorKind::AlreadyExists.into();
    for _ in 0..TRIES {
        let temporary = path.with_file_name(temporary_name(path));
        match make(&temporary) {
            Ok(made) => return Ok((temporary, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// A hidden name, another one each time.
fn temporary_name(path: &Path) -> OsString {
    let mut temporary = prefix(path.file_name().unwrap_or_default());
    // Every one of these hashers has a random key.
    let number = RandomState::new().hash_one(0);
    temporary.push(format!("{}.{number}{UNFINISHED}", std::process::id()));
    temporary
}

/// How the temporary names for `name` begin.
fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(NAME_BYTES)]));
    prefix.push(".");
    prefix
}

/// Removes temporary files for `path` that nobody writes any more.
pub(super) fn remove_abandoned(path: &Path) {
    let (Some(name), Ok(entries)) = (path.file_name(), std::fs::read_dir(directory(path))) else { return };
    for entry in entries.flatten() {
        if process_of(&entry.file_name(), name).is_some_and(|process| is_abandoned(&entry.path(), process)) {
            // A file that cannot be removed is in nobody's way.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process in a name that [`temporary_name`] made for `name`.
fn process_of(temporary: &OsStr, name: &OsStr) -> Option<u32> {
    let rest = temporary.as_bytes().strip_prefix(prefix(name).as_bytes())?;
    let numbers = std::str::from_utf8(rest).ok()?.strip_suffix(UNFINISHED)?;
    let (process, number) = numbers.split_once('.')?;
    number.parse::<u64>().ok()?;
    process.parse().ok()
}

/// Whether it is a file of this user, whose process is gone as far as this one can see, and nobody, seen or
/// not, has its lock.
fn is_abandoned(path: &Path, process: u32) -> bool {
    let gone = || !Path::new("/proc").join(process.to_string()).exists();
    (process == std::process::id() || gone())
        && open_own_regular(path, false).is_ok_and(|file| file.try_lock().is_ok())
}
