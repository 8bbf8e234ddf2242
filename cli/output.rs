//! What commands write: text to standard output, and files that are there whole or not at all.

use crate::failure::{Failure, Result};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes text to standard output at once.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Work(format!("standard output: {error}")),
    })
}

/// A file that appears under its name when it is finished; dropped before, it leaves nothing behind.
pub struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once finished.
    out: Option<BufWriter<File>>,
}

impl NewFile {
    /// Starts the file beside its future place.
    pub fn create(path: &Path) -> Result<NewFile> {
        let Some(name) = path.file_name() else {
            return Err(Failure::input(path, "not a file name"));
        };
        if path.is_dir() {
            return Err(Failure::input(path, "is a directory, expected a file to write"));
        }
        let mut temporary_name = std::ffi::OsString::from(".");
        temporary_name.push(name);
        temporary_name.push(format!(".{}.unfinished", std::process::id()));
        let temporary = path.with_file_name(temporary_name);
        let file = File::create(&temporary).map_err(|error| Failure::input(path, error))?;
        Ok(NewFile { path: path.to_owned(), temporary, out: Some(BufWriter::new(file)) })
    }

    /// Gives it its name.
    pub fn finish(mut self) -> Result<()> {
        let done = self
            .out
            .as_mut()
            .map_or(Ok(()), Write::flush)
            .and_then(|()| std::fs::rename(&self.temporary, &self.path));
        done.map_err(Failure::write(&self.path))?;
        self.out = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(0), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a whole file.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(Failure::write(path))?;
    file.finish()
}

/// The directory that `path` is in.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Fails when the file system of `dir` has no room for `bytes`.
pub fn check_space(dir: &Path, bytes: u64) -> Result<()> {
    let free = kernmill_plan::memory::free_space(dir).map_err(|error| Failure::input(dir, error))?;
    if free >= bytes {
        return Ok(());
    }
    Err(Failure::input(dir, format!("not enough disk space: {bytes} bytes needed, {free} free")))
}
