//! MODEL: the same model given as directory, file of it, GGUF file, plan and spec, told apart by content; and
//! things of another kind.

use super::{Sandbox, kernmill};
use crate::gguf::convert::convert;
use crate::gguf::writer::BF16;
use std::fs;

/// A checkpoint's directory `model` with a GGUF file and a plan of it beside; their names say nothing of
/// their kinds.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::of("gptoss-base");
    fs::create_dir(sandbox.path("model")).unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::rename(sandbox.path(file), sandbox.path("model").join(file)).unwrap();
    }
    sandbox.write("file.a", convert("gptoss-base", BF16).bytes());
    sandbox.run(&["compile", "model", "-o", "file.b", "-q"]).text();
    fs::rename(sandbox.path("spec.toml"), sandbox.path("file.c")).unwrap();
    // The names of the tensors are those of its kind of file.
    sandbox.run(&["import", "file.a", "-o", "file.d"]).text();
    sandbox
}

/// Ways to give the model of [`sandbox`].
const WAYS: [&[&str]; 9] = [
    &["model"],
    &["model/model.safetensors"],
    &["model/config.json"],
    &["file.a"],
    &["file.b"],
    &["file.c", "--weights", "model"],
    &["--spec", "file.c", "--weights", "model/model.safetensors"],
    &["--spec", "file.d", "file.a"],
    &["--weights", "file.a"],
];

#[test]
fn every_way_to_give_a_model_gives_the_same_logits() {
    let sandbox = sandbox();
    let logits = |way: &[&str]| {
        let usual = ["logits", "--tokens", "ids.json", "--out", "out.safetensors"];
        sandbox.run(&[&usual, way].concat()).text();
        fs::read(sandbox.path("out.safetensors")).unwrap()
    };
    let expected = logits(WAYS[0]);
    for way in &WAYS[1..] {
        assert!(logits(way) == expected, "{way:?}");
    }
}

#[test]
fn every_command_takes_every_kind_of_model() {
    let sandbox = sandbox();
    for way in WAYS {
        let run = |args: &[&str]| sandbox.run(&[args, way].concat()).text();
        run(&["run", "--tokens", "ids.json", "-n", "2", "-q"]);
        run(&["bench", "--pp", "3", "--tg", "2", "--repeat", "1", "--read", "1M", "-q"]);
        assert!(run(&["explain", "-q"]).contains("moe_gate_up"), "{way:?}");
        assert!(run(&["inspect", "-q"]).contains("layers.1.down"), "{way:?}");
    }
    for model in ["model", "model/config.json", "file.a", "file.b"] {
        let spec = sandbox.run(&["import", model]).text();
        assert!(spec.contains("[model]") && spec.contains("op = \"router_topk\""), "{model}: {spec}");
        let out = format!("synth-{}", model.replace('/', "-"));
        sandbox.run(&["synth", model, "-o", &out, "-q"]).text();
        // The written file can be read again.
        sandbox.run(&["run", &out, "--tokens", "ids.json", "-n", "2", "-q"]).text();
    }
    let compile = |model: &[&str]| {
        sandbox.run(&[&["compile", "-o", "new.plan", "-q"], model].concat()).text();
        fs::read(sandbox.path("new.plan")).unwrap()
    };
    assert!(
        compile(&["file.c", "--weights", "model"]) == compile(&["--spec", "file.c", "--weights", "model"])
    );
    compile(&["file.a"]);
    sandbox
        .run(&["compile", "file.b", "-o", "new.plan"])
        .refused(&["file.b: it is a plan, which is compiled already"]);
}

#[test]
fn what_a_plan_was_compiled_with_is_explained() {
    let sandbox = sandbox();
    let compile =
        ["compile", "model", "-o", "small.plan", "-q", "--preset", "exact", "--no-adapters", "--chunk", "7"];
    sandbox.run(&compile).text();
    let text = sandbox.run(&["explain", "small.plan", "-q", "--all"]).text();
    for part in ["preset exact", "up to 7 tokens"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains("for adapters"), "{text}");
    for option in [&["--preset", "fast"][..], &["--chunk", "5"], &["--no-fuse"]] {
        let explain = [&["explain", "small.plan"], option].concat();
        sandbox.run(&explain).refused(&[option[0], "a plan"]);
    }
}

#[test]
fn what_is_no_model_is_told_apart() {
    let sandbox = sandbox();
    sandbox.write("page", "<!DOCTYPE html><html>");
    sandbox.write("pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    sandbox.write("pickle", b"\x80\x02}q\x00");
    sandbox.write("other.json", "{}");
    sandbox.write("nothing", "");
    sandbox.write("prose", "Once upon a time");
    fs::create_dir(sandbox.path("empty")).unwrap();
    fs::create_dir(sandbox.path("files")).unwrap();
    sandbox.write("files/model-Q8_0.gguf", "GGUF");
    for (model, parts) in [
        ("page", &["page: it is a web page", "expected a plan"][..]),
        ("pointer", &["git-lfs pointer"]),
        ("pickle", &["it is a pickle", "safetensors"]),
        ("other.json", &["it is JSON text"]),
        ("nothing", &["it is empty"]),
        ("prose", &["prose", "not TOML"]),
        ("empty", &["empty: no config.json in this directory", "tokenizer.json", "--spec"]),
        ("files", &["no config.json", "such as files/model-Q8_0.gguf"]),
        ("/dev/zero", &["it is a pipe or a device"]),
        ("nowhere.plan", &["nowhere.plan: No such file"]),
        ("acme/gpt-oss-20b", &["name of a model", "`kernmill pull acme/gpt-oss-20b` fetches it"]),
        ("acme/Llama-3.2-1B", &["`kernmill pull"]),
    ] {
        for command in [&["run"][..], &["bench"], &["explain"], &["inspect"]] {
            let ran = sandbox.run(&[command, &[model]].concat());
            ran.refused(parts);
        }
    }
    let hub = kernmill(&["run", "docs/nothing"]);
    assert!(!hub.stderr.contains("hub"), "the first part is a directory: {}", hub.stderr);
}

#[test]
fn contradictions_are_refused() {
    let sandbox = sandbox();
    for (args, parts) in [
        (&["model", "--weights", "file.a"][..], &["--weights: model is a checkpoint itself"][..]),
        (&["file.a", "--weights", "model"], &["--weights: file.a is a checkpoint itself"]),
        (&["file.c", "--spec", "file.c"], &["--spec: file.c is a spec itself"]),
        (&["file.b", "--weights", "model"], &["--weights: a plan"]),
        (&["file.b", "--spec", "file.c"], &["--spec: a plan"]),
        (&["--weights", "file.b"], &["file.b: it is a plan", "as MODEL"]),
        (&["--weights", "file.c"], &["file.c: it is text, expected a checkpoint"]),
        (&["--spec", "file.a", "--weights", "model"], &["file.a: it is a GGUF file; expected a model spec"]),
        (&["file.c"], &["--weights is missing", "kernmill synth file.c -o DIR"]),
        (&["model", "--regenerate"], &["--regenerate: only a plan's code"]),
    ] {
        sandbox.run(&[&["run", "--tokens", "ids.json"], args].concat()).refused(parts);
    }
}
