//! Command lines of newcomers: other programs' spellings of options, commands and models' names, texts
//! without an option, and the replies.

use super::{Ran, kernmill, kernmill_in};
use crate::harness::program;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

const NANO: &str = "model-specs/nano";

/// A text of the nano model's files, with these words behind `run`.
fn text(args: &[&str]) -> String {
    kernmill(&[&["run", "-q", "-n", "6"], args].concat()).text()
}

#[test]
fn a_text_is_the_same_by_every_spelling() {
    let expected =
        text(&[NANO, "--prompt", "A slice is", "--temp", "0", "--context", "64", "--threads", "1"]);
    for args in [
        &[NANO, "A slice is", "--temperature", "0", "-c", "64", "-t", "1"][..],
        &["-m", NANO, "-p", "A slice is", "--temp", "0", "--ctx-size", "64"],
        &["--model", NANO, "A slice is", "--temp", "0", "--max-model-len", "64"],
    ] {
        assert_eq!(text(args), expected, "{args:?}");
    }
    kernmill(&["run", "-m", NANO, "other", "-p", "x"]).refused(&["MODEL is given twice"]);
    kernmill(&["explain", "-m", NANO, NANO]).refused(&["--model is given, and MODEL too"]);
    kernmill(&["run", NANO, "A", "slice"]).misused("several words are one text between quotes");
    kernmill(&["run", "nowhere", "Why is the sky blue?"])
        .refused(&["nowhere: No such file", "--prompt TEXT"]);
    kernmill(&["chat", "What is 17 + 25?"])
        .refused(&["No such file", "it comes behind MODEL; `kernmill chat` alone"]);
}

#[test]
fn a_text_behind_the_model_is_the_first_message_of_a_chat() {
    let events = kernmill(&["chat", NANO, "What is a slice?", "-n", "4", "--json", "-q"]).text();
    assert!(events.contains("\"event\":\"end\"") || events.lines().count() > 2, "{events}");
    let expected = program()
        .args(["chat", NANO, "-n", "4", "--json", "-q"])
        .stdin(File::open(question(&TempDir::new().unwrap())).unwrap())
        .output()
        .unwrap();
    let answer = |text: &str| {
        text.lines().filter(|line| line.contains("\"text\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(answer(&events), answer(&String::from_utf8(expected.stdout).unwrap()));
}

/// A file with a question.
fn question(dir: &TempDir) -> std::path::PathBuf {
    let path = dir.path().join("question.txt");
    fs::write(&path, "What is a slice?\n").unwrap();
    path
}

#[test]
fn a_slip_is_told_from_what_is_not_there() {
    for (args, tip) in [
        (&["rnu"][..], "a similar subcommand exists: 'run'"),
        (&["srve"], "a similar subcommand exists: 'serve'"),
        (&["run", "--promt", "x"], "a similar argument exists: '--prompt'"),
        (&["serve", "--prot", "1"], "a similar argument exists: '--port'"),
    ] {
        kernmill(args).misused(tip);
    }
    for args in [&["run", "-x"][..], &["run", "--xyz"], &["serve", "--gpu-layers", "9"], &["serve", "--yz"]] {
        let ran = kernmill(args);
        assert!(!ran.stderr.contains("tip:"), "{args:?}: {}", ran.stderr);
        ran.misused("unexpected argument");
    }
    for (word, says) in [
        ("ps", "/api/ps"),
        ("convert", "nothing is converted first"),
        ("quantise", "`kernmill quantize MODEL -o FILE.gguf --type q4_k_m`"),
        ("version", "`kernmill --version`"),
        ("models", "docs/user/fits.md"),
        ("list", "`kernmill inspect MODEL`"),
    ] {
        kernmill(&[word]).refused(&[&format!("error: {word}: no such command; "), says]);
    }
}

#[test]
fn every_argument_for_a_model_knows_names_of_any_spelling() {
    let dir = TempDir::new().unwrap();
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano/nano.toml");
    let spec = spec.to_str().unwrap();
    let names = [
        "gpt-oss:20b",
        "Llama-3.2-1B",
        "openai/gpt-oss-20b",
        "hf.co/acme/tiny-GGUF:Q4_K_M",
        "https://huggingface.co/openai/gpt-oss-20b",
    ];
    for name in names {
        let fetches = kernmill_in(dir.path(), &["run", name]);
        fetches.refused(&[name, "`kernmill pull ", " fetches it; nothing is downloaded unasked"]);
    }
    kernmill_in(dir.path(), &["run", "https://a.example/m.gguf"]).refused(&["`curl -LO '"]);
    let name = names[0];
    for args in [
        &["chat", name][..],
        &["serve", name],
        &["batch", name, "r.jsonl", "-o", "a.jsonl"],
        &["compile", name, "-o", "a.plan"],
        &["tokens", name, "text"],
        &["logits", name, "--prompt", "x", "--out", "l"],
        &["bench", name],
        &["import", name],
        &["explain", name],
        &["inspect", name],
        &["synth", name, "-o", "s"],
        &["run", spec, "--weights", name],
        &["run", "--draft-model", name],
    ] {
        fs::write(dir.path().join("r.jsonl"), "{\"prompt\": \"A\"}\n").unwrap();
        kernmill_in(dir.path(), args)
            .refused(&["gpt-oss:20b: ", "`kernmill pull openai/gpt-oss-20b` fetches it"]);
    }
    // The message about any other path does not mention hubs.
    let plain = kernmill_in(dir.path(), &["run", "dir/model.plan"]);
    assert!(!plain.stderr.contains("hub"), "{}", plain.stderr);
    plain.refused(&["No such file"]);
}

#[test]
fn ids_of_a_text_lead_back_to_it() {
    let dir = TempDir::new().unwrap();
    let ids = kernmill(&["tokens", NANO, "A slice is"]).text();
    assert_eq!(ids, kernmill(&["tokens", "-m", NANO, "--prompt", "A slice is"]).text());
    let file = dir.path().join("ids.json");
    fs::write(&file, &ids).unwrap();
    let file = file.to_str().unwrap();
    let back = kernmill(&["tokens", NANO, "--tokens", file]).text();
    assert_eq!(back, "<|endoftext|>A slice is\n", "the start token is shown by its name");
    let each = kernmill(&["tokens", NANO, "A slice is", "--each"]).text();
    assert!(each.lines().count() == 4 && each.contains(" \" slice\"\n"), "{each}");
    let logits = |args: &[&str], out: &str| {
        let out = dir.path().join(out);
        kernmill(&[&["logits", NANO, "--out", out.to_str().unwrap()], args].concat()).text();
        fs::read(out).unwrap()
    };
    assert_eq!(logits(&["A slice is"], "a"), logits(&["--tokens", file], "b"));
}

#[test]
fn an_import_does_not_replace_a_spec() {
    let dir = TempDir::new().unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join(NANO);
    let import = || kernmill_in(dir.path(), &["import", model.to_str().unwrap(), "-o", "m.toml"]);
    assert_eq!(import().text(), "");
    let file = dir.path().join("m.toml");
    fs::write(&file, "# mine").unwrap();
    import().refused(&["m.toml: it is there already, and stays as it is"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "# mine");
}

#[test]
fn what_was_written_is_said_with_its_size() {
    let dir = TempDir::new().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let nano = root.join(NANO).display().to_string();
    let spec = root.join("model-specs/examples/paper/parallel.toml").display().to_string();
    fs::write(dir.path().join("ids.json"), "[1, 2]").unwrap();
    for (args, says) in [
        (&["synth", &spec, "-o", "s"][..], "wrote s: `kernmill run` takes the directory"),
        (&["import", &nano, "-o", "m.toml"], " kB): `run` takes it"),
        (&["logits", "--tokens", "ids.json", "--out", "l"], "wrote l (24.7 kB): a tensor"),
        (&["man", "-o", "pages"], "wrote pages: `man pages/kernmill.1`"),
        (&["explain", &spec, "--html", "e.html"], "): a page for a browser"),
    ] {
        let Ran { status, stderr, .. } = kernmill_in(dir.path(), args);
        assert!(status == Some(0) && stderr.contains(says), "{args:?}: {stderr}");
    }
    let quiet = kernmill_in(dir.path(), &["synth", &spec, "-o", "t", "-q"]);
    assert_eq!((quiet.status, quiet.stderr.as_str()), (Some(0), ""));
}

#[test]
fn examples_of_man_pages_keep_their_lines() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().to_str().unwrap();
    kernmill(&["man", "-o", out]).text();
    let page = fs::read_to_string(dir.path().join("kernmill-run.1")).unwrap();
    let examples = page.split(".SH EXAMPLES\n.nf\n").nth(1).expect("the section");
    assert!(
        examples.contains("\n  kernmill run \\-\\-prompt \\(aqA slice is\\(aq \\-n 100 \\-\\-temp 0\n"),
        "{examples}"
    );
    assert!(examples.trim_end().ends_with(".fi"), "{examples}");
}

/// The program's text on a terminal, with these variables.
fn on_terminal(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> String {
    let (mut ours, mut theirs) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: the call writes two file descriptors, and reads nothing where the pointers are null.
    assert_eq!(unsafe { libc::openpty(&raw mut ours, &raw mut theirs, null, null.cast(), null.cast()) }, 0);
    // SAFETY: both are open, and belong to nobody else.
    let (mut ours, theirs) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) };
    let mut program = program();
    program.args(args).current_dir(dir).stdin(Stdio::null());
    program
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .env("LC_ALL", "C.UTF-8")
        .envs(variables.iter().copied());
    program.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut child = program.spawn().unwrap();
    // With it goes the last of our ends of the program's side.
    drop(program);
    let mut shown = Vec::new();
    let mut piece = [0; 4096];
    // A terminal that nobody holds any more is an error, not an end.
    while let Ok(length @ 1..) = ours.read(&mut piece) {
        shown.extend_from_slice(&piece[..length]);
    }
    child.wait().unwrap();
    String::from_utf8(shown).unwrap()
}

#[test]
fn colours_and_letters_are_those_that_the_terminal_shows() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("bad.toml"), "[model]\nname = \"x\"\nvocb = 3\n").unwrap();
    let calls =
        [&["explain", "bad.toml"][..], &["rnu"], &["run", "no.plan"], &["run", "-n", "2", "--temp", "0"]];
    for args in calls {
        assert!(on_terminal(dir.path(), args, &[]).contains('\u{1b}'), "{args:?} has colours");
        for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let shown = on_terminal(dir.path(), args, &[variable]);
            // A bar may still be drawn over where there are no colours.
            let ends = |piece: &str| piece.chars().find(char::is_ascii_alphabetic);
            let has =
                shown.split('\u{1b}').skip(1).any(|piece| variable.0 == "TERM" || ends(piece) == Some('m'));
            assert!(!shown.is_empty() && !has, "{variable:?} {args:?}: {shown:?}");
        }
    }
    let letters = |variables: &[(&str, &str)]| on_terminal(dir.path(), calls[3], variables);
    assert!(!letters(&[]).is_ascii() && letters(&[("LC_ALL", "C")]).is_ascii());
}

#[test]
fn who_runs_a_model_that_converses_is_told_of_chat() {
    let dir = TempDir::new().unwrap();
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(NANO).join(file);
        std::os::unix::fs::symlink(from, dir.path().join(file)).unwrap();
    }
    let run = ["run", ".", "What is a slice?", "-n", "2"];
    assert!(!on_terminal(dir.path(), &run, &[]).contains("kernmill chat"));
    fs::write(dir.path().join("chat_template.jinja"), "{{ messages[0].content }}").unwrap();
    let shown = on_terminal(dir.path(), &run, &[]);
    assert!(shown.contains("note: the model has a form for conversations"), "{shown}");
    assert!(!on_terminal(dir.path(), &[&run[..], &["-q"]].concat(), &[]).contains("kernmill chat"));
    // A script is not told: it would be in its log at every start.
    assert!(!kernmill_in(dir.path(), &run).stderr.contains("kernmill chat"));
}
