//! Prompts that are piped in, texts that Ctrl-C ends, and what is said about the run.

use super::{Ran, Sandbox, interrupt, interruptible, kernmill};
use crate::harness::program;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Output, Stdio};

/// Continues what `input` brings.
fn piped(input: &[u8], args: &[&str]) -> Ran {
    let mut child = program()
        .args([&["run", "-q", "-n", "8", "--temp", "0", "--ignore-end"], args].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that reads nothing may have gone.
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { status: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn prompted(prompt: &str) -> String {
    kernmill(&["run", "-q", "-n", "8", "--temp", "0", "--ignore-end", "--prompt", prompt]).text()
}

#[test]
fn what_is_piped_in_is_continued() {
    let expected = prompted("A slice is");
    assert_eq!(piped(b"A slice is", &[]).text(), expected);
    assert_eq!(piped(b"A slice is\n", &[]).text(), expected, "the line end of echo is not meant");
    assert_eq!(piped(b"A slice is\r\n", &[]).text(), expected);
    assert_eq!(piped(b"A slice is\n\n", &[]).text(), prompted("A slice is\n"), "one line end is left out");
    assert_eq!(piped(b"A slice is\n", &["--prompt-file", "-"]).text(), prompted("A slice is\n"), "as it is");
    assert_eq!(piped(b"Another prompt", &["--prompt", "A slice is"]).text(), expected);
    let example = kernmill(&["run", "-q", "-n", "8", "--temp", "0", "--ignore-end"]).text();
    assert_eq!(piped(b"", &[]).text(), example, "nothing is piped in");
    piped(&[0xff, 0xfe, b'a'], &[]).refused(&["standard input", "UTF-8"]);
}

#[test]
fn a_file_on_standard_input_is_continued() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("prompt", "A slice is\n");
    let run = |file: &str| {
        let mut program = program();
        program.args(["run", "-q", "-n", "8", "--temp", "0", "--ignore-end"]);
        program.stdin(File::open(file).unwrap());
        String::from_utf8(program.output().unwrap().stdout).unwrap()
    };
    assert_eq!(run(sandbox.path("prompt").to_str().unwrap()), prompted("A slice is"));
    assert!(run("/dev/null").starts_with("# References"), "a device brings no prompt");
}

#[test]
fn ctrl_c_ends_a_text_with_its_figures_and_saves_it() {
    let mut ended = false;
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("s");
    for _ in 0..20 {
        let mut child = interruptible()
            .args([
                "run",
                "-n",
                "-1",
                "--ignore-end",
                "--prompt",
                "A slice is",
                "--preset",
                "exact",
                "--threads",
                "1",
                "--session",
            ])
            .arg(&session)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0];
        stdout.read_exact(&mut first).unwrap();
        interrupt(&child);
        let (mut text, mut figures) = (String::new(), String::new());
        stdout.read_to_string(&mut text).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut figures).unwrap();
        let status = child.wait().unwrap().code();
        if status == Some(0) {
            // It was done before.
            fs::remove_file(&session).unwrap();
            continue;
        }
        assert_eq!(status, Some(130), "{figures}");
        assert!(text.ends_with('\n'), "{text:?}");
        assert!(figures.contains("tokens/s") && figures.contains("ended by Ctrl-C; seed 0"), "{figures}");
        let go_on = ["run", "-n", "1", "--preset", "exact", "--session", session.to_str().unwrap(), "--json"];
        let report: serde_json::Value = serde_json::from_str(&kernmill(&go_on).text()).unwrap();
        assert!(report["session_tokens"].as_u64() > Some(3), "{report:#}");
        ended = true;
        break;
    }
    assert!(ended, "no Ctrl-C came before the end");
}

#[test]
fn more_threads_than_cpus_are_noted() {
    let run = |threads: &str, more: &[&str]| {
        kernmill(&[&["run", "-n", "1", "--prompt", "a", "--threads", threads], more].concat())
    };
    let many = run("70", &[]);
    assert!(many.stderr.starts_with("note: --threads 70: workers may use"), "{}", many.stderr);
    let one = run("2", &["--cpus", "0"]);
    assert!(one.stderr.starts_with("note: --threads 2: workers may use 1 CPU;"), "{}", one.stderr);
    assert!(!run("1", &[]).stderr.contains("note:"));
    assert_eq!(run("70", &["-q"]).stderr, "");
}

#[test]
fn what_is_done_is_said_where_it_is_asked_for() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    let run = ["run", "a.plan", "--tokens", "ids.json", "-n", "1", "-q"];
    assert_eq!(sandbox.run(&run).stderr, "");
    let verbose = sandbox.run(&[&run[..], &["-v"]].concat());
    assert!(verbose.stderr.contains("INFO") && verbose.stderr.contains("the only one"), "{}", verbose.stderr);
    for _ in 0..2 {
        let logged = sandbox.run(&[&run[..], &["-vv", "--log-file", "log"]].concat());
        assert_eq!(logged.stderr, "");
    }
    assert_eq!(sandbox.read("log").matches("the only one").count(), 2, "a log is appended to");
    sandbox.run(&[&run[..], &["--log-file", "none/log"]].concat()).refused(&["none/log", "No such file"]);
    let json = [&run[..], &["--log-format", "json", "--log-file", "lines"]].concat();
    sandbox.run(&json).text();
    sandbox.run(&json).text();
    // Nothing else is appended to.
    for file in ["a.plan", "ids.json"] {
        let before = fs::read(sandbox.path(file)).unwrap();
        sandbox.run(&[&run[..], &["--log-file", file]].concat()).refused(&[file, "it is no log"]);
        assert!(fs::read(sandbox.path(file)).unwrap() == before, "{file} was written to");
    }
    let traced = |filter: &str| {
        let args = ["explain", "model-specs/nano/nano.toml", "-q", "--emit", "fused"];
        let output = program().args(args).env("RUST_LOG", filter).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(traced("kernmill_compiler=debug").1.contains("pass=\"verify\""));
    assert_eq!(traced("error"), (Some(0), String::new()));
    let (status, message) = traced("a=b=c");
    assert!(status == Some(2) && message.starts_with("error: RUST_LOG=a=b=c: "), "{message}");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let sandbox = Sandbox::of("gptoss-base");
    let commands =
        ["run", "compile", "logits", "bench", "import", "explain", "fuse", "inspect", "synth", "cpu"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = sandbox.run(&["completions", shell]).text();
        for word in commands.iter().chain(&["prompt-file"]) {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    sandbox.run(&["completions", "dos"]).refused(&["'dos'", "bash"]);
    sandbox.run(&["man", "-o", "man"]).text();
    for command in commands {
        let page = fs::read_to_string(sandbox.path("man").join(format!("kernmill-{command}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains("kernmill"), "{page}");
    }
    let run = fs::read_to_string(sandbox.path("man/kernmill-run.1")).unwrap();
    assert!(run.contains("KERNMILL_MAX_TOKENS") && run.contains("embedded nano model"), "{run}");
    assert!(sandbox.path("man/kernmill-fuse-check.1").exists());
    assert!(sandbox.run(&["man"]).text().contains(".TH kernmill 1"));
}
