//! What `kernmill run` continues.

use crate::failure::{Failure, Result};
use kernmill::Opened;
use kernmill::tokens;
use kernmill_os::files::{read_all_text, read_named_text};
use kernmill_plan::limit;
use kernmill_runtime::TokenizerHandle;
use kernmill_runtime::tokenizer::TokenizerError;
use std::fs::File;
use std::io::{IsTerminal, Stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What to continue.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct PromptArgs {
    /// Text to continue. Without this and the next two, what is piped to standard input, without its last
    /// line end
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
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
    /// Tokens of the prompt.
    pub ids: Vec<u32>,
    /// The part of the prompt that is printed before the text.
    pub shown: String,
}

impl PromptArgs {
    /// Reads and encodes it behind the tokens of a session, for a context of at most `context` tokens.
    pub fn read(
        &self,
        model: &Opened,
        tokenizer: Option<&TokenizerHandle>,
        known: &[u32],
        context: u32,
    ) -> Result<Prompt> {
        let behind = |ids: Vec<u32>| [known, &ids].concat();
        if let Some(path) = &self.tokens {
            return Ok(Prompt { ids: behind(tokens::read(path, model.vocab())?), shown: String::new() });
        }
        let given = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) => Some(text.clone()),
            (_, Some(path)) => Some(read_text(path)?),
            (None, None) => piped()?,
        };
        let shown = given.is_none();
        let text = match (given, model.example()) {
            (Some(text), _) => text,
            (None, _) if !known.is_empty() => {
                return Ok(Prompt { ids: known.to_vec(), shown: String::new() });
            }
            (None, Some(example)) => example.to_owned(),
            (None, None) => {
                let what =
                    "what to continue is missing: give --prompt, --prompt-file or --tokens, or pipe it in";
                return Err(Failure::BadInput(what.to_owned()));
            }
        };
        let Some(tokenizer) = tokenizer else {
            let what =
                "there is no tokenizer.json beside the weights: give token ids with --tokens instead of text";
            return Err(Failure::BadInput(what.to_owned()));
        };
        let ids = tokenizer.get()?.encode_within(&text, known.is_empty(), context as usize);
        let ids = ids.map_err(|error| match error {
            TokenizerError::TooLong { .. } => {
                let help = tokens::what_helps(context, model.longest_context());
                Failure::BadInput(format!("{error}; the context holds {context}{help}"))
            }
            other => other.into(),
        })?;
        Ok(Prompt { ids: behind(ids), shown: if shown { text } else { String::new() } })
    }

    /// Whether it is given as token ids, so that nothing needs a tokenizer.
    pub fn is_ids(&self) -> bool {
        self.tokens.is_some()
    }
}

fn read_text(path: &Path) -> Result<String> {
    let most = limit::PROMPT_BYTES as u64;
    if path != Path::new("-") {
        return read_named_text(path, most).map_err(Failure::read(path));
    }
    read_stdin(std::io::stdin())
}

fn read_stdin(stdin: Stdin) -> Result<String> {
    read_all_text(stdin, limit::PROMPT_BYTES as u64)
        .map_err(|error| Failure::BadInput(format!("standard input: {error}")))
}

/// What a pipe or a file brings on standard input; nothing when that is a terminal or a device such as
/// /dev/null, or empty. A last line end is left out: `echo` adds one that nobody means.
fn piped() -> Result<Option<String>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() || !brings_text(&stdin) {
        return Ok(None);
    }
    let mut text = read_stdin(stdin)?;
    if text.ends_with('\n') {
        text.pop();
        text.truncate(text.trim_end_matches('\r').len());
    }
    Ok((!text.is_empty()).then_some(text))
}

/// Whether standard input is a pipe or a file. Of others it is not known whether they ever end.
fn brings_text(stdin: &Stdin) -> bool {
    let kind = stdin.as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    kind.is_ok_and(|metadata| metadata.is_file() || metadata.file_type().is_fifo())
}
