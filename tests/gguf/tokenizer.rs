//! Tokenizers out of GGUF metadata.

use super::gguf;
use super::writer::{Value, Writer};
use kernmill::chat::format_of;
use kernmill_chat::{Conversation, Item, Tool};
use kernmill_runtime::Tokenizer;
use std::collections::BTreeMap;

/// The 256 characters that stand for bytes, in the order of the bytes.
pub fn alphabet() -> Vec<String> {
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
    Tokenizer::from_json(&json, 1000).unwrap()
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

    let mut with_end = writer("gpt-2");
    with_end.set("tokenizer.ggml.eos_token_id", 263);
    with_end.set("tokenizer.ggml.add_eos_token", true);
    assert_eq!(tokenizer(&with_end).encode("hi", true).unwrap(), [261, 263]);
    with_end.set("tokenizer.ggml.add_bos_token", true);
    assert_eq!(tokenizer(&with_end).encode("hi", true).unwrap(), [262, 261, 263]);
}

/// A file with a vocabulary of kind `bert`, in which a mark stands before the tokens that begin words.
fn wordpiece(words: &[&str]) -> Writer {
    let tokens = [&["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], words].concat();
    let mut writer = Writer::default();
    writer.set("tokenizer.ggml.model", "bert");
    writer.set("tokenizer.ggml.tokens", &tokens[..]);
    writer.set(
        "tokenizer.ggml.token_type",
        &(0..tokens.len()).map(|id| if id < 5 { 3 } else { 1 }).collect::<Vec<_>>()[..],
    );
    writer.set("tokenizer.ggml.bos_token_id", 2);
    writer.set("tokenizer.ggml.seperator_token_id", 3);
    writer.set("tokenizer.ggml.unknown_token_id", 1);
    writer
}

#[test]
fn word_pieces_are_cut_as_the_published_tokenizer_cuts_them() {
    let words = [
        "\u{2581}slice",
        "\u{2581}un",
        "able",
        "s",
        "\u{2581}!",
        "\u{2581}世",
        "\u{2581}[",
        "\u{2581}\u{2581}",
    ];
    let small = tokenizer(&wordpiece(&words));
    let ids = |text: &str| small.encode(text, true).unwrap();
    assert_eq!(ids("Slices!"), [2, 5, 8, 9, 3]);
    // Accents go with capitals; a Chinese character is a word; the longest piece comes first.
    assert_eq!(ids("Unâble 世slice"), [2, 6, 7, 10, 5, 3]);
    assert_eq!(ids("unable[MASK] [ \u{2581}"), [2, 6, 7, 4, 11, 12, 3]);
    assert_eq!(ids("sliced un"), [2, 1, 6, 3]);
    assert_eq!(small.encode("un", false).unwrap(), [6]);
    assert_eq!(small.decode(&[5, 8, 9]).unwrap(), "slices!");

    // With a capital in the vocabulary, letters stay as they are.
    let mut cased = wordpiece(&["\u{2581}Un", "able", "\u{2581}un"]);
    assert_eq!(tokenizer(&cased).encode("Unable unable", true).unwrap(), [2, 5, 6, 7, 6, 3]);
    cased.set("tokenizer.ggml.normalizer.lowercase", true);
    assert_eq!(tokenizer(&cased).encode("Unable unable", true).unwrap(), [2, 7, 6, 7, 6, 3]);
    let mut by_default = wordpiece(&words);
    by_default.remove("tokenizer.ggml.seperator_token_id");
    let error = gguf(by_default.bytes()).tokenizer_json().unwrap_err().to_string();
    assert!(error.contains("`seperator_token_id`"), "{error}");
}

/// A file with a vocabulary of kind `t5`: XLM-RoBERTa's first four tokens, pieces, and a filler.
fn unigram() -> Writer {
    let mut writer = Writer::default();
    writer.set("tokenizer.ggml.model", "t5");
    let tokens = ["<s>", "<pad>", "</s>", "<unk>", "\u{2581}", "a", "b", "ab", "\u{2581}a", "[PAD9]"];
    writer.set("tokenizer.ggml.tokens", &tokens[..]);
    writer.set("tokenizer.ggml.token_type", &[3, 3, 3, 2, 1, 1, 1, 1, 1, 5][..]);
    writer.set("tokenizer.ggml.scores", &[0.0, 0.0, 0.0, 0.0, -1.0, -2.0, -2.0, -3.0, -1.5, -10000.0][..]);
    writer
}

/// llama.cpp's own conversion of a vocabulary of SentencePiece, against transformers' tokenizer of the same
/// (`tools/tokenizers/make_unigram_gguf.py`).
#[test]
fn a_vocabulary_of_xlm_roberta_has_the_published_ids() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/unigram");
    let bytes = std::fs::read(directory.join("xlm-roberta.gguf")).unwrap();
    let json = gguf(bytes).tokenizer_json().unwrap().unwrap();
    let tokenizer = Tokenizer::from_json(&json, 402).unwrap();
    let cases = std::fs::read(directory.join("xlm-roberta.json")).unwrap();
    let cases: Vec<serde_json::Value> = serde_json::from_slice(&cases).unwrap();
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in &cases {
        let text = case["text"].as_str().unwrap();
        assert_eq!(serde_json::json!(tokenizer.encode(text, true).unwrap()), case["ids"], "{text:?}");
    }
}

#[test]
fn unigrams_are_the_best_pieces_whatever_fillers_score() {
    let plain = tokenizer(&unigram());
    let ids = |text: &str| plain.encode(text, true).unwrap();
    // The sum of scores decides: -1.5 - 2 before -1 - 3.
    assert_eq!(ids("ab"), [0, 8, 6, 2]);
    assert_eq!(ids("  ab \n ba  "), [0, 8, 6, 4, 6, 5, 2]);
    // One unknown stands for all that follow each other, and a filler for nothing.
    assert_eq!(ids("xyz[PAD9]"), [0, 4, 3, 2]);
    assert_eq!(ids("a</s>b"), [0, 8, 2, 4, 6, 2]);
    assert_eq!(plain.decode(&ids("ab ba")).unwrap(), "ab ba");

    let mut bare = unigram();
    bare.set("tokenizer.ggml.add_space_prefix", false);
    bare.set("tokenizer.ggml.add_bos_token", false);
    bare.set("tokenizer.ggml.add_eos_token", false);
    assert_eq!(tokenizer(&bare).encode("ab", true).unwrap(), [7]);
}

#[test]
fn unigrams_that_are_broken_are_refused() {
    let with = |key: &str, value: Value| {
        let mut writer = unigram();
        writer.set(&format!("tokenizer.ggml.{key}"), value);
        gguf(writer.bytes()).tokenizer_json().unwrap_err().to_string()
    };
    let nan = [0.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    for (key, value, expected) in [
        ("scores", (&[1.0f32][..]).into(), "`tokenizer.ggml.scores` has 1 entries for 10 tokens"),
        ("scores", (&nan[..]).into(), "entry 1 of key `tokenizer.ggml.scores` is not a finite number"),
        ("token_type", (&[3, 3, 3, 2, 1, 1, 1, 1, 1, 6][..]).into(), "token `[PAD9]` of a byte"),
        ("token_type", (&[1; 10][..]).into(), "expected key `tokenizer.ggml.unknown_token_id`, below 10"),
        ("unknown_token_id", 10.into(), "expected key `tokenizer.ggml.unknown_token_id`, below 10"),
        ("bos_token_id", 10.into(), "key `tokenizer.ggml.bos_token_id` is 10 but there are 10 tokens"),
        ("precompiled_charsmap", "map".into(), "`tokenizer.ggml.precompiled_charsmap`"),
    ] {
        let error = with(key, value);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // Bytes that are no map are refused when the tokenizer is made.
    let mut writer = unigram();
    writer.set("tokenizer.ggml.precompiled_charsmap", Value(9, vec![0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]));
    let json = gguf(writer.bytes()).tokenizer_json().unwrap().unwrap();
    let error = Tokenizer::from_json(&json, 1000).unwrap_err().to_string();
    assert!(error.contains("`precompiled_charsmap` without the size of its trie"), "{error}");
}

/// Words that a name's pre-tokenizer cuts a text into, shown by tokens: every cut keeps two letters from
/// joining.
fn cuts_digits(pre: &str) -> usize {
    tokenizer(&writer(pre)).encode("1234", false).unwrap().len()
}

#[test]
fn names_of_pre_tokenizers_cut_numbers_as_their_models_do() {
    // In threes, whole, or one by one.
    let expected: [(usize, &[&str]); 3] = [
        (2, &["llama-bpe", "smaug-bpe", "dbrx", "chatglm-bpe", "llama4", "deepseek-v3", "falcon", "default"]),
        (1, &["gpt-2", "olmo", "phi-2", "deepseek-llm", "bloom", "trillion"]),
        (
            4,
            &[
                "smollm",
                "starcoder",
                "command-r",
                "refact",
                "qwen2",
                "qwen35",
                "tekken",
                "viking",
                "bailingmoe",
            ],
        ),
    ];
    for (count, names) in expected {
        for name in names {
            assert_eq!(cuts_digits(name), count, "{name}");
        }
    }
    // From the right: 1 and 234, which has no token.
    assert_eq!(cuts_digits("superbpe"), 4);
    for name in
        ["gpt-2", "llama-bpe", "qwen2", "smollm", "tekken", "deepseek-llm", "deepseek-coder", "superbpe"]
    {
        let tokenizer = tokenizer(&writer(name));
        for text in [
            "",
            "   \n\n\t x",
            "Grüße, 世界!\r\n  x\t😀 don't I'LL 1234567 안녕",
            "def f(x):\n    return x  # ok",
        ] {
            assert_eq!(tokenizer.decode(&tokenizer.encode(text, false).unwrap()).unwrap(), text, "{name}");
        }
    }
}

#[test]
fn a_file_that_does_not_name_its_pre_tokenizer_runs_with_a_note() {
    for name in [None, Some("default")] {
        let mut writer = writer("gpt-2");
        writer.remove("tokenizer.ggml.pre");
        if let Some(name) = name {
            writer.set("tokenizer.ggml.pre", name);
        }
        assert_eq!(tokenizer(&writer).encode("1234", true).unwrap(), [257, 52]);
        let note = gguf(writer.bytes()).tokenizer_note().unwrap().unwrap();
        assert!(note.contains("`tokenizer.ggml.pre` does not say"), "{note}");
    }
    assert_eq!(gguf(writer("smaug-bpe").bytes()).tokenizer_note().unwrap(), None);
}

#[test]
fn a_text_that_two_tokens_have_is_the_last_ones_and_both_are_shown() {
    let mut writer = writer("gpt-2");
    let mut tokens = alphabet();
    tokens.extend(["a", "hi", "hi", "<|x|>", "<|x|>"].map(str::to_owned));
    writer.set("tokenizer.ggml.tokens", &tokens.iter().map(String::as_str).collect::<Vec<_>>()[..]);
    writer.set("tokenizer.ggml.token_type", &[&[1; 259][..], &[3, 3]].concat()[..]);
    writer.set("tokenizer.ggml.merges", &["h i"][..]);
    let tokenizer = tokenizer(&writer);
    assert_eq!(tokenizer.encode("hia<|x|>", false).unwrap(), [258, 256, 260]);
    assert_eq!(tokenizer.decode(&[257, 258, 97, 256, 259, 260]).unwrap(), "hihiaa");
}

#[test]
fn templates_are_found() {
    let file = gguf(writer("gpt-4o").bytes());
    let templates = file.chat_templates();
    assert_eq!(templates.default_template().unwrap().text, "{{ messages }}");
    let bare = gguf(Writer::default().bytes());
    assert_eq!((bare.chat_templates().templates.len(), bare.tokenizer_json().unwrap()), (0, None));
    assert!(file.has_tokenizer() && !bare.has_tokenizer());
}

/// The prompts of a file's templates, without and with a function, token by token.
fn prompts(writer: &Writer) -> [Vec<String>; 2] {
    let (file, tokenizer) = (gguf(writer.bytes()), tokenizer(writer));
    let format = format_of(&tokenizer, &file.chat_templates(), &file.end_tokens().unwrap()).unwrap();
    let tool = Tool { name: "f".into(), description: String::new(), parameters: None, strict: false };
    [Vec::new(), vec![tool]].map(|tools| {
        let items = vec![Item::User { name: None, text: "hi".into() }];
        let conversation = Conversation { items, tools, ..Conversation::default() };
        let ids = format.prompt(&tokenizer, &conversation, &BTreeMap::new()).unwrap();
        ids.iter().map(|id| tokenizer.token(*id).unwrap()).collect()
    })
}

/// The end token that the key names is not the one with the smallest id, and no token is put before texts.
#[test]
fn templates_write_the_tokens_that_keys_name() {
    let template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}";
    for adds in [Some(false), Some(true), None] {
        for (pre, bos, eos) in [("gpt-4o", 262, 264), ("llama-bpe", 264, 262), ("gpt-4o", 263, 263)] {
            let mut writer = writer(pre);
            let mut tokens = alphabet();
            tokens.extend(MERGES.map(|merge| merge.replace(' ', "")));
            tokens.extend(["<s>", "</s>", "<|im_end|>"].map(str::to_owned));
            writer.set("tokenizer.ggml.tokens", &tokens.iter().map(String::as_str).collect::<Vec<_>>()[..]);
            writer.set("tokenizer.ggml.token_type", &[&[1; 262][..], &[3; 3]].concat()[..]);
            writer.set("tokenizer.ggml.bos_token_id", bos);
            writer.set("tokenizer.ggml.eos_token_id", eos);
            writer.set("tokenizer.chat_template", template);
            if let Some(adds) = adds {
                writer.set("tokenizer.ggml.add_bos_token", adds);
            }
            let expected = [&tokens[bos as usize], "hi", &tokens[eos as usize]].map(str::to_owned);
            assert_eq!(prompts(&writer)[0], expected, "{adds:?} {bos} {eos}");
        }
    }
}

#[test]
fn named_templates_are_for_conversations_with_functions() {
    let mut named = writer("gpt-4o");
    named.set("tokenizer.chat_template", "1");
    named.set("tokenizer.chat_templates", &["rag", "tool_use"][..]);
    named.set("tokenizer.chat_template.rag", "2");
    named.set("tokenizer.chat_template.tool_use", "3");
    assert_eq!(prompts(&named), [["1"], ["3"]].map(|tokens| tokens.map(str::to_owned).to_vec()));
    named.set("tokenizer.chat_template", 7u32);
    let fault = gguf(named.bytes()).chat_templates().fault.unwrap();
    assert!(fault.contains("key `tokenizer.chat_template` is 7: expected a string"), "{fault}");
}

#[test]
fn end_tokens_are_those_of_keys_and_names() {
    let ends = |writer: &Writer| gguf(writer.bytes()).end_tokens().unwrap();
    let mut writer = writer("gpt-4o");
    assert_eq!(ends(&writer), [263]);
    writer.set("tokenizer.ggml.eos_token_id", 5);
    writer.set("tokenizer.ggml.eot_token_id", 6);
    writer.set("tokenizer.ggml.eom_token_id", 7);
    assert_eq!(ends(&writer), [5, 6, 7, 263]);
    writer.set("tokenizer.ggml.eot_token_id", Value(5, (-1i32).to_le_bytes().to_vec()));
    writer.set("tokenizer.ggml.eom_token_id", u32::MAX);
    assert_eq!(ends(&writer), [5, 263]);
    writer.set("tokenizer.ggml.eos_token_id", "five");
    let error = gguf(writer.bytes()).end_tokens().unwrap_err().to_string();
    assert!(error.contains("tokenizer.ggml.eos_token_id"), "{error}");
}

/// A SentencePiece vocabulary: <unk>, <s>, </s>, a line's end and the bytes of é as bytes, then pieces with
/// scores.
pub fn pieces() -> Writer {
    let pieces: [(&str, f32); 12] = [
        ("\u{2581}", -1000.0),
        ("a", -1001.0),
        ("b", -1002.0),
        ("c", -1003.0),
        ("ab", -3.0),
        ("bc", -2.0),
        ("abc", -4.0),
        ("\u{2581}a", -5.0),
        ("\u{2581}ab", -9.0),
        ("\u{2581}\u{2581}", -1.0),
        ("<b>", 0.0),
        ("世", -1004.0),
    ];
    let mut tokens = vec!["<unk>", "<s>", "</s>", "<0x0A>", "<0xC3>", "<0xA9>"];
    let mut scores = vec![0.0f32; 6];
    let mut types = vec![2, 3, 3, 6, 6, 6];
    for (piece, score) in pieces {
        tokens.push(piece);
        scores.push(score);
        types.push(if piece == "<b>" { 4 } else { 1 });
    }
    let mut writer = Writer::default();
    writer.set("tokenizer.ggml.model", "llama");
    writer.set("tokenizer.ggml.tokens", &tokens[..]);
    writer.set("tokenizer.ggml.scores", &scores[..]);
    writer.set("tokenizer.ggml.token_type", &types[..]);
    writer
}

fn spelt(tokenizer: &Tokenizer, text: &str, special: bool) -> Vec<String> {
    tokenizer.encode(text, special).unwrap().into_iter().map(|id| tokenizer.token(id).unwrap()).collect()
}

#[test]
fn scores_join_sentencepiece_tokens_and_what_is_unknown_becomes_bytes() {
    let tokenizer = tokenizer(&pieces());
    // `bc` has the highest score, then `abc`; the space before has nothing to join.
    assert_eq!(spelt(&tokenizer, "abc", false), ["\u{2581}", "abc"]);
    assert_eq!(spelt(&tokenizer, "ab", true), ["<s>", "\u{2581}ab"]);
    assert_eq!(spelt(&tokenizer, "c  b", false), ["\u{2581}", "c", "\u{2581}\u{2581}", "b"]);
    assert_eq!(spelt(&tokenizer, "é\n", false), ["\u{2581}", "<0xC3>", "<0xA9>", "<0x0A>"]);
    // A user-defined token is found before the merges, and a byte that is no token is unknown.
    assert_eq!(spelt(&tokenizer, "a<b>a", false), ["\u{2581}a", "<b>", "\u{2581}a"]);
    assert_eq!(spelt(&tokenizer, "aü", false), ["\u{2581}a", "<unk>"]);
    for text in ["abc  ab", "é\né 世", " a"] {
        assert_eq!(tokenizer.decode(&tokenizer.encode(text, true).unwrap()).unwrap(), text);
    }
    assert_eq!(tokenizer.end_tokens(), [2]);
}

#[test]
fn sentencepiece_flags_are_honoured() {
    let mut writer = pieces();
    writer.set("tokenizer.ggml.add_space_prefix", false);
    writer.set("tokenizer.ggml.add_bos_token", false);
    writer.set("tokenizer.ggml.add_eos_token", true);
    let bare = tokenizer(&writer);
    assert_eq!(spelt(&bare, "ab", true), ["ab", "</s>"]);
    assert_eq!(bare.decode(&bare.encode(" ab", true).unwrap()).unwrap(), " ab");
    // Given merges go before scores.
    writer.set("tokenizer.ggml.merges", &["a b", "ab c"][..]);
    writer.remove("tokenizer.ggml.scores");
    assert_eq!(spelt(&tokenizer(&writer), "abc", false), ["abc"]);
}

#[test]
fn sentencepiece_vocabularies_that_would_take_all_memory_are_refused() {
    let refused = |tokens: &[String]| {
        let mut writer = Writer::default();
        writer.set("tokenizer.ggml.model", "llama");
        writer.set("tokenizer.ggml.tokens", &tokens.iter().map(String::as_str).collect::<Vec<_>>()[..]);
        writer.set("tokenizer.ggml.scores", &vec![0.0f32; tokens.len()][..]);
        gguf(writer.bytes()).tokenizer_json().unwrap_err().to_string()
    };
    let error = refused(&["a".to_owned(), "a".repeat(129)]);
    assert!(error.contains("a token of 129 bytes"), "{error}");
    // Every cut of every token is a merge.
    let error = refused(&(1..=128).map(|n| "a".repeat(n)).collect::<Vec<_>>());
    assert!(error.contains("128 tokens with more than 16 merges for each"), "{error}");
}

#[test]
fn tokenizers_that_cannot_be_used_say_why() {
    type Change = fn(&mut Writer);
    let cases: [(Change, &str); 9] = [
        (|w| w.set("tokenizer.ggml.model", "rwkv"), "tokenizer `rwkv`; supported are: byte-level BPE"),
        (|w| w.set("tokenizer.ggml.pre", "other"), "pre-tokenizer `other`; supported are: gpt-4o, llama4"),
        (|w| w.remove("tokenizer.ggml.tokens"), "key `tokenizer.ggml.tokens` is missing"),
        (|w| w.set("tokenizer.ggml.tokens", &["a", "b"][..]), "has 264 entries for 2 tokens"),
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
        (
            |w| {
                w.set("tokenizer.ggml.model", "llama");
                w.remove("tokenizer.ggml.merges");
            },
            "key `tokenizer.ggml.scores` is missing",
        ),
        (
            |w| {
                w.set("tokenizer.ggml.model", "llama");
                w.remove("tokenizer.ggml.merges");
                w.set("tokenizer.ggml.scores", &[0.0f32][..]);
            },
            "key `tokenizer.ggml.scores` has 1 entries for 264 tokens",
        ),
    ];
    for (change, expected) in cases {
        let mut writer = writer("gpt-4o");
        change(&mut writer);
        let error = gguf(writer.bytes()).tokenizer_json().unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
