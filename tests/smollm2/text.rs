//! Text in, text out: the program with the file's own tokenizer.

use super::model;
use crate::harness::program;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

const PROMPT: &str = "The capital of France is";

/// Runs the program; its standard output.
#[track_caller]
fn run(args: &[&str]) -> String {
    let output = program().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The continuation of the prompt, as text and as JSON.
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

#[test]
fn a_conversation_follows_the_template_of_the_file() {
    let Some(path) = model("smollm2::text::a_conversation_follows_the_template_of_the_file") else { return };
    // The template's own system message has the model speak French.
    let system = ["--system", "Answer the question."];
    let usual = ["chat", path.to_str().unwrap(), "--temp", "0", "-n", "60", "-q", "--json"];
    let mut child =
        program().args(usual).args(system).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = "What is the capital of France?\nWhat is the capital of Italy?\n";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["format"], "template");
    let turns: Vec<&Value> = events.iter().filter(|event| event["event"] == "turn").collect();
    let answers: Vec<String> = events
        .split(|event| event["event"] == "turn")
        .map(|answer| answer.iter().filter_map(|event| event["text"].as_str()).collect())
        .collect();
    assert_eq!((turns.len(), answers.len()), (2, 3));
    assert!(answers[0].contains("Paris") && answers[1].contains("Rome"), "{answers:?}");
    assert!(turns.iter().all(|turn| turn["stop"] == "complete"), "{turns:?}");
    // The second turn begins with all of the first one, and computes its own message.
    let count = |turn: &Value| turn["prompt_tokens"].as_u64().unwrap();
    let written = turns[0]["tokens"].as_array().unwrap().len() as u64;
    assert!(turns[1]["cached_tokens"].as_u64().unwrap() >= count(turns[0]) + written - 1, "{turns:?}");
    assert!(count(turns[1]) > count(turns[0]) + written);
}
