//! `kernmill eval choice`: questions with several answers, by the likelihood that the model gives to each.

mod likelihood;
mod samples;

use crate::given::Count;
use crate::lm_eval::{hash, make_dir, store};
use crate::measured::{Measured, Scorer, progress, with_tokenizer};
use crate::report::{Outcome, ReportForm, figures, interval_json, with_interval};
use crate::resume::Log;
use crate::stats::{BlockSum, Mean, interval, smallest_difference};
use crate::tasks::{Task, TaskItem};
use kernmill::observe::Progress;
use kernmill::{Error, Opened, Options, Result};
use kernmill_os::files::read_named_text;
use likelihood::{AskedContext, Likelihood, asked, batches, context, likelihoods, sequences};
use samples::{right, sample};
use serde_json::json;
use std::path::PathBuf;

/// Bytes of a task's file at most.
const MOST_BYTES: u64 = 1 << 30;

/// `kernmill eval choice`, with the arguments by which the model is opened.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/choice.txt"))]
pub struct Choice<M: clap::Args> {
    /// Task: hellaswag, arc, mmlu, piqa, winogrande, openbookqa or boolq
    #[arg(long, value_name = "NAME", value_parser = task)]
    task: Task,
    /// The task's file as it is published: lines of JSON, or MMLU's table of one subject (CSV)
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    /// Questions at most, from the beginning of the file
    #[arg(long, value_name = "N")]
    limit: Option<Count>,
    /// Write results_*.json and samples_*.jsonl to this directory, as lm-eval does
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what is known to this file, and go on with what it has: a run that was ended loses little
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    form: ReportForm,
    #[command(flatten)]
    pub model: M,
}

fn task(name: &str) -> std::result::Result<Task, String> {
    Task::from_name(name).ok_or_else(|| format!("expected {}", Task::ALL.map(Task::name).join(", ")))
}

/// Questions, as the model is asked them.
struct Questions {
    /// The task's name in results.
    name: String,
    items: Vec<TaskItem>,
    asked: Vec<Vec<AskedContext>>,
    /// Questions in the file.
    all: usize,
    /// Contexts that lost their beginning.
    cut: usize,
    /// Hash of the file.
    hash: String,
}

impl<M: clap::Args> Choice<M> {
    /// Runs the command with the model that was opened.
    ///
    /// # Errors
    /// When the task's file or the model cannot be used.
    pub fn run(&self, mut opened: Opened, options: &Options) -> Result<Outcome> {
        let questions = self.questions(&mut opened)?;
        make_dir(self.out.as_deref())?;
        let asked = &questions.asked;
        let mut model = Measured::load(opened, options, context(asked), sequences(asked))?;
        let adapters: Vec<String> = options.adapters.iter().map(|adapter| format!("{adapter:?}")).collect();
        let run = json!({
            "kernmill_eval": "choice", "version": 1, "identity": model.identity(), "adapters": adapters,
            "task": self.task.name(), "file": questions.hash,
        });
        let mut log = Log::open(self.resume.as_deref(), &run, &|item, found: &Vec<Likelihood>| {
            questions.items.get(item).is_some_and(|item| item.pairs.len() == found.len())
        })?;
        let bar = progress(options, "asking", asked.len());
        let tokens = answer(&mut model, asked, &mut log, &*bar)?;
        drop(bar);
        let found: Vec<&[Likelihood]> = log.known.range(..asked.len()).map(|(_, found)| &found[..]).collect();
        if questions.cut > 0 {
            let what = format!(
                "{} contexts are longer than the model's longest, and lost their beginning",
                questions.cut
            );
            options.observer.note(&what);
        }
        self.tell(&model, &questions, &found, tokens)
    }

    fn questions(&self, opened: &mut Opened) -> Result<Questions> {
        let wrong = |what: String| Error::input(&self.file, what);
        let text = read_named_text(&self.file, MOST_BYTES).map_err(Error::read(&self.file))?;
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let labels = self.task.labels_of(&stem).map(|name| self.file.with_file_name(name));
        let labels = labels.filter(|path| path.is_file());
        let labels = labels.map(|path| read_named_text(&path, MOST_BYTES).map_err(Error::read(&path)));
        let labels = labels.transpose()?;
        let mut items = self.task.items(&text, &stem, labels.as_deref()).map_err(wrong)?;
        let all = items.len();
        items.truncate(self.limit.map_or(usize::MAX, |limit| limit.0 as usize));
        if items.is_empty() {
            return Err(wrong("it has no questions".to_owned()));
        }
        let longest = opened.longest_context();
        let (asked, cut) = with_tokenizer(opened, |tokenizer| {
            let (mut all, mut cut) = (Vec::with_capacity(items.len()), 0);
            for (number, item) in items.iter().enumerate() {
                let (found, lost) = asked(item, tokenizer, longest)
                    .map_err(|error| wrong(format!("question {}: {error}", number + 1)))?;
                all.push(found);
                cut += lost;
            }
            Ok((all, cut))
        })?;
        let hash = hash(&format!("{}{text}", labels.unwrap_or_default()));
        let name = self.task.name_of(&stem, &items[0]);
        Ok(Questions { name, items, asked, all, cut, hash })
    }

    fn tell(
        &self,
        model: &Measured,
        questions: &Questions,
        found: &[&[Likelihood]],
        tokens: u64,
    ) -> Result<Outcome> {
        let Questions { name, items, all, hash, .. } = questions;
        let n = items.len();
        let rights: Vec<_> = items.iter().zip(found).map(|(item, found)| right(item, found)).collect();
        let values = |of: &dyn Fn(usize) -> bool| -> Vec<f64> {
            (0..n).map(|at| f64::from(u8::from(of(at)))).collect()
        };
        let mut metrics = vec![("acc", values(&|at| rights[at].acc))];
        if self.task.has_norm() {
            metrics.push(("acc_norm", values(&|at| rights[at].norm)));
        }
        let seen = smallest_difference(n, n.div_ceil(50));
        let about = json!({
            "model": model.name(), "identity": model.identity(), "task": name,
            "file_hash": hash, "tokens_run": tokens, "smallest_difference_at_2_percent_flips": seen,
        });
        let means: Vec<(&str, Mean)> =
            metrics.iter().map(|(name, values)| (*name, Mean::of(values))).collect();
        let mut named = Vec::new();
        let mut json = about.clone();
        for ((metric, values), (_, mean)) in metrics.iter().zip(&means) {
            let blocks: Vec<BlockSum> =
                values.iter().map(|sum| BlockSum { sum: *sum, weight: 1.0 }).collect();
            let range = interval(&blocks);
            named.push((*metric, format!("{}, stderr {:.5}", with_interval(mean.mean, range), mean.stderr)));
            json[*metric] = json!(mean.mean);
            json[format!("{metric}_stderr")] = json!(mean.stderr);
            json[format!("{metric}_interval")] = interval_json(range);
        }
        named.push(("questions", n.to_string()));
        named.push(("tokens run", tokens.to_string()));
        named.push((
            "smallest difference",
            format!("{:.2} points to another run, where one of 50 answers changes", seen * 100.0),
        ));
        json["questions"] = json!(n);
        if let Some(dir) = &self.out {
            let samples = items.iter().zip(found).enumerate();
            let lines =
                samples.map(|(at, (item, found))| format!("{}\n", sample(self.task, at, item, found)));
            let results = samples::results(self.task, name, &means, [*all, n], &about);
            store(dir, name, &lines.collect::<String>(), &results)?;
        }
        let title = format!("{} at {name}", model.name());
        let report = self.form.tell("kernmill.eval-choice/1", json, figures(&title, &named));
        Ok(Outcome { report, failed: None })
    }
}

/// Asks what the log does not know; how many tokens were run.
fn answer(
    model: &mut Measured,
    asked: &[Vec<AskedContext>],
    log: &mut Log<Vec<Likelihood>>,
    bar: &dyn Progress,
) -> Result<u64> {
    let scorer = Scorer::new(model.vocab());
    let missing: Vec<usize> = (0..asked.len()).filter(|item| !log.known.contains_key(item)).collect();
    bar.advance((asked.len() - missing.len()) as u64);
    let of_missing: Vec<Vec<AskedContext>> = missing.iter().map(|item| asked[*item].clone()).collect();
    let mut tokens = 0;
    for batch in batches(&of_missing, model.engine.sequences()) {
        let (found, run) = likelihoods(model, &scorer, &of_missing[batch.clone()])?;
        tokens += run;
        for (item, found) in missing[batch.clone()].iter().zip(found) {
            log.add(*item, found)?;
        }
        bar.advance(batch.len() as u64);
    }
    Ok(tokens)
}
