//! Backends, which make texts behind the API: an engine, or a script.

use crate::pace::StepHistograms;
use kernmill::Error;
use kernmill::chat::{format_of, named_tokens};
use kernmill::lexicon;
use kernmill_chat::Format;
use kernmill_constrain::Lexicon;
use kernmill_plan::chat::{ChatTemplates, TextPrompts};
use kernmill_plan::vectors::VectorForm;
use kernmill_runtime::{AdapterUse, DraftStats, Tenant, Tokenizer, TokenizerHandle};
use kernmill_serve::{AdapterQueue, EndReason, Finish, Refusal, Request, RequestEvent, SavedTokens, Scoring};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// How long a stream waits for something to send before it begins. Gateways wait for a minute.
const MOMENT: Duration = Duration::from_secs(30);

/// A future that may be kept.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes texts. Requests are taken up at any time, and their events come while they run.
pub trait Backend: Send + Sync {
    /// Facts that do not change while the server runs.
    fn facts(&self) -> &BackendInfo;

    /// Names of the adapters that are loaded.
    fn adapters(&self) -> Vec<String>;

    /// Asks for a request to be taken up. Its text is made whether or not its events are read, until what is
    /// returned is dropped.
    fn submit(&self, request: Request) -> Running;

    /// The work that waits, and the work done.
    fn load(&self) -> BackendLoad;

    /// Histograms of its steps, which go on to be filled.
    fn pace(&self) -> StepHistograms {
        StepHistograms::default()
    }

    /// Loads an adapter from a directory, under a name of its own.
    fn load_adapter(&self, name: String, directory: PathBuf) -> Pending<'_, Result<(), String>>;

    /// Forgets an adapter; whether there was one. Requests that use it end.
    fn unload_adapter(&self, name: String) -> Pending<'_, bool>;

    /// Saves a sequence in a file, with the rows that are cached of it; of how many tokens these are.
    fn save_session(&self, _path: PathBuf, _saved: SavedTokens) -> Pending<'_, Result<u32, String>> {
        Box::pin(async { Err(NO_SESSIONS.to_owned()) })
    }

    /// Brings the rows of a saved sequence into the prefix cache of a tenant; of how many tokens they are
    /// there.
    fn restore_session(
        &self,
        path: PathBuf,
        adapters: Vec<AdapterUse>,
        tenant: Tenant,
    ) -> Pending<'_, Result<u32, String>> {
        let _ = (path, adapters, tenant);
        Box::pin(async { Err(NO_SESSIONS.to_owned()) })
    }

    /// Accepts no more requests, and cuts those that run after `limit`.
    fn drain(&self, limit: Duration);

    /// Waits until every request has ended and the cache is on disk.
    fn end(&self) {}
}

/// The message about sessions of a backend without a KV cache.
const NO_SESSIONS: &str = "nothing is cached here that could be saved";

/// Facts that do not change while a server runs.
pub struct BackendInfo {
    /// Name of the model, by which requests ask for it.
    pub model: String,
    /// Most tokens of a text, with its prompt.
    pub context: u32,
    /// Number of logits.
    pub vocab: u32,
    /// The model's tokenizer, which has been read; without one, prompts are ids.
    pub tokenizer: Option<TokenizerHandle>,
    /// The model's form of conversations.
    pub format: Format,
    /// Tokens that end a text.
    pub end_tokens: Vec<u32>,
    /// Prompts before texts for vectors.
    pub prompts: TextPrompts,
    /// Texts of the tokens that templates write by name, such as `bos_token`.
    pub named_tokens: BTreeMap<String, String>,
    lexicon: OnceLock<Result<Lexicon, String>>,
    /// Name of the weights and of the arithmetic: with the same one, equal requests have equal answers.
    pub fingerprint: String,
    /// Preset that the model was compiled with; empty for a backend without one.
    pub preset: String,
    /// Bytes of the weights; 0 where they are not known.
    pub weight_bytes: u64,
    /// The KV cache, where there is one.
    pub cache: Option<CacheFacts>,
    /// How vectors are made, if the model makes them in place of texts.
    pub vectors: Option<VectorForm>,
    /// Elements of a vector, or number of logits.
    pub width: u32,
    /// How the model tells how well a document answers a query, or why it does not.
    pub scoring: Result<Scoring, String>,
}

/// The message about texts for a model without a tokenizer.
const NO_TOKENIZER: &str = "the model has no tokenizer: give token ids in `prompt`, such as [1, 2, 3]";

impl BackendInfo {
    /// The facts of a model that is called `model`, with a context of so many tokens and so many logits.
    /// `fingerprint` names weights and arithmetic.
    ///
    /// # Errors
    /// When the tokenizer cannot be read.
    pub fn new(
        model: &str,
        [context, vocab]: [u32; 2],
        tokenizer: Option<TokenizerHandle>,
        templates: &ChatTemplates,
        end_tokens: &[u32],
        fingerprint: String,
    ) -> Result<BackendInfo, Error> {
        let read = tokenizer.as_ref().map(TokenizerHandle::get).transpose()?;
        let format = read.map(|read| format_of(read, templates, end_tokens)).transpose()?;
        let named_tokens = read.map(|read| named_tokens(read, templates, end_tokens)).transpose()?;
        Ok(BackendInfo {
            model: model.to_owned(),
            context,
            vocab,
            tokenizer,
            format: format.unwrap_or_else(|| Format::Unusable(NO_TOKENIZER.to_owned())),
            end_tokens: end_tokens.to_vec(),
            prompts: templates.prompts.clone(),
            named_tokens: named_tokens.unwrap_or_default(),
            lexicon: OnceLock::new(),
            fingerprint,
            preset: String::new(),
            weight_bytes: 0,
            cache: None,
            vectors: None,
            width: vocab,
            scoring: Err("a script gives no scores".to_owned()),
        })
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// When the model has none.
    pub fn tokenizer(&self) -> Result<&Tokenizer, String> {
        let tokenizer = self.tokenizer.as_ref().ok_or(NO_TOKENIZER)?;
        tokenizer.get().map_err(|error| error.to_string())
    }

    /// The vocabulary, made ready for constraints. The first call takes time.
    ///
    /// # Errors
    /// When the model has no tokenizer, or one with too many tokens.
    pub fn lexicon(&self) -> Result<&Lexicon, String> {
        let made = || {
            let tokenizer = self.tokenizer.as_ref().ok_or(NO_TOKENIZER)?;
            let ends = self.format.stop_tokens(self.tokenizer()?, &self.end_tokens);
            lexicon(Some(tokenizer), self.vocab as usize, &ends).map_err(|error| error.to_string())
        };
        self.lexicon.get_or_init(made).as_ref().map_err(Clone::clone)
    }
}

/// A KV cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFacts {
    /// Tokens of a block.
    pub block_tokens: u32,
    /// Blocks of the layers that see the whole context.
    pub blocks: u64,
    /// Format of keys and values, such as `f16`.
    pub format: String,
}

/// A request that was submitted. Dropping it cancels the request.
pub struct Running {
    /// Until it is known whether the request was taken up.
    accepted: Option<Accepted>,
    /// The first event, while it waits to be taken.
    first: Option<RequestEvent>,
    events: UnboundedReceiver<RequestEvent>,
    /// Cancels the request, once.
    guard: OnDrop,
    meter: AnswerMeter,
}

impl Running {
    /// A request that is taken up or not as `accepted` says, whose events come from `events`, and which
    /// `cancel` cancels.
    pub fn new(
        accepted: Accepted,
        events: UnboundedReceiver<RequestEvent>,
        cancel: impl FnOnce() + Send + 'static,
    ) -> Running {
        Running {
            accepted: Some(accepted),
            first: None,
            events,
            guard: OnDrop(Some(Box::new(cancel))),
            meter: AnswerMeter::default(),
        }
    }

    /// Waits until the request is taken up, which may take as long as a step of the engine. It may be asked
    /// again where somebody stopped waiting.
    ///
    /// # Errors
    /// When the request is not taken up.
    pub async fn accepted(&mut self) -> Result<(), SubmitError> {
        let Some(accepted) = &mut self.accepted else { return Ok(()) };
        let result = accepted.await.unwrap_or(Err(SubmitError::Gone));
        self.accepted = None;
        result
    }

    /// Waits until the request is taken up; before a stream also until there is something to send, for half a
    /// minute at most. A refusal until then has a status for it, which clients and gateways understand. A
    /// stream that has to wait longer begins all the same, so that its client does not give up.
    ///
    /// # Errors
    /// When the request is not taken up, or has ended before it has begun.
    pub async fn ready(&mut self, is_stream: bool) -> Result<(), SubmitError> {
        self.accepted().await?;
        if is_stream && self.first.is_none() {
            self.first = tokio::time::timeout(MOMENT, self.receive()).await.unwrap_or_default();
        }
        match &self.first {
            Some(RequestEvent::Done(answer)) if answer.tokens.is_empty() => match &answer.finish {
                Finish::Ended(EndReason::Draining) => Err(SubmitError::Drained),
                Finish::Unavailable(why) => Err(SubmitError::StageLost(why.clone())),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Cancels the request. The events that were on their way come, and the end.
    pub fn cancel(&mut self) {
        self.guard.run();
    }

    /// The next event; `None` if the backend has failed, or after the last one.
    pub async fn next(&mut self) -> Option<RequestEvent> {
        match self.first.take() {
            None => self.receive().await,
            first => first,
        }
    }

    async fn receive(&mut self) -> Option<RequestEvent> {
        let event = self.events.recv().await;
        match &event {
            Some(RequestEvent::Token(_)) => {
                self.meter.figures.tokens += 1;
                self.meter.figures.token_at.get_or_insert_with(Instant::now);
            }
            Some(RequestEvent::Done(answer)) => {
                self.meter.figures.cached_tokens = u64::from(answer.cached_tokens);
                self.meter.figures.queued = answer.queued;
                self.meter.figures.first_token = answer.first_token;
                self.meter.figures.took = Some(answer.took);
                self.meter.figures.done_at = Some(Instant::now());
                self.finished(reason(&answer.finish));
            }
            None => {}
        }
        event
    }

    /// Notes why the answer has ended, where more is known than the backend knows.
    pub fn finished(&mut self, reason: &'static str) {
        self.meter.figures.finish = Some(reason);
    }

    /// Has counted what comes: `tell` gets the figures when the request is dropped, whether it ended or its
    /// client left.
    pub fn count(&mut self, tell: impl FnOnce(&AnswerFigures) + Send + 'static) {
        self.meter.tell = Some(Box::new(tell));
    }
}

/// Figures of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerFigures {
    /// Tokens that have come.
    pub tokens: u64,
    /// Tokens of the prompt that were cached, if the answer has ended.
    pub cached_tokens: u64,
    /// Time from the arrival until the request first ran.
    pub queued: Option<Duration>,
    /// Time from the arrival to the first token.
    pub first_token: Option<Duration>,
    /// Time from the arrival to the end, if the answer has ended.
    pub took: Option<Duration>,
    /// When the first token was taken from the backend.
    pub token_at: Option<Instant>,
    /// When the end was.
    pub done_at: Option<Instant>,
    /// Why it has ended, if it has: `stop`, `length`, `tool_calls`, `abort` or `error`.
    pub finish: Option<&'static str>,
}

/// Why a text has ended, in a word.
fn reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::MaxTokens | Finish::Context | Finish::Ended(EndReason::Expired) => "length",
        Finish::Token(_) | Finish::Text(_) | Finish::Complete => "stop",
        Finish::Ended(EndReason::Cancelled | EndReason::Draining) => "abort",
        Finish::Ended(_) | Finish::Failed(_) | Finish::Unavailable(_) | Finish::Astray(_) => "error",
    }
}

/// Receives the figures of an answer at its end.
type OnEnd = Box<dyn FnOnce(&AnswerFigures) + Send>;

/// The tokens so far, and the receiver who is told of them.
#[derive(Default)]
struct AnswerMeter {
    figures: AnswerFigures,
    tell: Option<OnEnd>,
}

impl Drop for AnswerMeter {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            tell(&self.figures);
        }
    }
}

/// Tells whether a request was taken up.
pub type Accepted = tokio::sync::oneshot::Receiver<Result<(), SubmitError>>;

/// Runs something when it is dropped.
struct OnDrop(Option<Box<dyn FnOnce() + Send>>);

impl OnDrop {
    fn run(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel();
        }
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.run();
    }
}

/// Why a request was not taken up.
#[derive(Clone, Debug, PartialEq)]
pub enum SubmitError {
    /// The request is wrong.
    Invalid(String),
    /// There is too much to do.
    Refused(Refusal),
    /// Another stage of the model cannot be reached, for this reason.
    StageLost(String),
    /// The backend ended before it began with the request.
    Drained,
    /// The backend has failed.
    Gone,
}

/// The work that waits, and the work done since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendLoad {
    /// Requests that wait: interactive, batch, background.
    pub waiting: [u32; 3],
    /// Requests that run.
    pub running: [u32; 3],
    /// Bytes of the KV cache: all, those of requests, those that are cached.
    pub kv_bytes: [u64; 3],
    /// Steps of the engine.
    pub steps: u64,
    /// Tokens of prompts that were asked for, and those of them that were cached.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were cached.
    pub cached_tokens: u64,
    /// Tokens that were generated.
    pub generated_tokens: u64,
    /// Tokens of drafts that steps checked, and how many were right.
    pub drafts: DraftStats,
    /// Drafts that steps checked.
    pub checked_drafts: u64,
    /// Drafts whose token at this place was right, by the place.
    pub accepted_at: Vec<u64>,
    /// Figures of adapters, while some are loaded.
    pub adapters: Option<AdapterLoad>,
    /// Sequences that lost their place for a while.
    pub preemptions: u64,
    /// Seconds in which the engine ran.
    pub busy_seconds: f64,
    /// Seconds of the last step, and its tokens.
    pub last_step_seconds: f64,
    /// Tokens of the last step.
    pub last_step_tokens: u64,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// Whether no more requests are accepted.
    pub is_draining: bool,
    /// Whether the engine has failed.
    pub has_failed: bool,
    /// Why another stage of the model cannot be reached, if one cannot.
    pub stage_lost: Option<String>,
}

/// The use that requests make of the loaded adapters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdapterLoad {
    /// Requests that run at once at most, each with adapters of its own.
    pub most: u32,
    /// Adapters of the requests that run and wait.
    pub queue: AdapterQueue,
    /// When this was so: seconds since 1970.
    pub at: u64,
}

impl BackendLoad {
    /// The load as an object of JSON.
    pub fn json(&self) -> Value {
        let classes = |counts: [u32; 3]| {
            json!({ "interactive": counts[2], "batch": counts[1],
            "background": counts[0] })
        };
        let [total, used, cached] = self.kv_bytes;
        json!({
            "waiting": classes(self.waiting),
            "running": classes(self.running),
            "kv": { "total_bytes": total, "used_bytes": used, "cached_bytes": cached },
            "steps": self.steps,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "generated_tokens": self.generated_tokens,
            "drafts": { "tokens": self.drafts.tokens, "accepted": self.drafts.accepted },
            "preemptions": self.preemptions,
            "busy_seconds": self.busy_seconds,
            "last_step_seconds": self.last_step_seconds,
            "last_step_tokens": self.last_step_tokens,
            "uptime_seconds": self.uptime_seconds,
            "draining": self.is_draining,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_serve::{RefusalReason, Token};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
    use tokio::sync::oneshot;

    fn running() -> (oneshot::Sender<Result<(), SubmitError>>, UnboundedSender<RequestEvent>, Running) {
        let (accepted, answer) = oneshot::channel();
        let (events, inbox) = unbounded_channel();
        (accepted, events, Running::new(answer, inbox, || {}))
    }

    fn token() -> RequestEvent {
        RequestEvent::Token(Token { id: 7, text: "a".to_owned(), logprobs: None })
    }

    #[tokio::test]
    async fn a_stream_is_ready_with_its_first_event() {
        // A refusal that comes late, as behind a long step, is one of the request.
        let (accepted, _events, mut late) = running();
        let mut waiting = Box::pin(late.ready(true));
        let moment = Duration::from_millis(50);
        assert!(tokio::time::timeout(moment, &mut waiting).await.is_err());
        let refusal = Refusal { reason: RefusalReason::QueueFull, retry_after: Duration::from_secs(1) };
        accepted.send(Err(SubmitError::Refused(refusal))).unwrap();
        assert_eq!(waiting.await, Err(SubmitError::Refused(refusal)));

        let (accepted, events, mut taken) = running();
        accepted.send(Ok(())).unwrap();
        taken.ready(false).await.unwrap();
        // A stream waits longer, and what it waited for is not lost.
        assert!(tokio::time::timeout(moment, taken.ready(true)).await.is_err());
        events.send(token()).unwrap();
        taken.ready(true).await.unwrap();
        assert!(matches!(taken.next().await, Some(RequestEvent::Token(token)) if token.id == 7));
    }
}
