//! What commands write: text to standard output, and files that are there whole or not at all.

use crate::failure::{Failure, Result};
use kernmill_plan::output::NewFile;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes text to standard output at once.
pub fn print(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Work(format!("standard output: {error}")),
    })
}

/// Starts a file; what is wrong with its place is found here.
pub fn create(path: &Path) -> Result<NewFile> {
    if path.is_dir() {
        return Err(Failure::input(path, "is a directory, expected a file to write"));
    }
    NewFile::create(path).map_err(|error| Failure::input(path, error))
}

/// Writes a whole file.
pub fn write_file(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    let file = create(path)?;
    file.file().write_all(contents.as_ref()).map_err(Failure::write(path))?;
    file.finish().map_err(Failure::write(path))
}

/// Fails when the file system of `dir` has no room for `bytes`.
pub fn check_space(dir: &Path, bytes: u64) -> Result<()> {
    let free = kernmill_plan::memory::free_space(dir).map_err(|error| Failure::input(dir, error))?;
    if free >= bytes {
        return Ok(());
    }
    Err(Failure::input(dir, format!("not enough disk space: {bytes} bytes needed, {free} free")))
}
