//! Problems that are solved by a program: HumanEval and MBPP.

use crate::tasks::lines;
use serde_json::Value;
use std::collections::BTreeMap;

/// A task that is solved by programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeTask {
    /// HumanEval: bodies of functions, by their heads.
    HumanEval,
    /// MBPP: functions, by a sentence and three checks.
    Mbpp,
}

/// A problem.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeProblem {
    /// The line as it was read.
    pub doc: Value,
    /// Name of the problem in the file.
    pub id: String,
    /// The text that the model goes on from.
    pub prompt: String,
    /// The beginning of a program, which the model's text completes.
    pub head: String,
    /// The checks behind it.
    pub checks: String,
}

/// The tasks of MBPP that are measured on. Those before are for examples, those behind for training.
const MBPP_TEST: std::ops::RangeInclusive<u64> = 11..=510;
/// The tasks of MBPP that stand before each prompt as examples.
const MBPP_EXAMPLES: std::ops::RangeInclusive<u64> = 2..=4;

impl CodeTask {
    /// All of them.
    pub const ALL: [CodeTask; 2] = [CodeTask::HumanEval, CodeTask::Mbpp];

    /// Name of the task on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            CodeTask::HumanEval => "humaneval",
            CodeTask::Mbpp => "mbpp",
        }
    }

    /// The task of this name.
    pub fn from_name(name: &str) -> Option<CodeTask> {
        CodeTask::ALL.into_iter().find(|task| task.name() == name)
    }

    /// Examples before each prompt.
    pub fn shots(self) -> usize {
        match self {
            CodeTask::HumanEval => 0,
            CodeTask::Mbpp => 3,
        }
    }

    /// Tokens of a text at most.
    pub fn most_tokens(self) -> u32 {
        match self {
            CodeTask::HumanEval => 1024,
            CodeTask::Mbpp => 256,
        }
    }

    /// Texts that end a program.
    pub fn stop(self) -> Vec<String> {
        let stop: &[&str] = match self {
            CodeTask::HumanEval => &["\nclass", "\ndef", "\n#", "\nif", "\nprint"],
            CodeTask::Mbpp => &["[DONE]"],
        };
        stop.iter().map(|&text| text.to_owned()).collect()
    }

    /// Names of lm-eval's filter and metric.
    pub fn lm_eval_names(self) -> [&'static str; 2] {
        match self {
            CodeTask::HumanEval => ["create_test", "pass@1"],
            CodeTask::Mbpp => ["none", "pass_at_1"],
        }
    }

    /// The problems of a file's text.
    ///
    /// # Errors
    /// What is wrong, in which line.
    pub fn problems(self, text: &str) -> Result<Vec<CodeProblem>, String> {
        let docs = lines(text, None)?;
        let of_line = |line: usize, what: String| format!("line {line}: {what}");
        match self {
            CodeTask::HumanEval => docs
                .into_iter()
                .map(|(line, doc)| human_eval(doc).map_err(|what| of_line(line, what)))
                .collect(),
            CodeTask::Mbpp => {
                let (mut shots, mut problems) = (BTreeMap::new(), Vec::new());
                for (line, doc) in docs {
                    let number = doc["task_id"].as_u64();
                    let number =
                        number.ok_or_else(|| of_line(line, "expected a number \"task_id\"".to_owned()))?;
                    if MBPP_EXAMPLES.contains(&number) {
                        let shown = mbpp_prompt(&doc)
                            .and_then(|prompt| Ok(format!("{prompt}{}\n[DONE]\n\n", text_of(&doc, "code")?)));
                        shots.insert(number, shown.map_err(|what| of_line(line, what))?);
                    } else if MBPP_TEST.contains(&number) {
                        problems.push(mbpp(doc, number).map_err(|what| of_line(line, what))?);
                    }
                }
                if shots.len() != self.shots() {
                    return Err(
                        "expected tasks 2, 3 and 4 too, which are the examples of all others".to_owned()
                    );
                }
                let shots: String = shots.into_values().collect();
                problems.iter_mut().for_each(|problem| problem.prompt.insert_str(0, &shots));
                Ok(problems)
            }
        }
    }
}

impl CodeProblem {
    /// The program that a completion makes, with its checks.
    pub fn program(&self, completion: &str) -> String {
        format!("{}{completion}\n{}", self.head, self.checks)
    }
}

fn text_of<'a>(doc: &'a Value, name: &str) -> Result<&'a str, String> {
    doc[name].as_str().ok_or_else(|| format!("expected a string \"{name}\""))
}

fn human_eval(doc: Value) -> Result<CodeProblem, String> {
    let [id, prompt, test, entry] = [
        text_of(&doc, "task_id")?,
        text_of(&doc, "prompt")?,
        text_of(&doc, "test")?,
        text_of(&doc, "entry_point")?,
    ]
    .map(str::to_owned);
    let checks = format!("{test}\ncheck({entry})");
    Ok(CodeProblem { doc, id, head: prompt.clone(), prompt, checks })
}

fn mbpp_checks(doc: &Value) -> Result<String, String> {
    let checks = doc["test_list"].as_array().filter(|checks| checks.len() >= 3);
    let checks = checks.and_then(|checks| checks[..3].iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    Ok(checks.ok_or("expected a list \"test_list\" of three strings")?.join("\n"))
}

fn mbpp_prompt(doc: &Value) -> Result<String, String> {
    let (task, checks) = (text_of(doc, "text")?, mbpp_checks(doc)?);
    Ok(format!(
        "You are an expert Python programmer, and here is your task: {task} Your code should pass these \
         tests:\n\n{checks}\n[BEGIN]\n"
    ))
}

fn mbpp(doc: Value, number: u64) -> Result<CodeProblem, String> {
    let (prompt, checks) = (mbpp_prompt(&doc)?, mbpp_checks(&doc)?);
    Ok(CodeProblem { doc, id: number.to_string(), prompt, head: String::new(), checks })
}

/// Completions of a file's text: for each problem's name, those given for it, in their order.
///
/// # Errors
/// What is wrong, in which line.
pub fn completions(text: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (line, doc) in lines(text, None)? {
        let wrong = |what: &str| format!("line {line}: {what}");
        let id = match &doc["task_id"] {
            Value::String(id) => id.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(wrong("expected a \"task_id\"")),
        };
        let completion =
            doc["completion"].as_str().ok_or_else(|| wrong("expected a string \"completion\""))?;
        found.entry(id).or_default().push(completion.to_owned());
    }
    Ok(found)
}

/// The share of draws of `k` among `n` samples that hold one of the `right` ones.
pub fn pass_at(n: usize, right: usize, k: usize) -> f64 {
    if n - right < k {
        return 1.0;
    }
    1.0 - (n - right + 1..=n).map(|at| 1.0 - k as f64 / at as f64).product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::{CodeTask, completions, pass_at};

    #[test]
    fn pass_at_k_counts_draws() {
        // All draws of k among n, counted one by one.
        for n in 1..8_usize {
            for (k, right) in (1..=n).flat_map(|k| (0..=n).map(move |right| (k, right))) {
                let draws = (0_u32..1 << n).filter(|draw| draw.count_ones() as usize == k);
                let (hits, all) = draws.fold((0, 0), |(hits, all), draw| {
                    (hits + u32::from(draw & ((1 << right) - 1) != 0), all + 1)
                });
                let expected = f64::from(hits) / f64::from(all);
                assert!((pass_at(n, right, k) - expected).abs() < 1e-12, "{n} {right} {k}");
            }
        }
    }

    #[test]
    fn wrong_lines_are_named() {
        let refused = |task: CodeTask, text: &str| task.problems(text).unwrap_err();
        assert_eq!(
            refused(CodeTask::HumanEval, "\n{\"task_id\": 3}"),
            "line 2: expected a string \"task_id\""
        );
        assert_eq!(refused(CodeTask::Mbpp, "{\"task_id\": \"a\"}"), "line 1: expected a number \"task_id\"");
        let line = "{\"task_id\": 12, \"text\": \"t\", \"test_list\": [\"a\", \"b\"]}";
        assert_eq!(refused(CodeTask::Mbpp, line), "line 1: expected a list \"test_list\" of three strings");
        let whole = line.replace("\"b\"]", "\"b\", \"c\"]");
        assert!(refused(CodeTask::Mbpp, &whole).starts_with("expected tasks 2, 3 and 4"));
        assert_eq!(completions("{\"task_id\": 1}").unwrap_err(), "line 1: expected a string \"completion\"");
    }
}
