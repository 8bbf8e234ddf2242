//! A byte-level BPE tokenizer of any vocabulary size, in the `tokenizer.json` format. Its merges are made up.

use serde_json::{Map, Value, json};

const LETTERS: &str = "etaoinshrdlucmfwypvbgkqjxzETAOINSHRDLUCMFWYPVBGKQJXZ";
const END_OF_TEXT: &str = "<|endoftext|>";

/// A byte-level BPE tokenizer whose ids are those of a vocabulary: the 256 bytes, merges of letters, and an
/// end of text.
///
/// Below 257 ids there is no room for all bytes; the tokenizer then knows the first ones only.
pub(super) struct MadeTokenizer {
    /// Texts by id.
    pub(super) tokens: Vec<String>,
    /// The pairs of tokens that become one, in the order of their ids.
    pub(super) merges: Vec<(String, String)>,
}

impl MadeTokenizer {
    pub(super) fn of(vocab: usize) -> MadeTokenizer {
        let end_of_text = end_of_text(vocab);
        let room = end_of_text.unwrap_or(vocab);
        let mut tokens: Vec<String> = byte_symbols().into_iter().take(room).map(String::from).collect();
        let mut merges = Vec::with_capacity(room.saturating_sub(256));
        // Words of n + 1 letters are a word of n letters and a letter.
        let mut words: Vec<String> = LETTERS.chars().map(String::from).collect();
        while tokens.len() < room {
            let mut longer = Vec::new();
            'words: for word in &words {
                for letter in LETTERS.chars() {
                    if tokens.len() == room {
                        break 'words;
                    }
                    let token = format!("{word}{letter}");
                    merges.push((word.clone(), letter.to_string()));
                    tokens.push(token.clone());
                    longer.push(token);
                }
            }
            words = longer;
        }
        tokens.extend(end_of_text.map(|_| END_OF_TEXT.to_owned()));
        MadeTokenizer { tokens, merges }
    }

    /// The id that ends a text.
    pub(super) fn end_of_text(&self) -> Option<usize> {
        end_of_text(self.tokens.len())
    }
}

/// The token that ends a text in [`tokenizer_json`], if there is room for it.
pub fn end_of_text(vocab: usize) -> Option<usize> {
    (vocab > 256).then(|| vocab - 1)
}

/// A byte-level BPE tokenizer whose ids are exactly `0..vocab`: the 256 bytes, merges of letters, and an end
/// of text, if there is room for all.
pub fn tokenizer_json(vocab: usize) -> String {
    let made = MadeTokenizer::of(vocab);
    let end = made.end_of_text();
    let ids: Map<String, Value> = (0..)
        .zip(&made.tokens)
        .filter(|(id, _)| Some(*id) != end)
        .map(|(id, token)| (token.clone(), json!(id)))
        .collect();
    let added: Vec<Value> = end
        .into_iter()
        .map(|id| {
            json!({ "id": id, "content": END_OF_TEXT, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": true })
        })
        .collect();
    let byte_level =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                   "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                   "vocab": ids, "merges": made.merges }
    })
    .to_string()
}

/// The character that stands for each byte in byte-level BPE: itself where it prints, else one from U+0100
/// on.
fn byte_symbols() -> Vec<char> {
    let mut next = 0x100;
    (0..=255u8)
        .map(|byte| match byte {
            0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
            _ => {
                next += 1;
                char::from_u32(next - 1).expect("below the surrogates")
            }
        })
        .collect()
}
