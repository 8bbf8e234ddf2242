//! Tokenizers out of GGUF metadata.

use super::gguf;
use super::writer::Writer;
use kernmill_runtime::Tokenizer;

/// The 256 characters that stand for bytes, in the order of the bytes.
fn alphabet() -> Vec<String> {
    let mut next = 0x100u32;
    let mut character = |byte: u8| {
        if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            return char::from(byte).to_string();
        }
        next += 1;
        char::from_u32(next - 1).unwrap().to_string()
    };
    (0..=255).map(&mut character).collect()
}

const MERGES: [&str; 6] = ["1 2", "12 3", "123 4", "a B", "Ġ w", "h i"];

/// A file whose tokens are bytes, six merges, a start token 262 and an end token 263.
fn writer(pre: &str) -> Writer {
    let mut tokens = alphabet();
    tokens.extend(MERGES.map(|merge| merge.replace(' ', "")));
    tokens.extend(["<|startoftext|>".to_owned(), "<|return|>".to_owned()]);
    let mut types = vec![1; 262];
    types.extend([3, 3]);
    let mut writer = Writer::default();
    writer.set("tokenizer.ggml.model", "gpt2");
    writer.set("tokenizer.ggml.pre", pre);
    writer.set("tokenizer.ggml.tokens", &tokens.iter().map(String::as_str).collect::<Vec<_>>()[..]);
    writer.set("tokenizer.ggml.token_type", &types[..]);
    writer.set("tokenizer.ggml.merges", &MERGES[..]);
    writer.set("tokenizer.ggml.bos_token_id", 262);
    writer.set("tokenizer.chat_template", "{{ messages }}");
    writer
}

fn tokenizer(writer: &Writer) -> Tokenizer {
    let json = gguf(writer.bytes()).tokenizer_json().unwrap().unwrap();
    Tokenizer::from_json(&json, 264).unwrap()
}

#[test]
fn texts_become_the_files_tokens_and_come_back() {
    let gpt = tokenizer(&writer("gpt-4o"));
    // Numbers are cut after three digits, so the fourth does not join; words are cut before a capital.
    assert_eq!(gpt.encode("1234", true).unwrap(), [257, 52]);
    assert_eq!(gpt.encode("aB", true).unwrap(), [97, 66]);
    assert_eq!(gpt.encode("hi w<|return|>", true).unwrap(), [261, 260, 263]);
    assert_eq!(gpt.end_tokens(), [263]);
    let text = "Grüße, 世界!\r\n  x\t😀 don't";
    assert_eq!(gpt.decode(&gpt.encode(text, true).unwrap()).unwrap(), text);

    let llama = tokenizer(&writer("llama-bpe"));
    assert_eq!(llama.encode("aB", true).unwrap(), [262, 259]);
    assert_eq!(llama.encode("aB", false).unwrap(), [259]);
    let mut without_start = writer("llama-bpe");
    without_start.set("tokenizer.ggml.add_bos_token", false);
    assert_eq!(tokenizer(&without_start).encode("aB", true).unwrap(), [259]);
    assert_eq!(tokenizer(&writer("gpt-2")).encode("1234", true).unwrap(), [258]);
}

#[test]
fn templates_are_found() {
    let file = gguf(writer("gpt-4o").bytes());
    assert_eq!(file.chat_template().unwrap(), Some("{{ messages }}"));
    let bare = gguf(Writer::default().bytes());
    assert_eq!((bare.chat_template().unwrap(), bare.tokenizer_json().unwrap()), (None, None));
}

#[test]
fn tokenizers_that_cannot_be_used_say_why() {
    type Change = fn(&mut Writer);
    let cases: [(Change, &str); 9] = [
        (
            |w| w.set("tokenizer.ggml.model", "llama"),
            "SentencePiece's (`llama`); supported is: byte-level BPE",
        ),
        (|w| w.set("tokenizer.ggml.model", "bert"), "tokenizer `bert`; supported is: byte-level BPE"),
        (|w| w.set("tokenizer.ggml.pre", "other"), "pre-tokenizer `other`; supported are: gpt-4o, llama-bpe"),
        (|w| w.remove("tokenizer.ggml.pre"), "key `tokenizer.ggml.pre` is missing"),
        (|w| w.remove("tokenizer.ggml.tokens"), "key `tokenizer.ggml.tokens` is missing"),
        (|w| w.set("tokenizer.ggml.tokens", &["a", "a"][..]), "has 264 entries for 2 tokens"),
        (
            |w| w.set("tokenizer.ggml.merges", &["ab"][..]),
            "entry 0 of key `tokenizer.ggml.merges` is not two tokens",
        ),
        (
            |w| w.set("tokenizer.ggml.merges", 1),
            "key `tokenizer.ggml.merges` is 1: expected an array of strings",
        ),
        (
            |w| {
                w.set("tokenizer.ggml.bos_token_id", 264);
                w.set("tokenizer.ggml.add_bos_token", true);
            },
            "key `tokenizer.ggml.bos_token_id` is 264 but there are 264 tokens",
        ),
    ];
    for (change, expected) in cases {
        let mut writer = writer("gpt-4o");
        change(&mut writer);
        let error = gguf(writer.bytes()).tokenizer_json().unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
