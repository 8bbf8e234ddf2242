//! Lines of a batch that are no requests: what is said of them, and that they spoil no other.

use super::batch::{answers, text};
use super::{Ran, Sandbox};
use serde_json::{Value, json};
use std::fs;

impl Ran {
    /// The batch must have said, at its end, that so many of its requests failed.
    #[track_caller]
    pub(super) fn failed_for(self, requests: usize) {
        let plural = if requests == 1 { "" } else { "s" };
        let said = format!("error: {requests} request{plural} failed: answers.jsonl says why\n");
        assert_eq!(self.status, Some(i32::from(requests > 0)), "{}", self.stderr);
        assert!(self.stderr.ends_with(&said) == (requests > 0), "{}", self.stderr);
    }
}

/// A wrong line is answered with what is wrong, and the others go on.
#[test]
fn a_wrong_line_spoils_no_other() {
    let sandbox = Sandbox::of("gptoss-base");
    let good = json!({ "id": "good", "prompt": "A slice is", "max_tokens": 3 });
    let long = json!({ "id": "long", "prompt": vec![1; 5000] });
    let wrong = [
        ("line-2", "{".to_owned(), "line 2: EOF while parsing"),
        ("typo", json!({ "id": "typo", "prompt": "x", "sed": 1 }).to_string(), "unknown field `sed`"),
        (
            "poet",
            json!({ "id": "poet", "prompt": "x", "adapter": "poet" }).to_string(),
            "`adapter` is \"poet\", expected the name of an adapter, but none is loaded",
        ),
        ("none", json!({ "id": "none", "prompt": [] }).to_string(), "no tokens"),
        ("id", json!({ "id": "id", "prompt": [70_000] }).to_string(), "no token id from 0 to"),
        ("hot", json!({ "id": "hot", "prompt": "x", "temperature": -1 }).to_string(), "temperature"),
        ("zero", json!({ "id": "zero", "prompt": "x", "max_tokens": 0 }).to_string(), "expected at least 1"),
        ("long", long.to_string(), "the context holds"),
        ("line-18", good.to_string(), "`good`: another request has this name"),
    ];
    let mut input = format!("{good}\n");
    wrong.iter().for_each(|(_, line, _)| input.push_str(&format!("{line}\n\n")));
    input.push_str(&json!({ "id": "last", "prompt": "A vector", "max_tokens": 2 }).to_string());
    sandbox.write("requests.jsonl", &input);
    sandbox.run(&["batch", "requests.jsonl", "-o", "answers.jsonl"]).failed_for(9);
    let answers = answers(&sandbox, "answers.jsonl");
    for (id, _, says) in wrong {
        let message = answers[id]["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{id}: {message}");
    }
    assert!(!text(&answers["good"]).is_empty() && !text(&answers["last"]).is_empty());
}

/// Files come from other systems, and lines of them that are no text are requests all the same.
#[test]
fn lines_are_utf_8_with_or_without_a_mark() {
    let sandbox = Sandbox::of("gptoss-base");
    let batch = ["batch", "requests.jsonl", "-o", "answers.jsonl", "-q"];
    let line = |id: &str, more: Value| {
        let mut line = json!({ "id": id, "prompt": "A slice", "max_tokens": 2 });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let good = |id: &str| line(id, json!({}));
    sandbox.write("requests.jsonl", format!("\u{feff}{}\r\n\r\n  \n{}", good("marked"), good("last")));
    sandbox.run(&batch).failed_for(0);
    let both = answers(&sandbox, "answers.jsonl");
    assert_eq!(text(&both["marked"]), text(&both["last"]));

    fs::remove_file(sandbox.path("answers.jsonl")).unwrap();
    let turn = |id: &str| line(id, json!({ "session": "s" }));
    let lines = [turn("bytes"), turn("later"), format!("\u{feff}{}", good("marked")), good("good")];
    let mut bytes = lines.join("\n").into_bytes();
    // The text is Latin-1, as older systems write it.
    let at = bytes.windows(7).position(|part| part == b"A slice").unwrap();
    bytes[at] = 0xc4;
    sandbox.write("requests.jsonl", bytes);
    sandbox.run(&batch).failed_for(3);
    let all = answers(&sandbox, "answers.jsonl");
    let message = |id: &str| all[id]["error"]["message"].as_str().unwrap();
    assert_eq!(message("bytes"), format!("line 1: byte {} is no UTF-8, expected JSON in UTF-8", at + 1));
    assert!(message("later").starts_with("`bytes`, an earlier turn of session `s`, has no answer"));
    assert!(message("line-3").starts_with("line 3: expected value"), "a mark stands before a file alone");
    assert_eq!(text(&all["good"]), text(&both["last"]));
}

#[test]
fn a_model_without_a_tokenizer_takes_ids() {
    let sandbox = Sandbox::of("gptoss-base");
    let ids = json!({ "id": "ids", "prompt": [3, 44, 5], "max_tokens": 4, "temperature": 0 });
    let mut lines = format!("{ids}\n");
    let others = [
        json!({ "id": "text", "prompt": "A slice" }),
        json!({ "id": "chat", "messages": [{ "role": "user", "content": "Hi" }] }),
        json!({ "id": "echo", "prompt": [3, 44, 5], "echo": true }),
        json!({ "id": "form", "prompt": [3, 44, 5], "kernmill": { "regex": "a" } }),
    ];
    others.iter().for_each(|line| lines.push_str(&format!("{line}\n")));
    sandbox.write("requests.jsonl", lines);
    let model = ["--spec", "spec.toml", "--weights", "."];
    let batch = ["batch", "requests.jsonl", "-o", "answers.jsonl"];
    sandbox.run(&[&batch[..], &model].concat()).failed_for(others.len());
    let answers = answers(&sandbox, "answers.jsonl");
    let choice = &answers["ids"]["response"]["body"]["choices"][0];
    assert_eq!((choice["token_ids"].as_array().unwrap().len(), &choice["text"]), (4, &json!("")));
    for line in &others {
        let message = answers[line["id"].as_str().unwrap()]["error"]["message"].as_str().unwrap();
        assert!(message.contains("the model has no tokenizer: give token ids in `prompt`"), "{message}");
    }
}
