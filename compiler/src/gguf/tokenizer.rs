//! The tokenizer of a GGUF file as a `tokenizer.json`, and its chat template.

use super::Gguf;
use crate::checkpoint::Result;
use serde_json::{Map, Value, json};

/// How text is cut into words before merging, by the name that files give it.
struct PreTokenizer {
    names: &'static [&'static str],
    /// Expression whose matches are the words.
    words: &'static str,
    /// Whether a word that is a token is taken as it is, whatever the merges.
    ignore_merges: bool,
    /// Whether texts begin with the start token, where the file does not say.
    add_start: bool,
}

const PRE_TOKENIZERS: [PreTokenizer; 3] = [
    PreTokenizer {
        names: &["gpt-4o"],
        words: concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        ignore_merges: false,
        add_start: false,
    },
    PreTokenizer {
        names: &["llama-bpe", "llama3", "llama-v3"],
        words: concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        ignore_merges: true,
        add_start: true,
    },
    PreTokenizer {
        names: &["gpt-2"],
        words: r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        ignore_merges: false,
        add_start: false,
    },
];

/// Types of tokens that are recognised before a text is cut into words.
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

impl Gguf {
    /// The chat template, if there is one.
    ///
    /// # Errors
    /// If it is not text.
    pub fn chat_template(&self) -> Result<Option<&str>> {
        self.text("tokenizer.chat_template")
    }

    /// The tokenizer, if there is one, as the contents of a `tokenizer.json`.
    ///
    /// # Errors
    /// If its parts contradict each other, or it is of a kind that is not supported.
    pub fn tokenizer_json(&self) -> Result<Option<Vec<u8>>> {
        match self.text("tokenizer.ggml.model")? {
            None | Some("none") => return Ok(None),
            Some("gpt2") => {}
            Some("llama") => {
                return self.unsupported(
                    "its tokenizer is SentencePiece's (`llama`); supported is: byte-level BPE (`gpt2`)",
                );
            }
            Some(other) => {
                return self
                    .unsupported(format!("tokenizer `{other}`; supported is: byte-level BPE (`gpt2`)"));
            }
        }
        let pre = self.pre_tokenizer()?;
        let Some(tokens) = self.texts("tokenizer.ggml.tokens")? else {
            return self.corrupt("key `tokenizer.ggml.tokens` is missing: expected an array of strings");
        };
        let byte_level = |trim| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": trim, "use_regex": false});
        let words = json!({"type": "Split", "pattern": {"Regex": pre.words}, "behavior": "Isolated", "invert": false});
        let tokenizer = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added_tokens(&tokens)?,
            "normalizer": null,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [words, byte_level(true)]},
            "post_processor": self.start(pre, &tokens)?,
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
                "vocab": self.vocab(&tokens)?,
                "merges": self.merges()?,
            },
        });
        Ok(Some(tokenizer.to_string().into_bytes()))
    }

    fn pre_tokenizer(&self) -> Result<&'static PreTokenizer> {
        let Some(name) = self.text("tokenizer.ggml.pre")? else {
            return self.corrupt("key `tokenizer.ggml.pre` is missing: expected the name of a pre-tokenizer");
        };
        match PRE_TOKENIZERS.iter().find(|pre| pre.names.contains(&name)) {
            Some(pre) => Ok(pre),
            None => {
                let known: Vec<&str> = PRE_TOKENIZERS.iter().flat_map(|pre| pre.names).copied().collect();
                self.unsupported(format!("pre-tokenizer `{name}`; supported are: {}", known.join(", ")))
            }
        }
    }

    fn vocab(&self, tokens: &[&str]) -> Result<Map<String, Value>> {
        let mut vocab = Map::new();
        for (id, &token) in tokens.iter().enumerate() {
            if let Some(first) = vocab.insert(token.to_owned(), id.into()) {
                return self.corrupt(format!("token `{token}` has two ids, {first} and {id}"));
            }
        }
        Ok(vocab)
    }

    fn added_tokens(&self, tokens: &[&str]) -> Result<Vec<Value>> {
        let key = "tokenizer.ggml.token_type";
        let Some(types) = self.wholes(key)? else { return Ok(Vec::new()) };
        if types.len() != tokens.len() {
            return self.corrupt(format!(
                "key `{key}` has {} entries for {} tokens",
                types.len(),
                tokens.len()
            ));
        }
        let added = |(id, (&kind, &content)): (usize, (&u64, &&str))| {
            let special = kind == CONTROL;
            // An empty token would match everywhere.
            (matches!(kind, CONTROL | USER_DEFINED) && !content.is_empty()).then(|| {
                json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                       "normalized": false, "special": special})
            })
        };
        Ok(types.iter().zip(tokens).enumerate().filter_map(added).collect())
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

    /// What puts the start token before a text, or nothing.
    fn start(&self, pre: &PreTokenizer, tokens: &[&str]) -> Result<Value> {
        if !self.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(pre.add_start) {
            return Ok(Value::Null);
        }
        let key = "tokenizer.ggml.bos_token_id";
        let Some(id) = self.whole(key)? else { return Ok(Value::Null) };
        let Some(token) = tokens.get(id as usize) else {
            return self.corrupt(format!("key `{key}` is {id} but there are {} tokens", tokens.len()));
        };
        let text = |name: &str, type_id: u32| json!({"Sequence": {"id": name, "type_id": type_id}});
        let start = json!({"SpecialToken": {"id": token, "type_id": 0}});
        Ok(json!({
            "type": "TemplateProcessing",
            "single": [start, text("A", 0)],
            "pair": [start, text("A", 0), text("B", 1)],
            "special_tokens": {*token: {"id": token, "ids": [id], "tokens": [token]}},
        }))
    }
}
