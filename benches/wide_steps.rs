//! The cost of several tokens of one sequence, as in the check of a draft: `cargo bench --bench wide_steps --
//! PLAN [ROUNDS] [TOKENS] [DEPTH]`.
//!
//! One engine runs, in turns, steps of as many tokens: of one sequence behind DEPTH others, of one sequence
//! at its start, and of as many sequences at theirs; every row of logits is wanted. Prints a line of JSON:
//! medians in ms, the medians and quartiles of the rounds' ratios to the last of the three; and of one more
//! step behind DEPTH tokens the bytes of weights and cache that it reads, and the ms of each kind of step.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::profile::Detail;
use kernmill_runtime::{Engine, EngineConfig, Plan, SeqId, SequenceTokens, Steps};
use std::path::Path;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [plan, rest @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!("usage: cargo bench --bench wide_steps -- PLAN [ROUNDS] [TOKENS] [DEPTH]");
    };
    let number = |at: usize, usual| rest.get(at).map_or(usual, |text| text.parse().expect("a number"));
    let (rounds, tokens, depth) = (number(0, 15), number(1, 8), number(2, 4096));
    let plan = Plan::open(Path::new(plan)).expect("a plan");
    let image = plan.image(plan.choose(None).expect("a target for this CPU")).expect("weights");
    let config = EngineConfig {
        pool: PoolConfig { pin: true, ..PoolConfig::default() },
        sequences: tokens as u32 + 1,
        context: Some((depth + tokens) as u32),
        ..EngineConfig::default()
    };
    let mut engine = Engine::new(&image, config).expect("an engine");
    let mut rng = fastrand::Rng::with_seed(1);
    let vocab = engine.model().vocab;
    let mut ids = |count: usize| -> Vec<u32> { (0..count).map(|_| rng.u32(..vocab)).collect() };
    let deep = engine.create().expect("a sequence");
    engine.extend(&[SequenceTokens::silent(deep, &ids(depth))], &()).expect("a prompt");
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..=rounds {
        // A round has the same tokens each time.
        let ids = ids(tokens);
        for turn in 0..3 {
            let case = (round + turn) % 3;
            let ms = match case {
                0 => behind(&mut engine, deep, depth, &ids),
                1 => at_start(&mut engine, &[&ids]),
                _ => at_start(&mut engine, &ids.chunks(1).collect::<Vec<_>>()),
            };
            // Weights come from the disk at first.
            if round > 0 {
                times[case].push(ms);
            }
        }
    }
    engine.start_meter(Detail::Steps);
    behind(&mut engine, deep, depth, &ids(tokens));
    let metered = engine.stop_meter();
    let kinds = metered.steps.iter().map(|step| format!("\"{}\": {:.2}", step.name, step.seconds * 1e3));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let ratio = |case: usize, part| {
        let mut ratios: Vec<f64> = times[case].iter().zip(&times[2]).map(|(a, b)| a / b).collect();
        quantile(&mut ratios, part)
    };
    let median = |case: usize| quantile(&mut times[case].clone(), 0.5);
    println!(
        "{{\"tokens\": {tokens}, \"depth\": {depth}, \"rounds\": {rounds}, \"one_behind_ms\": {:.2}, \
         \"one_at_start_ms\": {:.2}, \"many_at_start_ms\": {:.2}, \"ratio\": {:.4}, \"q1\": {:.4}, \
         \"q3\": {:.4}, \"ratio_at_start\": {:.4}, \"weight_bytes\": {}, \"cache_bytes\": {}, \"ms\": {{{kinds}}}}}",
        median(0),
        median(1),
        median(2),
        ratio(0, 0.5),
        ratio(0, 0.25),
        ratio(0, 0.75),
        ratio(1, 0.5),
        metered.total.weight_bytes,
        metered.total.cache_bytes,
    );
}

/// Milliseconds of a step behind what a sequence has, which it has again afterwards.
fn behind(engine: &mut Engine, sequence: SeqId, depth: usize, ids: &[u32]) -> f64 {
    let start = Instant::now();
    engine.extend(&[SequenceTokens::all(sequence, ids)], &()).expect("a step");
    let ms = start.elapsed().as_secs_f64() * 1e3;
    engine.truncate(sequence, depth as u32).expect("a window that is still there");
    ms
}

/// Milliseconds of a step of new sequences.
fn at_start(engine: &mut Engine, texts: &[&[u32]]) -> f64 {
    let sequences: Vec<SeqId> = texts.iter().map(|_| engine.create().expect("a sequence")).collect();
    let entries: Vec<SequenceTokens<'_>> =
        sequences.iter().zip(texts).map(|(id, text)| SequenceTokens::all(*id, text)).collect();
    let start = Instant::now();
    engine.extend(&entries, &()).expect("a step");
    let ms = start.elapsed().as_secs_f64() * 1e3;
    sequences.into_iter().for_each(|id| engine.drop_sequence(id));
    ms
}

/// The value that `part` (0 to 1) of the values are below.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}
