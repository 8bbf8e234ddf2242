//! The `kernmill` command line: one file per command, each a thin layer over the libraries.

mod adapters;
#[cfg(feature = "compiler")]
mod bench;
#[cfg(feature = "compiler")]
mod compile;
#[cfg(feature = "compiler")]
mod cpu;
mod emit;
#[cfg(feature = "compiler")]
mod explain;
mod failure;
#[cfg(feature = "compiler")]
mod fuse;
#[cfg(feature = "compiler")]
mod import;
mod inspect;
mod listing;
mod logits;
#[cfg(feature = "compiler")]
mod merge;
mod model;
#[cfg(feature = "compiler")]
mod nano;
mod output;
mod plan;
mod progress;
#[cfg(feature = "compiler")]
mod regenerate;
mod run;
#[cfg(feature = "compiler")]
mod source;
#[cfg(feature = "compiler")]
mod stages;
#[cfg(feature = "compiler")]
mod synth;
mod tokens;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

#[cfg(feature = "compiler")]
const HELP: &str = "\
Start with:
  kernmill run                                       the embedded nano model, at once
  kernmill import MODEL_DIR -o model.toml            a spec from a published config.json or GGUF file
  kernmill run --spec model.toml --weights MODEL_DIR --prompt 'Once upon a time'
  kernmill compile model.toml --weights MODEL_DIR -o model.plan       once; then it starts at once:
  kernmill run model.plan --prompt 'Once upon a time'

`kernmill COMMAND --help` has examples. Exit status: 0 done, 1 failed at work, 2 bad input.";

#[cfg(not(feature = "compiler"))]
const HELP: &str = "\
This kernmill has no compiler: it runs plans that `kernmill compile` wrote elsewhere.
  kernmill run my.plan --prompt 'Once upon a time'

`kernmill COMMAND --help` has examples. Exit status: 0 done, 1 failed at work, 2 bad input.";

/// Runs GPT-OSS-style models on x86-64 CPUs, with kernels generated for the model and the CPU at hand
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 110,
    after_help = HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
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
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Compile(command) => command.execute(),
        Command::Logits(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Bench(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Import(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Explain(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Fuse(command) => command.execute(),
        Command::Inspect(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Synth(command) => command.execute(),
        #[cfg(feature = "compiler")]
        Command::Cpu(command) => command.execute(),
    };
    result.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}
