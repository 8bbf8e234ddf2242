//! Random pairs of a rule and a model: fused and unfused kernels give the interpreter's bits between guard
//! pages, or the rule is refused.
//!
//! `KERNMILL_PAIRS` says how many, `KERNMILL_SEED` where they begin. An access beyond a kernel's operands
//! ends the process with a signal; the pair at work is in `target/tmp/pair-SEED`.

use super::pair::{Pair, RULE, random_pair};
use crate::hostile::targets::trial::{Trial, adapter, difference};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::ir::lora::with_adapters;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec, fuse};
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::quant::quantise_chosen;
use kernmill_compiler::pipeline::{CompileError, Compiled, CompilerOptions, compile};
use kernmill_compiler::testing::{Rng, random_weights};
use kernmill_plan::target::Level;
use kernmill_runtime::guarded::{Flush, GuardedConfig};
use std::fs;
use std::path::Path;

/// Pairs that the test suite tries.
const PAIRS: u64 = 2000;
/// Pairs that went wrong once: three matrices that meet in panels, of q8 and of bf16 rows; values for the
/// cache that the prologue makes.
const FOUND: [u64; 4] = [3253, 7276, 7478, 3842];
/// Tokens of a run.
const TOKENS: usize = 26;

/// The fate of a pair.
#[derive(Debug, PartialEq)]
enum Fate {
    /// The rule applied; the bits are right.
    Applied,
    /// The rule was not even read, or its matches were turned down: for this reason.
    Refused(String),
    /// The model had nothing like the rule's pattern.
    Nowhere,
    /// The model cannot be compiled, with the rule or without: for this reason.
    Unsupported(String),
}

#[test]
fn pairs_have_the_interpreters_bits_between_guard_pages_or_are_refused() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (number("KERNMILL_SEED").unwrap_or(0), number("KERNMILL_PAIRS").unwrap_or(PAIRS));
    eprintln!("{count} pairs from KERNMILL_SEED={first} on");
    let (mut applied, mut refused, mut nowhere, mut unsupported) = (0, 0, 0, 0);
    for seed in first..first + count {
        match one(seed) {
            Fate::Applied => applied += 1,
            Fate::Refused(reason) => {
                assert!(!reason.is_empty(), "pair {seed} is refused without a reason");
                refused += 1;
            }
            Fate::Nowhere => nowhere += 1,
            Fate::Unsupported(reason) => {
                assert!(!reason.is_empty(), "pair {seed} is not supported for no reason");
                unsupported += 1;
            }
        }
    }
    eprintln!(
        "{applied} applied, {refused} refused, {nowhere} fitted nowhere, {unsupported} unsupported models"
    );
    assert!(count < 100 || applied * 3 >= count, "{applied} of {count} rules applied");
    assert!(count < 100 || unsupported * 20 <= count, "{unsupported} of {count} models are unsupported");
}

#[test]
fn pairs_that_went_wrong_once_are_right_or_refused() {
    let fates = FOUND.map(one);
    assert_eq!(fates.iter().filter(|fate| **fate == Fate::Applied).count(), 3, "{fates:?}");
    assert!(matches!(&fates[3], Fate::Refused(reason) if reason.contains("KV cache")), "{fates:?}");
}

/// Runs a pair; its text is on disk meanwhile.
fn one(seed: u64) -> Fate {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pair-{seed}"));
    let fate = run(seed, &path);
    fs::remove_file(&path).expect("it was written");
    fate
}

fn run(seed: u64, path: &Path) -> Fate {
    let pair = random_pair(seed).unwrap_or_else(|error| panic!("pair {seed}: {error}"));
    let mut rng = Rng::new(seed ^ 0x5eed);
    let levels = Level::supported();
    let level = if rng.one_in(3) { levels[levels.len() - 1] } else { rng.pick(&levels) };
    let text = |graph: &dyn std::fmt::Display| {
        let Pair { seed, preset, adapted, chunk, spec, .. } = &pair;
        let (preset, level) = (preset.name(), level.name());
        format!("# pair {seed}, {preset}, {level}, chunk {chunk}, adapted {adapted}\n{spec}\n{graph}")
    };
    fs::write(path, text(&pair.graph)).expect("writable");
    let spec = match FusedSpec::parse("pair.toml", &pair.spec) {
        Ok(spec) => spec,
        Err(error) => return Fate::Refused(error.to_string()),
    };
    let set = FusedSet::builtin().with(vec![spec]).expect("its name is its own");
    let choices = FormatChoices::assumed(&pair.graph);
    let quantised = quantise_chosen(&pair.graph, pair.preset, Some(&choices)).unwrap();
    let options = CompilerOptions {
        preset: pair.preset,
        choices: Some(choices),
        chunk: pair.chunk,
        adapters: pair.adapted,
        fused: set.clone(),
        ..CompilerOptions::new(level)
    };
    let graph = match pair.adapted {
        true => with_adapters(&quantised, pair.preset.adapter_format()).unwrap(),
        false => quantised,
    };
    let (fused, report) = fuse(&graph, set.rules(), level);
    if !fused.groups.iter().any(|group| group.rule.as_deref() == Some(RULE)) {
        let miss = report.near_misses.iter().find(|miss| miss.rule == RULE);
        return miss.map_or(Fate::Nowhere, |miss| Fate::Refused(miss.reason.clone()));
    }
    let compiled = compile(&pair.graph, &options);
    let plain = compile(&pair.graph, &CompilerOptions { fuse: false, ..options });
    match (compiled, plain) {
        (Ok(compiled), Ok(plain)) => {
            let wrong = differs(&pair, &graph, [&compiled, &plain], &mut rng);
            assert_eq!(wrong, None, "{}", path.display());
            Fate::Applied
        }
        (Err(error), Err(same)) if is_refusal(&same) => Fate::Unsupported(error.to_string()),
        (fused, plain) => panic!(
            "{}: with the rule: {:?}, unfused: {:?}",
            path.display(),
            fused.err().map(|error| error.to_string()),
            plain.err().map(|error| error.to_string())
        ),
    }
}

/// Whether it is the model's fault.
fn is_refusal(error: &CompileError) -> bool {
    !matches!(error, CompileError::Graph(_) | CompileError::MemoryCheck(_) | CompileError::Program(_))
}

/// The difference to the interpreter, if there is one: fused and unfused, each in its own way.
fn differs(pair: &Pair, graph: &Graph, both: [&Compiled; 2], rng: &mut Rng) -> Option<String> {
    let weights = random_weights(&pair.graph, pair.seed);
    let tokens: Vec<u32> = (0..TOKENS).map(|_| rng.below(pair.graph.vocab) as u32).collect();
    let trial = Trial { graph: &pair.graph, weights: &weights, tokens: &tokens };
    let data = both[0].program.model.adapters.as_ref().filter(|_| pair.adapted);
    let data = data.map(|lora_targets| adapter(lora_targets, rng));
    let expected = trial.expected(graph, data.as_deref());
    assert!(
        expected.iter().all(|x| x.is_finite()),
        "pair {}: equal bits of NaNs would show nothing",
        pair.seed
    );
    for (compiled, what) in both.into_iter().zip(["fused", "unfused"]) {
        let flush = rng.pick(&[Flush::End, Flush::End, Flush::Start]);
        let config =
            GuardedConfig { context: 32, sequences: rng.pick(&[1, 3]), workers: rng.pick(&[1, 2, 3]), flush };
        let pieces = rng.pick(&[&[TOKENS][..], &[1, 3, 9, 1], &[7, 9, 3], &[17, 1]]);
        let with = format!("{what}, batches {pieces:?}, {config:?}");
        match trial.guarded(compiled, data.as_deref(), pieces, config) {
            Ok(actual) => {
                if let Some(wrong) = difference(&actual, &expected, pair.graph.vocab) {
                    return Some(format!("{with}: {wrong}"));
                }
            }
            Err(error) => return Some(format!("{with}: {error}")),
        }
    }
    None
}
