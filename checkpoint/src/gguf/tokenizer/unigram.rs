//! Vocabularies of kind `t5`: Unigram's, whose tokens have scores, as XLM-RoBERTa's files have them.

use super::TokenType;
use crate::error::Result;
use crate::gguf::Gguf;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernmill_os::text::shortened;
use serde_json::{Map, Value, json};

/// Stands for a space in tokens.
const SPACE: &str = "\u{2581}";
/// Ids of the start and the end token where a file does not state them: those of XLM-RoBERTa.
const DEFAULT_IDS: (Option<u64>, Option<u64>) = (Some(0), Some(2));

impl Gguf {
    /// The tokenizer of a Unigram vocabulary as a `tokenizer.json`, as transformers has it for XLM-RoBERTa:
    /// several spaces become one, and those around a text go. The key for that is not read, since converters
    /// write a flag of another meaning into it.
    pub(super) fn unigram(&self, tokens: &[&str], vocab: &Map<String, Value>) -> Result<Value> {
        let mut kinds = self.kinds(tokens)?;
        kinds.resize(tokens.len(), TokenType::Normal);
        if let Some(id) = kinds.iter().position(|kind| *kind == TokenType::Byte) {
            let token = shortened(tokens[id]);
            return self.unsupported(format!("token `{token}` of a byte in a Unigram vocabulary"));
        }
        let unknown = match self.token_id("tokenizer.ggml.unknown_token_id")? {
            Some(id) => Some(id as usize),
            None => kinds.iter().position(|kind| *kind == TokenType::Unknown),
        };
        let Some(unknown) = unknown.filter(|id| *id < tokens.len()) else {
            return self.corrupt(format!(
                "the vocabulary has no token for what it cannot spell: expected key \
                 `tokenizer.ggml.unknown_token_id`, below {}",
                tokens.len()
            ));
        };
        let scores = self.scores(tokens)?;
        if let Some(id) = scores.iter().position(|score| !score.is_finite()) {
            return self.corrupt(format!("entry {id} of key `tokenizer.ggml.scores` is not a finite number"));
        }
        let is_used = |id: usize| kinds[id] != TokenType::Unused;
        // The library's score of the unknown lies below all others, so that those of fillers must not count.
        let used = (0..tokens.len()).filter(|id| is_used(*id));
        let least = used.map(|id| scores[id]).reduce(f32::min).unwrap_or_default();
        let piece = |(id, token): (usize, &&str)| match is_used(id) {
            true => json!([token, f64::from(scores[id])]),
            // No text has a space in it where tokens are looked up: a filler stands for none.
            false => json!([format!(" {token}"), f64::from(least)]),
        };
        let pieces: Vec<Value> = tokens.iter().enumerate().map(piece).collect();
        let prefix = self.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
        let scheme = if prefix { "always" } else { "never" };
        let spaces =
            json!({"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": true});
        Ok(json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added_tokens(tokens, &kinds, vocab),
            "normalizer": self.precompiled()?,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, spaces]},
            "post_processor": self.around(tokens, (true, true), DEFAULT_IDS)?,
            "decoder": spaces,
            "model": {"type": "Unigram", "unk_id": unknown, "vocab": pieces, "byte_fallback": false},
        }))
    }

    /// The map of characters, if there is one.
    fn precompiled(&self) -> Result<Value> {
        let key = "tokenizer.ggml.precompiled_charsmap";
        match self.bytes_of(key)? {
            None | Some([]) => Ok(Value::Null),
            Some(map) => Ok(json!({"type": "Precompiled", "precompiled_charsmap": STANDARD.encode(map)})),
        }
    }

    /// A score for each token.
    pub(super) fn scores(&self, tokens: &[&str]) -> Result<Vec<f32>> {
        let key = "tokenizer.ggml.scores";
        let Some(scores) = self.floats(key)? else {
            return self.corrupt(format!("key `{key}` is missing: expected an array of numbers"));
        };
        if scores.len() != tokens.len() {
            let (found, expected) = (scores.len(), tokens.len());
            return self.corrupt(format!("key `{key}` has {found} entries for {expected} tokens"));
        }
        Ok(scores)
    }
}
