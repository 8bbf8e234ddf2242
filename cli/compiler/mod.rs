//! Commands and options that only a kernmill with the compiler has.

mod bench;
mod compile;
mod cpu;
mod explain;
mod fuse;
mod given;
mod import;
mod load;
mod options;
#[cfg(feature = "pull")]
mod pull;
mod quantize;
mod synth;

use crate::inspect::Inspect;
use crate::logits::Logits;
use crate::tokens::Tokens;
pub use given::GivenArgs;
pub use options::{AnewArgs, CompileArgs, KeptArgs, preset_parser};

/// The end of `--help`.
pub const HELP: &str = include_str!("../help/kernmill.txt");

commands! {
    /// Commands that a kernmill without the compiler has only in part.
    More {
        #[cfg(feature = "pull")] Pull(pull::Pull),
        Compile(compile::Compile), Tokens(Tokens), Logits(Logits), Bench(Box<bench::Bench>),
        Import(import::Import), Explain(explain::Explain), Fuse(fuse::Fuse),
        Inspect(Inspect), Quantize(Box<quantize::Quantize>), Synth(synth::Synth), Cpu(cpu::Cpu),
    }
}
