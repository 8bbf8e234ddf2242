//! Two formats of keys and values against each other in one process: `cargo bench --bench kv_pairs --
//! CHECKPOINT FORMAT FORMAT [DEPTH] [TOKENS] [PAIRS]`.
//!
//! CHECKPOINT is a directory of `kernmill synth`. Both engines have the same weights in memory and a context
//! that random numbers fill up to DEPTH (0). In each pair both take TOKENS tokens (1: a step of decoding)
//! once, in an order that changes; every other pair swaps it. An engine takes a step that is not measured
//! first, so that its workers are awake. Prints one line of JSON: medians in milliseconds, and the median and
//! the quartiles of the ratios. A ratio above 1 says that the second is the faster one.
//!
//! A machine whose memory changes its speed from second to second moves both sides of a pair.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_compiler::weights::CheckpointWeights;
use kernmill_plan::kv::KvRequest;
use kernmill_plan::target::Level;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, SeqId, Steps};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [checkpoint, first, second, numbers @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!(
            "usage: cargo bench --bench kv_pairs -- CHECKPOINT FORMAT FORMAT [DEPTH] [TOKENS] [PAIRS]"
        );
    };
    let number = |n: usize, default: usize| {
        numbers.get(n).map_or(default, |text| text.parse().expect("DEPTH, TOKENS and PAIRS are numbers"))
    };
    let (depth, tokens, pairs) = (number(0, 0), number(1, 1), number(2, 21));
    // A step that is not measured comes before each that is.
    let context = depth + (1 + tokens) * (pairs + 1);
    let mut sides = engines(Path::new(checkpoint), [first, second], context as u32).map(|mut engine| {
        let id = engine.create_random(depth as u32, 1).expect("a context of that depth");
        (engine, id)
    });
    sides.iter_mut().for_each(|side| {
        step(side, tokens);
    });
    let mut times = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        for side in [pair % 2, 1 - pair % 2] {
            step(&mut sides[side], 1);
            times[side].push(step(&mut sides[side], tokens));
        }
    }
    let ratios = times[0].iter().zip(&times[1]).map(|(first, second)| first / second).collect();
    let [low, ratio, high] = quartiles(ratios);
    let [first_ms, second_ms] = times.map(|times| quartiles(times)[1] * 1e3);
    println!(
        "{{\"first\": \"{first}\", \"second\": \"{second}\", \"depth\": {depth}, \"tokens\": {tokens}, \"pairs\": \
         {pairs}, \"first_ms\": {first_ms:.2}, \"second_ms\": {second_ms:.2}, \"ratio\": {ratio:.4}, \"quartiles\": \
         [{low:.4}, {high:.4}]}}"
    );
}

/// Seconds that so many more tokens take.
fn step((engine, id): &mut (Engine, SeqId), tokens: usize) -> f64 {
    let (ids, mut logits) = (vec![1; tokens], Vec::new());
    let start = Instant::now();
    engine.append(*id, &ids, &mut logits).expect("tokens within the context");
    start.elapsed().as_secs_f64()
}

/// Engines of both formats over the same weights.
fn engines(directory: &Path, formats: [&str; 2], context: u32) -> [Engine; 2] {
    let text = std::fs::read_to_string(directory.join("kernmill.toml")).expect("a checkpoint of synth");
    let graph = lower(&Spec::parse("kernmill.toml", &text).expect("a good spec")).expect("a good spec");
    let checkpoint = Checkpoint::open(directory).expect("a checkpoint");
    let weights = CheckpointWeights::new(&graph, &checkpoint).expect("the checkpoint fits the spec");
    let level = *Level::supported().last().expect("x86-64-v3 or better");
    let mut packed = None;
    formats.map(|format| {
        let mut options = CompilerOptions::new(level);
        let request: KvRequest = format.parse().expect("a format of --kv-format");
        options.kv = Some(request.of(options.preset.kv_formats()));
        let compiled = compile(&graph, &options).expect("the model compiles");
        let region = packed.get_or_insert_with(|| {
            build_weights(&compiled, &weights, 2, &|_| {}).expect("memory for the weights")
        });
        assert_eq!(region.len() as u64, compiled.program.weight_bytes, "one layout of weights");
        // SAFETY: the compiler of this process made the program.
        let image = unsafe { PlanImage::generated(compiled.program, Arc::clone(region)) };
        let config = EngineConfig { context: Some(context), ..EngineConfig::default() };
        Engine::new(&image, config).expect("memory for the cache")
    })
}

/// The quartiles, the median in the middle.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[quarter * (values.len() - 1) / 4])
}
