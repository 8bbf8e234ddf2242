//! The disk's interface for a store. Tests put a disk in its place that fills up, fails, or stops the
//! process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The operations that can fail for want of space, or be cut short by a kill.
pub(crate) trait Disk: Send + Sync {
    /// Makes a file that nobody but its owner may read.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// Opens a regular file of this user, links not followed.
    fn open(&self, path: &Path, write: bool) -> io::Result<File>;
    /// Writes all of `bytes` at `offset`.
    fn write(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Waits until the file's contents are on the disk.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Bytes that this user may still write to the file system of a directory.
    fn free_space(&self, dir: &Path) -> io::Result<u64>;
}

/// The system's disk.
#[derive(Debug)]
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<File> {
        kernmill_os::files::open_own_regular(path, write)
    }

    fn write(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        kernmill_os::memory::free_space(dir)
    }
}
