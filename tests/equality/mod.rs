//! One order of arithmetic: compiled plans give the interpreter's logits bit for bit, however the work is cut
//! up.

mod adapters;
mod allowed;
mod blocks;
pub mod drafts;
mod encoders;
pub mod families;
mod float_env;
mod kv;
mod linked;
mod replay;
mod shared;
pub mod stages;
mod steps;
mod tiles;
mod vectors;
mod wanted;

use crate::harness::image_of;
use crate::hostile::targets::small_model::{Mlp, ModelShape, build};
use crate::hostile::targets::trial::Trial;
use fastrand::Rng;
use kernmill_compiler::interp::Interpreter;
use kernmill_compiler::ir::{Activations, Graph};
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::passes::fuse::{FusedGraph, FusedSet, fuse};
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::quant::{Preset, Quantisation};
use kernmill_compiler::passes::select::Pick;
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_compiler::testing::{RandomWeights, random_weights};
use kernmill_os::region::WeightRegion;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvFormats;
use kernmill_plan::numeric::ATTENTION_SEGMENT;
use kernmill_plan::target::{Features, Level};
use kernmill_runtime::guarded::{Flush, GuardedConfig};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, SequenceTokens, Steps};
use std::sync::Arc;

/// A model, its weights, and what the interpreter says.
pub struct Case {
    graph: Graph,
    weights: RandomWeights,
    tokens: Vec<u32>,
    /// For preset `fast`.
    choices: FormatChoices,
}

impl Case {
    pub fn new(shape: &ModelShape, seed: u64, length: usize) -> Case {
        Case::of(build(shape).unwrap(), seed, length)
    }

    fn of(graph: Graph, seed: u64, length: usize) -> Case {
        let weights = random_weights(&graph, seed);
        let mut rng = Rng::with_seed(seed);
        let tokens = (0..length).map(|_| rng.u32(0..graph.vocab as u32)).collect();
        let choices = mixed(&graph);
        Case { graph, weights, tokens, choices }
    }

    /// The interpreter's logits of every token, all in one batch.
    fn expected(&self, preset: Preset) -> Vec<f32> {
        self.expected_in(preset, &preset.kv_formats())
    }

    /// The interpreter's logits of every token with keys and values in these formats.
    fn expected_in(&self, preset: Preset, kv: &KvFormats) -> Vec<f32> {
        let quantisation = Quantisation { preset, choices: Some(&self.choices), kv: *kv };
        let graph = quantisation.quantise(&self.graph).unwrap();
        let weights = self.weights.for_graph(&graph);
        let logits = Interpreter::new(&graph, &weights).unwrap().extend(0, &self.tokens).unwrap();
        let width = self.graph.value(self.graph.output).ty.cols();
        assert_eq!(logits.len(), self.tokens.len() * width);
        assert!(logits.iter().all(|x| x.is_finite()), "equal bits of NaNs would show nothing");
        logits
    }

    pub fn compile(&self, options: &CompilerOptions) -> Compiled {
        let choices = Some(self.choices.clone());
        compile(&self.graph, &CompilerOptions { choices, ..options.clone() }).unwrap()
    }

    pub fn image(&self, compiled: &Compiled) -> PlanImage {
        image_of(compiled.program.clone(), self.pack(compiled))
    }

    fn pack(&self, compiled: &Compiled) -> Arc<WeightRegion> {
        build_weights(compiled, &self.weights.source(&self.graph), 1, &|_| {}).unwrap()
    }
}

/// Choices for preset `fast` with both formats in one kernel: of each three candidates, the second stays
/// int8.
fn mixed(graph: &Graph) -> FormatChoices {
    let mut choices = FormatChoices::assumed(graph);
    choices.list.iter_mut().skip(1).step_by(3).for_each(|choice| choice.format = WeightFormat::Int8);
    choices
}

fn options(preset: Preset, level: Level) -> CompilerOptions {
    CompilerOptions { preset, chunk: 32, ..CompilerOptions::new(level) }
}

fn engine(image: &PlanImage, threads: usize, sequences: u32, chunk: Option<u32>) -> Engine {
    let pool = PoolConfig { threads: Some(threads), ..PoolConfig::default() };
    let context = Some(image.program().model.max_context.min(2304));
    Engine::new(image, EngineConfig { pool, context, sequences, chunk, ..EngineConfig::default() }).unwrap()
}

/// Logits of every token, the prompt given in pieces of these sizes (the last repeats).
fn logits(engine: &mut Engine, tokens: &[u32], pieces: &[usize]) -> Vec<f32> {
    let id = engine.create().unwrap();
    let mut out = Vec::new();
    let (mut rest, mut turn) = (tokens, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(pieces[turn.min(pieces.len() - 1)].min(rest.len()));
        engine
            .extend_in_order(&[SequenceTokens::all(id, piece)], &mut |row| out.extend_from_slice(row.logits))
            .unwrap();
        (rest, turn) = (after, turn + 1);
    }
    engine.drop_sequence(id);
    out
}

#[track_caller]
fn assert_bits(actual: &[f32], expected: &[f32], vocab: usize, what: &str) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert_eq!(a.to_bits(), e.to_bits(), "{what}: token {} logit {}: {a} != {e}", i / vocab, i % vocab);
    }
}

const PRESETS: [Preset; 4] = Preset::ALL;

/// Shapes that between them have every feature.
fn shapes() -> Vec<(&'static str, ModelShape)> {
    let oss = ModelShape::mini_gpt_oss();
    vec![
        ("mini gpt-oss", oss.clone()),
        ("mini llama", ModelShape::mini_llama()),
        ("inputs in f32", ModelShape { inputs: (Activations::F32, 1), ..ModelShape::mini_llama() }),
        ("inputs of two terms", ModelShape { inputs: (Activations::Q8x2, 1), ..ModelShape::mini_llama() }),
        (
            "some inputs of two terms",
            ModelShape { inputs: (Activations::Q8x2, 3), ..ModelShape::mini_llama() },
        ),
        ("queries of two terms", ModelShape { inputs: (Activations::Q8x2, 4), ..oss.clone() }),
        ("values of other heads", ModelShape { v_head_dim: 64, ..oss.clone() }),
        ("some inputs in f32", ModelShape { inputs: (Activations::F32, 2), ..ModelShape::mini_llama() }),
        (
            "wide group, many experts",
            ModelShape {
                hidden: 160,
                heads: 8,
                kv_heads: 1,
                head_dim: 64,
                v_head_dim: 64,
                window: Some(20),
                mlp: Mlp::Experts { experts: 16, top_k: 4, inner: 96, format: WeightFormat::Mxfp4 },
                ..oss
            },
        ),
    ]
}

#[test]
fn kernels_give_the_interpreters_bits_on_every_level() {
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 1, 45);
        for preset in PRESETS {
            let expected = case.expected(preset);
            for level in Level::supported() {
                let compiled = case.compile(&options(preset, level));
                let image = case.image(&compiled);
                let actual = logits(&mut engine(&image, 1, 1, None), &case.tokens, &[45]);
                let what = format!("{name}, {}, {}", preset.name(), level.name());
                assert_bits(&actual, &expected, case.graph.vocab, &what);
            }
        }
    }
}

#[test]
fn random_models_give_the_interpreters_bits_fused_or_not() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    for seed in 0..24 {
        let shape = ModelShape::random(seed);
        let case = Case::new(&shape, seed, 40);
        for preset in PRESETS {
            let expected = case.expected(preset);
            for fuse in [true, false] {
                let compiled = case.compile(&CompilerOptions { fuse, ..options(preset, level) });
                let image = case.image(&compiled);
                let actual = logits(&mut engine(&image, 2, 1, None), &case.tokens, &[33, 7]);
                let what = format!("seed {seed}, {}, fuse {fuse}: {shape:?}", preset.name());
                assert_bits(&actual, &expected, case.graph.vocab, &what);
            }
        }
    }
}

/// Batches of one token, of a few and of many, several workers, either end of the memory against a page that
/// faults.
#[test]
fn random_models_stay_inside_their_operands() {
    let levels = Level::supported();
    for seed in 100..124 {
        let case = Case::new(&ModelShape::random(seed), seed, 40);
        let preset = PRESETS[seed as usize % PRESETS.len()];
        let level = levels[seed as usize / PRESETS.len() % levels.len()];
        let expected = case.expected(preset);
        for (fuse, flush) in [(true, Flush::End), (true, Flush::Start), (false, Flush::End)] {
            let compiled = case.compile(&CompilerOptions { fuse, ..options(preset, level) });
            let trial = Trial { graph: &case.graph, weights: &case.weights, tokens: &case.tokens };
            let workers = 1 + seed as u32 % 3;
            let config = GuardedConfig { context: 48, sequences: 2, workers, flush };
            let actual = trial.guarded(&compiled, None, &[1, 5, 25, 2], config).unwrap();
            let what = format!("seed {seed}, {}, {}, fuse {fuse}, {config:?}", preset.name(), level.name());
            assert_bits(&actual, &expected, case.graph.vocab, &what);
        }
    }
}

/// Leaving out one built-in fusion changes the kernels and no bit.
fn without(name: &str) {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let mut used = 0;
    let uses =
        |fused: &FusedGraph| fused.groups.iter().filter(|group| group.rule.as_deref() == Some(name)).count();
    for seed in 0..12 {
        let case = Case::new(&ModelShape::random(seed), seed, 23);
        for preset in PRESETS {
            let (all, _) = fuse(&adapters::graph(&case, preset), FusedSet::builtin().rules(), level);
            used += uses(&all);
            if uses(&all) == 0 {
                continue;
            }
            let fused = FusedSet::builtin().without(name).unwrap();
            let compiled = case.compile(&CompilerOptions { fused, ..options(preset, level) });
            assert_eq!(uses(&compiled.fused), 0);
            let expected = case.expected(preset);
            let actual = logits(&mut engine(&case.image(&compiled), 2, 1, None), &case.tokens, &[17, 6]);
            let what = format!("seed {seed}, {}, without {name}", preset.name());
            assert_bits(&actual, &expected, case.graph.vocab, &what);
        }
    }
    assert!(used > 0, "no random model has anything for {name}");
}

#[test]
fn without_qkv() {
    without("qkv");
}

#[test]
fn without_qkv_norm() {
    without("qkv_norm");
}

#[test]
fn without_attention() {
    without("attention");
}

#[test]
fn without_linear_residual() {
    without("linear_residual");
}

#[test]
fn without_moe_gate_up() {
    without("moe_gate_up");
}

#[test]
fn without_moe_down() {
    without("moe_down");
}

#[test]
fn without_mlp_gate_up() {
    without("mlp_gate_up");
}

#[test]
fn without_logits() {
    without("logits");
}

#[test]
fn without_norm_quant() {
    without("norm_quant");
}

#[test]
fn every_built_in_fusion_is_left_out_by_a_test() {
    let tested = [
        // Classes with norms behind attention and MLP have these three, in `families`.
        "post_qkv_norm",
        "qkv_norm",
        "post_qkv",
        "qkv",
        // Encoders fuse with it and without, in `families`; so with `linear_act`.
        "qkv_alone",
        // Layers that share caches have these two, in `shared`.
        "post_q",
        "q",
        "attention",
        "linear_act",
        "linear_residual",
        // Models of many experts have it, in `routers`.
        "moe_router",
        "moe_gate_up",
        "moe_routed",
        "moe_down",
        "post_mlp_gate_up",
        "mlp_gate_up",
        // Every class fuses with it and without, in `families`.
        "linear_combined",
        "logits",
        "post_norm_add",
        "norm_quant",
        // Those of adapters, in `adapters`.
        "routed_shrink",
        "shrink",
    ];
    assert_eq!(FusedSet::builtin().names().collect::<Vec<_>>(), tested);
}

#[test]
fn chunks_threads_and_neighbours_change_no_bit() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 5, 70);
        let vocab = case.graph.vocab;
        for preset in PRESETS {
            let expected = case.expected(preset);
            for fuse in [true, false] {
                let compiled = case.compile(&CompilerOptions { fuse, ..options(preset, level) });
                let image = case.image(&compiled);
                for threads in [1, 2, 3] {
                    let mut engine = engine(&image, threads, 3, None);
                    for pieces in [&[70][..], &[1], &[7], &[13, 1, 29], &[8, 9]] {
                        let actual = logits(&mut engine, &case.tokens, pieces);
                        let what =
                            format!("{name}, {}, fuse {fuse}, {threads} threads, {pieces:?}", preset.name());
                        assert_bits(&actual, &expected, vocab, &what);
                    }
                    let what =
                        format!("{name}, {}, fuse {fuse}, {threads} threads, in company", preset.name());
                    assert_bits(&in_company(&mut engine, &case.tokens), &expected, vocab, &what);
                }
            }
        }
    }
}

/// The window's last tokens see three segments of keys at once, and a tile of tokens ends in other segments
/// than it begins in. A lone token sees one segment, two and three, each a separate work item where there is
/// no window.
#[test]
fn long_contexts_give_the_interpreters_bits() {
    let window = Some(ATTENTION_SEGMENT as u32 + 2);
    for (name, shape) in [
        ("mini gpt-oss", ModelShape { window, ..ModelShape::mini_gpt_oss() }),
        ("one KV head, group of 3", ModelShape { window, heads: 3, kv_heads: 1, ..ModelShape::mini_llama() }),
    ] {
        let case = Case::new(&shape, 3, 2 * ATTENTION_SEGMENT + 40);
        let vocab = case.graph.vocab;
        for preset in [Preset::Exact, Preset::Faithful] {
            let expected = case.expected(preset);
            for level in Level::supported() {
                let image = case.image(&case.compile(&options(preset, level)));
                let lone =
                    [vec![ATTENTION_SEGMENT - 2, 1, 1, 1, 1, ATTENTION_SEGMENT - 5], vec![1; 43]].concat();
                for threads in [1, 3] {
                    let mut engine = engine(&image, threads, 1, None);
                    // Steps of up to 8 tokens are runs, which may end in other segments than they begin in.
                    let few = [ATTENTION_SEGMENT - 5, 8, 6, 2, 7, ATTENTION_SEGMENT - 21, 8];
                    for pieces in
                        [&[case.tokens.len()][..], &[ATTENTION_SEGMENT - 3, 1, 5, 32, 31], &lone, &few]
                    {
                        let actual = logits(&mut engine, &case.tokens, pieces);
                        let what = format!(
                            "{name}, {}, {}, {threads} threads, {pieces:?}",
                            preset.name(),
                            level.name()
                        );
                        assert_bits(&actual, &expected, vocab, &what);
                    }
                }
            }
        }
    }
}

/// Experts whose rows of weights are several chunks of panels long, the last whole or not: what is decoded
/// beside a product is what the next one takes, with one group of rows and with many, in units of one pair of
/// tiles and of two.
#[test]
fn long_rows_give_the_interpreters_bits() {
    for (hidden, inner) in [(960, 1440), (1472, 1024)] {
        let mlp = Mlp::Experts { experts: 3, top_k: 1, inner, format: WeightFormat::Mxfp4 };
        let shape = ModelShape { layers: 1, vocab: 64, hidden, mlp, ..ModelShape::mini_gpt_oss() };
        let case = Case::new(&shape, 7, 70);
        let expected = case.expected(Preset::Faithful);
        for level in Level::supported() {
            let mut beside = false;
            for n in 0..4 {
                let options =
                    CompilerOptions { kernels: Pick::Nth(n), chunk: 70, ..options(Preset::Faithful, level) };
                let compiled = case.compile(&options);
                beside |= compiled.program.code.symbols.iter().any(|s| s.name.starts_with("gemm_decode"));
                let image = case.image(&compiled);
                let mut engine = engine(&image, 2, 1, None);
                for pieces in [&[70][..], &[31, 39], &[5, 12, 53]] {
                    let actual = logits(&mut engine, &case.tokens, pieces);
                    let what = format!("{hidden} x {inner}, {}, candidate {n}, {pieces:?}", level.name());
                    assert_bits(&actual, &expected, case.graph.vocab, &what);
                }
            }
            assert_eq!(beside, level.features().has(Features::AVX512_VNNI), "{}", level.name());
        }
    }
}

#[test]
fn every_candidate_gives_the_interpreters_bits() {
    let (_, shape) = shapes().remove(0);
    let case = Case::new(&shape, 3, 40);
    let same = |options: &CompilerOptions, preset: Preset, expected: &[f32], what: &str| {
        let compiled = case.compile(options);
        let image = case.image(&compiled);
        let actual = logits(&mut engine(&image, 2, 1, None), &case.tokens, &[options.chunk]);
        let what = format!("{what}, {}, {}, chunk {}", preset.name(), options.level.name(), options.chunk);
        assert_bits(&actual, expected, case.graph.vocab, &what);
        compiled
    };
    for preset in PRESETS {
        let expected = case.expected(preset);
        for level in Level::supported() {
            // Prologues by every worker exist up to 8 tokens.
            for chunk in [5, 40] {
                let mut most = 1;
                for n in 0.. {
                    let kernels = Pick::Nth(n);
                    let options = CompilerOptions { kernels, chunk, ..options(preset, level) };
                    let compiled = same(&options, preset, &expected, &format!("candidate {n}"));
                    let choices = compiled.selections.iter().flat_map(|class| &class.choices);
                    most = choices.map(|choice| choice.candidates.len()).fold(most, usize::max);
                    if n + 1 >= most {
                        break;
                    }
                }
                for n in 0..4 {
                    let options = CompilerOptions { ukernels: Pick::Nth(n), chunk, ..options(preset, level) };
                    same(&options, preset, &expected, &format!("micro-kernel version {n}"));
                }
            }
        }
    }
}

/// Logits of a sequence while two others run beside it in the same batches.
fn in_company(engine: &mut Engine, tokens: &[u32]) -> Vec<f32> {
    let ids = [(); 3].map(|()| engine.create().unwrap());
    let mut out = Vec::new();
    let reversed: Vec<u32> = tokens.iter().rev().copied().collect();
    let mut start = 0;
    for size in [3, 1, 1, 11, 30].into_iter().cycle() {
        let end = (start + size).min(tokens.len());
        let work = [
            SequenceTokens::all(ids[0], &reversed[start..end]),
            SequenceTokens::all(ids[1], &tokens[start..end]),
            SequenceTokens::all(ids[2], &reversed[start..(start + 1).min(end)]),
        ];
        engine
            .extend_in_order(&work, &mut |row| {
                if row.entry == 1 {
                    out.extend_from_slice(row.logits);
                }
            })
            .unwrap();
        start = end;
        if start == tokens.len() {
            break;
        }
    }
    ids.into_iter().for_each(|id| engine.drop_sequence(id));
    out
}
