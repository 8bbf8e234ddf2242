//! The beginning of a text: a prompt from the command line, a file, or standard input.

use crate::tokens;
use kernmill::Opened;
use kernmill::{Error, Result};
use kernmill_os::files::{read_all_text, read_named_text};
use kernmill_plan::limit;
use kernmill_runtime::tokenizer::{TextStream, TokenizerError};
use kernmill_runtime::{Tokenizer, TokenizerHandle};
use std::fs::File;
use std::io::{IsTerminal, Stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Where a prompt comes from.
#[derive(Clone, Debug)]
pub enum PromptSource {
    /// A text.
    Text(String),
    /// A file with a text; `-` is standard input.
    File(PathBuf),
    /// A file with token ids: a JSON list.
    Ids(PathBuf),
    /// The text that is piped to standard input. If nothing is, the session's text goes on, or the model's
    /// own example is the prompt.
    Piped,
}

/// The prompt that is continued.
#[derive(Clone, Debug)]
pub struct GivenPrompt {
    /// Tokens of the prompt.
    pub ids: Vec<u32>,
    /// The part of the prompt that is printed before the text.
    pub shown: String,
}

impl PromptSource {
    /// Reads and encodes it behind the tokens of a session, for a context of at most `context` tokens.
    ///
    /// # Errors
    /// When a file or standard input cannot be read, the prompt is too long, or a tokenizer is missing.
    pub fn read(
        &self,
        model: &Opened,
        tokenizer: Option<&TokenizerHandle>,
        known: &[u32],
        context: u32,
    ) -> Result<GivenPrompt> {
        let behind = |ids: Vec<u32>| [known, &ids].concat();
        let given = match self {
            PromptSource::Ids(path) => {
                return Ok(GivenPrompt {
                    ids: behind(tokens::read(path, model.vocab())?),
                    shown: String::new(),
                });
            }
            PromptSource::Text(text) => Some(text.clone()),
            PromptSource::File(path) => Some(read_text(path)?),
            PromptSource::Piped => piped()?,
        };
        let shown = given.is_none();
        let text = match (given, model.example()) {
            (Some(text), _) => text,
            (None, _) if !known.is_empty() => {
                return Ok(GivenPrompt { ids: known.to_vec(), shown: String::new() });
            }
            (None, Some(example)) => example.to_owned(),
            (None, None) => {
                let what =
                    "what to continue is missing: give --prompt, --prompt-file or --tokens, or pipe it in";
                return Err(Error::bad_input(what.to_owned()));
            }
        };
        let Some(tokenizer) = tokenizer else {
            let what =
                "there is no tokenizer.json beside the weights: give token ids with --tokens instead of text";
            return Err(Error::bad_input(what.to_owned()));
        };
        let ids = tokenizer.get()?.encode_within(&text, known.is_empty(), context as usize);
        let ids = ids.map_err(|error| match error {
            TokenizerError::TooLong { .. } => {
                let help = tokens::what_helps(context, model.longest_context());
                Error::bad_input(format!("{error}; the context holds {context}{help}"))
            }
            other => other.into(),
        })?;
        Ok(GivenPrompt { ids: behind(ids), shown: if shown { text } else { String::new() } })
    }
}

/// Token ids as `kernmill tokens` shows them: a JSON list, or with `each` a line for each with its own text,
/// or the `text` of them all.
///
/// # Errors
/// When there is no tokenizer where one is needed, or it cannot be read.
pub fn listed(ids: &[u32], tokenizer: Option<&TokenizerHandle>, each: bool, text: bool) -> Result<String> {
    if !each && !text {
        return Ok(format!("{}\n", serde_json::json!(ids)));
    }
    let Some(tokenizer) = tokenizer else {
        return Err(Error::bad_input("there is no tokenizer.json beside the weights: ids have no text"));
    };
    let tokenizer = tokenizer.get()?;
    if each {
        let piece = |id: u32| {
            let bytes = tokenizer.token_bytes(id).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            bytes.or_else(|| tokenizer.token(id)).unwrap_or_default()
        };
        return Ok(ids.iter().map(|id| format!("{id:>8} {:?}\n", piece(*id))).collect());
    }
    let mut stream = TextStream::new().with_special();
    let mut all = String::new();
    for id in ids {
        all += &stream.push(tokenizer, *id)?;
    }
    Ok(all + &stream.finish(tokenizer)? + "\n")
}

/// Refuses stop strings that no text can have, since they have a special token in them that is not shown.
///
/// # Errors
/// When one of them is of that kind.
pub fn check_stops(stops: &[String], tokenizer: &Tokenizer) -> Result<()> {
    for stop in stops.iter().filter(|stop| tokenizer.special_token_id(stop).is_none()) {
        if let Some(special) = tokenizer.special_token_in(stop) {
            return Err(Error::bad_input(format!(
                "--stop {stop:?} has the special token {special} in it, which is not part of the text: give \
                 the token alone, or --special, which shows such tokens"
            )));
        }
    }
    Ok(())
}

fn read_text(path: &Path) -> Result<String> {
    let most = limit::PROMPT_BYTES as u64;
    if path != Path::new("-") {
        return read_named_text(path, most).map_err(Error::read(path));
    }
    read_stdin(std::io::stdin())
}

fn read_stdin(stdin: Stdin) -> Result<String> {
    read_all_text(stdin, limit::PROMPT_BYTES as u64)
        .map_err(|error| Error::bad_input(format!("standard input: {error}")))
}

/// The text of a pipe or a file on standard input; nothing when that is a terminal or a device such as
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
