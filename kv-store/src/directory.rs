//! The directory of a store: who may see it, who may write to it, which files in it are segments.

use crate::event::StoreEvent;
use crate::format::MAX_SEQUENCE;
use kernmill_os::files::{belongs_to_user, open_own_regular};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The name of the lock file.
const LOCK: &str = "kernmill-kv.lock";
/// How the names of segment files begin, before 16 hexadecimal digits.
const PREFIX: &str = "kernmill-kv-";
/// How they end.
const SUFFIX: &str = ".segment";

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    System {
        /// The directory, or what it is in.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Something else has the directory's name.
    #[error("{}: it is not a directory, expected one for the KV store, or none", .path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another user owns the directory.
    #[error("{}: it belongs to user {owner}, expected a directory of this user", .path.display())]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Number of the owner.
        owner: u32,
    },
    /// Other users can see or change what is in the directory.
    #[error(
        "{}: others may use it (mode {mode:04o}), expected mode 0700, as blocks tell what prompts said: \
         chmod 700 helps",
        .path.display()
    )]
    Mode {
        /// The directory.
        path: PathBuf,
        /// Permissions of the directory.
        mode: u32,
    },
}

/// A store's directory.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Held while the store may write.
    lock: Option<File>,
}

impl Directory {
    /// Opens a directory, or makes it; its parent must be there. Without the lock, the event says why.
    pub fn open(path: &Path) -> Result<(Directory, Option<StoreEvent>), OpenError> {
        let system = |source: io::Error| OpenError::System { path: path.to_owned(), source };
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(system(error)),
            Err(_) | Ok(()) => {}
        }
        let found = std::fs::metadata(path).map_err(system)?;
        if !found.is_dir() {
            return Err(OpenError::NotADirectory { path: path.to_owned() });
        }
        if !belongs_to_user(&found) {
            return Err(OpenError::Owner { path: path.to_owned(), owner: found.uid() });
        }
        let mode = found.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(OpenError::Mode { path: path.to_owned(), mode });
        }
        let dir = path.to_owned();
        let (lock, event) = match lock(path) {
            Ok(Some(lock)) => (Some(lock), None),
            Ok(None) => (None, Some(StoreEvent::InUse { dir })),
            Err(error) => (None, Some(StoreEvent::ReadOnly { dir, error: error.kind() })),
        };
        Ok((Directory { path: path.to_owned(), lock }, event))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this store, and no other, may write.
    pub fn is_writable(&self) -> bool {
        self.lock.is_some()
    }

    /// The path of a segment.
    pub fn segment_path(&self, number: u64) -> PathBuf {
        self.path.join(format!("{PREFIX}{number:016x}{SUFFIX}"))
    }

    /// The numbers in the names of all files that are called as segments are, ascending.
    pub fn segments(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            numbers.extend(entry?.file_name().to_str().and_then(number));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that another thread forks has it too, until it runs
        // another program.
        if let Some(lock) = &self.lock {
            // A lock that cannot be given up ends with the process.
            let _ = lock.unlock();
        }
    }
}

/// The number in a segment's name. Digits are lower case, so that a number has one name.
fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_number = digits.len() == 16 && digits.bytes().all(is_digit);
    let number = if is_number { u64::from_str_radix(digits, 16).ok()? } else { return None };
    (number <= MAX_SEQUENCE).then_some(number)
}

/// The lock of a directory; none if another process has it.
fn lock(dir: &Path) -> io::Result<Option<File>> {
    let path = dir.join(LOCK);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) | Ok(_) => {}
    }
    let file = open_own_regular(&path, true)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_segments_are_told_from_others() {
        assert_eq!(number("kernmill-kv-00000000000000ff.segment"), Some(255));
        assert_eq!(number("kernmill-kv-4000000000000000.segment"), Some(MAX_SEQUENCE));
        for name in [
            "kernmill-kv-00000000000000FF.segment",
            "kernmill-kv-ff.segment",
            "kernmill-kv-4000000000000001.segment",
            "kernmill-kv-+0000000000000ff.segment",
            "kernmill-kv-00000000000000ff.segment.old",
            ".kernmill-kv-00000000000000ff.segment",
            "kernmill-kv.lock",
        ] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
