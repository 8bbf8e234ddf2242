//! What the log says of a request: one line, when its answer has ended. Texts are never in it.

use crate::backend::Figures;
use crate::ids;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A request on its way. Every task that works on it holds it; when the last one lets it go, it is logged.
#[derive(Debug)]
pub struct Record {
    id: String,
    start: Instant,
    /// Whether monitors ask again and again for what it asks for.
    is_routine: bool,
    route: &'static str,
    noted: Mutex<Noted>,
}

/// What is known so far.
#[derive(Debug, Default)]
struct Noted {
    key: Option<String>,
    model: Option<String>,
    status: u16,
    prompt_tokens: u64,
    tokens: u64,
    cached: u64,
    queued: Option<Duration>,
    first_token: Option<Duration>,
}

impl Record {
    /// A record of a request that has come.
    pub fn new(route: &'static str, is_routine: bool) -> Record {
        let id = ids::new("req_");
        Record { id, start: Instant::now(), is_routine, route, noted: Mutex::default() }
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

    /// Notes the model or adapter that is asked for.
    pub fn model(&self, name: &str) {
        self.noted().model = Some(name.to_owned());
    }

    /// Notes the status of the response.
    pub fn status(&self, status: u16) {
        self.noted().status = status;
    }

    /// Adds an answer to a prompt, which has ended or was given up. Of several answers, the log has the sums,
    /// and the first one's times.
    pub fn add(&self, prompt_tokens: u64, figures: &Figures) {
        let mut noted = self.noted();
        noted.prompt_tokens += prompt_tokens;
        noted.tokens += figures.tokens;
        noted.cached += figures.cached_tokens;
        noted.queued = noted.queued.or(figures.queued);
        noted.first_token = noted.first_token.or(figures.first_token);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e4).round() / 10.0;
        let (id, route, total_ms) = (&*self.id, self.route, milliseconds(self.start.elapsed()));
        let noted = self.noted();
        let (key, model, status) = (noted.key.as_deref(), noted.model.as_deref(), noted.status);
        let (queue_ms, first_token_ms) =
            (noted.queued.map(milliseconds), noted.first_token.map(milliseconds));
        let (tokens_in, tokens_out, tokens_cached) = (noted.prompt_tokens, noted.tokens, noted.cached);
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    id,
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
