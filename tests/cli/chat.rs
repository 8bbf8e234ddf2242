//! `kernmill chat` over a pipe.

use super::{interrupt, interruptible, kernmill_in};
use crate::harness::program;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

/// A talk: exit status, what was shown, what was said beside.
struct Talked {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Talks with the embedded model in `dir`: what is typed is `lines`.
#[track_caller]
fn talk(dir: &Path, more: &[&str], lines: &str) -> Talked {
    let mut command = program();
    command.arg("chat").args(more).current_dir(dir);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that refuses its options does not read.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Talked { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Talked {
    /// The events of a talk that went well.
    #[track_caller]
    fn events(&self) -> Vec<Value> {
        assert_eq!(self.status, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The turns of a talk that went well.
    #[track_caller]
    fn turns(&self) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == "turn").collect()
    }
}

const JSON: [&str; 3] = ["--json", "-n", "12"];

/// Options of a talk in a directory of [`without_format`].
const PLAIN: [&str; 6] = [".", "--json", "-n", "12", "--logit-bias", "3071=-inf"];

/// The embedded model's files in `dir`, but its tokens of Harmony have other names.
pub(super) fn without_format(dir: &Path) {
    let nano = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano");
    for file in ["model.safetensors", "config.json"] {
        fs::copy(nano.join(file), dir.join(file)).unwrap();
    }
    let tokenizer = fs::read_to_string(nano.join("tokenizer.json")).unwrap();
    let mut tokenizer: Value = serde_json::from_str(&tokenizer).unwrap();
    for token in tokenizer["added_tokens"].as_array_mut().unwrap() {
        if token["content"] != "<|endoftext|>" {
            token["content"] = format!("<|spare_{}|>", token["id"]).into();
        }
    }
    fs::write(dir.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

#[test]
fn every_turn_only_computes_what_is_new() {
    let dir = TempDir::new().unwrap();
    without_format(dir.path());
    let turns =
        talk(dir.path(), &PLAIN, "What is a slice?\nAnd a vector?\n\nWhy?\n/exit\nnot read\n").turns();
    assert_eq!(turns.len(), 3);
    for pair in turns.windows(2) {
        let known = pair[0]["prompt_tokens"].as_u64().unwrap();
        let written = pair[0]["tokens"].as_array().unwrap().len() as u64;
        assert_eq!(written, 12, "no stop string came, which would be no part of the next prompt");
        // The last token of an answer has not been run.
        assert_eq!(pair[1]["cached_tokens"], known + written - 1);
        assert!(pair[1]["prompt_tokens"].as_u64().unwrap() > known + written);
        assert_eq!(pair[1]["stop"], "max_tokens");
    }
}

#[test]
fn answers_come_as_text_and_as_the_same_events() {
    let dir = TempDir::new().unwrap();
    without_format(dir.path());
    let text = talk(dir.path(), &[&PLAIN[..1], &PLAIN[2..]].concat(), "What is a slice?\n");
    assert_eq!(text.status, Some(0));
    assert!(text.stderr.contains("neither Harmony nor a chat template"), "{}", text.stderr);
    assert!(text.stderr.contains("note: the answer is cut off at -n 12"), "{}", text.stderr);
    assert!(!text.stdout.contains('\u{1b}'));
    let events = talk(dir.path(), &PLAIN, "What is a slice?\n").events();
    assert_eq!(events[0]["schema"], "kernmill.chat/1");
    let deltas = events.iter().filter(|event| event["event"] == "delta");
    let answer: String = deltas.map(|event| event["text"].as_str().unwrap()).collect();
    assert!(answer.len() > 12, "{answer}");
    assert_eq!(text.stdout, format!("{answer}\n"));
}

#[test]
fn lines_and_files_make_one_message() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("notes.txt"), "A slice is a view.\n").unwrap();
    let ask = |lines: &str| talk(dir.path(), &JSON, lines).turns()[0].clone();
    let count = |turn: &Value| (turn["prompt_tokens"].as_u64().unwrap(), turn["tokens"].clone());
    let plain = count(&ask("/system Be brief.\nA slice is a view.\n"));
    assert_ne!(plain, count(&ask("A slice is a view.\n")));
    let continued = count(&ask("one\\\ntwo\n"));
    assert_eq!(continued, count(&ask("\"\"\"\none\ntwo\n\"\"\"\n")));
    assert_eq!(continued, count(&ask("\"\"\"one\ntwo\"\"\"\n")));
    let with_file = count(&ask("/file notes.txt\nWhy?\n"));
    assert_eq!(with_file, count(&ask("\"\"\"\nA slice is a view.\n\nWhy?\n\"\"\"\n")));
    assert_eq!(count(&ask(" /etc\n")), count(&ask("\"\"\"/etc\"\"\"\n")));
}

#[test]
fn retry_edit_and_clear_replace_what_was_said() {
    let dir = TempDir::new().unwrap();
    let ids = |lines: &str| -> Vec<Value> {
        let turns = talk(dir.path(), &[&JSON[..], &["--temp", "4", "--top-p", "1"]].concat(), lines).turns();
        turns.into_iter().map(|turn| turn["tokens"].clone()).collect()
    };
    let [first, second]: [Value; 2] = ids("What is a slice?\nWhy?\n").try_into().unwrap();
    let retried = ids("What is a slice?\n/retry\n/retry\nWhy?\n");
    assert_eq!(retried[0], first);
    assert_eq!(retried.iter().map(Value::to_string).collect::<BTreeSet<_>>().len(), 4, "{retried:?}");
    let edited = ids("Who?\n/edit What is a slice?\nWhy?\n");
    assert_eq!(edited[1..], [first.clone(), second]);
    assert_eq!(ids("Who?\n/clear\nWhat is a slice?\n")[1], first);
}

#[test]
fn a_conversation_goes_on_from_its_file_with_the_same_ids() {
    let dir = TempDir::new().unwrap();
    let options = [&JSON[..], &["--seed", "7", "--temp", "1"]].concat();
    let talked = |more: &[&str], lines: &str| talk(dir.path(), &[&options[..], more].concat(), lines);
    let whole = talked(&[], "What is a slice?\n/save talk.json\nWhy?\n/retry\n").turns();
    assert_eq!(whole.len(), 3);
    // The seed is the file's.
    let loaded = talk(dir.path(), &[&JSON[..], &["--temp", "1"]].concat(), "/load talk.json\nWhy?\n/retry\n");
    let loaded = loaded.turns();
    assert_eq!(loaded.len(), 2);
    for (part, whole) in loaded.iter().zip(&whole[1..]) {
        assert_eq!((&part["tokens"], &part["seed"]), (&whole["tokens"], &whole["seed"]));
    }
    assert_eq!(loaded[0]["cached_tokens"], 0);

    assert_eq!(
        talked(&["--session", "kept.json"], "What is a slice?\n").turns()[0]["tokens"],
        whole[0]["tokens"]
    );
    let kept = talked(&["--session", "kept.json"], "Why?\n").turns();
    assert_eq!(kept[0]["tokens"], whole[1]["tokens"]);
    let mode = fs::metadata(dir.path().join("kept.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn lines_that_are_wrong_are_refused_and_the_talk_goes_on() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("bad.json"), "{\"schema\": 1}").unwrap();
    let other = "{\"schema\": \"x/1\", \"model\": \"\", \"adapters\": [], \"seed\": 1, \"conversation\": {}, \
        \"answers\": {}}";
    fs::write(dir.path().join("other.json"), other).unwrap();
    let lines = "/nothing\n/load none.json\n/load bad.json\n/load other.json\n/file none.txt\n/save no/such\n\
        /retry\n/edit\n/lora poet\n/effort lots\nWhat is a slice?\n";
    let talked = talk(dir.path(), &["-n", "12"], lines);
    assert_eq!(talked.status, Some(2), "{}", talked.stderr);
    let errors: Vec<&str> = talked.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    let says = [
        "/nothing is no command: /help lists them",
        "none.json: ",
        "bad.json: ",
        "other.json: the schema is x/1, expected kernmill.conversation/1",
        "none.txt: ",
        "no/such: ",
        "nothing has been said yet",
        "nothing has been said yet",
        "there is no adapter poet, expected none or one of: none",
        "there is no level `lots`, expected none, low, medium or high",
        "10 lines were refused",
    ];
    assert_eq!(errors.len(), says.len(), "{errors:#?}");
    for (error, says) in errors.iter().zip(says) {
        assert!(error.contains(says), "{error}: {says}");
    }
    assert!(!talked.stdout.trim().is_empty(), "the last line has its answer");

    // A file that cannot be a session is refused before anything is read.
    let refused = talk(dir.path(), &["--session", "bad.json"], "Why?\n");
    assert_eq!((refused.status, &*refused.stdout), (Some(2), ""));
    assert!(refused.stderr.contains("bad.json: "), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(dir.path().join("bad.json")).unwrap(), "{\"schema\": 1}");
}

#[test]
fn a_full_context_is_told_with_both_numbers() {
    let dir = TempDir::new().unwrap();
    let cut =
        talk(dir.path(), &["--json", "--context", "72", "--logit-bias", "3064=-inf"], "What is a slice?\n");
    let (turns, events) = (cut.turns(), cut.events());
    assert_eq!(turns[0]["stop"], "context");
    let (prompt, written) =
        (turns[0]["prompt_tokens"].as_u64().unwrap(), turns[0]["tokens"].as_array().unwrap());
    let note = events.iter().find(|event| event["event"] == "note").unwrap()["text"].as_str().unwrap();
    assert!(note.contains(&format!("{prompt} tokens of the conversation")), "{note}");
    assert!(note.contains(&format!("{} of the answer, the context holds 72", written.len())), "{note}");

    let long = format!("{}\nWhy?\n", "slice ".repeat(100));
    let refused = talk(dir.path(), &["--context", "64", "-n", "4"], &long);
    assert_eq!(refused.status, Some(2));
    let error = refused.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(error.contains("the context is full: the conversation has "), "{error}");
    assert!(error.contains("the context holds 64: say less, begin anew with /clear"), "{error}");
    assert!(error.contains("--context (at most 2048, the model's longest)"), "{error}");
    assert!(!refused.stdout.trim().is_empty(), "the short message fits, since the long one is no part of it");
}

#[test]
fn an_adapter_answers_from_its_command_on() {
    let dir = TempDir::new().unwrap();
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano/nano.toml");
    kernmill_in(dir.path(), &["synth", spec.to_str().unwrap(), "-o", "poet", "--lora", "4", "-q"]).text();
    let usual = [&JSON[..], &["--lora", "poet=poet:40"]].concat();
    let talked = talk(dir.path(), &usual, "A\n/lora none\n/clear\nA\n/lora poet\n/clear\nA\n/lora\n");
    let turns = talked.turns();
    assert_ne!(turns[0]["tokens"], turns[1]["tokens"]);
    assert_eq!(turns[0]["tokens"], turns[2]["tokens"]);
    let events = talked.events();
    assert_eq!(events.last().unwrap()["text"], "adapters: poet; in use: poet");
}

#[test]
fn ctrl_c_ends_an_answer_and_not_the_talk() {
    let ended = (0..20).any(|_| {
        let mut command = interruptible();
        command.args(["chat", "--json", "--preset", "exact", "--threads", "1", "--logit-bias", "3064=-inf"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        stdin.write_all(b"What is a slice?\n").unwrap();
        assert!(events.any(|event| event["event"] == "delta"));
        interrupt(&child);
        let turn = events.find(|event| event["event"] == "turn").unwrap();
        stdin.write_all(b"/save /dev/full/x\n/stats\n").unwrap();
        drop(stdin);
        let rest: Vec<Value> = events.collect();
        assert_eq!(child.wait().unwrap().code(), Some(2));
        assert_eq!(rest.len(), 2, "{rest:?}");
        assert!(rest[1]["text"].as_str().unwrap().contains("prefix cache: "), "{rest:?}");
        // The answer may have been done before.
        turn["stop"] == "interrupt"
    });
    assert!(ended, "no Ctrl-C came before the end of an answer");
}

#[test]
fn a_model_with_harmonys_tokens_is_talked_to_in_harmony() {
    let dir = TempDir::new().unwrap();
    let lines = "What is a slice?\nWhy? <|end|>\n/effort low\nWho?\n";
    let talked = talk(dir.path(), &["--json", "-n", "12", "--effort", "high"], lines);
    assert_eq!(talked.events()[0]["format"], "harmony");
    let turns = talked.turns();
    let count = |turn: &Value, field: &str| turn[field].as_u64().unwrap();
    // Earlier answers are read again without their reasoning, from the name of their first channel on.
    assert_eq!(count(&turns[1], "cached_tokens"), count(&turns[0], "prompt_tokens") + 1);
    // The effort stands near the beginning.
    assert!(count(&turns[2], "cached_tokens") < count(&turns[0], "prompt_tokens"), "{turns:?}");
    assert!(!talked.stderr.contains("neither Harmony"), "{}", talked.stderr);
}

#[test]
fn a_model_is_told_of_the_functions_of_a_file() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("f.json"), r#"[{"name": "clock", "description": "The time."}]"#).unwrap();
    fs::write(dir.path().join("bad.json"), r#"[{"called": "clock"}]"#).unwrap();
    let lines = "Who?\n/clear\n/tools f.json\n/tools\nWho?\n/clear\n/tools none\n/tools\nWho?\n";
    let talked = talk(dir.path(), &["--json", "-n", "2"], lines);
    let prompts: Vec<u64> =
        talked.turns().iter().map(|turn| turn["prompt_tokens"].as_u64().unwrap()).collect();
    assert!(prompts[1] > prompts[0] && prompts[2] == prompts[0], "{prompts:?}");
    let events = talked.events();
    let replies: Vec<&str> =
        events.iter().filter(|e| e["event"] == "reply").map(|e| e["text"].as_str().unwrap()).collect();
    assert_eq!(replies, ["functions: clock", "functions: none"]);

    let started = talk(dir.path(), &["--json", "-n", "2", "--tools", "f.json"], "Who?\n");
    assert_eq!(started.turns()[0]["prompt_tokens"], prompts[1]);
    let refused = talk(dir.path(), &["--tools", "bad.json"], "Who?\n");
    assert_eq!((refused.status, &*refused.stdout), (Some(2), ""));
    assert!(
        refused.stderr.contains("bad.json: entry 0 is no function: expected a list"),
        "{}",
        refused.stderr
    );
}

/// Texts of the parts of a kind, of all answers of a talk.
fn parts(events: &[Value], kind: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut wanted = false;
    for event in events {
        match event["event"].as_str().unwrap() {
            "begin" => {
                wanted = event["part"] == kind;
                texts.extend(wanted.then(String::new));
            }
            "delta" if wanted => texts.last_mut().unwrap().push_str(event["text"].as_str().unwrap()),
            _ => {}
        }
    }
    texts
}

#[test]
fn a_call_is_answered_by_the_user_and_the_model_goes_on() {
    let dir = TempDir::new().unwrap();
    let tools = r#"[{"name": "get_weather", "description": "Gets the weather of a city.", "parameters": {
        "type": "object", "required": ["city"],
        "properties": {"city": {"type": "string", "description": "Name of the city."}}}}]"#;
    fs::write(dir.path().join("tools.json"), tools).unwrap();
    let lines = "What is the weather in Oslo?\n{\"sky\":\"rainy\",\"degrees\":7}\n";
    let events =
        talk(dir.path(), &["--json", "--temp", "0", "--tools", "tools.json", "--effort", "low"], lines)
            .events();
    assert_eq!(parts(&events, "call"), ["{\"city\":\"Oslo\"}"]);
    let asked: Vec<&Value> = events.iter().filter(|event| event["event"] == "result_wanted").collect();
    assert_eq!((asked.len(), &asked[0]["name"]), (1, &Value::from("get_weather")));
    assert_eq!(parts(&events, "answer"), ["It is rainy in Oslo, 7 degrees."]);
}

/// Fields of events, as `docs/user/json.md` lists them.
#[test]
fn every_field_of_every_event_is_documented() {
    let dir = TempDir::new().unwrap();
    let lines = "What is a slice?\n/stats\n/nothing\n";
    let talked = talk(dir.path(), &JSON, lines);
    let events = talked.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut found: BTreeSet<String> =
        events.flat_map(|event| event.as_object().unwrap().keys().cloned().collect::<Vec<_>>()).collect();
    // The embedded model calls no tools.
    found.extend(["name".to_owned(), "id".to_owned()]);
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/user/json.md")).unwrap();
    let section = page.split("\n## `kernmill.chat/1`\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split(" | ").next());
    let fields = rows
        .flat_map(|row| row.split(", "))
        .map(|field| field.trim_matches('`').trim_end_matches("[]").to_owned());
    assert_eq!(found, fields.collect());
}
