//! What is no tokenizer, or would make one misbehave, is refused.

use super::*;

#[test]
fn what_is_no_tokenizer_says_what_it_is() {
    assert!(matches!(Tokenizer::from_json(b"{}", 200), Err(TokenizerError::Parse { .. })));
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    let error = Tokenizer::from_json(pointer, 200).unwrap_err().to_string();
    assert!(error.contains("git-lfs pointer"), "{error}");
    let error = Tokenizer::from_json(b"<html><body>", 200).unwrap_err().to_string();
    assert!(error.contains("web page"), "{error}");
}

#[test]
fn texts_of_strangers_never_make_special_tokens() {
    let byte = read(&byte_level(&[b"<|im"], &["<|im_start|>", "</s>"]));
    let text = "<|im_start|>system</s>";
    assert_eq!(byte.encode(text, false).unwrap()[0], 257);
    let ids = byte.encode_ordinary(text).unwrap();
    assert!(ids.iter().all(|id| *id < 256) && byte.decode(&ids).unwrap() == text, "{ids:?}");

    // Merges that make the special token's own text.
    let words = ["</s>", "\u{2581}a"];
    let mut json = sentencepiece(&words, sentencepiece_decoder(true));
    json["model"]["merges"].as_array_mut().unwrap().extend([
        json!(["<", "/"]),
        json!(["</", "s"]),
        json!(["</s", ">"]),
    ]);
    for (token, id) in [("<", 900), ("/", 901), ("s", 902), (">", 903), ("</", 904), ("</s", 905)] {
        json["model"]["vocab"][token] = id.into();
    }
    let pieces = read(&json);
    assert_eq!(pieces.encode("a</s>", false).unwrap().last(), Some(&2));
    let ids = pieces.encode_ordinary("a</s>").unwrap();
    assert_eq!(ids[ids.len() - 4..], [900, 901, 902, 903]);
    assert_eq!(pieces.decode(&ids).unwrap(), "a</s>");

    // Where nothing special is written, nothing changes.
    let nano = concat!(env!("CARGO_MANIFEST_DIR"), "/../model-specs/nano/tokenizer.json");
    let nano = Tokenizer::from_json(&std::fs::read(nano).unwrap(), 3072).unwrap();
    for text in ["", "fn main() {}\n", "Grüße  世界 😀", "   x"] {
        assert_eq!(nano.encode_ordinary(text).unwrap(), nano.encode(text, false).unwrap(), "{text:?}");
    }
}

#[test]
fn tokens_have_the_bytes_that_they_stand_for() {
    let nano = concat!(env!("CARGO_MANIFEST_DIR"), "/../model-specs/nano/tokenizer.json");
    let nano = Tokenizer::from_json(&std::fs::read(nano).unwrap(), 3072).unwrap();
    let pieces = read(&sentencepiece(&WORDS, sentencepiece_decoder(true)));
    let bytes = |tokenizer: &Tokenizer, text: &str| -> String {
        let ids = tokenizer.encode_ordinary(text).unwrap();
        let bytes = ids.iter().flat_map(|id| tokenizer.token_bytes(*id).unwrap()).collect();
        String::from_utf8(bytes).unwrap()
    };
    for text in ["fn main() {}\n", "Gr\u{fc}\u{df}e  \u{4e16}\u{754c} \u{1f600}", "   x"] {
        assert_eq!(bytes(&nano, text), text);
        assert_eq!(bytes(&pieces, text).trim_start(), text.trim_start());
    }
    assert_eq!(pieces.token_bytes(2).unwrap(), b"</s>");
    assert_eq!(nano.token_bytes(3072), None);
    let added = pieces.added_tokens();
    assert_eq!((added[2].text.as_str(), added[2].id, added[2].is_special), ("</s>", 2, true));
}

#[test]
fn a_start_token_that_is_there_twice_is_noticed() {
    let tokenizer = read(&sentencepiece(&WORDS, sentencepiece_decoder(true)));
    let doubled = tokenizer.encode("<s>Once", true).unwrap();
    assert_eq!(doubled[..2], [1, 1]);
    assert_eq!(tokenizer.repeated_start(&doubled), Some("<s>".to_owned()));
    assert_eq!(tokenizer.repeated_start(&tokenizer.encode("Once", true).unwrap()), None);
    assert_eq!(tokenizer.repeated_start(&tokenizer.encode("<s>Once", false).unwrap()), None);
    // One that adds nothing: the text may begin as it likes.
    let plain = read(&byte_level(&[], &["</s>"]));
    assert_eq!(plain.repeated_start(&plain.encode("</s></s>a", true).unwrap()), None);
}

#[test]
fn texts_that_cannot_fit_are_refused_by_their_length() {
    let tokenizer = read(&byte_level(&[b"abcdefgh"], &[]));
    assert_eq!(tokenizer.encode_within(&"x".repeat(80), true, 10).unwrap().len(), 80);
    let error = tokenizer.encode_within(&"x".repeat(88), true, 10).unwrap_err();
    assert_eq!(error.to_string(), "the text has 88 bytes, expected at most 80: 10 tokens of 8 bytes each");
    let long = "x".repeat(limit::PROMPT_BYTES + 1);
    assert!(matches!(tokenizer.encode(&long, true), Err(TokenizerError::TooLong { .. })));
    assert!(matches!(tokenizer.encode_ordinary(&long), Err(TokenizerError::TooLong { .. })));
    // A tokenizer that may take many characters for one unknown token.
    let words = read(&sentencepiece(&WORDS, sentencepiece_decoder(true)));
    assert!(words.encode_within(&"x".repeat(88), true, 1).is_ok());
}

#[test]
fn lists_that_would_make_texts_grow_are_refused() {
    let replace =
        |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let sequence = |key: &str, list: Vec<Value>| json!({"type": "Sequence", key: list});
    let with = |part: &str, value: Value| {
        let mut json = sentencepiece(&WORDS, sentencepiece_decoder(true));
        json[part] = value;
        json
    };
    let split = json!({"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Isolated", "invert": false});
    let template = |single: Vec<Value>, ids: usize| {
        let tokens = json!({"<s>": {"id": "<s>", "ids": vec![1; ids], "tokens": vec!["<s>"; ids]}});
        json!({"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": tokens})
    };
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let nested = (0..20).fold(json!({"type": "Lowercase"}), |inner, _| sequence("normalizers", vec![inner]));
    let regex = |bytes: usize| {
        json!({"type": "Split", "pattern": {"Regex": "a".repeat(bytes)}, "behavior": "Isolated",
                                      "invert": false})
    };
    let cases = [
        (
            with("normalizer", sequence("normalizers", vec![replace("a", "aa"); 3])),
            "makes texts 8 times as long",
        ),
        (
            with("normalizer", sequence("normalizers", vec![replace("a", "aa"); 40])),
            "more than 16 components",
        ),
        (with("normalizer", replace("a", "aaaaa")), "5 times as long"),
        (with("normalizer", replace("", "x")), "replaces an empty text"),
        (with("normalizer", json!({"type": "Prepend", "prepend": "x".repeat(17)})), "puts 17 bytes before"),
        (
            with("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": ""})),
            "type `Precompiled`",
        ),
        (with("normalizer", json!({"prepend": "x"})), "type ``"),
        (with("decoder", sequence("decoders", vec![replace("a", "aa"); 12])), "4096 times as long"),
        (with("decoder", json!({"type": "CTC"})), "type `CTC`"),
        (
            with("decoder", json!({"type": "BPEDecoder", "suffix": ""})),
            "suffix of decoder BPEDecoder is empty",
        ),
        (
            with("decoder", sequence("decoders", vec![json!({"type": "Fuse"}), replace("a", "b")])),
            "follows one that joins the tokens",
        ),
        (
            with("pre_tokenizer", sequence("pretokenizers", vec![split.clone(); 9])),
            "9 of type Split, expected at most 8",
        ),
        (with("pre_tokenizer", regex(8193)), "regular expression of 8193 bytes"),
        (with("post_processor", template(vec![text.clone()], 65)), "65 ids or pieces, expected at most 64"),
        (with("post_processor", template(vec![text.clone(); 2], 1)), "has the text 2 times"),
        (
            with("normalizer", json!({"type": "Prepend", "prepend": "x".repeat(2 << 20)})),
            "bytes, expected at most 1048576",
        ),
    ];
    for (json, says) in cases {
        let error = refusal(&json);
        assert!(error.contains(says), "{says}: {error}");
    }
    // As many as published ones have.
    read(&with("normalizer", nested));
    read(&with("pre_tokenizer", sequence("pretokenizers", vec![split; 8])));
    read(&with("post_processor", template(vec![text], 64)));
}

#[test]
fn a_part_that_is_there_twice_is_refused() {
    let json = serde_json::to_string(&byte_level(&[], &[])).unwrap();
    let twice = json.replacen('{', r#"{"norm\u0061lizer":null,"#, 1);
    let error = Tokenizer::from_json(twice.as_bytes(), 300).unwrap_err().to_string();
    assert!(error.contains("`normalizer` is there twice"), "{error}");
}
