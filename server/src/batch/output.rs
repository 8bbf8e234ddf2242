//! Answers on their way to a file.

use crate::lines::LONGEST_LINE;
use kernmill::{Error, Result};
use kernmill_os::files::is_same_file;
use kernmill_os::output::GoneOnWith;
use serde_json::{Value, from_value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// How the `id` of an answer begins; the name of its request follows.
const ID: &str = "batch_req-";

/// The file of answers. Every line is written whole, and reaches the system before the next.
#[derive(Debug)]
pub struct Answers {
    place: GoneOnWith,
    path: PathBuf,
    /// Names of the requests that have answers.
    done: BTreeSet<String>,
    /// Tokens of those answers that were there at the start and are turns of sessions.
    turns: BTreeMap<String, Vec<u32>>,
}

impl Answers {
    /// Goes on with a file of answers. Answers that are there stay, and a line that is not whole, since the
    /// program was killed in it, is cut off. A file that is not there is made with the first answer. Messages
    /// call the place `path`; `requests` is where the requests come from, and `-` is standard input.
    ///
    /// # Errors
    /// When the file cannot be read or cut, holds anything but answers, is the one of the requests, or is
    /// written by another process. It stays as it is then.
    pub fn open(place: GoneOnWith, path: &Path, requests: &Path) -> Result<Answers> {
        let (done, turns) = (BTreeSet::new(), BTreeMap::new());
        let mut answers =
            Answers { place: GoneOnWith::Nothing(path.to_owned()), path: path.to_owned(), done, turns };
        match &place {
            GoneOnWith::Nothing(_) => {}
            GoneOnWith::Stream(stream) => answers.check_apart(stream.file(), requests)?,
            GoneOnWith::File(file) => {
                answers.check_apart(file, requests)?;
                answers.lock(file)?;
                let whole = answers.read(file)?;
                if file.metadata().map_err(Error::read(path))?.len() > whole {
                    file.set_len(whole).map_err(Error::write(path))?;
                }
            }
        }
        answers.place = place;
        Ok(answers)
    }

    /// Answers behind the requests would be read as requests.
    fn check_apart(&self, file: &File, requests: &Path) -> Result<()> {
        let given = match requests == Path::new("-") {
            true => stdin().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata()),
            false => std::fs::metadata(requests),
        };
        match (given, file.metadata()) {
            (Ok(given), Ok(own)) if own.is_file() && is_same_file(&given, &own) => {
                Err(self.refused("it has the requests"))
            }
            _ => Ok(()),
        }
    }

    /// Keeps other processes that write answers away, where the file system has locks.
    fn lock(&self, file: &File) -> Result<()> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(self.refused("another process writes to it")),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        }
    }

    fn refused(&self, what: &str) -> Error {
        Error::input(&self.path, format!("{what}: give another file for the answers"))
    }

    /// Reads the answers that are there; how many bytes they have. Behind them may be a part of one more.
    fn read(&mut self, file: &File) -> Result<u64> {
        let mut reader = BufReader::new(file);
        let (mut number, mut whole) = (0, 0);
        loop {
            let mut line = Vec::new();
            let mut limited = Read::take(&mut reader, LONGEST_LINE);
            limited.read_until(b'\n', &mut line).map_err(Error::read(&self.path))?;
            number += 1;
            if line.last() != Some(&b'\n') {
                if line.len() as u64 == LONGEST_LINE {
                    return Err(self.refused(&format!("line {number} is longer than {LONGEST_LINE} bytes")));
                }
                // Some file systems keep the length of what a power cut lost, and fill it with zeros.
                let bytes = line.len() - line.iter().rev().take_while(|byte| **byte == 0).count();
                let is_zeros = number == 1 && bytes == 0 && !line.is_empty();
                return match is_unfinished(&line[..bytes]) && !is_zeros {
                    true => Ok(whole),
                    false => Err(self.refused(&format!("line {number} is no answer of a batch"))),
                };
            }
            let value: Option<Value> = serde_json::from_slice(&line).ok();
            let Some((id, body)) = value.as_ref().and_then(answered) else {
                return Err(self.refused(&format!("line {number} is no answer of a batch")));
            };
            if body["session"].is_string() {
                let tokens = from_value(body["choices"][0]["token_ids"].clone());
                self.turns.extend(tokens.ok().map(|tokens| (id.to_owned(), tokens)));
            }
            self.done.insert(id.to_owned());
            whole += line.len() as u64;
        }
    }

    /// Whether a request has an answer.
    pub fn has(&self, custom_id: &str) -> bool {
        self.done.contains(custom_id)
    }

    /// Tokens of an answer that was there at the start, if it is a turn of a session.
    pub fn turn(&self, custom_id: &str) -> Option<&[u32]> {
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
        if let GoneOnWith::Nothing(new) = &self.place {
            let made = OpenOptions::new().append(true).create_new(true).open(new);
            let made = made.map_err(Error::write(path))?;
            self.lock(&made)?;
            self.place = GoneOnWith::File(made);
        }
        let line = format!("{answer}\n");
        match &self.place {
            GoneOnWith::File(file) => {
                let before = file.metadata().map_err(Error::write(path))?.len();
                if let Err(error) = (&*file).write_all(line.as_bytes()) {
                    // The part of the line that was written goes; if it does not, the next start cuts it off.
                    let _ = file.set_len(before);
                    return Err(Error::write(path)(error));
                }
            }
            GoneOnWith::Stream(stream) => {
                stream.file().write_all(line.as_bytes()).map_err(Error::write(path))?;
            }
            GoneOnWith::Nothing(_) => {}
        }
        if let Some(id) = answer["custom_id"].as_str() {
            self.done.insert(id.to_owned());
        }
        Ok(())
    }
}

/// The name of a request and the body of its answer, if a line is an answer.
fn answered(line: &Value) -> Option<(&str, &Value)> {
    let id = line["custom_id"].as_str()?;
    let is_answer = line["id"].as_str()?.strip_prefix(ID) == Some(id);
    line.get("error").filter(|_| is_answer)?;
    line.get("response").map(|response| (id, &response["body"]))
}

/// Whether a text without an end of line may be the first part of an answer, whose members come in the order
/// of the alphabet or in that of [`body_line`]. A request has none of the two beginnings.
fn is_unfinished(text: &[u8]) -> bool {
    let begins = |text: &[u8], with: &str| {
        let bytes = text.len().min(with.len());
        text[..bytes] == with.as_bytes()[..bytes]
    };
    let name = r#"{"custom_id":""#;
    if !begins(text, name) {
        return begins(text, &format!(r#"{{"id":"{ID}"#));
    }
    let mut rest = text.get(name.len()..).unwrap_or_default();
    while let [first, behind @ ..] = rest {
        match first {
            b'"' => return begins(behind, r#","error":"#),
            b'\\' => rest = behind.get(1..).unwrap_or_default(),
            _ => rest = behind,
        }
    }
    true
}

/// A line of the output for the body of an answer: OpenAI's form of a batch's answers.
pub fn body_line(custom_id: &str, body: Value) -> Value {
    json!({
        "id": format!("{ID}{custom_id}"),
        "custom_id": custom_id,
        "response": { "status_code": 200, "request_id": custom_id, "body": body },
        "error": null,
    })
}

/// A line of the output for a request that could not be served.
pub fn error_line(custom_id: &str, message: &str) -> Value {
    json!({
        "id": format!("{ID}{custom_id}"),
        "custom_id": custom_id,
        "response": null,
        "error": { "code": "invalid_request", "message": message },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_of_an_answer_is_one_and_no_request_is() {
        for id in ["a", "\"quoted\\", "λ,\"error\":"] {
            let line = error_line(id, "no such adapter");
            assert_eq!(answered(&line), Some((id, &Value::Null)));
            let text = line.to_string();
            assert!((0..=text.len()).all(|bytes| is_unfinished(&text.as_bytes()[..bytes])), "{text}");
            // The other order of members.
            let text = format!("{{\"custom_id\":{},\"error\":null,", json!(id));
            assert!((0..=text.len()).all(|bytes| is_unfinished(&text.as_bytes()[..bytes])), "{text}");
            for request in [
                format!("{{\"custom_id\":{},\"method\":\"POST\"", json!(id)),
                format!("{{\"id\":{},\"prompt\":\"x\"", json!(id)),
            ] {
                assert!(!is_unfinished(request.as_bytes()), "{request}");
            }
        }
        for other in ["my only copy", "{\"settings\": [1]}", "[", "\0", "\u{feff}", " {", "{ \"id\""] {
            assert!(!is_unfinished(other.as_bytes()), "{other}");
        }
    }
}
