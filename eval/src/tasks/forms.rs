//! Prompts of each task, as lm-eval 0.4.13 makes them.

use super::python::{capitalize, strip, without_brackets};
use super::{Task, TaskItem};
use serde_json::Value;

/// Choices of an item at most.
const MOST_CHOICES: usize = 64;

/// The item of a line.
pub fn item(task: Task, doc: &Value) -> Result<TaskItem, String> {
    let item = match task {
        Task::HellaSwag => hellaswag(doc),
        Task::Arc => {
            let (question, (choices, gold)) = (stem(doc, "question")?, lettered(doc, false)?);
            told(doc, format!("Question: {question}\nAnswer:"), choices, gold)
        }
        Task::OpenBookQa => {
            let (question, (choices, gold)) = (stem(doc, "question_stem")?, lettered(doc, true)?);
            told(doc, question.to_owned(), choices, gold)
        }
        Task::Mmlu => mmlu(doc),
        Task::Piqa => {
            let choices = vec![text(doc, "sol1")?.to_owned(), text(doc, "sol2")?.to_owned()];
            let context = format!("Question: {}\nAnswer:", text(doc, "goal")?);
            told(doc, context, choices, whole(doc, "label")?)
        }
        Task::WinoGrande => winogrande(doc),
        Task::BoolQ => {
            let context =
                format!("{}\nQuestion: {}?\nAnswer:", text(doc, "passage")?, text(doc, "question")?);
            let label = [&doc["label"], &doc["answer"]].into_iter().find(|value| !value.is_null());
            let gold = match label {
                Some(Value::Bool(right)) => usize::from(*right),
                Some(Value::Number(number)) => number.as_u64().unwrap_or(u64::MAX) as usize,
                _ => return Err("expected a \"label\" or an \"answer\", true or false".to_owned()),
            };
            told(doc, context, vec!["no".to_owned(), "yes".to_owned()], gold)
        }
    }?;
    match item.pairs.len() {
        2..=MOST_CHOICES if item.gold < item.pairs.len() => Ok(item),
        2..=MOST_CHOICES => {
            Err(format!("the right answer is number {}, expected less than {}", item.gold, item.pairs.len()))
        }
        choices => Err(format!("{choices} choices, expected 2 to {MOST_CHOICES}")),
    }
}

/// An item whose choices follow one context.
fn told(doc: &Value, context: String, choices: Vec<String>, gold: usize) -> Result<TaskItem, String> {
    Ok(TaskItem {
        doc: doc.clone(),
        lengths: choices.iter().map(|choice| choice.chars().count()).collect(),
        pairs: choices.iter().map(|choice| [context.clone(), format!(" {choice}")]).collect(),
        gold,
        target: gold.to_string(),
    })
}

fn hellaswag(doc: &Value) -> Result<TaskItem, String> {
    let clean = |text: &str| without_brackets(&strip(text).replace(" [title]", ". ")).replace("  ", " ");
    let context = format!("{} {}", text(doc, "ctx_a")?, capitalize(text(doc, "ctx_b")?));
    let context = clean(&format!("{}: {context}", text(doc, "activity_label")?));
    let choices: Vec<String> = texts(&doc["endings"], "endings")?.into_iter().map(clean).collect();
    told(doc, context, choices, whole(doc, "label")?)
}

fn mmlu(doc: &Value) -> Result<TaskItem, String> {
    let subject = text(doc, "subject")?.replace('_', " ");
    let mut context =
        format!("The following are multiple choice questions (with answers) about {subject}.\n\n");
    context += strip(text(doc, "question")?);
    let choices = texts(&doc["choices"], "choices")?;
    if choices.len() != 4 {
        return Err(format!("{} choices, expected 4", choices.len()));
    }
    for (letter, choice) in ["A", "B", "C", "D"].iter().zip(choices) {
        context += &format!("\n{letter}. {choice}");
    }
    context += "\nAnswer:";
    told(doc, context, ["A", "B", "C", "D"].map(str::to_owned).to_vec(), whole(doc, "answer")?)
}

fn winogrande(doc: &Value) -> Result<TaskItem, String> {
    let sentence = text(doc, "sentence")?;
    let (before, behind) =
        sentence.split_once('_').ok_or_else(|| "the sentence has no gap, expected a _".to_owned())?;
    let options = [text(doc, "option1")?, text(doc, "option2")?];
    let answer = if doc["answer"].is_null() { whole(doc, "label") } else { whole(doc, "answer") }?;
    let target = strip(behind).to_owned();
    let contexts = options.map(|option| format!("{before}{option}"));
    Ok(TaskItem {
        doc: doc.clone(),
        lengths: contexts.iter().map(|context| context.chars().count()).collect(),
        pairs: contexts.map(|context| [context, format!(" {target}")]).to_vec(),
        gold: answer.checked_sub(1).ok_or_else(|| "the answer is 0, expected 1 or 2".to_owned())?,
        target,
    })
}

fn text<'d>(doc: &'d Value, name: &str) -> Result<&'d str, String> {
    doc[name].as_str().ok_or_else(|| format!("expected a string \"{name}\""))
}

fn texts<'d>(list: &'d Value, name: &str) -> Result<Vec<&'d str>, String> {
    let all = list.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
    all.ok_or_else(|| format!("expected a list of strings \"{name}\""))
}

/// A whole number, which may be in quotes.
fn whole(doc: &Value, name: &str) -> Result<usize, String> {
    let number = match &doc[name] {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    };
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number \"{name}\""))
}

/// The question: `name` on the hub, `question.stem` in the publisher's files.
fn stem<'d>(doc: &'d Value, name: &str) -> Result<&'d str, String> {
    let found = doc[name].as_str().or_else(|| doc["question"]["stem"].as_str());
    found.ok_or_else(|| format!("expected a string \"{name}\", or \"question\" with a \"stem\""))
}

/// Choices with letters, and the number of the right one: lists of both on the hub, a list of pairs in the
/// publisher's files.
fn lettered(doc: &Value, strips: bool) -> Result<(Vec<String>, usize), String> {
    let of_hub = &doc["choices"];
    let (choices, letters) = if of_hub.is_object() {
        (texts(&of_hub["text"], "text")?, texts(&of_hub["label"], "label")?)
    } else {
        let pairs = doc["question"]["choices"].as_array().or_else(|| of_hub.as_array());
        let pairs = pairs.ok_or_else(|| "expected \"choices\"".to_owned())?;
        let both = |pair: &'_ Value| -> Result<(String, String), String> {
            Ok((text(pair, "text")?.to_owned(), text(pair, "label")?.to_owned()))
        };
        let (choices, letters): (Vec<String>, Vec<String>) =
            pairs.iter().map(both).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        return Ok((choices, right(doc, &letters, strips)?));
    };
    let letters: Vec<String> = letters.into_iter().map(str::to_owned).collect();
    Ok((choices.into_iter().map(str::to_owned).collect(), right(doc, &letters, strips)?))
}

fn right(doc: &Value, letters: &[String], strips: bool) -> Result<usize, String> {
    let answer = text(doc, "answerKey")?;
    let answer = if strips { answer.trim_start_matches(super::python::is_space) } else { answer };
    let found = letters.iter().position(|letter| letter == answer);
    found.ok_or_else(|| format!("the answer is {answer:?}, expected one of {}", letters.join(", ")))
}
