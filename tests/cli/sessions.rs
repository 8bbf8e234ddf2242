//! `run --session` and `--kv-disk`: texts that go on, and prompts that are found again.

use super::{Ran, Sandbox};
use crate::harness::{adapter, program};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

impl Ran {
    #[track_caller]
    fn report(self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A text in pieces is the text in one, with penalties as well; only what is new is computed.
#[test]
fn a_text_goes_on_where_its_session_ends() {
    let sandbox = Sandbox::of("gptoss-base");
    let sampling = ["--temp", "0.8", "--repeat-penalty", "1.1", "--presence-penalty", "0.4", "--ignore-end"];
    let run = |more: &[&str]| sandbox.run(&[&["run", "--json"], &sampling[..], more].concat()).report();
    let whole = run(&["--prompt", "A slice is", "-n", "150", "--seed", "5"]);
    assert_eq!(whole["session_tokens"], Value::Null);
    let mut tokens = Vec::new();
    for (n, count) in [7, 0, 16, 1, 64, 40, 22].into_iter().enumerate() {
        let count = count.to_string();
        let first = ["--prompt", "A slice is", "--seed", "5"];
        let more = if n == 0 { &first[..] } else { &[] };
        let part = run(&[&["--session", "my.session", "-n", &count], more].concat());
        let prompt = part["prompt_tokens"].as_u64().unwrap();
        assert_eq!(part["seed"], 5);
        // The last token of a text has not been run when it is saved.
        let restored = if n == 0 { 0 } else { prompt - 1 };
        assert_eq!(part["session_tokens"], restored, "{part:#}");
        assert_eq!(part["cached_tokens"], restored, "{part:#}");
        tokens.extend(ids(&part["tokens"]));
        assert_eq!(mode(&sandbox.path("my.session")), 0o600);
    }
    assert_eq!(tokens, ids(&whole["tokens"]));
}

/// A prompt follows what the session has, as if all tokens had been given at once.
#[test]
fn a_prompt_follows_the_session() {
    let sandbox = Sandbox::of("gptoss-base");
    let plan = ["compile", "spec.toml", "--weights", ".", "-o", "a.plan", "-q", "--preset", "exact"];
    sandbox.run(&plan).text();
    let mut all: Vec<u32> = Vec::new();
    for turn in 0..6u32 {
        let asked: Vec<u32> = (0..5 + turn * 3).map(|n| (n * 31 + turn * 7) % 60).collect();
        sandbox.write("asked.json", json!(asked).to_string());
        all.extend(&asked);
        sandbox.write("all.json", json!(all).to_string());
        let usual = ["run", "a.plan", "-n", "9", "--ignore-end", "--json", "--context", "256"];
        let whole = sandbox.run(&[&usual[..], &["--tokens", "all.json"]].concat()).report();
        let session = ["--tokens", "asked.json", "--session", "chat"];
        let part = sandbox.run(&[&usual[..], &session].concat()).report();
        assert_eq!(part["tokens"], whole["tokens"], "turn {turn}");
        assert_eq!(part["prompt_tokens"], all.len());
        all.extend(ids(&part["tokens"]));
        let restored = part["session_tokens"].as_u64().unwrap() as usize;
        let known = all.len() - asked.len() - 9;
        assert_eq!(restored, known.saturating_sub(1), "turn {turn}");
    }
    // The same model, compiled in the process instead of before.
    let source = ["run", "spec.toml", "--weights", ".", "--preset", "exact", "-n", "0", "--session", "chat"];
    let part = sandbox.run(&[&source[..], &["--context", "256", "--json", "--ignore-end"]].concat()).report();
    assert_eq!(part["session_tokens"], all.len() - 1, "{part:#}");
    // Too long for the context.
    let long = ["run", "a.plan", "--session", "chat", "-n", "1", "--context", "20"];
    sandbox.run(&long).refused(&["the prompt has", "the context holds 20"]);
}

/// Blocks that cannot be used are computed anew, and one line gives the reason.
#[test]
fn sessions_of_others_are_computed_anew() {
    let sandbox = Sandbox::of("gptoss-base");
    let begin = ["run", "-q", "--prompt", "A slice is", "-n", "30", "--ignore-end", "--session"];
    sandbox.run(&[&begin[..], &["base"]].concat()).text();
    let go_on = |more: &[&str]| {
        fs::copy(sandbox.path("base"), sandbox.path("s")).unwrap();
        let ran =
            sandbox.run(&[&["run", "-n", "4", "--ignore-end", "--session", "s", "--json"], more].concat());
        let stderr = ran.stderr.clone();
        (ran.report(), stderr)
    };
    let (usual, said) = go_on(&[]);
    assert!(usual["session_tokens"].as_u64().unwrap() > 30 && !said.contains("note:"), "{said}");
    let (other, said) = go_on(&["--kv-format", "int8"]);
    assert_eq!(other["session_tokens"], 0);
    assert!(said.contains("KV cache f16, this is") && said.contains("computed anew"), "{said}");
    let (other, said) = go_on(&["--preset", "exact"]);
    assert_eq!(other["session_tokens"], 0);
    assert!(said.contains("preset faithful") && said.contains("preset exact"), "{said}");
    // Rows that are damaged.
    let bytes = fs::read(sandbox.path("base")).unwrap();
    let mut damaged = bytes.clone();
    let end = damaged.len() - 1;
    damaged[end - 9000..].iter_mut().for_each(|byte| *byte ^= 1);
    sandbox.write("base", &damaged);
    let (other, said) = go_on(&[]);
    assert!(said.contains("s is damaged: ") && said.contains("computed anew"), "{said}");
    assert_eq!(other["tokens"], usual["tokens"]);
    // A file that is no session stays as it is.
    for (contents, says) in [
        (b"no session".to_vec(), "it is not a saved session"),
        (bytes[..4200].to_vec(), "is damaged"),
        ([&bytes[..4100], b"??", &bytes[4102..]].concat(), "is damaged"),
        (Vec::new(), "it is not a saved session"),
    ] {
        sandbox.write("foreign", &contents);
        let ran = sandbox.run(&["run", "--session", "foreign", "--prompt", "a"]);
        ran.refused(&["foreign: ", says]);
        assert_eq!(fs::read(sandbox.path("foreign")).unwrap(), contents);
    }
    sandbox.run(&["run", "--session", "none/s", "--prompt", "a"]).refused(&["none/s: "]);
    sandbox.run(&["run", "--session", ".", "--prompt", "a"]).refused(&[".: "]);
}

/// Other weights, spec or adapters make other rows, whatever the model's name.
#[test]
fn weights_and_adapters_tell_sessions_apart() {
    let sandbox = Sandbox::of("gptoss-base");
    let qv = adapter("qv");
    let qv = |scale: &str| format!("qv={}{scale}", qv.display());
    let (as_trained, halved) = (qv(""), qv(":0.5"));
    let run = |more: &[&str]| {
        let usual = ["run", "spec.toml", "--weights", ".", "--ignore-end", "--json", "--temp", "0"];
        let ran = sandbox.run(&[&usual[..], more].concat());
        let stderr = ran.stderr.clone();
        (ran.report(), stderr)
    };
    let (whole, _) = run(&["--tokens", "ids.json", "-n", "60", "--lora", &as_trained]);
    run(&["--tokens", "ids.json", "-n", "33", "--lora", &as_trained, "--session", "base"]);
    let go_on = |more: &[&str]| {
        fs::copy(sandbox.path("base"), sandbox.path("s")).unwrap();
        run(&[&["-n", "27", "--session", "s"], more].concat())
    };
    let (rest, said) = go_on(&["--lora", &as_trained]);
    assert_eq!(
        (ids(&rest["tokens"]), &rest["session_tokens"]),
        (ids(&whole["tokens"])[33..].to_vec(), &37.into())
    );
    assert!(!said.contains("computed anew"), "{said}");
    for other in [&["--lora", &halved][..], &[]] {
        let (rest, said) = go_on(other);
        assert_eq!(rest["session_tokens"], 0, "{other:?}");
        assert!(said.contains("adapter qv:1") && said.contains("computed anew"), "{said}");
    }
    // One bit of the weights, which are the end of the file.
    let mut weights = fs::read(sandbox.path("model.safetensors")).unwrap();
    let end = weights.len() - 2;
    weights[end] ^= 0x10;
    sandbox.write("model.safetensors", weights);
    let (rest, said) = go_on(&["--lora", &as_trained]);
    assert_eq!(rest["session_tokens"], 0);
    assert!(said.contains("other weights, another spec") && said.contains("computed anew"), "{said}");
}

/// A kill at any time leaves the session that was, or the new one.
#[test]
fn a_kill_loses_nothing_but_the_new_part() {
    let sandbox = Sandbox::of("gptoss-base");
    let go_on =
        ["run", "-q", "-n", "20", "--ignore-end", "--threads", "1", "--session", "s", "--prompt", "It"];
    let start = Instant::now();
    sandbox.run(&go_on).text();
    let mut whole = start.elapsed();
    let tokens = || {
        let file = kernmill_kv_store::SessionFile::open(&sandbox.path("s")).unwrap();
        assert_eq!(file.lost_records(), 0);
        file.session().tokens.clone()
    };
    let mut before = tokens();
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut killed, mut tries) = (0, 0);
    while killed < 20 {
        tries += 1;
        assert!(tries < 300, "only {killed} of the kills came before the end");
        let mut child = program().args(go_on).current_dir(sandbox.dir.path()).spawn().unwrap();
        // Most of them while the text is saved.
        std::thread::sleep(whole.mul_f64(0.7 + 0.35 * rng.f64()));
        child.kill().unwrap();
        match child.wait().unwrap().signal() {
            Some(libc::SIGKILL) => killed += 1,
            // The machine's other load has become less.
            _ => whole = whole.mul_f64(0.9),
        }
        let after = tokens();
        assert!(after.starts_with(&before), "a kill lost something");
        before = after;
    }
    sandbox.run(&go_on).text();
    assert!(tokens().len() > before.len());
    assert!(!sandbox.files().iter().any(|name| name.ends_with(".unfinished")), "{:?}", sandbox.files());
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "segment")).collect()
}

#[test]
fn prompts_are_found_on_disk_after_a_restart() {
    let sandbox = Sandbox::of("gptoss-base");
    let prompt = "A slice is a view into a contiguous sequence of elements. ".repeat(5);
    let run =
        |more: &[&str]| sandbox.run(&[&["run", "--prompt", &prompt, "-n", "9", "--json"], more].concat());
    let plain = run(&[]).report();
    assert_eq!((&plain["disk_tokens"], &plain["cached_tokens"]), (&0.into(), &0.into()));
    let first = run(&["--kv-disk", "kv"]).report();
    assert_eq!((&first["disk_tokens"], mode(&sandbox.path("kv"))), (&0.into(), 0o700));
    let second = run(&["--kv-disk", "kv"]).report();
    assert_eq!(second["disk_tokens"], plain["prompt_tokens"].as_u64().unwrap() - 1);
    // Other formats are other rows, and both fit into one directory.
    let other = run(&["--kv-disk", "kv", "--kv-format", "int8"]).report();
    assert_eq!(other["disk_tokens"], 0);
    assert_eq!(run(&["--kv-disk", "kv"]).report()["disk_tokens"], second["disk_tokens"]);
    // A batch finds what a run has kept, if it is the same tenant's.
    sandbox.write("r.jsonl", format!("{}\n", json!({ "id": "a", "prompt": prompt, "max_tokens": 3 })));
    let batch =
        |out: &str| sandbox.run(&["batch", "r.jsonl", "-o", out, "--kv-disk", "kv", "--json"]).report();
    batch("a.jsonl");
    let batch = batch("b.jsonl");
    assert!(batch["disk_tokens"].as_u64() > Some(40) && batch["disk_tokens"] == batch["cached_tokens"]);
    for answer in [&first, &second] {
        assert_eq!(answer["tokens"], plain["tokens"]);
    }
    // Damage costs a line in the log, and no token.
    let files = segments(&sandbox.path("kv"));
    assert!(!files.is_empty());
    for path in files {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        // Inside every record's rows, wherever slots begin.
        for at in (4096 + 100..bytes.len()).step_by(4096).filter(|at| bytes[at - 100..][..4] != *b"\x89KMV") {
            file.write_all_at(&[bytes[at] ^ 4], at as u64).unwrap();
        }
    }
    let damaged = run(&["--kv-disk", "kv", "--stats"]);
    let said = &damaged.stderr;
    assert!(said.matches("WARN KV cache on disk: ").count() == 1 && said.contains("computed anew"), "{said}");
    let damaged = damaged.report();
    assert_eq!((&damaged["tokens"], &damaged["disk_tokens"]), (&plain["tokens"], &0.into()));
}

#[test]
fn a_directory_that_is_of_no_use_is_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    let run = |more: &[&str]| sandbox.run(&[&["run", "--prompt", "a", "-n", "1"], more].concat());
    run(&["--kv-disk-limit", "1G"]).refused(&["--kv-disk-limit: there is no --kv-disk"]);
    run(&["--kv-disk", "spec.toml"]).refused(&["--kv-disk: spec.toml: it is not a directory"]);
    run(&["--kv-disk", "none/kv"]).refused(&["--kv-disk: none/kv: "]);
    fs::create_dir(sandbox.path("open")).unwrap();
    fs::set_permissions(sandbox.path("open"), fs::Permissions::from_mode(0o755)).unwrap();
    run(&["--kv-disk", "open"]).refused(&["others may use it (mode 0755)", "chmod 700"]);
    // A limit that holds nothing costs nothing but the blocks.
    run(&["--kv-disk", "kv", "--kv-disk-limit", "1K"]).text();
}
