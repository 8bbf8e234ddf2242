//! Matrices and tables in every format with blocks: the interpreter's bits.

use super::{Case, adapters, assert_bits, engine, logits, options};
use crate::hostile::targets::small_model::{Mlp, ModelShape};
use crate::hostile::targets::trial::Trial;
use kernmill_compiler::ir::Activations;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::select::Pick;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;
use kernmill_runtime::guarded::{Flush, GuardedConfig};

/// Presets that differ for such matrices: the others are as `faithful` for them.
const PRESETS: [Preset; 2] = [Preset::Exact, Preset::Faithful];

/// Everything in blocks of the format, rows of 256 and of 512 elements; every other input of a product stays
/// f32, and the unembedding is the table.
fn dense(format: WeightFormat) -> ModelShape {
    let llama = ModelShape {
        layers: 1,
        hidden: 256,
        heads: 8,
        kv_heads: 2,
        mlp: Mlp::Dense { inner: 512 },
        inputs: (Activations::F32, 2),
        tied: true,
        ..ModelShape::mini_llama()
    };
    llama.in_blocks(format)
}

/// A model with experts in the format, its router in blocks too, and a table apart from the unembedding.
fn experts(format: WeightFormat) -> ModelShape {
    let oss = ModelShape { layers: 1, hidden: 256, heads: 8, vocab: 50, ..ModelShape::mini_gpt_oss() };
    let mlp = Mlp::Experts { experts: 3, top_k: 2, inner: 256, format };
    ModelShape { mlp, ..oss }.in_blocks(format)
}

fn check_on_every_level(shape: &ModelShape, what: &str) {
    let case = Case::new(shape, 1, 21);
    for preset in PRESETS {
        let expected = case.expected(preset);
        for level in Level::supported() {
            let image = case.image(&case.compile(&options(preset, level)));
            let mut engine = engine(&image, 2, 1, None);
            for pieces in [&[21][..], &[1], &[3, 9]] {
                let actual = logits(&mut engine, &case.tokens, pieces);
                let what = format!("{what}, {}, {}, {pieces:?}", preset.name(), level.name());
                assert_bits(&actual, &expected, case.graph.vocab, &what);
            }
        }
    }
}

#[test]
fn matrices_in_blocks_give_the_interpreters_bits_on_every_level() {
    for format in WeightFormat::blocked() {
        check_on_every_level(&dense(format), format.name());
    }
}

#[test]
fn inputs_of_two_terms_give_the_interpreters_bits_on_every_level() {
    for format in WeightFormat::blocked() {
        let shape = ModelShape { inputs: (Activations::Q8x2, 1), ..dense(format) };
        check_on_every_level(&shape, &format!("inputs of two terms, {}", format.name()));
    }
}

#[test]
fn experts_in_blocks_give_the_interpreters_bits_on_every_level() {
    for format in WeightFormat::blocked() {
        check_on_every_level(&experts(format), &format!("experts in {}", format.name()));
    }
}

/// Files mix formats: a matrix of one stands beside another's in one kernel.
#[test]
fn formats_side_by_side_give_the_interpreters_bits() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let formats: Vec<WeightFormat> = WeightFormat::blocked().collect();
    for (at, format) in formats.iter().enumerate() {
        let mut case = Case::new(&dense(*format), 2, 1);
        let other = formats[(at + 1) % formats.len()];
        for name in ["layers.0.v.weight", "layers.0.up.weight"] {
            case.graph.tensors.iter_mut().filter(|tensor| tensor.name == name).for_each(|tensor| {
                (tensor.stored, tensor.format) = (other, other);
            });
        }
        let case = Case::of(case.graph, 2, 19);
        for preset in PRESETS {
            let image = case.image(&case.compile(&options(preset, level)));
            let mut engine = engine(&image, 2, 1, None);
            for pieces in [&[19][..], &[1, 2, 16]] {
                let actual = logits(&mut engine, &case.tokens, pieces);
                let what = format!("{} beside {}, {}", other.name(), format.name(), preset.name());
                assert_bits(&actual, &case.expected(preset), case.graph.vocab, &what);
            }
        }
    }
}

#[test]
fn every_candidate_for_blocks_gives_the_interpreters_bits() {
    for format in [
        WeightFormat::Q2K,
        WeightFormat::Q4_1,
        WeightFormat::Q6K,
        WeightFormat::Nvfp4,
        WeightFormat::Int4Zero,
    ] {
        let case = Case::new(&experts(format), 3, 40);
        let expected = case.expected(Preset::Faithful);
        for level in Level::supported() {
            for n in 0..4 {
                for (kernels, ukernels) in [(Pick::Nth(n), Pick::Cheapest), (Pick::Cheapest, Pick::Nth(n))] {
                    let options =
                        CompilerOptions { kernels, ukernels, chunk: 40, ..options(Preset::Faithful, level) };
                    let image = case.image(&case.compile(&options));
                    let actual = logits(&mut engine(&image, 2, 1, None), &case.tokens, &[40]);
                    let what = format!("{}, {}, {kernels:?}, {ukernels:?}", format.name(), level.name());
                    assert_bits(&actual, &expected, case.graph.vocab, &what);
                }
            }
        }
    }
}

#[test]
fn adapters_beside_blocks_give_the_interpreters_bits() {
    let levels = Level::supported();
    for (at, format) in WeightFormat::blocked().enumerate() {
        for (shape, what) in [(dense(format), "dense"), (experts(format), "experts")] {
            let case = Case::new(&shape, 4, 11);
            let options = options(PRESETS[at % 2], levels[at / 2 % levels.len()]);
            adapters::check(
                &case,
                &options,
                &[2],
                &[&[11], &[1, 4]],
                &format!("{what} in {}", format.name()),
            );
        }
    }
}

/// Either end of the memory against a page that faults.
#[test]
fn products_of_blocks_stay_inside_their_operands() {
    let levels = Level::supported();
    for (at, format) in WeightFormat::blocked().enumerate() {
        for (shape, what) in [(dense(format), "dense"), (experts(format), "experts")] {
            let case = Case::new(&shape, 5, 40);
            let (preset, level) = (PRESETS[at % 2], levels[at % levels.len()]);
            let expected = case.expected(preset);
            for flush in [Flush::End, Flush::Start] {
                let compiled = case.compile(&options(preset, level));
                let trial = Trial { graph: &case.graph, weights: &case.weights, tokens: &case.tokens };
                let config = GuardedConfig { context: 48, sequences: 2, workers: 2, flush };
                let actual = trial.guarded(&compiled, None, &[1, 5, 25, 2], config).unwrap();
                let what = format!("{what} in {}, {}, {flush:?}", format.name(), level.name());
                assert_bits(&actual, &expected, case.graph.vocab, &what);
            }
        }
    }
}

#[test]
fn tied_embeddings_in_blocks_are_packed_once() {
    let of = |shape: &ModelShape| {
        let case = Case::new(shape, 1, 1);
        let compiled = case.compile(&options(Preset::Faithful, Level::V3));
        let (graph, layout) = (&compiled.fused.graph, &compiled.layout);
        let table = graph.nodes.iter().find(|node| node.op.is_embed()).expect("there is one").tensors[0];
        let unembed =
            graph.nodes.iter().find(|node| node.output == graph.output).expect("there is one").tensors[0];
        (layout.placement(table), layout.placement(unembed), layout.bytes)
    };
    let tied = dense(WeightFormat::Q6K);
    let (table, unembed, bytes) = of(&tied);
    assert_eq!(table, unembed);
    let (table, unembed, apart) = of(&ModelShape { tied: false, ..tied.clone() });
    assert_ne!(table.offset, unembed.offset);
    assert_eq!(apart - bytes, unembed.bytes);
    // A table without blocks has rows of its own.
    let (table, unembed, _) = of(&ModelShape { table: WeightFormat::Bf16, ..tied });
    assert_ne!(table.offset, unembed.offset);
}
