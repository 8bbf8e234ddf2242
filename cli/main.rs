//! The `kernmill` command line: one file per command, arguments and printing over the library of the same
//! name.

mod batch;
#[cfg(feature = "compiler")]
mod bench;
mod chat;
#[cfg(feature = "compiler")]
mod compile;
#[cfg(feature = "compiler")]
mod cpu;
mod emit;
mod environment;
mod exit;
#[cfg(feature = "compiler")]
mod explain;
mod explicit;
mod failure;
#[cfg(feature = "compiler")]
mod fuse;
mod given;
mod hints;
#[cfg(feature = "compiler")]
mod import;
mod inspect;
#[cfg(feature = "compiler")]
mod load;
mod logging;
mod logits;
mod manual;
mod model;
mod options;
mod output;
mod progress;
mod prompt;
#[cfg(feature = "pull")]
mod pull;
mod run;
mod serve;
#[cfg(feature = "compiler")]
mod synth;
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
    long_version = version::long()
)]
#[cfg_attr(feature = "compiler", command(after_help = include_str!("help/kernmill.txt")))]
#[cfg_attr(not(feature = "compiler"), command(after_help = include_str!("help/kernmill-of-plans.txt")))]
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
    Completions(manual::Completions),
    #[command(name = "man")]
    Manual(manual::Manual),
}

/// Commands, in the order in which help lists them, and their arguments.
macro_rules! commands {
    ($($(#[$kept:meta])? $name:ident($arguments:ty),)*) => {
        #[derive(Debug, Subcommand)]
        enum Work { $($(#[$kept])? $name($arguments),)* }

        impl Work {
            fn execute(self, explicit: &Explicit) -> Result<()> {
                match self { $($(#[$kept])? Work::$name(command) => command.execute(explicit),)* }
            }
        }
    };
}

commands! {
    Run(run::Run),
    Chat(chat::Chat),
    Serve(serve::Serve),
    Batch(batch::Batch),
    #[cfg(feature = "pull")] Pull(pull::Pull),
    #[cfg(feature = "compiler")] Compile(compile::Compile),
    Tokens(tokens::Tokens),
    Logits(logits::Logits),
    #[cfg(feature = "compiler")] Bench(bench::Bench),
    #[cfg(feature = "compiler")] Import(import::Import),
    #[cfg(feature = "compiler")] Explain(explain::Explain),
    #[cfg(feature = "compiler")] Fuse(fuse::Fuse),
    Inspect(inspect::Inspect),
    #[cfg(feature = "compiler")] Synth(synth::Synth),
    #[cfg(feature = "compiler")] Cpu(cpu::Cpu),
}

fn main() -> ExitCode {
    if let Err(message) = kernmill_os::stack::check() {
        return Failure::Work(message).report();
    }
    kernmill_os::signals::install();
    match parse() {
        Ok((cli, explicit)) => execute(cli, &explicit).map_or_else(Failure::report, |()| ExitCode::SUCCESS),
        Err(error) => exit::usage(error, &Cli::command()),
    }
}

fn execute(cli: Cli, explicit: &Explicit) -> Result<()> {
    cli.log.start()?;
    match cli.command {
        Command::Work(command) => command.execute(explicit),
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
