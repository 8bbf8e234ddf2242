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
#[cfg(feature = "pull")]
mod pull;
mod run;
mod serve;
#[cfg(feature = "compiler")]
mod synth;
mod version;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use explicit::Explicit;
use failure::{Failure, Result};
use std::ffi::OsString;
use std::process::ExitCode;

#[cfg(feature = "compiler")]
const HELP: &str = "\
Start with:
  kernmill run                                             the embedded nano model, at once
  kernmill run MODEL --prompt 'Once upon a time'           a checkpoint's directory, a GGUF file or a plan
  kernmill chat MODEL                                      a conversation
  kernmill serve MODEL                                     OpenAI's API, and a page, at http://127.0.0.1:8080
  kernmill compile MODEL -o model.plan                     once; then it starts at once:
  kernmill run model.plan --prompt 'Once upon a time'

`kernmill COMMAND --help` has examples and the environment variables. Exit status: 0 done, 1 failed at work, 2 bad input.";

#[cfg(not(feature = "compiler"))]
const HELP: &str = "\
This kernmill has no compiler: it runs plans that `kernmill compile` wrote elsewhere.
  kernmill run my.plan --prompt 'Once upon a time'

`kernmill COMMAND --help` has examples. Exit status: 0 done, 1 failed at work, 2 bad input.";

/// Runs GPT-OSS-style models on x86-64 CPUs, with kernels generated for the model and the CPU at hand
#[derive(Debug, Parser)]
#[command(
    name = "kernmill",
    version = version::short(),
    long_version = version::long(),
    max_term_width = 140,
    after_help = HELP
)]
struct Cli {
    #[command(flatten)]
    log: logging::LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Chat(chat::Chat),
    Serve(serve::Serve),
    Batch(batch::Batch),
    #[cfg(feature = "pull")]
    Pull(pull::Pull),
    #[cfg(feature = "compiler")]
    Compile(compile::Compile),
    Logits(logits::Logits),
    #[cfg(feature = "compiler")]
    Bench(bench::Bench),
    #[cfg(feature = "compiler")]
    Import(import::Import),
    #[cfg(feature = "compiler")]
    Explain(explain::Explain),
    #[cfg(feature = "compiler")]
    Fuse(fuse::Fuse),
    Inspect(inspect::Inspect),
    #[cfg(feature = "compiler")]
    Synth(synth::Synth),
    #[cfg(feature = "compiler")]
    Cpu(cpu::Cpu),
    Completions(manual::Completions),
    #[command(name = "man")]
    Manual(manual::Manual),
}

fn main() -> ExitCode {
    if let Err(message) = kernmill_os::stack::check() {
        return Failure::Work(message).report();
    }
    kernmill_os::signals::install();
    match parse() {
        Ok((cli, explicit)) => execute(cli, &explicit).map_or_else(Failure::report, |()| ExitCode::SUCCESS),
        Err(error) => exit::usage(&error),
    }
}

fn execute(cli: Cli, explicit: &Explicit) -> Result<()> {
    cli.log.start()?;
    match cli.command {
        Command::Run(command) => command.execute(explicit),
        Command::Chat(command) => command.execute(explicit),
        Command::Serve(command) => command.execute(explicit),
        Command::Batch(command) => command.execute(explicit),
        #[cfg(feature = "pull")]
        Command::Pull(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Compile(command) => command.execute(explicit),
        Command::Logits(command) => command.execute(explicit),
        #[cfg(feature = "compiler")]
        Command::Bench(command) => command.execute(explicit),
        #[cfg(feature = "compiler")]
        Command::Import(command) => command.execute(explicit),
        #[cfg(feature = "compiler")]
        Command::Explain(command) => command.execute(explicit),
        #[cfg(feature = "compiler")]
        Command::Fuse(command) => command.execute(),
        Command::Inspect(command) => command.execute(explicit),
        #[cfg(feature = "compiler")]
        Command::Synth(command) => command.execute(explicit),
        #[cfg(feature = "compiler")]
        Command::Cpu(command) => command.execute(),
        Command::Completions(command) => command.execute(Cli::command()),
        Command::Manual(command) => command.execute(environment::named(Cli::command(), true, &|_| true)),
    }
}

/// Reads the command line and the environment.
fn parse() -> std::result::Result<(Cli, Explicit), clap::Error> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let command = environment::with_negative_numbers(Cli::command());
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
