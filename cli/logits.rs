//! `kernmill logits`: the logits after every token of a sequence, as a safetensors file.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::output;
use crate::prompt::PromptArgs;
use kernmill::adapters::together;
use kernmill_tools::{logits, tokens};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Writes the logits after every token of a sequence: "logits" [tokens, vocabulary] f32
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/logits.txt"))]
pub struct Logits {
    #[command(flatten)]
    prompt: PromptArgs,
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
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        self.prompt.follow(&mut self.model.given, explicit)?;
        self.emit.check(None)?;
        if output::is_stdout(&self.out) && self.emit.prints() {
            let what = "--emit: standard output takes the logits (--out); give --emit-dir DIR too";
            return Err(Failure::BadInput(what.to_owned()));
        }
        self.model.given.resolve(explicit)?.check_apart(&self.out)?;
        let (mut model, options) = model::open(&self.model, &self.emit, explicit)?;
        let vocab = model.vocab();
        let tokenizer = if self.prompt.is_ids() { None } else { model.tokenizer() };
        let ids = self.prompt.source().read(&model, tokenizer.as_ref(), &[], model.longest_context())?.ids;
        tokens::check_length(ids.len(), model.longest_context(), model.longest_context())?;
        output::check_space(&self.out, logits::bytes(ids.len(), vocab))?;
        let file = output::create(&self.out)?;
        let (loaded, _) = model::load(model, &options, &self.emit, ids.len() as u32, 1)?;
        let mut engine = loaded.engine;

        let mut out = BufWriter::new(file.file());
        let written = logits::write(&mut engine, &together(&options.adapters), &ids, &mut out)?;
        written.and_then(|()| out.flush()).map_err(Failure::write(&self.out))?;
        drop(out);
        file.finish().map_err(Failure::write(&self.out))?;
        self.model.aside.wrote(&self.out, "a tensor `logits` [tokens, vocabulary] of f32");
        Ok(())
    }
}
