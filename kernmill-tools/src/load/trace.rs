//! Loads from a file: a request on every line, as JSON.

use super::conversation::{ConversationRequest, LoadConversation};
use fastrand::Rng;
use kernmill::{Error, Result};
use kernmill_server::lines::Lines;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

/// The requests of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadTrace {
    /// The conversations, in the order of their first turns.
    pub conversations: Vec<LoadConversation>,
    /// Name of the file.
    pub name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceLine {
    #[serde(default)]
    at: f64,
    prompt: TracePrompt,
    answer: u32,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    adapter: Option<String>,
    #[serde(default)]
    tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TracePrompt {
    Length(u32),
    Ids(Vec<u32>),
}

/// Tokens of a prompt at most, so that a slip in a number is told and not run.
const MOST_TOKENS: usize = 1 << 24;

impl LoadTrace {
    /// Reads the first `most` requests of a trace for a model of `vocab` tokens. Where the trace has
    /// the length of a prompt alone, its ids are random.
    ///
    /// # Errors
    /// When the file cannot be read or is empty, or a line is no request.
    pub fn read(input: &mut dyn BufRead, name: &Path, vocab: u32, most: usize) -> Result<LoadTrace> {
        let mut lines = Lines::new(input, name);
        let mut conversations: Vec<LoadConversation> = Vec::new();
        let (mut sessions, mut tenants) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..most {
            let Some((number, line)) = lines.read()? else { break };
            let wrong = |what: String| Error::input(name, format!("line {number}: {what}"));
            let line: TraceLine = serde_json::from_slice(&line).map_err(|error| wrong(error.to_string()))?;
            let at = Duration::try_from_secs_f64(line.at);
            let at = at.map_err(|_| wrong(format!("`at` is {}, expected seconds from 0", line.at)))?;
            let new = match line.prompt {
                TracePrompt::Ids(ids) => ids,
                TracePrompt::Length(length) if length as usize > MOST_TOKENS => {
                    return Err(wrong(format!(
                        "`prompt` is {length}, expected at most {MOST_TOKENS} tokens"
                    )));
                }
                TracePrompt::Length(length) => {
                    let mut random = Rng::with_seed(number as u64);
                    (0..length).map(|_| random.u32(0..vocab)).collect()
                }
            };
            if new.is_empty() || line.answer == 0 {
                return Err(wrong("`prompt` and `answer`: expected at least one token of each".to_owned()));
            }
            if let Some(id) = new.iter().find(|id| **id >= vocab) {
                return Err(wrong(format!("`prompt` has the id {id}, expected less than {vocab}")));
            }
            let turn = ConversationRequest { at, pause: Duration::ZERO, new, answer: line.answer };
            let others = tenants.len() as u64 + 1;
            let tenant = *tenants.entry(line.tenant.unwrap_or_default()).or_insert(others);
            let next = conversations.len();
            let place = line.session.map_or(next, |session| *sessions.entry(session).or_insert(next));
            match conversations.get_mut(place) {
                Some(conversation) => {
                    if (conversation.tenant, &conversation.adapter) != (tenant, &line.adapter) {
                        return Err(wrong("a session has one `tenant` and one `adapter`".to_owned()));
                    }
                    conversation.turns.push(turn);
                }
                None => {
                    conversations.push(LoadConversation { tenant, adapter: line.adapter, turns: vec![turn] })
                }
            }
        }
        if conversations.is_empty() {
            return Err(Error::input(name, "is empty, expected a request on every line"));
        }
        let file = name.file_name().unwrap_or(name.as_os_str());
        Ok(LoadTrace { conversations, name: file.to_string_lossy().into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LoadTrace> {
        LoadTrace::read(&mut text.as_bytes(), Path::new("dir/a.jsonl"), 100, 3)
    }

    #[test]
    fn lines_of_a_session_are_one_conversation() {
        let trace = read(concat!(
            "{\"at\": 0.5, \"prompt\": 20, \"answer\": 4, \"session\": \"x\", \"tenant\": \"me\"}\n\n",
            "{\"prompt\": [1, 2, 3], \"answer\": 9, \"adapter\": \"poet\"}\n",
            "{\"at\": 2, \"prompt\": [7], \"answer\": 5, \"session\": \"x\", \"tenant\": \"me\"}\nonly three are read",
        ))
        .unwrap();
        assert_eq!(trace.name, "a.jsonl");
        let [x, other] = &trace.conversations[..] else { panic!("{trace:?}") };
        assert_eq!((x.tenant, x.turns.len(), x.tokens()), (1, 2, 30));
        assert_eq!((other.tenant, other.adapter.as_deref()), (2, Some("poet")));
        assert_eq!((x.turns[0].at, x.turns[1].at), (Duration::from_millis(500), Duration::from_secs(2)));
        assert!(x.turns[0].new.iter().all(|id| *id < 100));
        assert_eq!((&x.turns[1].new, x.turns[1].answer), (&vec![7], 5));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, says) in [
            ("", "dir/a.jsonl: is empty"),
            ("{", "line 1: EOF"),
            ("\n{\"prompt\": 3}", "line 2: missing field `answer`"),
            ("{\"prompt\": 3, \"answer\": 1, \"seesion\": \"\"}", "unknown field `seesion`"),
            ("{\"prompt\": 0, \"answer\": 1}", "at least one token"),
            ("{\"prompt\": 3000000000, \"answer\": 1}", "expected at most"),
            ("{\"prompt\": [100], \"answer\": 1}", "expected less than 100"),
            ("{\"at\": -1, \"prompt\": 1, \"answer\": 1}", "expected seconds from 0"),
            (
                "{\"prompt\": 1, \"answer\": 1, \"session\": \"x\"}\n{\"prompt\": 1, \"answer\": 1, \
                 \"session\": \"x\", \"adapter\": \"a\"}",
                "line 2: a session has one",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
