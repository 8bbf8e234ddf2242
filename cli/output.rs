//! Output of commands: results to standard output, notes and errors to standard error, and files that are
//! there whole or not at all.
//!
//! Nothing else in the command line writes to either stream, but for progress bars and what is traced (`-v`).
//! Text from elsewhere is shown without control characters, which could clear a terminal, colour it, or hide
//! what else is said.

use crate::failure::{Failure, Result};
use kernmill_tools::{GoneOnWith, NewFile, message, size, terminal::output_was_closed, visible};
use std::fmt::Display;
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

/// Says something beside the result, a line on standard error. That it cannot be written changes nothing.
pub fn note(text: impl Display) {
    styled(format!("{}\n", message(&text.to_string())));
}

/// Writes to standard error what may have colours. That it cannot be written changes nothing.
pub fn styled(text: impl AsRef<str>) {
    // At once, so that lines of several processes stay whole.
    let _ = io::stderr().lock().write_all(text.as_ref().as_bytes());
}

/// Writes a line to standard error, if it is wanted.
pub fn note_if(is_wanted: bool, line: impl Display) {
    if is_wanted {
        note(line);
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
        let what = "is standard output, expected the name of a file: a plan is not written from front to back (./- is a file of that name)";
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

/// Says that an output was written, if that is wanted, and what it is or what to do with it.
pub fn wrote(is_wanted: bool, path: &Path, what: impl Display) {
    let file = path.metadata().ok().filter(|file| file.is_file());
    let size = file.map_or_else(String::new, |file| format!(" ({})", size(file.len())));
    note_if(is_wanted && !is_stdout(path), format_args!("wrote {}{size}: {what}", path.display()));
}

/// Writes a whole output, and says so.
#[cfg(feature = "compiler")]
pub fn deliver(quiet: bool, path: &Path, contents: impl AsRef<[u8]>, what: &str) -> Result<()> {
    write_file(path, contents)?;
    wrote(!quiet, path, what);
    Ok(())
}

/// Writes a file that people change by hand, and says so: one that is there already stays.
#[cfg(feature = "compiler")]
pub fn write_new(path: &Path, contents: impl AsRef<[u8]>, what: &str) -> Result<()> {
    match path.metadata() {
        Ok(there) if there.is_file() && !is_stdout(path) => {
            let what = "it is there already, and stays as it is: give another name, or delete it first";
            Err(kernmill::Error::input(path, what).into())
        }
        _ => deliver(false, path, contents, what),
    }
}

/// Fails when the file system of an output has no room for `bytes`.
pub fn check_space(path: &Path, bytes: u64) -> Result<()> {
    if is_stdout(path) { Ok(()) } else { Ok(kernmill::check_space(path, bytes)?) }
}
