//! Vocabularies of kind `bert`: WordPiece's.

use super::{Texts, TokenType};
use crate::error::Result;
use crate::gguf::Gguf;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Begins the tokens of the file that begin words.
const WORD: char = '\u{2581}';
/// Begins the others in a `tokenizer.json`.
const PIECE: &str = "##";
/// Characters of a word that is looked up, as in the published tokenizers.
const MAX_WORD: usize = 100;
/// Ids of the tokens before a text, behind it, and for what cannot be spelt, where a file does not state
/// them: those of the published vocabulary.
const DEFAULT_IDS: [u64; 3] = [101, 102, 100];

impl Gguf {
    /// The tokenizer of a WordPiece vocabulary as a `tokenizer.json`. Where the file does not say whether
    /// letters become small, they do if no token has a capital from A to Z.
    pub(super) fn wordpiece(&self, stored: &[&str]) -> Result<Value> {
        let tokens: Vec<Cow<'_, str>> = stored.iter().map(|token| published(token)).collect();
        let tokens: Vec<&str> = tokens.iter().map(|token| &**token).collect();
        let texts = Texts::new(&tokens);
        let named = |key: &str, default: u64| {
            self.token_of(true, &format!("tokenizer.ggml.{key}"), Some(default), &tokens)
        };
        // The second key is spelt so in files.
        let start = named("bos_token_id", DEFAULT_IDS[0])?;
        let end = match named("seperator_token_id", DEFAULT_IDS[1])? {
            Some(end) => Some(end),
            None => named("eos_token_id", DEFAULT_IDS[1])?,
        };
        let unknown = named("unknown_token_id", DEFAULT_IDS[2])?;
        let (Some((start_id, start)), Some((end_id, end)), Some((_, unknown))) = (start, end, unknown) else {
            return self.corrupt(
                "the vocabulary has no tokens before and behind a text, and for what it cannot spell: \
                 expected keys `tokenizer.ggml.bos_token_id`, `seperator_token_id` and `unknown_token_id`",
            );
        };
        let has_capital =
            |token: &&str| !is_special(token) && token.bytes().any(|byte| byte.is_ascii_uppercase());
        let lowercase = match self.flag("tokenizer.ggml.normalizer.lowercase")? {
            Some(lowercase) => lowercase,
            None => !tokens.iter().any(has_capital),
        };
        let mut kinds = self.kinds(&tokens)?;
        kinds.resize(tokens.len(), TokenType::Normal);
        for (kind, token) in kinds.iter_mut().zip(&tokens) {
            if [start, end, unknown].contains(token) {
                *kind = TokenType::Control;
            }
        }
        let text = |name: &str, type_id: u32| json!({"Sequence": {"id": name, "type_id": type_id}});
        let special = |token: &str, type_id: u32| json!({"SpecialToken": {"id": token, "type_id": type_id}});
        let one = |id: u64, token: &str| json!({"id": token, "ids": [id], "tokens": [token]});
        let single = [special(start, 0), text("A", 0), special(end, 0)];
        let second = [text("B", 1), special(end, 1)];
        Ok(json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added_tokens(&tokens, &kinds, &texts.vocab),
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                           "strip_accents": null, "lowercase": lowercase},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": single,
                "pair": single.iter().chain(&second).collect::<Vec<_>>(),
                "special_tokens": {start: one(start_id, start), end: one(end_id, end)},
            },
            "decoder": {"type": "WordPiece", "prefix": PIECE, "cleanup": true},
            "model": {
                "type": "WordPiece",
                "unk_token": unknown,
                "continuing_subword_prefix": PIECE,
                "max_input_chars_per_word": MAX_WORD,
                "vocab": texts.vocab,
            },
        }))
    }
}

/// A token's text in a `tokenizer.json`: in the file, those that begin words are marked instead of those that
/// do not.
fn published(stored: &str) -> Cow<'_, str> {
    match stored.strip_prefix(WORD) {
        Some(word) if !word.is_empty() => Cow::Borrowed(word),
        _ if is_special(stored) => Cow::Borrowed(stored),
        _ => Cow::Owned(format!("{PIECE}{stored}")),
    }
}

/// Whether a text is that of a special token, such as `[CLS]`.
fn is_special(token: &str) -> bool {
    token.starts_with('[') && token.ends_with(']')
}
