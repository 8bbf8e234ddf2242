//! Adapters: the interpreter's bits on every level, in any company, and what they mean.

use super::{Case, PRESETS, assert_bits, logits, options, shapes};
use crate::hostile::targets::small_model::{Mlp, ModelShape};
use kernmill_compiler::interp::{Interpreter, LoraTargetAdapter, RawTensor};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::ir::lora::with_adapters;
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::passes::quant::{Preset, quantise_chosen};
use kernmill_compiler::passes::select::Pick;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_compiler::testing::{Rng, pack_adapter, random_adapter};
use kernmill_os::region::RegionError;
use kernmill_plan::adapter::{Adapters, LoraTarget, LoraTargetShape};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;
use kernmill_runtime::adapter::{AdapterPackError, PackedAdapter};
use kernmill_runtime::{Engine, SequenceTokens, Steps};
use std::sync::Arc;

/// An adapter's data by LoRA target.
pub type Data = Vec<Option<LoraTargetAdapter>>;

/// The shape of a random adapter.
#[derive(Clone, Copy)]
struct Kind {
    ranks: &'static [usize],
    /// One in so many LoRA targets has nothing.
    missing: usize,
    /// Dense LoRA targets have factors.
    dora: bool,
}

/// Ranks with and without padding, of one tile and of several, and the largest.
const KINDS: [Kind; 4] = [
    Kind { ranks: &[8], missing: usize::MAX, dora: false },
    Kind { ranks: &[1, 17, 64], missing: 3, dora: true },
    Kind { ranks: &[256], missing: usize::MAX, dora: false },
    Kind { ranks: &[3, 32], missing: 2, dora: false },
];

fn random(lora_target: &LoraTarget, kind: Kind, rng: &mut Rng) -> Option<LoraTargetAdapter> {
    if kind.missing < usize::MAX && rng.one_in(kind.missing) {
        return None;
    }
    let rank = rng.pick(kind.ranks);
    Some(random_adapter(lora_target, rank, kind.dora, rng))
}

/// One adapter of each kind.
pub fn adapters(lora_targets: &[LoraTarget], seed: u64) -> Vec<Data> {
    let mut rng = Rng::new(seed);
    KINDS
        .iter()
        .map(|kind| lora_targets.iter().map(|lora_target| random(lora_target, *kind, &mut rng)).collect())
        .collect()
}

fn packed(adapters: &Adapters, data: &Data) -> Arc<PackedAdapter> {
    let shape =
        |data: &LoraTargetAdapter| LoraTargetShape { rank: data.rank, factors: data.factors.is_some() };
    let shapes: Vec<Option<LoraTargetShape>> = data.iter().map(|data| data.as_ref().map(shape)).collect();
    let pack =
        PackedAdapter::pack::<AdapterPackError>(adapters, &shapes, &mut |lora_target, layout, bytes| {
            let data = data[lora_target].as_ref().expect("a layout is of a LoRA target with data");
            Ok(pack_adapter(&adapters.lora_targets[lora_target], data, layout, bytes)?)
        });
    Arc::new(pack.map_err(|error: AdapterPackError| error.to_string()).unwrap())
}

/// The graph of a preset, with branches for adapters.
pub fn graph(case: &Case, preset: Preset) -> Graph {
    let graph = quantise_chosen(&case.graph, preset, Some(&super::mixed(&case.graph))).unwrap();
    with_adapters(&graph, preset.adapter_format()).unwrap()
}

/// Logits of every token, by slot from 0 on, each slot's sequence by itself.
fn expected(case: &Case, preset: Preset, data: &[Data]) -> Vec<Vec<f32>> {
    let graph = graph(case, preset);
    let mut interpreter = Interpreter::new(&graph, &case.weights.for_graph(&graph)).unwrap();
    interpreter.set_adapters(data);
    (0..=data.len())
        .map(|slot| {
            interpreter.use_adapter(slot, slot);
            let logits = interpreter.extend(slot, &case.tokens).unwrap();
            assert!(logits.iter().all(|x| x.is_finite()));
            logits
        })
        .collect()
}

/// An engine with each adapter in its slot.
pub fn engine(image: &kernmill_runtime::PlanImage, threads: usize, data: &[Data]) -> Engine {
    let mut engine = super::engine(image, threads, data.len() as u32 + 1, None);
    let adapters = image.program().model.adapters.as_ref().unwrap();
    for (slot, data) in data.iter().enumerate() {
        assert_eq!(engine.place_adapter(packed(adapters, data)).unwrap(), slot as u32 + 1);
    }
    engine
}

/// Logits of the tokens as one sequence for each slot, side by side, cut into pieces of these sizes (the last
/// repeats).
pub fn together(engine: &mut Engine, tokens: &[u32], slots: usize, pieces: &[usize]) -> Vec<Vec<f32>> {
    let ids: Vec<_> = (0..slots).map(|_| engine.create().unwrap()).collect();
    for (slot, id) in ids.iter().enumerate() {
        engine.use_adapter(*id, slot as u32).unwrap();
    }
    let mut out = vec![Vec::new(); slots];
    let (mut rest, mut turn) = (tokens, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(pieces[turn.min(pieces.len() - 1)].min(rest.len()));
        let work: Vec<_> = ids.iter().map(|id| SequenceTokens::all(*id, piece)).collect();
        engine.extend_in_order(&work, &mut |row| out[row.entry].extend_from_slice(row.logits)).unwrap();
        (rest, turn) = (after, turn + 1);
    }
    ids.into_iter().for_each(|id| engine.drop_sequence(id));
    out
}

pub fn check(case: &Case, options: &CompilerOptions, threads: &[usize], pieces: &[&[usize]], what: &str) {
    let preset = options.preset;
    let compiled = case.compile(&CompilerOptions { adapters: true, ..options.clone() });
    let image = case.image(&compiled);
    let data = adapters(&image.program().model.adapters.as_ref().unwrap().lora_targets, 5);
    let expected = expected(case, preset, &data);
    let vocab = case.graph.vocab;
    for threads in threads {
        let mut engine = engine(&image, *threads, &data);
        for pieces in pieces {
            let actual = together(&mut engine, &case.tokens, data.len() + 1, pieces);
            for (slot, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
                let what = format!("{what}, {}, {threads} threads, {pieces:?}, slot {slot}", preset.name());
                assert_bits(actual, expected, vocab, &what);
            }
        }
        // Alone.
        let id = engine.create().unwrap();
        engine.use_adapter(id, 2).unwrap();
        let mut alone = Vec::new();
        engine
            .extend_in_order(&[SequenceTokens::all(id, &case.tokens)], &mut |row| {
                alone.extend_from_slice(row.logits)
            })
            .unwrap();
        assert_bits(&alone, &expected[2], vocab, &format!("{what}, {}, alone", preset.name()));
        engine.drop_sequence(id);
        // No token of the batch has one.
        let plain = logits(&mut engine, &case.tokens, &[case.tokens.len()]);
        assert_bits(&plain, &case.expected(preset), vocab, &format!("{what}, {}, none", preset.name()));
    }
}

#[test]
fn adapters_give_the_interpreters_bits_on_every_level() {
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 1, 11);
        for preset in PRESETS {
            for level in Level::supported() {
                let what = format!("{name}, {}", level.name());
                check(&case, &options(preset, level), &[1], &[&[11], &[1]], &what);
            }
        }
    }
}

#[test]
fn adapters_of_random_models_give_the_interpreters_bits_fused_or_not() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    for seed in 0..12 {
        let case = Case::new(&ModelShape::random(seed), seed, 19);
        let preset = PRESETS[seed as usize % PRESETS.len()];
        for fuse in [true, false] {
            let what = format!("seed {seed}, fuse {fuse}");
            check(
                &case,
                &CompilerOptions { fuse, ..options(preset, level) },
                &[1, 3],
                &[&[5, 1], &[13, 6]],
                &what,
            );
        }
    }
}

/// With 128-bit code in the place of tiles.
#[test]
fn adapters_beside_products_on_tiles_give_the_interpreters_bits() {
    for (at, (name, shape)) in shapes().into_iter().enumerate().take(2) {
        let case = Case::new(&shape, at as u64, 19);
        for level in Level::supported().into_iter().filter(|level| !level.has_tiles()) {
            let options = CompilerOptions { kernels: Pick::Tiles, ..options(Preset::Faithful, level) };
            let compiled = case.compile(&CompilerOptions { adapters: true, ..options.clone() });
            let symbols = &compiled.program.code.symbols;
            assert!(symbols.iter().any(|symbol| symbol.name.starts_with("gemm_strip_int8")), "{name}");
            check(&case, &options, &[1, 3], &[&[5, 1], &[13, 6]], &format!("{name} on tiles"));
        }
    }
}

/// Leaving out the fusions of shrinks changes the kernels and no bit.
#[test]
fn adapters_without_fused_shrinks() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    for (name, shape) in shapes().into_iter().take(2) {
        let case = Case::new(&shape, 4, 13);
        let all = case.compile(&options(Preset::Faithful, level));
        let mut used = 0;
        for rule in ["routed_shrink", "shrink"] {
            let groups = &all.fused.groups;
            used += groups.iter().filter(|group| group.rule.as_deref() == Some(rule)).count();
            let fused = FusedSet::builtin().without(rule).unwrap();
            let options = CompilerOptions { fused, ..options(Preset::Faithful, level) };
            check(&case, &options, &[2], &[&[13], &[2]], &format!("{name} without {rule}"));
        }
        assert!(used >= 4, "two layers have shrinks of {used} groups");
    }
}

/// The adapters' logits against those of weights that have them merged in, in f32.
#[test]
fn adapters_are_what_merging_them_gives() {
    let oss = ModelShape::mini_gpt_oss();
    let mlp = Mlp::Experts { experts: 4, top_k: 2, inner: 32, format: WeightFormat::Bf16 };
    for shape in [ModelShape { mlp, ..oss }, ModelShape::mini_llama()] {
        let case = Case::new(&shape, 7, 20);
        let options = CompilerOptions { adapters: true, ..options(Preset::Exact, Level::V3) };
        let lora_targets = case.compile(&options).program.model.adapters.unwrap().lora_targets;
        for kind in [KINDS[0], KINDS[1]] {
            let mut rng = Rng::new(3);
            let data: Data =
                lora_targets.iter().map(|lora_target| random(lora_target, kind, &mut rng)).collect();
            let of_adapter = expected(&case, Preset::Exact, std::slice::from_ref(&data)).remove(1);
            let mut merged = Case {
                graph: case.graph.clone(),
                weights: case.weights.clone(),
                tokens: case.tokens.clone(),
                choices: case.choices.clone(),
            };
            for (lora_target, data) in lora_targets.iter().zip(&data) {
                if let Some(data) = data {
                    merge(&mut merged, lora_target, data);
                }
            }
            let of_weights = merged.expected(Preset::Exact);
            let scale = of_weights.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            for (a, b) in of_adapter.iter().zip(&of_weights) {
                assert!((a - b).abs() <= 1e-4 * scale, "{a} and {b}");
            }
            let plain = case.expected(Preset::Exact);
            let moved = of_adapter.iter().zip(&plain).any(|(a, b)| (a - b).abs() > 0.05 * scale);
            assert!(moved, "the adapter does something");
        }
    }
}

/// `W = (W + B scale A) * factor` in the weights that the LoRA target's matrices are made of.
fn merge(case: &mut Case, lora_target: &LoraTarget, data: &LoraTargetAdapter) {
    let k = lora_target.k as usize;
    let experts = (lora_target.experts as usize).max(1);
    for out in &lora_target.outs {
        let at = case.graph.tensors.iter().position(|tensor| tensor.name == out.name).unwrap();
        let mut weights = case.weights.raw[at].to_f32();
        let (n, rows) = (out.rows as usize, lora_target.rows());
        for expert in 0..experts {
            for row in 0..n {
                let source = out.first as usize + row * out.step as usize;
                let b = &data.b[(expert * rows + source) * data.rank..][..data.rank];
                for (i, w) in weights[(expert * n + row) * k..][..k].iter_mut().enumerate() {
                    let a = |r: usize| data.a[(expert * data.rank + r) * k + i];
                    let delta: f32 = (0..data.rank).map(|r| b[r] * data.scales[r] * a(r)).sum();
                    *w = (*w + delta) * data.factors.as_ref().map_or(1.0, |factors| factors[source]);
                }
            }
        }
        case.weights.raw[at] = RawTensor::F32(weights);
    }
}

/// Memory is the only thing that taking it can fail for.
#[test]
fn packing_reports_what_is_wrong() {
    let case = Case::new(&ModelShape::mini_llama(), 1, 1);
    let compiled = case.compile(&CompilerOptions { adapters: true, ..options(Preset::Faithful, Level::V3) });
    let adapters = compiled.program.model.adapters.unwrap();
    let mut shapes = vec![None; adapters.lora_targets.len()];
    shapes[0] = Some(LoraTargetShape { rank: 2, factors: false });
    let k = adapters.lora_targets[0].k as usize;
    let error = PackedAdapter::pack::<AdapterPackError>(&adapters, &shapes, &mut |_, layout, bytes| {
        Ok(layout.pack_a(0, &vec![f32::INFINITY; 2 * k], bytes)?)
    });
    assert!(error.unwrap_err().to_string().contains("the weight is inf"));
    let none =
        PackedAdapter::pack::<RegionError>(&adapters, &vec![None; shapes.len()], &mut |_, _, _| Ok(()));
    assert_eq!((none.as_ref().unwrap().bytes(), none.unwrap().rank()), (0, 0));
}
