//! Text in, text out: the program with the file's own tokenizer.

use super::model;
use crate::harness::program;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

const PROMPT: &str = "The capital of France is";

/// Runs the program; its standard output.
#[track_caller]
fn run(args: &[&str]) -> String {
    let output = program().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What follows the prompt, as text and as JSON.
fn follows(model: &Path) -> (String, Value) {
    let usual = ["run", model.to_str().unwrap(), "--prompt", PROMPT, "--temp", "0", "-n", "24", "-q"];
    let json = run(&[&usual[..], &["--json"]].concat());
    (run(&usual), serde_json::from_str(&json).unwrap())
}

#[test]
fn the_capital_of_france_is_paris_from_the_file_and_from_its_plan() {
    let Some(path) = model("smollm2::text::the_capital_of_france_is_paris_from_the_file_and_from_its_plan")
    else {
        return;
    };
    let (text, report) = follows(&path);
    assert!(text.starts_with(" Paris"), "{text}");
    assert_eq!(report["prompt_tokens"], 5);
    assert_eq!(report["text"], text.strip_suffix('\n').unwrap());

    let dir = TempDir::new().unwrap();
    let plan = dir.path().join("smollm2.plan");
    run(&["compile", path.to_str().unwrap(), "-o", plan.to_str().unwrap(), "-q"]);
    let (plan_text, plan_report) = follows(&plan);
    assert_eq!((plan_text, &plan_report["tokens"]), (text, &report["tokens"]));
}

#[test]
fn an_answer_ends_at_the_end_of_its_turn() {
    let Some(path) = model("smollm2::text::an_answer_ends_at_the_end_of_its_turn") else { return };
    let chat = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n";
    let usual = ["run", path.to_str().unwrap(), "--prompt", chat, "--temp", "0", "-n", "60", "-q", "--json"];
    let report: Value = serde_json::from_str(&run(&usual)).unwrap();
    let text = report["text"].as_str().unwrap();
    assert!(text.contains("Paris") && !text.contains("<|"), "{text}");
    assert_eq!(report["stop"], "end_token");
}
