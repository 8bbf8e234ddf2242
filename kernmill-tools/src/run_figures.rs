//! Figures of one text: a closing line, and JSON.

use kernmill::Model;
use kernmill::adapters::LoadedAdapter;
use kernmill_os::text::size;
use kernmill_runtime::measure::peak_resident;
use kernmill_serve::{Answer, EndReason, Finish, Restored};
use kernmill_serve::{EngineFigures, drafts_json, drafts_line};
use serde_json::{Value, json};

/// The figures of a run, and its settings.
pub struct Figures<'a> {
    /// The model that ran, with its adapters.
    pub model: &'a Model,
    /// The engine after the text.
    pub engine: EngineFigures,
    /// The generated text.
    pub answer: &'a Answer,
    /// The restored part of a saved session, if the text is in one.
    pub session: Option<Restored>,
    /// Most tokens that were asked for.
    pub max_tokens: u32,
    /// Seed of the choices.
    pub seed: Option<u64>,
    /// From the start of the program to an engine that is ready.
    pub ready_seconds: f64,
}

impl Figures<'_> {
    /// The figures in one line, without an end of line.
    pub fn line(&self) -> String {
        let answer = self.answer;
        format!(
            "{} prompt tokens{} at {:.1} tokens/s, {} tokens at {:.1} tokens/s; first token after {:.2} s; \
             peak memory {}; ended by {}; seed {}",
            answer.prompt_tokens,
            self.restored(),
            answer.prefill_rate(),
            answer.tokens.len(),
            answer.decode_rate(),
            self.ready_seconds + answer.prefill_seconds(),
            size(peak_resident().unwrap_or(0)),
            self.reason(),
            self.seed.unwrap_or_default()
        )
    }

    /// Where tokens of the prompt came from that were not run.
    fn restored(&self) -> String {
        match (self.session, self.answer.disk_tokens) {
            (Some(restored), _) => {
                format!(" ({} restored from the session in {:.2} s)", restored.tokens, restored.seconds)
            }
            (None, 0) => String::new(),
            (None, restored) => format!(" ({restored} restored from disk)"),
        }
    }

    /// Steps of the engine: pieces of the prompt, and tokens that were decoded.
    fn steps(&self) -> u32 {
        let prompt = self.answer.prompt_tokens - self.answer.cached_tokens;
        prompt.div_ceil(self.model.about().chunk) + self.answer.steps
    }

    /// More figures in some lines, each with its end.
    pub fn lines(&self) -> String {
        let cached = self.answer.cached_tokens;
        format!(
            "steps: {}, of one sequence; {cached} prompt tokens were cached\n{}\n{}",
            self.steps(),
            drafts_line(self.answer.drafts),
            self.engine.lines()
        )
    }

    /// Why the text ends.
    fn reason(&self) -> String {
        match &self.answer.finish {
            Finish::MaxTokens => format!("-n {}", self.max_tokens),
            Finish::Context => {
                format!("the context of {} tokens, which is full", self.model.about().context)
            }
            Finish::Token(id) => match self.token(*id) {
                Some(text) => format!("end token {id} ({text})"),
                None => format!("end token {id}"),
            },
            Finish::Text(text) => format!("stop string {text:?}"),
            Finish::Complete => "its form: nothing can follow".to_owned(),
            Finish::Ended(EndReason::Cancelled) => "Ctrl-C".to_owned(),
            other => format!("{other:?}"),
        }
    }

    /// A token as the vocabulary spells it.
    fn token(&self, id: u32) -> Option<String> {
        self.model.tokenizer()?.get().ok()?.token(id)
    }

    /// The figures as one JSON object, with the text.
    pub fn json(&self, text: &str) -> Value {
        let Figures { model: loaded, answer, engine, .. } = self;
        let (program, about) = (loaded.image().program(), loaded.about());
        let (model, memory, times) = (&program.model, about.memory, about.times);
        let text = loaded.tokenizer().map(|_| text);
        json!({
            "model": model.name,
            "preset": model.preset,
            "target": program.level.name(),
            "threads": about.threads,
            "adapters": about.adapters.iter().map(adapter_json).collect::<Vec<_>>(),
            "text": text,
            "tokens": answer.tokens,
            "stop": stop_name(&answer.finish),
            "stop_token": match &answer.finish {
                Finish::Token(id) => Some(json!({ "id": id, "text": self.token(*id) })),
                _ => None,
            },
            "stop_string": match &answer.finish {
                Finish::Text(text) => Some(text),
                _ => None,
            },
            "seed": self.seed,
            "prompt_tokens": answer.prompt_tokens,
            "cached_tokens": answer.cached_tokens,
            "disk_tokens": answer.disk_tokens,
            "session_tokens": self.session.map(|session| session.tokens),
            "steps": self.steps(),
            "drafts": drafts_json(answer.drafts),
            "kv": engine.kv_json(),
            "prefix_cache": engine.prefix_json(),
            "kv_disk": engine.disk_json(),
            "prefill_tokens_per_second": answer.prefill_rate(),
            "decode_tokens_per_second": answer.decode_rate(),
            "seconds": {
                "choose": times.choose,
                "compile": times.compile,
                "pack": times.pack,
                "open": times.open,
                "restore": self.session.map(|session| session.seconds),
                "ready": self.ready_seconds,
                "prefill": answer.prefill_seconds(),
                "decode": answer.decode_seconds(),
                "first_token": self.ready_seconds + answer.prefill_seconds(),
            },
            "memory": {
                "weights": program.weight_bytes,
                "kv": memory.kv,
                "arena": memory.arena,
                "scratch": memory.scratch,
                "ropes": memory.ropes,
                "peak_resident": peak_resident(),
            },
        })
    }
}

fn stop_name(finish: &Finish) -> &'static str {
    match finish {
        Finish::MaxTokens => "max_tokens",
        Finish::Context => "context",
        Finish::Token(_) => "end_token",
        Finish::Text(_) => "stop_string",
        Finish::Complete => "complete",
        _ => "interrupt",
    }
}

/// The end of a text that was shown: a line's end, or without a tokenizer the ids.
pub fn ending(answer: &Answer, has_text: bool) -> String {
    if has_text {
        return "\n".to_owned();
    }
    let ids: Vec<String> = answer.tokens.iter().map(u32::to_string).collect();
    format!("{}\n", ids.join(" "))
}

/// An adapter as an object of a report.
pub(crate) fn adapter_json(adapter: &LoadedAdapter) -> Value {
    json!({ "name": adapter.name, "bytes": adapter.bytes, "seconds": adapter.seconds })
}
