//! `kernmill eval generate`: questions that are answered by a text, in which the answer is looked for.

mod filters;
mod questions;
#[cfg(test)]
mod tests;

use crate::given::Count;
use crate::lm_eval::{TaskRun, hash, make_dir, store, text_sample};
use crate::made::{AllMade, MakingArgs};
use crate::report::{Outcome, ReportForm, figures, interval_json, with_interval};
use crate::stats::{BlockSum, Mean, interval, smallest_difference};
use filters::majority;
use kernmill::{Error, Opened, Options, Result};
use kernmill_os::files::{lead_to_same_file, read_named_text};
use questions::{TextQuestion, TextTask};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Bytes of a task's file at most.
const MOST_BYTES: u64 = 1 << 30;

/// `kernmill eval generate`, with the arguments by which the model is opened.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/generate.txt"))]
pub struct GenerateTexts<M: clap::Args> {
    /// Task: gsm8k, or one of its form (lines of JSON with question and answer)
    #[arg(long, value_name = "NAME", value_parser = task)]
    task: TextTask,
    /// The task's file as it is published: lines of JSON
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    /// The task's training set: examples from this file stand before each question
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
    /// Examples before each question; by default those of lm-eval's task, 5
    #[arg(long, value_name = "N")]
    shots: Option<Count>,
    /// Questions at most, from the beginning of the file
    #[arg(long, value_name = "N")]
    limit: Option<Count>,
    /// Write results_*.json and samples_*.jsonl to this directory, as lm-eval does
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub making: MakingArgs,
    #[command(flatten)]
    form: ReportForm,
    #[command(flatten)]
    pub model: M,
}

fn task(name: &str) -> std::result::Result<TextTask, String> {
    TextTask::from_name(name)
        .ok_or_else(|| format!("expected {}", TextTask::ALL.map(TextTask::name).join(", ")))
}

/// Answers of all questions by one filter.
struct Filtered {
    name: &'static str,
    /// By question, of each sample.
    answers: Vec<Vec<String>>,
    /// By question, the share of samples that are right.
    right: Vec<f64>,
    /// By question, whether the answer of most samples is right.
    majority: Vec<f64>,
    /// By question, whether the first sample is right, as lm-eval's `take_first` counts.
    first: Vec<f64>,
}

impl<M: clap::Args> GenerateTexts<M> {
    /// Runs the command with the model that was opened.
    ///
    /// # Errors
    /// When the task's files or the model cannot be used.
    pub fn run(&self, opened: Opened, options: &Options) -> Result<Outcome> {
        self.making.check()?;
        let (questions, all, file) = self.questions()?;
        make_dir(self.out.as_deref())?;
        let prompts: Vec<String> = questions.iter().map(|question| question.prompt.clone()).collect();
        let most = self.making.max_tokens.map_or(self.task.most_tokens(), |most| most.0);
        let stop = self.task.stop();
        let about = json!({ "task": self.task.name(), "file": file });
        let made = self.making.make(opened, options, &prompts, &stop, most, &about)?;
        let matches = self.task.matches()?;
        let mut found = Vec::new();
        for filter in self.task.filters()? {
            let mut filtered = Filtered {
                name: filter.name,
                answers: Vec::new(),
                right: Vec::new(),
                majority: Vec::new(),
                first: Vec::new(),
            };
            for (question, texts) in questions.iter().zip(&made.texts) {
                let answers: Vec<String> =
                    texts.iter().map(|made| filter.answer(&made.text)).collect::<Result<_>>()?;
                let number = |answer: &str| -> Result<f64> {
                    Ok(f64::from(u8::from(matches.is_right(answer, &question.target)?)))
                };
                let rights: Vec<f64> = answers.iter().map(|it| number(it)).collect::<Result<_>>()?;
                filtered.right.push(rights.iter().sum::<f64>() / rights.len() as f64);
                filtered.majority.push(number(majority(&answers))?);
                filtered.first.push(rights[0]);
                filtered.answers.push(answers);
            }
            found.push(filtered);
        }
        self.tell(&questions, &made, &found, all, &file, most)
    }

    /// The questions, how many are in the file, and a hash of all that was read.
    fn questions(&self) -> Result<(Vec<TextQuestion>, usize, String)> {
        let read = |path: &Path| read_named_text(path, MOST_BYTES).map_err(Error::read(path));
        let text = read(&self.file)?;
        let examples = self.examples.as_deref().map(read).transpose()?;
        if let (None, Some(shots)) = (&self.examples, self.shots) {
            let what = format!("--shots is {}, and --examples is missing, which names their file", shots.0);
            return Err(Error::bad_input(what));
        }
        let are_same = self.examples.as_deref().is_some_and(|path| lead_to_same_file(path, &self.file));
        let shots = self.shots.map_or(self.task.shots(), |shots| shots.0 as usize);
        let found = self.task.questions(&text, examples.as_deref(), shots, are_same);
        let mut questions = found.map_err(|(of_examples, what)| {
            let path = self.examples.as_ref().filter(|_| of_examples).unwrap_or(&self.file);
            Error::input(path, what)
        })?;
        let all = questions.len();
        questions.truncate(self.limit.map_or(usize::MAX, |limit| limit.0 as usize));
        match questions.is_empty() {
            true => Err(Error::input(&self.file, "it has no questions")),
            false => Ok((questions, all, hash(&format!("{}{text}", examples.unwrap_or_default())))),
        }
    }

    fn tell(
        &self,
        questions: &[TextQuestion],
        made: &AllMade,
        found: &[Filtered],
        all: usize,
        file: &str,
        most: u32,
    ) -> Result<Outcome> {
        let (n, samples) = (questions.len(), self.making.samples.0);
        let seen = smallest_difference(n, n.div_ceil(50));
        let mut json = json!({
            "model": made.model, "identity": made.identity, "task": self.task.name(), "file_hash": file,
            "questions": n, "samples": samples, "tokens": made.tokens(), "tokens_made": made.tokens_made,
            "cut_texts": made.cut_texts(), "smallest_difference_at_2_percent_flips": seen,
        });
        let about = json.clone();
        let mut named: Vec<(String, String)> = Vec::new();
        let mut means: Vec<(String, Mean)> = Vec::new();
        for Filtered { name, right, majority, first, .. } in found {
            let mut figure = |label: String, key: String, values: &[f64]| {
                let mean = Mean::of(values);
                let blocks: Vec<BlockSum> =
                    values.iter().map(|sum| BlockSum { sum: *sum, weight: 1.0 }).collect();
                let range = interval(&blocks);
                named
                    .push((label, format!("{}, stderr {:.5}", with_interval(mean.mean, range), mean.stderr)));
                json["metrics"][key] = json!({
                    "mean": mean.mean, "stderr": mean.stderr, "interval": interval_json(range),
                });
            };
            figure(format!("exact match, {name}"), format!("exact_match,{name}"), right);
            means.push((format!("exact_match,{name}"), Mean::of(first)));
            if samples > 1 {
                figure(format!("majority, {name}"), format!("majority,{name}"), majority);
            }
        }
        named.push(("questions".to_owned(), format!("{n}, {samples} texts each")));
        named.push(("tokens".to_owned(), format!("{} in {} texts", made.tokens(), n * samples as usize)));
        named.push(("cut at the limit".to_owned(), format!("{} texts", made.cut_texts())));
        let points = format!("{:.2} points to another run, where one of 50 answers changes", seen * 100.0);
        named.push(("smallest difference".to_owned(), points));
        if let Some(dir) = &self.out {
            let shots = self
                .examples
                .as_ref()
                .map_or(0, |_| self.shots.map_or(self.task.shots(), |it| it.0 as usize));
            let kwargs = self.making.told(&self.task.stop(), most);
            let mut lines = String::new();
            for filtered in found {
                for (at, question) in questions.iter().enumerate() {
                    let texts: Vec<&str> = made.texts[at].iter().map(|made| made.text.as_str()).collect();
                    let mut sample =
                        text_sample(at, &question.doc, &question.prompt, &kwargs, &question.target);
                    sample["resps"] = json!([texts]);
                    // Lm-eval's filter takes the first of several samples.
                    sample["filtered_resps"] = json!([filtered.answers[at][0]]);
                    sample["filter"] = json!(filtered.name);
                    sample["metrics"] = json!(["exact_match"]);
                    sample["exact_match"] = json!(filtered.first[at]);
                    lines += &format!("{sample}\n");
                }
            }
            let run = TaskRun {
                name: self.task.name(),
                version: self.task.version(),
                shots,
                limited: [all, n],
                config: json!({
                    "output_type": "generate_until", "repeats": samples, "generation_kwargs": kwargs,
                    "target_delimiter": " ", "fewshot_delimiter": "\n\n",
                    "metric_list": [{ "metric": "exact_match", "aggregation": "mean", "higher_is_better": true }],
                }),
            };
            store(dir, run.name, &lines, &run.results(&means, &about))?;
        }
        let title = format!("{} at {}", made.model, self.task.name());
        let named: Vec<(&str, String)> =
            named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let report = self.form.tell("kernmill.eval-generate/1", json, figures(&title, &named));
        Ok(Outcome { report, failed: None })
    }
}
