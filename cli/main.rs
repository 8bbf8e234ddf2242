//! The `kernmill` command line: one file per command, arguments and printing over the library of the same
//! name.

/// Commands, in the order in which help lists them, and their arguments.
macro_rules! commands {
    ($(#[$of:meta])* $kind:ident { $($(#[$kept:meta])? $name:ident($arguments:ty),)* }) => {
        $(#[$of])*
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum $kind { $($(#[$kept])? $name($arguments),)* }

        impl $kind {
            /// Runs the command.
            pub(crate) fn execute(self, explicit: &$crate::explicit::Explicit) -> $crate::failure::Result<()> {
                match self { $($(#[$kept])? $kind::$name(command) => command.execute(explicit),)* }
            }
        }
    };
}

mod aside;
mod batch;
mod chat;
#[cfg(feature = "compiler")]
mod compiler;
#[cfg(not(feature = "compiler"))]
#[path = "without.rs"]
mod compiler;
mod embed;
mod emit;
mod environment;
mod eval;
mod exit;
mod explicit;
mod failure;
mod given;
mod inspect;
mod logging;
mod logits;
mod manual;
mod model;
mod options;
mod output;
mod prompt;
mod run;
mod serve;
mod tokens;
mod version;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use explicit::Explicit;
use failure::{Failure, Result};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs language models on x86-64 CPUs, with kernels generated for the model and the CPU at hand
#[derive(Debug, Parser)]
#[command(
    name = "kernmill",
    version = version::short(),
    long_version = version::long(),
    after_help = compiler::HELP
)]
struct Cli {
    #[command(flatten)]
    log: logging::LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Work(Box<Work>),
    #[command(flatten)]
    More(Box<compiler::More>),
    Completions(manual::Completions),
    #[command(name = "man")]
    Manual(manual::Manual),
}

commands! {
    /// Commands that every kernmill has.
    Work {
        Run(run::Run), Chat(chat::Chat), Serve(serve::Serve), Batch(batch::Batch),
        Embed(Box<embed::EmbedTexts>), Eval(eval::Eval),
    }
}

fn main() -> ExitCode {
    if let Err(message) = kernmill_tools::stack::check() {
        return Failure::Work(message).report();
    }
    kernmill_tools::signals::install();
    match parse() {
        Ok((cli, explicit)) => execute(cli, &explicit).map_or_else(Failure::report, |()| ExitCode::SUCCESS),
        Err(error) => exit::usage(error, &Cli::command()),
    }
}

fn execute(cli: Cli, explicit: &Explicit) -> Result<()> {
    cli.log.start()?;
    match cli.command {
        Command::Work(command) => command.execute(explicit),
        Command::More(command) => command.execute(explicit),
        Command::Completions(command) => command.execute(Cli::command()),
        Command::Manual(command) => command.execute(environment::named(Cli::command(), true, &|_| true)),
    }
}

/// Reads the command line and the environment.
fn parse() -> std::result::Result<(Cli, Explicit), clap::Error> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let command = environment::with_negative_numbers(environment::on_terminal(Cli::command()));
    let unused = environment::unused(&command, &args);
    let used = |variable: &str| unused.iter().all(|unused| unused.variable != variable);
    let bare = command.clone();
    let mut command = environment::named(command, environment::wants_long_help(&args), &used);
    let matches = command.try_get_matches_from_mut(&args);
    let matches = matches.map_err(|error| environment::blamed(error, &bare, &args, &used))?;
    let explicit = Explicit::of(&command, &matches);
    unused.iter().for_each(|unused| explicit.note_unused(&unused.variable, &unused.because));
    let cli = Cli::from_arg_matches(&matches)?;
    Ok((cli, explicit))
}
