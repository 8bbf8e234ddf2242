//! The engine behind the API: what does not change, figures, and events for asynchronous readers.

use crate::backend::{
    AdapterLoad, Backend, BackendInfo, BackendLoad, CacheFacts, Pending, Running, SubmitError,
};
use crate::ids;
use crate::pace::{LastTokenStep, StepHistograms};
use kernmill::{Error, Loaded};
use kernmill_runtime::stages::StageHealth;
use kernmill_runtime::{AdapterUse, Tenant};
use kernmill_serve::{
    self as serve, Listener, Request, RequestEvent, SavedTokens, SchedulerConfig as Scheduling, Scoring,
    Serving, ServingThread, StepTurns,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

impl BackendInfo {
    /// The facts of a loaded model, which is called `name`. `end_tokens` are the model's.
    ///
    /// # Errors
    /// When the tokenizer cannot be read.
    pub fn of(loaded: &Loaded, name: &str, end_tokens: &[u32]) -> Result<BackendInfo, Error> {
        let (engine, usage) = (&loaded.engine, loaded.engine.kv());
        let (sizes, tokenizer) =
            ([engine.context(), engine.model().vocab], loaded.image.tokenizer().cloned());
        let templates = loaded.image.chat_templates();
        let mut facts = BackendInfo::new(name, sizes, tokenizer, templates, end_tokens, fingerprint(loaded))?;
        facts.preset = engine.model().preset.clone();
        facts.vectors = engine.model().vectors();
        facts.width = engine.model().row_width() as u32;
        facts.scoring = Scoring::of(&loaded.image).map_err(|error| error.to_string());
        facts.weight_bytes = loaded.image.program().weight_bytes;
        facts.cache = Some(CacheFacts {
            block_tokens: usage.block_tokens,
            blocks: usage.blocks[0] as u64,
            format: engine.model().kv.formats().to_string(),
        });
        Ok(facts)
    }
}

/// Name of a model's weights and arithmetic.
fn fingerprint(loaded: &Loaded) -> String {
    // A model that was compiled in this process has no name of its contents.
    let identity = loaded.image.identity();
    identity.map_or_else(
        || format!("kernmill-{}", env!("CARGO_PKG_VERSION")),
        |identity| format!("km-{}", blake3::hash(format!("{identity:?}").as_bytes()).to_hex().split_at(16).0),
    )
}

/// The message where the engine's thread has ended.
const GONE: &str = "the engine has ended";

/// State that other threads may read at any time.
#[derive(Default)]
struct EngineShared {
    load: BackendLoad,
    adapters: Vec<String>,
    /// Tokens of the prompts of requests that have ended, and cached ones among them.
    prompt_tokens: u64,
    cached_tokens: u64,
    is_draining: bool,
}

/// An engine whose texts are read asynchronously.
pub struct EngineBackend {
    facts: BackendInfo,
    thread: ServingThread,
    shared: Arc<Mutex<EngineShared>>,
    /// Whether the other stages are there, if there are any.
    stages: Option<StageHealth>,
    pace: StepHistograms,
    start: Instant,
}

impl EngineBackend {
    /// Serves a loaded model, which is called `name`, and takes its steps in turns with others. `end_tokens`
    /// are the model's.
    ///
    /// # Errors
    /// When the model has no tokenizer, an option of the configuration is out of its range, or the engine's
    /// thread cannot be made.
    pub fn of(
        loaded: Loaded,
        name: &str,
        end_tokens: &[u32],
        config: Scheduling,
        turns: StepTurns,
    ) -> Result<EngineBackend, Error> {
        let facts = BackendInfo::of(&loaded, name, end_tokens)?;
        EngineBackend::start(loaded.into_serving(config)?.with_turns(turns), facts)
    }

    /// Starts the thread that runs the requests of a serving.
    ///
    /// # Errors
    /// When the model has no tokenizer, or the thread cannot be made.
    pub fn start(mut serving: Serving, facts: BackendInfo) -> Result<EngineBackend, Error> {
        if facts.tokenizer.is_none() {
            let missing = "the model has no tokenizer: put its tokenizer.json beside the weights";
            return Err(Error::bad_input(missing.to_owned()));
        }
        // No request is to wait for it.
        facts.lexicon().map_err(Error::bad_input)?;
        let (shared, pace) = (Arc::new(Mutex::new(EngineShared::default())), StepHistograms::default());
        let stages = serving.engine().stage_health();
        note(&shared, &mut serving);
        let thread = ServingThread::start(serving, observer(shared.clone(), pace.clone()))?;
        Ok(EngineBackend { facts, thread, shared, stages, pace, start: Instant::now() })
    }

    /// Has a job done between two steps.
    fn job<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Serving) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, answer) = oneshot::channel();
        self.thread.give(move |serving| drop(done.send(job(serving))));
        answer
    }

    /// Has a session saved or restored between two steps.
    fn session(
        &self,
        job: impl FnOnce(&mut Serving) -> serve::Result<u32> + Send + 'static,
    ) -> Pending<'_, Result<u32, String>> {
        let answer = self.job(job);
        Box::pin(async move { answer.await.map_err(|_| GONE.to_owned())?.map_err(|error| error.to_string()) })
    }
}

impl Backend for EngineBackend {
    fn facts(&self) -> &BackendInfo {
        &self.facts
    }

    fn adapters(&self) -> Vec<String> {
        locked(&self.shared).adapters.clone()
    }

    fn submit(&self, request: Request) -> Running {
        let (events, inbox) = unbounded_channel();
        let (accepted, answer) = oneshot::channel();
        let (shared, pace) = (self.shared.clone(), self.pace.clone());
        let client = EventSender {
            accepted: Some(accepted),
            events,
            shared,
            pace,
            beat: LastTokenStep::default(),
            steps: 0,
        };
        let ticket = self.thread.submit(request, client);
        Running::new(answer, inbox, move || drop(ticket))
    }

    fn load(&self) -> BackendLoad {
        let uptime_seconds = self.start.elapsed().as_secs_f64();
        let stage_lost = self.stages.as_ref().and_then(StageHealth::lost).map(|lost| lost.to_string());
        let has_failed = self.thread.failure().is_some();
        BackendLoad { uptime_seconds, stage_lost, has_failed, ..locked(&self.shared).load.clone() }
    }

    fn pace(&self) -> StepHistograms {
        self.pace.clone()
    }

    fn load_adapter(&self, name: String, directory: PathBuf) -> Pending<'_, Result<(), String>> {
        let loader = self.job(|serving| serving.engine().adapter_store().loader());
        let gone = || GONE.to_owned();
        Box::pin(async move {
            let loader = loader.await.map_err(|_| gone())?.map_err(|error| error.to_string())?;
            // Reading and packing take time, in which others run.
            let reading = tokio::task::spawn_blocking(move || loader.load(&directory, 1.0));
            let adapter =
                reading.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
            let shared = self.shared.clone();
            let inserted = self.job(move |serving| {
                let store = serving.engine().adapter_store_mut();
                store.set_budget(u64::MAX);
                let inserted = store.insert(&name, adapter);
                note(&shared, serving);
                inserted
            });
            inserted.await.map_err(|_| gone())?.map(drop).map_err(|error| error.to_string())
        })
    }

    fn unload_adapter(&self, name: String) -> Pending<'_, bool> {
        let shared = self.shared.clone();
        let removed = self.job(move |serving| {
            let removed = serving.engine().adapter_store_mut().remove(&name);
            note(&shared, serving);
            removed
        });
        Box::pin(async move { removed.await.unwrap_or(false) })
    }

    fn save_session(&self, path: PathBuf, saved: SavedTokens) -> Pending<'_, Result<u32, String>> {
        self.session(move |serving| serving.save_session(&path, &saved))
    }

    fn restore_session(
        &self,
        path: PathBuf,
        adapters: Vec<AdapterUse>,
        tenant: Tenant,
    ) -> Pending<'_, Result<u32, String>> {
        self.session(move |serving| serving.restore_session(&path, &adapters, tenant))
    }

    fn drain(&self, limit: Duration) {
        locked(&self.shared).is_draining = true;
        self.thread.give(move |serving| serving.drain(limit));
    }

    fn end(&self) {
        self.thread.end();
    }
}

fn locked(shared: &Mutex<EngineShared>) -> MutexGuard<'_, EngineShared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes after every step what it did.
fn observer(shared: Arc<Mutex<EngineShared>>, pace: StepHistograms) -> impl FnMut(&mut Serving) + Send {
    let (mut steps, mut busy, mut tokens) = (0, Duration::ZERO, 0);
    move |serving| {
        let stats = serving.stats();
        if stats.steps > steps {
            let (took, ran) = (stats.busy.saturating_sub(busy), stats.tokens - tokens);
            (steps, busy, tokens) = (stats.steps, stats.busy, stats.tokens);
            pace.step_tokens.observe(ran as f64);
            let load = &mut locked(&shared).load;
            (load.last_step_seconds, load.last_step_tokens) = (took.as_secs_f64(), ran);
        }
        note(&shared, serving);
    }
}

/// Publishes what other threads may read.
fn note(shared: &Mutex<EngineShared>, serving: &mut Serving) {
    let queue = serving.queue();
    let stats = serving.stats().clone();
    let (queue_of_adapters, most) = (serving.adapter_queue(), serving.most_running());
    let engine = serving.engine();
    let adapters: Vec<String> = engine.adapter_store().names().map(str::to_owned).collect();
    let uses = || AdapterLoad { most, queue: queue_of_adapters, at: ids::now() };
    let uses = (!adapters.is_empty()).then(uses);
    let usage = engine.kv();
    let bytes =
        |blocks: [usize; 2]| (0..2).map(|kind| blocks[kind] as u64 * usage.block_bytes[kind]).sum::<u64>();
    let (all, free, cached) = (bytes(usage.blocks), bytes(usage.free), bytes(usage.cached));
    let mut shared = locked(shared);
    shared.adapters = adapters;
    shared.load = BackendLoad {
        waiting: queue.waiting,
        running: queue.running,
        kv_bytes: [all, all - free, cached],
        steps: stats.steps,
        prompt_tokens: shared.prompt_tokens,
        cached_tokens: shared.cached_tokens,
        generated_tokens: stats.generated,
        drafts: stats.drafts,
        checked_drafts: stats.checked_drafts,
        accepted_at: stats.accepted_at,
        adapters: uses,
        preemptions: stats.preemptions,
        busy_seconds: stats.busy.as_secs_f64(),
        last_step_seconds: shared.load.last_step_seconds,
        last_step_tokens: shared.load.last_step_tokens,
        is_draining: shared.is_draining,
        ..BackendLoad::default()
    };
}

/// Passes on what happens to a request.
struct EventSender {
    accepted: Option<oneshot::Sender<Result<(), SubmitError>>>,
    events: UnboundedSender<RequestEvent>,
    shared: Arc<Mutex<EngineShared>>,
    pace: StepHistograms,
    beat: LastTokenStep,
    /// Steps that gave tokens.
    steps: u64,
}

impl Listener for EventSender {
    fn taken(&mut self, taken: serve::Result<()>) {
        let taken = taken.map_err(|error| match error {
            serve::Error::Refused(refusal) => SubmitError::Refused(refusal),
            serve::Error::Unavailable(why) => SubmitError::StageLost(why),
            error => SubmitError::Invalid(error.to_string()),
        });
        if let Some(accepted) = self.accepted.take() {
            // Where nobody waits for it, the cancel is on its way.
            let _ = accepted.send(taken);
        }
    }

    fn hear(&mut self, event: RequestEvent) -> bool {
        match &event {
            RequestEvent::Token(_) => self.pace.gave(&mut self.beat, self.steps, Instant::now()),
            RequestEvent::Done(answer) => {
                let mut shared = locked(&self.shared);
                shared.prompt_tokens += u64::from(answer.prompt_tokens);
                shared.cached_tokens += u64::from(answer.cached_tokens);
            }
        }
        self.events.send(event).is_ok()
    }

    fn step_ended(&mut self) -> bool {
        self.steps += 1;
        true
    }
}
