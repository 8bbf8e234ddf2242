//! `kernmill eval prompts`: ten standard prompts, how fast they are answered, and the texts.

use crate::given::Count;
use crate::made::texts_of;
use crate::measured::{progress, with_tokenizer};
use crate::report::{Outcome, ReportForm, check_output, figures, short, write};
use crate::stats::percentile;
use kernmill::{Answer, Error, Opened, Options, Result, Sampling};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A prompt on every line; `\n` stands for a line end.
const PROMPTS: &str = include_str!("prompts.txt");

/// `kernmill eval prompts`, with the arguments by which the model is opened.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/prompts.txt"))]
pub struct StandardPrompts<M: clap::Args> {
    /// Tokens of each text at most
    #[arg(short = 'n', long, value_name = "N", default_value = "128")]
    max_tokens: Count,
    /// Write the texts to this file, with the figures of each: a line of JSON for every prompt
    #[arg(long, value_name = "FILE.jsonl")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    form: ReportForm,
    #[command(flatten)]
    pub model: M,
}

/// The prompts.
fn prompts() -> Vec<String> {
    PROMPTS.lines().map(|line| line.replace("\\n", "\n")).collect()
}

/// The least, the middle and the greatest of some values.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0.0, 0.5, 1.0].map(|share| percentile(&values, share))
}

/// A spread as text.
fn told([least, middle, most]: [f64; 3], unit: &str) -> String {
    format!("{} median, {} to {}{unit}", short(middle), short(least), short(most))
}

/// A part of a whole; 0 of nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl<M: clap::Args> StandardPrompts<M> {
    /// Runs the command with the model that was opened.
    ///
    /// # Errors
    /// When the model makes no texts, or the engine fails.
    pub fn run(&self, mut opened: Opened, options: &Options) -> Result<Outcome> {
        self.out.as_deref().map_or(Ok(()), |path| check_output(path, &[]))?;
        let prompts = prompts();
        let ids: Vec<Vec<u32>> = with_tokenizer(&mut opened, |tokenizer| {
            prompts.iter().map(|prompt| Ok(tokenizer.encode(prompt, true)?)).collect()
        })?;
        let longest = opened.longest_context();
        let context = ids.iter().map(Vec::len).max().unwrap_or(0) as u64 + u64::from(self.max_tokens.0);
        if context > u64::from(longest) {
            let what = format!("prompts and --max-tokens take {context} tokens, expected at most {longest}");
            return Err(Error::bad_input(what));
        }
        let (model, identity) = texts_of(opened, options, context as u32, 1)?;
        let name = model.image().program().model.name.clone();
        let bar = progress(options, "answering", prompts.len());
        let sampling = Sampling::greedy().max_tokens(self.max_tokens.0 as usize);
        let mut answers: Vec<Answer> = Vec::new();
        for ids in ids {
            answers.push(model.thread().text(model.request(ids, &sampling)?)?.whole()?);
            bar.advance(1);
        }
        drop(bar);
        if let Some(path) = &self.out {
            let lines =
                prompts.iter().zip(&answers).map(|(prompt, answer)| format!("{}\n", line(prompt, answer)));
            write(path, lines.collect::<String>().as_bytes())?;
        }
        let sum = |of: &dyn Fn(&Answer) -> u64| answers.iter().map(of).sum::<u64>();
        let rates = spread(answers.iter().map(Answer::decode_rate).collect());
        let firsts = spread(answers.iter().map(Answer::prefill_seconds).collect());
        let guesses = [sum(&|it| it.drafts.accepted), sum(&|it| it.drafts.tokens)];
        let cached = [sum(&|it| u64::from(it.cached_tokens)), sum(&|it| u64::from(it.prompt_tokens))];
        let tokens = sum(&|it| it.tokens.len() as u64);
        let of = |[part, whole]: [u64; 2]| format!("{part} of {whole} ({:.1} %)", share(part, whole) * 100.0);
        let named = [
            ("tokens/s", told(rates, "")),
            ("first token", told(firsts.map(|seconds| seconds * 1000.0), " ms")),
            ("guesses that were right", of(guesses)),
            ("prompt tokens cached", of(cached)),
            ("texts", format!("{}, {tokens} tokens", answers.len())),
        ];
        let json = json!({
            "model": name, "identity": identity, "prompts": answers.len(), "tokens": tokens,
            "tokens_per_second": { "min": rates[0], "median": rates[1], "max": rates[2] },
            "first_token_seconds": { "min": firsts[0], "median": firsts[1], "max": firsts[2] },
            "draft_tokens": guesses[1], "draft_accepted": guesses[0], "prompt_tokens": cached[1],
            "cached_tokens": cached[0],
        });
        let report = self.form.tell("kernmill.eval-prompts/1", json, figures(&name, &named));
        Ok(Outcome { report, failed: None })
    }
}

/// The line of a text.
fn line(prompt: &str, answer: &Answer) -> Value {
    json!({
        "prompt": prompt, "text": answer.text, "tokens": answer.tokens.len(),
        "tokens_per_second": answer.decode_rate(), "first_token_seconds": answer.prefill_seconds(),
        "draft_tokens": answer.drafts.tokens, "draft_accepted": answer.drafts.accepted,
        "prompt_tokens": answer.prompt_tokens, "cached_tokens": answer.cached_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::{prompts, spread};

    #[test]
    fn there_are_ten_prompts() {
        let prompts = prompts();
        assert_eq!(prompts.len(), 10);
        assert!(prompts.iter().all(|prompt| !prompt.is_empty() && !prompt.contains('\\')));
        assert!(prompts[3].contains('\n'));
    }

    #[test]
    fn a_spread_is_least_middle_and_greatest() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0, 10.0]), [1.0, 2.5, 10.0]);
    }
}
