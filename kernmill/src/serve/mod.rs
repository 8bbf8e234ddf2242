//! Many texts at once: requests go in, the scheduler decides, the engine runs, texts come out.
//!
//! [`Serving`] is plain and synchronous. [`Serving::tick`] plans and runs one step; a server calls it on the
//! engine's thread, a test with a clock of its own. The text of a request is the one that it gets alone: what
//! runs beside it, in which order, and what is cached change no bit.

mod active;
mod adapters;
mod flight;
mod histories;
mod request;
mod run;
mod sessions;
mod stats;
#[cfg(all(test, feature = "compiler"))]
mod tests;
mod verify;
mod view;

pub use adapters::AdapterQueue;
pub use kernmill_scheduler::{Class, Config, EndReason, Refusal, RefusalReason, RequestId, Stats};
pub use request::{Answer, Finish, Request, cache_of};
pub use sessions::{SavedTokens, read_session};
pub use stats::{ServeStats, WidthStats};

use crate::constrain::Constraint;
use crate::disk;
use crate::error::{Error, Result};
use active::Active;
use adapters::Adapters;
use flight::Flight;
use histories::Histories;
use kernmill_kv_store::Layout;
use kernmill_runtime::draft::{Drafter, StepCosts, SuffixDrafter};
use kernmill_runtime::{Engine, Logprobs, PrefixStats};
use kernmill_scheduler::{Arrival, Fault, Report, Scheduler, Step, TenantId};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use verify::Verifier;

/// What happens to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A token has come, also one that ends the text.
    Token(Token),
    /// The text has ended.
    Done(Box<Answer>),
}

/// A token that was generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Id of the token.
    pub id: u32,
    /// The text that the token completes, which may be empty.
    pub text: String,
    /// Logarithms of probabilities, where the request asks for them ([`Request::logprobs`]).
    pub logprobs: Option<Logprobs>,
}

/// What a call of [`Serving::tick`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// A step was run.
    Ran,
    /// There was nothing to run. Nothing changes before that time, unless requests arrive or are cancelled;
    /// `None` if time changes nothing.
    Idle(Option<Duration>),
}

/// Runs many requests on one engine.
///
/// ```
/// # fn main() -> Result<(), kernmill::Error> {
/// use kernmill::serve::{Config, Event, Request, Serving};
///
/// let options = kernmill::Options::default();
/// let opened = kernmill::Opened::open(kernmill::locate::nano(), &options)?;
/// let loaded = opened.prepare(&options)?.load(&options, 256, 4)?;
/// let mut serving = Serving::new(loaded.engine, Config::default())?;
/// let first = serving.submit(Request::greedy(vec![1, 2, 3], 5))?;
/// let second = serving.submit(Request::greedy(vec![4, 5], 5))?;
/// let mut ended = Vec::new();
/// while !serving.is_empty() {
///     serving.tick(&mut |id, event| {
///         if let Event::Done(answer) = event {
///             assert_eq!(answer.tokens.len(), 5);
///             ended.push(id);
///         }
///     })?;
/// }
/// assert_eq!(ended, [first, second]);
/// # Ok(())
/// # }
/// ```
pub struct Serving {
    engine: Engine,
    scheduler: Scheduler,
    active: BTreeMap<RequestId, Active>,
    next: u64,
    adapters: Adapters,
    verifier: Verifier,
    /// Where drafts come from, and what steps take by the number of their tokens.
    histories: Histories,
    costs: StepCosts,
    clock: Clock,
    stats: ServeStats,
    most_running: u32,
    /// When the last step ended, if the engine has not been idle since.
    stepped: Option<Duration>,
    /// Steps that have begun and not ended, the oldest first.
    flights: VecDeque<Flight>,
    /// The name of the model's rows in files, if sequences are saved.
    layout: Option<Layout>,
}

/// Time since the start.
type Clock = Box<dyn Fn() -> Duration + Send>;

impl Serving {
    /// Serves requests on an engine. Steps and sequences of the configuration are lowered to what the engine
    /// has.
    ///
    /// # Errors
    /// When an option of the configuration is out of its range.
    pub fn new(engine: Engine, config: Config) -> Result<Serving> {
        let start = Instant::now();
        Serving::with_clock(engine, config, Box::new(move || start.elapsed()))
    }

    /// Serves requests as [`Serving::new`] does, by a clock of one's own, which never goes back.
    ///
    /// # Errors
    /// When an option of the configuration is out of its range.
    pub fn with_clock(engine: Engine, config: Config, clock: Clock) -> Result<Serving> {
        let max_batch_tokens = config.max_batch_tokens.min(engine.chunk());
        let max_sequences = config.max_sequences.min(engine.sequences()).min(max_batch_tokens);
        let steps_in_flight = engine.most_in_flight();
        let config = Config { max_batch_tokens, max_sequences, steps_in_flight, ..config };
        let scheduler = Scheduler::new(config).map_err(|error| Error::BadInput(error.to_string()))?;
        Ok(Serving {
            engine,
            scheduler,
            active: BTreeMap::new(),
            next: 0,
            adapters: Adapters::default(),
            verifier: Verifier::default(),
            histories: Histories::default(),
            costs: StepCosts::default(),
            clock,
            stats: ServeStats::default(),
            most_running: max_sequences,
            stepped: None,
            flights: VecDeque::new(),
            layout: None,
        })
    }

    /// Takes up a request. Its text comes in the following ticks.
    ///
    /// # Errors
    /// When the prompt is empty, too long, or has ids past the vocabulary; when an adapter is not loaded, a
    /// sampling parameter is out of range, the constraint is another model's, or the scheduler refuses the
    /// request; when another stage of the model cannot be reached.
    pub fn submit(&mut self, request: Request) -> Result<RequestId> {
        if let Some(lost) = self.engine.stage_health().and_then(|health| health.lost()) {
            return Err(Error::Unavailable(lost.to_string()));
        }
        if self.active.is_empty() {
            // Nobody has anything at a stage that began anew. Where somebody has, the next tick tells them.
            let _ = self.engine.take_lost_stage();
        }
        let context = self.engine.context();
        if request.prompt.is_empty() {
            return Err(Error::BadInput("the prompt has no tokens: at least one is needed".to_owned()));
        }
        if request.prompt.len() > context as usize {
            let length = request.prompt.len();
            let what = format!("the prompt has {length} tokens, the context holds {context}");
            return Err(Error::BadInput(what));
        }
        if request.max_tokens == 0 {
            return Err(Error::BadInput("max_tokens is 0, expected at least 1".to_owned()));
        }
        self.engine.check_tokens(&request.prompt)?;
        let vocab = self.engine.model().vocab as usize;
        if let Some(width) = request.constraint.as_ref().map(Constraint::width).filter(|w| *w != vocab) {
            let what = format!("the constraint is for a model of {width} logits, this one has {vocab}");
            return Err(Error::BadInput(what));
        }
        let adapter = self.adapters.of(&request.adapters, self.engine.adapter_store())?;
        if let Some(adapter) = adapter {
            self.scheduler.adapter_ready(adapter);
        }
        let now = (self.clock)();
        let id = RequestId(self.next);
        let arrival = Arrival {
            id,
            tenant: TenantId(request.tenant),
            class: request.class,
            priority: request.priority,
            deadline: request.within.map(|within| now.saturating_add(within)),
            adapter,
            prompt_tokens: request.prompt.len() as u32,
            cached_tokens: if request.scores_prompt {
                0
            } else {
                self.engine.cached_tokens(&request.prompt, &request.adapters, request.cache_of())
            },
            max_tokens: request.max_tokens,
        };
        let history = request.drafts.then(|| self.histories.of(request.cache_of()));
        let drafter = history.map(|all| {
            let drafter = SuffixDrafter::with_history(all).with_prediction(&request.prediction);
            Box::new(drafter) as Box<dyn Drafter>
        });
        let active = Active::new(request, vocab, self.engine.tokenizer()?, drafter, now);
        let active = active.map_err(|error| Error::BadInput(error.to_string()))?;
        self.scheduler.arrive(now, &arrival).map_err(Error::Refused)?;
        self.next += 1;
        self.active.insert(id, active);
        Ok(id)
    }

    /// Runs a share of the prompts that are found in the prefix cache once more without it, and compares: of
    /// every hundred hits so many, evenly, the first one among them. A request whose cached tokens give other
    /// logits ends with [`Finish::Failed`], and counts as a mismatch. That takes as long as the prompt, and
    /// room for one more sequence. 0 is the default.
    ///
    /// # Errors
    /// When the share is not from 0 to 100.
    pub fn verify_hits(&mut self, percent: f64) -> Result<()> {
        self.verifier = Verifier::new(percent)?;
        Ok(())
    }

    /// Writes what the KV cache has to the store on disk, as [`crate::Loaded::save_cache`] does.
    pub fn save_cache(&mut self) {
        disk::save(&mut self.engine);
    }

    /// Ends a request at the next tick. Returns whether there was one.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        self.scheduler.cancel(id)
    }

    /// Accepts no more requests, and cuts those that run after `limit`.
    pub fn drain(&mut self, limit: Duration) {
        self.scheduler.drain((self.clock)().saturating_add(limit));
    }

    /// Whether no request waits or runs.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Requests that wait or run.
    pub fn len(&self) -> usize {
        self.active.len()
    }

    /// The engine, between steps: for adapters that come and go. Its sequences are those of the requests. A
    /// request whose adapter is removed or replaced ends at the next tick ([`EndReason::AdapterGone`]).
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// What steps have done.
    pub fn stats(&self) -> &ServeStats {
        &self.stats
    }

    /// What the prefix cache has done.
    pub fn prefix_stats(&self) -> PrefixStats {
        self.engine.prefix_stats()
    }

    /// How many requests wait and run, by class.
    pub fn queue(&self) -> Stats {
        self.scheduler.stats()
    }

    /// Adapters of the requests that run and wait.
    pub fn adapter_queue(&self) -> AdapterQueue {
        AdapterQueue::of(self.active.values().map(|one| (&*one.request.adapters, one.sequence.is_some())))
    }

    /// Requests that run at once at most. Each may use adapters of its own.
    pub fn most_running(&self) -> u32 {
        self.most_running
    }

    /// Plans one step and runs it. `on_event` is told of every token and of every request that ends. Where
    /// the model has stages in other processes, begins a step, and ends the oldest one when there are as many
    /// as there may be.
    ///
    /// # Errors
    /// When the engine fails for a reason that no request is at fault for.
    pub fn tick(&mut self, on_event: &mut dyn FnMut(RequestId, Event)) -> Result<Tick> {
        let now = (self.clock)();
        if let Some(lost) = self.engine.take_lost_stage() {
            self.lose(&lost.to_string(), now, on_event);
        }
        for gone in self.adapters.gone(self.engine.adapter_store()) {
            self.scheduler.adapter_gone(gone);
        }
        let step = self.scheduler.plan(now, &view::View { engine: &self.engine, active: &self.active });
        self.make_places(&step, now, on_event);
        if step.is_idle() && self.flights.is_empty() {
            self.stepped = None;
            return Ok(Tick::Idle(step.wake));
        }
        let is_begun = !step.is_idle() && self.begin(&step, on_event)?;
        let has_room = self.flights.len() < self.engine.most_in_flight() as usize;
        if !(is_begun && has_room) {
            self.finish(on_event)?;
        }
        Ok(Tick::Ran)
    }

    /// Ends every request: what another stage held of them is gone.
    fn lose(&mut self, why: &str, now: Duration, on_event: &mut dyn FnMut(RequestId, Event)) {
        for _ in self.flights.drain(..) {
            self.scheduler.report(now, &Report { fault: Some(Fault::Other), ..Report::default() });
        }
        let all: Vec<RequestId> = self.active.keys().copied().collect();
        for id in all {
            // The next plan forgets it.
            self.scheduler.cancel(id);
            self.end(id, Finish::Unavailable(why.to_owned()), now, on_event);
        }
    }

    /// Ends, preempts and starts what the plan says.
    fn make_places(&mut self, step: &Step, now: Duration, on_event: &mut dyn FnMut(RequestId, Event)) {
        for ended in &step.ended {
            let finish = match ended.reason {
                EndReason::MaxTokens => Finish::Stop(kernmill_runtime::StopReason::MaxTokens),
                reason => Finish::Ended(reason),
            };
            self.end(ended.id, finish, now, on_event);
        }
        for preempted in &step.preempted {
            self.stats.preemptions += 1;
            let sequence = self.active.get_mut(&preempted.id).and_then(|active| active.sequence.take());
            self.leave(sequence);
        }
    }

    /// Ends a request that the scheduler has forgotten.
    fn end(
        &mut self,
        id: RequestId,
        finish: Finish,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, Event),
    ) {
        if let Some(mut active) = self.active.remove(&id) {
            self.leave(active.sequence.take());
            let tenant = active.request.cache_of();
            self.histories.add(tenant, active.generated());
            on_event(id, Event::Done(Box::new(active.answer(finish, now))));
        }
    }

    /// Drops a sequence, and keeps what it has for others and for itself.
    fn leave(&mut self, sequence: Option<kernmill_runtime::SeqId>) {
        if let Some(sequence) = sequence {
            // The sequence is there: no error.
            let _ = self.engine.checkpoint(sequence);
            self.engine.drop_sequence(sequence);
        }
    }
}
