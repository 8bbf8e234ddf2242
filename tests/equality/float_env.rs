//! A host program with another floating-point environment gets the same bits, and has its environment
//! afterwards.

use super::{Case, PRESETS, assert_bits, engine, logits, options};
use crate::hostile::targets::small_model::ModelShape;
use kernmill_compiler::interp::RawTensor;
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::pipeline::Compiled;
use kernmill_plan::target::Level;
use kernmill_runtime::{Sampler, SamplerParams};
use std::arch::asm;
use std::hint::black_box;

/// MXCSR of a thread that nobody has changed.
const STANDARD: u32 = 0x1f80;
/// Flush to zero (bit 15), denormals are zeros (bit 6), rounding towards zero (bits 13 and 14).
const FLUSHING: u32 = STANDARD | 1 << 15 | 1 << 6;
const TRUNCATING: u32 = STANDARD | 0b11 << 13;
/// Bits that say what has happened.
const FLAGS: u32 = 0x3f;

fn mxcsr() -> u32 {
    let mut value = 0u32;
    // SAFETY: the instruction stores four bytes, in `value`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value
}

fn set_mxcsr(value: u32) {
    // SAFETY: the instruction loads four bytes, from `value`, which sets no reserved bit.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
}

/// The result of `work` in a thread whose environment is `value`, which it must leave as it was.
fn under<T: Send>(value: u32, work: impl FnOnce() -> T + Send) -> T {
    let in_thread = || {
        set_mxcsr(value);
        // Before the environment changes back.
        let result = black_box(work());
        let after = mxcsr();
        set_mxcsr(STANDARD);
        assert_eq!(after & !FLAGS, value, "the caller's environment has changed");
        result
    };
    std::thread::scope(|scope| scope.spawn(in_thread).join().expect("no panic"))
}

/// A model whose embeddings are subnormal numbers, or nearly.
fn tiny_numbers() -> Case {
    let mut case = Case::new(&ModelShape::mini_llama(), 3, 21);
    let embed = case.graph.tensors.iter().position(|tensor| tensor.name == "embed").expect("there is one");
    match &mut case.weights.raw[embed] {
        RawTensor::F32(values) => values.iter_mut().for_each(|value| *value *= 1e-39),
        // A bf16 has the exponent of an f32: what is left of the fraction is subnormal.
        RawTensor::Bf16(bits) => bits.iter_mut().for_each(|bits| *bits &= 0x807f),
        RawTensor::Mxfp4 { .. } | RawTensor::Stored { .. } => unreachable!("embeddings are plain"),
    }
    case
}

/// The result of kernmill for a model with a preset.
struct Found {
    /// Hash of the packed weights.
    hash: blake3::Hash,
    /// Logits of the engine.
    logits: Vec<f32>,
    /// Logits of the interpreter.
    interpreted: Vec<f32>,
    sampled: Vec<u32>,
}

fn everything(case: &Case) -> Vec<Found> {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let each = |preset| {
        let compiled: Compiled = case.compile(&options(preset, level));
        let image = case.image(&compiled);
        let hash = blake3::hash(image.weights().as_slice());
        let mut engine = engine(&image, 2, 1, None);
        let logits = logits(&mut engine, &case.tokens, &[13, 8]);
        let params = SamplerParams { temperature: 0.5, seed: Some(1), ..SamplerParams::default() };
        let mut sampler = Sampler::new(params, case.graph.vocab).expect("good parameters");
        let rows = logits.chunks(case.graph.vocab);
        let sampled = rows.zip(0..).map(|(row, n)| sampler.sample(row, n).expect("finite logits")).collect();
        Found { hash, logits, interpreted: case.expected(preset), sampled }
    };
    PRESETS.map(each).into()
}

#[test]
fn another_floating_point_environment_of_the_host_changes_no_bit() {
    let case = tiny_numbers();
    let expected = under(STANDARD, || everything(&case));
    assert!(expected.iter().any(|found| found.logits.iter().any(|x| x.is_subnormal())));
    for value in [FLUSHING, TRUNCATING] {
        let sum = || black_box(f32::MIN_POSITIVE) / black_box(3.0);
        assert_ne!(under(value, sum).to_bits(), under(STANDARD, sum).to_bits(), "{value:#x} is no other");
        let found = under(value, || everything(&case));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.hash, &found.sampled), (expected.hash, &expected.sampled));
            assert_bits(&found.logits, &expected.logits, case.graph.vocab, "engine");
            assert_bits(&found.interpreted, &expected.interpreted, case.graph.vocab, "interpreter");
        }
    }
}

/// Weights that are made of products of subnormal scales.
#[test]
fn packing_under_another_environment_gives_the_same_bytes() {
    let case = tiny_numbers();
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    for preset in PRESETS {
        let pack = || {
            let compiled = case.compile(&options(preset, level));
            let bytes = build_weights(&compiled, &case.weights.source(&case.graph), 2, &|_| {})
                .expect("sound weights");
            blake3::hash(bytes.as_slice())
        };
        let expected = under(STANDARD, pack);
        assert_eq!(under(FLUSHING, pack), expected);
        assert_eq!(under(TRUNCATING, pack), expected);
    }
}
