//! Which components of a `tokenizer.json` are accepted: those of published language models, few enough that a
//! text grows little.
//!
//! The library builds whatever a file lists. A few kilobytes that double a text forty times, or a thousand
//! regular expressions, would take all memory, so the lists are counted before anything is built.

use super::parts::{Part, parts};
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// How many times as long a text may become by normalising it, or by decoding it.
const MOST_GROWTH: f64 = 4.0;
/// Bytes that normalising may put before a text.
const MOST_PREPENDED: usize = 16;

const NORMALIZERS: [&str; 12] = [
    "BertNormalizer",
    "ByteLevel",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Prepend",
    "Replace",
    "Strip",
    "StripAccents",
];
const PRE_TOKENIZERS: [&str; 10] = [
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Digits",
    "Metaspace",
    "Punctuation",
    "Split",
    "UnicodeScripts",
    "Whitespace",
    "WhitespaceSplit",
];
const POST_PROCESSORS: [&str; 4] = ["BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"];
const DECODERS: [&str; 8] =
    ["BPEDecoder", "ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece"];

/// A key of the file that lists components.
struct List {
    key: &'static str,
    /// Key of the list in a `Sequence`.
    list: &'static str,
    kinds: &'static [&'static str],
}

const LISTS: [List; 4] = [
    List { key: "normalizer", list: "normalizers", kinds: &NORMALIZERS },
    List { key: "pre_tokenizer", list: "pretokenizers", kinds: &PRE_TOKENIZERS },
    List { key: "post_processor", list: "processors", kinds: &POST_PROCESSORS },
    List { key: "decoder", list: "decoders", kinds: &DECODERS },
];

/// Key of the object that gives ids the text of another id. No tokenizer of the library has it; GGUF files
/// may need it.
const SAME_TEXT: &str = "same_text";

/// A `tokenizer.json` whose components are accepted.
pub(super) struct Accepted<'a> {
    /// The `tokenizer.json` as the library reads it.
    pub(super) json: Cow<'a, [u8]>,
    /// Texts of ids whose text another id has as well.
    pub(super) same_text: HashMap<u32, String>,
}

/// Checks the components of a `tokenizer.json`. A text that is no JSON object is left to the parser, which
/// says what is wrong with it.
///
/// # Errors
/// What is not accepted, and what would be.
pub(super) fn accept(json: &[u8]) -> Result<Accepted<'_>, String> {
    let mut accepted = Accepted { json: Cow::Borrowed(json), same_text: HashMap::new() };
    let Some(parts) = parts(json) else { return Ok(accepted) };
    for list in &LISTS {
        if let Some(part) = find(&parts, list.key)? {
            list.check(&json[part.value.clone()])?;
        }
    }
    if let Some(part) = find(&parts, SAME_TEXT)? {
        let texts = serde_json::from_slice(&json[part.value.clone()]);
        accepted.same_text = texts.map_err(|error| format!("`{SAME_TEXT}`: {error}"))?;
        accepted.json = Cow::Owned(part.without(json));
    }
    Ok(accepted)
}

/// A key, if it is there.
fn find<'a>(parts: &'a [Part], key: &str) -> Result<Option<&'a Part>, String> {
    let mut found = parts.iter().filter(|part| part.key == key);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(format!("`{key}` is there twice")),
        (part, None) => Ok(part),
    }
}

impl List {
    fn check(&self, json: &[u8]) -> Result<(), String> {
        let (bytes, most) = (json.len() as u64, limit::TOKENIZER_PART_BYTES);
        if bytes > most {
            return Err(format!("`{}` has {bytes} bytes, expected at most {most}", self.key));
        }
        let value: Value =
            serde_json::from_slice(json).map_err(|error| format!("`{}`: {error}", self.key))?;
        let mut components = Vec::new();
        self.collect(&value, &mut components)?;
        match self.key {
            "pre_tokenizer" => check_splits(&components),
            "post_processor" => check_templates(&components),
            _ => self.check_growth(&components),
        }
    }

    /// The components of a part in order, those of sequences included.
    fn collect<'a>(&self, value: &'a Value, components: &mut Vec<&'a Value>) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let kind = kind(value);
        if kind == "Sequence"
            && let Some(list) = value.get(self.list).and_then(Value::as_array)
        {
            return list.iter().try_for_each(|value| self.collect(value, components));
        }
        if !self.kinds.contains(&kind) {
            return Err(format!(
                "`{}` has a component of type `{}`, expected one of Sequence, {}",
                self.key,
                shortened(kind),
                self.kinds.join(", ")
            ));
        }
        components.push(value);
        let most = limit::TOKENIZER_COMPONENTS;
        match components.len() > most {
            true => Err(format!("`{}` has more than {most} components", self.key)),
            false => Ok(()),
        }
    }

    /// How much longer a text becomes, at most.
    fn check_growth(&self, components: &[&Value]) -> Result<(), String> {
        let mut growth = 1.0;
        let mut prepended = 0;
        for component in components {
            match kind(component) {
                "Prepend" => prepended += text(component, "prepend").len(),
                "Replace" => growth *= replace_growth(self.key, component)?,
                _ => {}
            }
        }
        if growth > MOST_GROWTH || prepended > MOST_PREPENDED {
            return Err(format!(
                "`{}` makes texts {growth} times as long and puts {prepended} bytes before them, expected at most \
                 {MOST_GROWTH} times and {MOST_PREPENDED} bytes",
                self.key
            ));
        }
        Ok(())
    }
}

fn kind(component: &Value) -> &str {
    text(component, "type")
}

fn text<'a>(component: &'a Value, key: &str) -> &'a str {
    component.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// How many times as long a text becomes by a `Replace`; a match of an expression may be a single byte.
fn replace_growth(key: &str, component: &Value) -> Result<f64, String> {
    let pattern = component.get("pattern");
    let string = pattern.and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
    if string == Some("") {
        return Err(format!("`{key}` replaces an empty text"));
    }
    check_regex(key, component)?;
    let content = text(component, "content").len() as f64;
    Ok((content / string.map_or(1.0, |string| string.len() as f64)).max(1.0))
}

/// The bytes of a component's regular expression, if it has one.
fn check_regex(key: &str, component: &Value) -> Result<usize, String> {
    let regex = component.get("pattern").and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str);
    let (bytes, most) = (regex.map_or(0, str::len), limit::TOKENIZER_REGEX_BYTES);
    match bytes > most {
        true => Err(format!("`{key}` has a regular expression of {bytes} bytes, expected at most {most}")),
        false => Ok(bytes),
    }
}

fn check_splits(components: &[&Value]) -> Result<(), String> {
    let mut splits = 0;
    for component in components.iter().filter(|component| kind(component) == "Split") {
        splits += 1;
        check_regex("pre_tokenizer", component)?;
    }
    let most = limit::TOKENIZER_SPLITS;
    match splits > most {
        true => Err(format!("`pre_tokenizer` has {splits} of type Split, expected at most {most}")),
        false => Ok(()),
    }
}

/// A template puts few tokens around a text, and the text itself once.
fn check_templates(components: &[&Value]) -> Result<(), String> {
    let most = limit::TOKENIZER_TEMPLATE_IDS;
    for template in components.iter().filter(|component| kind(component) == "TemplateProcessing") {
        let tokens = template.get("special_tokens").and_then(Value::as_object);
        let ids = |token: &Value| token.get("ids").and_then(Value::as_array).map_or(0, Vec::len);
        let ids: usize = tokens.map_or(0, |tokens| tokens.values().map(ids).sum());
        let single = template.get("single").map_or(0, pieces);
        let pair = template.get("pair").map_or(0, pieces);
        if ids > most || single > most || pair > most {
            return Err(format!(
                "a template of `post_processor` has {} ids or pieces, expected at most {most}",
                ids.max(single).max(pair)
            ));
        }
        let texts = template.get("single").map_or(0, texts);
        if texts > 1 {
            return Err(format!("a template of `post_processor` has the text {texts} times, expected once"));
        }
    }
    Ok(())
}

/// The pieces of a template, which is a list, or a text with spaces between.
fn pieces(template: &Value) -> usize {
    match template {
        Value::Array(list) => list.len(),
        Value::String(text) => text.split(' ').count(),
        _ => 0,
    }
}

/// How often a template has the text itself.
fn texts(template: &Value) -> usize {
    match template {
        Value::Array(list) => list.iter().filter(|piece| piece.get("Sequence").is_some()).count(),
        Value::String(text) => text.split(' ').filter(|piece| piece.starts_with('$')).count(),
        _ => 0,
    }
}
