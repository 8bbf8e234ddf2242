//! Checkpoints: safetensors and GGUF files. Tensors' data is mostly zeros that the target adds, so that
//! inputs stay small.

use super::sound::sound_graph;
use super::text::{assert_legal, spec};
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::graph::{Graph, Role};
use kernmill_compiler::import::from_gguf;
use kernmill_compiler::spec::{Spec, lower};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource};
use kernmill_runtime::Tokenizer;
use serde_json::Value;
use std::sync::OnceLock;

/// Zeros that the target adds at most.
const MAX_ZEROS: usize = 128 << 10;

/// A safetensors file, or its header, behind which the data is put. If it is one of the sound model, its
/// weights are read.
pub fn safetensors(data: &[u8]) {
    reads_safetensors(data);
}

/// A GGUF file, with zeros behind it.
pub fn gguf(data: &[u8]) {
    reads_gguf(data);
}

/// Whether weights were read.
pub fn reads_safetensors(data: &[u8]) -> bool {
    static GRAPH: OnceLock<Graph> = OnceLock::new();
    let file = with_data(data);
    let Ok(checkpoint) = Checkpoint::from_bytes("fuzz.safetensors", file.clone()) else { return false };
    assert_covered(&checkpoint, &file, true);
    reads_weights(GRAPH.get_or_init(sound_graph), &checkpoint)
}

/// Whether weights were read.
pub fn reads_gguf(data: &[u8]) -> bool {
    let file = [data, &vec![0; MAX_ZEROS]].concat();
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
            if tensor.stored.is_stored() {
                weights.mxfp4_rows(tensor, expert, rows, &mut blocks, &mut scales).expect("it is bound");
                assert_eq!((blocks.len(), scales.len()), (k / 2, k / 32));
            }
        }
    }
    true
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
        file.resize(file.len() + (zeros as usize).min(MAX_ZEROS), 0);
    }
    file
}
