//! Replays read what steps read, and leave everything as it is.

use super::{Case, PRESETS, engine, options, shapes};
use kernmill_kernels_gen::peak::probe;
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_plan::target::Level;
use kernmill_runtime::measure::{MemoryReader, readers};
use kernmill_runtime::profile::{Detail, WorkDone};
use kernmill_runtime::{Engine, EngineError, PlanImage, Replay, SeqId, SequenceTokens, Steps};

/// Tokens that sequences have before the step that is replayed.
const DEPTH: usize = 40;

pub fn readers_of(level: Level) -> Vec<MemoryReader> {
    // SAFETY: the generator has just made the probe.
    unsafe { readers(&probe(level).unwrap()) }.unwrap()
}

/// One more token of every sequence; what that read by the plan's figures, without rows of tables and what
/// attention reads besides the cache.
fn step(engine: &mut Engine, ids: &[SeqId], tokens: &[u32]) -> (u64, u64) {
    let entries: Vec<SequenceTokens<'_>> = ids.iter().map(|id| SequenceTokens::last(*id, tokens)).collect();
    engine.start_meter(Detail::Steps);
    engine.step(&entries, &()).unwrap();
    let profile = engine.stop_meter();
    let sum = |of: fn(&WorkDone) -> u64, except: &[&str]| {
        let steps = profile.steps.iter().filter(|step| !except.contains(&step.name.as_str()));
        steps.map(|step| of(&step.work)).sum::<u64>()
    };
    (sum(|work| work.weight_bytes, &["embed", "attention"]), sum(|work| work.cache_bytes, &[]))
}

/// The last logits of a text, of an engine that replays nothing.
fn expected(image: &PlanImage, tokens: &[u32]) -> Vec<f32> {
    let mut engine = engine(image, 1, 1, None);
    let id = engine.create().unwrap();
    let mut logits = Vec::new();
    engine.append(id, tokens, &mut logits).unwrap();
    logits
}

#[test]
fn replays_read_the_bytes_of_steps() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let readers = readers_of(level);
    assert!(readers.len() > 4);
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 3, DEPTH + 2);
        for preset in PRESETS {
            let image = case.image(&case.compile(&options(preset, level)));
            let replay = Replay::new(&image);
            for (threads, sequences) in [(1, 1), (3, 1), (2, 3)] {
                let what = format!("{name}, {}, {threads} threads, {sequences} sequences", preset.name());
                let mut engine = engine(&image, threads, sequences, None);
                let ids: Vec<SeqId> = (0..sequences).map(|_| engine.create().unwrap()).collect();
                for id in &ids {
                    engine.extend(&[SequenceTokens::silent(*id, &case.tokens[..DEPTH])], &()).unwrap();
                }
                let (weights, cache) = step(&mut engine, &ids, &case.tokens[DEPTH..=DEPTH]);
                let experts = engine.last_experts();
                let mut all = 0;
                for reader in &readers {
                    let read = engine.replay(&replay, reader, &experts).unwrap();
                    // Blocks are read whole: at each end of a view are up to 15 tokens more.
                    let kv = image.program().model.kv.clone();
                    let more: u64 = kv
                        .layers
                        .iter()
                        .map(|layer| 2 * BLOCK_TOKENS * kv.geometry(layer.kind).token_bytes())
                        .sum::<usize>() as u64;
                    let most = weights + cache + more * u64::from(sequences);
                    assert!(
                        (weights + cache..=most).contains(&read),
                        "{what}: {read} of {weights} + {cache}"
                    );
                    all = read;
                }
                // Without experts, their weights are left out.
                let none: Vec<Vec<u32>> = experts.iter().map(|_| Vec::new()).collect();
                let less = engine.replay(&replay, &readers[0], &none).unwrap();
                assert_eq!(less < all, !experts.is_empty(), "{what}");
                engine.read_weights(&replay, &readers[0], replay.bytes() - 100, 3 * replay.bytes()).unwrap();
                // The next step is as it would have been.
                let mut after = Vec::new();
                engine.append(ids[0], &case.tokens[DEPTH + 1..], &mut after).unwrap();
                assert_eq!(after, expected(&image, &case.tokens), "{what}");
                // A sequence that is replayed must still be there.
                engine.drop_sequence(ids[0]);
                let gone = engine.replay(&replay, &readers[0], &experts);
                assert!(matches!(gone, Err(EngineError::NoSequence)), "{what}");
            }
        }
    }
}
