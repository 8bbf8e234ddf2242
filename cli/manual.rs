//! `kernmill completions` and `kernmill man`: what a shell and `man` need to know of the command line.

use crate::aside::Aside;
use crate::failure::{Failure, Result};
use crate::output;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::PathBuf;

/// Prints a shell's completions of commands, options and their values
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/completions.txt"))]
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
#[command(after_help = include_str!("help/man.txt"))]
pub struct Manual {
    /// Directory to write the pages to, created if need be; without it, the first page is printed
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Manual {
    /// Runs the command; `program` is the command line.
    pub fn execute(self, mut program: Command) -> Result<()> {
        program.build();
        let Some(dir) = &self.output else { return output::print(rendered(program).map_err(failed)?) };
        std::fs::create_dir_all(dir).map_err(Failure::read(dir))?;
        for command in pages(program) {
            let name = format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()));
            output::write_regular(&dir.join(name), rendered(command).map_err(failed)?)?;
        }
        Aside::default().wrote(dir, format_args!("`man {}/kernmill.1` shows the first page", dir.display()));
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

fn failed(error: io::Error) -> Failure {
    Failure::Work(format!("the man page: {error}"))
}

/// A page whose examples keep their lines.
fn rendered(command: Command) -> io::Result<Vec<u8>> {
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.get_subcommands().any(|command| !command.is_hide_set());
    let man = Man::new(command);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    // No line begins with a dot or a quote: all are indented, or words.
    let examples = examples.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    write!(text, ".SH EXAMPLES\n.nf\n{examples}\n.fi\n")?;
    Ok(text)
}
