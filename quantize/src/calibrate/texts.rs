//! Texts to calibrate on, as windows of tokens.

use kernmill::chat::{Format, format_of};
use kernmill::compiler::SourceModel;
use kernmill::{Error, Result};
use kernmill_chat::{Conversation, Item};
use kernmill_os::files::read_named_text;
use kernmill_runtime::Tokenizer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Bytes of a file of texts at most.
const MOST_BYTES: u64 = 1 << 26;
/// Bytes of a text that are made to tokens at once, at most a line more.
const PIECE: usize = 1 << 20;
/// Tokens of a window at most.
pub(crate) const WINDOW: usize = 512;
/// Name of the text that ships with the program.
pub(crate) const DEFAULT: &str = "default";
const DEFAULT_TEXT: &str = include_str!("default.jsonl");

/// Windows of texts, and the names of the files that they are of.
pub(crate) struct CalibrationTexts {
    pub(crate) names: Vec<String>,
    pub(crate) windows: Vec<Vec<u32>>,
}

/// A document of a file.
enum Document {
    Text(String),
    Messages(Conversation),
}

impl CalibrationTexts {
    /// Reads files, and takes windows of them evenly, of about `tokens` tokens together.
    ///
    /// # Errors
    /// If a file cannot be read or has no text, or the model has no tokenizer, or refuses a conversation.
    pub(crate) fn read(files: &[PathBuf], tokens: usize, model: &SourceModel) -> Result<CalibrationTexts> {
        let json = model.tokenizer_json()?;
        let json = json.ok_or_else(|| Error::bad_input("--calibration: the model has no tokenizer"))?;
        let tokenizer = Tokenizer::from_json(&json, model.graph.vocab as u32)?;
        let start = start_token(&tokenizer)?;
        let mut format = None;
        let (mut names, mut windows) = (Vec::new(), Vec::new());
        for file in files {
            let before = windows.len();
            for (line, document) in documents(file)? {
                let ids = match document {
                    Document::Text(text) => {
                        let ids = encode(&tokenizer, &text)?;
                        cut(&ids, start, model.graph.max_context, &mut windows);
                        continue;
                    }
                    Document::Messages(conversation) => {
                        if format.is_none() {
                            let ends = model.end_tokens()?;
                            format = Some(format_of(&tokenizer, &model.chat_templates, &ends)?);
                        }
                        let format: &Format = format.as_ref().expect("it was made above");
                        let ids = format.prompt(&tokenizer, &conversation, &BTreeMap::new());
                        ids.map_err(|error| Error::input(file, format!("line {line}: {error}")))?
                    }
                };
                // A template has written the start itself.
                cut(&ids, None, model.graph.max_context, &mut windows);
            }
            if windows.len() == before {
                return Err(Error::input(file, "it has no text to calibrate on"));
            }
            let name = file.file_name().unwrap_or(file.as_os_str());
            names.push(name.to_string_lossy().into_owned());
        }
        Ok(CalibrationTexts { names, windows: evenly(windows, tokens) })
    }

    /// Tokens of all windows.
    pub(crate) fn tokens(&self) -> usize {
        self.windows.iter().map(Vec::len).sum()
    }
}

/// Documents of a file, each with the number of its line.
fn documents(file: &Path) -> Result<Vec<(usize, Document)>> {
    if file == Path::new(DEFAULT) {
        return lines(file, DEFAULT_TEXT);
    }
    let text = read_named_text(file, MOST_BYTES).map_err(Error::read(file))?;
    if file.extension() == Some(OsStr::new("jsonl")) {
        return lines(file, &text);
    }
    Ok(if text.trim().is_empty() { Vec::new() } else { vec![(1, Document::Text(text))] })
}

fn lines(file: &Path, text: &str) -> Result<Vec<(usize, Document)>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let document = |(at, line): (usize, &str)| {
        let wrong = |what: String| Error::input(file, format!("line {}: {what}", at + 1));
        let value: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        match (value.get("text").and_then(Value::as_str), value.get("messages").and_then(Value::as_array)) {
            (Some(text), _) => Ok((at + 1, Document::Text(text.to_owned()))),
            (None, Some(messages)) => {
                Ok((at + 1, Document::Messages(conversation(messages).map_err(wrong)?)))
            }
            (None, None) => {
                let what = "expected an object with a string \"text\" or a list of \"messages\"";
                Err(wrong(what.to_owned()))
            }
        }
    };
    lines.map(document).collect()
}

/// A conversation of messages, each with a role and a text.
fn conversation(messages: &[Value]) -> std::result::Result<Conversation, String> {
    let item = |message: &Value| {
        let text = |key: &str| message.get(key).and_then(Value::as_str);
        let content = text("content").ok_or("a message without a string \"content\"")?.to_owned();
        match text("role") {
            Some("system" | "developer") => Ok(Item::Instructions(content)),
            Some("user") => Ok(Item::User { name: None, text: content }),
            Some("assistant") => Ok(Item::Answer(content)),
            other => Err(format!(
                "a message whose role is {}, expected system, developer, user or assistant",
                other.map_or("missing".to_owned(), |role| format!("`{role}`"))
            )),
        }
    };
    let items = messages.iter().map(item).collect::<std::result::Result<_, String>>()?;
    Ok(Conversation { items, ..Conversation::default() })
}

/// Ids of a text, piece by piece, each of whole lines.
fn encode(tokenizer: &Tokenizer, mut text: &str) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    while !text.is_empty() {
        let from = text.floor_char_boundary(PIECE);
        let end = text[from..].find('\n').map_or(text.len(), |at| from + at + 1);
        ids.extend(tokenizer.encode(&text[..end], false)?);
        text = &text[end..];
    }
    Ok(ids)
}

/// The token that the tokenizer puts before a text, if it does.
fn start_token(tokenizer: &Tokenizer) -> Result<Option<u32>> {
    let (bare, whole) = (tokenizer.encode("a", false)?, tokenizer.encode("a", true)?);
    Ok(whole.first().copied().filter(|first| whole.len() > bare.len() && bare.first() != Some(first)))
}

/// Appends a document's windows, each behind the start token.
fn cut(ids: &[u32], start: Option<u32>, longest: usize, windows: &mut Vec<Vec<u32>>) {
    let room = (WINDOW.min(longest) - usize::from(start.is_some())).max(1);
    windows.extend(ids.chunks(room).map(|ids| start.iter().chain(ids).copied().collect()));
}

/// As many of the windows as have about `tokens` tokens, evenly from all.
fn evenly(windows: Vec<Vec<u32>>, tokens: usize) -> Vec<Vec<u32>> {
    let all: usize = windows.iter().map(Vec::len).sum();
    if all <= tokens {
        return windows;
    }
    let mut due = 0;
    let mut kept: Vec<Vec<u32>> = Vec::new();
    for window in windows {
        due += window.len() * tokens;
        if due >= all * window.len() {
            due -= all * window.len();
            kept.push(window);
        } else if kept.is_empty() {
            // There is one at least.
            kept.push(window);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_come_evenly_from_all_texts() {
        let windows: Vec<Vec<u32>> = (0..100).map(|at| vec![at; 10]).collect();
        assert_eq!(evenly(windows.clone(), 1000).len(), 100);
        let kept = evenly(windows.clone(), 250);
        assert!((24..=27).contains(&kept.len()), "{}", kept.len());
        let steps: Vec<u32> = kept[1..].windows(2).map(|pair| pair[1][0] - pair[0][0]).collect();
        assert!(steps.iter().all(|step| *step == 4), "{steps:?}");
        assert_eq!(evenly(windows, 1).len(), 1);
        let mut cuts = Vec::new();
        cut(&[7; 1030], Some(1), 8192, &mut cuts);
        assert_eq!(cuts.iter().map(Vec::len).collect::<Vec<_>>(), [512, 512, 9]);
        assert!(cuts.iter().all(|window| window[0] == 1 && window[1..].iter().all(|id| *id == 7)));
    }

    #[test]
    fn lines_are_texts_or_conversations() {
        let read = |text: &str| lines(Path::new("a.jsonl"), text);
        let found =
            read("{\"text\": \"a\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}").unwrap();
        assert!(matches!(&found[0], (1, Document::Text(text)) if text == "a"));
        let Document::Messages(conversation) = &found[1].1 else { panic!("no conversation") };
        assert_eq!(conversation.items, [Item::User { name: None, text: "b".to_owned() }]);
        let wrong = [
            ("{\"texts\": 3}", "line 1: expected an object with a string \"text\" or a list of \"messages\""),
            ("\n{", "line 2: EOF"),
            (
                "{\"messages\": [{\"role\": \"tool\", \"content\": \"\"}]}",
                "whose role is `tool`, expected system",
            ),
            ("{\"messages\": [{\"role\": \"user\"}]}", "without a string \"content\""),
        ];
        for (text, expected) in wrong {
            let error = read(text).map(drop).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let own = documents(Path::new(DEFAULT)).unwrap();
        assert!(own.iter().any(|(_, document)| matches!(document, Document::Messages(_))));
        assert!(own.len() > 20, "{}", own.len());
    }
}
