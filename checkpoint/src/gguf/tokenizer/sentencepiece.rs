//! Vocabularies of kind `llama`: SentencePiece's, whose tokens have scores in place of merges.

use super::TokenType;
use crate::error::Result;
use crate::gguf::Gguf;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Stands for a space in tokens.
const SPACE: &str = "\u{2581}";
/// Ids of the start and the end token where a file does not state them.
pub(super) const DEFAULT_IDS: (Option<u64>, Option<u64>) = (Some(1), Some(2));
/// Bytes of a token that is made by merging. The longest published ones are 31 spaces.
const MAX_TOKEN_BYTES: usize = 128;
/// Merges for each token of the vocabulary, at most. Published ones have 2 to 3.
const MAX_MERGES_PER_TOKEN: usize = 16;

/// A pair of tokens whose texts together are a token's.
struct TokenMerge<'a> {
    left: &'a str,
    right: &'a str,
    score: f32,
}

impl Gguf {
    /// The tokenizer of a SentencePiece vocabulary as a `tokenizer.json`.
    pub(super) fn sentencepiece(&self, tokens: &[&str], vocab: &Map<String, Value>) -> Result<Value> {
        let kinds = self.kinds(tokens)?;
        let prefix = self.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
        let unknown = match self.token_id("tokenizer.ggml.unknown_token_id")? {
            Some(id) => Some(id as usize),
            None => kinds.iter().position(|kind| *kind == TokenType::Unknown),
        };
        let unknown = unknown.and_then(|id| tokens.get(id));
        let merges = match self.merges()? {
            merges if merges.is_empty() => self.merges_by_score(tokens, &kinds)?,
            merges => merges,
        };
        let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
        let back = json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "});
        let (mut before, mut after) =
            (vec![spaces], vec![back, json!({"type": "ByteFallback"}), json!({"type": "Fuse"})]);
        if prefix {
            before.insert(0, json!({"type": "Prepend", "prepend": SPACE}));
            after.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        Ok(json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added_tokens(tokens, &kinds, vocab),
            "normalizer": {"type": "Sequence", "normalizers": before},
            "pre_tokenizer": null,
            "post_processor": self.around(tokens, (true, false), DEFAULT_IDS)?,
            "decoder": {"type": "Sequence", "decoders": after},
            "model": {
                "type": "BPE",
                "dropout": null,
                "unk_token": unknown,
                "continuing_subword_prefix": null,
                "end_of_word_suffix": null,
                "fuse_unk": true,
                "byte_fallback": kinds.contains(&TokenType::Byte),
                "ignore_merges": false,
                "vocab": vocab,
                "merges": merges,
            },
        }))
    }

    /// The merges that scores stand for: of two neighbours whose texts together are a token's, those of the
    /// highest score join first. Of equal scores, the longer left part comes first, as in the conversion that
    /// other programs use.
    fn merges_by_score<'a>(&'a self, tokens: &[&'a str], kinds: &[TokenType]) -> Result<Vec<[&'a str; 2]>> {
        let scores = self.scores(tokens)?;
        let is_piece =
            |id: usize| matches!(kinds.get(id), None | Some(TokenType::Normal | TokenType::UserDefined));
        let pieces: HashMap<&str, usize> = tokens
            .iter()
            .enumerate()
            .filter(|(id, _)| is_piece(*id))
            .map(|(id, token)| (*token, id))
            .collect();
        let mut merges = Vec::new();
        for (id, &token) in tokens.iter().enumerate() {
            if pieces.get(token) != Some(&id) {
                continue;
            }
            let score = scores[id];
            for (at, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(at);
                if pieces.contains_key(left) && pieces.contains_key(right) {
                    merges.push(TokenMerge { left, right, score });
                }
            }
            if token.len() > MAX_TOKEN_BYTES && token.chars().nth(1).is_some() {
                return self.unsupported(format!(
                    "a token of {} bytes in a SentencePiece vocabulary, expected at most {MAX_TOKEN_BYTES}",
                    token.len()
                ));
            }
            if merges.len() > MAX_MERGES_PER_TOKEN * tokens.len() {
                return self.unsupported(format!(
                    "a SentencePiece vocabulary of {} tokens with more than {MAX_MERGES_PER_TOKEN} merges for each",
                    tokens.len()
                ));
            }
        }
        merges.sort_by(TokenMerge::order);
        Ok(merges.into_iter().map(|merge| [merge.left, merge.right]).collect())
    }
}

impl TokenMerge<'_> {
    fn order(&self, other: &TokenMerge<'_>) -> Ordering {
        let length = |text: &str| text.chars().count();
        let scores = other.score.total_cmp(&self.score);
        let lefts = || length(other.left).cmp(&length(self.left));
        scores.then_with(lefts).then_with(|| length(other.right).cmp(&length(self.right)))
    }
}
