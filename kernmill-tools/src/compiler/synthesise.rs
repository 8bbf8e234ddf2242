//! Random checkpoints, GGUF files and adapters, as `kernmill synth` writes them.

use kernmill::Result;
use kernmill::compiler::SpecSource;
use kernmill::observe::{Observer, Progress, Unit};
use kernmill_checkpoint::SPEC_FILE;
use kernmill_compiler::synth::{self, AdapterShape, GgufTypes};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The kind of weights that are made.
#[derive(Debug)]
pub enum Synthesised {
    /// An adapter, in a directory.
    Adapter(AdapterShape),
    /// A checkpoint, or a GGUF file if types are given or the output is called so.
    Weights(Option<GgufTypes>),
}

impl Synthesised {
    /// An adapter of a rank, if one is given; weights otherwise.
    pub fn of(rank: Option<u16>, targets: Vec<String>, dora: bool, types: Option<GgufTypes>) -> Synthesised {
        let shape = |rank: u16| AdapterShape { rank: rank.into(), targets, dora };
        rank.map_or(Synthesised::Weights(types), |rank| Synthesised::Adapter(shape(rank)))
    }
}

/// Writes random weights of a model's shapes to `output`, and says what takes them.
///
/// # Errors
/// If the spec is wrong, has no such adapter or GGUF file, or writing fails.
pub fn synthesise(
    source: SpecSource,
    output: &Path,
    made: Synthesised,
    seed: u64,
    observer: &dyn Observer,
) -> Result<&'static str> {
    let ends = output.extension().is_some_and(|end| end == "gguf");
    let is_gguf = matches!(made, Synthesised::Weights(types) if types.is_some() || ends);
    let text = if is_gguf { source.text } else { synth::of_checkpoint(&source.text) };
    let source = SpecSource { text, ..source };
    let graph = source.graph()?;
    // How far the work is, and the bar, which begins when the bytes in all are known.
    let shown: Mutex<(u64, Option<Box<dyn Progress + '_>>)> = Mutex::new((0, None));
    let progress = |done: u64, total: u64| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let more = done.saturating_sub(shown.0);
        shown.0 += more;
        shown.1.get_or_insert_with(|| observer.begin("writing", Unit::Bytes, total)).advance(more);
    };
    match made {
        Synthesised::Adapter(shape) => {
            synth::write_adapter(&graph, output, &shape, seed, &progress)?;
            Ok("--lora NAME=DIR takes it")
        }
        Synthesised::Weights(types) if is_gguf => {
            synth::write_gguf(&graph, output, types.unwrap_or_default(), seed, &progress)?;
            Ok("`kernmill run` takes the file")
        }
        Synthesised::Weights(_) => {
            synth::write(&graph, (SPEC_FILE, &source.text), output, seed, &progress)?;
            Ok("`kernmill run` takes the directory")
        }
    }
}
