//! Prompts against lm-eval's own: `tools/eval/prompts.py` made the fixtures.

use super::{Task, TaskItem};
use serde_json::Value;

/// The files of each task in its fixtures: the name's stem, the text, the answers beside it.
const FILES: [(Task, &str, &str, Option<&str>); 12] = [
    (Task::HellaSwag, "hellaswag", include_str!("../../fixtures/hellaswag.jsonl"), None),
    (Task::Arc, "ARC-Easy-Test", include_str!("../../fixtures/arc.jsonl"), None),
    (Task::Arc, "arc", include_str!("../../fixtures/arc.hub.jsonl"), None),
    (
        Task::Mmlu,
        "high_school_biology_test",
        include_str!("../../fixtures/high_school_biology_test.csv"),
        None,
    ),
    (Task::Mmlu, "test", include_str!("../../fixtures/mmlu.hub.jsonl"), None),
    (
        Task::Piqa,
        "piqa",
        include_str!("../../fixtures/piqa.jsonl"),
        Some(include_str!("../../fixtures/piqa-labels.lst")),
    ),
    (Task::Piqa, "piqa", include_str!("../../fixtures/piqa.hub.jsonl"), None),
    (Task::WinoGrande, "winogrande", include_str!("../../fixtures/winogrande.jsonl"), None),
    (Task::OpenBookQa, "openbookqa", include_str!("../../fixtures/openbookqa.jsonl"), None),
    (Task::OpenBookQa, "openbookqa", include_str!("../../fixtures/openbookqa.hub.jsonl"), None),
    (Task::BoolQ, "boolq", include_str!("../../fixtures/boolq.jsonl"), None),
    (Task::BoolQ, "boolq", include_str!("../../fixtures/boolq.hub.jsonl"), None),
];

#[test]
fn prompts_are_those_of_lm_eval() {
    let all: Value = serde_json::from_str(include_str!("../../fixtures/expected.json")).unwrap();
    for (task, stem, text, labels) in FILES {
        let items = task.items(text, stem, labels).unwrap();
        let expected = all[task.name()].as_array().unwrap();
        assert!(items.len() == expected.len() && items.len() >= 6, "{stem}: {} items", items.len());
        for (number, (TaskItem { pairs, lengths, gold, target, .. }, expected)) in
            items.iter().zip(expected).enumerate()
        {
            let found =
                serde_json::json!({ "pairs": pairs, "gold": gold, "lengths": lengths, "target": target });
            assert_eq!(found, *expected, "{} of {stem}", number);
        }
    }
}

#[test]
fn names_are_those_of_lm_eval() {
    let name = |at: usize| {
        let (task, stem, text, labels) = FILES[at];
        task.name_of(stem, &task.items(text, stem, labels).unwrap()[0])
    };
    assert_eq!(
        [0, 1, 2, 3, 4].map(name),
        ["hellaswag", "arc_easy", "arc", "mmlu_high_school_biology", "mmlu_high_school_biology"]
    );
}

#[test]
fn wrong_lines_are_named() {
    let refused = |task: Task, text: &str| task.items(text, "x", Some("1\n")).unwrap_err();
    let cases = [
        (Task::HellaSwag, "{\"ctx_a\": \"a\"}\n{}", "it has 2 lines, and 1 answers are beside it"),
        (Task::HellaSwag, "\n{\"ctx_a\": 3}", "line 2: expected a string \"ctx_a\""),
        (Task::Arc, "[1]", "line 1: invalid type: sequence, expected a map at line 1 column 0"),
        (
            Task::Arc,
            "{\"question\": \"q\", \"choices\": {\"text\": [\"a\", \"b\"], \"label\": [\"A\", \"B\"]}, \
             \"answerKey\": \"C\"}",
            "line 1: the answer is \"C\", expected one of A, B",
        ),
        (Task::Mmlu, "q,a,b,c,d,E", "line 1: the answer is \"E\", expected A to D"),
        (Task::Mmlu, "q,a,b,c,D", "line 1: 5 fields, expected question, four choices, letter"),
        (Task::Piqa, "{\"goal\": \"g\", \"sol1\": \"a\"}", "line 1: expected a string \"sol2\""),
        (
            Task::WinoGrande,
            "{\"sentence\": \"s\", \"option1\": \"a\", \"option2\": \"b\"}",
            "line 1: the sentence has no gap, expected a _",
        ),
    ];
    for (task, text, expected) in cases {
        assert_eq!(refused(task, text), expected);
    }
}
