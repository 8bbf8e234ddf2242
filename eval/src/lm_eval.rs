//! Files of results and samples, in the names and with the hashes of lm-eval.

use crate::report::write;
use crate::stats::Mean;
use kernmill::{Error, Result};
use kernmill_chat::Date;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::SystemTime;

/// Writes samples and results to a directory.
///
/// # Errors
/// When they cannot be written.
pub fn store(dir: &Path, name: &str, samples: &str, results: &Value) -> Result<()> {
    let date = date(SystemTime::now());
    write(&dir.join(format!("samples_{name}_{date}.jsonl")), samples.as_bytes())?;
    write(&dir.join(format!("results_{date}.json")), format!("{results:#}\n").as_bytes())
}

/// Makes the directory of results, if one is asked for.
///
/// # Errors
/// When it cannot be made.
pub fn make_dir(dir: Option<&Path>) -> Result<()> {
    dir.map_or(Ok(()), |dir| std::fs::create_dir_all(dir).map_err(Error::write(dir)))
}

/// The line of a text in a file of samples, without its results.
pub fn text_sample(number: usize, doc: &Value, prompt: &str, kwargs: &Value, target: &str) -> Value {
    json!({
        "doc_id": number,
        "doc": doc,
        "target": target,
        "arguments": { "gen_args_0": { "arg_0": prompt, "arg_1": kwargs } },
        "resps": [],
        "filtered_resps": [],
        "filter": "none",
        "metrics": [],
        "doc_hash": hash(&format!("{doc:#}")),
        "prompt_hash": hash(prompt),
        "target_hash": hash(target),
    })
}

/// A run of a task, for the file of figures.
pub struct TaskRun<'a> {
    /// Name of the task.
    pub name: &'a str,
    /// Version of its prompts.
    pub version: f64,
    /// Examples before each question.
    pub shots: usize,
    /// Questions of the file, and those that were asked.
    pub limited: [usize; 2],
    /// Further fields of the task's configuration.
    pub config: Value,
}

impl TaskRun<'_> {
    /// The file of figures. A figure's name is that of the metric and the filter, with a comma between.
    pub fn results(&self, figures: &[(String, Mean)], about: &Value) -> Value {
        let TaskRun { name, version, shots, limited, config } = self;
        let mut of_task = json!({ "name": name, "alias": name, "sample_len": limited[1] });
        let mut better = Map::new();
        for (figure, Mean { mean, stderr, .. }) in figures {
            let (metric, filter) = figure.split_once(',').unwrap_or((figure, "none"));
            of_task[format!("{metric},{filter}")] = json!(mean);
            of_task[format!("{metric}_stderr,{filter}")] = json!(stderr);
            better.insert(metric.to_owned(), json!(true));
        }
        let mut config = config.clone();
        (config["task"], config["num_fewshot"]) = (json!(name), json!(shots));
        config["metadata"] = json!({ "version": version });
        json!({
            "results": { *name: of_task },
            "group_subtasks": { *name: [] },
            "configs": { *name: config },
            "versions": { *name: version },
            "n-shot": { *name: shots },
            "higher_is_better": { *name: better },
            "n-samples": { *name: { "original": limited[0], "effective": limited[1] } },
            "config": { "model": "kernmill", "model_args": about["model"], "limit": Value::Null },
            "model_source": "kernmill",
            "model_name": about["model"],
            "kernmill": about,
        })
    }
}

/// SHA-256 of a text, as hexadecimal digits.
pub fn hash(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time of the form 2026-01-31T23-59-58.000001 (UTC), as names of lm-eval's files have it.
fn date(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let day = Date::from_unix_days(days as u32).map_or_else(String::new, String::from);
    let (hour, minute, micros) = (second / 3600, second / 60 % 60, since.subsec_micros());
    format!("{day}T{hour:02}-{minute:02}-{:02}.{micros:06}", second % 60)
}

#[cfg(test)]
mod tests {
    use super::{date, hash};
    use std::time::{Duration, SystemTime};

    #[test]
    fn dates_are_those_of_lm_evals_names() {
        // datetime.datetime.fromtimestamp(n, datetime.UTC).
        let time = |seconds: u64| date(SystemTime::UNIX_EPOCH + Duration::new(seconds, 7000));
        assert_eq!(time(951_782_399), "2000-02-28T23-59-59.000007");
        assert_eq!(time(1_767_225_600), "2026-01-01T00-00-00.000007");
    }

    #[test]
    fn hashes_are_those_of_lm_eval() {
        // lm_eval.utils.hash_string("a b").
        assert_eq!(hash("a b"), "c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65");
    }
}
