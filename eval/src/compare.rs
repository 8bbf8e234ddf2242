//! `kernmill eval compare`: what two runs over the same items differ in.

use crate::report::{Outcome, ReportForm, interval_json, short};
use crate::stats::{BlockSum, FEWEST_BLOCKS, Flips, Interval, interval, smallest_difference};
use kernmill::{Error, Result};
use kernmill_os::files::read_named_text;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Bytes of a record at most.
const MOST_BYTES: u64 = 1 << 30;

/// `kernmill eval compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/compare.txt"))]
pub struct CompareRuns {
    /// First run: what --out of text or kl wrote, or a samples_*.jsonl of the others or of lm-eval
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Second run, over the same text or questions
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Exit with status 1 if B differs from A by more than this, such as kl>0.002 or acc<-0.5: accuracies in
    /// points. May be several, with commas between
    #[arg(long, value_name = "LIMITS", value_delimiter = ',', allow_hyphen_values = true)]
    fail_if: Vec<FailLimit>,
    #[command(flatten)]
    form: ReportForm,
}

/// A limit of a difference.
#[derive(Clone, Debug, PartialEq)]
struct FailLimit {
    metric: String,
    is_upper: bool,
    value: f64,
}

impl FromStr for FailLimit {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<FailLimit, String> {
        let at = text.find(['<', '>']).filter(|at| *at > 0);
        let read = |at: usize| {
            let value = text[at + 1..].trim().parse().ok().filter(|value: &f64| value.is_finite())?;
            Some(FailLimit {
                metric: text[..at].trim().to_owned(),
                is_upper: text[at..].starts_with('>'),
                value,
            })
        };
        at.and_then(read).ok_or_else(|| "expected NAME>NUMBER or NAME<NUMBER, such as kl>0.002".to_owned())
    }
}

/// A run's figures.
#[derive(Debug, Default)]
struct RunFigures {
    model: String,
    /// By name, a value for each item.
    metrics: BTreeMap<String, Vec<BlockSum>>,
    /// Names of the items: both runs must have the same.
    items: Vec<String>,
}

/// The difference of one figure.
#[derive(Debug)]
struct Difference {
    name: String,
    /// Right or wrong items are told in points.
    flips: Option<Flips>,
    values: [f64; 2],
    difference: f64,
    interval: Option<Interval>,
    n: usize,
    smallest: f64,
}

impl CompareRuns {
    /// Runs the command.
    ///
    /// # Errors
    /// When a record cannot be read, or the runs are not over the same items.
    pub fn run(&self) -> Result<Outcome> {
        let (first, second) = (read(&self.first)?, read(&self.second)?);
        if first.items != second.items {
            let same = first.items.iter().zip(&second.items).take_while(|(a, b)| a == b).count();
            let what = format!("it is of other items than {}, from item {same} on", self.first.display());
            return Err(Error::input(&self.second, what));
        }
        let differences: Vec<Difference> = first
            .metrics
            .iter()
            .filter_map(|(name, blocks)| Some(difference(name, blocks, second.metrics.get(name)?)))
            .collect();
        if differences.is_empty() {
            return Err(Error::input(&self.second, "it has no figure that the first run has too"));
        }
        let mut passed = Vec::new();
        for FailLimit { metric, is_upper, value } in &self.fail_if {
            let of = differences.iter().find(|it| it.name == *metric).ok_or_else(|| {
                let names: Vec<&str> = differences.iter().map(|it| it.name.as_str()).collect();
                Error::bad_input(format!(
                    "--fail-if: no figure {metric}, expected one of {}",
                    names.join(", ")
                ))
            })?;
            if if *is_upper { of.difference > *value } else { of.difference < *value } {
                let limit = if *is_upper { "more" } else { "less" };
                passed.push(format!("{metric} differs by {}, {limit} than {value}", short(of.difference)));
            }
        }
        let title = format!("{} (B) against {} (A)\n", second.model, first.model);
        let lines = title + &differences.iter().map(Difference::line).collect::<String>();
        let json = json!({
            "models": [first.model, second.model],
            "differences": differences.iter().map(Difference::json).collect::<Vec<_>>(),
            "passed_limits": passed,
        });
        let failed = (!passed.is_empty()).then(|| Error::failed(format!("--fail-if: {}", passed.join("; "))));
        Ok(Outcome { report: self.form.tell("kernmill.eval-compare/1", json, lines), failed })
    }
}

impl Difference {
    /// Whether chance alone would make it so in less than 5 of 100 cases.
    fn is_seen(&self) -> bool {
        match (self.flips, self.interval) {
            (Some(flips), _) => flips.p_value() < 0.05,
            (None, Some(Interval { low, high })) => low > 0.0 || high < 0.0,
            (None, None) => false,
        }
    }

    fn line(&self) -> String {
        let Difference { name, flips, values: [a, b], difference, interval, n, smallest } = self;
        let unit = if flips.is_some() { " points" } else { "" };
        let range = match interval {
            Some(Interval { low, high }) => format!("{} to {}", short(*low), short(*high)),
            None => format!("fewer than {FEWEST_BLOCKS} blocks"),
        };
        let verdict = if self.is_seen() { "a difference" } else { "no difference seen" };
        let flips = flips.map_or_else(String::new, |flips| {
            format!(
                "  {} right in A alone, {} in B alone, p {}\n",
                flips.lost,
                flips.won,
                short(flips.p_value())
            )
        });
        let smallest = if smallest.is_finite() { short(*smallest) } else { "not known".to_owned() };
        format!(
            "{name}: {verdict}\n  A {}, B {}: {}{unit} ({range})\n{flips}  of {n} blocks; smallest difference \
             seen: {smallest}{unit}\n",
            short(*a),
            short(*b),
            short(*difference),
        )
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "unit": if self.flips.is_some() { "points" } else { "as the figure" },
            "values": self.values,
            "difference": self.difference,
            "interval": interval_json(self.interval),
            "seen": self.is_seen(),
            "right_in_a_alone": self.flips.map(|flips| flips.lost),
            "right_in_b_alone": self.flips.map(|flips| flips.won),
            "p_value": self.flips.map(Flips::p_value),
            "n": self.n,
            "smallest_difference": self.smallest,
        })
    }
}

fn difference(name: &str, first: &[BlockSum], second: &[BlockSum]) -> Difference {
    let n = first.len();
    let is_right = |blocks: &[BlockSum]| -> Option<Vec<bool>> {
        let right = |block: &BlockSum| match (block.sum, block.weight) {
            (0.0, 1.0) => Some(false),
            (1.0, 1.0) => Some(true),
            _ => None,
        };
        blocks.iter().map(right).collect()
    };
    let rights = is_right(first).zip(is_right(second));
    let flips = rights.map(|(first, second)| Flips::of(&first, &second));
    let scale = if flips.is_some() { 100.0 } else { 1.0 };
    let value = |blocks: &[BlockSum]| {
        let sums = blocks.iter().fold((0.0, 0.0), |(sum, weight), it| (sum + it.sum, weight + it.weight));
        scale * sums.0 / sums.1
    };
    let pairs = first.iter().zip(second);
    let apart: Vec<BlockSum> =
        pairs.map(|(a, b)| BlockSum { sum: scale * (b.sum - a.sum), weight: a.weight }).collect();
    let interval = interval(&apart);
    let smallest = match flips {
        Some(Flips { lost, won }) => scale * smallest_difference(n, lost + won),
        None => interval.map_or(f64::NAN, Interval::half),
    };
    let values = [value(first), value(second)];
    Difference {
        name: name.to_owned(),
        flips,
        values,
        difference: value(&apart) / scale,
        interval,
        n,
        smallest,
    }
}

/// Reads a run's record.
fn read(path: &Path) -> Result<RunFigures> {
    let text = read_named_text(path, MOST_BYTES).map_err(Error::read(path))?;
    let found = match serde_json::from_str::<Value>(&text) {
        Ok(record) if record.get("blocks_of").is_some() => of_record(&record),
        _ => of_samples(&text),
    };
    let run = found.map_err(|what| Error::input(path, what))?;
    match run.items.is_empty() {
        true => Err(Error::input(path, "it has no items")),
        false => Ok(run),
    }
}

fn of_record(record: &Value) -> std::result::Result<RunFigures, String> {
    let mut run =
        RunFigures { model: record["model"].as_str().unwrap_or("?").to_owned(), ..RunFigures::default() };
    let all = record["blocks_of"].as_object().ok_or("expected \"blocks_of\" with figures")?;
    for (name, blocks) in all {
        let block = |block: &Value| -> Option<BlockSum> {
            let number = |at: usize| block[at].as_f64().filter(|number| number.is_finite());
            Some(BlockSum { sum: number(0)?, weight: number(1).filter(|weight| *weight > 0.0)? })
        };
        let blocks: Option<Vec<BlockSum>> = blocks.as_array().into_iter().flatten().map(block).collect();
        let blocks = blocks.ok_or_else(|| format!("expected a sum and a weight for each block of {name}"))?;
        run.metrics.insert(name.clone(), blocks);
    }
    let blocks = run.metrics.values().next().map_or(0, Vec::len);
    if run.metrics.values().any(|other| other.len() != blocks) {
        return Err("its figures have different numbers of blocks".to_owned());
    }
    let text = record["text_hash"].as_str().ok_or("expected a \"text_hash\"")?;
    run.items = vec![text.to_owned(); blocks];
    Ok(run)
}

/// Reads samples as lm-eval writes them; the items are sorted by their numbers.
fn of_samples(text: &str) -> std::result::Result<RunFigures, String> {
    let mut items: BTreeMap<u64, (String, BTreeMap<String, f64>)> = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        let sample: Value = serde_json::from_str(line).map_err(|error| {
            wrong(&format!("{error}; expected a record of text or kl, or samples of lm-eval"))
        })?;
        let number = sample["doc_id"].as_u64().ok_or_else(|| wrong("expected a \"doc_id\""))?;
        let key = sample["prompt_hash"].as_str().ok_or_else(|| wrong("expected a \"prompt_hash\""))?;
        let names = sample["metrics"].as_array().ok_or_else(|| wrong("expected \"metrics\""))?;
        // A text is judged by several filters, each in a line of its own.
        let filter = sample["filter"].as_str().filter(|filter| *filter != "none");
        let (of_prompt, values) = items.entry(number).or_insert_with(|| (key.to_owned(), BTreeMap::new()));
        let mut is_there = *of_prompt != key || names.is_empty();
        for name in names.iter().filter_map(Value::as_str) {
            let Some(value) = sample[name].as_f64().filter(|value| value.is_finite()) else { continue };
            let name = filter.map_or_else(|| name.to_owned(), |filter| format!("{name}:{filter}"));
            is_there |= values.insert(name, value).is_some();
        }
        if is_there {
            return Err(wrong(&format!("document {number} is there twice")));
        }
    }
    let mut run = RunFigures { model: "samples".to_owned(), ..RunFigures::default() };
    for (number, (key, values)) in items {
        run.items.push(format!("{number} {key}"));
        for (name, sum) in values {
            run.metrics.entry(name).or_default().push(BlockSum { sum, weight: 1.0 });
        }
    }
    let n = run.items.len();
    run.metrics.retain(|_, blocks| blocks.len() == n);
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::{BlockSum, FailLimit, difference, of_record, of_samples};
    use crate::stats::Flips;
    use serde_json::json;

    #[test]
    fn limits_are_read() {
        let limit = |text: &str| text.parse::<FailLimit>();
        assert_eq!(
            limit("acc < -0.3"),
            Ok(FailLimit { metric: "acc".to_owned(), is_upper: false, value: -0.3 })
        );
        assert_eq!(limit("kl>2e-3"), Ok(FailLimit { metric: "kl".to_owned(), is_upper: true, value: 0.002 }));
        for text in ["kl", ">3", "kl>x", "kl>", "kl>inf"] {
            assert!(limit(text).unwrap_err().starts_with("expected NAME>NUMBER"), "{text}");
        }
    }

    #[test]
    fn the_same_run_has_no_difference_from_itself() {
        let blocks: Vec<BlockSum> =
            (0..20).map(|at| BlockSum { sum: 1.0 / f64::from(at + 1), weight: 3.0 }).collect();
        let found = difference("kl", &blocks, &blocks);
        assert_eq!((found.difference, found.is_seen()), (0.0, false));
    }

    #[test]
    fn flips_are_told_in_points() {
        let all = |right: &dyn Fn(usize) -> bool| -> Vec<BlockSum> {
            (0..100).map(|at| BlockSum { sum: f64::from(u8::from(right(at))), weight: 1.0 }).collect()
        };
        let found = difference("acc", &all(&|at| at < 60), &all(&|at| (10..59).contains(&at)));
        assert_eq!(found.flips, Some(Flips { lost: 11, won: 0 }));
        assert!((found.difference + 11.0).abs() < 1e-9 && found.is_seen(), "{found:?}");
        assert_eq!(found.values, [60.0, 49.0]);
    }

    #[test]
    fn samples_of_lm_eval_are_read() {
        let line = |number: u64, acc: f64| {
            json!({ "doc_id": number, "prompt_hash": format!("h{number}"), "metrics": ["acc", "f1"], "acc": acc,
                "f1": [0, 1] })
            .to_string()
        };
        let run = of_samples(&format!("{}\n\n{}\n", line(1, 0.0), line(0, 1.0))).unwrap();
        assert_eq!(run.items, ["0 h0", "1 h1"]);
        assert_eq!(run.metrics["acc"].iter().map(|block| block.sum).collect::<Vec<_>>(), [1.0, 0.0]);
        assert_eq!(run.metrics.len(), 1);
        let twice = of_samples(&format!("{}\n{}", line(1, 0.0), line(1, 1.0))).unwrap_err();
        assert_eq!(twice, "line 2: document 1 is there twice");
        let by = |filter: &str| {
            let line =
                json!({ "doc_id": 0, "prompt_hash": "h", "filter": filter, "metrics": ["em"], "em": 1.0 });
            format!("{line}\n")
        };
        let filtered = of_samples(&(by("strict") + &by("none") + &by("loose"))).unwrap();
        assert_eq!(filtered.metrics.keys().collect::<Vec<_>>(), ["em", "em:loose", "em:strict"]);
        assert!(of_samples(&(by("strict") + &by("strict"))).unwrap_err().ends_with("is there twice"));
        assert!(of_samples("{\"doc_id\": 3}").unwrap_err().contains("prompt_hash"));
    }

    #[test]
    fn records_that_do_not_fit_are_refused() {
        let refused =
            |blocks: serde_json::Value| of_record(&json!({ "blocks_of": blocks, "text_hash": "h" }));
        assert!(refused(json!({ "kl": [[1.0, 2.0]], "loss": [] })).is_err());
        assert!(refused(json!({ "kl": [[1.0, 0.0]] })).is_err());
        assert!(refused(json!({ "kl": [[1.0]] })).is_err());
        assert_eq!(refused(json!({ "kl": [[1.0, 2.0]] })).unwrap().items, ["h"]);
    }
}
