//! Chat templates in a checkpoint's directory, and the tokens that its files name for them.
//!
//! Published checkpoints have their templates in one of three places. A `chat_template.jinja` goes first,
//! with the files of `additional_chat_templates` beside it; then `chat_template` of `tokenizer_config.json`,
//! which is a text or a list of named ones; then `chat_template` of `chat_template.json`.

use crate::end_tokens;
use crate::error::{CheckpointError, Result};
use crate::prompt_files::PROMPT_FILE;
use kernmill_os::files::{read_regular, read_regular_text};
use kernmill_os::text::shortened;
use kernmill_plan::chat::{
    ChatTemplate, ChatTemplates, ChatToken, DEFAULT, NAME_BYTES, TEMPLATES, TOKEN_BYTES, TOKENS, TokenName,
};
use kernmill_plan::limit;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// The file of the default template.
const TEMPLATE_FILE: &str = "chat_template.jinja";
/// The directory of named templates, each a file `NAME.jinja`.
const TEMPLATE_DIR: &str = "additional_chat_templates";
/// Files with tokens by name; the first may have templates, too.
const TOKEN_FILES: [&str; 2] = ["tokenizer_config.json", "special_tokens_map.json"];
/// The file in which models of several kinds of input have their template.
const PROCESSOR_FILE: &str = "chat_template.json";
/// Files with ids of tokens, and how they and templates call these.
const ID_FILES: [&str; 2] = ["config.json", "generation_config.json"];
const IDS: [(&str, &str); 3] =
    [("bos_token", "bos_token_id"), ("eos_token", "eos_token_id"), ("pad_token", "pad_token_id")];

/// The files of `dir` that there are, of those that templates and their tokens are read from.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let own = [TEMPLATE_FILE, PROCESSOR_FILE, PROMPT_FILE].into_iter().chain(TOKEN_FILES).chain(ID_FILES);
    let own = own.map(|name| dir.join(name)).filter(|file| file.exists());
    own.chain(named_files(dir).unwrap_or_default()).collect()
}

/// The templates of `dir`, and the tokens that its files name.
pub(crate) fn in_directory(dir: &Path) -> ChatTemplates {
    match read(dir) {
        Ok(templates) => templates,
        Err(error) => ChatTemplates { fault: Some(error.to_string()), ..ChatTemplates::default() },
    }
}

fn read(dir: &Path) -> Result<ChatTemplates> {
    let config = read_config(&dir.join(TOKEN_FILES[0]))?;
    let mut templates = in_files(dir)?;
    if templates.is_empty() {
        templates = config.templates;
    }
    if templates.is_empty() {
        templates = read_config(&dir.join(PROCESSOR_FILE))?.templates;
    }
    check(dir, &templates)?;
    let mut tokens = config.tokens;
    // Each of these files has what the ones before it leave open.
    for (name, token) in read_config(&dir.join(TOKEN_FILES[1]))?.tokens {
        tokens.entry(name).or_insert(token);
    }
    for file in ID_FILES {
        for (name, id) in read_ids(&dir.join(file))? {
            tokens.entry(name.to_owned()).or_insert(TokenName::Id(id));
        }
    }
    Ok(ChatTemplates { templates, tokens: listed(tokens), ..ChatTemplates::default() })
}

/// Checks that the templates at `place` are neither too many nor too long.
///
/// # Errors
/// When they are.
pub(crate) fn check(place: &Path, templates: &[ChatTemplate]) -> Result<()> {
    let wrong = |what: String| Err(CheckpointError::Unsupported { path: place.to_owned(), what });
    if templates.len() > TEMPLATES {
        return wrong(format!("{} chat templates, expected at most {TEMPLATES}", templates.len()));
    }
    let bytes = |template: &ChatTemplate| template.text.len() as u64;
    if let Some(long) = templates.iter().find(|template| bytes(template) > limit::TEMPLATE_BYTES) {
        let (name, bytes, most) = (shortened(&long.name), bytes(long), limit::TEMPLATE_BYTES);
        return wrong(format!("chat template `{name}` has {bytes} bytes, expected at most {most}"));
    }
    let all: u64 = templates.iter().map(bytes).sum();
    if all > limit::TEMPLATES_BYTES {
        let most = limit::TEMPLATES_BYTES;
        return wrong(format!("the chat templates have {all} bytes together, expected at most {most}"));
    }
    Ok(())
}

/// The tokens that have names and texts as published ones do.
fn listed(tokens: BTreeMap<String, TokenName>) -> Vec<ChatToken> {
    let is_usual = |(name, token): &(String, TokenName)| {
        let text = if let TokenName::Text(text) = token { text.len() } else { 0 };
        name.len() <= NAME_BYTES && text <= TOKEN_BYTES
    };
    let usual = tokens.into_iter().filter(is_usual).take(TOKENS);
    usual.map(|(name, token)| ChatToken { name, token }).collect()
}

/// Templates that are files by themselves.
fn in_files(dir: &Path) -> Result<Vec<ChatTemplate>> {
    let file = dir.join(TEMPLATE_FILE);
    let default = file.exists().then(|| (DEFAULT.to_owned(), file));
    let name = |path: PathBuf| (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path);
    let named = named_files(dir)?.into_iter().map(name);
    let read = |(name, path): (String, PathBuf)| {
        let text = read_regular_text(&path, limit::TEMPLATE_BYTES).map_err(CheckpointError::io(&path))?;
        Ok(ChatTemplate { name, place: path.display().to_string(), text })
    };
    default.into_iter().chain(named).map(read).collect()
}

/// The files of named templates, by name.
fn named_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let dir = dir.join(TEMPLATE_DIR);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(&dir).map_err(CheckpointError::io(&dir))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(CheckpointError::io(&dir))?.path();
        let is_default = file.file_stem().is_some_and(|stem| stem == DEFAULT);
        if file.extension().is_some_and(|end| end == "jinja") && !is_default {
            files.push(file);
        }
        if files.len() > TEMPLATES {
            break;
        }
    }
    files.sort();
    Ok(files)
}

/// The keys of a `tokenizer_config.json`, or of a file like it, that concern conversations.
#[derive(Default)]
struct TokenizerConfig {
    templates: Vec<ChatTemplate>,
    tokens: BTreeMap<String, TokenName>,
}

fn read_config(path: &Path) -> Result<TokenizerConfig> {
    let Some(bytes) = read_json(path, limit::TOKENIZER_CONFIG_BYTES)? else {
        return Ok(TokenizerConfig::default());
    };
    let mut config: TokenizerConfig =
        serde_json::from_slice(&bytes).map_err(|error| CheckpointError::corrupt(path, error.to_string()))?;
    // If a name comes twice, the last one counts, as everywhere in JSON.
    let mut names = BTreeSet::new();
    config.templates.reverse();
    config.templates.retain(|template| names.insert(template.name.clone()));
    config.templates.reverse();
    for template in &mut config.templates {
        template.place = match template.name.as_str() {
            DEFAULT => path.display().to_string(),
            name => format!("{}: `{}`", path.display(), shortened(name)),
        };
    }
    Ok(config)
}

/// Ids of tokens that a config states, by the names of variables. Of several, the first one is the token.
fn read_ids(path: &Path) -> Result<Vec<(&'static str, u32)>> {
    let Some(bytes) = read_json(path, limit::CONFIG_BYTES)? else { return Ok(Vec::new()) };
    let config: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|error| CheckpointError::corrupt(path, error.to_string()))?;
    // A value that is no id names no token.
    let first = |key| end_tokens::ids(config.get(key)?, key).ok()?.first().copied();
    Ok(IDS.into_iter().filter_map(|(name, key)| Some((name, first(key)?))).collect())
}

/// The contents of a file, if there is one.
fn read_json(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    path.exists().then(|| read_regular(path, most).map_err(CheckpointError::io(path))).transpose()
}

impl<'de> Deserialize<'de> for TokenizerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<TokenizerConfig, D::Error> {
        deserializer.deserialize_map(ConfigVisitor)
    }
}

struct ConfigVisitor;

/// `chat_template`.
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "expected `chat_template` as a text, or a list of `name` and `template`")]
enum TemplateField {
    One(String),
    Several(Vec<TemplateEntry>),
}

#[derive(serde::Deserialize)]
struct TemplateEntry {
    name: String,
    template: String,
}

/// The value of a key that ends in `_token`.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum SpecialToken {
    Text(String),
    Added { content: String },
    Other(IgnoredAny),
}

impl SpecialToken {
    fn text(self) -> Option<String> {
        match self {
            SpecialToken::Text(text) | SpecialToken::Added { content: text } => Some(text),
            SpecialToken::Other(_) => None,
        }
    }
}

/// `extra_special_tokens`: tokens by the names of variables, or a list of tokens without.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Extra {
    Named(BTreeMap<String, SpecialToken>),
    Other(IgnoredAny),
}

impl<'de> Visitor<'de> for ConfigVisitor {
    type Value = TokenizerConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<TokenizerConfig, A::Error> {
        let mut config = TokenizerConfig::default();
        let template = |name, text| ChatTemplate { name, place: String::new(), text };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "chat_template" => {
                    config.templates = match map.next_value::<Option<TemplateField>>()? {
                        None => Vec::new(),
                        Some(TemplateField::One(text)) => vec![template(DEFAULT.to_owned(), text)],
                        Some(TemplateField::Several(list)) => {
                            list.into_iter().map(|named| template(named.name, named.template)).collect()
                        }
                    }
                }
                "extra_special_tokens" => {
                    if let Extra::Named(tokens) = map.next_value()? {
                        let named = tokens.into_iter().filter(|(name, _)| name.ends_with("_token"));
                        config.tokens.extend(
                            named.filter_map(|(name, token)| Some((name, TokenName::Text(token.text()?)))),
                        );
                    }
                }
                name if name.ends_with("_token") => match map.next_value::<Option<SpecialToken>>()? {
                    // The file states that it has no such token.
                    None => config.tokens.extend([(key, TokenName::Text(String::new()))]),
                    Some(token) => {
                        config.tokens.extend(token.text().map(|text| (key, TokenName::Text(text))));
                    }
                },
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dir_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::TempDir::new().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    fn token(templates: &ChatTemplates, name: &str) -> Option<TokenName> {
        templates.tokens.iter().find(|token| token.name == name).map(|token| token.token.clone())
    }

    #[test]
    fn a_published_config_names_templates_and_tokens() {
        let config = json!({
            "add_bos_token": true, "added_tokens_decoder": {"0": {"content": "<unk>", "special": true}},
            "additional_special_tokens": ["<a>"],
                "bos_token": {"content": "<s>", "lstrip": false, "__type": "AddedToken"},
            "chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}],
            "eos_token": "</s>", "extra_special_tokens": {"image_token": "<image>", "other": "<o>"},
            "model_max_length": 1e30, "pad_token": null, "tokenizer_class": "LlamaTokenizer",
        });
        let ids = r#"{"bos_token_id": 5, "eos_token_id": [6], "pad_token_id": 7, "unk_token_id": "x"}"#;
        let dir = dir_with(&[("tokenizer_config.json", &config.to_string()), ("config.json", ids)]);
        let read = in_directory(dir.path());
        assert_eq!(read.fault, None);
        let text = |text: &str| Some(TokenName::Text(text.to_owned()));
        assert_eq!(token(&read, "bos_token"), text("<s>"));
        assert_eq!(token(&read, "eos_token"), text("</s>"));
        assert_eq!(token(&read, "pad_token"), text(""), "the file says that there is none");
        assert_eq!(token(&read, "image_token"), text("<image>"));
        assert_eq!(read.tokens.len(), 4, "{:?}", read.tokens);
        let named: Vec<&str> = read.templates.iter().map(|template| template.text.as_str()).collect();
        assert_eq!(named, ["a", "b"]);
        assert!(read.templates[1].place.ends_with("tokenizer_config.json: `tool_use`"));
    }

    #[test]
    fn ids_stand_where_no_file_names_a_token() {
        let dir = dir_with(&[
            ("config.json", r#"{"bos_token_id": 5, "eos_token_id": [6, 9], "pad_token_id": -1}"#),
            ("generation_config.json", r#"{"bos_token_id": 8, "eos_token_id": 8, "pad_token_id": 7.5}"#),
        ]);
        let read = in_directory(dir.path());
        assert_eq!(token(&read, "bos_token"), Some(TokenName::Id(5)));
        assert_eq!(token(&read, "eos_token"), Some(TokenName::Id(6)));
        assert_eq!((token(&read, "pad_token"), read.fault), (None, None));
    }

    #[test]
    fn of_two_templates_with_one_name_the_last_one_counts() {
        let list: Vec<_> = ["a", "b", "a"]
            .iter()
            .zip(0..)
            .map(|(name, n)| json!({"name": name, "template": n.to_string()}))
            .collect();
        let dir = dir_with(&[("tokenizer_config.json", &json!({"chat_template": list}).to_string())]);
        let read = in_directory(dir.path());
        let named: Vec<(&str, &str)> =
            read.templates.iter().map(|t| (t.name.as_str(), t.text.as_str())).collect();
        assert_eq!(named, [("b", "1"), ("a", "2")]);
    }

    #[test]
    fn every_file_that_is_read_is_listed() {
        let names = [
            "chat_template.jinja",
            "chat_template.json",
            "tokenizer_config.json",
            "special_tokens_map.json",
            "config.json",
            "generation_config.json",
            "additional_chat_templates/a.jinja",
        ];
        let dir = dir_with(&names.map(|name| (name, "{}")));
        std::fs::write(dir.path().join("additional_chat_templates/other.txt"), "").unwrap();
        let listed = files(dir.path());
        assert_eq!(listed.len(), names.len(), "{listed:?}");
        assert!(names.iter().all(|name| listed.contains(&dir.path().join(name))), "{listed:?}");
    }

    #[test]
    fn templates_are_bounded_and_faults_name_the_file() {
        let most = limit::TEMPLATE_BYTES as usize;
        let list = |count: usize, bytes: usize| {
            let named = |n| json!({"name": format!("t{n}"), "template": "x".repeat(bytes)});
            json!({"chat_template": (0..count).map(named).collect::<Vec<_>>()}).to_string()
        };
        let fault = |name: &str, text: &str| in_directory(dir_with(&[(name, text)]).path()).fault;
        let config = "tokenizer_config.json";
        assert_eq!(fault(config, &list(TEMPLATES, 1)), None);
        assert_eq!(fault(config, &list(4, most)), None);
        for (name, text, says) in [
            (config, list(TEMPLATES + 1, 1), "17 chat templates, expected at most 16"),
            (config, list(1, most + 1), "chat template `t0` has 1048577 bytes, expected at most"),
            (config, list(5, most), "bytes together, expected at most 4194304"),
            (config, "{".to_owned(), "tokenizer_config.json: corrupt: "),
            (
                config,
                r#"{"chat_template": {"a": "b"}}"#.to_owned(),
                "expected `chat_template` as a text, or a list",
            ),
            ("chat_template.jinja", "x".repeat(most + 1), "chat_template.jinja: it has 1048577 bytes"),
            ("config.json", "7".to_owned(), "config.json: corrupt: "),
        ] {
            let found = fault(name, &text).unwrap();
            assert!(found.contains(says), "{says}: {found}");
        }
        let names = (0..=TEMPLATES).map(|n| format!("additional_chat_templates/{n}.jinja"));
        let many: Vec<(String, &str)> = names.map(|name| (name, "x")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        assert!(in_directory(dir_with(&many).path()).fault.unwrap().contains("17 chat templates"));
    }
}
