mod refusals;
mod unigram;

use crate::tokenizer::bytes::fallback_byte;
use crate::tokenizer::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokenizers::Decoder;

/// The byte-level alphabet, by byte.
fn alphabet() -> Vec<String> {
    let mut shifted = 0x100;
    let mut symbol = |byte: u8| {
        // Printable bytes are themselves, the others follow from U+0100.
        if matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) {
            return char::from(byte).to_string();
        }
        shifted += 1;
        char::from_u32(shifted - 1).unwrap().to_string()
    };
    (0..=255).map(&mut symbol).collect()
}

fn special(id: usize, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
           "special": true})
}

/// A byte-level tokenizer: id b is byte b, then these pieces, then the special tokens.
fn byte_level(pieces: &[&[u8]], special_tokens: &[&str]) -> Value {
    let alphabet = alphabet();
    let mut vocab: serde_json::Map<String, Value> =
        alphabet.iter().enumerate().map(|(id, symbol)| (symbol.clone(), id.into())).collect();
    for piece in pieces {
        let (id, symbols) =
            (vocab.len(), piece.iter().map(|byte| alphabet[usize::from(*byte)].as_str()).collect());
        vocab.entry::<String>(symbols).or_insert(id.into());
    }
    let added: Vec<Value> =
        special_tokens.iter().enumerate().map(|(i, content)| special(vocab.len() + i, content)).collect();
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": added, "pre_tokenizer": level, "decoder": level, "model": bpe(&vocab, &[], false),
    })
}

fn bpe(vocab: &serde_json::Map<String, Value>, merges: &[[&str; 2]], fallback: bool) -> Value {
    json!({"type": "BPE", "dropout": null, "unk_token": fallback.then_some("<unk>"), "continuing_subword_prefix": null,
           "end_of_word_suffix": null, "fuse_unk": fallback, "byte_fallback": fallback, "vocab": vocab,
               "merges": merges})
}

/// A byte-level tokenizer without merges: id b is byte b, 256 is an end token.
pub(crate) fn byte_tokenizer_json() -> Vec<u8> {
    serde_json::to_vec(&byte_level(&[], &["</s>"])).unwrap()
}

/// The effect of a decoder of `<0x0A>` tokens on the spaces.
fn sentencepiece_decoder(strips: bool) -> Value {
    let mut steps = vec![
        json!({"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if strips {
        steps.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    json!({"type": "Sequence", "decoders": steps})
}

/// A tokenizer of the SentencePiece kind: <unk>, <s>, </s>, 256 bytes, then the words and their beginnings.
fn sentencepiece(words: &[&str], decoder: Value) -> Value {
    let mut vocab = serde_json::Map::new();
    for token in ["<unk>", "<s>", "</s>"] {
        vocab.insert(token.to_owned(), vocab.len().into());
    }
    for byte in 0..256 {
        vocab.insert(format!("<0x{byte:02X}>"), vocab.len().into());
    }
    let mut merges = Vec::new();
    for word in words {
        for (at, c) in word.char_indices() {
            let end = at + c.len_utf8();
            if !vocab.contains_key(&word[at..end]) {
                vocab.insert(word[at..end].to_owned(), vocab.len().into());
            }
            if at > 0 && !vocab.contains_key(&word[..end]) {
                vocab.insert(word[..end].to_owned(), vocab.len().into());
                merges.push([&word[..at], &word[at..end]]);
            }
        }
    }
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
    let start = json!({"SpecialToken": {"id": "<s>", "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "pre_tokenizer": null,
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u{2581}"}, replace]},
        "post_processor": {"type": "TemplateProcessing", "single": [start, text], "pair": [start, text],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": decoder, "model": bpe(&vocab, &merges, true),
    })
}

const WORDS: [&str; 6] =
    ["\u{2581}Once", "\u{2581}upon", "\u{2581}\u{2581}", "\u{2581}世界", "ing", "\u{2581}é"];

fn read(json: &Value) -> Tokenizer {
    Tokenizer::from_json(&serde_json::to_vec(json).unwrap(), 1 << 20).unwrap()
}

fn refusal(json: &Value) -> String {
    Tokenizer::from_json(&serde_json::to_vec(json).unwrap(), 1 << 20).unwrap_err().to_string()
}

/// Tokenizers with every kind of decoder.
fn kinds() -> Vec<(&'static str, Value)> {
    let pieces: [&[u8]; 6] = [b"\xea\xb0", b"\xa0\xeb", b"\xae", b" a", b"\xf0\x9f\x98", b"\x80\xf0\x9f"];
    let plain = |decoder| sentencepiece(&WORDS, decoder);
    vec![
        ("byte level", byte_level(&pieces, &["</s>", "<|x|>"])),
        ("sentencepiece", plain(sentencepiece_decoder(true))),
        ("sentencepiece without prefix", plain(sentencepiece_decoder(false))),
        (
            "metaspace",
            plain(json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always"})),
        ),
        (
            "metaspace never",
            plain(json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "never"})),
        ),
        ("word pieces", plain(json!({"type": "WordPiece", "prefix": "i", "cleanup": true}))),
        ("suffix", plain(json!({"type": "BPEDecoder", "suffix": "e"}))),
        ("words", plain(Value::Null)),
        ("strip of tokens", plain(json!({"type": "Strip", "content": "\u{2581}", "start": 2, "stop": 0}))),
        (
            "strip of both ends",
            plain(json!({"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"Regex": "[\u{2581}n]"}, "content": " "}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})),
        ),
    ]
}

/// The text of tokens by the library's decoder. Where tokens are single bytes, the library replaces a whole
/// run of them if one is no character; here the characters within are kept, so every run is spelt out first.
fn reference(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let added = tokenizer.inner.get_added_vocabulary();
    let tokens = ids.iter().filter_map(|id| tokenizer.inner.id_to_token(*id));
    let tokens: Vec<String> = tokens.filter(|token| !added.is_special_token(token)).collect();
    let Some(decoder) = tokenizer.inner.get_decoder() else { return tokens.join(" ") };
    let falls_back = tokenizer.steps.iter().any(|step| matches!(step, DecodeStep::ByteFallback(_)));
    if tokens.is_empty() {
        return String::new();
    }
    if !falls_back {
        return decoder.decode(tokens).unwrap();
    }
    let mut spelt = Vec::new();
    let mut rest = &tokens[..];
    while let Some(first) = rest.first() {
        let bytes: Vec<u8> = rest.iter().map_while(|token| fallback_byte(token)).collect();
        if bytes.is_empty() {
            spelt.push(first.clone());
            rest = &rest[1..];
            continue;
        }
        rest = &rest[bytes.len()..];
        let mut at = 0;
        while at < bytes.len() {
            let whole = (1..=4).find_map(|n| std::str::from_utf8(bytes.get(at..at + n)?).ok());
            spelt.push(whole.unwrap_or("\u{fffd}").to_owned());
            at += whole.map_or(1, str::len);
        }
    }
    decoder.decode(spelt).unwrap()
}

/// Streams `ids`, and checks that what has been shown at any time is the beginning of the whole text.
fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut stream = TextStream::new();
    let mut text = String::new();
    for id in ids {
        text += &stream.push(tokenizer, *id).unwrap();
    }
    text + &stream.finish(tokenizer).unwrap()
}

/// Random sequences of `ids`, of one to 40 tokens; half of them from a few ids, so that runs of bytes occur.
fn check_streams(name: &str, tokenizer: &Tokenizer, ids: &[u32], count: usize) {
    let mut rng = fastrand::Rng::with_seed(11);
    for _ in 0..count {
        let few: Vec<u32> = (0..6).map(|_| ids[rng.usize(..ids.len())]).collect();
        let from = if rng.bool() { ids } else { &few };
        let sequence: Vec<u32> = (0..rng.usize(1..=40)).map(|_| from[rng.usize(..from.len())]).collect();
        let expected = reference(tokenizer, &sequence);
        assert_eq!(streamed(tokenizer, &sequence), expected, "{name}: {sequence:?}");
        assert_eq!(tokenizer.decode(&sequence).unwrap(), expected, "{name}: {sequence:?}");
        check_continuation(name, tokenizer, &sequence, &expected, rng.usize(..sequence.len()));
    }
}

/// The continuation of a prompt is the rest of the whole text behind the prompt's, where the prompt's is a
/// beginning of it.
fn check_continuation(name: &str, tokenizer: &Tokenizer, ids: &[u32], whole: &str, at: usize) {
    let mut stream = TextStream::new();
    stream.skip(tokenizer, &ids[..at]).unwrap();
    let mut text = String::new();
    for id in &ids[at..] {
        text += &stream.push(tokenizer, *id).unwrap();
    }
    text += &stream.finish(tokenizer).unwrap();
    if let Some(rest) = whole.strip_prefix(reference(tokenizer, &ids[..at]).as_str()) {
        assert_eq!(text, rest, "{name}: {ids:?} at {at}");
    } else {
        // The prompt ended within a character: the stream shows it whole.
        assert!(whole.ends_with(&text), "{name}: {ids:?} at {at}");
    }
}

/// How many random sequences a kind is tried with: KERNMILL_STREAMS, or some thousand.
fn count() -> usize {
    std::env::var("KERNMILL_STREAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

#[test]
fn streamed_text_is_the_whole_texts_decoding_with_every_decoder() {
    for (name, json) in kinds() {
        let tokenizer = read(&json);
        let ids: Vec<u32> = (0..tokenizer.inner.get_vocab_size(true) as u32 + 2).collect();
        check_streams(name, &tokenizer, &ids, count());
        // Bytes alone: characters in pieces, and bytes of no character.
        let bytes: Vec<u32> = "aé世😀".bytes().chain([0xff, 0x80, 0xf0]).map(u32::from).collect();
        let first = tokenizer.token_id("<0x00>").unwrap_or(0);
        check_streams(name, &tokenizer, &bytes.iter().map(|byte| byte + first).collect::<Vec<_>>(), count());
    }
}

#[test]
fn streams_of_the_nano_tokenizer_are_its_decoding() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../model-specs/nano/tokenizer.json");
    let tokenizer = Tokenizer::from_json(&std::fs::read(path).unwrap(), 3072).unwrap();
    check_streams("nano", &tokenizer, &(0..3072).collect::<Vec<_>>(), count());
}

#[test]
fn pieces_that_cross_characters_wait_for_three_bytes_at_most() {
    let text = "갠뮤풍!😀🎉👍";
    let bytes = text.as_bytes();
    // Every way to cut it into pieces of 2 or 5 bytes ends within characters.
    for size in [2, 5] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        let json = byte_level(&pieces, &[]);
        let tokenizer = read(&json);
        let mut stream = TextStream::new();
        let (mut shown, mut given) = (String::new(), 0);
        for piece in pieces {
            let symbols: String = piece.iter().map(|byte| alphabet()[usize::from(*byte)].clone()).collect();
            shown += &stream.push(&tokenizer, tokenizer.token_id(&symbols).unwrap()).unwrap();
            given += piece.len();
            assert!(text.starts_with(&shown) && given - shown.len() <= 3, "{shown:?} of {given} bytes");
        }
        assert_eq!(shown, text);
    }
}

#[test]
fn a_space_alone_then_bytes_then_words_are_all_shown() {
    let tokenizer = read(&sentencepiece(&WORDS, sentencepiece_decoder(true)));
    let id = |token: &str| tokenizer.token_id(token).unwrap();
    let emoji: Vec<u32> = "😀".bytes().map(|byte| id(&format!("<0x{byte:02X}>"))).collect();
    let said = [&[id("\u{2581}")], &emoji[..], &[id("\u{2581}upon"), id("</s>"), id("ing")]].concat();
    let mut stream = TextStream::new();
    stream.skip(&tokenizer, &tokenizer.encode("Once", true).unwrap()).unwrap();
    let shown: Vec<String> = said.iter().map(|id| stream.push(&tokenizer, *id).unwrap()).collect();
    assert_eq!(shown, [" ", "", "", "", "😀", " upon", "", "ing"]);
    assert_eq!(tokenizer.decode(&said).unwrap(), "😀 uponing");
}

#[test]
fn special_tokens_are_shown_when_asked_for() {
    let tokenizer = read(&byte_level(&[], &["<|channel|>", "<|end|>"]));
    let ids = tokenizer.encode("<|channel|>final<|end|>é", false).unwrap();
    assert_eq!((ids[0], ids[6]), (256, 257));
    let show = |mut stream: TextStream| {
        let shown: String = ids.iter().map(|id| stream.push(&tokenizer, *id).unwrap()).collect();
        shown
    };
    assert_eq!(show(TextStream::new()), "finalé");
    assert_eq!(show(TextStream::new().with_special()), "<|channel|>final<|end|>é");
    assert_eq!(tokenizer.special_token_id("<|end|>"), Some(257));
    assert_eq!(tokenizer.special_token_id("a"), None);
    assert_eq!(tokenizer.special_token_in("x<|end|>\n"), Some("<|end|>"));
    assert_eq!(tokenizer.special_token_in("x<|end"), None);
}

#[test]
fn silent_tokens_cost_no_more_than_others() {
    let byte = read(&byte_level(&[b"\xf0\x9f"], &["<|x|>", "</s>"]));
    let pieces = read(&sentencepiece(&WORDS, sentencepiece_decoder(true)));
    let id = |token: &str| pieces.token_id(token).unwrap();
    // Special tokens, beginnings of characters without an end, ends without a beginning, ids that nothing
    // has, and all of them in turn.
    let cases: [(&str, &Tokenizer, &[u32]); 10] = [
        ("special", &byte, &[257]),
        ("two special ones", &byte, &[257, 258]),
        ("first bytes", &byte, &[0xe4]),
        ("first halves", &byte, &[256]),
        ("last bytes", &byte, &[0x80]),
        ("ids past the vocabulary", &byte, &[5000, 1 << 30]),
        ("all in turn", &byte, &[257, 0xe4, 258, 256, 5000, 0x80]),
        ("special among pieces", &pieces, &[id("<s>"), id("</s>")]),
        ("first bytes among pieces", &pieces, &[id("<0xE4>")]),
        ("special and first bytes", &pieces, &[id("<unk>"), id("<0xF0>"), id("</s>"), id("<0x9F>")]),
    ];
    for (what, tokenizer, ids) in cases {
        for stream in [TextStream::new(), TextStream::new().with_special()] {
            let mut stream = stream;
            let start = Instant::now();
            for n in 0..100_000 {
                stream.push(tokenizer, ids[n % ids.len()]).unwrap();
            }
            // The square of this number of steps would take minutes.
            assert!(start.elapsed() < Duration::from_secs(5), "{what}: {:?}", start.elapsed());
        }
    }
}

#[test]
fn text_round_trips_and_end_tokens_are_found() {
    let tokenizer = Tokenizer::from_json(&byte_tokenizer_json(), 257).unwrap();
    let ids = tokenizer.encode("Grüße, 世界</s>", true).unwrap();
    assert_eq!(ids.last(), Some(&256));
    assert_eq!(tokenizer.decode(&ids).unwrap(), "Grüße, 世界");
    assert_eq!(tokenizer.end_tokens(), [256]);
    let named = read(&byte_level(
        &[],
        &["<end_of_turn>", "<|eom_id|>", "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>"],
    ));
    let mut ends = named.end_tokens();
    ends.sort_unstable();
    assert_eq!(ends, [256, 257, 258]);
}

#[test]
fn tokens_past_the_vocabulary_matter_only_in_texts_that_hold_them() {
    let json = serde_json::to_vec(&byte_level(&[], &["</s>", "[PAD]"])).unwrap();
    let tokenizer = Tokenizer::from_json(&json, 257).unwrap();
    assert_eq!(tokenizer.encode("PAD</s>", true).unwrap(), [80, 65, 68, 256]);
    let error = tokenizer.encode("a[PAD]", true).unwrap_err();
    assert_eq!(error, TokenizerError::PastVocabulary { token: "[PAD]".to_owned(), id: 257, vocab: 257 });
    assert!(error.to_string().contains("token `[PAD]` (id 257)"), "{error}");
    let small = Tokenizer::from_json(&json, 200).unwrap();
    assert!(small.end_tokens().is_empty());
    assert!(small.encode("é", false).is_ok());
    assert!(matches!(small.encode("\u{fffd}", false), Err(TokenizerError::PastVocabulary { id: 239, .. })));
}

#[test]
fn ids_with_the_same_text_are_all_shown() {
    let mut json = byte_level(&[], &["</s>"]);
    json["same_text"] = json!({"300": "a", "301": "</s>"});
    let tokenizer = read(&json);
    assert_eq!(tokenizer.decode(&[300, 98, 301, 97]).unwrap(), "aba");
    assert_eq!(tokenizer.encode("a", false).unwrap(), [97]);
    json["same_text"] = json!(["a"]);
    assert!(refusal(&json).contains("`same_text`"), "{}", refusal(&json));
}
