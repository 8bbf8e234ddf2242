//! The process that `kernmill fuse check` starts for the trials of every spec.

use crate::failure::{Failure, Result};
use crate::output;
use kernmill_tools::fuse_check::serve;
use std::io::{self, Read};

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
