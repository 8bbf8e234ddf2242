//! Vocabularies as lists of bytes, and the text of ids by these lists alone.

use crate::gguf::gguf;
use crate::gguf::writer::Writer;
use kernmill_checkpoint::tokenizer_files::TokenizerFiles;
use kernmill_runtime::Tokenizer;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

/// Tokens of o200k, without its special ones.
const O200K: u32 = 199_998;
/// Special tokens of the vocabulary that GPT-OSS has, which follow o200k's.
const HARMONY: [&str; 4] =
    ["<|endoftext|>", "<|return|>", "<|message|>", "<|a｜token｜outside of the alphabet|>"];

/// A token as its vocabulary means it.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    pub bytes: Vec<u8>,
    /// Whether a vocabulary of characters spells a byte by it.
    pub is_byte: bool,
    pub is_special: bool,
}

/// How pieces become text.
#[derive(Clone, Copy, PartialEq)]
enum Joined {
    /// By their bytes; what is no character is replaced as `String::from_utf8_lossy` does.
    Bytes,
    /// By their characters. Of a run of byte tokens, each byte that is no part of a character is replaced;
    /// the first space goes, if asked for.
    Pieces { strips: bool },
}

/// A tokenizer, and what is known of its tokens without it.
pub struct Vocabulary {
    pub name: &'static str,
    pub tokenizer: Tokenizer,
    /// The `tokenizers` crate's own.
    pub library: tokenizers::Tokenizer,
    pub pieces: Vec<Piece>,
    joined: Joined,
}

/// The text of a sequence.
pub struct Text {
    /// Text as decoding gives it.
    pub shown: String,
    /// Text with the first space, if there is one.
    pub whole: String,
    /// Whether the end is the beginning of a character.
    pub is_unfinished: bool,
    /// Whether the library replaces the same bytes: it takes none of a run of byte tokens for text if one of
    /// them is not.
    pub is_agreed: bool,
}

impl Vocabulary {
    fn new(name: &'static str, json: &[u8], pieces: Vec<Piece>, joined: Joined) -> Vocabulary {
        let tokenizer = Tokenizer::from_json(json, pieces.len() as u32).unwrap();
        let library = tokenizers::Tokenizer::from_bytes(json).unwrap();
        Vocabulary { name, tokenizer, library, pieces, joined }
    }

    /// The text of `ids`; those that the vocabulary does not have are no text.
    pub fn text(&self, ids: &[u32], shows_special: bool) -> Text {
        let known = ids.iter().filter_map(|id| self.pieces.get(*id as usize));
        let shown = known.filter(|piece| shows_special || !piece.is_special);
        let Joined::Pieces { strips } = self.joined else {
            let bytes: Vec<u8> = shown.flat_map(|piece| &piece.bytes).copied().collect();
            let whole = String::from_utf8_lossy(&bytes).into_owned();
            return Text {
                shown: whole.clone(),
                whole,
                is_unfinished: is_unfinished(&bytes),
                is_agreed: true,
            };
        };
        let (mut whole, mut run, mut is_agreed) = (String::new(), Vec::new(), true);
        for piece in shown {
            if piece.is_byte {
                run.extend_from_slice(&piece.bytes);
                continue;
            }
            is_agreed &= end(&mut run, &mut whole);
            whole += std::str::from_utf8(&piece.bytes).unwrap();
        }
        let is_unfinished = is_unfinished(&run);
        is_agreed &= end(&mut run, &mut whole);
        let shown = whole.strip_prefix(' ').filter(|_| strips).unwrap_or(&whole).to_owned();
        Text { shown, whole, is_unfinished, is_agreed }
    }
}

/// Appends the text of a run of byte tokens; whether all of it or none is text.
fn end(run: &mut Vec<u8>, text: &mut String) -> bool {
    let (mut valid, mut invalid) = (0, 0);
    for chunk in run.utf8_chunks() {
        *text += chunk.valid();
        text.extend(std::iter::repeat_n('\u{fffd}', chunk.invalid().len()));
        valid += chunk.valid().len();
        invalid += chunk.invalid().len();
    }
    run.clear();
    valid == 0 || invalid == 0
}

/// Whether bytes end within a character.
fn is_unfinished(bytes: &[u8]) -> bool {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    !last.is_empty() && std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none())
}

/// The byte-level alphabet, by byte.
fn alphabet() -> Vec<char> {
    let mut shifted = 0x100;
    let mut symbol = |byte: u8| {
        if matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) {
            return char::from(byte);
        }
        shifted += 1;
        char::from_u32(shifted - 1).unwrap()
    };
    (0..=255).map(&mut symbol).collect()
}

/// A byte-level vocabulary by its `tokenizer.json`.
fn byte_level(name: &'static str, json: &[u8]) -> Vocabulary {
    let file: Value = serde_json::from_slice(json).unwrap();
    let bytes_of: HashMap<char, u8> = alphabet().into_iter().zip(0..=255).collect();
    let mut pieces = Vec::new();
    let mut put = |id: &Value, piece: Piece| {
        let id = id.as_u64().unwrap() as usize;
        pieces.resize(pieces.len().max(id + 1), Piece::default());
        pieces[id] = piece;
    };
    for (token, id) in file["model"]["vocab"].as_object().unwrap() {
        let bytes = token.chars().map(|c| bytes_of[&c]).collect();
        put(id, Piece { bytes, ..Piece::default() });
    }
    for token in file["added_tokens"].as_array().unwrap() {
        let bytes = token["content"].as_str().unwrap().into();
        put(&token["id"], Piece { bytes, is_byte: false, is_special: token["special"].as_bool().unwrap() });
    }
    Vocabulary::new(name, json, pieces, Joined::Bytes)
}

/// The embedded model's.
pub fn nano() -> Vocabulary {
    byte_level("nano", include_bytes!("../../model-specs/nano/tokenizer.json"))
}

/// SmolLM2's, out of its GGUF file.
pub fn smollm2(path: &Path) -> Vocabulary {
    byte_level("SmolLM2", &TokenizerFiles::of(path).unwrap().read().unwrap().unwrap())
}

/// The vocabulary o200k, on which that of GPT-OSS is built, with some special tokens of GPT-OSS.
pub fn o200k() -> Vocabulary {
    let ranks = tiktoken_rs::o200k_base().unwrap();
    let alphabet = alphabet();
    let spelt = |id: u32| -> String {
        let bytes = ranks.decode_bytes(&[id]).unwrap();
        bytes.iter().map(|byte| alphabet[usize::from(*byte)]).collect()
    };
    let vocab: Map<String, Value> = (0..O200K).map(|id| (spelt(id), json!(id))).collect();
    let special = |(content, id): (&str, u32)| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false,
               "special": true})
    };
    let added: Vec<Value> = HARMONY.into_iter().zip(O200K..).map(special).collect();
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": added, "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []}
    });
    byte_level("o200k", json.to_string().as_bytes())
}

/// A SentencePiece vocabulary as a GGUF file has it: control tokens, a token of the user's, the bytes, and
/// pieces of several scripts, with spaces and without. With `prefix`, decoding takes the space before the
/// first word away.
pub fn sentencepiece(prefix: bool) -> Vocabulary {
    const CONTROL: i32 = 3;
    const USER: i32 = 4;
    const BYTE: i32 = 6;
    let mut tokens: Vec<(String, i32)> =
        [("<unk>", 2), ("<s>", CONTROL), ("</s>", CONTROL), ("<|turn|>", CONTROL)]
            .map(|(token, kind)| (token.to_owned(), kind))
            .to_vec();
    tokens.extend((0..=255).map(|byte| (format!("<0x{byte:02X}>"), BYTE)));
    tokens.push(("<tab>\t</tab>".to_owned(), USER));
    let characters = "\u{2581} aebcn,.0\n\u{e9}\u{f1}\u{3a9}\u{436}\u{5d0}\u{639}\u{939}\u{e01}世界日本語한\
        \u{1f600}\u{1f44d}\u{200d}\u{301}\u{fffd}\u{2019}<>";
    tokens.extend(characters.chars().map(|c| (c.to_string(), 1)));
    tokens.extend((2..=16).map(|count| ("\u{2581}".repeat(count), 1)));
    let words = include_str!("../fixtures/nano/words.txt").lines().filter(|word| word.len() > 1);
    for (index, word) in words.step_by(7).take(2000).enumerate() {
        let piece = if index % 3 == 0 { word.to_owned() } else { format!("\u{2581}{word}") };
        if !tokens.iter().any(|(token, _)| *token == piece) {
            tokens.push((piece, 1));
        }
    }
    let texts: Vec<&str> = tokens.iter().map(|(token, _)| token.as_str()).collect();
    let mut writer = Writer::default();
    writer.set("tokenizer.ggml.model", "llama");
    writer.set("tokenizer.ggml.tokens", &texts[..]);
    writer.set("tokenizer.ggml.token_type", &tokens.iter().map(|(_, kind)| *kind).collect::<Vec<_>>()[..]);
    writer.set("tokenizer.ggml.scores", &(0..tokens.len()).map(|id| -(id as f32)).collect::<Vec<_>>()[..]);
    writer.set("tokenizer.ggml.add_space_prefix", prefix);
    let json = gguf(writer.bytes()).tokenizer_json().unwrap().unwrap();
    let piece = |(token, kind): &(String, i32)| match *kind {
        BYTE => Piece {
            bytes: vec![u8::from_str_radix(&token[3..5], 16).unwrap()],
            is_byte: true,
            is_special: false,
        },
        kind => Piece {
            bytes: token.replace('\u{2581}', " ").into_bytes(),
            is_byte: false,
            is_special: matches!(kind, 2 | CONTROL),
        },
    };
    let pieces = tokens.iter().map(piece).collect();
    let name = if prefix { "SentencePiece" } else { "SentencePiece without a first space" };
    Vocabulary::new(name, &json, pieces, Joined::Pieces { strips: prefix })
}
