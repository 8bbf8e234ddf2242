//! Answers on their way to a file.

use super::line::BatchLine;
use crate::error::{Error, Result};
use crate::serve::{Answer, EndReason, Finish};
use kernmill_runtime::StopReason;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file of answers. Every line is written whole, and reaches the system before the next.
#[derive(Debug)]
pub struct Answers {
    /// `None` until the first answer of a file that is not there.
    file: Option<File>,
    path: PathBuf,
    /// Names of the requests that have answers.
    done: BTreeSet<String>,
    /// Tokens of those answers that were there at the start and are turns of sessions.
    turns: BTreeMap<String, Vec<u32>>,
}

impl Answers {
    /// Opens a file of answers. Answers that are there stay, and a line that is not whole, since the program
    /// was killed in it, is cut off. A file that is not there is made with the first answer.
    ///
    /// # Errors
    /// When the file cannot be opened, read or cut, or holds lines that are no answers.
    pub fn open(path: &Path) -> Result<Answers> {
        let mut answers =
            Answers { file: None, path: path.to_owned(), done: BTreeSet::new(), turns: BTreeMap::new() };
        let file = match OpenOptions::new().read(true).append(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(answers),
            Err(error) => return Err(Error::write(path)(error)),
        };
        let mut reader = BufReader::new(&file);
        let (mut number, mut whole) = (0, 0);
        loop {
            let mut line = Vec::new();
            let count = reader.read_until(b'\n', &mut line).map_err(Error::read(path))?;
            if count == 0 || line.last() != Some(&b'\n') {
                break;
            }
            number += 1;
            let value: Option<Value> = serde_json::from_slice(&line).ok();
            let id = value.as_ref().and_then(|value| value["custom_id"].as_str());
            let Some(id) = id else {
                let what =
                    format!("line {number} is no answer of a batch: give another file for the answers");
                return Err(Error::input(path, what));
            };
            let body = value.as_ref().map(|value| &value["response"]["body"]);
            if let Some(body) = body.filter(|body| body["session"].is_string()) {
                let tokens = Vec::deserialize(&body["choices"][0]["token_ids"]);
                answers.turns.extend(tokens.ok().map(|tokens| (id.to_owned(), tokens)));
            }
            answers.done.insert(id.to_owned());
            whole += count as u64;
        }
        drop(reader);
        file.set_len(whole).map_err(Error::write(path))?;
        answers.file = Some(file);
        Ok(answers)
    }

    /// Whether a request has an answer.
    pub fn has(&self, custom_id: &str) -> bool {
        self.done.contains(custom_id)
    }

    /// Tokens of an answer that was there at the start, if it is a turn of a session.
    pub(super) fn turn(&self, custom_id: &str) -> Option<&[u32]> {
        self.turns.get(custom_id).map(Vec::as_slice)
    }

    /// Requests that have answers.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Whether there is no answer yet.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// Adds an answer. A file that cannot take it, as on a full disk, stays without half of it.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn write(&mut self, answer: &Value) -> Result<()> {
        let path = &self.path;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let made = OpenOptions::new().append(true).create_new(true).open(path);
                none.insert(made.map_err(Error::write(path))?)
            }
        };
        let before = file.metadata().map_err(Error::write(path))?.len();
        if let Err(error) = file.write_all(format!("{answer}\n").as_bytes()) {
            // What was written of the line goes; if it does not, the next start cuts it off.
            let _ = file.set_len(before);
            return Err(Error::write(path)(error));
        }
        if let Some(id) = answer["custom_id"].as_str() {
            self.done.insert(id.to_owned());
        }
        Ok(())
    }
}

/// A line of the output for a text: OpenAI's form of a batch's answers.
pub fn answer_line(line: &BatchLine, answer: &Answer) -> Value {
    let finish_reason = match &answer.finish {
        Finish::Stop(StopReason::MaxTokens | StopReason::Context) | Finish::Ended(_) => "length",
        _ => "stop",
    };
    let ended = match &answer.finish {
        Finish::Ended(reason) if *reason != EndReason::MaxTokens => Some(reason.to_string()),
        _ => None,
    };
    let id = &line.custom_id;
    let mut body = json!({
        "id": format!("cmpl-{id}"),
        "object": "text_completion",
        "model": line.model(),
        "choices": [{
            "index": 0,
            "text": answer.text,
            "token_ids": answer.tokens,
            "finish_reason": finish_reason,
            "ended": ended,
        }],
        "usage": {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.tokens.len(),
            "total_tokens": answer.prompt_tokens as usize + answer.tokens.len(),
            "prompt_tokens_details": {
                "cached_tokens": answer.cached_tokens,
                "disk_tokens": answer.disk_tokens,
            },
        },
    });
    if let Some(session) = line.session() {
        body["session"] = session.into();
    }
    body_line(id, body)
}

/// A line of the output for the body of an answer.
pub(super) fn body_line(custom_id: &str, body: Value) -> Value {
    json!({
        "id": format!("batch_req-{custom_id}"),
        "custom_id": custom_id,
        "response": { "status_code": 200, "request_id": custom_id, "body": body },
        "error": null,
    })
}

/// A line of the output for a request that could not be served.
pub fn error_line(custom_id: &str, message: &str) -> Value {
    json!({
        "id": format!("batch_req-{custom_id}"),
        "custom_id": custom_id,
        "response": null,
        "error": { "code": "invalid_request", "message": message },
    })
}
