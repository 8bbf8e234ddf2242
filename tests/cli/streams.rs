//! Standard output and standard error: lost, closed, or shown names that mean harm.

use super::Sandbox;
use super::safetensors_file::{Entry, SafetensorsFile};
use crate::gguf::convert::convert;
use crate::gguf::writer::{BF16, Tensor};
use crate::harness::{adapter, program, shell};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Output, Stdio};

/// Runs the program with its standard streams as the shell's `redirection` says.
fn redirected(sandbox: &Sandbox, redirection: &str, args: &[&str]) -> Output {
    let mut command = shell(&format!(r#"exec "$0" "$@" {redirection}"#));
    command.args(args).current_dir(sandbox.dir.path()).stdin(Stdio::null()).output().unwrap()
}

/// Runs the program with a standard error whose reader has gone.
fn unheard(sandbox: &Sandbox, args: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = program();
    command.args(args).current_dir(sandbox.dir.path()).stdin(Stdio::null());
    command.stderr(writer).output().unwrap()
}

#[test]
fn a_lost_standard_error_loses_no_result_and_no_status() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", "spec.toml", "--weights", ".", "-o", "a.plan"]).text();
    sandbox.write("bad.toml", "[model]\nname = 1\n");
    sandbox.describe("two_cores");
    let commands: [(&[&str], i32); 11] = [
        (&["run", "-n", "5"], 0),
        (&["run", "a.plan", "--tokens", "ids.json", "-n", "3", "--verbose"], 0),
        (&["compile", "spec.toml", "--weights", ".", "-o", "b.plan"], 0),
        (&["explain", "spec.toml", "--machine", "host.json"], 0),
        (&["inspect", "a.plan", "--verify"], 0),
        (&["import", "."], 0),
        (&["import", "none"], 2),
        (&["compile", "bad.toml", "--emit", "hashes"], 2),
        (&["run", "--weights", "none", "--prompt", "A"], 2),
        (&["run", "--no-such-option"], 2),
        (&["logits", "a.plan", "--tokens", "ids.json", "--out", "none/x"], 2),
    ];
    for (args, status) in commands {
        let heard = redirected(&sandbox, "", args);
        assert_eq!(heard.status.code(), Some(status), "{args:?}");
        let full = redirected(&sandbox, "2>/dev/full", args);
        let closed = redirected(&sandbox, "2>&-", args);
        for (how, lost) in [("full", full), ("closed", closed), ("unheard", unheard(&sandbox, args))] {
            assert_eq!(lost.status.code(), Some(status), "{args:?}, {how}");
            assert!(lost.stdout == heard.stdout, "{args:?}, {how}");
        }
        assert!(status != 0 || !heard.stdout.is_empty() || args[0] == "compile");
    }
    assert!(sandbox.path("b.plan").exists());
}

#[test]
fn a_closed_or_full_standard_output_is_an_error_where_something_is_to_be_printed() {
    let sandbox = Sandbox::of("gptoss-base");
    let printing: [&[&str]; 6] = [
        &["run", "-n", "5", "-q"],
        &["run", "-n", "5", "-q", "--json"],
        &["import", "."],
        &["import", ".", "-o", "-"],
        &["--version"],
        &["run", "--help"],
    ];
    for args in printing {
        for (redirection, says) in [(">&-", "standard output is closed"), (">/dev/full", "No space left")] {
            let lost = redirected(&sandbox, redirection, args);
            let message = String::from_utf8(lost.stderr).unwrap();
            assert_eq!(lost.status.code(), Some(1), "{args:?} {redirection}: {message}");
            assert!(message.starts_with("error: ") && message.contains(says), "{args:?}: {message}");
        }
        assert_eq!(redirected(&sandbox, ">/dev/null", args).status.code(), Some(0), "{args:?}");
    }
    // A command that prints nothing needs no standard output.
    let silent = ["compile", "spec.toml", "--weights", ".", "-q", "-o", "a.plan"];
    assert_eq!(redirected(&sandbox, ">&-", &silent).status.code(), Some(0));
}

/// Names that clear a terminal, set its title, end its line, and turn the direction of writing.
const EVIL: [&str; 4] = ["a\u{1b}[2J\u{1b}]0;title\u{7}", "b\u{9b}31m", "c\rgood", "d\u{202e}txe"];

#[track_caller]
fn assert_harmless(what: &str, text: &[u8]) {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!text.contains(harmful), "{what}: {text:?}");
}

#[test]
fn names_that_mean_harm_are_shown_without_control_characters() {
    let sandbox = Sandbox::of("gptoss-base");
    let spec = sandbox.read("spec.toml");
    fs::create_dir(sandbox.path("evil")).unwrap();
    for name in EVIL {
        let quoted: String = name.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        sandbox.write("evil/config.json", format!("{{\"architectures\": [\"{quoted}\"]}}"));
        sandbox.write("key.toml", spec.replacen("[model]", &format!("[model]\n\"{quoted}\" = 1"), 1));
        sandbox.write("raw.toml", spec.replacen("[model]", &format!("[model]\n{name} = 1"), 1));
        let refused: [&[&str]; 7] = [
            &["import", "evil"],
            &["import", name],
            &["compile", "key.toml", "--emit", "hashes"],
            &["compile", "raw.toml", "--emit", "hashes"],
            &["run", "--preset", name],
            &["run", name],
            &["logits", "--tokens", "ids.json", "--out", &format!("none{name}/x")],
        ];
        for args in refused {
            let output = redirected(&sandbox, "", args);
            assert_eq!(output.status.code(), Some(2), "{args:?}");
            assert!(!output.stderr.is_empty());
            assert_harmless(&format!("{args:?}"), &output.stderr);
        }
        let line = spec.lines().find(|line| line.starts_with("name")).unwrap();
        sandbox.write("named.toml", spec.replacen(line, &format!("name = \"{quoted}\""), 1));
        let compile = ["compile", "named.toml", "--weights", ".", "-o", "evil.plan"];
        let compiled = redirected(&sandbox, "", &compile);
        assert_harmless("compile", &compiled.stderr);
        if compiled.status.code() == Some(0) {
            let listing = redirected(&sandbox, "", &["inspect", "evil.plan"]);
            assert_eq!(listing.status.code(), Some(0));
            assert_harmless("inspect", &listing.stdout);
        }
    }
}

/// Names within checkpoints, GGUF files and adapters.
#[test]
fn names_in_files_that_mean_harm_are_shown_without_control_characters() {
    let sandbox = Sandbox::of("gptoss-base");
    let adapter = adapter("qv");
    let config = fs::read_to_string(adapter.join("adapter_config.json")).unwrap();
    for dir in ["checkpoint", "index", "tensors", "kind"] {
        fs::create_dir(sandbox.path(dir)).unwrap();
    }
    fs::copy(sandbox.path("config.json"), sandbox.path("checkpoint/config.json")).unwrap();
    fs::copy(sandbox.path("config.json"), sandbox.path("index/config.json")).unwrap();
    for name in EVIL {
        let quoted: String = name.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let with_another = |from: &Path, to: &str| {
            fs::copy(from, sandbox.path(to)).unwrap();
            let mut file = SafetensorsFile::read(&sandbox.path(to));
            let another = Entry { name: name.to_owned(), ..file.entries[0].clone() };
            file.entries.push(another);
            file.write();
        };
        with_another(&sandbox.path("model.safetensors"), "checkpoint/model.safetensors");
        let weight_map = format!("{{\"weight_map\": {{\"a\": \"{quoted}.safetensors\"}}}}");
        sandbox.write("index/model.safetensors.index.json", weight_map);
        with_another(&adapter.join("adapter_model.safetensors"), "tensors/adapter_model.safetensors");
        sandbox.write("tensors/adapter_config.json", &config);
        fs::copy(adapter.join("adapter_model.safetensors"), sandbox.path("kind/adapter_model.safetensors"))
            .unwrap();
        sandbox.write(
            "kind/adapter_config.json",
            config.replace("\"peft_type\": \"LORA\"", &format!("\"peft_type\": \"{quoted}\"")),
        );
        let mut gguf = convert("gptoss-base", BF16);
        let another = Tensor { name: name.to_owned(), ..gguf.tensors[0].clone() };
        gguf.tensors.push(another);
        sandbox.write("tensor.gguf", gguf.bytes());
        let mut gguf = convert("gptoss-base", BF16);
        gguf.set("general.architecture", name);
        sandbox.write("kind.gguf", gguf.bytes());
        let mut gguf = convert("gptoss-base", BF16);
        gguf.keys.push((name.to_owned(), 1u32.into()));
        gguf.keys.push((name.to_owned(), 1u32.into()));
        sandbox.write("key.gguf", gguf.bytes());
        let logits = ["logits", "--tokens", "ids.json", "--out", "x.safetensors"];
        let refused: [&[&str]; 7] = [
            &["checkpoint"],
            &["index"],
            &[".", "--lora", "a=tensors"],
            &[".", "--lora", "a=kind"],
            &["tensor.gguf"],
            &["kind.gguf"],
            &["key.gguf"],
        ];
        for args in refused {
            let output = redirected(&sandbox, "", &[&logits, args].concat());
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
            // The harmless part of the name is there.
            let seen = name.chars().find(char::is_ascii_lowercase).unwrap();
            assert!(message.contains(&format!("{seen}\\u{{")), "{args:?}: {message}");
            assert_harmless(&format!("{args:?}"), &output.stderr);
        }
    }
}

#[test]
fn endless_names_are_cut() {
    let sandbox = Sandbox::of("gptoss-base");
    let name = "x".repeat(100_000);
    sandbox.write("config.json", format!("{{\"architectures\": [\"{name}\"]}}"));
    sandbox.write("spec.toml", format!("[model]\n{name} = 1\n"));
    let refused: [&[&str]; 3] =
        [&["import", "."], &["compile", "spec.toml", "--emit", "hashes"], &["run", "--preset", &name]];
    for args in refused {
        let output = redirected(&sandbox, "", args);
        assert_eq!(output.status.code(), Some(2), "{}", args[0]);
        assert!((1..16_000).contains(&output.stderr.len()), "{}: {} bytes", args[0], output.stderr.len());
    }
    assert!(File::open(sandbox.path("config.json")).is_ok());
}
