//! Results in the files of lm-eval: one of figures, one of samples.

use super::likelihood::Likelihood;
use crate::lm_eval::{TaskRun, hash};
use crate::stats::Mean;
use crate::tasks::{Task, TaskItem};
use serde_json::{Value, json};

/// Whether the model has an item right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// By the likelihood alone.
    pub acc: bool,
    /// By the likelihood over the choice's length in characters.
    pub norm: bool,
}

/// Judges an item.
pub fn right(item: &TaskItem, found: &[Likelihood]) -> Right {
    let by =
        |value: &dyn Fn(usize) -> f64| best(&(0..found.len()).map(value).collect::<Vec<_>>()) == item.gold;
    Right { acc: by(&|at| found[at].log), norm: by(&|at| found[at].log / item.lengths[at] as f64) }
}

/// The first of the largest values, as numpy's argmax has it.
fn best(values: &[f64]) -> usize {
    let mut best = 0;
    for (at, value) in values.iter().enumerate() {
        // The first value that is not a number counts as the largest, as in numpy.
        if *value > values[best] || (value.is_nan() && !values[best].is_nan()) {
            best = at;
        }
    }
    best
}

/// The line of an item in a file of samples.
pub fn sample(task: Task, number: usize, item: &TaskItem, found: &[Likelihood]) -> Value {
    let right = right(item, found);
    let number_of = |right: bool| if right { 1.0 } else { 0.0 };
    let responses: Vec<Value> = found
        .iter()
        .map(|likelihood| {
            let greedy = if likelihood.is_greedy { "True" } else { "False" };
            json!([python_float(likelihood.log), greedy])
        })
        .collect();
    let arguments = item.pairs.iter().enumerate();
    let arguments = arguments
        .map(|(at, [context, tail])| (format!("gen_args_{at}"), json!({ "arg_0": context, "arg_1": tail })));
    let mut sample = json!({
        "doc_id": number,
        "doc": item.doc,
        "target": item.target,
        "arguments": Value::Object(arguments.collect()),
        "resps": responses.iter().map(|response| json!([response])).collect::<Vec<_>>(),
        "filtered_resps": responses,
        "filter": "none",
        "metrics": if task.has_norm() { vec!["acc", "acc_norm"] } else { vec!["acc"] },
        "doc_hash": hash(&format!("{:#}", item.doc)),
        "prompt_hash": hash(&item.pairs[0][0]),
        "target_hash": hash(&item.target),
        "acc": number_of(right.acc),
    });
    if task.has_norm() {
        sample["acc_norm"] = json!(number_of(right.norm));
    }
    sample
}

/// The file of figures.
pub fn results(
    task: Task,
    name: &str,
    figures: &[(&str, Mean)],
    limited: [usize; 2],
    about: &Value,
) -> Value {
    let metrics: Vec<Value> = figures
        .iter()
        .map(|(metric, _)| json!({ "metric": metric, "aggregation": "mean", "higher_is_better": true }))
        .collect();
    let config = json!({
        "output_type": "multiple_choice", "metric_list": metrics, "target_delimiter": " ",
    });
    let run = TaskRun { name, version: task.version(), shots: 0, limited, config };
    let figures: Vec<(String, Mean)> =
        figures.iter().map(|(metric, mean)| (format!("{metric},none"), *mean)).collect();
    run.results(&figures, about)
}

/// A number as Python writes it: with the fewest digits that mean it, and a point.
fn python_float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) && value.is_finite() {
        let text = format!("{value:e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let power: i32 = power.parse().unwrap_or(0);
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", power.abs());
    }
    match value {
        _ if value.is_nan() => "nan".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        _ => format!("{value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{best, python_float};

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        let found = [-12.25, 0.0, -3.0, 1.5e-7, -1e22, 1e16, 0.0001, f64::NEG_INFINITY].map(python_float);
        assert_eq!(found, ["-12.25", "0.0", "-3.0", "1.5e-07", "-1e+22", "1e+16", "0.0001", "-inf"]);
    }

    #[test]
    fn the_best_is_numpys() {
        assert_eq!(best(&[-2.0, -1.0, -1.0]), 1);
        assert_eq!(best(&[-1.0, f64::NAN, 0.0]), 1);
        assert_eq!(best(&[f64::NEG_INFINITY; 3]), 0);
    }
}
