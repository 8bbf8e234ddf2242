//! Tasks of choosing, from the files in which they are published: the prompts of lm-eval, version 0.4.13.

mod csv;
mod forms;
mod python;
mod random;
mod read;
#[cfg(test)]
mod tests;

pub use python::{is_space, strip};
pub use random::PythonRandom;
pub use read::{Docs, lines};
use serde_json::Value;

/// A question: a line of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskItem {
    /// The line as it was read.
    pub doc: Value,
    /// Each choice's context and continuation, which is what the model is asked about.
    pub pairs: Vec<[String; 2]>,
    /// Characters of each choice, by which its likelihood may be divided.
    pub lengths: Vec<usize>,
    /// Number of the right choice.
    pub gold: usize,
    /// The right answer, as lm-eval's samples have it.
    pub target: String,
}

/// A task that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// HellaSwag: how a scene goes on.
    HellaSwag,
    /// ARC, both sets: questions of school science.
    Arc,
    /// MMLU: questions of 57 subjects, a file each.
    Mmlu,
    /// PIQA: how things are done.
    Piqa,
    /// WinoGrande: whom a word stands for.
    WinoGrande,
    /// OpenBookQA: science with a fact that is not told.
    OpenBookQa,
    /// BoolQ: yes or no, by a text.
    BoolQ,
}

impl Task {
    /// All of them.
    pub const ALL: [Task; 7] =
        [Task::HellaSwag, Task::Arc, Task::Mmlu, Task::Piqa, Task::WinoGrande, Task::OpenBookQa, Task::BoolQ];

    /// Name of the task on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Task::HellaSwag => "hellaswag",
            Task::Arc => "arc",
            Task::Mmlu => "mmlu",
            Task::Piqa => "piqa",
            Task::WinoGrande => "winogrande",
            Task::OpenBookQa => "openbookqa",
            Task::BoolQ => "boolq",
        }
    }

    /// The task of this name.
    pub fn from_name(name: &str) -> Option<Task> {
        Task::ALL.into_iter().find(|task| task.name() == name)
    }

    /// The version of its prompts in lm-eval.
    pub fn version(self) -> f64 {
        if self == Task::BoolQ { 2.0 } else { 1.0 }
    }

    /// Whether lm-eval also divides its likelihoods by lengths.
    pub fn has_norm(self) -> bool {
        !matches!(self, Task::Mmlu | Task::WinoGrande | Task::BoolQ)
    }

    /// The items of a file's text. `stem` is the file's name without its end, `labels` the file of right
    /// answers beside it, where the task has one.
    ///
    /// # Errors
    /// What is wrong, in which line.
    pub fn items(self, text: &str, stem: &str, labels: Option<&str>) -> Result<Vec<TaskItem>, String> {
        let docs = match self {
            Task::Mmlu if !text.trim_start().starts_with('{') => read::table(text, stem)?,
            _ => lines(text, labels)?,
        };
        let item = |(line, doc): (usize, Value)| {
            forms::item(self, &doc).map_err(|what| format!("line {line}: {what}"))
        };
        docs.into_iter().map(item).collect()
    }

    /// Name of the task in lm-eval, by the file's name and an item: sets and subjects are tasks of their own
    /// there.
    pub fn name_of(self, stem: &str, item: &TaskItem) -> String {
        let stem = stem.to_ascii_lowercase();
        match self {
            Task::Arc if stem.contains("easy") => "arc_easy".to_owned(),
            Task::Arc if stem.contains("challenge") => "arc_challenge".to_owned(),
            Task::Mmlu => {
                let subject = item.doc["subject"].as_str().unwrap_or_default();
                let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
                format!("mmlu_{}", subject.chars().take(80).map(plain).collect::<String>())
            }
            _ => self.name().to_owned(),
        }
    }

    /// The file of right answers that belongs to `stem`, where they are in a file of their own.
    pub fn labels_of(self, stem: &str) -> Option<String> {
        matches!(self, Task::Piqa | Task::WinoGrande).then(|| format!("{stem}-labels.lst"))
    }
}
