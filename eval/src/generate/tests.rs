//! Prompts and answers against lm-eval's own: `tools/eval/texts.py` made the fixtures.

use super::questions::TextTask;
use serde_json::Value;

const QUESTIONS: &str = include_str!("../../fixtures/gsm8k.jsonl");
const EXAMPLES: &str = include_str!("../../fixtures/gsm8k-train.jsonl");

fn expected() -> Value {
    serde_json::from_str(include_str!("../../fixtures/expected-texts.json")).unwrap()
}

#[test]
fn prompts_are_those_of_lm_eval() {
    let all = expected();
    let task = TextTask::Gsm8k;
    let apart = task.questions(QUESTIONS, Some(EXAMPLES), task.shots(), false).unwrap();
    let same = task.questions(EXAMPLES, Some(EXAMPLES), task.shots(), true).unwrap();
    let none = task.questions(QUESTIONS, None, task.shots(), false).unwrap();
    for (found, expected) in [(apart, "apart"), (same, "same"), (none, "none")] {
        let expected = all[expected].as_array().unwrap();
        assert!(found.len() == expected.len() && found.len() >= 12);
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!((found.prompt.as_str(), found.target.as_str()), {
                let text = |name: &str| expected[name].as_str().unwrap();
                (text("prompt"), text("target"))
            });
        }
    }
}

#[test]
fn answers_are_those_of_lm_eval() {
    let all = expected();
    let task = TextTask::Gsm8k;
    let (filters, matches) = (task.filters().unwrap(), task.matches().unwrap());
    let cases = all["answers"].as_array().unwrap();
    assert!(cases.len() >= 30);
    for case in cases {
        let [text, target] = ["text", "target"].map(|name| case[name].as_str().unwrap());
        for filter in &filters {
            let answer = filter.answer(text).unwrap();
            assert_eq!(answer, case[filter.name]["answer"], "{}: {text:?}", filter.name);
            let is_right = matches.is_right(&answer, target).unwrap();
            assert_eq!(is_right, case[filter.name]["is_right"], "{}: {text:?}, {target:?}", filter.name);
        }
    }
}

#[test]
fn wrong_files_are_told_apart() {
    let refused =
        |text: &str, examples: &str| TextTask::Gsm8k.questions(text, Some(examples), 1, false).unwrap_err();
    let good = "{\"question\": \"q\", \"answer\": \"a\"}";
    assert_eq!(
        refused("{\"question\": 3}", good),
        (false, "line 1: expected a string \"question\"".to_owned())
    );
    let without = format!("{good}\n{{\"question\": \"q\"}}");
    assert_eq!(refused(good, &without), (true, "line 2: expected a string \"answer\"".to_owned()));
    assert_eq!(refused(good, "\n"), (true, "it has 0 lines, expected 1 to draw examples from".to_owned()));
}
