//! Refusals of files that are no tokenizer, or would make one misbehave.

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
fn what_no_token_spells_is_the_unknown_though_that_is_special() {
    let vocab =
        json!([["<unk>", 0.0], ["a", -1.0], ["<", -2.0], ["u", -2.0], ["n", -2.0], ["k", -2.0], [">", -2.0]]);
    let tokenizer = read(&json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [special(0, "<unk>")],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab},
    }));
    for text in ["a", "aé", "é", "aéaé", "世界a"] {
        let ids = tokenizer.encode_ordinary(text).unwrap();
        assert_eq!(ids, tokenizer.encode(text, false).unwrap(), "{text}");
        assert_eq!(ids.contains(&0), text != "a", "{text}");
    }
}

#[test]
fn the_same_text_has_the_same_ids_though_merges_are_to_be_left_out() {
    for dropout in [0.0, 0.5, 1.0] {
        let mut json = byte_level(&[b"<|im"], &["</s>"]);
        let plain = read(&json);
        json["model"]["dropout"] = dropout.into();
        let dropped = read(&json);
        for _ in 0..20 {
            let text = "<|im <|im <|im</s>";
            assert_eq!(dropped.encode(text, false).unwrap(), plain.encode(text, false).unwrap(), "{dropout}");
            assert_eq!(dropped.encode_ordinary(text).unwrap(), plain.encode_ordinary(text).unwrap());
        }
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
    let expression =
        |regex: &str, to: &str| json!({"type": "Replace", "pattern": {"Regex": regex}, "content": to});
    let level = |space: bool| json!({"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": true});
    let metaspace = json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always"});
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
        (with("normalizer", sequence("normalizers", vec![expression("", "b"); 2])), "9 times as long"),
        (with("decoder", sequence("decoders", vec![expression("(?=.)", "b"); 16])), "43046721 times as long"),
        (with("normalizer", expression(r"x?\b", "bb")), "5 times as long"),
        (with("normalizer", expression(r"a\K", "bb")), "5 times as long"),
        // Characters that a normal form makes longer.
        (with("normalizer", replace("a", "\u{fdfa}")), "33 times as long"),
        (
            with("normalizer", sequence("normalizers", vec![json!({"type": "ByteLevel"}); 3])),
            "8 times as long",
        ),
        (with("normalizer", sequence("normalizers", vec![json!({"type": "BertNormalizer"}); 3])), "4.6"),
        (with("pre_tokenizer", sequence("pretokenizers", vec![level(false); 4])), "16 times as long"),
        (with("pre_tokenizer", sequence("pretokenizers", vec![level(true); 2])), "16 times as long"),
        (with("pre_tokenizer", sequence("pretokenizers", vec![metaspace; 2])), "16 times as long"),
        (with("normalizer", json!({"type": "Prepend", "prepend": "x".repeat(17)})), "puts 17 bytes before"),
        (
            with("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": ""})),
            "`precompiled_charsmap` without the size of its trie",
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
    read(&with("normalizer", sequence("normalizers", vec![expression(r"(?:\s|b)+", " "); 16])));
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

#[test]
fn models_that_do_much_for_a_character_are_refused() {
    let model = |value: Value| {
        let mut json = sentencepiece(&WORDS, sentencepiece_decoder(true));
        json["model"] = value;
        json["post_processor"] = Value::Null;
        json["added_tokens"] = json!([]);
        json
    };
    let piece = |chars: usize, prefix: usize, unknown: usize| {
        model(json!({"type": "WordPiece", "unk_token": "u".repeat(unknown), "vocab": {"u": 0},
                     "continuing_subword_prefix": "#".repeat(prefix), "max_input_chars_per_word": chars}))
    };
    let pairs = |fallback: bool, prefix: usize, suffix: usize, unknown: usize| {
        model(json!({"type": "BPE", "dropout": null, "fuse_unk": false, "byte_fallback": fallback,
                     "unk_token": "u".repeat(unknown), "continuing_subword_prefix": "#".repeat(prefix),
                     "end_of_word_suffix": "#".repeat(suffix), "vocab": {"u": 0}, "merges": []}))
    };
    let words = |unknown: usize| {
        model(json!({"type": "WordLevel", "unk_token": "u".repeat(unknown), "vocab": {"u": 0}}))
    };
    let unigram =
        |bytes: usize| model(json!({"type": "Unigram", "unk_id": 0, "vocab": [["u".repeat(bytes), 0.0]]}));
    for (json, says) in [
        (piece(1_000_000_000, 2, 5), "`max_input_chars_per_word` is 1000000000, expected at most 1000"),
        (piece(100, 17, 5), "`continuing_subword_prefix` has 17 bytes, expected at most 16"),
        (piece(100, 2, 65), "`unk_token` has 65 bytes, expected at most 64"),
        (pairs(false, 17, 0, 5), "`continuing_subword_prefix` has 17 bytes"),
        (pairs(false, 0, 17, 5), "`end_of_word_suffix` has 17 bytes"),
        (pairs(false, 0, 0, 65), "`unk_token` has 65 bytes"),
        (pairs(true, 2, 0, 5), "`byte_fallback`, and a prefix or suffix"),
        (words(65), "`unk_token` has 65 bytes"),
        (unigram(513), "a token has 513 bytes, expected at most 512"),
    ] {
        let error = refusal(&json);
        assert!(error.contains(says), "{says}: {error}");
    }
    // The forms of published tokenizers.
    for json in [piece(200, 2, 5), pairs(false, 2, 4, 13), pairs(true, 0, 0, 5), words(5), unigram(48)] {
        read(&json);
    }
}

/// Whatever lists of components are accepted, a text of twice the length makes at most twice the tokens, and
/// each byte of it a few.
#[test]
fn accepted_components_let_texts_grow_little() {
    let replace = |pattern: Value, to: &str| json!({"type": "Replace", "pattern": pattern, "content": to});
    let regexes = ["", "a", "a*", "a+", "(?=.)", r"\b", r"a\K", "(a|)", "^", "(?<=a)", "a{0,2}", r"\z"];
    let mut normalizers: Vec<Value> =
        regexes.iter().flat_map(|r| ["b", "aa"].map(|to| replace(json!({"Regex": r}), to))).collect();
    normalizers.extend(["aaa", "\u{fdfa}", "\u{390}", "ab a"].map(|to| replace(json!({"String": "a"}), to)));
    normalizers.push(replace(json!({"String": "\u{644}"}), "\u{fdfa}"));
    normalizers.extend(["NFKD", "NFC", "ByteLevel", "Lowercase"].map(|kind| json!({"type": kind})));
    normalizers.push(json!({"type": "BertNormalizer"}));
    normalizers.push(json!({"type": "Prepend", "prepend": "aaa"}));
    let split = json!({"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false});
    let spaces = ["\u{2581}", "\u{2582}"]
        .map(|mark| json!({"type": "Metaspace", "replacement": mark, "prepend_scheme": "always"}));
    let level = [true, false].map(
        |space| json!({"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": true, "use_regex": false}),
    );
    let words: Vec<Value> = [&[split][..], &spaces, &level].concat();
    let mut compared = 0;
    for (part, list, components) in
        [("normalizer", "normalizers", &normalizers), ("pre_tokenizer", "pretokenizers", &words)]
    {
        for (one, other) in components.iter().flat_map(|one| components.iter().map(move |other| (one, other)))
        {
            for rounds in [1, 2, 4, 8] {
                let components: Vec<&Value> = (0..rounds).flat_map(|_| [one, other]).collect();
                let mut json = sentencepiece(&WORDS, sentencepiece_decoder(true));
                json["normalizer"] = Value::Null;
                json[part] = json!({"type": "Sequence", list: components});
                let Ok(tokenizer) = Tokenizer::from_json(&serde_json::to_vec(&json).unwrap(), 1 << 20) else {
                    continue;
                };
                for text in ["a", "a b", "\u{4e16}a \u{e9}"] {
                    let text = text.repeat(8);
                    let ids = |text: &str| tokenizer.encode_ordinary(text).map(|ids| ids.len());
                    // The library fails at some expressions that match nothing.
                    let (Ok(once), Ok(twice)) = (ids(&text), ids(&text.repeat(2))) else { continue };
                    compared += 1;
                    assert!(once <= 8 * text.len() + 16 && twice <= 2 * once + 8, "{once} {twice}: {json}");
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}
