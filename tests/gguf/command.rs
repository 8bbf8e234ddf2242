//! The program with GGUF files.

use super::convert::convert;
use super::random::{model, named};
use super::writer::{BF16, Writer};
use crate::harness::{oracle, program};
use std::fs;
use std::path::Path;
use std::process::Output;

fn kernmill(dir: &Path, args: &[&str]) -> Output {
    program().args(args).current_dir(dir).output().unwrap()
}

#[track_caller]
fn logits(dir: &Path, weights: &[&str]) -> Vec<u8> {
    let args = [&["logits", "--tokens", "ids.json", "--out", "logits.safetensors"], weights].concat();
    let output = kernmill(dir, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(dir.join("logits.safetensors")).unwrap()
}

#[test]
fn a_gguf_file_is_a_model() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ids.json"), "[3, 1, 4, 1, 5]").unwrap();
    fs::write(dir.path().join("model.gguf"), convert("gptoss-base", BF16).bytes()).unwrap();
    let expected = logits(dir.path(), &["--weights", oracle("gptoss-base").to_str().unwrap()]);
    assert!(logits(dir.path(), &["--weights", "model.gguf"]) == expected);

    let imported = kernmill(dir.path(), &["import", "model.gguf", "-o", "model.toml"]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    assert!(logits(dir.path(), &["--spec", "model.toml", "--weights", "model.gguf"]) == expected);
}

#[test]
fn refused_files_are_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ids.json"), "[1]").unwrap();
    let refused = |args: &[&str], expected: &str| {
        let output = kernmill(dir.path(), args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.starts_with("error: ") && message.contains(expected), "{expected}: {message}");
    };
    let mut writer = convert("llama-plain", BF16);
    let whole = writer.bytes();
    fs::write(dir.path().join("cut.gguf"), &whole[..whole.len() / 2]).unwrap();
    refused(&["import", "cut.gguf"], "cut.gguf: corrupt: tensor `");
    fs::write(dir.path().join("empty.gguf"), "").unwrap();
    refused(&["import", "empty.gguf"], "empty.gguf");
    writer.set("tokenizer.ggml.model", "rwkv");
    fs::write(dir.path().join("rwkv.gguf"), writer.bytes()).unwrap();
    refused(
        &["run", "rwkv.gguf", "--prompt", "a"],
        "tokenizer `rwkv`; supported are: byte-level BPE (`gpt2`)",
    );
    // Where ids come in and logits go out, nothing needs the tokenizer.
    logits(dir.path(), &["--weights", "rwkv.gguf"]);
}

/// Vocabularies and numbers as older or other writers leave them. Each change keeps the prompt's two tokens,
/// and may bring a note.
#[test]
fn files_of_other_writers_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut usual = convert("gptoss-base", BF16);
    let mut tokens: Vec<String> = ('a'..='z').map(String::from).collect();
    tokens.extend(["ab", "cd", "ab", "c"].map(str::to_owned));
    let texts = |tokens: &[String], writer: &mut Writer| {
        writer.set("tokenizer.ggml.tokens", &tokens.iter().map(String::as_str).collect::<Vec<_>>()[..]);
        writer.set("tokenizer.ggml.token_type", &vec![1; tokens.len()][..]);
    };
    usual.set("tokenizer.ggml.model", "gpt2");
    usual.set("tokenizer.ggml.pre", "gpt-2");
    usual.set("tokenizer.ggml.merges", &["a b", "c d"][..]);
    texts(&tokens[..28], &mut usual);
    let changed = |change: &dyn Fn(&mut Writer)| {
        let mut writer = usual.clone();
        change(&mut writer);
        fs::write(dir.path().join("model.gguf"), writer.bytes()).unwrap();
        let args = [
            "run",
            "model.gguf",
            "--prompt",
            "abcd",
            "-n",
            "2",
            "--json",
            "--temp",
            "0",
            "--logit-bias",
            "26=1000",
        ];
        let output = kernmill(dir.path(), &args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{message}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["prompt_tokens"], &report["text"]), (&2.into(), &"abab".into()));
        message.contains("`tokenizer.ggml.pre` does not say")
    };
    for (change, is_noted) in [
        (&(|_: &mut Writer| {}) as &dyn Fn(&mut Writer), false),
        (&|w| w.remove("tokenizer.ggml.pre"), true),
        (&|w| w.set("tokenizer.ggml.pre", "default"), true),
        (&|w| w.set("tokenizer.ggml.pre", "smaug-bpe"), false),
        // Two tokens with one text, then two such pairs.
        (&|w| texts(&tokens[..29], w), false),
        (&|w| texts(&tokens, w), false),
        (&|w| w.set("gpt-oss.attention.head_count_kv", &[2, 2][..]), false),
        (&|w| w.set("gpt-oss.attention.head_count", &[4, 4][..]), false),
    ] {
        assert_eq!(changed(change), is_noted);
    }
}

/// Whatever is wrong with a file: one line that says what, and status 2.
#[test]
fn files_that_cannot_be_models_are_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ids.json"), "[1]").unwrap();
    let whole = convert("llama-plain", BF16);
    let changed = |change: fn(&mut Writer)| {
        let mut writer = whole.clone();
        change(&mut writer);
        writer.bytes()
    };
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n".to_vec();
    for (name, bytes, expected) in [
        ("lora.gguf", changed(|w| w.set("general.type", "adapter")), "a LoRA adapter in GGUF form"),
        ("clip.gguf", changed(|w| w.set("general.architecture", "clip")), "encoder for images or sounds"),
        ("key.gguf", changed(|w| w.set("llama.new_scale", 2f32)), "key `llama.new_scale` (2.0) is not known"),
        ("type.gguf", changed(|w| w.tensors[3].kind = 16), "is IQ2_XXS: take a file of the model in Q4_K_M"),
        ("pointer.gguf", pointer, "expected a GGUF file, but it is a git-lfs pointer"),
        (
            "m-00002-of-00003.gguf",
            changed(|w| {
                w.set("split.no", 1);
                w.set("split.count", 3);
            }),
            "2 parts are missing beside it: m-00001-of-00003.gguf, m-00003-of-00003.gguf",
        ),
    ] {
        fs::write(dir.path().join(name), bytes).unwrap();
        for args in [
            &["logits", name, "--tokens", "ids.json", "--out", "o.safetensors"][..],
            &["import", name],
            &["run", name, "--tokens", "ids.json"],
        ] {
            let output = kernmill(dir.path(), args);
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
            assert!(message.starts_with("error: ") && message.contains(expected), "{expected}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}

#[test]
fn weights_that_take_more_than_their_file_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ids.json"), "[1, 2]").unwrap();
    let commands: [&[&str]; 5] = [
        &["run", "model.gguf", "--tokens", "ids.json", "-n", "1", "--preset", "exact"],
        &["compile", "model.gguf", "-o", "model.plan", "--preset", "exact"],
        &["compile", "model.gguf", "--dry-run", "--preset", "exact"],
        &["explain", "model.gguf", "--preset", "exact"],
        &["run", "model.plan", "--tokens", "ids.json", "-n", "1"],
    ];
    let notes = |args: &[&str]| {
        let Output { status, stdout, stderr } = kernmill(dir.path(), args);
        assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
        let said = String::from_utf8([stdout, stderr].concat()).unwrap();
        let notes = said.lines().filter(|line| line.contains(" bits a weight, preset ")).map(str::to_owned);
        notes.collect::<Vec<_>>()
    };
    fs::write(dir.path().join("model.gguf"), model(0, &|_| named("F16"), &[9; 32]).bytes()).unwrap();
    for (n, args) in commands.iter().enumerate() {
        let notes = notes(args);
        // A plan has no file to be compared with.
        assert_eq!(notes.len(), usize::from(n < 4), "{args:?}: {notes:?}");
        let note = "note: the files have 16.0 bits a weight, preset exact keeps 32.0: ";
        assert!(notes.iter().all(|line| line.trim_start().starts_with(note)), "{args:?}: {notes:?}");
    }
    for (kept, scales) in [("Q4_0", 0), ("BF16", 9)] {
        fs::write(dir.path().join("model.gguf"), model(0, &|_| named(kept), &[scales; 32]).bytes()).unwrap();
        assert_eq!(notes(commands[0]), [""; 0], "{kept}");
    }
}
