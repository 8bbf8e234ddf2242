//! Every format of the KV cache, keys and values and kinds of layers apart: compiled plans give the
//! interpreter's logits bit for bit.

use super::{Case, assert_bits, engine, in_company, logits, options};
use crate::hostile::targets::small_model::{Mlp, ModelShape};
use crate::hostile::targets::trial::Trial;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_plan::kv::{KvFormat, KvFormats, KvPair};
use kernmill_plan::numeric::ATTENTION_SEGMENT;
use kernmill_plan::target::Level;
use kernmill_runtime::guarded::{Flush, GuardedConfig};
use kernmill_runtime::{Engine, Steps};

/// Formats that between them have every pair of keys and values, and every format in both kinds of layers.
fn formats() -> Vec<KvFormats> {
    let all = KvFormat::ALL;
    let pairs = all.into_iter().flat_map(|k| all.map(|v| KvPair { k, v }));
    pairs.enumerate().map(|(n, full)| KvFormats { full, sliding: KvPair::both(all[n % all.len()]) }).collect()
}

fn fits(shape: &ModelShape, kv: &KvFormats) -> bool {
    let formats = [kv.full.k, kv.full.v, kv.sliding.k, kv.sliding.v];
    formats.into_iter().all(|format| {
        let multiple = format.descriptor().head_multiple;
        shape.head_dim.is_multiple_of(multiple) && shape.v_head_dim.is_multiple_of(multiple)
    })
}

#[test]
fn every_format_gives_the_interpreters_bits_on_every_level() {
    // Keys and values have the same code whether a product takes f32 inputs or not.
    for (name, shape) in super::shapes().into_iter().filter(|(_, shape)| shape.inputs.1 == 0) {
        let case = Case::new(&shape, 1, 45);
        for kv in formats().into_iter().filter(|kv| fits(&shape, kv)) {
            let expected = case.expected_in(Preset::Faithful, &kv);
            // Keys and values are read by separate code: pairs of different ones on the best level alone.
            let levels = Level::supported();
            let first = if kv.full.k == kv.full.v { 0 } else { levels.len() - 1 };
            for level in levels.into_iter().skip(first) {
                let compiled =
                    case.compile(&CompilerOptions { kv: Some(kv), ..options(Preset::Faithful, level) });
                let image = case.image(&compiled);
                let mut engine = engine(&image, 2, 3, None);
                let what = format!("{name}, {kv}, {}", level.name());
                for pieces in [&[45][..], &[13, 1, 29]] {
                    let actual = logits(&mut engine, &case.tokens, pieces);
                    assert_bits(&actual, &expected, case.graph.vocab, &what);
                }
                let actual = in_company(&mut engine, &case.tokens);
                assert_bits(&actual, &expected, case.graph.vocab, &format!("{what}, in company"));
            }
        }
    }
}

/// Fused and not, with a preset that rounds nothing else and with one that does, between pages that fault.
#[test]
fn random_models_in_every_format_stay_inside_their_operands() {
    let levels = Level::supported();
    let formats = formats();
    let mut tried = 0;
    for seed in 200..236 {
        let shape = ModelShape::random(seed);
        let kv = formats[seed as usize % formats.len()];
        if !fits(&shape, &kv) {
            continue;
        }
        tried += 1;
        let case = Case::new(&shape, seed, 40);
        let preset = [Preset::Exact, Preset::Faithful][seed as usize % 2];
        let level = levels[seed as usize % levels.len()];
        let expected = case.expected_in(preset, &kv);
        for (fuse, flush) in [(true, Flush::End), (true, Flush::Start), (false, Flush::End)] {
            let compiled = case.compile(&CompilerOptions { fuse, kv: Some(kv), ..options(preset, level) });
            let trial = Trial { graph: &case.graph, weights: &case.weights, tokens: &case.tokens };
            let workers = 1 + seed as u32 % 3;
            let config = GuardedConfig { context: 48, sequences: 2, workers, flush };
            let actual = trial.guarded(&compiled, None, &[1, 5, 25, 2], config).unwrap();
            let what = format!("seed {seed}, {kv}, {}, fuse {fuse}, {config:?}", level.name());
            assert_bits(&actual, &expected, case.graph.vocab, &what);
        }
    }
    assert!(tried > 20, "{tried} models have heads that suit their formats");
}

/// Groups of 1 to 8 query heads, on the best level and on the lowest.
#[test]
fn groups_of_all_sizes_give_the_interpreters_bits() {
    let levels = Level::supported();
    for group in 1..=8 {
        let shape = ModelShape {
            layers: 2,
            heads: 2 * group,
            kv_heads: 2,
            head_dim: if group % 2 == 0 { 64 } else { 96 },
            v_head_dim: if group % 3 == 0 { 32 } else { 96 },
            window: Some(17),
            mlp: Mlp::Dense { inner: 32 },
            ..ModelShape::mini_gpt_oss()
        };
        let case = Case::new(&shape, group as u64, 50);
        for format in KvFormat::ALL {
            let kv = KvFormats::uniform(format);
            let expected = case.expected_in(Preset::Faithful, &kv);
            for level in [levels[0], levels[levels.len() - 1]] {
                let compiled =
                    case.compile(&CompilerOptions { kv: Some(kv), ..options(Preset::Faithful, level) });
                let actual =
                    logits(&mut engine(&case.image(&compiled), 2, 1, None), &case.tokens, &[37, 1, 8]);
                let what = format!("group of {group}, {kv}, {}", level.name());
                assert_bits(&actual, &expected, case.graph.vocab, &what);
            }
        }
    }
}

/// Several segments, windows that begin inside a block, lone tokens whose segments are work items.
#[test]
fn long_contexts_in_every_format_give_the_interpreters_bits() {
    let window = Some(ATTENTION_SEGMENT as u32 + 2);
    let shape = ModelShape { window, ..ModelShape::mini_gpt_oss() };
    let case = Case::new(&shape, 3, 2 * ATTENTION_SEGMENT + 40);
    for format in KvFormat::ALL {
        let kv = KvFormats::uniform(format);
        let expected = case.expected_in(Preset::Faithful, &kv);
        for level in Level::supported() {
            let image = case
                .image(&case.compile(&CompilerOptions { kv: Some(kv), ..options(Preset::Faithful, level) }));
            let mut engine = engine(&image, 2, 1, None);
            let few = [ATTENTION_SEGMENT - 5, 8, 6, 2, 7, ATTENTION_SEGMENT - 21, 8];
            for pieces in [&[ATTENTION_SEGMENT - 3, 1, 5, 32, 31][..], &[2 * ATTENTION_SEGMENT - 3, 1], &few]
            {
                let actual = logits(&mut engine, &case.tokens, pieces);
                assert_bits(&actual, &expected, case.graph.vocab, &format!("{kv}, {}", level.name()));
            }
        }
    }
}

/// Rows that come back from disk, in every format: logits of a fresh run, wherever the text was kept and cut.
/// The model has sliding layers with a window of 20; what makes way goes to the disk.
#[test]
fn what_comes_back_from_disk_has_the_bits_of_a_fresh_run() {
    let shape = ModelShape { window: Some(20), ..ModelShape::mini_gpt_oss() };
    let case = Case::new(&shape, 6, 100);
    let level = *Level::supported().last().unwrap();
    for (n, format) in KvFormat::ALL.into_iter().enumerate() {
        let kv = KvFormats { full: KvPair::both(format), sliding: KvPair::both(KvFormat::ALL[4 - n]) };
        if !fits(&shape, &kv) {
            continue;
        }
        let image =
            case.image(&case.compile(&CompilerOptions { kv: Some(kv), ..options(Preset::Faithful, level) }));
        let expected = logits(&mut engine(&image, 1, 1, None), &case.tokens, &[100]);
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str, seed: u8| {
            let limits = kernmill_kv_store::StoreOptions { reserve: 0, ..Default::default() };
            let store = kernmill_kv_store::Store::open(&dir.path().join(name), limits).unwrap();
            let mut engine = engine(&image, 1, 1, None);
            let layout = engine.kv_layout(&[seed; 32]);
            engine.keep_on_disk(store, layout);
            engine
        };
        let mut from_disk = 0;
        for kept in (1..=99).filter(|kept| [0, 1, 4, 5, 15].contains(&(kept % 16))) {
            let name = kept.to_string();
            let run = |engine: &mut Engine, tokens: &[u32]| {
                let begun = engine.begin(tokens, &[], [3; 32]).unwrap();
                let rest = &tokens[begun.cached_tokens as usize..];
                let mut last = Vec::new();
                engine.append(begun.sequence, rest, &mut last).unwrap();
                let what = format!("{kv}, {kept} tokens kept, {} from disk", begun.disk_tokens);
                let vocab = case.graph.vocab;
                assert_bits(&last, &expected[(tokens.len() - 1) * vocab..][..vocab], vocab, &what);
                engine.checkpoint(begun.sequence).unwrap();
                engine.drop_sequence(begun.sequence);
                begun.disk_tokens
            };
            let mut first = open(&name, 1);
            assert_eq!(run(&mut first, &case.tokens[..kept]), 0);
            first.save_cache().unwrap();
            drop(first);
            for to in [kept, kept + 1, 100] {
                let found = run(&mut open(&name, 1), &case.tokens[..to]);
                assert_eq!(found as usize, kept.min(to - 1));
                from_disk += found;
            }
            assert_eq!(run(&mut open(&name, 2), &case.tokens[..kept]), 0, "of another model");
        }
        assert!(from_disk > 1000, "{from_disk}");
    }
}
