//! Events of a store's files, a line each for the caller's log.

use crate::decode::Damage;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Something that a store's caller may want to log. Blocks that are lost are computed anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEvent {
    /// A record was damaged, and is forgotten.
    Damaged {
        /// The segment file.
        file: PathBuf,
        /// Where in the file the record's slot begins.
        offset: u64,
        /// The damage.
        what: Damage,
    },
    /// A segment file was damaged at its start, and has been removed.
    Removed {
        /// The file.
        file: PathBuf,
        /// The damage.
        what: Damage,
    },
    /// A file that has the name of a segment is not this store's to use, and is left alone.
    Foreign {
        /// The file.
        file: PathBuf,
        /// The kind of file that it is instead.
        what: String,
    },
    /// A file could not be read. It is kept.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::ErrorKind,
    },
    /// A segment file is gone, and its blocks with it.
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// A block could not be written, or a file not be made or removed.
    NotWritten {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::ErrorKind,
    },
    /// A block was not stored, because there is no room for it. Said again only after one was stored.
    NoRoom {
        /// The directory.
        dir: PathBuf,
        /// Bytes that the block needs.
        bytes: u64,
        /// Bytes by which the files may grow before the disk's reserve is touched.
        growth: u64,
    },
    /// Another process writes to the directory: this one only reads.
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory cannot be written: this store only reads.
    ReadOnly {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        error: io::ErrorKind,
    },
}

impl StoreEvent {
    /// The file or directory that it happened to.
    pub fn path(&self) -> &Path {
        match self {
            StoreEvent::Damaged { file, .. }
            | StoreEvent::Removed { file, .. }
            | StoreEvent::Foreign { file, .. }
            | StoreEvent::Unreadable { file, .. }
            | StoreEvent::Missing { file }
            | StoreEvent::NotWritten { file, .. } => file,
            StoreEvent::NoRoom { dir, .. } | StoreEvent::InUse { dir } | StoreEvent::ReadOnly { dir, .. } => {
                dir
            }
        }
    }
}

impl fmt::Display for StoreEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreEvent::Damaged { file, offset, what } => {
                let file = file.display();
                write!(f, "{file}: the record at {offset} is damaged and will be computed anew: {what}")
            }
            StoreEvent::Removed { file, what } => {
                write!(f, "{}: removed, because its header is damaged: {what}", file.display())
            }
            StoreEvent::Foreign { file, what } => {
                write!(f, "{}: left alone: {what}, expected a segment of the KV store", file.display())
            }
            StoreEvent::Unreadable { file, error } => {
                write!(f, "{}: cannot be read: {error}", file.display())
            }
            StoreEvent::Missing { file } => write!(f, "{}: is gone, and its blocks with it", file.display()),
            StoreEvent::NotWritten { file, error } => {
                write!(f, "{}: cannot be written: {error}; the block was dropped", file.display())
            }
            StoreEvent::NoRoom { dir, bytes, growth } => write!(
                f,
                "{}: no room for a block of {bytes} bytes, the disk leaves {growth}: raise the limit or make room",
                dir.display()
            ),
            StoreEvent::InUse { dir } => {
                write!(f, "{}: another process writes to it, this one only reads", dir.display())
            }
            StoreEvent::ReadOnly { dir, error } => {
                write!(f, "{}: cannot be written, so it is only read: {error}", dir.display())
            }
        }
    }
}
