//! Types of tensors: values and logits are those that the gguf package gives (`tools/gguf/fixtures.py`).

use super::random::{self, KINDS, Kind};
use super::writer::{F32, Writer};
use super::{gguf, in_f32, logits, model};
use crate::harness::{Model, read};
use kernmill_checkpoint::blocks::TensorType;
use kernmill_compiler::front::import::from_gguf;
use kernmill_compiler::ir::{Graph, GraphBuilder, Role, RowSelect, Tensor, TensorSource, whole_columns};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::weights::{CheckpointWeights, WeightSource, bind};
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
fn pieces_of_each_expert_keep_their_blocks() {
    let kinds = KINDS
        .iter()
        .filter_map(|kind| Some((kind, TensorType::from_number(kind.number).unwrap().encoding.format()?)));
    for (kind, format) in kinds {
        let cols = whole_columns(format);
        let row = cols / kind.elements * kind.bytes;
        let mut writer = Writer::default();
        writer.set("general.architecture", "other");
        let data = [5, 6].map(|seed| random::blocks(kind, seed, 24 * cols / kind.elements));
        for (expert, data) in data.iter().enumerate() {
            writer.add(&format!("e.{expert}"), &[cols as u64, 24], kind.number, data.clone());
        }
        let checkpoint = gguf(writer.bytes()).into_checkpoint().unwrap();
        // Of every 12 rows those from 4 to before 8.
        let name = "e.{expert}".to_owned();
        let rows = RowSelect::new(12, 4..8).unwrap();
        let tensor = Tensor {
            name: "up".to_owned(),
            plus: 0.0,
            role: Role::ExpertMatrix,
            shape: vec![2, 8, cols],
            stored: format,
            format,
            source: TensorSource { name, scales: None, rows, transposed: false },
        };
        let graph = GraphBuilder::new("m", 8, 8).graph().clone();
        let graph = Graph { tensors: vec![tensor.clone()], ..graph };
        let weights = CheckpointWeights::new(&graph, &checkpoint).unwrap();
        let (mut blocks, mut scales) = (vec![1], vec![1]);
        weights.stored_rows(&tensor, 1, 1..6, &mut blocks, &mut scales).unwrap();
        let rows = [5, 6, 7, 16, 17].map(|at| &data[1][at * row..(at + 1) * row]);
        assert_eq!((blocks, scales.len()), (rows.concat(), 0), "{}", kind.name);
    }
}

#[test]
fn the_table_of_types_is_that_of_the_tests() {
    assert_eq!(TensorType::all().len(), KINDS.len());
    for kind in &KINDS {
        let own = TensorType::from_number(kind.number).unwrap();
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

#[test]
fn specs_state_the_types_of_the_file() {
    for (name, writer) in models() {
        let text = from_gguf("m", &gguf(writer.bytes())).unwrap();
        let format = match name {
            "Q4_0" => "int4".to_owned(),
            "Q8_0" => "int8".to_owned(),
            "mixed" => "q4_k".to_owned(),
            other => other.to_lowercase(),
        };
        let stated = |tensor: &str, shape: &str, format: &str| {
            let line = format!("{{ from = \"{tensor}.weight\", shape = [{shape}], format = {format} }}");
            assert!(text.contains(&line), "{name}: {line} is not in:\n{text}");
        };
        stated("token_embd", "\"vocab\", \"hidden\"", &format!("\"{format}\""));
        stated("blk.{layer}.attn_q", "\"q_dim\", \"hidden\"", &format!("\"{format}\""));
        stated("blk.{layer}.attn_norm", "\"hidden\"", "\"f32\"");
        if name == "mixed" {
            stated("output", "\"vocab\", \"hidden\"", "\"q6_k\"");
            stated("blk.{layer}.attn_v", "\"kv_dim\", \"hidden\"", "[\"q6_k\", \"q4_k\"]");
            stated("blk.{layer}.ffn_gate", "\"mlp_hidden\", \"hidden\"", "[\"bf16\", \"q3_k\"]");
            stated("blk.{layer}.ffn_up", "\"mlp_hidden\", \"hidden\"", "[\"mxfp4\", \"int8\"]");
        }
    }
}

#[test]
fn blocks_of_another_type_than_the_specs_are_refused() {
    let of = |name: &str| models().into_iter().find(|(other, _)| *other == name).unwrap().1;
    let (q4_k, q6_k) = (model(&of("Q4_K")), gguf(of("Q6_K").bytes()).into_checkpoint().unwrap());
    let error = bind(&q4_k.graph, &q6_k).unwrap_err().to_string();
    let expected = "tensor `token_embd.weight` is Q6_K, expected Q4_K, or format = \"q6_k\" in the spec";
    assert!(error.contains(expected), "{error}");
    bind(&in_f32(&q4_k.graph), &q6_k).unwrap();
}

/// A file of several types, and the file of what its blocks stand for: the same logits where the input of
/// products is f32, and elsewhere logits that are nearer to those, because blocks are not rounded.
#[test]
fn types_may_differ_between_matrices_and_between_layers() {
    let tokens = read(&fixture("models.safetensors"), "tokens", u32::from_le_bytes);
    let (_, mixed) = models().pop().unwrap();
    let (mixed, mut widened) = (model(&mixed), model(&widened(&mixed)));
    // The spec of a file in blocks leaves some inputs in f32.
    widened.graph = in_f32(&mixed.graph);
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
