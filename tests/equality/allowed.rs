//! Where masks leave few tokens, only the tiles of the unembedding that hold one of them are read: their
//! logits have the bits that they have among all, and what is chosen is the same.

use super::replay::readers_of;
use super::{Case, PRESETS, assert_bits, engine, options, shapes};
use crate::hostile::targets::small_model::ModelShape;
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::program::{Operand, Program};
use kernmill_plan::target::Level;
use kernmill_runtime::profile::{Detail, Profile};
use kernmill_runtime::{
    Engine, LogitRow, LogitRows, Replay, Sampler, SamplerParams, SeqId, SequenceTokens, Steps, TokenMask,
};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The last tile is not whole.
const VOCAB: usize = 200;
const TILES: usize = VOCAB.div_ceil(TILE_ROWS);

/// Shapes that have every feature, with more tiles of tokens.
fn cases(seed: u64, tokens: usize) -> impl Iterator<Item = (&'static str, Case)> {
    let of = move |shape: ModelShape| Case::new(&ModelShape { vocab: VOCAB, ..shape }, seed, tokens);
    shapes().into_iter().map(move |(name, shape)| (name, of(shape)))
}

fn mask(tokens: &[u32]) -> TokenMask {
    let mut mask = TokenMask::new(VOCAB, false);
    tokens.iter().for_each(|token| mask.set(*token, true));
    mask
}

/// The logits that one step hands out, by entry and token.
fn step(engine: &mut Engine, entries: &[SequenceTokens<'_>]) -> BTreeMap<(usize, usize), Vec<f32>> {
    let rows = Mutex::new(BTreeMap::new());
    let take = |_: usize, row: LogitRow<'_>| {
        rows.lock().unwrap().insert((row.entry, row.token), row.logits.to_vec());
    };
    engine.step(entries, &take).unwrap();
    rows.into_inner().unwrap()
}

/// Runs two texts up to a step whose rows have masks: three rows of the first, as of a draft, and one of the
/// second. Which rows of which tokens came.
fn two_texts(
    engine: &mut Engine,
    tokens: &[u32],
    allowed: [&[&TokenMask]; 2],
) -> BTreeMap<(usize, usize), Vec<f32>> {
    let ids = [engine.create().unwrap(), engine.create().unwrap()];
    let before = [SequenceTokens::silent(ids[0], &tokens[..9]), SequenceTokens::silent(ids[1], &tokens[..4])];
    engine.step(&before, &()).unwrap();
    let entry = |n: usize, tokens, rows| SequenceTokens {
        sequence: ids[n],
        tokens,
        logits: LogitRows::LastN(rows),
        allowed: allowed[n],
    };
    let rows = step(engine, &[entry(0, &tokens[9..14], 3), entry(1, &tokens[4..5], 1)]);
    ids.into_iter().for_each(|id| engine.drop_sequence(id));
    // By the token's place in the text.
    rows.into_iter().map(|((entry, token), row)| ((entry, token + [9, 4][entry]), row)).collect()
}

#[test]
fn allowed_tokens_have_the_interpreters_bits() {
    let masks = [mask(&[0, 5, 199]), mask(&[77]), mask(&[5, 78, 192]), mask(&[64, 65])];
    let several: Vec<&TokenMask> = masks.iter().collect();
    for (name, case) in cases(23, 20) {
        for preset in PRESETS {
            let expected = case.expected(preset);
            let row = |at: usize| &expected[at * VOCAB..][..VOCAB];
            for (level, threads) in Level::supported().into_iter().zip([1, 3, 2].into_iter().cycle()) {
                let image = case.image(&case.compile(&options(preset, level)));
                let what = format!("{name}, {}, {}, {threads} threads", preset.name(), level.name());
                let mut engine = engine(&image, threads, 2, None);
                let rows = two_texts(&mut engine, &case.tokens, [&several[..3], &several[3..]]);
                assert_eq!(rows.keys().copied().collect::<Vec<_>>(), [(0, 11), (0, 12), (0, 13), (1, 4)]);
                for ((_, at), logits) in &rows {
                    for token in (0..VOCAB as u32).filter(|token| masks.iter().any(|m| m.allows(*token))) {
                        let token = token as usize;
                        assert_bits(&[logits[token]], &[row(*at)[token]], 1, &what);
                    }
                    let params = [0.0, 0.8].map(|temperature| SamplerParams {
                        temperature,
                        top_p: 0.9,
                        min_p: 0.01,
                        repetition_penalty: 1.3,
                        logit_bias: vec![(5, 0.5), (100, 9.0)],
                        seed: Some(7),
                        ..SamplerParams::default()
                    });
                    for params in params {
                        for mask in &masks {
                            let mut sampler = Sampler::new(params.clone(), VOCAB).unwrap();
                            sampler.prompt(&case.tokens);
                            let all = sampler.choose(row(*at), 9, Some(mask));
                            assert_eq!(sampler.choose(logits, 9, Some(mask)), all, "{what}: {params:?}");
                        }
                    }
                }
                // A text without a mask needs all.
                let rows = two_texts(&mut engine, &case.tokens, [&several[..3], &[]]);
                for ((_, at), logits) in &rows {
                    assert_bits(logits, row(*at), VOCAB, &what);
                }
            }
        }
    }
}

/// A step of one token whose logits have a mask, and its profile.
fn metered(engine: &mut Engine, id: SeqId, token: u32, mask: Option<&TokenMask>) -> Profile {
    engine.start_meter(Detail::Steps);
    let allowed: Vec<&TokenMask> = mask.into_iter().collect();
    let entry = SequenceTokens { sequence: id, tokens: &[token], logits: LogitRows::Last, allowed: &allowed };
    engine.step(&[entry], &()).unwrap();
    engine.stop_meter()
}

/// Bytes of the unembedding.
fn matrix(program: &Program) -> u64 {
    let step = program.classes[0].logit_steps.last().unwrap();
    let matrix = step.weight_reads.parts[0].operands[0].operand;
    match step.operands[matrix as usize] {
        Operand::Weights { bytes, .. } => bytes,
        _ => panic!("{step:?}"),
    }
}

#[test]
fn bytes_of_a_step_fall_with_the_mask() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let readers = readers_of(level);
    for (name, case) in cases(3, 20) {
        for preset in PRESETS {
            let image = case.image(&case.compile(&options(preset, level)));
            let replay = Replay::new(&image);
            let mut engine = engine(&image, 2, 1, None);
            let id = engine.create().unwrap();
            engine.step(&[SequenceTokens::silent(id, &case.tokens[..10])], &()).unwrap();
            let logits = |engine: &mut Engine, mask: Option<&TokenMask>| {
                let profile = metered(engine, id, case.tokens[10], mask);
                let read = engine.replay(&replay, &readers[0], &engine.last_experts()).unwrap();
                engine.truncate(id, 10).unwrap();
                let of_logits = profile.steps.iter().filter(|step| step.name == "logits");
                (of_logits.map(|step| step.work.weight_bytes).sum::<u64>(), profile.total.macs, read)
            };
            let all = logits(&mut engine, None);
            let tile = matrix(image.program()) / TILES as u64;
            for tiles in [0, 1, 2, 6] {
                // Every other tile, two tokens of each, up to the last.
                let first = (TILES - 2 * tiles.max(1)) as u32;
                let tokens = (0..tiles as u32).map(|n| (first + 2 * n + 1) * TILE_ROWS as u32);
                let tokens: Vec<u32> = tokens.flat_map(|token| [token, token + 7]).collect();
                let some = logits(&mut engine, Some(&mask(&tokens)));
                let what = format!("{name}, {}, {tiles} tiles: {some:?} of {all:?}", preset.name());
                let left_out = (TILES - tiles) as u64;
                assert_eq!(all.0 - some.0, tile * left_out, "{what}");
                assert_eq!(all.2 - some.2, tile * left_out, "{what}");
                assert!(all.1 - some.1 >= left_out * TILE_ROWS as u64, "{what}");
            }
            // Most tokens, and all of them where that is asked for.
            assert_eq!(logits(&mut engine, Some(&TokenMask::new(VOCAB, true))), all);
            engine.compute_all_logits(true);
            assert_eq!(logits(&mut engine, Some(&mask(&[3]))).0, all.0);
        }
    }
}
