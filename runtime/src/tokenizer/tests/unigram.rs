//! Tokenizers of the kind Unigram, as XLM-RoBERTa's files have them (`tools/tokenizers/make_unigram.py`).

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

fn fixture(name: &str) -> Value {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/unigram");
    serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
}

#[test]
fn texts_have_the_ids_that_others_find() {
    let tokenizer = read(&fixture("tokenizer.json"));
    for case in fixture("expected.json").as_array().unwrap() {
        let (text, decoded) = (case["text"].as_str().unwrap(), case["decoded"].as_str().unwrap());
        let ids = tokenizer.encode(text, true).unwrap();
        assert_eq!(json!(ids), case["ids"], "{text:?}");
        assert_eq!(tokenizer.decode(&ids).unwrap(), decoded, "{text:?}");
        let mut stream = TextStream::new();
        let pieces = ids.iter().map(|id| stream.push(&tokenizer, *id).unwrap()).collect::<String>();
        assert_eq!(pieces + &stream.finish(&tokenizer).unwrap(), decoded, "{text:?}");
        if !text.contains('<') {
            let bare = tokenizer.encode(text, false).unwrap();
            assert_eq!(tokenizer.encode_ordinary(text).unwrap(), bare, "{text:?}");
        }
    }
}

/// The map with its bytes changed.
fn map_with(change: impl Fn(&mut Vec<u8>)) -> Value {
    let mut json = fixture("tokenizer.json");
    let map = &mut json["normalizer"]["normalizers"][0]["precompiled_charsmap"];
    let mut bytes = STANDARD.decode(map.as_str().unwrap()).unwrap();
    change(&mut bytes);
    *map = STANDARD.encode(bytes).into();
    json
}

/// A map whose trie is a block of units, with some of them set, and these texts.
fn map_of(units: &[(usize, u32)], texts: &[u8]) -> Value {
    map_with(|bytes| {
        let mut trie = vec![0_u32; 256];
        units.iter().for_each(|(at, unit)| trie[*at] = *unit);
        *bytes = 1024_u32.to_le_bytes().to_vec();
        bytes.extend(trie.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(texts);
    })
}

#[test]
fn no_map_leads_out_of_itself_or_makes_texts_long() {
    // The letter a leads to a value at unit 1.
    let a = |value: u32| [(0, 0), (97, 97 | 1 << 8 | 96 << 10), (1, 1 << 31 | value)];
    assert_eq!(read(&map_of(&a(0), b"the\0")).encode_ordinary("a").unwrap(), {
        read(&fixture("tokenizer.json")).encode_ordinary("the").unwrap()
    });
    let long = |length: usize| [&vec![b'e'; length][..], b"\0"].concat();
    read(&map_of(&a(0), &long(11)));
    for (json, what) in [
        (map_of(&a(0), &long(12)), "makes more than 11 bytes of one"),
        (map_of(&a(9), b"the\0"), "leads out of its texts"),
        (map_of(&a(1), "é\0".as_bytes()), "leads out of its texts"),
        (map_of(&[(0, 1 << 10 | 1 << 9)], b""), "leads out of itself"),
        (map_of(&[(97, 97 | 1 << 8 | 1 << 20)], b""), "leads out of itself"),
        (map_of(&[(97, 97 | 1 << 20)], b""), "leads out of itself"),
        (map_of(&[], b"\xff"), "no UTF-8"),
        (map_with(Vec::clear), "without the size"),
        (map_with(|bytes| bytes[..4].copy_from_slice(&[0xfc, 0xff, 0xff, 0xff])), "has 4294967292 bytes"),
        (map_with(|bytes| bytes[..4].copy_from_slice(&[0; 4])), "has 0 bytes"),
        (map_with(|bytes| bytes[0] += 1), "expected 4, 8 and so on"),
    ] {
        let error = Tokenizer::from_json(json.to_string().as_bytes(), 300).unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
    let mut json = fixture("tokenizer.json");
    let steps = json["normalizer"]["normalizers"].as_array_mut().unwrap();
    steps[0]["precompiled_charsmap"] = "no base64".into();
    let broken = json.to_string();
    let steps = json["normalizer"]["normalizers"].as_array_mut().unwrap();
    steps.insert(0, json!({"type": "NFKD"}));
    let behind = json.to_string();
    for (json, what) in [(broken, "that is no base64"), (behind, "`Precompiled` stands behind other steps")] {
        let error = Tokenizer::from_json(json.as_bytes(), 300).unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
}

#[test]
fn a_map_in_a_circle_ends() {
    // The letter a leads back to the root.
    let circle = map_of(&[(0, 0), (97, 97 | 97 << 10)], b"");
    let tokenizer = read(&circle);
    let text = "a".repeat(50);
    assert!(!tokenizer.encode_ordinary(&text).unwrap().is_empty());
}
