//! Figures of a batch: a line, more lines, and JSON.

use kernmill_runtime::measure::peak_resident;
use kernmill_serve::ServeStats;
use kernmill_serve::{EngineFigures, drafts_json, drafts_line};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Counts of a batch.
#[derive(Clone, Debug, Default)]
pub struct BatchStats {
    /// Requests in the input.
    pub requests: u64,
    /// Requests that had answers before.
    pub skipped: u64,
    /// Requests that could not be served; their lines of the output say why.
    pub failed: u64,
    /// Tokens of the prompts that were served.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were cached, and not run.
    pub cached_tokens: u64,
    /// Tokens among those that only the store on disk had.
    pub disk_tokens: u64,
    /// Tokens generated.
    pub generated: u64,
    /// Seconds from the first request to the last answer.
    pub seconds: f64,
    /// Counts of the steps.
    pub served: ServeStats,
    /// Memory of the engine, once something was answered.
    pub engine: Option<EngineFigures>,
    /// Seconds from the reading of a request to its first token, summed up over the requests that were
    /// answered.
    pub first_token_seconds: f64,
    /// Requests that were answered now.
    pub answered: u64,
}

impl BatchStats {
    /// Tokens run per second: those of prompts that were not cached, and generated ones.
    pub fn rate(&self) -> f64 {
        let tokens = self.prompt_tokens - self.cached_tokens + self.generated;
        if self.seconds > 0.0 { tokens as f64 / self.seconds } else { 0.0 }
    }

    /// Tokens per second of the steps that decoded only.
    fn decode_rate(&self) -> f64 {
        let (tokens, time) = self.served.decoded();
        if time.is_zero() { 0.0 } else { tokens as f64 / time.as_secs_f64() }
    }

    fn mean_first_token(&self) -> f64 {
        self.first_token_seconds / self.answered.max(1) as f64
    }

    /// The counts in one line, without an end of line.
    pub fn line(&self) -> String {
        format!(
            "{} requests ({} answered before, {} failed): {} prompt tokens ({} cached), {} generated in \
             {:.1} s, {:.1} tokens/s",
            self.requests,
            self.skipped,
            self.failed,
            self.prompt_tokens,
            self.cached_tokens,
            self.generated,
            self.seconds,
            self.rate()
        )
    }

    /// A sentence that says how many requests have failed, and where; `None` if none has. `answers` is the
    /// output.
    pub fn failure(&self, answers: &Path) -> Option<String> {
        let requests =
            if self.failed == 1 { "1 request".to_owned() } else { format!("{} requests", self.failed) };
        let what = format!("{requests} failed: {} says why", answers.display());
        (self.failed > 0).then_some(what)
    }

    /// More of what was done, in some lines, each with its end.
    pub fn lines(&self) -> String {
        let (decoded, time) = self.served.decoded();
        let mut text = format!(
            "decode: {decoded} tokens at {:.1} tokens/s in steps that only decode ({:.1} s); first token \
             after {:.2} s in the mean\nsteps: {}, the engine was busy {:.1} % of the time, {} preemptions\n\
             {}\n",
            self.decode_rate(),
            time.as_secs_f64(),
            self.mean_first_token(),
            self.served.steps,
            100.0 * self.served.busy.as_secs_f64() / self.seconds.max(1e-9),
            self.served.preemptions,
            drafts_line(self.served.drafts)
        );
        for (width, stats) in &self.served.widths {
            let (steps, rate) = (stats.steps, stats.decode_rate());
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{width:4} sequences: {steps} steps, decode {rate:.1} tokens/s");
        }
        text + &self.engine.map(|engine| engine.lines()).unwrap_or_default()
    }

    /// The counts as one JSON object.
    pub fn json(&self) -> Value {
        let widths = self.served.widths.iter().map(|(width, stats)| {
            json!({
                "sequences": width,
                "steps": stats.steps,
                "decode_steps": stats.decode_steps,
                "decode_tokens_per_second": stats.decode_rate(),
            })
        });
        json!({
            "requests": self.requests,
            "skipped": self.skipped,
            "failed": self.failed,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "disk_tokens": self.disk_tokens,
            "generated_tokens": self.generated,
            "preemptions": self.served.preemptions,
            "cache_hits": { "all": self.served.hits },
            "seconds": {
                "all": self.seconds,
                "busy": self.served.busy.as_secs_f64(),
                "first_token": self.mean_first_token(),
            },
            "tokens_per_second": self.rate(),
            "decode_tokens_per_second": self.decode_rate(),
            "steps": self.served.steps,
            "drafts": drafts_json(self.served.drafts),
            "widths": widths.collect::<Vec<Value>>(),
            "kv": self.engine.map(|engine| engine.kv_json()),
            "prefix_cache": self.engine.map(|engine| engine.prefix_json()),
            "kv_disk": self.engine.map(|engine| engine.disk_json()),
            "peak_resident": peak_resident(),
        })
    }
}
