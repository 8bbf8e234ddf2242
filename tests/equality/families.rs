//! Models whose layers differ and whose checkpoints hold tensors in pieces: from random checkpoints on, compiled
//! plans give the interpreter's logits bit for bit.

use super::{Case, PRESETS, assert_bits, engine, logits, mixed, options};
use crate::harness::{Model, image_of};
use fastrand::Rng;
use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_compiler::synth;
use kernmill_compiler::testing::RandomWeights;
use kernmill_plan::target::Level;
use tempfile::TempDir;

/// A dense layer before mixtures; attention with and without a window, of different heads, and with a rope
/// each or none; q, k and v, q and its gate, gate and up in one tensor each; experts that have tensors of
/// their own.
const MIXED: &str = include_str!("mixed.toml");

/// Synthesises a checkpoint for the spec, and compares kernels with the interpreter in every preset.
pub fn same_bits(spec: &str) {
    let graph = lower(&Spec::parse("spec.toml", spec).unwrap()).unwrap();
    graph.verify().unwrap();
    let dir = TempDir::new().unwrap();
    synth::write(&graph, ("spec.toml", spec), dir.path(), 3, &|_, _| {}).unwrap();
    let model = Model::of(spec, Checkpoint::open(dir.path()).unwrap());
    let mut rng = Rng::with_seed(7);
    let tokens = (0..45).map(|_| rng.u32(0..graph.vocab as u32)).collect();
    let (weights, choices) = (RandomWeights { raw: model.raw() }, mixed(&graph));
    let case = Case { graph, weights, tokens, choices };
    for preset in PRESETS {
        let expected = case.expected(preset);
        for level in Level::supported() {
            for fuse in [true, false] {
                let compiled = case.compile(&CompilerOptions { fuse, ..options(preset, level) });
                let image = image_of(compiled.program.clone(), model.pack(&compiled));
                let actual = logits(&mut engine(&image, 2, 1, None), &case.tokens, &[19, 1, 7]);
                let what = format!("{}, {}, fuse {fuse}", preset.name(), level.name());
                assert_bits(&actual, &expected, case.graph.vocab, &what);
            }
        }
    }
}

#[test]
fn layers_may_differ_and_tensors_be_pieces() {
    same_bits(MIXED);
}
