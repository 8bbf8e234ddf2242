//! `kernmill eval code`: problems that are solved by programs, which bubblewrap runs.

mod problems;

use crate::given::Count;
use crate::lm_eval::{TaskRun, hash, make_dir, store, text_sample};
use crate::made::{AllMade, MadeText, MakingArgs};
use crate::measured::progress;
use crate::report::{Outcome, ReportForm, figures, interval_json, with_interval};
use crate::sandbox::{ProgramEnd, ProgramLimits, ProgramSandbox};
use crate::stats::{BlockSum, Mean, interval, smallest_difference};
use kernmill::{Error, Opened, Options, Result};
use kernmill_os::files::read_named_text;
use problems::{CodeProblem, CodeTask, completions, pass_at};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a task's file at most.
const MOST_BYTES: u64 = 1 << 30;
/// The time that a program has for each second of its computing.
const PATIENCE: u32 = 3;
/// Processes and threads of a program at once.
const PROCESSES: u32 = 16;

/// `kernmill eval code`, with the arguments by which the model is opened.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/code.txt"))]
pub struct Code<M: clap::Args> {
    /// Task: humaneval or mbpp
    #[arg(long, value_name = "NAME", value_parser = task)]
    task: CodeTask,
    /// The task's file as it is published: lines of JSON
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    /// Run the programs that the model writes. It has to be said: nobody has read them. They run in
    /// bubblewrap, without network, and see no file but the system's programs
    #[arg(long)]
    run_code: bool,
    /// Judge these completions, and ask no model: lines of JSON with task_id and completion
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub completions: Option<PathBuf>,
    /// Problems at most, from the beginning of the file
    #[arg(long, value_name = "N")]
    limit: Option<Count>,
    /// Tell in how many of 100 draws of K texts one is right, such as 1,10; by default 1, and all samples
    #[arg(long, value_name = "K", value_delimiter = ',')]
    pass_at: Vec<Count>,
    /// Seconds of computing of a program; after three times as many it is ended in any case
    #[arg(long, value_name = "N", default_value = "4")]
    seconds: Count,
    /// Megabytes of memory of each of a program's processes, 16 at most
    #[arg(long, value_name = "N", default_value = "512")]
    megabytes: Count,
    /// Programs that run at once; by default as many as there are CPUs
    #[arg(long, value_name = "N")]
    jobs: Option<Count>,
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

fn task(name: &str) -> std::result::Result<CodeTask, String> {
    CodeTask::from_name(name)
        .ok_or_else(|| format!("expected {}", CodeTask::ALL.map(CodeTask::name).join(" or ")))
}

impl<M: clap::Args> Code<M> {
    /// Runs the command; `open` opens the model, where one is asked.
    ///
    /// # Errors
    /// When the task's files, the model or bubblewrap cannot be used.
    pub fn run<E: From<Error>>(
        &self,
        open: impl FnOnce() -> std::result::Result<(Opened, Options), E>,
    ) -> std::result::Result<Outcome, E> {
        if !self.run_code {
            let what =
                "--run-code is missing: programs that nobody has read would be run, in a sandbox of bwrap";
            return Err(Error::bad_input(what).into());
        }
        self.making.check()?;
        let text = read_named_text(&self.file, MOST_BYTES).map_err(Error::read(&self.file))?;
        let mut problems = self.task.problems(&text).map_err(|what| Error::input(&self.file, what))?;
        let all = problems.len();
        problems.truncate(self.limit.map_or(usize::MAX, |limit| limit.0 as usize));
        if problems.is_empty() {
            return Err(Error::input(&self.file, "it has no problems").into());
        }
        let sandbox = ProgramSandbox::find(ProgramLimits {
            cpu_seconds: self.seconds.0,
            wall: Duration::from_secs(u64::from(self.seconds.0) * u64::from(PATIENCE)),
            memory: u64::from(self.megabytes.0) << 20,
            processes: PROCESSES,
        })?;
        make_dir(self.out.as_deref())?;
        let most = self.making.max_tokens.map_or(self.task.most_tokens(), |most| most.0);
        let (made, options) = match &self.completions {
            Some(path) => (given(path, &mut problems)?, Options::default()),
            None => {
                let (opened, options) = open()?;
                let prompts: Vec<String> = problems.iter().map(|problem| problem.prompt.clone()).collect();
                let about = json!({ "task": self.task.name(), "file": hash(&text) });
                let stop = self.task.stop();
                (self.making.make(opened, &options, &prompts, &stop, most, &about)?, options)
            }
        };
        let programs: Vec<String> = problems
            .iter()
            .zip(&made.texts)
            .flat_map(|(problem, texts)| texts.iter().map(|made| problem.program(&made.text)))
            .collect();
        let bar = progress(&options, "running programs", programs.len());
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or(cpus, |jobs| jobs.0 as usize);
        let ends = sandbox.run_all(&programs, jobs, &mut || bar.advance(1))?;
        drop(bar);
        let mut ends = ends.into_iter();
        let ends: Vec<Vec<ProgramEnd>> =
            made.texts.iter().map(|texts| ends.by_ref().take(texts.len()).collect()).collect();
        Ok(self.tell(&problems, &made, &ends, all, &hash(&text), most)?)
    }

    fn tell(
        &self,
        problems: &[CodeProblem],
        made: &AllMade,
        ends: &[Vec<ProgramEnd>],
        all: usize,
        file: &str,
        most: u32,
    ) -> Result<Outcome> {
        let n = problems.len();
        let fewest = ends.iter().map(Vec::len).min().unwrap_or(1);
        let mut draws: Vec<usize> = self.pass_at.iter().map(|draw| draw.0 as usize).collect();
        if draws.is_empty() {
            draws.extend([1, fewest]);
        }
        draws.sort_unstable();
        draws.dedup();
        if let Some(draw) = draws.iter().find(|draw| **draw > fewest) {
            let what = format!("--pass-at is {draw}, expected at most {fewest}, the texts of each problem");
            return Err(Error::bad_input(what));
        }
        let rights: Vec<usize> =
            ends.iter().map(|ends| ends.iter().filter(|end| **end == ProgramEnd::Passed).count()).collect();
        let seen = smallest_difference(n, n.div_ceil(50));
        let count = |is: &dyn Fn(&ProgramEnd) -> bool| ends.iter().flatten().filter(|end| is(end)).count();
        let programs = ends.iter().map(Vec::len).sum::<usize>();
        let (failed, late, other) = (
            count(&|end| matches!(end, ProgramEnd::Failed(_))),
            count(&|end| *end == ProgramEnd::TimedOut),
            count(&|end| *end == ProgramEnd::Ended),
        );
        let about = json!({
            "model": made.model, "identity": made.identity, "task": self.task.name(), "file_hash": file,
            "problems": n, "programs": programs, "passed": rights.iter().sum::<usize>(), "failed": failed,
            "timed_out": late, "ended": other, "tokens": made.tokens(), "tokens_made": made.tokens_made,
            "cut_texts": made.cut_texts(), "smallest_difference_at_2_percent_flips": seen,
        });
        let mut json = about.clone();
        let mut named: Vec<(String, String)> = Vec::new();
        let [filter, metric] = self.task.lm_eval_names();
        let (mut means, mut firsts) = (Vec::new(), Vec::new());
        for draw in draws {
            let values: Vec<f64> =
                ends.iter().zip(&rights).map(|(ends, right)| pass_at(ends.len(), *right, draw)).collect();
            let mean = Mean::of(&values);
            let blocks: Vec<BlockSum> =
                values.iter().map(|sum| BlockSum { sum: *sum, weight: 1.0 }).collect();
            let range = interval(&blocks);
            let figure = format!("{}, stderr {:.5}", with_interval(mean.mean, range), mean.stderr);
            named.push((format!("pass@{draw}"), figure));
            json["metrics"][format!("pass@{draw}")] =
                json!({ "mean": mean.mean, "stderr": mean.stderr, "interval": interval_json(range) });
            let name = if draw == 1 { metric.to_owned() } else { format!("pass@{draw}") };
            means.push((format!("{name},{filter}"), mean));
            firsts.push((name, values));
        }
        named.push(("problems".to_owned(), format!("{n}, {programs} programs")));
        let why =
            format!("{failed} failed, {late} ran too long, {other} ended before their checks were done");
        named.push(("programs".to_owned(), format!("{} passed, {why}", rights.iter().sum::<usize>())));
        let points = format!("{:.2} points to another run, where one of 50 answers changes", seen * 100.0);
        named.push(("smallest difference".to_owned(), points));
        if let Some(dir) = &self.out {
            let kwargs = self.making.told(&self.task.stop(), most);
            let mut lines = String::new();
            for (at, problem) in problems.iter().enumerate() {
                let texts: Vec<&str> = made.texts[at].iter().map(|made| made.text.as_str()).collect();
                let heads = texts.iter().map(|text| format!("{}{text}", problem.head));
                let mut sample = text_sample(at, &problem.doc, &problem.prompt, &kwargs, &problem.checks);
                sample["filtered_resps"] = match self.task {
                    CodeTask::HumanEval => json!([heads.collect::<Vec<_>>()]),
                    CodeTask::Mbpp => json!([texts.first()]),
                };
                sample["resps"] = json!([texts]);
                sample["filter"] = json!(filter);
                sample["metrics"] = firsts.iter().map(|(name, _)| name.as_str()).collect::<Value>();
                firsts.iter().for_each(|(name, values)| sample[name] = json!(values[at]));
                sample["ends"] = ends[at].iter().map(ProgramEnd::said).collect::<Value>();
                lines += &format!("{sample}\n");
            }
            let run = TaskRun {
                name: self.task.name(),
                version: 1.0,
                shots: self.task.shots(),
                limited: [all, n],
                config: json!({
                    "output_type": "generate_until", "repeats": self.making.samples.0,
                    "generation_kwargs": kwargs, "unsafe_code": true,
                }),
            };
            store(dir, run.name, &lines, &run.results(&means, &about))?;
        }
        let title = format!("{} at {}", made.model, self.task.name());
        let named: Vec<(&str, String)> =
            named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let report = self.form.tell("kernmill.eval-code/1", json, figures(&title, &named));
        Ok(Outcome { report, failed: None })
    }
}

/// Completions of a file, in place of a model's. Problems without any are left out.
fn given(path: &std::path::Path, problems: &mut Vec<CodeProblem>) -> Result<AllMade> {
    let text = read_named_text(path, MOST_BYTES).map_err(Error::read(path))?;
    let mut found = completions(&text).map_err(|what| Error::input(path, what))?;
    problems.retain(|problem| found.contains_key(&problem.id));
    let texts = problems.iter().map(|problem| {
        let of_problem = found.remove(&problem.id).unwrap_or_default();
        of_problem.into_iter().map(|text| MadeText { text, ..MadeText::default() }).collect()
    });
    let texts: Vec<Vec<MadeText>> = texts.collect();
    match texts.is_empty() {
        true => Err(Error::input(path, "it has no completion of any problem")),
        false => Ok(AllMade {
            texts,
            model: "completions".to_owned(),
            identity: hash(&text),
            tokens_made: 0,
            cut: 0,
        }),
    }
}
