//! The cost of loading an adapter, and its effect on running sequences: `cargo bench --bench adapter_load --
//! PLAN DIR [--threads N]`.
//!
//! Prints one line of JSON, in milliseconds: a loading; a decode step; the longest step beside a thread that
//! loads; naming the adapter, starting a sequence with it, and dropping both.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{AdapterUse, Engine, EngineConfig, Plan, SeqId, SequenceTokens, Steps};
use std::path::Path;
use std::time::Instant;

/// Loadings of which the median counts.
const TIMES: usize = 7;
/// Steps that are timed without a loading.
const STEPS: usize = 12;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [plan, directory, rest @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!("usage: cargo bench --bench adapter_load -- PLAN DIR [--threads N]");
    };
    let threads = rest.get(1).and_then(|count| count.parse().ok());
    let plan = Plan::open(Path::new(plan)).expect("a plan");
    let image = plan.image(plan.choose(None).expect("a target for this CPU")).expect("weights");
    let config = EngineConfig {
        pool: PoolConfig { threads, ..PoolConfig::default() },
        sequences: 2,
        ..EngineConfig::default()
    };
    let mut engine = Engine::new(&image, config).expect("an engine");
    let loader = engine.adapter_store().loader().expect("a plan with adapters");
    let directory = Path::new(directory);

    let id = engine.create().expect("a sequence");
    let mut steps: Vec<f64> = (0..STEPS).map(|_| step(&mut engine, id)).collect();
    let mut at_once: Vec<f64> =
        (0..TIMES).map(|_| timed(|| loader.load(directory, 1.0).expect("an adapter")).1).collect();

    let adapter = loader.load(directory, 1.0).expect("an adapter");
    let beside = {
        let (loader, directory) = (loader.clone(), directory.to_owned());
        let thread = std::thread::spawn(move || loader.load(&directory, 1.0).expect("an adapter"));
        let mut beside = Vec::new();
        while beside.is_empty() || !thread.is_finished() {
            beside.push(step(&mut engine, id));
        }
        thread.join().expect("it loads");
        beside.into_iter().fold(0.0, f64::max)
    };
    let ((), insert) = timed(|| engine.adapter_store_mut().insert("a", adapter).expect("room"));
    let (other, create) = timed(|| engine.create_with(&[AdapterUse::of("a")]).expect("a sequence"));
    let ((), drop) = timed(|| {
        engine.drop_sequence(other);
        engine.adapter_store_mut().remove("a");
    });
    println!(
        "{{\"load_ms\": {:.1}, \"step_ms\": {:.1}, \"longest_step_beside_ms\": {beside:.1}, \"insert_ms\": \
         {insert:.3}, \"create_ms\": {create:.3}, \"drop_ms\": {drop:.3}}}",
        median(&mut at_once),
        median(&mut steps)
    );
}

/// Milliseconds of one token of a sequence.
fn step(engine: &mut Engine, id: SeqId) -> f64 {
    timed(|| engine.extend(&[SequenceTokens::last(id, &[1])], &()).expect("room in the context")).1
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64() * 1e3)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
