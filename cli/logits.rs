//! `kernmill logits`: the logits after every token of a sequence, as a safetensors file.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::{output, tokens};
use kernmill::adapters::together;
use kernmill_runtime::Want;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Writes the logits after every token of a sequence: "logits" [tokens, vocabulary] f32
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kernmill logits --tokens ids.json --out logits.safetensors                      the embedded nano model
  kernmill logits DIR --preset exact --tokens ids.json --out logits.safetensors
  kernmill logits my.plan --tokens ids.json --out logits.safetensors                               a compiled plan
  kernmill logits my.plan --lora poet=adapters/poet --tokens ids.json --out logits.safetensors     with an adapter
  kernmill logits --tokens ids.json --out logits.safetensors --chunk 7 --threads 1 --no-fuse
  kernmill logits --tokens ids.json --out -                                                        to standard output

Within a preset the bits do not depend on --chunk, --threads, --target or --no-fuse.")]
pub struct Logits {
    /// File with the token ids: a JSON list
    #[arg(long, value_name = "IDS.json")]
    tokens: PathBuf,
    /// File to write (safetensors); - is standard output
    #[arg(long, value_name = "LOGITS.safetensors")]
    out: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    emit: Emit,
}

impl Logits {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        self.emit.check(None)?;
        if output::is_stdout(&self.out) && !self.emit.emit.is_empty() && self.emit.emit_dir.is_none() {
            let what = "--emit: standard output takes the logits (--out); give --emit-dir DIR too";
            return Err(Failure::BadInput(what.to_owned()));
        }
        let (model, options) = model::open(&self.model, &self.emit, explicit)?;
        let vocab = model.vocab();
        let ids = tokens::read(&self.tokens, vocab)?;
        tokens::check_length(ids.len(), model.longest_context(), model.longest_context())?;
        let header = header(ids.len(), vocab);
        output::check_space(&self.out, header.len() as u64 + bytes(ids.len(), vocab))?;
        let file = output::create(&self.out)?;
        let mut loaded = model::load(model, &options, &self.model, &self.emit, ids.len() as u32, 1)?;
        loaded.load_adapters(&options)?;
        let mut engine = loaded.engine;

        let mut out = BufWriter::new(file.file());
        let mut written = out.write_all(&header);
        let mut row_bytes = Vec::with_capacity(vocab * 4);
        let id = engine.create_with(&together(&options.adapters))?;
        // Piece by piece, so that an error of the disk ends it.
        for piece in ids.chunks(engine.chunk() as usize) {
            engine.step(&[(id, piece)], Want::All, &mut |_, row| {
                row_bytes.clear();
                row.iter().for_each(|logit| row_bytes.extend_from_slice(&logit.to_le_bytes()));
                if written.is_ok() {
                    written = out.write_all(&row_bytes);
                }
            })?;
            if written.is_err() {
                break;
            }
        }
        written.and_then(|()| out.flush()).map_err(Failure::write(&self.out))?;
        drop(out);
        file.finish().map_err(Failure::write(&self.out))
    }
}

fn bytes(tokens: usize, vocab: usize) -> u64 {
    tokens as u64 * vocab as u64 * 4
}

/// Everything before the data.
fn header(tokens: usize, vocab: usize) -> Vec<u8> {
    let entry =
        json!({ "dtype": "F32", "shape": [tokens, vocab], "data_offsets": [0, bytes(tokens, vocab)] });
    let mut text = json!({ "logits": entry }).to_string();
    // The data starts at a multiple of 8.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    let mut header = (text.len() as u64).to_le_bytes().to_vec();
    header.extend_from_slice(text.as_bytes());
    header
}
