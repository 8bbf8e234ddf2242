//! Texts to measure on, and the windows in which a model reads them.

use crate::given::Count;
use kernmill::{Error, Result};
use kernmill_os::files::read_named_text;
use kernmill_runtime::Tokenizer;
use ring::digest::{Context, SHA256};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Bytes of a file of texts at most.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes of a text that are made to tokens at once at most.
const PIECE: usize = 1 << 20;

/// Which texts, and in which windows.
#[derive(Clone, Debug, clap::Args)]
pub struct TextArgs {
    /// Text to measure on. Of a file whose name ends in .jsonl, every line is an object whose "text" is a
    /// document; any other file is one document
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Tokens of a window. Every window is read anew, from the model's start token if it has one
    #[arg(long, value_name = "N", default_value = "512")]
    window: Count,
    /// Tokens by which windows advance, less than --window. The model is measured on what the window before
    /// did not have; by default half of --window, so that every token but the first ones has half a window
    /// before it
    #[arg(long, value_name = "N")]
    stride: Option<Count>,
    /// Windows at most, from the beginning of the file
    #[arg(long, value_name = "N")]
    limit: Option<Count>,
}

/// Tokens that are read from nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Ids of the tokens.
    pub ids: Vec<u32>,
    /// The first token that the model is measured on, at least 1.
    pub from: usize,
    /// Bytes of text of the tokens that the model is measured on; their sum over a document is exact.
    pub bytes: f64,
    /// Number of the document.
    pub document: usize,
}

impl Window {
    /// Tokens that the model is measured on.
    pub fn measured(&self) -> &[u32] {
        &self.ids[self.from..]
    }
}

impl TextArgs {
    /// Reads the windows, which fit into `longest` tokens.
    ///
    /// # Errors
    /// When the file cannot be read, holds no text to measure on, or the sizes do not fit.
    pub fn windows(&self, tokenizer: &Tokenizer, longest: u32) -> Result<Vec<Window>> {
        let (window, stride) = self.sizes(longest)?;
        let missing = || Error::bad_input("--file is missing: expected a text to measure on");
        let file = self.file.as_deref().ok_or_else(missing)?;
        let text = read_named_text(file, MOST_BYTES).map_err(Error::read(file))?;
        let is_lines = file.extension().is_some_and(|end| end == "jsonl");
        let documents = if is_lines { documents(file, &text)? } else { vec![text] };
        let mut windows = Vec::new();
        for (number, document) in documents.iter().enumerate() {
            windows.extend(cut(tokenizer, document, number, window, stride)?);
        }
        windows.truncate(self.limit.map_or(usize::MAX, |limit| limit.0 as usize));
        match windows.is_empty() {
            true => Err(Error::input(file, "it has no text of two tokens or more to measure on")),
            false => Ok(windows),
        }
    }

    fn sizes(&self, longest: u32) -> Result<(usize, usize)> {
        let window = self.window.0;
        let stride = self.stride.map_or((window / 2).max(1), |stride| stride.0);
        if !(2..=longest).contains(&window) {
            let what = format!("--window is {window}, expected 2 to {longest}, the model's longest context");
            return Err(Error::bad_input(what));
        }
        if stride >= window {
            let what = format!("--stride is {stride}, expected less than --window, which is {window}");
            return Err(Error::bad_input(what));
        }
        Ok((window as usize, stride as usize))
    }

    /// Describes the windows.
    pub fn about(&self) -> String {
        let stride = self.stride.map_or((self.window.0 / 2).max(1), |stride| stride.0);
        format!("windows of {} tokens that advance by {stride}", self.window.0)
    }
}

/// The documents of a file of JSON lines.
fn documents(path: &Path, text: &str) -> Result<Vec<String>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(n, line)| {
            let wrong = |what: String| Error::input(path, format!("line {}: {what}", n + 1));
            let value: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            let text = value.get("text").and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| wrong("expected an object with a string \"text\"".to_owned()))
        })
        .collect()
}

/// Ids of a long text, piece by piece: each ends behind a line end, where tokens do not go on.
fn encode(tokenizer: &Tokenizer, mut text: &str) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    while !text.is_empty() {
        let mut end = text.len().min(PIECE);
        if end < text.len() {
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            // A line that begins with no space: whatever tokens hold line ends ends before it.
            let mut ends = text[..end].match_indices('\n').map(|(at, _)| at + 1);
            end = ends.rfind(|at| text[*at..].starts_with(char::is_alphanumeric)).unwrap_or(end);
        }
        ids.extend(tokenizer.encode(&text[..end], false)?);
        text = &text[end..];
    }
    Ok(ids)
}

/// The windows of a document. With a start token every token is measured once, without one all but the first.
fn cut(
    tokenizer: &Tokenizer,
    text: &str,
    document: usize,
    chunk: usize,
    stride: usize,
) -> Result<Vec<Window>> {
    let ids = encode(tokenizer, text)?;
    let start: Vec<u32> = start_token(tokenizer)?.into_iter().collect();
    let unread = if start.is_empty() { 1 } else { 0 };
    if ids.len() <= unread {
        return Ok(Vec::new());
    }
    let first = tokenizer.decode(&ids[..unread])?.len();
    let bytes_per_token = text.len().saturating_sub(first) as f64 / (ids.len() - unread) as f64;
    let room = chunk - start.len();
    let (mut windows, mut from, mut done) = (Vec::new(), 0, unread);
    while done < ids.len() {
        let to = ids.len().min(from + room);
        windows.push(Window {
            ids: [&start[..], &ids[from..to]].concat(),
            from: start.len() + done - from,
            bytes: bytes_per_token * (to - done) as f64,
            document,
        });
        (from, done) = (from + stride, to);
    }
    Ok(windows)
}

/// A hash of all windows, by which two runs know that they read the same.
pub fn hash(windows: &[Window]) -> String {
    let mut context = Context::new(&SHA256);
    for window in windows {
        [window.ids.len(), window.from].iter().for_each(|size| context.update(&(*size as u64).to_le_bytes()));
        window.ids.iter().for_each(|id| context.update(&id.to_le_bytes()));
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The token that the tokenizer puts before a text.
pub fn start_token(tokenizer: &Tokenizer) -> Result<Option<u32>> {
    let (bare, whole) = (tokenizer.encode("a", false)?, tokenizer.encode("a", true)?);
    Ok(whole.first().copied().filter(|first| whole.len() > bare.len() && bare.first() != Some(first)))
}

#[cfg(test)]
mod tests {
    use super::{Window, cut, documents};
    use kernmill_runtime::Tokenizer;
    use std::path::Path;

    /// A tokenizer of the words a, b, c and d, with a start token or none.
    fn tokenizer(start: bool) -> Tokenizer {
        let post = r#"{ "type": "TemplateProcessing", "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } },
            { "Sequence": { "id": "A", "type_id": 0 } }], "pair": [{ "Sequence": { "id": "A", "type_id": 0 } },
            { "Sequence": { "id": "B", "type_id": 0 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [4], "tokens": ["<s>"] } } }"#;
        let json = format!(
            r#"{{ "version": "1.0", "truncation": null, "padding": null, "added_tokens": [{{ "id": 4,
            "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true }}], "normalizer": null, "pre_tokenizer": {{ "type": "Whitespace" }},
            "post_processor": {}, "decoder": null, "model": {{ "type": "WordLevel", "vocab": {{ "a": 0,
            "b": 1, "c": 2, "d": 3, "<s>": 4 }}, "unk_token": "a" }} }}"#,
            if start { post } else { "null" }
        );
        Tokenizer::from_json(json.as_bytes(), 5).unwrap()
    }

    fn ids(windows: &[Window]) -> Vec<(Vec<u32>, usize)> {
        windows.iter().map(|window| (window.ids.clone(), window.from)).collect()
    }

    #[test]
    fn windows_measure_every_token_once() {
        let text = "a b c d a b c";
        let windows = cut(&tokenizer(false), text, 0, 4, 2).unwrap();
        assert_eq!(
            ids(&windows),
            [(vec![0, 1, 2, 3], 1), (vec![2, 3, 0, 1], 2), (vec![0, 1, 2], 2)],
            "the first token has nothing before it"
        );
        let windows = cut(&tokenizer(true), text, 0, 4, 2).unwrap();
        let expected = [(vec![4, 0, 1, 2], 1), (vec![4, 2, 3, 0], 2), (vec![4, 0, 1, 2], 2)];
        assert_eq!(ids(&windows), expected, "the start token is before each");
        for chunk in 2..9 {
            for (stride, start) in (1..chunk).flat_map(|stride| [(stride, false), (stride, true)]) {
                let windows = cut(&tokenizer(start), text, 0, chunk, stride).unwrap();
                let measured: Vec<u32> = windows.iter().flat_map(|it| it.measured().to_vec()).collect();
                assert_eq!(measured, [0, 1, 2, 3, 0, 1, 2][usize::from(!start)..], "{chunk}, {stride}");
                assert!(windows.iter().all(|window| window.ids.len() <= chunk && window.from > 0));
                let bytes: f64 = windows.iter().map(|window| window.bytes).sum();
                let expected = text.len() - usize::from(!start);
                assert!((bytes - expected as f64).abs() < 1e-9, "{bytes}");
            }
        }
    }

    #[test]
    fn a_document_is_a_line() {
        let path = Path::new("a.jsonl");
        assert_eq!(documents(path, "{\"text\": \"a b\"}\n\n{\"text\": \"c\"}\n").unwrap(), ["a b", "c"]);
        let error = documents(path, "{\"text\": \"a\"}\n{\"texts\": 3}").unwrap_err().to_string();
        assert_eq!(error, "a.jsonl: line 2: expected an object with a string \"text\"");
    }
}
