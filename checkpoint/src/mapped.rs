//! A file's bytes: mapped, in memory, or part of the program.

use crate::error::{CheckpointError, Result};
use kernmill_os::bus::BusGuard;
use kernmill_os::files::open_regular;
use memmap2::Mmap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Advice about a checkpoint that lost bytes while it was mapped.
const ADVICE: &str = "nothing was written; start again when the checkpoint is whole and nothing writes to it";

/// A file's contents; a copy of a mapping is the mapping.
#[derive(Clone, Debug)]
pub(crate) enum FileBytes {
    Mapped(Arc<MappedFile>),
    /// Part of the program.
    Static(&'static [u8]),
    /// Bytes in separate memory.
    Owned(Vec<u8>),
}

/// A file of a checkpoint.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) path: PathBuf,
    pub(crate) bytes: FileBytes,
}

/// A mapping of a whole file.
#[derive(Debug)]
pub(crate) struct MappedFile {
    // Ends before the mapping does, so that it never guards an address that is something else by then.
    _guard: BusGuard,
    pub(crate) map: Mmap,
    pub(crate) file: File,
}

impl std::ops::Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            FileBytes::Mapped(file) => &file.map,
            FileBytes::Static(bytes) => bytes,
            FileBytes::Owned(bytes) => bytes,
        }
    }
}

/// Maps a whole file. If somebody shortens it meanwhile, reading the lost part ends the process with a
/// message that names it.
pub(crate) fn map(path: &Path) -> Result<MappedFile> {
    let file = open_regular(path).map_err(CheckpointError::io(path))?;
    // Another process that writes to a checkpoint changes weights, which are plain numbers, and nothing that
    // the header said, which is held in memory (docs/user/security.md).
    // SAFETY: the mapping is read-only; its bytes are checked or bounded where they are used. When the file
    // is shortened, the guard ends the process with a message.
    let map = unsafe { Mmap::map(&file) }.map_err(CheckpointError::io(path))?;
    let name = path.display().to_string();
    Ok(MappedFile { _guard: BusGuard::new(map.as_ptr() as usize, map.len(), &name, ADVICE), map, file })
}
