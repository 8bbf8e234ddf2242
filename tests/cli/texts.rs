//! The display of texts whose tokens end within characters, begin with a space, or are special.

use super::Sandbox;
use super::safetensors_file::{Entry, SafetensorsFile};
use crate::gguf::gguf;
use crate::gguf::tokenizer::{alphabet, pieces};
use half::bf16;
use serde_json::{Map, Value, json};

const MODEL: &str = "model.safetensors";
const RUN: [&str; 6] = ["run", ".", "--threads", "1", "--temp", "0"];

fn store(entry: &mut Entry, values: &[f32]) {
    entry.bytes = values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect();
}

/// A model that says the tokens `said` one after the other: the likeliest one after each is the next,
/// whatever came before. The first is a prompt's last.
fn saying(said: &[u32]) -> Sandbox {
    let sandbox = Sandbox::of("llama-plain");
    let mut file = SafetensorsFile::read(&sandbox.path(MODEL));
    for entry in &mut file.entries {
        let count = entry.shape.iter().product();
        if entry.name.ends_with("o_proj.weight") || entry.name.ends_with("down_proj.weight") {
            // No layer adds anything to the embedding.
            store(entry, &vec![0.0; count]);
        } else if entry.name.ends_with("norm.weight") {
            store(entry, &vec![1.0; count]);
        }
    }
    let mut rng = fastrand::Rng::with_seed(5);
    let table = file.entry("model.embed_tokens.weight");
    let hidden = table.shape[1];
    let embeddings: Vec<f32> =
        (0..table.shape[0] * hidden).map(|_| if rng.bool() { 1.0 } else { -1.0 }).collect();
    store(table, &embeddings);
    let mut head = vec![0.0; embeddings.len()];
    for pair in said.windows(2) {
        let [before, after] = [pair[0], pair[1]].map(|token| token as usize * hidden);
        head[after..after + hidden].copy_from_slice(&embeddings[before..before + hidden]);
    }
    store(file.entry("lm_head.weight"), &head);
    file.write();
    sandbox
}

/// A model with a tokenizer and a prompt, and what it says.
struct Talk {
    sandbox: Sandbox,
    prompt: &'static str,
}

impl Talk {
    /// With the SentencePiece vocabulary of the GGUF tests; `said` begins with the prompt's last piece.
    fn sentencepiece(prompt: &'static str, said: &[&str]) -> Talk {
        let json = gguf(pieces().bytes()).tokenizer_json().unwrap().unwrap();
        let tokenizer = kernmill_runtime::Tokenizer::from_json(&json, 64).unwrap();
        let end = ["</s>"];
        let ids: Vec<u32> = said.iter().chain(&end).map(|piece| tokenizer.token_id(piece).unwrap()).collect();
        assert_eq!(tokenizer.encode(prompt, true).unwrap().last(), ids.first());
        let sandbox = saying(&ids);
        sandbox.write("tokenizer.json", json);
        Talk { sandbox, prompt }
    }

    /// With a vocabulary of the letter A and of `text`, cut into tokens of these numbers of bytes.
    fn byte_level(text: &str, cuts: &[usize]) -> Talk {
        let symbols = alphabet();
        let spelt =
            |bytes: &[u8]| bytes.iter().map(|b| symbols[usize::from(*b)].as_str()).collect::<String>();
        let mut vocab = Map::new();
        vocab.insert("A".to_owned(), 0.into());
        let mut rest = text.as_bytes();
        for cut in cuts {
            let piece;
            (piece, rest) = rest.split_at(*cut);
            assert!(vocab.insert(spelt(piece), vocab.len().into()).is_none(), "a piece is there twice");
        }
        assert!(rest.is_empty(), "{} bytes are left", rest.len());
        let said: Vec<u32> = (0..=vocab.len() as u32).collect();
        let level =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
        let end = json!({"id": vocab.len(), "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true});
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
            "added_tokens": [end], "pre_tokenizer": level, "decoder": level,
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab,
                          "merges": []}
        });
        let sandbox = saying(&said);
        sandbox.write("tokenizer.json", tokenizer.to_string());
        Talk { sandbox, prompt: "A" }
    }

    /// The text that is streamed, and the one in the report, from the directory and from a plan of it.
    #[track_caller]
    fn shows(&self, more: &[&str], expected: &str) {
        self.sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
        let run = [&RUN[..], &["-q", "--prompt", self.prompt], more].concat();
        let plan = [&["run", "a.plan"], &run[2..]].concat();
        for args in [run, plan] {
            assert_eq!(self.sandbox.run(&args).text(), format!("{expected}\n"), "{args:?}");
            let report = self.sandbox.run(&[&args[..], &["--json"]].concat()).text();
            let report: Value = serde_json::from_str(&report).unwrap();
            assert_eq!((&report["text"], &report["stop"]), (&json!(expected), &json!("end_token")));
        }
    }
}

#[test]
fn sentencepiece_texts_keep_their_first_space_and_characters_of_single_bytes() {
    for (prompt, said, expected) in [
        ("abc", &["abc", "\u{2581}ab", "\u{2581}", "<0xC3>", "<0xA9>", "世", "\u{2581}a"][..], " ab é世 a"),
        ("a", &["\u{2581}a", "<0xC3>", "<0xA9>", "<0x0A>", "\u{2581}ab", "c"], "é\n abc"),
        // Bytes that are no character, and more than one space.
        (
            "ab",
            &["\u{2581}ab", "\u{2581}\u{2581}", "<0xA9>", "b", "<0xC3>", "\u{2581}a"],
            "  \u{fffd}b\u{fffd} a",
        ),
    ] {
        Talk::sentencepiece(prompt, said).shows(&[], expected);
    }
}

#[test]
fn byte_level_texts_are_whole_wherever_their_tokens_are_cut() {
    for (text, cuts) in [
        ("日本語 \u{1f680} go", &[4, 4, 3, 2, 1, 3][..]),
        ("\u{e01}\u{e49}\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}!", &[2, 2, 5, 2, 2, 6, 2]),
        ("Ὠ\u{301}é", &[1, 3, 3]),
    ] {
        Talk::byte_level(text, cuts).shows(&[], text);
    }
}

#[test]
fn special_tokens_within_a_text_are_shown_or_end_it() {
    let said = ["abc", "\u{2581}ab", "<s>", "\u{2581}a", "<unk>", "c"];
    let talk = Talk::sentencepiece("abc", &said);
    talk.shows(&[], " ab ac");
    talk.shows(&["--special"], " ab<s> a<unk>c");
    for (stop, text) in [("<s>", " ab"), ("<unk>", " ab a")] {
        let run = [&RUN[..], &["-q", "--json", "--prompt", "abc", "--stop", stop]].concat();
        let report: Value = serde_json::from_str(&talk.sandbox.run(&run).text()).unwrap();
        assert_eq!((&report["text"], &report["stop"]), (&json!(text), &json!("stop_string")), "{stop}");
    }
}

#[test]
fn a_start_token_is_noted_where_it_comes_twice() {
    let talk = Talk::sentencepiece("abc", &["abc", "c"]);
    talk.sandbox.write("prompt.txt", "<s>ab");
    let note = "begins with <s>, and the tokenizer puts another one before it";
    for (prompt, is_noted) in [
        (["--prompt", "<s>abc"], true),
        (["--prompt-file", "prompt.txt"], true),
        (["--prompt", "abc"], false),
        (["--prompt", "a<s>"], false),
        (["--prompt", "</s>a"], false),
    ] {
        let ran = talk.sandbox.run(&[&RUN[..], &prompt].concat());
        assert_eq!(ran.stderr.contains(note), is_noted, "{prompt:?}: {}", ran.stderr);
        ran.text();
    }
}
