//! Output of commands: results to standard output, where nothing else writes, and files that are there whole
//! or not at all.

use crate::failure::{Failure, Result};
use kernmill_tools::{GoneOnWith, NewFile, terminal::output_was_closed, visible};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes a result to standard output at once, as it is: a model's text, JSON, an object file.
pub fn print(text: impl AsRef<[u8]>) -> Result<()> {
    let mut out = open_stdout()?.lock();
    out.write_all(text.as_ref()).and_then(|()| out.flush()).map_err(lost)
}

/// Writes a text for people to standard output, which may repeat names from files.
pub fn show(text: impl AsRef<str>) -> Result<()> {
    print(visible(text.as_ref()).as_bytes())
}

/// A failure to write to standard output.
pub fn lost(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Work(format!("standard output: {error}")),
    }
}

/// Standard output, if there is one.
pub fn open_stdout() -> Result<io::Stdout> {
    match output_was_closed() {
        true => Err(Failure::Work("standard output is closed".to_owned())),
        false => Ok(io::stdout()),
    }
}

/// Whether an output is standard output: `-`, or a name of it.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].map(Path::new).contains(&path)
}

/// Starts an output that is written from front to back; what is wrong with its place is found here. `-` is
/// standard output.
pub fn create(path: &Path) -> Result<NewFile> {
    if is_stdout(path) {
        return NewFile::through(open_stdout()?, path).map_err(lost);
    }
    NewFile::create(path).map_err(Failure::read(path))
}

/// Opens an output that goes on where it ended. `-` is standard output.
pub fn go_on(path: &Path) -> Result<GoneOnWith> {
    let stream = is_stdout(path).then(|| create(path).map(GoneOnWith::Stream));
    stream.unwrap_or_else(|| GoneOnWith::open(path).map_err(Failure::read(path)))
}

/// Starts a file that is written at several places at once.
#[cfg(feature = "compiler")]
pub fn create_file(path: &Path) -> Result<NewFile> {
    if is_stdout(path) {
        let what = "is standard output, expected the name of a file: a plan is not written from front to \
            back (./- is a file of that name)";
        return Err(kernmill::Error::input(path, what).into());
    }
    NewFile::create_file(path).map_err(Failure::read(path))
}

/// Finds out what is wrong with the place of an output. Nothing is left there, and no pipe is opened.
#[cfg(feature = "compiler")]
pub fn check(path: &Path) -> Result<()> {
    if is_stdout(path) { open_stdout().map(drop) } else { NewFile::check(path).map_err(Failure::read(path)) }
}

/// Writes a whole output.
pub fn write_file(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    write(path, create(path)?, contents)
}

/// Writes a whole file in a directory that was named: what else has its name there is refused, and no pipe is
/// waited for.
pub fn write_regular(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    write(path, NewFile::create_file(path).map_err(Failure::read(path))?, contents)
}

fn write(path: &Path, file: NewFile, contents: impl AsRef<[u8]>) -> Result<()> {
    file.file().write_all(contents.as_ref()).map_err(Failure::write(path))?;
    file.finish().map_err(Failure::write(path))
}

/// Refuses the place of a file that people change by hand if there is one already.
#[cfg(feature = "compiler")]
pub fn check_new(path: &Path) -> Result<()> {
    if is_stdout(path) || !path.metadata().is_ok_and(|there| there.is_file()) {
        return Ok(());
    }
    let what = "it is there already, and stays as it is: give another name, or delete it first";
    Err(kernmill::Error::input(path, what).into())
}

/// Fails when the file system of an output has no room for `bytes`.
pub fn check_space(path: &Path, bytes: u64) -> Result<()> {
    if is_stdout(path) { Ok(()) } else { Ok(kernmill::check_space(path, bytes)?) }
}
