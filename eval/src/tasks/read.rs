//! Lines of a task's file as JSON values.

use super::csv;
use serde_json::{Map, Value, json};

/// Values with the lines in which they stand.
pub type Docs = Vec<(usize, Value)>;

/// Lines of JSON. Right answers in a file of their own are put into them as `label`.
///
/// # Errors
/// What is wrong, in which line.
pub fn lines(text: &str, labels: Option<&str>) -> Result<Docs, String> {
    let mut docs = Docs::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        docs.push((at + 1, Value::Object(value)));
    }
    let Some(labels) = labels else { return Ok(docs) };
    let labels: Vec<&str> = labels.lines().map(str::trim).filter(|label| !label.is_empty()).collect();
    if labels.len() != docs.len() {
        return Err(format!("it has {} lines, and {} answers are beside it", docs.len(), labels.len()));
    }
    for ((_, doc), label) in docs.iter_mut().zip(labels) {
        let number = label.parse::<u64>().map(Value::from);
        doc["label"] = number.unwrap_or_else(|_| Value::from(label));
    }
    Ok(docs)
}

/// A table of MMLU: question, four choices, letter of the right one. The file's name says the subject.
pub fn table(text: &str, stem: &str) -> Result<Docs, String> {
    let subject = ["_test", "_val", "_dev"].iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem);
    let doc = |(line, fields): (usize, Vec<String>)| match &fields[..] {
        [question, choices @ .., answer] if choices.len() == 4 => {
            let letters = ["A", "B", "C", "D"];
            let right = letters.iter().position(|letter| *letter == answer.trim());
            let right =
                right.ok_or_else(|| format!("line {line}: the answer is {answer:?}, expected A to D"))?;
            let doc = json!({
                "question": question, "subject": subject, "choices": choices, "answer": right,
            });
            Ok((line, doc))
        }
        _ => Err(format!("line {line}: {} fields, expected question, four choices, letter", fields.len())),
    };
    csv::rows(text)?.into_iter().map(doc).collect()
}
