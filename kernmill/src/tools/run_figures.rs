//! What making one text took: a closing line, and JSON.

use crate::adapters::LoadedAdapter;
use crate::model::Loaded;
use crate::session::Restored;
use crate::tools::engine_figures::{EngineFigures, drafts_json, drafts_line};
use kernmill_runtime::measure::peak_resident;
use kernmill_runtime::{StopReason, Summary};
use serde_json::{Value, json};

/// What a run took, and with what.
pub struct Figures<'a> {
    /// The model that ran.
    pub loaded: &'a Loaded,
    /// The adapters that it ran with.
    pub adapters: &'a [LoadedAdapter],
    /// What was generated.
    pub summary: &'a Summary,
    /// What was restored of a saved session, if the text is in one.
    pub session: Option<Restored>,
    /// Most tokens that were asked for.
    pub max_tokens: usize,
    /// Seed of the choices.
    pub seed: Option<u64>,
    /// From the start of the program to an engine that is ready.
    pub ready_seconds: f64,
}

impl Figures<'_> {
    /// The figures in one line, without an end of line.
    pub fn line(&self) -> String {
        let summary = self.summary;
        format!(
            "{} prompt tokens{} at {:.1} tokens/s, {} tokens at {:.1} tokens/s; first token after {:.2} s; peak memory {:.0} MB; \
             ended by {}; seed {}",
            summary.prompt_tokens,
            self.restored(),
            summary.prefill_rate(),
            summary.tokens.len(),
            summary.decode_rate(),
            self.ready_seconds + summary.prefill_seconds,
            peak_resident().unwrap_or(0) as f64 / 1e6,
            self.reason(),
            self.seed.unwrap_or_default()
        )
    }

    /// Where tokens of the prompt came from that were not run.
    fn restored(&self) -> String {
        match (self.session, self.summary.disk_tokens) {
            (Some(restored), _) => {
                format!(" ({} restored from the session in {:.2} s)", restored.tokens, restored.seconds)
            }
            (None, 0) => String::new(),
            (None, restored) => format!(" ({restored} restored from disk)"),
        }
    }

    /// Steps of the engine: pieces of the prompt, and tokens that were decoded.
    fn steps(&self) -> usize {
        let prompt = self.summary.prompt_tokens - self.summary.cached_tokens;
        prompt.div_ceil(self.loaded.engine.chunk() as usize) + self.summary.decode_steps
    }

    /// More figures in some lines, each with its end.
    pub fn lines(&self) -> String {
        let (cached, engine) = (self.summary.cached_tokens, EngineFigures::of(&self.loaded.engine));
        format!(
            "steps: {}, of one sequence; {cached} prompt tokens were cached\n{}\n{}",
            self.steps(),
            drafts_line(self.summary.drafts),
            engine.lines()
        )
    }

    /// Why the text ends.
    fn reason(&self) -> String {
        match &self.summary.stop {
            StopReason::MaxTokens => format!("-n {}", self.max_tokens),
            StopReason::Context => {
                format!("the context of {} tokens, which is full", self.loaded.engine.context())
            }
            StopReason::Token(id) => match self.token(*id) {
                Some(text) => format!("end token {id} ({text})"),
                None => format!("end token {id}"),
            },
            StopReason::Text(text) => format!("stop string {text:?}"),
            StopReason::Complete => "its form: nothing can follow".to_owned(),
            StopReason::Caller => "Ctrl-C".to_owned(),
        }
    }

    /// A token as the vocabulary spells it.
    fn token(&self, id: u32) -> Option<String> {
        self.loaded.engine.tokenizer().ok()??.token(id)
    }

    /// The figures as one JSON object, with the text.
    pub fn json(&self, text: &str) -> Value {
        let (loaded, summary) = (self.loaded, self.summary);
        let model = loaded.engine.model();
        let memory = loaded.engine.memory();
        let text = loaded.engine.has_tokenizer().then_some(text);
        let engine = EngineFigures::of(&loaded.engine);
        json!({
            "model": model.name,
            "preset": model.preset,
            "target": loaded.level().name(),
            "threads": loaded.engine.threads(),
            "adapters": self.adapters.iter().map(LoadedAdapter::json).collect::<Vec<_>>(),
            "text": text,
            "tokens": summary.tokens,
            "stop": stop_name(&summary.stop),
            "stop_token": match &summary.stop {
                StopReason::Token(id) => Some(json!({ "id": id, "text": self.token(*id) })),
                _ => None,
            },
            "stop_string": match &summary.stop {
                StopReason::Text(text) => Some(text),
                _ => None,
            },
            "seed": self.seed,
            "prompt_tokens": summary.prompt_tokens,
            "cached_tokens": summary.cached_tokens,
            "disk_tokens": summary.disk_tokens,
            "session_tokens": self.session.map(|session| session.tokens),
            "steps": self.steps(),
            "drafts": drafts_json(summary.drafts),
            "kv": engine.kv_json(),
            "prefix_cache": engine.prefix_json(),
            "kv_disk": engine.disk_json(),
            "prefill_tokens_per_second": summary.prefill_rate(),
            "decode_tokens_per_second": summary.decode_rate(),
            "seconds": {
                "choose": loaded.times.choose,
                "compile": loaded.times.compile,
                "pack": loaded.times.pack,
                "open": loaded.times.open,
                "restore": self.session.map(|session| session.seconds),
                "ready": self.ready_seconds,
                "prefill": summary.prefill_seconds,
                "decode": summary.decode_seconds,
                "first_token": self.ready_seconds + summary.prefill_seconds,
            },
            "memory": {
                "weights": loaded.weight_bytes(),
                "kv": memory.kv,
                "arena": memory.arena,
                "scratch": memory.scratch,
                "ropes": memory.ropes,
                "peak_resident": peak_resident(),
            },
        })
    }
}

fn stop_name(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::MaxTokens => "max_tokens",
        StopReason::Context => "context",
        StopReason::Token(_) => "end_token",
        StopReason::Text(_) => "stop_string",
        StopReason::Complete => "complete",
        StopReason::Caller => "interrupt",
    }
}

/// What closes a text that was shown: a line's end, or without a tokenizer the ids.
pub fn ending(summary: &Summary, has_text: bool) -> String {
    if has_text {
        return "\n".to_owned();
    }
    let ids: Vec<String> = summary.tokens.iter().map(u32::to_string).collect();
    format!("{}\n", ids.join(" "))
}
