//! Text-related files of a model: its tokenizer, and the tokens that end them. Nothing is read before it is
//! asked for, so that commands on token ids work beside a tokenizer that is broken or of a kind that is not
//! supported.

use crate::chat_files;
use crate::end_tokens::{self, NAMES};
use crate::error::{CheckpointError, Result};
use crate::gguf::{Gguf, is_gguf};
use crate::prompt_files;
use kernmill_os::files::{read_regular, read_regular_text};
use kernmill_plan::chat::ChatTemplates;
use kernmill_plan::limit;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TOKENIZER: &str = "tokenizer.json";
/// Files that may state end tokens.
const CONFIGS: [&str; 2] = ["config.json", "generation_config.json"];

/// Where a model's tokenizer is.
#[derive(Clone, Debug)]
pub enum TokenizerFiles {
    /// The contents of a `tokenizer.json` that is part of the program.
    Embedded(&'static [u8]),
    /// A directory with a `tokenizer.json`, `config.json`, `generation_config.json` and files with chat
    /// templates; any may be missing.
    Directory(PathBuf),
    /// A GGUF file, which has its tokenizer in it, or a `tokenizer.json` beside it.
    Gguf(Arc<Gguf>),
}

impl TokenizerFiles {
    /// The files of a checkpoint: a GGUF file, which is opened, a directory, or a file in one.
    ///
    /// # Errors
    /// When a GGUF file cannot be opened.
    pub fn of(weights: &Path) -> Result<TokenizerFiles> {
        if is_gguf(weights) {
            Ok(TokenizerFiles::Gguf(Arc::new(Gguf::open(weights)?)))
        } else if weights.is_dir() {
            Ok(TokenizerFiles::Directory(weights.to_owned()))
        } else {
            Ok(TokenizerFiles::Directory(directory(weights)))
        }
    }

    /// The files that there are, of those that tokenizer, end tokens and chat templates may be read from.
    pub fn files(&self) -> Vec<PathBuf> {
        let (dir, own) = match self {
            TokenizerFiles::Embedded(_) => return Vec::new(),
            TokenizerFiles::Directory(dir) => (dir.clone(), None),
            TokenizerFiles::Gguf(gguf) => (directory(gguf.path()), Some(gguf.path().to_owned())),
        };
        let tokenizer = Some(dir.join(TOKENIZER)).filter(|file| file.exists());
        own.into_iter().chain(tokenizer).chain(chat_files::files(&dir)).collect()
    }

    /// Whether there is a tokenizer, of whatever kind; it is not read.
    pub fn exist(&self) -> bool {
        match self {
            TokenizerFiles::Embedded(_) => true,
            TokenizerFiles::Directory(dir) => dir.join(TOKENIZER).exists(),
            TokenizerFiles::Gguf(gguf) => {
                gguf.has_tokenizer() || directory(gguf.path()).join(TOKENIZER).exists()
            }
        }
    }

    /// Reads the tokenizer, if there is one, as the contents of a `tokenizer.json`: a GGUF file's own, or the
    /// one beside it if it has none that can be used.
    ///
    /// # Errors
    /// When it cannot be read, or the only one is not supported.
    pub fn read(&self) -> Result<Option<Vec<u8>>> {
        match self {
            TokenizerFiles::Embedded(json) => Ok(Some(json.to_vec())),
            TokenizerFiles::Directory(dir) => read_tokenizer(dir),
            TokenizerFiles::Gguf(gguf) => match gguf.tokenizer_json() {
                Ok(Some(json)) => Ok(Some(json)),
                Ok(None) => read_tokenizer(&directory(gguf.path())),
                Err(CheckpointError::Unsupported { path, what }) => {
                    match read_tokenizer(&directory(gguf.path()))? {
                        Some(json) => Ok(Some(json)),
                        None => {
                            let what = format!("{what}, or the model's {TOKENIZER} beside the file");
                            Err(CheckpointError::Unsupported { path, what })
                        }
                    }
                }
                Err(error) => Err(error),
            },
        }
    }

    /// The chat templates, the tokens that templates write by name, and prompts. Templates that
    /// cannot be read are no
    /// error: texts are made without them.
    pub fn chat_templates(&self) -> ChatTemplates {
        match self {
            TokenizerFiles::Embedded(_) => ChatTemplates::default(),
            TokenizerFiles::Directory(dir) => ChatTemplates {
                prompts: prompt_files::in_directory(dir).unwrap_or_default(),
                ..chat_files::in_directory(dir)
            },
            TokenizerFiles::Gguf(gguf) => {
                let own = gguf.chat_templates();
                match own.templates.is_empty() && own.fault.is_none() && !gguf.has_tokenizer() {
                    true => chat_files::in_directory(&directory(gguf.path())),
                    false => own,
                }
            }
        }
    }

    /// A note for the user before the tokenizer's texts are trusted.
    pub fn note(&self) -> Option<String> {
        match self {
            TokenizerFiles::Gguf(gguf) => gguf.tokenizer_note().ok()?,
            TokenizerFiles::Embedded(_) | TokenizerFiles::Directory(_) => None,
        }
    }

    /// Tokens below `vocab` by which the model's texts end, each once: those that `config.json`,
    /// `generation_config.json` or the GGUF file's keys name, and those of the vocabulary that have
    /// well-known names ([`NAMES`]).
    ///
    /// # Errors
    /// When a file that states them cannot be read, or names something else than tokens. A tokenizer that
    /// cannot be read names none.
    pub fn end_tokens(&self, vocab: usize) -> Result<Vec<u32>> {
        let mut ids = match self {
            TokenizerFiles::Embedded(json) => named(json),
            TokenizerFiles::Directory(dir) => {
                let mut ids = Vec::new();
                for name in CONFIGS {
                    ids.extend(stated(&dir.join(name))?);
                }
                ids.extend(named_in(dir));
                ids
            }
            TokenizerFiles::Gguf(gguf) => {
                let mut ids = gguf.end_tokens()?;
                if !gguf.has_tokenizer() {
                    ids.extend(named_in(&directory(gguf.path())));
                }
                ids
            }
        };
        ids.retain(|id| (*id as usize) < vocab);
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

fn directory(path: &Path) -> PathBuf {
    kernmill_os::output::directory(path).to_owned()
}

fn read_tokenizer(dir: &Path) -> Result<Option<Vec<u8>>> {
    let path = dir.join(TOKENIZER);
    if !path.exists() {
        return Ok(None);
    }
    match read_regular(&path, limit::TOKENIZER_BYTES) {
        Ok(json) => Ok(Some(json)),
        Err(source) => Err(CheckpointError::Io { path, source }),
    }
}

/// End tokens that a config file states; none, if there is no such file.
fn stated(path: &Path) -> Result<Vec<u32>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_regular_text(path, limit::CONFIG_BYTES)
        .map_err(|source| CheckpointError::Io { path: path.to_owned(), source })?;
    end_tokens::in_config(&text).map_err(|what| CheckpointError::Corrupt { path: path.to_owned(), what })
}

/// End tokens of the `tokenizer.json` in a directory; none, if it cannot be read.
fn named_in(dir: &Path) -> Vec<u32> {
    read_tokenizer(dir).ok().flatten().map_or_else(Vec::new, |json| named(&json))
}

/// Ids of a `tokenizer.json` whose tokens have well-known names.
fn named(json: &[u8]) -> Vec<u32> {
    let Ok(file) = serde_json::from_slice::<TokenizerJson>(json) else { return Vec::new() };
    let added = file.added_tokens.into_iter().filter(|token| NAMES.contains(&token.content.as_str()));
    added.map(|token| token.id).chain(file.model.vocab.0).collect()
}

/// The parts of a `tokenizer.json` that are read here.
#[derive(serde::Deserialize)]
struct TokenizerJson {
    #[serde(default)]
    added_tokens: Vec<AddedTokenEntry>,
    #[serde(default)]
    model: TokenizerModel,
}

#[derive(serde::Deserialize)]
struct AddedTokenEntry {
    id: u32,
    content: String,
}

#[derive(Default, serde::Deserialize)]
struct TokenizerModel {
    #[serde(default)]
    vocab: NamedTokens,
}

/// The ids of a vocabulary's tokens with well-known names; the others are passed over.
#[derive(Default)]
struct NamedTokens(Vec<u32>);

impl<'de> Deserialize<'de> for NamedTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<NamedTokens, D::Error> {
        deserializer.deserialize_any(NamedVisitor)
    }
}

struct NamedVisitor;

impl<'de> Visitor<'de> for NamedVisitor {
    type Value = NamedTokens;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vocabulary")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<NamedTokens, A::Error> {
        let mut ids = Vec::new();
        while let Some(token) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if NAMES.contains(&token.as_ref()) {
                ids.push(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(NamedTokens(ids))
    }

    /// Vocabularies with probabilities are lists; their end tokens are added tokens as well.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<NamedTokens, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(NamedTokens::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dir_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::TempDir::new().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn end_tokens_are_those_of_all_files_together() {
        let tokenizer = json!({
            "added_tokens": [{"id": 7, "content": "<|im_end|>", "special": true}, {"id": 5, "content": "<think>"}],
            "model": {"type": "BPE", "vocab": {"a": 0, "</s>": 2, "<eos>": 99}}
        });
        let dir = dir_with(&[
            ("config.json", r#"{"eos_token_id": 3}"#),
            ("generation_config.json", r#"{"eos_token_id": [3, 8, -1]}"#),
            ("tokenizer.json", &tokenizer.to_string()),
        ]);
        let files = TokenizerFiles::of(dir.path()).unwrap();
        assert_eq!(files.end_tokens(50).unwrap(), [2, 3, 7, 8]);
        assert_eq!(files.end_tokens(8).unwrap(), [2, 3, 7]);
    }

    #[test]
    fn a_broken_tokenizer_or_none_leaves_what_configs_state() {
        for (tokenizer, exists) in [(None, false), (Some("{"), true), (Some("version https://git-lfs"), true)]
        {
            let mut list = vec![("generation_config.json", r#"{"eos_token_id": 9}"#)];
            list.extend(tokenizer.map(|text| ("tokenizer.json", text)));
            let dir = dir_with(&list);
            let files = TokenizerFiles::of(dir.path()).unwrap();
            assert_eq!((files.end_tokens(50).unwrap(), files.exist()), (vec![9], exists));
        }
    }

    #[test]
    fn configs_that_name_something_else_are_refused_with_their_name() {
        for text in [r#"{"eos_token_id": "</s>"}"#, r#"{"eos_token_id": [1, 2.5]}"#, "[", "7"] {
            let dir = dir_with(&[("generation_config.json", text)]);
            let error = TokenizerFiles::of(dir.path()).unwrap().end_tokens(50).unwrap_err().to_string();
            assert!(error.contains("generation_config.json"), "{text}: {error}");
        }
    }
}
