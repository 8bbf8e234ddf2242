//! Models in several files.

use super::convert::convert;
use super::writer::{BF16, Writer};
use super::{logits, tokens};
use crate::harness::Model;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::passes::quant::Preset;
use std::fs;
use std::path::Path;

const COUNT: usize = 3;

fn name(part: usize) -> String {
    format!("model-{:05}-of-{COUNT:05}.gguf", part + 1)
}

/// The parts of a model: the first has its metadata, and tensor i is in part i modulo `COUNT`.
fn parts(whole: &Writer) -> Vec<Writer> {
    let part = |part: usize| {
        let mut writer = Writer { keys: Vec::new(), tensors: Vec::new(), ..whole.clone() };
        if part == 0 {
            writer.keys = whole.keys.clone();
        }
        writer.set("split.no", part as u32);
        writer.set("split.count", COUNT as u32);
        writer.set("split.tensors.count", whole.tensors.len() as u32);
        let own = whole.tensors.iter().enumerate().filter(|(index, _)| index % COUNT == part);
        writer.tensors = own.map(|(_, tensor)| tensor.clone()).collect();
        writer
    };
    (0..COUNT).map(part).collect()
}

fn write(dir: &Path, parts: &[Writer]) {
    for (part, writer) in parts.iter().enumerate() {
        fs::write(dir.join(name(part)), writer.bytes()).unwrap();
    }
}

#[test]
fn any_part_stands_for_the_whole_model() {
    let dir = tempfile::tempdir().unwrap();
    for model in ["gptoss-base", "llama-plain"] {
        let whole = convert(model, BF16);
        write(dir.path(), &parts(&whole));
        fs::write(dir.path().join("whole.gguf"), whole.bytes()).unwrap();
        let tokens = &tokens(model)[..20];
        let expected = logits(&Model::open(&dir.path().join("whole.gguf")), Preset::Faithful, tokens);
        for part in 0..COUNT {
            let path = dir.path().join(name(part));
            assert_eq!(Gguf::open(&path).unwrap().path(), dir.path().join(name(0)));
            assert!(
                logits(&Model::open(&path), Preset::Faithful, tokens) == expected,
                "{model}, part {part}"
            );
        }
    }
}

/// The error of opening part `part` after `change`.
fn refused(part: usize, change: impl Fn(&Path, &mut Vec<Writer>), expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = parts(&convert("llama-plain", BF16));
    change(dir.path(), &mut parts);
    write(dir.path(), &parts);
    let error = Gguf::open(&dir.path().join(name(part))).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains(expected) && !error.contains("corrupt"), "{expected}: {error}");
}

#[test]
fn missing_parts_are_named() {
    let last = "part 1 of 3 of a model, and one part is missing beside it: model-00003-of-00003.gguf";
    refused(0, |_, parts| parts.truncate(2), last);
    let dir = tempfile::tempdir().unwrap();
    let parts = parts(&convert("llama-plain", BF16));
    fs::write(dir.path().join(name(1)), parts[1].bytes()).unwrap();
    let error = Gguf::open(&dir.path().join(name(1))).unwrap_err().to_string();
    let both = "2 parts are missing beside it: model-00001-of-00003.gguf, model-00003-of-00003.gguf";
    assert!(error.contains(both), "{error}");
    let copied = dir.path().join("sha256-1234");
    fs::rename(dir.path().join(name(1)), &copied).unwrap();
    let error = Gguf::open(&copied).unwrap_err().to_string();
    assert!(
        error.contains("it is part 2 of 3 of a model: expected a name that ends in `-00002-of-00003.gguf`"),
        "{error}"
    );
    let error = Gguf::from_bytes("model.gguf", parts[0].bytes()).unwrap_err().to_string();
    assert!(error.contains("it is one of 3 parts: expected a whole file"), "{error}");
}

#[test]
fn parts_that_are_no_files_are_refused_at_once() {
    let third = |link: &'static str| {
        move |dir: &Path, parts: &mut Vec<Writer>| {
            parts.truncate(2);
            std::os::unix::fs::symlink(link, dir.join(name(2))).unwrap();
        }
    };
    refused(0, third("/dev/zero"), "it is a pipe or a device, expected a regular file");
    refused(1, third("/dev/null"), "it is a pipe or a device, expected a regular file");
    refused(0, third("."), "it is a directory, expected a regular file");
    refused(1, third("nowhere"), "one part is missing beside it");
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    let another = "is it of another model?";
    refused(0, |_, parts| parts[1].set("split.count", 4), another);
    refused(2, |_, parts| parts[1].set("split.no", 0), another);
    refused(0, |_, parts| parts[2].remove("split.count"), another);
    refused(0, |_, parts| parts[0].set("split.no", 7), "key `split.no` is 7: expected less than");
    refused(0, |_, parts| parts[0].remove("split.no"), "key `split.no` is missing beside `split.count`");
    refused(0, |_, parts| parts[0].set("split.count", 60_000), "expected at most 1000 parts");
    let counted = "key `split.tensors.count` is 22";
    refused(1, |_, parts| parts[0].set("split.tensors.count", 22), counted);
    refused(0, |_, parts| drop(parts[1].tensors.pop()), "its parts hold 20 tensors, and key");
    let twice = |_: &Path, parts: &mut Vec<Writer>| {
        let tensor = parts[0].tensors[0].clone();
        parts[2].tensors.push(tensor);
    };
    refused(0, twice, "tensor `token_embd.weight` is in both");
}
