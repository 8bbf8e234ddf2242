//! The tokenizer of a GGUF file as a `tokenizer.json`, and its chat templates.

mod chat;
mod pre;
mod sentencepiece;
mod unigram;
mod wordpiece;

use super::Gguf;
use crate::end_tokens;
use crate::error::Result;
use kernmill_os::text::shortened;
use pre::PreTokenizer;
use serde_json::{Map, Value, json};

/// The type of a token, as the file gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenType {
    Normal,
    /// Stands for what the vocabulary cannot spell.
    Unknown,
    /// Recognised before a text is cut into words, and not shown.
    Control,
    /// Recognised before a text is cut into words.
    UserDefined,
    Unused,
    /// A byte, spelt as `<0x0A>`.
    Byte,
}

impl TokenType {
    /// By their numbers in files, from 1.
    const ALL: [TokenType; 6] = [
        TokenType::Normal,
        TokenType::Unknown,
        TokenType::Control,
        TokenType::UserDefined,
        TokenType::Unused,
        TokenType::Byte,
    ];

    /// Other numbers are those of normal tokens.
    fn of(number: u64) -> TokenType {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| TokenType::ALL.get(index)).copied().unwrap_or(TokenType::Normal)
    }
}

/// Ids by text.
struct Texts {
    vocab: Map<String, Value>,
    /// Texts by id, of the ids whose text another id has too: the last one is the text's.
    same_text: Map<String, Value>,
}

impl Texts {
    fn new(tokens: &[&str]) -> Texts {
        let (mut vocab, mut same_text) = (Map::new(), Map::new());
        for (id, &token) in tokens.iter().enumerate() {
            if let Some(earlier) = vocab.insert(token.to_owned(), id.into()) {
                same_text.insert(earlier.to_string(), token.into());
            }
        }
        Texts { vocab, same_text }
    }
}

impl Gguf {
    /// Whether the file has a tokenizer, of whatever kind.
    pub fn has_tokenizer(&self) -> bool {
        !matches!(self.text("tokenizer.ggml.model"), Ok(None | Some("none" | "no_vocab")))
    }

    /// The tokenizer, if there is one, as the contents of a `tokenizer.json`.
    ///
    /// # Errors
    /// If its parts contradict each other, or it is of a kind that is not supported.
    pub fn tokenizer_json(&self) -> Result<Option<Vec<u8>>> {
        let kind = match self.text("tokenizer.ggml.model")? {
            None | Some("none" | "no_vocab") => return Ok(None),
            Some(kind @ ("gpt2" | "llama" | "bert" | "t5")) => kind,
            Some(other) => {
                let shown = shortened(other);
                return self.unsupported(format!(
                    "tokenizer `{shown}`; supported are: byte-level BPE (`gpt2`), SentencePiece (`llama`), \
                     WordPiece (`bert`) and Unigram (`t5`)"
                ));
            }
        };
        let Some(tokens) = self.texts("tokenizer.ggml.tokens")? else {
            return self.corrupt("key `tokenizer.ggml.tokens` is missing: expected an array of strings");
        };
        if kind == "bert" {
            return Ok(Some(self.wordpiece(&tokens)?.to_string().into_bytes()));
        }
        let texts = Texts::new(&tokens);
        let mut tokenizer = match kind {
            "gpt2" => self.byte_level(&tokens, &texts.vocab)?,
            // A Unigram vocabulary is a list, and several of its tokens may have the same text.
            "t5" => return Ok(Some(self.unigram(&tokens, &texts.vocab)?.to_string().into_bytes())),
            _ => self.sentencepiece(&tokens, &texts.vocab)?,
        };
        if !texts.same_text.is_empty() {
            tokenizer["same_text"] = texts.same_text.into();
        }
        Ok(Some(tokenizer.to_string().into_bytes()))
    }

    /// A note for the user about the tokenizer: that the file does not say how it cuts texts into words.
    ///
    /// # Errors
    /// If the file's own statement is not text.
    pub fn tokenizer_note(&self) -> Result<Option<String>> {
        if self.text("tokenizer.ggml.model")? != Some("gpt2")
            || self.text(PRE)?.is_some_and(|pre| pre != pre::DEFAULT)
        {
            return Ok(None);
        }
        Ok(Some(format!(
            "{}: key `{PRE}` does not say how texts are cut into words: tokens may differ from the model's own; \
             a file that was converted anew states it",
            self.path().display()
        )))
    }

    /// Tokens by which texts end: those that the file's keys name, and those of well-known names.
    ///
    /// # Errors
    /// If a key is no token id.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for key in end_tokens::GGUF_KEYS {
            ids.extend(self.token_id(key)?);
        }
        let tokens = self.texts("tokenizer.ggml.tokens")?.unwrap_or_default();
        let named = tokens.iter().enumerate().filter(|(_, token)| end_tokens::NAMES.contains(token));
        ids.extend(named.map(|(id, _)| id as u32));
        Ok(ids)
    }

    fn byte_level(&self, tokens: &[&str], vocab: &Map<String, Value>) -> Result<Value> {
        let pre = self.pre_tokenizer()?;
        let kinds = self.kinds(tokens)?;
        let byte_level = |trim| {
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": trim,
            "use_regex": false})
        };
        let split = |words: &&str| {
            json!({"type": "Split", "pattern": {"Regex": words},
            "behavior": "Isolated", "invert": false})
        };
        let cuts: Vec<Value> = pre.words.iter().map(split).chain([byte_level(true)]).collect();
        Ok(json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added_tokens(tokens, &kinds, vocab),
            "normalizer": null,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
            "post_processor": self.around(tokens, (pre.add_start, false), (None, None))?,
            "decoder": byte_level(true),
            "model": {
                "type": "BPE",
                "dropout": null,
                "unk_token": null,
                "continuing_subword_prefix": null,
                "end_of_word_suffix": null,
                "fuse_unk": false,
                "byte_fallback": false,
                "ignore_merges": pre.ignore_merges,
                "vocab": vocab,
                "merges": self.merges()?,
            },
        }))
    }

    fn pre_tokenizer(&self) -> Result<&'static PreTokenizer> {
        let name = self.text(PRE)?.unwrap_or(pre::DEFAULT);
        match pre::named(name) {
            Some(pre) => Ok(pre),
            None => {
                let known: Vec<&str> = pre::ALL.iter().flat_map(|pre| pre.names).copied().collect();
                self.unsupported(format!(
                    "pre-tokenizer `{}`; supported are: {}",
                    shortened(name),
                    known.join(", ")
                ))
            }
        }
    }

    /// The type of each token; empty if the file gives no types.
    fn kinds(&self, tokens: &[&str]) -> Result<Vec<TokenType>> {
        let key = "tokenizer.ggml.token_type";
        let Some(numbers) = self.wholes(key)? else { return Ok(Vec::new()) };
        if numbers.len() != tokens.len() {
            let (found, expected) = (numbers.len(), tokens.len());
            return self.corrupt(format!("key `{key}` has {found} entries for {expected} tokens"));
        }
        Ok(numbers.into_iter().map(TokenType::of).collect())
    }

    fn added_tokens(&self, tokens: &[&str], kinds: &[TokenType], vocab: &Map<String, Value>) -> Vec<Value> {
        let added = |(id, (kind, &content)): (usize, (&TokenType, &&str))| {
            let special = matches!(kind, TokenType::Control | TokenType::Unknown);
            let is_added = special || *kind == TokenType::UserDefined;
            // An empty token would match everywhere.
            let is_texts =
                !content.is_empty() && vocab.get(content).and_then(Value::as_u64) == Some(id as u64);
            (is_added && is_texts).then(|| {
                json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                       "normalized": false, "special": special})
            })
        };
        kinds.iter().zip(tokens).enumerate().filter_map(added).collect()
    }

    fn merges(&self) -> Result<Vec<[&str; 2]>> {
        let key = "tokenizer.ggml.merges";
        // Writers leave out what is empty.
        let merges = self.texts(key)?.unwrap_or_default();
        let mut pairs = Vec::with_capacity(merges.len());
        for (index, merge) in merges.into_iter().enumerate() {
            let Some((left, right)) = merge.split_once(' ') else {
                return self
                    .corrupt(format!("entry {index} of key `{key}` is not two tokens with a space between"));
            };
            pairs.push([left, right]);
        }
        Ok(pairs)
    }

    /// The start token before a text and the end token behind it, as the file asks for them or else `adds`;
    /// or nothing.
    fn around(
        &self,
        tokens: &[&str],
        adds: (bool, bool),
        default: (Option<u64>, Option<u64>),
    ) -> Result<Value> {
        let starts = self.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(adds.0);
        let ends = self.flag("tokenizer.ggml.add_eos_token")?.unwrap_or(adds.1);
        let start = self.token_of(starts, "tokenizer.ggml.bos_token_id", default.0, tokens)?;
        let end = self.token_of(ends, "tokenizer.ggml.eos_token_id", default.1, tokens)?;
        if start.is_none() && end.is_none() {
            return Ok(Value::Null);
        }
        let text = |name: &str, type_id: u32| json!({"Sequence": {"id": name, "type_id": type_id}});
        let special = |token: &(u64, &str)| json!({"SpecialToken": {"id": token.1, "type_id": 0}});
        let around = |texts: &[Value]| {
            let (before, behind) = (start.iter().map(special), end.iter().map(special));
            before.chain(texts.iter().cloned()).chain(behind).collect::<Vec<_>>()
        };
        let known: Map<String, Value> = start
            .iter()
            .chain(&end)
            .map(|(id, token)| ((*token).to_owned(), json!({"id": token, "ids": [id], "tokens": [token]})))
            .collect();
        Ok(json!({
            "type": "TemplateProcessing",
            "single": around(&[text("A", 0)]),
            "pair": around(&[text("A", 0), text("B", 1)]),
            "special_tokens": known,
        }))
    }

    /// The token that a key names, if it is wanted: its id and text.
    fn token_of<'a>(
        &self,
        wanted: bool,
        key: &str,
        default: Option<u64>,
        tokens: &[&'a str],
    ) -> Result<Option<(u64, &'a str)>> {
        let default = default.filter(|id| (*id as usize) < tokens.len());
        let Some(id) = self.token_id(key)?.map(u64::from).or(default).filter(|_| wanted) else {
            return Ok(None);
        };
        match tokens.get(id as usize) {
            Some(token) => Ok(Some((id, token))),
            None => self.corrupt(format!("key `{key}` is {id} but there are {} tokens", tokens.len())),
        }
    }
}

/// The key that names the pre-tokenizer.
const PRE: &str = "tokenizer.ggml.pre";
