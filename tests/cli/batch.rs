//! `kernmill batch`: many requests from a file.

use super::Sandbox;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Requests whose prompts share a beginning.
fn requests(count: usize) -> Vec<Value> {
    let endings = ["It", "Use `iter`", "Panics if", "See also"];
    let prompt = |n: usize| {
        format!(
            "{}{}",
            "A slice is a view into a contiguous sequence. ".repeat(4),
            endings[n % endings.len()]
        )
    };
    (0..count)
        .map(|n| match n % 2 {
            0 => json!({ "id": format!("r{n}"), "prompt": prompt(n), "max_tokens": 6 + n, "seed": n }),
            _ => json!({
                "custom_id": format!("r{n}"), "method": "POST", "url": "/v1/completions",
                "body": { "prompt": prompt(n), "max_tokens": 6 + n, "seed": n, "temperature": 0 },
            }),
        })
        .collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// Answers by name.
fn answers(sandbox: &Sandbox, file: &str) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(sandbox.path(file)).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers.map(|answer| (answer["custom_id"].as_str().unwrap().to_owned(), answer)).collect()
}

fn text(answer: &Value) -> &str {
    answer["response"]["body"]["choices"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn answers_are_the_texts_that_requests_get_alone() {
    let sandbox = Sandbox::of("gptoss-base");
    let requests = requests(10);
    sandbox.write("requests.jsonl", lines(&requests));
    sandbox.run(&["batch", "requests.jsonl", "-o", "answers.jsonl", "--parallel", "4"]).text();
    let answers = answers(&sandbox, "answers.jsonl");
    assert_eq!(answers.len(), 10);
    for (n, request) in requests.iter().enumerate() {
        let body = request.get("body").unwrap_or(request);
        let temp = if n % 2 == 0 { "0.6" } else { "0" };
        let (tokens, seed) = ((6 + n).to_string(), n.to_string());
        let prompt = body["prompt"].as_str().unwrap();
        let alone = sandbox
            .run(&["run", "-q", "--prompt", prompt, "-n", &tokens, "--seed", &seed, "--temp", temp])
            .text();
        let answer = &answers[&format!("r{n}")];
        assert_eq!(format!("{}\n", text(answer)), alone, "r{n}");
        let usage = &answer["response"]["body"]["usage"];
        assert!(usage["completion_tokens"].as_u64().unwrap() <= 6 + n as u64);
    }
}

/// A batch that was killed goes on where it was: half a line at the end goes, answers that are there stay.
#[test]
fn a_batch_that_was_stopped_goes_on() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("requests.jsonl", lines(&requests(8)));
    let batch = ["batch", "requests.jsonl", "-o", "answers.jsonl", "--json"];
    let all: Value = serde_json::from_str(&sandbox.run(&batch).text()).unwrap();
    assert_eq!((&all["requests"], &all["skipped"], &all["failed"]), (&8.into(), &0.into(), &0.into()));
    assert!(all["cached_tokens"].as_u64().unwrap() > 0, "prompts share a beginning: {all:#}");
    let whole = fs::read_to_string(sandbox.path("answers.jsonl")).unwrap();
    let full = answers(&sandbox, "answers.jsonl");
    for cut in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        fs::write(sandbox.path("answers.jsonl"), &whole[..cut]).unwrap();
        let kept = whole[..cut].matches('\n').count();
        let rest: Value = serde_json::from_str(&sandbox.run(&batch).text()).unwrap();
        assert_eq!(rest["skipped"], kept, "{cut}");
        let again = answers(&sandbox, "answers.jsonl");
        assert_eq!(again.len(), 8);
        assert!(full.iter().all(|(id, answer)| text(answer) == text(&again[id])), "{cut}");
    }
}

/// With every hit computed anew; and with less memory than all requests together could want.
#[test]
fn hits_can_be_verified_and_the_cache_yields_to_short_memory() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("requests.jsonl", lines(&requests(8)));
    let batch = |args: &[&str]| {
        let given = ["batch", "requests.jsonl", "-o", args[0], "--json"];
        let text = sandbox.run(&[&given[..], &args[1..]].concat()).text();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let plain = batch(&["a.jsonl", "--parallel", "2"]);
    assert_eq!((&plain["cache_hits"]["verified"], &plain["failed"]), (&0.into(), &0.into()));
    let verified = batch(&["b.jsonl", "--parallel", "2", "--verify-cache", "100"]);
    let hits = &verified["cache_hits"];
    assert!(hits["all"].as_u64().unwrap() > 0 && hits["verified"] == hits["all"], "{verified:#}");
    // 512 sequences would take more than is allowed.
    let tight = ["c.jsonl", "--parallel", "512", "--max-memory", "60M"];
    assert_eq!(batch(&tight)["failed"], 0);
    for file in ["b.jsonl", "c.jsonl"] {
        let (some, same) = (answers(&sandbox, "a.jsonl"), answers(&sandbox, file));
        assert!(some.iter().all(|(id, answer)| text(answer) == text(&same[id])), "{file}");
    }
    let refused = ["batch", "requests.jsonl", "-o", "d.jsonl", "--parallel", "512", "--max-memory", "1M"];
    sandbox.run(&refused).refused(&["not enough memory", "--kv-memory", "--parallel", "--kv-format int8"]);
}

/// A wrong line is answered with what is wrong, and the others go on.
#[test]
fn a_wrong_line_spoils_no_other() {
    let sandbox = Sandbox::of("gptoss-base");
    let good = json!({ "id": "good", "prompt": "A slice is", "max_tokens": 3 });
    let long = json!({ "id": "long", "prompt": vec![1; 5000] });
    let wrong = [
        ("line-2", "{".to_owned(), "line 2: EOF while parsing"),
        ("typo", json!({ "id": "typo", "promt": "x" }).to_string(), "unknown field `promt`"),
        (
            "poet",
            json!({ "id": "poet", "prompt": "x", "adapter": "poet" }).to_string(),
            "no adapter `poet` is loaded",
        ),
        ("none", json!({ "id": "none", "prompt": [] }).to_string(), "no tokens"),
        ("id", json!({ "id": "id", "prompt": [70_000] }).to_string(), "expected less than"),
        ("hot", json!({ "id": "hot", "prompt": "x", "temperature": -1 }).to_string(), "temperature"),
        ("zero", json!({ "id": "zero", "prompt": "x", "max_tokens": 0 }).to_string(), "expected at least 1"),
        ("long", long.to_string(), "the context holds"),
        ("line-18", good.to_string(), "`good`: another request has this name"),
    ];
    let mut input = format!("{good}\n");
    wrong.iter().for_each(|(_, line, _)| input.push_str(&format!("{line}\n\n")));
    input.push_str(&json!({ "id": "last", "prompt": "A vector", "max_tokens": 2 }).to_string());
    sandbox.write("requests.jsonl", &input);
    sandbox.run(&["batch", "requests.jsonl", "-o", "answers.jsonl"]).text();
    let answers = answers(&sandbox, "answers.jsonl");
    for (id, _, says) in wrong {
        let message = answers[id]["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{id}: {message}");
    }
    assert!(!text(&answers["good"]).is_empty() && !text(&answers["last"]).is_empty());
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("requests.jsonl", "{\"prompt\": \"x\", \"max_tokens\": 1}\n");
    sandbox.write("notes.txt", "these are notes\n");
    sandbox
        .run(&["batch", "gone.jsonl", "-o", "a.jsonl"])
        .refused(&["gone.jsonl", "a request on every line"]);
    sandbox.run(&["batch", "-o", "a.jsonl"]).refused(&["REQUESTS is missing"]);
    sandbox.run(&["batch", "requests.jsonl", "-o", "notes.txt"]).refused(&["notes.txt: line 1 is no answer"]);
    let small = ["batch", "requests.jsonl", "-o", "a.jsonl", "--kv-memory", "1K"];
    sandbox.run(&small).refused(&["--kv-memory is too small", "one sequence of"]);
    assert!(!sandbox.path("a.jsonl").exists(), "what is refused leaves no file");
    assert_eq!(fs::read_to_string(sandbox.path("notes.txt")).unwrap(), "these are notes\n");
}
