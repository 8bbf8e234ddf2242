//! Bytes from outside that mean harm: every reader refuses them without a panic, a hang, or much memory.
//!
//! The committed corpus is replayed, then mutated with a fixed seed. `KERNMILL_MUTATIONS=FACTOR` multiplies the mutations
//! for a longer run by hand, `KERNMILL_SEED` gives another seed; docs/fuzzing.md has the fuzzing proper.

mod bombs;
mod memory;
mod mutate;
pub mod targets;

use fastrand::Rng;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use targets::{TARGETS, Target};

/// Processor time that an input may take, in seconds.
const MAX_SECONDS: f64 = 1.0;
/// Heap bytes that an input may take.
const MAX_BYTES: u64 = 128 << 20;

// One test per target, so that they run side by side and a failure names its target.

#[test]
fn spec() {
    replay_and_mutate("spec");
}

#[test]
fn config() {
    replay_and_mutate("config");
}

#[test]
fn safetensors() {
    replay_and_mutate("safetensors");
}

#[test]
fn graph() {
    replay_and_mutate("graph");
}

#[test]
fn expr() {
    replay_and_mutate("expr");
}

#[test]
fn program() {
    replay_and_mutate("program");
}

#[test]
fn tokenizer() {
    replay_and_mutate("tokenizer");
}

#[test]
fn compile() {
    replay_and_mutate("compile");
}

#[test]
fn plan() {
    replay_and_mutate("plan");
}

#[test]
fn adapter() {
    replay_and_mutate("adapter");
}

#[test]
fn every_target_has_a_fuzzer_and_a_corpus() {
    for target in &TARGETS {
        assert!(root().join(format!("fuzz/fuzz_targets/{}.rs", target.name)).is_file());
        assert!(!corpus(target.name).is_empty());
    }
}

fn replay_and_mutate(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("listed");
    let seeds = corpus(name);
    // What is set up once is not the first input's.
    (target.run)(&seeds[0]);
    seeds.iter().for_each(|seed| run(target, seed));
    let mut rng = Rng::with_seed(environment("KERNMILL_SEED").unwrap_or(1));
    for _ in 0..target.mutations * environment("KERNMILL_MUTATIONS").unwrap_or(1) as usize {
        run(target, &mutate::mutate(&seeds, &mut rng));
    }
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Gives `data` to a target. The input is on disk while it runs, for the case that it ends the process.
fn run(target: &Target, data: &[u8]) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{}", target.name));
    fs::write(&path, data).expect("writable");
    let start = thread_seconds();
    let mut outcome = Ok(());
    let bytes = memory::peak_of(|| outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(data))));
    let seconds = thread_seconds() - start;
    if let Err(panic) = outcome {
        eprintln!("target {} panics on {}", target.name, path.display());
        resume_unwind(panic);
    }
    assert!(seconds < MAX_SECONDS, "target {} took {seconds} s for {}", target.name, path.display());
    assert!(bytes < MAX_BYTES, "target {} took {bytes} bytes for {}", target.name, path.display());
}

/// Processor time of this thread: what else the machine does is not counted.
fn thread_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) as f64 / 1e9
}

/// The committed inputs of a target, in a fixed order.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = root().join("fuzz/corpus").join(name);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
