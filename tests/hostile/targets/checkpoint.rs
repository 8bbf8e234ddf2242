//! Checkpoints: safetensors and GGUF files. Tensors' data is added by the target, so that inputs stay small:
//! zeros, and noise for what GGUF files have in blocks.

use super::sound::sound_graph;
use super::text::{assert_legal, spec};
use fastrand::Rng;
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::{Gguf, Imatrix};
use kernmill_compiler::front::import::from_gguf;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::ir::{Graph, Role, Tensor};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource};
use kernmill_plan::format;
use kernmill_runtime::Tokenizer;
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// Bytes that the target adds at most.
const MAX_ADDED: usize = 192 << 10;

/// A safetensors file, or its header, behind which the data is put. If it is one of the sound model, its
/// weights are read.
pub fn safetensors(data: &[u8]) {
    reads_safetensors(data);
}

/// A GGUF file, with zeros behind it, then with noise.
pub fn gguf(data: &[u8]) {
    if reads_gguf(data, &[0; MAX_ADDED]) {
        reads_gguf(data, &noise(data));
    }
}

/// An importance matrix, of either form.
pub fn imatrix(data: &[u8]) {
    reads_imatrix(data);
}

/// How many entries were read. What is read is written and read again, and adds up with itself.
pub fn reads_imatrix(data: &[u8]) -> usize {
    let mut read = match Imatrix::from_bytes("fuzz.imatrix", data.to_vec()) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return 0;
        }
    };
    let again = Imatrix::from_bytes("again", read.to_gguf()).map(|again| again.entries.len());
    let is_f32 = |number: &f64| number.abs() <= f64::from(f32::MAX);
    if read.entries.values().all(|entry| entry.sums.iter().chain(&entry.counts).all(is_f32)) {
        assert!(again.is_ok_and(|entries| entries == read.entries.len()));
    }
    for entry in read.entries.values() {
        let experts = entry.counts.len();
        let means = entry.means(experts - 1, experts, entry.sums.len() / experts);
        assert_eq!(means.is_some(), entry.counts[experts - 1] > 0.0);
    }
    let entries = read.entries.len();
    read.merge(read.clone()).expect("the same matrices");
    entries
}

/// Bytes that depend on those of the input.
fn noise(data: &[u8]) -> Vec<u8> {
    let mut rng =
        Rng::with_seed(data.iter().fold(0, |seed, byte| seed * 31 % 0xffff_fffb + u64::from(*byte)));
    let mut bytes = vec![0; MAX_ADDED];
    rng.fill(&mut bytes);
    bytes
}

/// Whether weights were read.
pub fn reads_safetensors(data: &[u8]) -> bool {
    static GRAPH: OnceLock<Graph> = OnceLock::new();
    let file = with_data(data);
    let Ok(checkpoint) = Checkpoint::from_bytes("fuzz.safetensors", file.clone()) else { return false };
    assert_covered(&checkpoint, &file, true);
    reads_quantised(data);
    reads_weights(GRAPH.get_or_init(sound_graph), &checkpoint)
}

/// Sections of a `config.json` by which tensors are several parts of quantised matrices.
const METHODS: [&str; 7] = [
    r#"{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}"#,
    r#"{"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": -1}}"#,
    r#"{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32}}"#,
    r#"{"quantization_config": {"quant_method": "compressed-tensors"}}"#,
    r#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}"#,
    r#"{"quantization": {"group_size": 32, "bits": 4}}"#,
    r#"{"quantization": {"group_size": 64, "bits": 8}}"#,
];

/// Whether quantised matrices were read, by any of the methods.
pub fn reads_quantised(data: &[u8]) -> bool {
    let file = with_data(data);
    METHODS.into_iter().fold(false, |read, config| read | reads_matrices(&file, config))
}

/// Whether the file has quantised matrices, of which the first and the last rows are read.
fn reads_matrices(file: &[u8], config: &str) -> bool {
    let Ok(checkpoint) = Checkpoint::from_bytes("fuzz.safetensors", file.to_vec()) else { return false };
    let checkpoint = match checkpoint.with_config(Path::new("config.json"), config.as_bytes()) {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.to_string().contains('\n'));
            return false;
        }
    };
    assert!(checkpoint.bytes() <= file.len() as u64);
    let mut read = false;
    for view in checkpoint.tensors().filter(|view| view.is_quantised()) {
        let &[rows, columns] = view.shape else { panic!("{} has shape {:?}", view.name, view.shape) };
        let row_bytes = view.encoding.row_bytes(view.dtype, columns).expect("rows are whole blocks");
        for row in [0, rows - 1] {
            let (mut bytes, mut elements) = (Vec::new(), Vec::new());
            view.append_row(row, row_bytes, &mut bytes);
            assert_eq!(bytes.len(), row_bytes, "{}", view.name);
            view.encoding.decode(view.dtype, &bytes, &mut elements);
            assert_eq!(elements.len(), columns, "{}", view.name);
        }
        read = true;
    }
    read
}

/// Whether weights were read, where `added` are the bytes behind the input.
pub fn reads_gguf(data: &[u8], added: &[u8]) -> bool {
    let file = [data, added].concat();
    let Ok(gguf) = Gguf::from_bytes("fuzz.gguf", file.clone()) else { return false };
    let _ = (gguf.architecture(), gguf.chat_templates());
    let text = from_gguf("fuzz", &gguf);
    let _ = (gguf.tokenizer_note(), gguf.end_tokens());
    if let Ok(Some(json)) = gguf.tokenizer_json()
        && let Ok(tokenizer) = Tokenizer::from_json(&json, 512)
    {
        let ids = tokenizer.encode("a ab\n", true);
        let _ = tokenizer.decode(&ids.unwrap_or_default());
    }
    let checkpoint = gguf.into_checkpoint();
    if let Ok(checkpoint) = &checkpoint {
        assert_covered(checkpoint, &file, false);
    }
    let Ok(text) = text else { return false };
    let parsed = Spec::parse("fuzz.toml", &text).unwrap_or_else(|error| panic!("{error:?} in:\n{text}"));
    match (lower(&parsed), checkpoint) {
        (Ok(graph), Ok(checkpoint)) => {
            assert_legal(&graph);
            reads_weights(&graph, &checkpoint)
        }
        _ => {
            spec(text.as_bytes());
            false
        }
    }
}

/// Every tensor's bytes are those of the file; together they are all of it, or not.
fn assert_covered(checkpoint: &Checkpoint, file: &[u8], whole: bool) {
    let bytes: usize = checkpoint.tensors().map(|tensor| tensor.data.len()).sum();
    assert_eq!(bytes as u64, checkpoint.bytes());
    let first = checkpoint.tensors().map(|tensor| tensor.offset).min().unwrap_or(file.len());
    assert!(if whole { first + bytes == file.len() } else { first + bytes <= file.len() });
    for tensor in checkpoint.tensors() {
        assert!(file[tensor.offset..][..tensor.data.len()] == *tensor.data);
    }
}

/// Reads the first and the last rows of every tensor of `graph`, if the checkpoint is bound to it.
fn reads_weights(graph: &Graph, checkpoint: &Checkpoint) -> bool {
    let weights = match CheckpointWeights::new(graph, checkpoint) {
        Ok(weights) => weights,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let (mut floats, mut blocks, mut scales) = (Vec::new(), Vec::new(), Vec::new());
    for tensor in &graph.tensors {
        let (experts, rows) = match tensor.role {
            Role::ExpertMatrix | Role::ExpertVector => (tensor.shape[0], tensor.shape[1]),
            Role::Matrix | Role::Vector | Role::Table => (1, tensor.shape[0]),
        };
        for (expert, row) in [(0, 0), (experts - 1, rows - 1), (experts / 2, rows / 2)] {
            let rows = row..row + 1;
            weights.f32_rows(tensor, expert, rows.clone(), &mut floats).expect("it is bound");
            let k = if matches!(tensor.role, Role::Vector | Role::ExpertVector) {
                1
            } else {
                *tensor.shape.last().unwrap_or(&1)
            };
            assert_eq!(floats.len(), k, "{}", tensor.name);
            if tensor.stored.is_blocked() {
                weights.stored_rows(tensor, expert, rows, &mut blocks, &mut scales).expect("it is bound");
                let expected = match tensor.source.scales {
                    Some(_) => (k / 2, k / 32),
                    None => (tensor.stored.stored_bytes(k), 0),
                };
                assert_eq!((blocks.len(), scales.len()), expected, "{}", tensor.name);
                assert_packed(tensor, k, (&blocks, &scales), &floats);
            }
        }
    }
    true
}

/// A row's blocks become a tile with the values that are read of them, or are refused, in one line.
fn assert_packed(tensor: &Tensor, k: usize, (blocks, scales): (&[u8], &[u8]), values: &[f32]) {
    let mut tile = vec![0; tensor.format.tile(k).bytes()];
    let packed = match tensor.source.scales {
        Some(_) => format::mxfp4::pack_tile(k, blocks, scales, &mut tile),
        None => format::pack_stored_tile(tensor.format, k, blocks, &mut tile),
    };
    match packed {
        Ok(()) => values.iter().enumerate().for_each(|(column, value)| {
            let of_tile = format::value(tensor.format, k, &tile, 0, column);
            assert!(of_tile.is_finite(), "{} {column}", tensor.name);
            assert_eq!(of_tile.to_bits(), value.to_bits(), "{} {column}", tensor.name);
        }),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

/// The file; if it is a header alone, with the data that it describes, in zeros.
fn with_data(data: &[u8]) -> Vec<u8> {
    let mut file = data.to_vec();
    if let Some((length, json)) = data.split_first_chunk::<8>()
        && u64::from_le_bytes(*length) == json.len() as u64
        && let Ok(Value::Object(header)) = serde_json::from_slice(json)
    {
        let end = |tensor: &Value| tensor["data_offsets"][1].as_u64().unwrap_or(0);
        let zeros = header.values().map(end).max().unwrap_or(0);
        file.resize(file.len() + (zeros as usize).min(MAX_ADDED), 0);
    }
    file
}
