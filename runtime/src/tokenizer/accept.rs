//! Which components of a `tokenizer.json` are accepted: those of published language models, few enough that a
//! text grows little.
//!
//! The library builds whatever a file lists. A few kilobytes that double a text forty times, or a thousand
//! regular expressions, would take all memory, so the lists are counted before anything is built.

use super::charsmap;
use super::parts::{TopLevelKey, parts};
use fancy_regex::Expr;
use kernmill_os::text::shortened;
use kernmill_plan::limit;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use tokenizers::{ModelWrapper, NormalizedString};

/// How many times as long a text may become by normalising it, or by decoding it. Additions by Unicode's
/// normal forms to characters of the text itself come on top.
const MOST_GROWTH: f64 = 4.0;
/// How many times as long a text may become by cutting it into words: a byte-level alphabet doubles it, and a
/// mark for the space before each word may make it four times as long.
const MOST_SPLIT_GROWTH: f64 = 8.0;
/// Bytes that normalising may put before a text.
const MOST_PREPENDED: usize = 16;
/// Bytes of what stands before or behind each piece of a word, such as `##`.
const MOST_AFFIX: usize = 16;
/// Bytes of the token for the unknown, which stands for single characters.
const MOST_UNKNOWN: usize = 64;
/// Characters of a word that WordPiece cuts: the time grows with their square and more.
const MOST_WORD_CHARS: usize = 1000;
/// Bytes of a token of Unigram, which are looked up from every character on.
const MOST_UNIGRAM: usize = 512;

const NORMALIZERS: [&str; 13] = [
    "BertNormalizer",
    "ByteLevel",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Precompiled",
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
struct ComponentList {
    key: &'static str,
    /// Key of the list in a `Sequence`.
    list: &'static str,
    kinds: &'static [&'static str],
}

const LISTS: [ComponentList; 4] = [
    ComponentList { key: "normalizer", list: "normalizers", kinds: &NORMALIZERS },
    ComponentList { key: "pre_tokenizer", list: "pretokenizers", kinds: &PRE_TOKENIZERS },
    ComponentList { key: "post_processor", list: "processors", kinds: &POST_PROCESSORS },
    ComponentList { key: "decoder", list: "decoders", kinds: &DECODERS },
];

/// Key of the object that gives ids the text of another id. No tokenizer of the library has it; GGUF files
/// may need it.
const SAME_TEXT: &str = "same_text";

/// Key of the id that stands for the unknown, in the model of a Unigram tokenizer.
const UNKNOWN: &str = "unk_id";

/// A `tokenizer.json` whose components are accepted.
pub(super) struct AcceptedTokenizer<'a> {
    /// The `tokenizer.json` as the library reads it.
    pub(super) json: Cow<'a, [u8]>,
    /// Texts of ids whose text another id has as well.
    pub(super) same_text: HashMap<u32, String>,
    /// Id of the model's token for the unknown, where the file has it as an id.
    pub(super) unknown: Option<u32>,
}

/// Checks the components of a `tokenizer.json`. A text that is no JSON object is left to the parser, which
/// says what is wrong with it.
///
/// # Errors
/// What is not accepted, and what would be.
pub(super) fn accept(json: &[u8]) -> Result<AcceptedTokenizer<'_>, String> {
    let mut accepted =
        AcceptedTokenizer { json: Cow::Borrowed(json), same_text: HashMap::new(), unknown: None };
    let Some(parts) = parts(json) else { return Ok(accepted) };
    for list in &LISTS {
        if let Some(part) = find(&parts, list.key)? {
            list.check(&json[part.value.clone()])?;
        }
    }
    if let Some(model) = find(&parts, "model")? {
        let model = &json[model.value.clone()];
        let unknown = self::parts(model).and_then(|parts| parts.into_iter().find(|part| part.key == UNKNOWN));
        accepted.unknown = unknown.and_then(|part| serde_json::from_slice(&model[part.value]).ok());
    }
    if let Some(part) = find(&parts, SAME_TEXT)? {
        let texts = serde_json::from_slice(&json[part.value.clone()]);
        accepted.same_text = texts.map_err(|error| format!("`{SAME_TEXT}`: {error}"))?;
        accepted.json = Cow::Owned(part.without(json));
    }
    Ok(accepted)
}

/// A key, if it is there.
fn find<'a>(parts: &'a [TopLevelKey], key: &str) -> Result<Option<&'a TopLevelKey>, String> {
    let mut found = parts.iter().filter(|part| part.key == key);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(format!("`{key}` is there twice")),
        (part, None) => Ok(part),
    }
}

impl ComponentList {
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
            "pre_tokenizer" => check_splits(&components).and_then(|()| self.check_growth(&components)),
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
        let most = if self.key == "pre_tokenizer" { MOST_SPLIT_GROWTH } else { MOST_GROWTH };
        let mut growth = 1.0;
        let mut prepended = 0;
        for (at, component) in components.iter().enumerate() {
            growth *= match (kind(component), self.key) {
                ("Replace", _) => replace_growth(self.key, component)?,
                ("Prepend", _) => {
                    prepended += text(component, "prepend").len();
                    1.0
                }
                // The check of the map limits what it adds, so that it counts for nothing here.
                ("Precompiled", _) => {
                    let replaces = |before: &&Value| kind(before) == "Replace";
                    if growth > 1.0 || !components[..at].iter().all(replaces) {
                        let expected = "expected it first, or behind `Replace` that makes nothing longer";
                        return Err(format!(
                            "`Precompiled` stands behind other steps of `{}`, {expected}",
                            self.key
                        ));
                    }
                    charsmap::check(component)?;
                    1.0
                }
                // A space on each side of a character of three bytes.
                ("BertNormalizer", _) => 5.0 / 3.0,
                // Words may be single letters, each with a space before it.
                ("ByteLevel", "pre_tokenizer") if component["add_prefix_space"] != false => 4.0,
                ("ByteLevel", "normalizer" | "pre_tokenizer") => 2.0,
                ("Metaspace", "pre_tokenizer") => 1.0 + text(component, "replacement").len() as f64,
                _ => 1.0,
            };
        }
        if growth > most || prepended > MOST_PREPENDED {
            return Err(format!(
                "`{}` makes texts {growth} times as long and puts {prepended} bytes before them, expected at most \
                 {most} times and {MOST_PREPENDED} bytes",
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

/// How many times as long a text becomes by a `Replace`; a match of an expression may be a single byte, or
/// lie before and behind each byte.
fn replace_growth(key: &str, component: &Value) -> Result<f64, String> {
    let pattern = component.get("pattern");
    let string = pattern.and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
    if string == Some("") {
        return Err(format!("`{key}` replaces an empty text"));
    }
    check_regex(key, component)?;
    let content = text(component, "content");
    let bytes = if key == "normalizer" { longest_form(content) } else { content.len() } as f64;
    Ok(match (string, regex(component)) {
        (Some(string), _) => (bytes / string.len() as f64).max(1.0),
        (None, Some(regex)) if matches_nothing(regex) => 2.0 * bytes + 1.0,
        (None, _) => bytes.max(1.0),
    })
}

/// Bytes of a text after whatever normal form follows.
fn longest_form(text: &str) -> usize {
    let mut form = NormalizedString::from(text);
    let decomposed = form.nfkd().get().len();
    decomposed.max(form.lowercase().get().len()).max(text.len())
}

/// Whether a regular expression may match without a character. One that the library cannot read is refused
/// later, with its reason.
fn matches_nothing(regex: &str) -> bool {
    fn is_empty(expr: &Expr) -> bool {
        match expr {
            Expr::Any { .. } => false,
            Expr::Delegate { size, .. } => *size == 0,
            Expr::Literal { val, .. } => val.is_empty(),
            Expr::Concat(parts) => parts.iter().all(is_empty),
            Expr::Alt(branches) => branches.iter().any(is_empty),
            Expr::Group(inner) | Expr::AtomicGroup(inner) => is_empty(inner),
            Expr::Repeat { child, lo, .. } => *lo == 0 || is_empty(child),
            _ => true,
        }
    }
    // \K takes what is before it out of the match.
    regex.contains(r"\K") || Expr::parse_tree(regex).is_ok_and(|tree| is_empty(&tree.expr))
}

fn regex(component: &Value) -> Option<&str> {
    component.get("pattern")?.get("Regex")?.as_str()
}

/// The bytes of a component's regular expression, if it has one.
fn check_regex(key: &str, component: &Value) -> Result<usize, String> {
    let (bytes, most) = (regex(component).map_or(0, str::len), limit::TOKENIZER_REGEX_BYTES);
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

/// Checks what a model makes of single characters and words.
///
/// # Errors
/// What is not accepted, and what would be.
pub(super) fn accept_model(model: &ModelWrapper) -> Result<(), String> {
    let within = |name: &str, found: usize, most: usize| match found > most {
        true => Err(format!("`model`: {name} has {found} bytes, expected at most {most}")),
        false => Ok(()),
    };
    let [mut prefix, mut suffix, mut unknown] = [0; 3];
    match model {
        ModelWrapper::BPE(bpe) => {
            [prefix, suffix, unknown] =
                [&bpe.continuing_subword_prefix, &bpe.end_of_word_suffix, &bpe.unk_token]
                    .map(|text| text.as_ref().map_or(0, String::len));
            if bpe.byte_fallback && prefix + suffix > 0 {
                return Err(
                    "`model` has `byte_fallback`, and a prefix or suffix for pieces of words, which \
                            would become bytes with each of them"
                        .to_owned(),
                );
            }
        }
        ModelWrapper::WordPiece(pieces) => {
            (prefix, unknown) = (pieces.continuing_subword_prefix.len(), pieces.unk_token.len());
            let (found, most) = (pieces.max_input_chars_per_word, MOST_WORD_CHARS);
            if found > most {
                return Err(format!("`max_input_chars_per_word` is {found}, expected at most {most}"));
            }
        }
        ModelWrapper::WordLevel(words) => unknown = words.unk_token.len(),
        ModelWrapper::Unigram(pieces) => {
            let longest = pieces.iter().map(|(token, _)| token.len()).max().unwrap_or(0);
            within("a token", longest, MOST_UNIGRAM)?;
        }
    }
    within("`continuing_subword_prefix`", prefix, MOST_AFFIX)?;
    within("`end_of_word_suffix`", suffix, MOST_AFFIX)?;
    within("`unk_token`", unknown, MOST_UNKNOWN)
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
