//! The `kernmill` command line: one file per command, each a thin layer over the libraries.

mod bench;
mod compile;
mod cpu;
mod emit;
mod explain;
mod failure;
mod import;
mod inspect;
mod listing;
mod logits;
mod model;
mod nano;
mod output;
mod plan;
mod progress;
mod regenerate;
mod run;
mod source;
mod synth;
mod tokens;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

/// Runs GPT-OSS-style models on x86-64 CPUs, with kernels generated for the model and the CPU at hand
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 110,
    after_help = "\
Start with:
  kernmill run                                       the embedded nano model, at once
  kernmill import MODEL_DIR -o model.toml            a spec from a published config.json or GGUF file
  kernmill run --spec model.toml --weights MODEL_DIR --prompt 'Once upon a time'
  kernmill compile model.toml --weights MODEL_DIR -o model.plan       once; then it starts at once:
  kernmill run model.plan --prompt 'Once upon a time'

`kernmill COMMAND --help` has examples. Exit status: 0 done, 1 failed at work, 2 bad input."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Compile(compile::Compile),
    Logits(logits::Logits),
    Bench(bench::Bench),
    Import(import::Import),
    Explain(explain::Explain),
    Inspect(inspect::Inspect),
    Synth(synth::Synth),
    Cpu(cpu::Cpu),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(command) => command.execute(),
        Command::Compile(command) => command.execute(),
        Command::Logits(command) => command.execute(),
        Command::Bench(command) => command.execute(),
        Command::Import(command) => command.execute(),
        Command::Explain(command) => command.execute(),
        Command::Inspect(command) => command.execute(),
        Command::Synth(command) => command.execute(),
        Command::Cpu(command) => command.execute(),
    };
    result.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}
