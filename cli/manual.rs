//! `kernmill completions` and `kernmill man`: what a shell and `man` need to know of the command line.

use crate::failure::{Failure, Result};
use crate::output;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::PathBuf;

/// Prints a shell's completions of commands, options and their values
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill completions bash > ~/.local/share/bash-completion/completions/kernmill
  kernmill completions zsh > ~/.zfunc/_kernmill                       with ~/.zfunc in fpath
  kernmill completions fish > ~/.config/fish/completions/kernmill.fish")]
pub struct Completions {
    /// Shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    /// Runs the command; `program` is the command line.
    pub fn execute(self, mut program: Command) -> Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut program, "kernmill", &mut text);
        output::print(text)
    }
}

/// Writes man pages, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill man | man -l -                                the page of kernmill itself
  kernmill man -o ~/.local/share/man/man1                kernmill.1, kernmill-run.1, ...")]
pub struct Manual {
    /// Directory to write the pages to, created if need be; without it, the first page is printed
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Manual {
    /// Runs the command; `program` is the command line.
    pub fn execute(self, mut program: Command) -> Result<()> {
        program.build();
        let Some(dir) = &self.output else { return output::print(page(program)?) };
        std::fs::create_dir_all(dir).map_err(Failure::read(dir))?;
        for command in pages(program) {
            let name = format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()));
            output::write_regular(&dir.join(name), page(command)?)?;
        }
        Ok(())
    }
}

/// A command and all below it, but for `help`.
fn pages(command: Command) -> Vec<Command> {
    let below: Vec<Command> = command
        .get_subcommands()
        .filter(|command| command.get_name() != "help" && !command.is_hide_set())
        .cloned()
        .collect();
    let below = below.into_iter().flat_map(pages);
    std::iter::once(command.clone()).chain(below).collect()
}

fn page(command: Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text).map_err(|error| Failure::Work(format!("the man page: {error}")))?;
    Ok(text)
}
