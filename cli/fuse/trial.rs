//! The process that `kernmill fuse check` starts for the trials of every spec.

use crate::failure::{Failure, Result};
use crate::output;
use kernmill::tools::fuse_check::serve;
use std::ffi::{CStr, OsStr, c_char};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{self, PathBuf};
use std::process::Command;

/// The process itself: reads a request from standard input.
#[derive(Debug, clap::Args)]
pub struct Trial {}

impl Trial {
    /// Runs the command.
    pub fn execute(self) -> Result<()> {
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|error| Failure::BadInput(format!("the request: {error}")))?;
        Ok(serve(&text, &|line| output::print(line).is_ok())?)
    }
}

/// What starts such a process.
pub fn command() -> Result<Command> {
    // Without /proc nothing says where the program's own file is.
    let program = std::env::current_exe().or_else(|error| started_by().unwrap_or(Err(error)));
    let program = program.map_err(|error| Failure::Work(format!("the program's own file: {error}")))?;
    let mut command = Command::new(program);
    command.args(["fuse", "trial"]);
    Ok(command)
}

/// The path that this process was started by.
fn started_by() -> Option<io::Result<PathBuf>> {
    // SAFETY: asking has no preconditions.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    if name.is_null() {
        return None;
    }
    // SAFETY: the system gives every process this string, which ends with a NUL and stays where it is.
    let name = unsafe { CStr::from_ptr(name) };
    Some(path::absolute(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_knows_what_it_was_started_by() {
        let file = |path: PathBuf| std::fs::canonicalize(path).unwrap();
        assert_eq!(file(started_by().unwrap().unwrap()), file(std::env::current_exe().unwrap()));
    }
}
