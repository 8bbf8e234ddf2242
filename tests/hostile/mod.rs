//! Bytes from outside that mean harm: every reader refuses them without a panic, a hang, or much memory.
//!
//! The committed corpus is replayed, then mutated: a fixed number of times with a fixed seed, or for
//! `KERNMILL_SECONDS` with a seed that is printed and that `KERNMILL_SEED` gives again. docs/dev/fuzzing.md
//! has the fuzzing proper.

mod amplify;
mod bombs;
mod grow;
mod memory;
mod mutate;
pub mod targets;
mod watch;

use crate::harness;
use fastrand::Rng;
use kernmill_chat::calls::FORMATS;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use targets::{TARGETS, Target};
use watch::thread_seconds;

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
fn machine() {
    replay_and_mutate("machine");
}

#[test]
fn safetensors() {
    replay_and_mutate("safetensors");
}

#[test]
fn gguf() {
    replay_and_mutate("gguf");
}

#[test]
fn imatrix() {
    replay_and_mutate("imatrix");
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
fn plan_fields() {
    replay_and_mutate("plan_fields");
}

#[test]
fn requests() {
    replay_and_mutate("requests");
}

#[test]
fn adapter() {
    replay_and_mutate("adapter");
}

#[test]
fn fused() {
    replay_and_mutate("fused");
}

#[test]
fn kv_segment() {
    replay_and_mutate("kv_segment");
}

#[test]
fn kv_session() {
    replay_and_mutate("kv_session");
}

#[test]
fn generated() {
    replay_and_mutate("generated");
}

#[test]
fn form() {
    replay_and_mutate("form");
}

#[test]
fn chat_template() {
    replay_and_mutate("chat_template");
}

#[test]
fn eval_base() {
    replay_and_mutate("eval_base");
}

#[test]
fn eval_task() {
    replay_and_mutate("eval_task");
}

#[test]
fn every_target_has_a_fuzzer_and_a_corpus() {
    for target in &TARGETS {
        assert!(root().join(format!("fuzz/fuzz_targets/{}.rs", target.name)).is_file());
        assert!(!corpus(target.name).is_empty());
    }
}

/// Mutations of what is refused at the door would find little.
#[test]
fn the_corpus_has_inputs_that_are_read_to_the_end() {
    let seed = |path: &str| {
        let (target, name) = path.split_once('/').expect("two parts");
        fs::read(harness::corpus(target).join(name)).expect("readable")
    };
    assert!(
        targets::reads_machine(&seed("machine/two_cores"))
            && targets::reads_machine(&seed("machine/many_cores"))
    );
    assert!(targets::reads_safetensors(&seed("safetensors/model_header")));
    for name in ["gptq_header", "awq_header", "int8_header", "fp8_header", "mlx_header"] {
        assert!(targets::reads_quantised(&seed(&format!("safetensors/{name}"))), "{name}");
    }
    let of_gguf = [
        "gpt_oss",
        "gpt_oss_tokenizer",
        "llama",
        "llama_aligned",
        "llama_blocks",
        "qwen2_blocks",
        "every_block",
    ];
    for name in of_gguf {
        assert!(targets::reads_gguf(&seed(&format!("gguf/{name}")), &[0; 192 << 10]), "{name}");
    }
    assert_eq!(targets::reads_imatrix(&seed("imatrix/experts.gguf")), 3);
    assert_eq!(targets::reads_imatrix(&seed("imatrix/legacy.dat")), 2);
    let called: BTreeSet<&str> =
        corpus("generated").iter().filter_map(|seed| targets::reads_call(seed)).collect();
    assert_eq!(called, FORMATS.iter().map(|format| format.name).collect());
    assert_eq!(targets::reads_kv_segment(&seed("kv_segment/three_records")), 3);
    assert_eq!(targets::reads_kv_session(&seed("kv_session/two_records")), Some(2));
}

fn replay_and_mutate(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("listed");
    let seeds = corpus(name);
    // Work that is done only once is not charged to the first input.
    (target.run)(&seeds[0]);
    let slowest = seeds.iter().map(|seed| run(target, seed)).fold(0.0, f64::max);
    let seconds = environment("KERNMILL_SECONDS");
    let seed = environment("KERNMILL_SEED").unwrap_or_else(|| seconds.map_or(1, |_| fastrand::u64(..)));
    let mut rng = Rng::with_seed(seed);
    let Some(seconds) = seconds else {
        let mutated = (0..target.mutations).map(|_| run(target, &mutate::mutate(&seeds, &mut rng)));
        eprintln!("target {name}: {:.3} s for the slowest input", mutated.fold(slowest, f64::max));
        return;
    };
    eprintln!("target {name} for {seconds} s: KERNMILL_SEED={seed}");
    let (start, mut inputs) = (Instant::now(), 0u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        run(target, &mutate::mutate(&seeds, &mut rng));
        inputs += 1;
    }
    eprintln!("target {name}: {inputs} inputs, nothing found");
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Gives `data` to a target, and returns the processor time that it took, in seconds. The input is on disk
/// while it runs, for the case that it ends the process.
fn run(target: &Target, data: &[u8]) -> f64 {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{}", target.name));
    fs::write(&path, data).expect("writable");
    let _watched = watch::input(&path);
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
    seconds
}

/// The committed inputs of a target, in a fixed order.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = harness::corpus(name);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
