//! Commands that do their work.

use super::{Sandbox, kernmill};
use crate::harness::program;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::process::Stdio;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn run_streams_text_and_ends_with_figures() {
    let run = |more: &[&str]| kernmill(&[&["run", "-n", "20", "--ignore-end"], more].concat());
    let plain = run(&[]);
    assert!(plain.stdout.starts_with("# ") && plain.stdout.len() > 40, "{}", plain.stdout);
    assert!(plain.stderr.contains("tokens/s") && plain.stderr.contains("peak memory"), "{}", plain.stderr);
    assert_eq!(plain.stderr.lines().count(), 1, "no progress bar without a terminal");
    assert!(plain.stderr.contains("ended by -n 20; seed 0"), "{}", plain.stderr);

    let quiet = run(&["--quiet", "--threads", "1"]);
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.text(), plain.stdout, "the seed is fixed, and threads change nothing");
    assert_ne!(run(&["--seed", "1"]).text(), plain.stdout);
}

#[test]
fn run_as_json_says_what_it_took() {
    let report =
        parsed(&kernmill(&["run", "-n", "12", "--json", "--prompt", "A slice is", "--ignore-end"]).text());
    assert_eq!(report["tokens"].as_array().unwrap().len(), 12);
    assert_eq!(report["stop"], "max_tokens");
    assert_eq!(report["preset"], "faithful");
    assert!(report["text"].as_str().unwrap().len() > 10);
    for figure in
        ["/seconds/first_token", "/memory/peak_resident", "/memory/weights", "/decode_tokens_per_second"]
    {
        assert!(
            report.pointer(figure).and_then(Value::as_f64).is_some_and(|n| n > 0.0),
            "{figure}: {report}"
        );
    }
}

#[test]
fn run_stops_where_it_is_told_to() {
    let run = |more: &[&str]| {
        let usual = ["run", "--json", "--temp", "0", "--ignore-end", "--prompt", "A slice is", "-n", "30"];
        parsed(&kernmill(&[&usual, more].concat()).text())
    };
    let text = run(&[])["text"].as_str().unwrap().to_owned();
    let word = text.split_whitespace().nth(2).unwrap();
    let stopped = run(&["--stop", word]);
    assert_eq!(stopped["stop"], "stop_string");
    assert_eq!(stopped["text"].as_str().unwrap(), &text[..text.find(word).unwrap()]);
    assert_eq!(stopped["stop_string"], word);
    assert_eq!(run(&["--context", "12"])["stop"], "context");
    let unlimited = ["run", "--json", "--temp", "0", "--ignore-end", "--prompt", "A slice is", "-n", "-1"];
    let filled = parsed(&kernmill(&[&unlimited[..], &["--context", "12"]].concat()).text());
    assert_eq!((&filled["stop"], filled["stop_string"].is_null()), (&"context".into(), true));
    assert_eq!(run(&["--top-k", "0"])["text"].as_str().unwrap(), text);
    let seeds: Vec<u64> = (0..3).map(|_| run(&["--seed", "-1"])["seed"].as_u64().unwrap()).collect();
    assert!(seeds[0] != seeds[1] || seeds[1] != seeds[2], "{seeds:?}");
    let first = run(&[])["tokens"][0].as_u64().unwrap();
    let biased = run(&["--logit-bias", &format!("{first}=-inf")]);
    assert_ne!(biased["tokens"][0].as_u64().unwrap(), first);
}

#[test]
fn run_without_a_tokenizer_takes_and_gives_ids() {
    let sandbox = Sandbox::of("gptoss-base");
    let text = sandbox.run(&["run", "--weights", ".", "--tokens", "ids.json", "-n", "7", "-q"]).text();
    let ids: Vec<u32> = text.split_whitespace().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), 7, "{text}");
    assert!(ids.iter().all(|id| *id < 96), "{text}");
}

#[test]
fn run_reads_prompts_from_files() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("prompt.txt", "A slice is");
    let from_file = sandbox.run(&["run", "--prompt-file", "prompt.txt", "-n", "9", "-q"]).text();
    assert_eq!(from_file, kernmill(&["run", "--prompt", "A slice is", "-n", "9", "-q"]).text());
    sandbox.write("prompt.txt", [0xff, 0xfe]);
    sandbox.run(&["run", "--prompt-file", "prompt.txt"]).refused(&["prompt.txt", "UTF-8"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let mut child = program()
        .args(["run", "-n", "1500", "--ignore-end"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(stderr, "");
}

#[test]
fn logits_are_the_same_however_they_are_computed() {
    let sandbox = Sandbox::of("gptoss-base");
    let logits = |more: &[&str]| {
        sandbox.logits(more).text();
        fs::read(sandbox.path("out.safetensors")).unwrap()
    };
    let whole = logits(&[]);
    assert!(whole.ends_with(&logits(&["--chunk", "2", "--threads", "3", "--no-fuse"])));
    assert_ne!(whole, logits(&["--preset", "exact"]));
    let tensors = safetensors::SafeTensors::deserialize(&whole).unwrap();
    assert_eq!(tensors.tensor("logits").unwrap().shape(), [5, 96]);
    assert!(!sandbox.files().iter().any(|file| file.contains("unfinished")));
}

#[test]
fn stages_are_printed_or_written_one_file_each() {
    const SPEC: &str = "model-specs/nano/nano.toml";
    const STAGES: [&str; 11] =
        ["spec", "graph", "quant", "fused", "select", "schedule", "memory", "clif", "asm", "plan", "hashes"];
    let sandbox = Sandbox::of("gptoss-base");
    let dir = sandbox.path("stages");
    let all = STAGES.join(",");
    kernmill(&["explain", SPEC, "--emit", &all, "--emit-dir", dir.to_str().unwrap()]).text();
    for stage in STAGES {
        let name = if stage == "spec" { "spec.toml".to_owned() } else { format!("{stage}.txt") };
        let written = fs::read_to_string(dir.join(&name)).unwrap();
        assert!(written.len() > 100, "{name}: {written}");
        if stage != "asm" && stage != "clif" {
            assert_eq!(kernmill(&["explain", SPEC, "--emit", stage, "-q"]).text(), written, "{stage}");
        }
    }
    let graph = fs::read_to_string(dir.join("graph.txt")).unwrap();
    assert_eq!(graph.parse::<kernmill_compiler::ir::Graph>().unwrap().to_string(), graph);
    let running = kernmill(&["run", "--emit", "fused,quant", "-n", "3", "-q"]).text();
    let places = ["==== quant ====", "==== fused ====", "# "].map(|part| running.find(part).expect(part));
    assert!(places.is_sorted(), "{running}");
}

#[test]
fn explain_says_what_fused_and_what_it_takes() {
    let text =
        kernmill(&["explain", "model-specs/gpt-oss-20b.toml", "--all", "--target", "x86-64-v3", "-q"]).text();
    for part in [
        "more where a sequence has an adapter",
        "moe_gate_up",
        "layers 0..24",
        "compiled for x86-64-v3, preset faithful",
        "vocabulary 201088",
        "up to 1 tokens: 121 steps, 120 more for adapters, and 1 for logits",
        "kernels",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn synth_writes_a_checkpoint_that_runs() {
    let sandbox = Sandbox::of("gptoss-base");
    let synth = ["synth", "spec.toml", "-o", "new", "--seed", "3"];
    sandbox.run(&synth).text();
    let run = ["run", "--spec", "spec.toml", "--weights", "new", "--tokens", "ids.json", "-n", "5", "-q"];
    let expected = sandbox.run(&run).text();
    // The directory says itself what it is.
    let alone = ["run", "new", "--tokens", "ids.json", "-n", "5", "-q"];
    assert_eq!(sandbox.run(&alone).text(), expected);
    assert_eq!(sandbox.read("new/kernmill.toml"), sandbox.read("spec.toml"));
    sandbox.run(&["run", "new/kernmill.toml", "--tokens", "ids.json", "-n", "5", "-q"]).text();
    sandbox.run(&synth).refused(&["new", "already there"]);
    let bench =
        ["bench", "--spec", "spec.toml", "--weights", "new", "--pp", "20", "--tg", "5", "--repeat", "1"];
    let report = parsed(&sandbox.run(&[&bench[..], &["--read", "4M", "--json"]].concat()).text());
    assert!(report["results"][1]["median"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn synth_writes_the_spec_beside_the_weights() {
    for fixture in ["gptoss-base", "gptoss-sharded", "llama-plain", "llama-tied"] {
        let sandbox = Sandbox::of(fixture);
        sandbox.run(&["synth", "spec.toml", "-o", "new", "-q"]).text();
        assert!(!sandbox.path("new/config.json").exists());
        let logits = |model: &[&str], out: &str| {
            sandbox.run(&[&["logits"], model, &["--tokens", "ids.json", "--out", out]].concat()).text();
            fs::read(sandbox.path(out)).unwrap()
        };
        let alone = logits(&["new"], "alone.safetensors");
        assert!(alone == logits(&["spec.toml", "--weights", "new"], "spec.safetensors"), "{fixture}");
    }
}

#[test]
fn cpu_lists_every_level() {
    let report = parsed(&kernmill(&["cpu", "--json"]).text());
    assert_eq!(report["levels"].as_array().unwrap().len(), kernmill_plan::target::Level::ALL.len());
    let text = kernmill(&["cpu"]).text();
    assert!(text.contains("x86-64-v4-vnni") && text.contains("AMX tiles: "), "{text}");
    // Never permitted without tiles.
    let amx = &report["amx"];
    assert!(amx["present"] == true || amx["permitted"] == false, "{amx}");
}

#[test]
fn inspect_lists_what_a_preset_makes_of_each_tensor() {
    let text = kernmill(&["inspect"]).text();
    assert!(text.starts_with("model nano, preset fast\n"), "{text}");
    assert!(text.contains("parameters at 4 bits (") && text.contains("of which one token reads"), "{text}");
    let line = |name: &str| {
        text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(line("lm_head ").contains("[3072, 224]") && line("lm_head ").contains(" int4 "), "{text}");
    assert!(line("layers.0.router ").contains(" bf16 "), "{text}");

    let report = parsed(&kernmill(&["inspect", "--json", "--threads", "1"]).text());
    let summary = &report["attention_and_unembedding_at_4_bits"];
    assert!(summary["share"].as_f64().unwrap() >= 0.9, "{summary}");
    let limit = summary["max_error"].as_f64().unwrap();
    for tensor in report["tensors"].as_array().unwrap() {
        let within = tensor["int4_error"].as_f64().map(|error| error <= limit);
        assert_eq!(tensor["format"] == "int4", within == Some(true), "{tensor}");
        assert!(tensor["bytes"].as_u64().unwrap() > 0);
    }
    let faithful = parsed(&kernmill(&["inspect", "--preset", "faithful", "--json"]).text());
    assert!(faithful["attention_and_unembedding_at_4_bits"].is_null());
    assert!(report["decode_bytes"].as_u64().unwrap() < faithful["decode_bytes"].as_u64().unwrap());
}

#[test]
fn fast_is_explained_without_weights() {
    let spec = "model-specs/nano/nano.toml";
    let text = kernmill(&["explain", spec, "--preset", "fast", "-q"]).text();
    assert!(text.contains("preset fast") && text.contains("assuming that every tensor"), "{text}");
    let text = kernmill(&["explain", spec, "--preset", "fast", "-q", "--emit", "quant"]).text();
    assert!(text.contains("tensor @lm_head matrix int4[3072, 224]"), "{text}");
}

/// A directory with a schema, a grammar, and a model of random weights that has nano's tokenizer.
fn forms() -> Sandbox {
    let sandbox = Sandbox::of("gptoss-base");
    let nano = concat!(env!("CARGO_MANIFEST_DIR"), "/model-specs/nano/");
    sandbox.run(&["synth", &format!("{nano}nano.toml"), "-o", "random", "--seed", "5"]).text();
    fs::copy(format!("{nano}tokenizer.json"), sandbox.path("random/tokenizer.json")).unwrap();
    let schema = json!({
        "type": "object",
        "properties": {
            "description": { "type": "string", "maxLength": 12 },
            "sizes": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 99 }, "maxItems": 3 },
            "kind": { "enum": ["slice", "vec"] },
        },
        "required": ["description", "sizes", "kind"],
        "additionalProperties": false,
    });
    sandbox.write("schema.json", format!("{schema:#}"));
    sandbox.write("form.lark", "start: NAME (\".\" NAME){0,3} \";\"\nNAME: /[a-z]{1,5}/\n");
    sandbox
}

fn is_of_schema(text: &str) -> bool {
    let value = parsed(text);
    let sizes = value["sizes"].as_array().unwrap();
    value.as_object().unwrap().len() == 3
        && value["description"].as_str().unwrap().chars().count() <= 12
        && sizes.len() <= 3
        && sizes.iter().all(|size| size.as_u64().unwrap() < 100)
        && (value["kind"] == "slice" || value["kind"] == "vec")
}

#[test]
fn run_holds_texts_to_their_form() {
    let sandbox = forms();
    for (model, seed) in [("", "1"), ("random", "1"), ("random", "2")] {
        let run = |count: &str, more: &[&str]| {
            let mut args = vec!["run"];
            args.extend(Some(model).filter(|model| !model.is_empty()));
            args.extend([
                "--json",
                "-q",
                "--prompt",
                "A slice is",
                "--temp",
                "1",
                "--seed",
                seed,
                "-n",
                count,
            ]);
            parsed(&sandbox.run(&[&args, more].concat()).text())
        };
        let report = run("400", &["--json-schema", "schema.json"]);
        let text = report["text"].as_str().unwrap();
        assert!(is_of_schema(text) && report["stop"] == "complete", "{report:#}");
        // Names of members, and what stands between them, are no choices.
        let (steps, tokens) = (report["steps"].as_u64().unwrap(), report["tokens"].as_array().unwrap().len());
        assert!(steps + 5 < tokens as u64, "{steps} steps for {tokens} tokens: {text}");
        let cut = run("9", &["--json-schema", "schema.json"]);
        assert!(text.starts_with(cut["text"].as_str().unwrap()) && cut["stop"] == "max_tokens", "{cut:#}");
        let stopped = run("400", &["--json-schema", "schema.json", "--stop", "sizes"]);
        assert_eq!((&stopped["stop"], &stopped["stop_string"]), (&json!("stop_string"), &json!("sizes")));
        assert_eq!(stopped["text"], text.split("sizes").next().unwrap());

        let report = run("400", &["--regex", "[a-z]{3,6}(-[0-9]{2}){2}"]);
        let parts: Vec<&str> = report["text"].as_str().unwrap().split('-').collect();
        let is_number = |part: &str| part.len() == 2 && part.chars().all(|c| c.is_ascii_digit());
        assert!(parts.len() == 3 && parts[1..].iter().all(|part| is_number(part)), "{report:#}");
        assert!((3..=6).contains(&parts[0].len()) && parts[0].chars().all(|c| c.is_ascii_lowercase()));

        let report = run("400", &["--grammar", "form.lark"]);
        let text = report["text"].as_str().unwrap();
        let names: Vec<&str> = text.strip_suffix(';').unwrap().split('.').collect();
        assert!(names.len() <= 4 && names.iter().all(|name| (1..=5).contains(&name.len())), "{text}");

        let report = run("90", &["--json-object"]);
        let text = report["text"].as_str().unwrap();
        assert!(text.starts_with('{') && report["stop"] != "end_token", "{report:#}");
        assert!(report["stop"] != "complete" || parsed(text).is_object(), "{text}");
    }
}

#[test]
fn forms_that_no_text_can_have_are_refused() {
    let sandbox = forms();
    sandbox.write("list.json", "[1]");
    sandbox.write("half.json", "{\"type\":");
    sandbox.write("not.json", "{\"type\": \"object\", \"not\": {}}");
    sandbox.write("wrong.lark", "begin: \"x\"\n");
    sandbox.run(&["run", "--json-object", "--regex", "a"]).misused("--regex");
    for (args, parts) in [
        (["--json-schema", "gone.json"], &["gone.json"][..]),
        (["--json-schema", "list.json"], &["list.json: the JSON schema: it is an array, expected an object"]),
        (["--json-schema", "half.json"], &["half.json: it is no JSON schema: EOF"]),
        (["--json-schema", "not.json"], &["not.json: the JSON schema cannot be followed", "not"]),
        (["--grammar", "wrong.lark"], &["wrong.lark: the grammar cannot be followed", "start"]),
        (["--regex", "("], &["the regular expression cannot be followed"]),
    ] {
        sandbox.run(&[&["run", "--prompt", "x"], &args[..]].concat()).refused(parts);
    }
    let ids = ["run", "--weights", ".", "--tokens", "ids.json", "--json-object"];
    sandbox.run(&ids).refused(&["held to a form only with a tokenizer"]);
}
