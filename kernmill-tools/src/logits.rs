//! Logits as a safetensors file: "logits" `[tokens, vocabulary]` f32.

use crate::vectors::need_logits;
use kernmill::Result;
use kernmill_runtime::{AdapterUse, Engine, SequenceTokens, Steps};
use serde_json::json;
use std::io::{self, Write};

/// Writes the logits after every token of a separate sequence; the inner result is the writer's.
///
/// # Errors
/// When the engine cannot run the tokens.
pub fn write(
    engine: &mut Engine,
    adapters: &[AdapterUse],
    ids: &[u32],
    out: &mut dyn Write,
) -> Result<io::Result<()>> {
    need_logits(engine.model())?;
    let vocab = engine.model().vocab as usize;
    let mut written = out.write_all(&header(ids.len(), vocab));
    let mut row_bytes = Vec::with_capacity(vocab * 4);
    let id = engine.create_with(adapters)?;
    // Piece by piece, so that an error of the writer ends it.
    for piece in ids.chunks(engine.chunk() as usize) {
        engine.extend_in_order(&[SequenceTokens::all(id, piece)], &mut |row| {
            row_bytes.clear();
            row.logits.iter().for_each(|logit| row_bytes.extend_from_slice(&logit.to_le_bytes()));
            if written.is_ok() {
                written = out.write_all(&row_bytes);
            }
        })?;
        if written.is_err() {
            break;
        }
    }
    Ok(written)
}

/// Bytes of the file of so many tokens' logits.
pub fn bytes(tokens: usize, vocab: usize) -> u64 {
    header(tokens, vocab).len() as u64 + data_bytes(tokens, vocab)
}

fn data_bytes(tokens: usize, vocab: usize) -> u64 {
    tokens as u64 * vocab as u64 * 4
}

/// Everything before the data.
fn header(tokens: usize, vocab: usize) -> Vec<u8> {
    let entry =
        json!({ "dtype": "F32", "shape": [tokens, vocab], "data_offsets": [0, data_bytes(tokens, vocab)] });
    let mut text = json!({ "logits": entry }).to_string();
    // The data starts at a multiple of 8.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    let mut header = (text.len() as u64).to_le_bytes().to_vec();
    header.extend_from_slice(text.as_bytes());
    header
}
