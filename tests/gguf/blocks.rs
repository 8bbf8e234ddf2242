//! Types of tensors: values and logits are those that the gguf package gives (`tools/gguf/fixtures.py`).

use super::random::{self, KINDS, Kind};
use super::writer::{F32, Writer};
use super::{gguf, logits, model};
use crate::harness::{Model, read};
use kernmill_checkpoint::blocks::TYPES;
use kernmill_compiler::quant::Preset;
use std::path::Path;

/// Blocks of each type.
const BLOCKS: usize = 1000;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf").join(name)).unwrap()
}

/// The elements of `kind` in `data`, through a file.
fn decoded(kind: &Kind, data: Vec<u8>) -> Vec<f32> {
    let mut writer = Writer::default();
    writer.set("general.architecture", "other");
    let elements = data.len() / kind.bytes * kind.elements;
    writer.add("t", &[elements as u64], kind.number, data);
    let checkpoint = gguf(writer.bytes()).into_checkpoint().unwrap();
    let (view, mut out) = (checkpoint.tensor("t").unwrap(), Vec::new());
    view.encoding.decode(view.dtype, view.data, &mut out);
    out
}

/// FNV-1a over the bits of `values`, a word at a time.
fn hash(values: &[f32]) -> u64 {
    let step = |state: u64, x: &f32| (state ^ u64::from(x.to_bits())).wrapping_mul(0x100_0000_01b3);
    values.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn blocks_of_every_type_have_the_values_of_the_gguf_package() {
    let file = fixture("blocks.safetensors");
    for (seed, kind) in KINDS.iter().enumerate() {
        let actual = decoded(kind, random::blocks(kind, seed as u64, BLOCKS));
        assert_eq!(actual.len(), BLOCKS * kind.elements, "{}", kind.name);
        let expected = read(&file, &format!("{}.values", kind.name), u32::from_le_bytes);
        for (at, (&expected, actual)) in expected.iter().zip(&actual).enumerate() {
            let (block, element) = (at / kind.elements, at % kind.elements);
            assert_eq!(actual.to_bits(), expected, "{}, block {block}, element {element}", kind.name);
        }
        let expected = read(&file, &format!("{}.hash", kind.name), u32::from_le_bytes);
        let expected = u64::from(expected[0]) | u64::from(expected[1]) << 32;
        assert_eq!(hash(&actual), expected, "{}: a block after those compared one by one", kind.name);
    }
}

#[test]
fn the_table_of_types_is_that_of_the_tests() {
    assert_eq!(TYPES.len(), KINDS.len());
    for kind in &KINDS {
        let own = TYPES.iter().find(|own| own.number == kind.number).unwrap();
        assert_eq!((own.name, own.elements, own.bytes), (kind.name, kind.elements, kind.bytes));
    }
}

/// Every model of the script, by its name.
fn models() -> Vec<(&'static str, Writer)> {
    let file = fixture("models.safetensors");
    let scales = |name: &str| read(&file, &format!("{name}.scales"), i32::from_le_bytes);
    let pure = KINDS
        .iter()
        .enumerate()
        .map(|(n, kind)| (kind.name, random::model(n, &|_| kind, &scales(kind.name))));
    let mixed = random::model(KINDS.len(), &|matrix| random::mixed(matrix), &scales("mixed"));
    pure.chain([("mixed", mixed)]).collect()
}

#[test]
fn a_model_of_every_type_gives_the_logits_of_the_values_in_its_file() {
    let file = fixture("models.safetensors");
    let tokens = read(&file, "tokens", u32::from_le_bytes);
    for (name, writer) in models() {
        let expected = read(&file, &format!("{name}.logits"), f32::from_le_bytes);
        let actual = logits(&model(&writer), Preset::Exact, &tokens);
        assert_eq!(actual.len(), expected.len(), "{name}");
        let differences = actual.iter().zip(&expected).map(|(&bits, e)| (f32::from_bits(bits) - e).abs());
        let largest = differences.fold(0.0, f32::max);
        assert!(largest <= 1e-4, "{name}: logits differ by {largest:e}");
    }
}

/// A file of several types, and the file of what its blocks stand for: the same logits where weights are as
/// stored, and where they are rounded to int8 logits that are nearer to those, because blocks say what their
/// elements are multiples of.
#[test]
fn types_may_differ_between_matrices_and_between_layers() {
    let tokens = read(&fixture("models.safetensors"), "tokens", u32::from_le_bytes);
    let (_, mixed) = models().pop().unwrap();
    let (mixed, mut widened) = (model(&mixed), model(&widened(&mixed)));
    // The spec of a file in blocks leaves some inputs in f32.
    widened.graph = mixed.graph.clone();
    let exact = logits(&mixed, Preset::Exact, &tokens);
    assert!(exact == logits(&widened, Preset::Exact, &tokens), "logits differ");
    for preset in [Preset::Faithful, Preset::Bf16] {
        let distance = |model: &Model| -> f64 {
            let pairs = logits(model, preset, &tokens).into_iter().zip(&exact);
            pairs.map(|(a, b)| f64::from(f32::from_bits(a) - f32::from_bits(*b)).powi(2)).sum()
        };
        let (by_blocks, by_values) = (distance(&mixed), distance(&widened));
        assert!(by_blocks < by_values, "{}: {by_blocks:e}, not below {by_values:e}", preset.name());
    }
}

/// The file of what the blocks of another stand for, in f32.
fn widened(of: &Writer) -> Writer {
    let mut widened = of.clone();
    for tensor in &mut widened.tensors {
        let kind = KINDS.iter().find(|kind| kind.number == tensor.kind).unwrap();
        let values = decoded(kind, tensor.data.clone());
        (tensor.kind, tensor.data) = (F32, values.into_iter().flat_map(f32::to_le_bytes).collect());
    }
    widened
}

/// Every element of a block is its first one plus a multiple of the step, up to what the additions of f32
/// lose.
#[test]
fn elements_of_every_type_lie_at_multiples_of_their_step() {
    for (seed, kind) in KINDS.iter().enumerate() {
        let data = random::blocks(kind, seed as u64, BLOCKS);
        let values = decoded(kind, data.clone());
        let mut writer = Writer::default();
        writer.set("general.architecture", "other");
        writer.add("t", &[values.len() as u64], kind.number, data);
        let checkpoint = gguf(writer.bytes()).into_checkpoint().unwrap();
        let (view, mut steps) = (checkpoint.tensor("t").unwrap(), Vec::new());
        let known = view.encoding.steps(view.data, &mut steps);
        assert_eq!(known, kind.elements > 1, "{}", kind.name);
        assert_eq!(steps.len(), if known { values.len() / 16 } else { 0 }, "{}", kind.name);
        for (step, elements) in steps.iter().zip(values.as_chunks::<16>().0) {
            let (step, first) = (f64::from(*step), f64::from(elements[0]));
            let amax = elements.iter().fold(0.0f32, |amax, x| amax.max(x.abs()));
            for &element in elements {
                let distance = f64::from(element) - first;
                let off = if step == 0.0 { distance } else { distance - (distance / step).round() * step };
                let lost = f64::from(amax).max(step.abs() * 255.0) * 2f64.powi(-22);
                assert!(off.abs() <= lost, "{}: {element} and {first} with a step of {step}", kind.name);
                // A step that is too small by a factor would pass the above.
                assert!(
                    distance.abs() <= 256.0 * step.abs() + lost,
                    "{}: {element}, {first}, {step}",
                    kind.name
                );
            }
        }
    }
}
