//! What `kernmill run` continues.

use crate::failure::{Failure, Result};
use crate::model::Model;
use crate::tokens;
use kernmill_plan::input::{limit, read_all_text, read_named_text};
use kernmill_runtime::TokenizerHandle;
use std::path::{Path, PathBuf};

/// What to continue.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct PromptArgs {
    /// Text to continue
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// File with the text to continue; - is standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// File with token ids to continue: a JSON list
    #[arg(long, value_name = "IDS.json")]
    tokens: Option<PathBuf>,
}

/// What is continued.
pub struct Prompt {
    /// Its tokens.
    pub ids: Vec<u32>,
    /// The part of it that is printed before the text.
    pub shown: String,
}

impl PromptArgs {
    /// Reads and encodes it.
    pub fn read(&self, model: &dyn Model, tokenizer: Option<&TokenizerHandle>) -> Result<Prompt> {
        if let Some(path) = &self.tokens {
            return Ok(Prompt { ids: tokens::read(path, model.vocab())?, shown: String::new() });
        }
        let (text, shown) = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) => (text.clone(), false),
            (_, Some(path)) => (read_text(path)?, false),
            (None, None) => match model.example() {
                Some(example) => (example.prompt.to_owned(), true),
                None => {
                    let what = "what to continue is missing: give --prompt, --prompt-file or --tokens";
                    return Err(Failure::BadInput(what.to_owned()));
                }
            },
        };
        let Some(tokenizer) = tokenizer else {
            let what =
                "there is no tokenizer.json beside the weights: give token ids with --tokens instead of text";
            return Err(Failure::BadInput(what.to_owned()));
        };
        let tokenizer = tokenizer.get()?;
        let mut ids = tokenizer.encode(&text, true)?;
        if let Some(example) = model.example() {
            ids.splice(..0, tokenizer.token_id(example.start));
        }
        Ok(Prompt { ids, shown: if shown { text } else { String::new() } })
    }
}

fn read_text(path: &Path) -> Result<String> {
    let most = limit::PROMPT_BYTES as u64;
    if path != Path::new("-") {
        return read_named_text(path, most).map_err(Failure::read(path));
    }
    read_all_text(std::io::stdin(), most)
        .map_err(|error| Failure::BadInput(format!("standard input: {error}")))
}
