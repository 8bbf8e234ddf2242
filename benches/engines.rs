//! Four engines of four workers each, run together, against one alone: what oversubscription costs.
//!
//! `cargo bench --bench engines` prints the median over alternating repetitions as JSON. On two cores, four
//! engines have four times the work; a pool whose barriers spin for long would take far more than four times
//! as long.

#![allow(clippy::print_stdout)]

use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_compiler::weights::CheckpointWeights;
use kernmill_plan::target::Level;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, Steps};
use std::path::Path;
use std::time::Instant;

const ENGINES: usize = 4;
const WORKERS: usize = 4;
const TOKENS: u32 = 400;
const REPETITIONS: usize = 7;

fn image() -> PlanImage {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano");
    let text =
        std::fs::read_to_string(directory.join("nano.toml")).expect("the nano spec is in the repository");
    let graph = lower(&Spec::parse("nano.toml", &text).expect("a good spec")).expect("a good spec");
    let checkpoint = Checkpoint::open(&directory).expect("the nano checkpoint is in the repository");
    let level = *Level::supported().last().expect("x86-64-v3 or better");
    let compiled = compile(&graph, &CompilerOptions::new(level)).expect("nano compiles");
    let weights = CheckpointWeights::new(&graph, &checkpoint).expect("the checkpoint fits the spec");
    let packed = build_weights(&compiled, &weights, 2, &|_| {}).expect("nano packs");
    // SAFETY: the compiler of this process made the program.
    unsafe { PlanImage::generated(compiled.program, packed) }
}

/// Decodes `TOKENS` tokens, one at a time.
fn decode(image: &PlanImage) {
    let pool = PoolConfig { threads: Some(WORKERS), ..PoolConfig::default() };
    let mut engine = Engine::new(image, EngineConfig { pool, ..EngineConfig::default() })
        .expect("an engine of the nano model");
    let id = engine.create().expect("room for one sequence");
    let mut logits = Vec::new();
    for token in 0..TOKENS {
        engine.append(id, &[token], &mut logits).expect("a token within the context");
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let image = image();
    decode(&image);
    let (mut one, mut four) = (Vec::new(), Vec::new());
    for _ in 0..REPETITIONS {
        one.push(timed(|| decode(&image)));
        four.push(timed(|| {
            std::thread::scope(|scope| {
                for _ in 0..ENGINES {
                    scope.spawn(|| decode(&image));
                }
            });
        }));
    }
    let (one, four) = (median(one), median(four));
    println!(
        "{{\"engines\": {ENGINES}, \"workers\": {WORKERS}, \"tokens\": {TOKENS}, \"one_seconds\": {one:.4}, \
         \"together_seconds\": {four:.4}, \"ratio\": {:.3}}}",
        four / one
    );
}
