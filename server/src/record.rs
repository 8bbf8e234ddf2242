//! Records of a request when its answer has ended: a line of the log, a span of a trace, and figures. Texts
//! are never in it.

use crate::backend::AnswerFigures;
use crate::ids;
use crate::metrics::Metrics;
use crate::otlp::RequestSpan;
use crate::trace::{Ended, Moments, RequestTimes, TracedRequest};
use kernmill_serve::Request;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A request on its way. Every task that works on it holds it; when the last one lets it go, it is logged.
#[derive(Debug)]
pub struct Record {
    id: String,
    start: Instant,
    began: SystemTime,
    /// Whether monitors ask again and again for what it asks for.
    is_routine: bool,
    route: &'static str,
    trace: Option<RequestSpan>,
    /// Figures of the model that the request is for.
    metrics: Mutex<Arc<Metrics>>,
    noted: Mutex<Noted>,
}

/// The notes so far.
#[derive(Debug, Default)]
struct Noted {
    key: Option<String>,
    client: Option<String>,
    model: Option<String>,
    adapter: Option<String>,
    status: u16,
    prompts: u64,
    asked: Option<TracedRequest>,
    prompt_tokens: u64,
    tokens: u64,
    longest: u64,
    cached: u64,
    first: Option<AnswerFigures>,
    finish: Vec<&'static str>,
    /// Answers that were given up.
    left: usize,
    moments: Moments,
}

impl Record {
    /// A record of a request that has come.
    pub fn new(
        route: &'static str,
        is_routine: bool,
        metrics: Arc<Metrics>,
        trace: Option<RequestSpan>,
    ) -> Record {
        let (id, start, began) = (ids::new("req_"), Instant::now(), SystemTime::now());
        let metrics = Mutex::new(metrics);
        Record { id, start, began, is_routine, route, trace, metrics, noted: Mutex::default() }
    }

    /// Name of the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the name of the caller's key.
    pub fn key(&self, name: &str) {
        self.noted().key = Some(name.to_owned());
    }

    /// Notes the name that the client or a gateway gave the request, if it is short and plain: anything else
    /// may be a text.
    pub fn client(&self, name: &str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        if (1..=128).contains(&name.len()) && name.chars().all(is_plain) {
            self.noted().client = Some(name.to_owned());
        }
    }

    /// Notes the model or adapter that is asked for, and the adapter that this means.
    pub fn model(&self, name: &str, adapter: Option<&str>) {
        let mut noted = self.noted();
        noted.model = Some(name.to_owned());
        noted.adapter = adapter.map(str::to_owned);
    }

    /// Notes the number of prompts.
    pub fn prompts(&self, count: usize) {
        self.noted().prompts = count as u64;
    }

    /// Notes the status of the response, also in the figures.
    pub fn status(&self, status: u16) {
        self.noted().status = status;
        self.metrics().responded(self.route, status);
    }

    /// Figures of the model that the request is for. At first that is the server's first one.
    pub fn metrics(&self) -> MutexGuard<'_, Arc<Metrics>> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request goes to the backend.
    pub fn submitted(&self, request: &Request) {
        let mut noted = self.noted();
        noted.moments.queued.get_or_insert(self.start.elapsed());
        let asked = noted.asked.get_or_insert(TracedRequest {
            answers: 0,
            max_tokens: request.max_tokens.into(),
            temperature: request.sampler.temperature,
            top_p: request.sampler.top_p,
        });
        asked.answers += 1;
    }

    /// Adds an answer to a prompt, which has ended or was given up. Of several answers, the log has the sums,
    /// and the first one's times.
    pub fn add(&self, prompt_tokens: u64, figures: &AnswerFigures) {
        let after = |time: Instant| time.saturating_duration_since(self.start);
        let mut noted = self.noted();
        noted.prompt_tokens += prompt_tokens;
        noted.tokens += figures.tokens;
        noted.longest = noted.longest.max(figures.tokens);
        noted.cached += figures.cached_tokens;
        match figures.finish {
            Some(reason) => noted.finish.push(reason),
            None => noted.left += 1,
        }
        if figures.queued.is_some() {
            noted.first.get_or_insert(*figures);
        }
        let came = figures.token_at.map(after);
        noted.moments.first_token = came.into_iter().chain(noted.moments.first_token).min();
        noted.moments.done = figures.done_at.map(after).max(noted.moments.done);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e4).round() / 10.0;
        let (id, route, total) = (&*self.id, self.route, self.start.elapsed());
        let mut noted = self.noted();
        let first = noted.first.unwrap_or_default();
        // Answers to each prompt.
        let each = noted.asked.map_or(1, |asked| (asked.answers / noted.prompts.max(1)).max(1));
        if let Some(asked) = noted.asked.filter(|_| noted.left == 0) {
            self.metrics().asked(each, asked.max_tokens, noted.longest);
        }
        if noted.status < 400 {
            let left = noted.left;
            noted.finish.extend(std::iter::repeat_n("abort", left));
        }
        let (noted, metrics) = (&*noted, self.metrics());
        let (key, model, status) = (noted.key.as_deref(), noted.model.as_deref(), noted.status);
        let client = noted.client.as_deref();
        let trace = self.trace.as_ref().map(|trace| {
            trace.end(&Ended {
                id,
                client,
                route,
                status,
                model,
                served: metrics.model(),
                adapter: noted.adapter.as_deref(),
                began: self.began,
                total,
                asked: noted.asked,
                tokens_in: noted.prompt_tokens / each,
                tokens_out: noted.tokens,
                tokens_cached: noted.cached,
                parts: parts(&first),
                finish: &noted.finish,
                moments: noted.moments,
            })
        });
        let (total_ms, queue_ms, first_token_ms) =
            (milliseconds(total), first.queued.map(milliseconds), first.first_token.map(milliseconds));
        let (tokens_in, tokens_out, tokens_cached) = (noted.prompt_tokens, noted.tokens, noted.cached);
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    id,
                    client,
                    trace,
                    key,
                    model,
                    route,
                    status,
                    tokens_in,
                    tokens_out,
                    tokens_cached,
                    queue_ms,
                    first_token_ms,
                    total_ms,
                    "request"
                )
            };
        }
        if self.is_routine { log!(debug) } else { log!(info) }
    }
}

/// How long the parts of an answer took.
fn parts(figures: &AnswerFigures) -> RequestTimes {
    let AnswerFigures { queued, first_token, took, .. } = *figures;
    let between = |from: Option<Duration>, to: Option<Duration>| Some(to?.saturating_sub(from?));
    RequestTimes { queue: queued, prefill: between(queued, first_token), decode: between(first_token, took) }
}

#[cfg(test)]
mod tests {
    use crate::backend::BackendLoad;
    use crate::scripted::{Scripted, send, state};
    use crate::state::ServerConfig;
    use serde_json::{Value, json};

    #[tokio::test]
    async fn errors_name_their_requests() {
        let state = state(Scripted::stops(&["Yes."]), ServerConfig::default());
        for path in ["/v1/chat/completions", "/v1/messages", "/api/chat", "/nowhere"] {
            let (status, headers, body) = send(&state, "POST", path, "", &json!({ "model": "nobody" })).await;
            let body: Value = serde_json::from_str(&body).unwrap();
            assert!(status >= 400 && !body["error"].is_null(), "{path}: {body}");
            assert_eq!(body["request_id"], headers["x-request-id"].to_str().unwrap(), "{path}");
        }
    }

    #[tokio::test]
    async fn a_request_counts_once_whatever_its_answers() {
        let state = state(Scripted::stops(&["Yes", "."]), ServerConfig::default());
        let body = json!({ "prompt": ["A", "B", "C"], "n": 2, "max_tokens": 7 });
        assert_eq!(send(&state, "POST", "/v1/completions", "", &body).await.0, 200);
        let messages = json!([{ "role": "user", "content": "A" }]);
        let body = json!({ "messages": messages, "n": 3, "max_tokens": 5 });
        assert_eq!(send(&state, "POST", "/v1/chat/completions", "", &body).await.0, 200);
        let text = state.metrics.text(&BackendLoad::default());
        for (name, sum) in [("params_n", 5), ("params_max_tokens", 12), ("max_num_generation_tokens", 4)] {
            let labels = r#"{model_name="nano",engine="0"}"#;
            for line in [
                format!("vllm:request_{name}_sum{labels} {sum}.0"),
                format!("vllm:request_{name}_count{labels} 2"),
            ] {
                assert!(text.lines().any(|found| found == line), "{line} in {text}");
            }
        }
    }
}
