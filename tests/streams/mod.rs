//! Streamed text of large published vocabularies: that of o200k, of which GPT-OSS's is made, and SmolLM2's where its file is at hand.

use fastrand::Rng;
use kernmill_compiler::tokenizer_files::TokenizerFiles;
use kernmill_runtime::Tokenizer;
use kernmill_runtime::tokenizer::TextStream;
use serde_json::{Map, Value, json};

/// Tokens of o200k, without its special ones.
const O200K: u32 = 199_998;

/// How many random sequences a vocabulary is tried with: KERNMILL_STREAMS, or some thousand.
fn count() -> usize {
    std::env::var("KERNMILL_STREAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
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

/// Random sequences of 1 to 40 tokens: of all, and of those whose bytes are no text by themselves, so that characters are cut.
fn check(tokenizer: &Tokenizer, bytes: &[Vec<u8>]) {
    let cut: Vec<u32> =
        (0..bytes.len() as u32).filter(|id| std::str::from_utf8(&bytes[*id as usize]).is_err()).collect();
    assert!(cut.len() > 300, "{} tokens are no whole characters", cut.len());
    let mut rng = Rng::with_seed(5);
    for _ in 0..count() {
        let share = rng.usize(0..4);
        let ids: Vec<u32> = (0..rng.usize(1..=40))
            .map(|_| {
                if rng.usize(0..4) < share {
                    cut[rng.usize(..cut.len())]
                } else {
                    rng.u32(..bytes.len() as u32)
                }
            })
            .collect();
        let whole: Vec<u8> = ids.iter().flat_map(|id| &bytes[*id as usize]).copied().collect();
        let expected = String::from_utf8_lossy(&whole);
        assert_eq!(tokenizer.decode(&ids).unwrap(), expected, "{ids:?}");
        let (mut stream, mut text, mut given) = (TextStream::new(), String::new(), 0);
        for id in &ids {
            text += &stream.push(tokenizer, *id).unwrap();
            given += bytes[*id as usize].len();
            // What is shown is certain, and all but three bytes are.
            assert!(expected.starts_with(&text), "{ids:?}: {text:?}");
            let certain = String::from_utf8_lossy(&whole[..given.saturating_sub(3)]);
            assert!(text.chars().count() + 1 >= certain.chars().count(), "{ids:?}: {text:?}");
        }
        text += &stream.finish(tokenizer).unwrap();
        assert_eq!(text, expected, "{ids:?}");
    }
}

#[test]
fn streams_of_o200k_are_its_bytes() {
    let ranks = tiktoken_rs::o200k_base().unwrap();
    let bytes: Vec<Vec<u8>> = (0..O200K).map(|id| ranks.decode_bytes(&[id]).unwrap()).collect();
    let alphabet = alphabet();
    let spelt = |bytes: &Vec<u8>| bytes.iter().map(|byte| alphabet[usize::from(*byte)]).collect::<String>();
    let vocab: Map<String, Value> =
        bytes.iter().map(spelt).zip(0..).map(|(token, id)| (token, json!(id))).collect();
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [], "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []}
    });
    check(&Tokenizer::from_json(json.to_string().as_bytes(), O200K).unwrap(), &bytes);
}

#[test]
fn streams_of_smollm2_are_its_bytes() {
    let Some(path) = crate::smollm2::model("streams::streams_of_smollm2_are_its_bytes") else { return };
    let json = TokenizerFiles::of(&path).unwrap().read().unwrap().unwrap();
    let file: Value = serde_json::from_slice(&json).unwrap();
    let alphabet = alphabet();
    let mut bytes = vec![Vec::new(); 49_152];
    for (token, id) in file["model"]["vocab"].as_object().unwrap() {
        let byte = |c: char| alphabet.iter().position(|symbol| *symbol == c).unwrap() as u8;
        bytes[id.as_u64().unwrap() as usize] = token.chars().map(byte).collect();
    }
    // Special tokens have no text.
    for token in file["added_tokens"].as_array().unwrap() {
        bytes[token["id"].as_u64().unwrap() as usize].clear();
    }
    check(&Tokenizer::from_json(&json, 49_152).unwrap(), &bytes);
}
