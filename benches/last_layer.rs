//! The savings by rows that the last layer leaves out: `cargo bench --bench last_layer -- PLAN [ROUNDS]
//! [TOKENS..]`.
//!
//! One engine runs prompts with one wanted row, in turns with all rows of the last layer and with the wanted
//! one alone. Prints a line of JSON for each length, with the medians in tokens per second, and the median
//! and quartiles of the rounds' ratios.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, Plan, SequenceTokens, Steps};
use std::path::Path;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [plan, rest @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!("usage: cargo bench --bench last_layer -- PLAN [ROUNDS] [TOKENS..]");
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let rounds = rest.first().map_or(9, number);
    let lengths: Vec<usize> = match rest.get(1..) {
        Some([_, ..]) => rest[1..].iter().map(number).collect(),
        _ => vec![32, 128, 512],
    };
    let plan = Plan::open(Path::new(plan)).expect("a plan");
    let image = plan.image(plan.choose(None).expect("a target for this CPU")).expect("weights");
    let config = EngineConfig {
        pool: PoolConfig { pin: true, ..PoolConfig::default() },
        sequences: 1,
        ..EngineConfig::default()
    };
    let mut engine = Engine::new(&image, config).expect("an engine");
    let mut rng = fastrand::Rng::with_seed(1);
    for tokens in lengths {
        let vocab = engine.model().vocab;
        let (mut all, mut wanted, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=rounds {
            // A round has the same tokens twice, and so the same experts.
            let ids: Vec<u32> = (0..tokens).map(|_| rng.u32(..vocab)).collect();
            let mut rate = |with_all| prompt(&mut engine, &ids, with_all);
            let (a, b) = if round % 2 == 0 {
                let a = rate(true);
                (a, rate(false))
            } else {
                let b = rate(false);
                (rate(true), b)
            };
            // Weights come from the disk at first.
            if round > 0 {
                all.push(a);
                wanted.push(b);
                ratios.push(b / a);
            }
        }
        let ratio = |part| quantile(&mut ratios.clone(), part);
        println!(
            "{{\"tokens\": {tokens}, \"rounds\": {rounds}, \"all_rows\": {:.2}, \"wanted_rows\": {:.2}, \
             \"ratio\": {:.4}, \"q1\": {:.4}, \"q3\": {:.4}}}",
            quantile(&mut all, 0.5),
            quantile(&mut wanted, 0.5),
            ratio(0.5),
            ratio(0.25),
            ratio(0.75)
        );
    }
}

/// Tokens per second of a prompt.
fn prompt(engine: &mut Engine, ids: &[u32], all: bool) -> f64 {
    engine.compute_all_rows(all);
    let id = engine.create().expect("a sequence");
    let start = Instant::now();
    engine.extend(&[SequenceTokens::last(id, ids)], &()).expect("a prompt");
    let seconds = start.elapsed().as_secs_f64();
    engine.drop_sequence(id);
    ids.len() as f64 / seconds
}

/// The value that `part` (0 to 1) of the values are below.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}
