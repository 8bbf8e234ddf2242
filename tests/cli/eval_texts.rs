//! `kernmill eval` where texts are made: they go on where they ended, and programs are run only if that is
//! said.

use super::{Ran, Sandbox, kernmill};
use crate::harness::program;
use serde_json::Value;
use std::fs;
use std::path::Path;

const GSM8K: [&str; 9] =
    ["eval", "generate", "--task", "gsm8k", "-f", "eval/fixtures/gsm8k.jsonl", "-n", "12", "--json"];
const EXAMPLES: [&str; 4] = ["--examples", "eval/fixtures/gsm8k-train.jsonl", "--shots", "2"];

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Lines of the file of samples in a folder.
fn samples(dir: &Path) -> Vec<Value> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let path = names.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    fs::read_to_string(path).unwrap().lines().map(json).collect()
}

#[test]
fn texts_go_on_where_they_ended() {
    let sandbox = Sandbox::of("gptoss-base");
    let [part, first, second] = ["part.jsonl", "first", "second"].map(|name| sandbox.path(name));
    let ask = |more: &[&str]| json(&kernmill(&[&GSM8K[..], &EXAMPLES, more].concat()).text());
    let drawn = ["--samples", "2", "--temp", "0.8", "--limit", "5"];
    let whole = ask(&[&drawn[..], &["--out", first.to_str().unwrap()]].concat());
    assert_eq!((&whole["questions"], &whole["samples"]), (&5.into(), &2.into()));
    let resumed = ["--resume", part.to_str().unwrap(), "--out", second.to_str().unwrap()];
    ask(&[&drawn[..], &resumed[..2]].concat());
    let known = fs::read_to_string(&part).unwrap();
    assert_eq!(known.lines().count(), 11);
    // Cut in its sixth line, as a kill may leave it.
    let cut = known.match_indices('\n').nth(4).unwrap().0 + 9;
    fs::write(&part, &known[..cut]).unwrap();
    let rest = ask(&[&drawn[..], &resumed].concat());
    assert_eq!((&rest["tokens"], &rest["metrics"]), (&whole["tokens"], &whole["metrics"]));
    assert!(rest["tokens_made"].as_u64().unwrap() < whole["tokens_made"].as_u64().unwrap());
    // Whatever else ran beside a text, it is the same.
    let (first, second) = (samples(&first), samples(&second));
    assert_eq!((first.len(), &first), (10, &second));
    let texts: Vec<&Value> = first.iter().flat_map(|sample| sample["resps"][0].as_array().unwrap()).collect();
    assert!(texts.iter().any(|text| *text != texts[0]));

    let refused = |more: &[&str], parts: &[&str]| {
        kernmill(&[&GSM8K[..], more].concat()).refused(parts);
    };
    refused(&["--samples", "2"], &["--samples is 2, and without --temp all of them are the same"]);
    refused(&["--shots", "2"], &["--shots is 2, and --examples is missing"]);
    let endless = kernmill(&[&GSM8K[..6], &["-n", "4000000000"]].concat());
    endless.refused(&["--max-tokens is 4000000000, expected less than"]);
    refused(
        &[&EXAMPLES[..2], &["--shots", "31"]].concat(),
        &["gsm8k-train.jsonl: it has 30 lines, expected 31"],
    );
    let other = [&EXAMPLES[..], &resumed[..2]].concat();
    refused(&other, &["it is of another run"]);
    let compared = kernmill(&["eval", "compare", "eval/fixtures/gsm8k.jsonl", "eval/fixtures/gsm8k.jsonl"]);
    compared.refused(&["gsm8k.jsonl: line 1: expected a \"doc_id\""]);
}

#[test]
fn a_difference_is_told_for_each_filter() {
    let sandbox = Sandbox::of("gptoss-base");
    let out = sandbox.path("out");
    kernmill(&[&GSM8K[..], &["--out", out.to_str().unwrap()]].concat()).text();
    let names = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let path = names.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let path = path.to_str().unwrap();
    let found = json(&kernmill(&["eval", "compare", path, path, "--json"]).text());
    let names: Vec<&Value> = found["differences"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["exact_match:flexible-extract", "exact_match:strict-match"]);
}

#[test]
fn programs_run_only_where_it_is_said_and_in_a_sandbox() {
    let sandbox = Sandbox::of("gptoss-base");
    let problem = |number: usize, name: &str| {
        format!(
            "{{\"task_id\": \"own/{number}\", \"prompt\": \"def {name}(a, b):\\n\", \"entry_point\": \"{name}\", \
             \"test\": \"def check(f):\\n    assert f(7, 3) == {}\\n\"}}\n",
            [10, 4][number]
        )
    };
    sandbox.write("problems.jsonl", (problem(0, "add") + &problem(1, "sub")).as_bytes());
    let completion = |number: usize, text: &str| {
        format!("{{\"task_id\": \"own/{number}\", \"completion\": \"    return {text}\"}}\n")
    };
    let all =
        [completion(0, "a + b"), completion(0, "a - b"), completion(1, "a - b"), completion(1, "b - a")];
    sandbox.write("made.jsonl", all.concat().as_bytes());
    let args = ["eval", "code", "--task", "humaneval", "-f", "problems.jsonl", "--completions", "made.jsonl"];
    let run = |more: &[&str]| sandbox.run(&[&args[..], more].concat());
    run(&[]).refused(&["--run-code is missing"]);
    let mut without = program();
    without.args(args).arg("--run-code").env("PATH", "/nowhere");
    let without = without.current_dir(sandbox.path(".")).output().unwrap();
    let told = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(!without.status.success() && told.contains("bwrap is missing"), "{told}");
    let ran: Ran = run(&["--run-code", "--json", "--out", "out", "--pass-at", "1,2"]);
    if ran.status != Some(0) && ran.stderr.contains("bwrap") {
        // Written past the capture of the test's output, so that everybody sees it.
        let note = format!("NOT RUN: cli::eval_texts::programs_run_in_a_sandbox: {}", ran.stderr);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
        return;
    }
    let found = json(&ran.text());
    let count = |name: &str| found[name].as_u64().unwrap();
    assert_eq!(["problems", "programs", "passed", "failed"].map(count), [2, 4, 2, 2]);
    let metrics = ["pass@1", "pass@2"].map(|name| found["metrics"][name]["mean"].as_f64().unwrap());
    assert_eq!(metrics, [0.5, 1.0]);
    let ends: Vec<Value> =
        samples(&sandbox.path("out")).iter().map(|sample| sample["ends"].clone()).collect();
    assert_eq!(ends, [["passed", "AssertionError: "], ["passed", "AssertionError: "]].map(Value::from));
    run(&["--run-code", "--pass-at", "3"]).refused(&["--pass-at is 3, expected at most 2"]);
}

#[test]
fn standard_prompts_keep_their_texts() {
    let sandbox = Sandbox::of("gptoss-base");
    let out = sandbox.path("texts.jsonl");
    let found =
        json(&kernmill(&["eval", "prompts", "-n", "8", "--json", "--out", out.to_str().unwrap()]).text());
    let texts: Vec<Value> = fs::read_to_string(&out).unwrap().lines().map(json).collect();
    assert_eq!((texts.len(), &found["prompts"]), (10, &10.into()));
    let tokens: u64 = texts.iter().map(|text| text["tokens"].as_u64().unwrap()).sum();
    assert_eq!(found["tokens"].as_u64(), Some(tokens));
    // Each is what run makes of its prompt.
    let prompt = texts[0]["prompt"].as_str().unwrap();
    let ran = json(&kernmill(&["run", "--prompt", prompt, "-n", "8", "--temp", "0", "--json"]).text());
    assert_eq!(ran["text"], texts[0]["text"]);
}
