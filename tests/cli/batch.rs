//! `kernmill batch`: many requests from a file.

use super::Sandbox;
use crate::harness::{adapter, program};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

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
pub(super) fn answers(sandbox: &Sandbox, file: &str) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(sandbox.path(file)).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers.map(|answer| (answer["custom_id"].as_str().unwrap().to_owned(), answer)).collect()
}

pub(super) fn text(answer: &Value) -> &str {
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

/// With less memory than all requests together could want.
#[test]
fn the_cache_is_hit_and_yields_to_short_memory() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("requests.jsonl", lines(&requests(8)));
    let batch = |args: &[&str]| {
        let given = ["batch", "requests.jsonl", "-o", args[0], "--json"];
        let text = sandbox.run(&[&given[..], &args[1..]].concat()).text();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let plain = batch(&["a.jsonl", "--parallel", "2"]);
    assert!(plain["cache_hits"]["all"].as_u64().unwrap() > 0 && plain["failed"] == 0, "{plain:#}");
    // 512 sequences would take more than is allowed.
    let tight = ["c.jsonl", "--parallel", "512", "--max-memory", "60M"];
    assert_eq!(batch(&tight)["failed"], 0);
    let (some, same) = (answers(&sandbox, "a.jsonl"), answers(&sandbox, "c.jsonl"));
    assert!(some.iter().all(|(id, answer)| text(answer) == text(&same[id])));
    let refused = ["batch", "requests.jsonl", "-o", "d.jsonl", "--parallel", "512", "--max-memory", "1M"];
    sandbox.run(&refused).refused(&["not enough memory", "--kv-memory", "--parallel", "--kv-format int8"]);
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

fn token_ids(answer: &Value) -> Vec<u32> {
    let ids = &answer["response"]["body"]["choices"][0]["token_ids"];
    serde_json::from_value(ids.clone()).unwrap_or_else(|_| panic!("{answer}"))
}

/// The tokens that `run` makes of a prompt of ids, greedily.
fn alone(sandbox: &Sandbox, prompt: &[u32], count: usize, more: &[&str]) -> Vec<u32> {
    sandbox.write("solo.json", serde_json::to_string(prompt).unwrap());
    let count = count.to_string();
    let run = ["run", "-q", "--json", "--tokens", "solo.json", "--temp", "0", "-n", &count];
    let report: Value = serde_json::from_str(&sandbox.run(&[&run, more].concat()).text()).unwrap();
    serde_json::from_value(report["tokens"].clone()).unwrap()
}

/// Requests with different adapters share steps, and none changes another's answer.
#[test]
fn adapters_change_their_own_requests_alone() {
    let sandbox = Sandbox::of("gptoss-base");
    let fixture = |name: &str| format!("{name}={}", adapter(name).display());
    let (qv, rslora) = (fixture("qv"), fixture("attention-rslora"));
    let adapters = ["", "qv", "attention-rslora", "none"];
    let prompt = |n: usize| vec![3, 44, 5 + (n / 4) as u32, 17, 80];
    let requests: Vec<Value> = (0..12)
        .map(|n| match (adapters[n % 4], n / 4 % 2) {
            ("", _) => json!({ "id": n.to_string(), "prompt": prompt(n), "max_tokens": 8, "temperature": 0 }),
            (adapter, 0) => json!({
                "custom_id": n.to_string(), "url": "/v1/completions",
                "body": { "model": adapter, "prompt": prompt(n), "max_tokens": 8, "temperature": 0 },
            }),
            (adapter, _) => json!({
                "id": n.to_string(), "adapter": adapter, "prompt": prompt(n), "max_tokens": 8, "temperature": 0,
            }),
        })
        .collect();
    sandbox.write("requests.jsonl", lines(&requests));
    let model = ["spec.toml", "--weights", "."];
    let batch = ["batch", "-o", "answers.jsonl", "--lora", &qv, "--lora", &rslora];
    sandbox.run(&[&batch[..], &model, &["requests.jsonl"]].concat()).failed_for(3);
    let answers = answers(&sandbox, "answers.jsonl");
    for n in 0..12 {
        let answer = &answers[&n.to_string()];
        let lora = match adapters[n % 4] {
            "none" => {
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(
                    message.contains("expected one of: ") || message.contains("`adapter` is"),
                    "{message}"
                );
                assert!(message.contains("attention-rslora"), "{message}");
                continue;
            }
            "qv" => vec!["--lora", &*qv],
            "" => Vec::new(),
            _ => vec!["--lora", &*rslora],
        };
        assert_eq!(token_ids(answer), alone(&sandbox, &prompt(n), 8, &[&model[..], &lora].concat()), "{n}");
    }
}

/// Turns continue all that was said before, also in a batch that goes on after a kill.
#[test]
fn lines_of_a_session_are_one_conversation() {
    let sandbox = Sandbox::of("gptoss-base");
    let new =
        |session: u32, turn: u32| (0..20).map(|n| 1 + session * 30 + turn * 7 + n % 11).collect::<Vec<u32>>();
    let turn = |session: u32, turn: u32| {
        json!({
            "id": format!("{session}-{turn}"), "session": session.to_string(), "prompt": new(session, turn),
            "max_tokens": 6, "temperature": 0,
        })
    };
    let mut requests: Vec<Value> = (0..4).flat_map(|n| [turn(0, n), turn(1, n)]).collect();
    requests.push(json!({ "id": "bad", "session": "1", "prompt": [999_999] }));
    requests.push(turn(1, 5));
    requests.push(turn(0, 4));
    sandbox.write("requests.jsonl", lines(&requests));
    let batch = ["batch", "requests.jsonl", "-o", "answers.jsonl"];
    sandbox.run(&batch).failed_for(2);
    let all = answers(&sandbox, "answers.jsonl");
    for session in 0..2 {
        let mut said = Vec::new();
        for turn in 0..4 {
            let answer = &all[&format!("{session}-{turn}")];
            let cached =
                answer["response"]["body"]["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
            assert!(cached.unwrap() as usize + 1 >= said.len(), "{cached:?} of {}", said.len());
            said.extend(new(session, turn));
            let tokens = token_ids(answer);
            assert_eq!(tokens, alone(&sandbox, &said, 6, &[]), "{session}-{turn}");
            said.extend(tokens);
        }
    }
    assert!(all["bad"]["error"]["message"].as_str().unwrap().contains("no token id from 0"));
    let message = all["1-5"]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("`bad`, an earlier turn of session `1`, has no answer"), "{message}");
    assert!(all["0-4"]["error"].is_null(), "another session goes on");
    let whole = fs::read_to_string(sandbox.path("answers.jsonl")).unwrap();
    let kept: Vec<usize> = (0..=whole.matches('\n').count()).step_by(3).collect();
    for count in kept {
        let part: String = whole.split_inclusive('\n').take(count).collect();
        let failed = part.matches("\"message\"").count();
        sandbox.write("answers.jsonl", part);
        sandbox.run(&batch).failed_for(2 - failed);
        let again = answers(&sandbox, "answers.jsonl");
        assert_eq!(again.len(), all.len());
        for (id, answer) in all.iter().filter(|(_, answer)| answer["error"].is_null()) {
            assert_eq!(token_ids(&again[id]), token_ids(answer), "{id} after {count}");
        }
        let message = again["1-5"]["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("`bad`, an earlier turn of session `1`"), "{message}");
    }
}

/// Six texts, each asked for six times in turn: more than a tight cache holds.
fn rotating() -> Vec<Value> {
    let text = |of: u32| (0..150).map(|i| (i * (of + 3) + of * 11) % 90).collect::<Vec<u32>>();
    let prompt = |n: u32| [text(n % 6), vec![n]].concat();
    let request =
        |n| json!({ "id": format!("r{n}"), "prompt": prompt(n), "max_tokens": 20, "temperature": 0 });
    (0..36).map(request).collect()
}

/// A model of the sandbox, and a cache with room for less than two of its texts.
const MODEL: [&str; 4] = ["--spec", "spec.toml", "--weights", "."];
const TIGHT: [&str; 6] = ["--kv-memory", "300K", "--chunk", "32", "--kv-disk", "kv"];

/// Blocks that make way go to the disk and come back: answers are those of a cache with room for all.
#[test]
fn a_tight_cache_goes_to_the_disk_and_back() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("requests.jsonl", lines(&rotating()));
    let run = |out: &str, more: &[&str]| {
        let batch = ["batch", "requests.jsonl", "-o", out, "--json", "--stats"];
        let ran = sandbox.run(&[&batch, &MODEL[..], more].concat());
        let stderr = ran.stderr.clone();
        (serde_json::from_str::<Value>(&ran.text()).unwrap(), stderr)
    };
    let (roomy, _) = run("roomy.jsonl", &["--kv-memory", "20M"]);
    assert_eq!((&roomy["kv_disk"], &roomy["prefix_cache"]["evicted_blocks"]), (&Value::Null, &0.into()));
    let (tight, said) = run("tight.jsonl", &TIGHT);
    let disk = &tight["kv_disk"];
    assert_eq!((&tight["failed"], &disk["refused"], &disk["damaged"]), (&0.into(), &0.into(), &0.into()));
    assert!(tight["prefix_cache"]["evicted_blocks"].as_u64() > Some(100), "{tight:#}");
    assert!(tight["disk_tokens"].as_u64() > Some(1000), "{tight:#}");
    assert!(disk["found_tokens"].as_u64() >= tight["disk_tokens"].as_u64(), "{tight:#}");
    assert!(disk["blocks"].as_u64() > Some(60) && disk["bytes"].as_u64() > Some(100_000), "{tight:#}");
    for part in ["KV blocks on disk: ", "blocks written", "prefix cache: ", "decode: ", "KV blocks of full"] {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
    assert!(!said.contains("WARN"), "{said}");
    let (some, same) = (answers(&sandbox, "roomy.jsonl"), answers(&sandbox, "tight.jsonl"));
    assert_eq!((some.len(), same.len()), (36, 36));
    assert!(some.iter().all(|(id, answer)| token_ids(answer) == token_ids(&same[id])));
    // The next batch starts with what this one has left.
    let (again, _) = run("again.jsonl", &TIGHT);
    assert!(again["cached_tokens"].as_u64() >= Some(36 * 148), "{again:#}");
    let again = answers(&sandbox, "again.jsonl");
    assert!(some.iter().all(|(id, answer)| token_ids(answer) == token_ids(&again[id])));
}

/// Sessions side by side, whose turns push each other out of the cache.
#[test]
fn sessions_go_on_in_a_tight_cache() {
    let sandbox = Sandbox::of("gptoss-base");
    let turn = |n: u32| {
        let prompt: Vec<u32> = (0..34).map(|i| (n * 17 + i * (n % 7 + 1)) % 90).collect();
        json!({ "id": n.to_string(), "session": (n % 6).to_string(), "prompt": prompt, "max_tokens": 8,
            "temperature": 0 })
    };
    sandbox.write("requests.jsonl", lines(&(0..30).map(turn).collect::<Vec<_>>()));
    let run = |out: &str, more: &[&str]| {
        let batch = ["batch", "requests.jsonl", "-o", out, "--json", "--parallel", "2"];
        let text = sandbox.run(&[&batch, &MODEL[..], more].concat()).text();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let roomy = run("roomy.jsonl", &["--kv-memory", "20M"]);
    let tight = run("tight.jsonl", &TIGHT);
    let (some, same) = (answers(&sandbox, "roomy.jsonl"), answers(&sandbox, "tight.jsonl"));
    assert!(some.iter().all(|(id, answer)| token_ids(answer) == token_ids(&same[id])));
    assert_eq!((some.len(), &tight["failed"]), (30, &0.into()));
    // Of every turn but the first, all but the new part and an answer's last token is known.
    let known = |report: &Value| report["cached_tokens"].as_u64().unwrap();
    assert!(known(&tight) >= known(&roomy) && known(&roomy) > 2000, "{roomy:#} {tight:#}");
    assert!(tight["disk_tokens"].as_u64() > Some(500), "{tight:#}");
}

/// The directory goes away while a batch runs: one warning, and no answer is another or missing.
#[test]
fn a_batch_goes_on_without_its_disk() {
    let sandbox = Sandbox::of("gptoss-base");
    let requests = rotating();
    sandbox.write("requests.jsonl", lines(&requests));
    sandbox.run(&[&["batch", "requests.jsonl", "-o", "roomy.jsonl"], &MODEL[..]].concat()).text();
    let mut command = program();
    command.args(["batch", "-", "-o", "tight.jsonl", "--parallel", "1", "--json"]).args(MODEL).args(TIGHT);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir(sandbox.dir.path());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(&requests[..18]).as_bytes()).unwrap();
    // Up to three wait until more is read.
    let answered = || fs::read_to_string(sandbox.path("tight.jsonl")).map_or(0, |text| text.lines().count());
    let start = Instant::now();
    while answered() < 14 {
        assert!(start.elapsed() < Duration::from_secs(120), "{} answers", answered());
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::remove_dir_all(sandbox.path("kv")).unwrap();
    stdin.write_all(lines(&requests[18..]).as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("WARN KV cache on disk: ").count(), 1, "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["requests"], &report["failed"]), (&36.into(), &0.into()));
    let (some, same) = (answers(&sandbox, "roomy.jsonl"), answers(&sandbox, "tight.jsonl"));
    assert!(some.iter().all(|(id, answer)| token_ids(answer) == token_ids(&same[id])));
}

/// The lines that `--stats` adds, to a text and to a batch.
#[test]
fn stats_are_printed_when_they_are_asked_for() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.write("requests.jsonl", lines(&requests(4)));
    let run = ["run", "--prompt", "A slice is", "-n", "5", "--temp", "0"];
    let batch = ["batch", "requests.jsonl", "-o", "answers.jsonl"];
    let common =
        ["KV blocks of full layers: ", "KV blocks of sliding layers: ", "prefix cache: ", "peak memory: "];
    for (args, own) in [
        (&run[..], &["steps: 5, of one sequence; 0 prompt tokens were cached\n"][..]),
        (
            &batch,
            &[
                "decode: ",
                " tokens/s in steps that only decode",
                "steps: ",
                "the engine was busy ",
                " sequences: ",
            ],
        ),
    ] {
        let plain = sandbox.run(args);
        assert!(common.iter().all(|part| !plain.stderr.contains(part)), "{}", plain.stderr);
        let _ = fs::remove_file(sandbox.path("answers.jsonl"));
        let ran = sandbox.run(&[args, &["--stats"]].concat());
        for part in common.iter().chain(own) {
            assert!(ran.stderr.contains(part), "`{part}` is not in:\n{}", ran.stderr);
        }
        assert!(!ran.stderr.contains("on disk"), "{}", ran.stderr);
        assert_eq!(ran.text(), plain.text());
    }
}

/// Lines that say what their texts must be, among others; those that no text can follow fail alone.
#[test]
fn lines_say_what_their_texts_must_be() {
    let sandbox = Sandbox::of("gptoss-base");
    let schema = json!({
        "type": "object",
        "properties": { "answer": { "enum": ["slice", "vec"] }, "sure": { "type": "boolean" } },
        "required": ["answer", "sure"],
        "additionalProperties": false,
    });
    sandbox.write("schema.json", schema.to_string());
    let named = json!({ "type": "json_schema", "json_schema": { "name": "reply", "schema": schema, "strict": true } });
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "properties": { "x": inner } }));
    let wrong = [
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": deep } } }),
            "65 levels",
        ),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": { "not": {} } } } }),
            "not",
        ),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "x" } } }),
            ".schema` is missing",
        ),
        (json!({ "response_format": { "type": "xml" } }), "`response_format.type` is \"xml\", expected"),
        (json!({ "kernmill": { "regex": "(" } }), "the regular expression cannot be followed"),
        (json!({ "kernmill": { "grammar": "start: missing" } }), "the grammar cannot be followed"),
        (json!({ "kernmill": { "regexp": "a" } }), "`kernmill.regexp` is not known"),
        (json!({ "kernmill": { "regex": "a" }, "response_format": named }), "two forms"),
    ];
    let mut lines = String::new();
    let mut add = |id: String, fields: &Value| {
        let mut line = json!({ "id": id, "prompt": "A slice is", "max_tokens": 60, "seed": 3 });
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        lines.push_str(&format!("{line}\n"));
    };
    for n in 0..3 {
        add(format!("plain-{n}"), &json!({}));
        add(format!("schema-{n}"), &json!({ "response_format": named }));
        add(format!("regex-{n}"), &json!({ "kernmill": { "regex": "(yes|no), [a-z]{3,9}" } }));
        add(
            format!("grammar-{n}"),
            &json!({ "kernmill": { "grammar": "start: \"<\" (\"a\" | \"b\"){2,6} \">\"" } }),
        );
        add(format!("object-{n}"), &json!({ "response_format": { "type": "json_object" }, "max_tokens": 5 }));
    }
    wrong.iter().enumerate().for_each(|(n, (fields, _))| add(format!("wrong-{n}"), fields));
    sandbox.write("requests.jsonl", &lines);
    let batch = ["batch", "requests.jsonl", "-o", "answers.jsonl", "--parallel", "5"];
    sandbox.run(&batch).failed_for(wrong.len());
    let answers = answers(&sandbox, "answers.jsonl");
    let run = ["run", "-q", "--prompt", "A slice is", "-n", "60", "--seed", "3"];
    let schema_alone = sandbox.run(&[&run[..], &["--json-schema", "schema.json"]].concat()).text();
    let plain_alone = sandbox.run(&run).text();
    for n in 0..3 {
        let of = |kind: &str| &answers[&format!("{kind}-{n}")];
        let finish = |kind: &str| of(kind)["response"]["body"]["choices"][0]["finish_reason"].clone();
        assert_eq!(format!("{}\n", text(of("plain"))), plain_alone);
        assert_eq!(format!("{}\n", text(of("schema"))), schema_alone);
        let value: Value = serde_json::from_str(text(of("schema"))).unwrap();
        assert!(["slice", "vec"].contains(&value["answer"].as_str().unwrap()) && value["sure"].is_boolean());
        let (yes, word) = text(of("regex")).split_once(", ").unwrap();
        assert!((yes == "yes" || yes == "no") && (3..=9).contains(&word.len()), "{yes}, {word}");
        assert!(text(of("grammar")).trim_matches(['<', '>']).chars().all(|c| c == 'a' || c == 'b'));
        assert_eq!((finish("schema"), finish("grammar")), (json!("stop"), json!("stop")));
        assert!(text(of("object")).starts_with('{') && !finish("object").is_null());
    }
    for (n, (_, says)) in wrong.iter().enumerate() {
        let message = answers[&format!("wrong-{n}")]["error"]["message"].as_str().unwrap();
        assert!(message.contains(says) && !message.contains('\n'), "{n}: {message}");
    }
}
