//! Many texts at once: the requests, the scheduler, and the engine.

use crate::active::Active;
use crate::adapters::{AdapterQueue, RequestAdapters};
use crate::error::{Error, Result};
use crate::event::{RequestEvent, Tick};
use crate::finish::Finish;
use crate::flight::StepInFlight;
use crate::histories::Histories;
use crate::request::Request;
use crate::stats::ServeStats;
use crate::turns::StepTurns;
use crate::values::Wanted;
use crate::view::CacheView;
use kernmill_constrain::Constraint;
use kernmill_kv_store::PayloadLayout;
use kernmill_runtime::draft::{Drafter, StepCosts, SuffixDrafter};
use kernmill_runtime::{Engine, PrefixStats, SeqId, Tokenizer, TokenizerHandle};
use kernmill_scheduler::{
    Arrival, PlannedStep, RequestId, Scheduler, SchedulerConfig, SchedulerStats, StepFault, StepReport,
    TenantId,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Runs many requests on one engine.
///
/// ```no_run
/// # fn show(engine: kernmill_runtime::Engine) -> Result<(), kernmill_serve::Error> {
/// use kernmill_serve::{SchedulerConfig, RequestEvent, Request, Serving};
///
/// let mut serving = Serving::new(engine, SchedulerConfig::default())?;
/// let first = serving.submit(Request::greedy(vec![1, 2, 3], 5))?;
/// let second = serving.submit(Request::greedy(vec![4, 5], 5))?;
/// let mut ended = Vec::new();
/// while !serving.is_empty() {
///     serving.tick(&mut |id, event| {
///         if let RequestEvent::Done(answer) = event {
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
    pub(crate) engine: Engine,
    pub(crate) scheduler: Scheduler,
    pub(crate) active: BTreeMap<RequestId, Active>,
    next: u64,
    adapters: RequestAdapters,
    /// Where drafts come from, and what steps take by the number of their tokens.
    histories: Histories,
    pub(crate) costs: StepCosts,
    pub(crate) clock: Clock,
    pub(crate) stats: ServeStats,
    most_running: u32,
    /// When the last step ended, if the engine has not been idle since.
    pub(crate) stepped: Option<Duration>,
    /// Steps that have begun and not ended, the oldest first.
    pub(crate) flights: VecDeque<StepInFlight>,
    /// Makes text of tokens; without one, texts are token ids.
    pub(crate) tokenizer: Option<TokenizerHandle>,
    /// The name of the model's rows in files, if sequences are saved.
    pub(crate) layout: Option<PayloadLayout>,
    /// The turns of this engine and others, if there are others.
    turns: Option<StepTurns>,
}

/// Time since the start.
pub type Clock = Box<dyn Fn() -> Duration + Send>;

impl Serving {
    /// Serves requests on an engine. Steps and sequences of the configuration are lowered to what the engine
    /// has.
    ///
    /// # Errors
    /// When an option of the configuration is out of its range.
    pub fn new(engine: Engine, config: SchedulerConfig) -> Result<Serving> {
        let start = Instant::now();
        Serving::with_clock(engine, config, Box::new(move || start.elapsed()))
    }

    /// Serves requests as [`Serving::new`] does, by a clock of one's own, which never goes back.
    ///
    /// # Errors
    /// When an option of the configuration is out of its range.
    pub fn with_clock(engine: Engine, config: SchedulerConfig, clock: Clock) -> Result<Serving> {
        let whole_prompts = engine.model().whole_texts;
        let max_batch_tokens = if whole_prompts { u32::MAX } else { config.max_batch_tokens };
        let max_batch_tokens = max_batch_tokens.min(engine.chunk());
        let max_sequences = config.max_sequences.min(engine.sequences()).min(max_batch_tokens);
        let steps_in_flight = engine.most_in_flight();
        let config =
            SchedulerConfig { max_batch_tokens, max_sequences, steps_in_flight, whole_prompts, ..config };
        let scheduler = Scheduler::new(config).map_err(|error| Error::BadInput(error.to_string()))?;
        Ok(Serving {
            engine,
            scheduler,
            active: BTreeMap::new(),
            next: 0,
            adapters: RequestAdapters::default(),
            histories: Histories::default(),
            costs: StepCosts::default(),
            clock,
            stats: ServeStats::default(),
            most_running: max_sequences,
            stepped: None,
            flights: VecDeque::new(),
            tokenizer: None,
            layout: None,
            turns: None,
        })
    }

    /// This serving with what makes text of tokens. Without it, texts are token ids.
    #[must_use]
    pub fn with_tokenizer(mut self, tokenizer: Option<TokenizerHandle>) -> Serving {
        self.tokenizer = tokenizer;
        self
    }

    /// This serving, which takes turns with others: each step waits until it is its turn.
    #[must_use]
    pub fn with_turns(mut self, turns: StepTurns) -> Serving {
        self.turns = Some(turns);
        self
    }

    /// The tokenizer, which has been read.
    pub(crate) fn tokenizer(&self) -> Result<Option<&Tokenizer>> {
        Ok(self.tokenizer.as_ref().map(TokenizerHandle::get).transpose()?)
    }

    /// Takes up a request. Its text comes in the following ticks.
    ///
    /// # Errors
    /// When the prompt is empty, too long, or has ids past the vocabulary; when the model does not make what
    /// is wanted; when an adapter is not loaded, a
    /// sampling parameter is out of range, the constraint is another model's, or the scheduler refuses the
    /// request; when another stage of the model cannot be reached.
    pub fn submit(&mut self, mut request: Request) -> Result<RequestId> {
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
            let what = match self.engine.model().whole_texts && self.engine.context() == self.engine.chunk() {
                true => format!(
                    "the text has {length} tokens, and the model reads texts whole, up to {context} tokens in a \
                     step: --chunk raises that, where the model takes more"
                ),
                false => format!("the prompt has {length} tokens, the context holds {context}"),
            };
            return Err(Error::BadInput(what));
        }
        if self.tokenizer.is_none() && !request.stop.is_empty() {
            let what = "the plan has no tokenizer: give and take token ids instead of text";
            return Err(Error::BadInput(what.to_owned()));
        }
        self.engine.check_tokens(&request.prompt)?;
        request.wanted.check(self.engine.model())?;
        if let Wanted::Logits(tokens) = &request.wanted {
            self.engine.check_tokens(tokens)?;
        }
        let vocab = self.engine.model().vocab as usize;
        if let Some(width) = request.constraint.as_ref().map(Constraint::width).filter(|w| *w != vocab) {
            let what = format!("the constraint is for a model of {width} logits, this one has {vocab}");
            return Err(Error::BadInput(what));
        }
        let adapter = self.adapters.of(&request.adapters, self.engine.adapter_store())?;
        if let Some(adapter) = adapter {
            self.scheduler.adapter_ready(adapter);
        }
        let own = request.drafter.take();
        let history = (request.drafts && own.is_none()).then(|| self.histories.of(request.cache_of()));
        let drafter = own.or_else(|| {
            let drafter = SuffixDrafter::with_history(history?).with_prediction(&request.prediction);
            Some(Box::new(drafter) as Box<dyn Drafter>)
        });
        let now = (self.clock)();
        let active = Active::new(request, self.engine.model(), self.tokenizer()?, drafter, now);
        let active = active.map_err(|error| Error::BadInput(error.to_string()))?;
        let request = &active.request;
        let id = RequestId(self.next);
        let arrival = Arrival {
            id,
            tenant: TenantId(request.tenant),
            class: request.class,
            priority: request.priority,
            deadline: request.within.map(|within| now.saturating_add(within)),
            adapter,
            prompt_tokens: request.prompt.len() as u32,
            cached_tokens: if active.needs_all() {
                0
            } else {
                self.engine.cached_tokens(&request.prompt, &request.adapters, request.cache_of())
            },
            // A text of no tokens ends where its first one is chosen. The context holds all but the last.
            max_tokens: request.max_tokens.clamp(1, context - request.prompt.len() as u32 + 1),
        };
        self.scheduler.arrive(now, &arrival).map_err(Error::Refused)?;
        self.next += 1;
        self.active.insert(id, active);
        Ok(id)
    }

    /// Writes what the KV cache has to the store on disk, so that the next start finds it. A disk that fails
    /// costs computing it again, and the log says so. Nothing happens without a store.
    pub fn save_cache(&mut self) {
        match self.engine.save_cache() {
            Err(error) if self.engine.disk_has_failed() => {
                tracing::info!("the KV cache was not saved: {error}");
            }
            Err(error) => tracing::warn!("the KV cache was not saved: {error}"),
            Ok(()) => {}
        }
    }

    /// Ends a request at the next tick. Returns whether there was one.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        self.scheduler.cancel(id)
    }

    /// Ends all requests at the next tick.
    pub fn cancel_all(&mut self) {
        for id in self.active.keys() {
            self.scheduler.cancel(*id);
        }
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
    /// request whose adapter is removed or replaced ends at the next tick
    /// ([`EndReason::AdapterGone`](crate::EndReason)).
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Counts of the steps.
    pub fn stats(&self) -> &ServeStats {
        &self.stats
    }

    /// Counts of the prefix cache.
    pub fn prefix_stats(&self) -> PrefixStats {
        self.engine.prefix_stats()
    }

    /// How many requests wait and run, by class.
    pub fn queue(&self) -> SchedulerStats {
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
    pub fn tick(&mut self, on_event: &mut dyn FnMut(RequestId, RequestEvent)) -> Result<Tick> {
        let turns = self.turns.clone().filter(|_| !self.active.is_empty());
        let _turn = turns.as_ref().map(StepTurns::wait);
        let now = (self.clock)();
        if let Some(lost) = self.engine.take_lost_stage() {
            self.lose(&lost.to_string(), now, on_event);
        }
        for gone in self.adapters.gone(self.engine.adapter_store()) {
            self.scheduler.adapter_gone(gone);
        }
        for (id, _) in self.active.iter().filter(|(_, active)| active.is_cancelled()) {
            self.scheduler.cancel(*id);
        }
        if self.step_alone(now, on_event)? {
            return Ok(Tick::Ran);
        }
        let step = self.scheduler.plan(now, &CacheView { engine: &self.engine, active: &self.active });
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
    pub(crate) fn lose(
        &mut self,
        why: &str,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) {
        for _ in self.flights.drain(..) {
            self.scheduler
                .report(now, &StepReport { fault: Some(StepFault::Other), ..StepReport::default() });
        }
        let all: Vec<RequestId> = self.active.keys().copied().collect();
        for id in all {
            // The next plan forgets it.
            self.scheduler.cancel(id);
            self.end(id, Finish::Unavailable(why.to_owned()), now, on_event);
        }
    }

    /// Ends, preempts and starts what the plan says.
    fn make_places(
        &mut self,
        step: &PlannedStep,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) {
        for ended in &step.ended {
            self.end(ended.id, ended.reason.into(), now, on_event);
        }
        for preempted in &step.preempted {
            self.stats.preemptions += 1;
            let sequence = self.active.get_mut(&preempted.id).and_then(|active| active.sequence.take());
            self.leave(sequence);
        }
    }

    /// Ends a request that the scheduler has forgotten.
    pub(crate) fn end(
        &mut self,
        id: RequestId,
        finish: Finish,
        now: Duration,
        on_event: &mut dyn FnMut(RequestId, RequestEvent),
    ) {
        if let Some(mut active) = self.active.remove(&id) {
            self.leave(active.sequence.take());
            let tenant = active.request.cache_of();
            self.histories.add(tenant, active.generated());
            on_event(id, RequestEvent::Done(Box::new(active.answer(finish, now))));
        }
    }

    /// Drops a sequence, and keeps what it has for others and for itself.
    fn leave(&mut self, sequence: Option<SeqId>) {
        if let Some(sequence) = sequence {
            // The sequence is there: no error.
            let _ = self.engine.checkpoint(sequence);
            self.engine.drop_sequence(sequence);
        }
    }
}
