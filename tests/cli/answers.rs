//! Files of answers of `kernmill batch`: what is gone on with, what stays as it is, and what is no file.

use super::Sandbox;
use super::outputs::make_pipe;
use crate::harness::{program, shell};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Stdio;

/// Two requests, the second one without an end of its line.
fn asked() -> Sandbox {
    let sandbox = Sandbox::of("gptoss-base");
    let body = json!({ "prompt": "A slice is", "max_tokens": 2 });
    let second = json!({ "custom_id": "b", "method": "POST", "url": "/v1/completions", "body": body });
    let requests = format!("{}\n{second}", json!({ "id": "a", "prompt": "x", "max_tokens": 2 }));
    sandbox.write("requests.jsonl", requests);
    sandbox
}

const BATCH: [&str; 4] = ["batch", "requests.jsonl", "-q", "-o"];

fn batch(out: &str) -> Vec<&str> {
    [&BATCH[..], &[out]].concat()
}

fn names(answers: &[u8]) -> Vec<String> {
    let answers = std::str::from_utf8(answers).unwrap();
    let name =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["custom_id"].as_str().unwrap().into();
    let mut names: Vec<String> = answers.lines().map(name).collect();
    names.sort();
    names
}

#[test]
fn files_that_are_none_of_answers_stay_as_they_are() {
    let sandbox = asked();
    sandbox.run(&batch("answers.jsonl")).text();
    let answers = fs::read(sandbox.path("answers.jsonl")).unwrap();
    let request = br#"{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"x"}}"#;
    let damaged = [&answers[..], b"my only copy"].concat();
    let between = [&answers[..], &[0; 100], &answers[..]].concat();
    let binary: Vec<u8> = (11..=255).cycle().take(300_000).collect();
    for (bytes, line) in [
        (&b"my only copy"[..], 1),
        (br#"{"settings": [1, 2, 3]}"#, 1),
        (&binary, 1),
        (request, 1),
        (&[request, &b"\n"[..]].concat(), 1),
        (&damaged, 3),
        (&between, 3),
        (&[0; 5000], 1),
    ] {
        sandbox.write("file", bytes);
        sandbox.run(&batch("file")).refused(&[&format!("file: line {line} is no answer of a batch")]);
        assert!(fs::read(sandbox.path("file")).unwrap() == bytes);
    }
    // A file that says to have a terabyte is not read to its end.
    sandbox.write("file", &answers);
    File::options().write(true).open(sandbox.path("file")).unwrap().set_len(1 << 40).unwrap();
    sandbox.run(&batch("file")).refused(&["file: line 3 is longer than 67108864 bytes"]);
    assert_eq!(fs::metadata(sandbox.path("file")).unwrap().len(), 1 << 40);
}

#[test]
fn zeros_that_a_power_cut_leaves_behind_answers_are_cut_off() {
    let sandbox = asked();
    sandbox.run(&batch("answers.jsonl")).text();
    let answers = fs::read(sandbox.path("answers.jsonl")).unwrap();
    let first = answers.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for kept in [first, first + 30, answers.len() - 1, answers.len()] {
        sandbox.write("file", [&answers[..kept], &[0; 3000]].concat());
        sandbox.run(&batch("file")).text();
        let again = fs::read(sandbox.path("file")).unwrap();
        assert_eq!(names(&again), ["a", "b"], "{kept}");
        assert!(again[..first] == answers[..first]);
    }
}

#[test]
fn the_requests_are_no_place_for_answers() {
    let sandbox = asked();
    let requests = fs::read(sandbox.path("requests.jsonl")).unwrap();
    symlink("requests.jsonl", sandbox.path("link")).unwrap();
    fs::hard_link(sandbox.path("requests.jsonl"), sandbox.path("same")).unwrap();
    for name in ["requests.jsonl", "link", "same"] {
        sandbox.run(&batch(name)).refused(&[name, "it has the requests"]);
    }
    for script in [
        r#"exec "$0" batch - -q -o requests.jsonl < requests.jsonl"#,
        r#"exec "$0" batch requests.jsonl -q -o - >> requests.jsonl"#,
        r#"exec "$0" batch - -q -o /dev/stdout < same >> link"#,
    ] {
        let output = shell(script).current_dir(sandbox.dir.path()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("it has the requests"), "{message}");
    }
    assert!(fs::read(sandbox.path("requests.jsonl")).unwrap() == requests);
}

#[test]
fn an_output_does_not_replace_a_file_of_its_model() {
    let sandbox = Sandbox::of("gptoss-base");
    symlink("model.safetensors", sandbox.path("link")).unwrap();
    let before = sandbox.files();
    let commands: [&[&str]; 6] = [
        &["compile", "spec.toml", "--weights", ".", "-q", "-o"],
        &["compile", "spec.toml", "--weights", ".", "-q", "--target", "x86-64-v3", "--emit", "obj", "-o"],
        &["explain", "spec.toml", "--weights", ".", "--html"],
        &["bench", "spec.toml", "--weights", ".", "-q", "--pp", "1", "--tg", "1", "--timeline"],
        &["logits", "spec.toml", "--weights", ".", "-q", "--tokens", "ids.json", "--out"],
        &["import", ".", "-o"],
    ];
    for command in commands {
        for name in ["model.safetensors", "link", "config.json"] {
            sandbox.run(&[command, &[name]].concat()).refused(&[name, "it is a file of the model"]);
        }
    }
    sandbox
        .run(&[commands[0], &["./spec.toml"]].concat())
        .refused(&["spec.toml", "it is a file of the model"]);
    assert_eq!(sandbox.files(), before);
}

#[test]
fn pipes_devices_and_standard_output_take_answers() {
    let sandbox = asked();
    make_pipe(&sandbox.path("pipe"));
    symlink("/dev/null", sandbox.path("null")).unwrap();
    symlink("below", sandbox.path("link")).unwrap();
    let pipe = sandbox.path("pipe");
    let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
    sandbox.run(&batch("pipe")).text();
    assert_eq!(names(&reader.join().unwrap()), ["a", "b"]);
    assert!(fs::metadata(sandbox.path("pipe")).unwrap().file_type().is_fifo());
    sandbox.run(&batch("null")).text();
    assert!(fs::metadata(sandbox.path("null")).unwrap().file_type().is_char_device());
    for name in ["-", "/dev/stdout"] {
        assert_eq!(names(sandbox.run(&batch(name)).text().as_bytes()), ["a", "b"]);
    }
    assert!(!sandbox.path("-").exists());
    // A link that leads nowhere leads to the new file.
    sandbox.run(&batch("link")).text();
    assert_eq!(names(&fs::read(sandbox.path("below")).unwrap()), ["a", "b"]);
    sandbox.run(&[&batch("-")[..], &["--json"]].concat()).refused(&["--json", "standard output"]);
    sandbox.run(&batch("gone/answers.jsonl")).refused(&["gone/answers.jsonl: No such file"]);
}

#[test]
fn two_batches_do_not_write_to_one_file() {
    let sandbox = asked();
    sandbox.run(&batch("answers.jsonl")).text();
    let answers = fs::read(sandbox.path("answers.jsonl")).unwrap();
    sandbox.write("answers.jsonl", &answers[..answers.len() - 9]);
    let other = File::open(sandbox.path("answers.jsonl")).unwrap();
    other.lock().unwrap();
    sandbox.run(&batch("answers.jsonl")).refused(&["answers.jsonl: another process writes to it"]);
    assert!(fs::read(sandbox.path("answers.jsonl")).unwrap() == answers[..answers.len() - 9]);
    other.unlock().unwrap();
    sandbox.run(&batch("answers.jsonl")).text();
    assert_eq!(names(&fs::read(sandbox.path("answers.jsonl")).unwrap()), ["a", "b"]);
}

const NANO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/model-specs/nano");

/// A lack of the system is no fault of the input, whichever file is the one too many.
#[test]
fn short_of_file_descriptors_the_work_fails_and_not_the_input() {
    let sandbox = asked();
    sandbox.run(&["run", "-q", "--prompt", "x", "-n", "2", "--session", "chat.session"]).text();
    let commands: [&[&str]; 4] = [
        &["batch", "requests.jsonl", "-q", "--threads", "1", "-o", "answers.jsonl", "--kv-disk", "kv"],
        &["run", "-q", "--threads", "1", "--prompt", "x", "-n", "1", "--session", "chat.session"],
        &["run", NANO, "-q", "--threads", "1", "--prompt", "x", "-n", "1"],
        &["logits", "--spec", "spec.toml", "--weights", ".", "--tokens", "ids.json", "--out", "logits"],
    ];
    let mut short = 0;
    for command in commands {
        for most in 4..12 {
            let output = shell(&format!(r#"ulimit -n {most}; exec "$0" "$@""#))
                .args(command)
                .current_dir(sandbox.dir.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            if message.contains("Too many open files") {
                short += 1;
                assert_eq!(output.status.code(), Some(1), "{command:?} with {most}: {message}");
            }
        }
    }
    assert!(short > 3, "{short}");
}

/// Answers of a model that is no plan have the name that those of its plan have.
#[test]
fn answers_to_chats_name_the_weights_and_the_arithmetic() {
    let sandbox = asked();
    let messages = json!([{ "role": "user", "content": "Hello!" }]);
    sandbox.write("chat.jsonl", json!({ "id": "c", "messages": messages, "max_tokens": 1 }).to_string());
    let name = |given: &[&str]| {
        let answer = sandbox.run(&[&["batch"], given, &["-q", "-o", "-"]].concat()).text();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["response"]["body"]["system_fingerprint"].as_str().unwrap().to_owned()
    };
    let of_preset = |preset: &str| name(&[NANO, "chat.jsonl", "--preset", preset]);
    let (exact, faithful) = (of_preset("exact"), of_preset("faithful"));
    assert!(exact.starts_with("km-") && exact != faithful, "{exact} {faithful}");
    assert_eq!(of_preset("exact"), exact);
    sandbox.run(&["compile", NANO, "--preset", "exact", "-q", "-o", "exact.plan"]).text();
    assert_eq!(name(&["exact.plan", "chat.jsonl"]), exact);
    // Other weights.
    sandbox.run(&["synth", NANO, "-o", "other", "-q"]).text();
    for file in ["tokenizer.json", "config.json"] {
        fs::copy(Path::new(NANO).join(file), sandbox.path("other").join(file)).unwrap();
    }
    assert!(name(&["other", "chat.jsonl", "--preset", "exact"]) != exact);
}

#[test]
fn options_of_serve_read_no_file_without_end() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("script.json", r#"{"tokenizer": "endless"}"#);
    symlink("/dev/zero", sandbox.path("endless")).unwrap();
    sandbox.write("long", "a".repeat(5000));
    let stage = ["--stage", "1/2", "--peer", "127.0.0.1:9", "--stage-key"];
    for (args, says) in [
        (vec!["--api-keys", "/dev/zero"], "it has more than 1048576 bytes"),
        (vec!["--script", "/dev/zero"], "it has more than 67108864 bytes"),
        (vec!["--script", "script.json"], "it is a pipe or a device"),
        ([&stage[..], &["/dev/zero"]].concat(), "it has more than 4096 bytes"),
        ([&stage[..], &["long"]].concat(), "it has more than 4096 bytes"),
    ] {
        let all = [&["serve", "--port", "0"], &args[..]].concat();
        let output = program().args(&all).current_dir(sandbox.dir.path()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(says), "{args:?}: {message}");
    }
}
