//! Questions that are answered by a text: GSM8K, with examples before each.

use super::filters::{AnswerMatch, TextFilter};
use crate::tasks::{Docs, PythonRandom, lines};
use kernmill::Result;
use serde_json::Value;

/// The seed of lm-eval's examples.
const SEED: u32 = 1234;

/// A task that is answered by a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTask {
    /// Sums in words of primary schools, with the steps of the solution.
    Gsm8k,
}

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct TextQuestion {
    /// The line as it was read.
    pub doc: Value,
    /// The text that the model goes on from, examples included.
    pub prompt: String,
    /// The solution, as lm-eval's samples have it.
    pub target: String,
}

impl TextTask {
    /// All of them.
    pub const ALL: [TextTask; 1] = [TextTask::Gsm8k];

    /// Name of the task on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            TextTask::Gsm8k => "gsm8k",
        }
    }

    /// The task of this name.
    pub fn from_name(name: &str) -> Option<TextTask> {
        TextTask::ALL.into_iter().find(|task| task.name() == name)
    }

    /// The version of its prompts in lm-eval.
    pub fn version(self) -> f64 {
        3.0
    }

    /// Examples before a question, where there is a file of them.
    pub fn shots(self) -> usize {
        5
    }

    /// Tokens of an answer at most.
    pub fn most_tokens(self) -> u32 {
        256
    }

    /// Texts that end an answer.
    pub fn stop(self) -> Vec<String> {
        ["Question:", "</s>", "<|im_end|>"].map(str::to_owned).to_vec()
    }

    /// The filters that find the answer in a text.
    ///
    /// # Errors
    /// When a pattern has a mistake.
    pub fn filters(self) -> Result<Vec<TextFilter>> {
        Ok(vec![
            TextFilter::new("strict-match", r"#### (\-?[0-9\.\,]+)", false)?,
            TextFilter::new("flexible-extract", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", true)?,
        ])
    }

    /// The comparison of answers. Python's `$` also stands before a line end at the end.
    ///
    /// # Errors
    /// When a pattern has a mistake.
    pub fn matches(self) -> Result<AnswerMatch> {
        AnswerMatch::new(&[",", r"\$", r"(?s).*#### ", r"\.(?=\n?\z)"])
    }

    fn question(self, doc: &Value) -> std::result::Result<[String; 2], String> {
        let text = |name: &str| {
            let found = doc[name].as_str().map(str::to_owned);
            found.ok_or_else(|| format!("expected a string \"{name}\""))
        };
        Ok([format!("Question: {}\nAnswer:", text("question")?), text("answer")?])
    }

    /// The questions of a file's text. Before each stand `shots` examples of `examples`, drawn as lm-eval
    /// draws them; `are_same` says that the examples are the questions themselves, and a question is then no
    /// example of its own.
    ///
    /// # Errors
    /// What is wrong, in which line, and whether it is in the examples.
    pub fn questions(
        self,
        text: &str,
        examples: Option<&str>,
        shots: usize,
        are_same: bool,
    ) -> std::result::Result<Vec<TextQuestion>, (bool, String)> {
        let read = |text: &str, of_examples: bool| -> std::result::Result<Vec<(Value, [String; 2])>, _> {
            let wrong = |what: String| (of_examples, what);
            let docs: Docs = lines(text, None).map_err(wrong)?;
            let one = |(line, doc): (usize, Value)| {
                let question = self.question(&doc).map_err(|what| wrong(format!("line {line}: {what}")))?;
                Ok((doc, question))
            };
            docs.into_iter().map(one).collect()
        };
        let docs = read(text, false)?;
        let pool = examples.map_or(Ok(Vec::new()), |examples| read(examples, true))?;
        let shots = if examples.is_some() { shots } else { 0 };
        let drawn = shots + usize::from(are_same && shots > 0);
        if drawn > pool.len() {
            return Err((
                true,
                format!("it has {} lines, expected {drawn} to draw examples from", pool.len()),
            ));
        }
        let mut random = PythonRandom::new(SEED);
        let mut questions = Vec::with_capacity(docs.len());
        for (doc, [asked, target]) in docs {
            let taken = random.sample(pool.len(), drawn).into_iter().map(|at| &pool[at]);
            let taken: Vec<_> = taken.filter(|(other, _)| !are_same || *other != doc).take(shots).collect();
            let prompt = taken.iter().map(|(_, [asked, answer])| format!("{asked} {answer}\n\n"));
            let prompt = prompt.collect::<String>() + &asked;
            questions.push(TextQuestion { doc, prompt, target });
        }
        Ok(questions)
    }
}
