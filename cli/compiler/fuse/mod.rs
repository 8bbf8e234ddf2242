//! `kernmill fuse`: fused-op specs.

mod check;

use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::output;
use kernmill_tools::fuse_check::serve;
use kernmill_tools::{fused_rules, schema};
use std::io;

/// Checks fused-op specs, and shows what they may say
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/fuse.txt"))]
pub struct Fuse {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Check),
    /// List the built-in specs in the order in which they are tried, with their priorities
    List,
    /// Print the JSON schema of fused-op specs, for editors
    #[command(after_help = include_str!("../../help/fuse-schema.txt"))]
    Schema,
    /// Run the trials that a request on standard input describes
    #[command(hide = true)]
    Trial,
}

impl Fuse {
    /// Runs the command.
    pub fn execute(self, _explicit: &Explicit) -> Result<()> {
        match self.command {
            Command::Check(check) => check.execute(),
            Command::List => output::show(fused_rules::builtin()),
            Command::Trial => {
                let text = io::read_to_string(io::stdin());
                let text = text.map_err(|error| Failure::BadInput(format!("the request: {error}")))?;
                Ok(serve(&text, &|line| output::print(line).is_ok())?)
            }
            Command::Schema => output::print(format!("{:#}\n", schema())),
        }
    }
}
