//! The engine behind the API: a thread of its own, which takes requests between steps.

use crate::backend::{AdapterLoad, Backend, CacheFacts, Facts, Load, Pending, Running, SubmitError};
use crate::ids;
use crate::pace::{Beat, Pace};
use kernmill::runtime::adapter::{Adapter, AdapterLoader};
use kernmill::runtime::stages::StageHealth;
use kernmill::runtime::{AdapterUse, Tenant};
use kernmill::serve::{
    Answer, Config as Scheduling, Event, Request, RequestId, SavedTokens, ServeStats, Serving, Tick,
};
use kernmill::{Error, Loaded};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

impl Facts {
    /// The facts of a loaded model, which is called `name`. `end_tokens` are the model's.
    ///
    /// # Errors
    /// When the tokenizer cannot be read.
    pub fn of(loaded: &Loaded, name: &str, end_tokens: &[u32]) -> Result<Facts, Error> {
        let (engine, usage) = (&loaded.engine, loaded.engine.kv());
        let (sizes, tokenizer) =
            ([engine.context(), engine.model().vocab], engine.tokenizer_handle().cloned());
        let templates = engine.chat_templates();
        let mut facts = Facts::new(name, sizes, tokenizer, templates, end_tokens, fingerprint(loaded))?;
        facts.preset = engine.model().preset.clone();
        facts.weight_bytes = loaded.weight_bytes();
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
    // What was compiled in this process has no name of its contents.
    let identity = loaded.image.identity();
    identity.map_or_else(
        || format!("kernmill-{}", env!("CARGO_PKG_VERSION")),
        |identity| format!("km-{}", blake3::hash(format!("{identity:?}").as_bytes()).to_hex().split_at(16).0),
    )
}

/// What is said where the engine's thread has ended.
const GONE: &str = "the engine has ended";

/// What the engine's thread is asked for.
enum Job {
    Submit {
        ticket: u64,
        request: Box<Request>,
        events: UnboundedSender<Event>,
        accepted: oneshot::Sender<Result<(), SubmitError>>,
    },
    Cancel(u64),
    Loader(oneshot::Sender<Result<AdapterLoader, String>>),
    InsertAdapter(String, Box<Adapter>, oneshot::Sender<Result<(), String>>),
    UnloadAdapter(String, oneshot::Sender<bool>),
    SaveSession(PathBuf, Box<SavedTokens>, oneshot::Sender<Result<u32, String>>),
    RestoreSession(PathBuf, Vec<AdapterUse>, Tenant, oneshot::Sender<Result<u32, String>>),
    Drain(Duration),
    /// The thread ends when no request is left.
    End,
}

/// What other threads may read at any time.
#[derive(Default)]
struct Shared {
    load: Load,
    adapters: Vec<String>,
}

/// An engine on a thread of its own.
pub struct EngineBackend {
    facts: Facts,
    jobs: Mutex<Sender<Job>>,
    next: AtomicU64,
    shared: Arc<Mutex<Shared>>,
    /// Whether the other stages are there, if there are any.
    stages: Option<StageHealth>,
    pace: Pace,
    start: Instant,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl EngineBackend {
    /// Starts a thread that serves a loaded model, which is called `name`, or else by its own name.
    /// `end_tokens` are the model's.
    ///
    /// # Errors
    /// When the model has no tokenizer, an option of the configuration is out of its range, or the thread
    /// cannot be made.
    pub fn of(
        loaded: Loaded,
        name: Option<String>,
        end_tokens: &[u32],
        config: Scheduling,
    ) -> Result<EngineBackend, Error> {
        let name = name.unwrap_or_else(|| loaded.image.program().model.name.clone());
        let facts = Facts::of(&loaded, &name, end_tokens)?;
        let layout = loaded.kv_layout();
        let mut serving = Serving::new(loaded.engine, config)?;
        serving.keep_sessions(layout);
        EngineBackend::start(serving, facts)
    }

    /// Starts a thread that runs the requests of a serving.
    ///
    /// # Errors
    /// When the model has no tokenizer, or the thread cannot be made.
    pub fn start(mut serving: Serving, facts: Facts) -> Result<EngineBackend, Error> {
        if facts.tokenizer.is_none() {
            let missing = "the model has no tokenizer: put its tokenizer.json beside the weights";
            return Err(Error::BadInput(missing.to_owned()));
        }
        // No request is to wait for it.
        facts.lexicon().map_err(Error::BadInput)?;
        let (jobs, inbox) = channel();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let stages = serving.engine().stage_health();
        note(&shared, &mut serving, &Totals::default());
        let (theirs, pace) = (shared.clone(), Pace::default());
        let their_pace = pace.clone();
        let thread = std::thread::Builder::new().name("kernmill-engine".to_owned()).spawn(move || {
            let mut loop_ = Loop {
                serving,
                inbox,
                shared: theirs.clone(),
                running: HashMap::new(),
                totals: Totals::default(),
                pace: their_pace,
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| loop_.run()));
            let why = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it panicked".to_owned(),
            };
            tracing::error!("the engine has ended: {why}");
            locked(&theirs).load.has_failed = true;
        });
        let thread = thread.map_err(|error| Error::Work(format!("no thread for the engine: {error}")))?;
        Ok(EngineBackend {
            facts,
            jobs: Mutex::new(jobs),
            next: AtomicU64::new(0),
            shared,
            stages,
            pace,
            start: Instant::now(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Waits until every request has ended and the cache is on disk.
    pub fn end(&self) {
        self.send(Job::End);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // What it died of has been told.
            let _ = thread.join();
        }
    }

    fn send(&self, job: Job) -> bool {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job).is_ok()
    }
}

impl Backend for EngineBackend {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn adapters(&self) -> Vec<String> {
        locked(&self.shared).adapters.clone()
    }

    fn submit(&self, request: Request) -> Running {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let (events, inbox) = unbounded_channel();
        let (accepted, answer) = oneshot::channel();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Where the thread has ended, what was sent is dropped, which tells the same.
        self.send(Job::Submit { ticket, request: Box::new(request), events, accepted });
        Running::new(answer, inbox, move || drop(jobs.send(Job::Cancel(ticket))))
    }

    fn load(&self) -> Load {
        let uptime_seconds = self.start.elapsed().as_secs_f64();
        let stage_lost = self.stages.as_ref().and_then(StageHealth::lost).map(|lost| lost.to_string());
        Load { uptime_seconds, stage_lost, ..locked(&self.shared).load.clone() }
    }

    fn pace(&self) -> Pace {
        self.pace.clone()
    }

    fn load_adapter(&self, name: String, directory: PathBuf) -> Pending<'_, Result<(), String>> {
        let (done, loader) = oneshot::channel();
        self.send(Job::Loader(done));
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gone = || GONE.to_owned();
        Box::pin(async move {
            let loader = loader.await.map_err(|_| gone())??;
            // Reading and packing take time, in which others run.
            let reading = tokio::task::spawn_blocking(move || loader.load(&directory, 1.0));
            let adapter =
                reading.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
            let (done, answer) = oneshot::channel();
            jobs.send(Job::InsertAdapter(name, Box::new(adapter), done)).map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn unload_adapter(&self, name: String) -> Pending<'_, bool> {
        let (done, answer) = oneshot::channel();
        self.send(Job::UnloadAdapter(name, done));
        Box::pin(async move { answer.await.unwrap_or(false) })
    }

    fn save_session(&self, path: PathBuf, saved: SavedTokens) -> Pending<'_, Result<u32, String>> {
        let (done, answer) = oneshot::channel();
        self.send(Job::SaveSession(path, Box::new(saved), done));
        Box::pin(async move { answer.await.map_err(|_| GONE.to_owned())? })
    }

    fn restore_session(
        &self,
        path: PathBuf,
        adapters: Vec<AdapterUse>,
        tenant: Tenant,
    ) -> Pending<'_, Result<u32, String>> {
        let (done, answer) = oneshot::channel();
        self.send(Job::RestoreSession(path, adapters, tenant, done));
        Box::pin(async move { answer.await.map_err(|_| GONE.to_owned())? })
    }

    fn drain(&self, limit: Duration) {
        self.send(Job::Drain(limit));
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sums over requests that have ended.
#[derive(Clone, Copy, Default)]
struct Totals {
    prompt_tokens: u64,
    cached_tokens: u64,
    last_step: Duration,
    last_tokens: u64,
    is_draining: bool,
}

/// Publishes what other threads may read.
fn note(shared: &Mutex<Shared>, serving: &mut Serving, totals: &Totals) {
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
    shared.load = Load {
        waiting: queue.waiting,
        running: queue.running,
        kv_bytes: [all, all - free, cached],
        steps: stats.steps,
        prompt_tokens: totals.prompt_tokens,
        cached_tokens: totals.cached_tokens,
        generated_tokens: stats.generated,
        drafts: stats.drafts,
        checked_drafts: stats.checked_drafts,
        accepted_at: stats.accepted_at,
        adapters: uses,
        preemptions: stats.preemptions,
        busy_seconds: stats.busy.as_secs_f64(),
        last_step_seconds: totals.last_step.as_secs_f64(),
        last_step_tokens: totals.last_tokens,
        is_draining: totals.is_draining,
        ..Load::default()
    };
}

/// The engine's thread.
struct Loop {
    serving: Serving,
    inbox: Receiver<Job>,
    shared: Arc<Mutex<Shared>>,
    /// Requests that wait or run, by the scheduler's name.
    running: HashMap<RequestId, Client>,
    totals: Totals,
    pace: Pace,
}

/// Who is told of a request.
struct Client {
    ticket: u64,
    events: UnboundedSender<Event>,
    beat: Beat,
}

impl Loop {
    fn run(&mut self) -> Result<(), Error> {
        let mut is_ending = false;
        loop {
            while let Ok(job) = self.inbox.try_recv() {
                is_ending |= self.take(job);
            }
            let ServeStats { busy, tokens, steps, .. } = *self.serving.stats();
            let (running, totals, pace) = (&mut self.running, &mut self.totals, &self.pace);
            let tick = self.serving.tick(&mut |id, event| {
                if let (Event::Token(_), Some(client)) = (&event, running.get_mut(&id)) {
                    pace.gave(&mut client.beat, steps, Instant::now());
                }
                tell(running, totals, id, event);
            })?;
            if tick == Tick::Ran {
                self.totals.last_step = self.serving.stats().busy.saturating_sub(busy);
                self.totals.last_tokens = self.serving.stats().tokens - tokens;
                self.pace.step_tokens.observe(self.totals.last_tokens as f64);
            }
            note(&self.shared, &mut self.serving, &self.totals);
            let Tick::Idle(wake) = tick else { continue };
            if is_ending && self.serving.is_empty() {
                self.serving.save_cache();
                return Ok(());
            }
            // The scheduler's times are those since the serving began: how long that is from now is not known
            // here, so that the thread looks again soon.
            let job = match wake {
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => self.inbox.recv_timeout(LOOK_AGAIN),
            };
            match job {
                Ok(job) => is_ending |= self.take(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_ending = true,
            }
        }
    }

    /// Does what is asked for; whether the thread is to end.
    fn take(&mut self, job: Job) -> bool {
        match job {
            Job::Submit { ticket, request, events, accepted } => {
                let submitted = self.serving.submit(*request);
                let result = match submitted {
                    Ok(id) => {
                        self.running.insert(id, Client { ticket, events, beat: Beat::default() });
                        Ok(())
                    }
                    Err(Error::Refused(refusal)) => Err(SubmitError::Refused(refusal)),
                    Err(Error::Unavailable(why)) => Err(SubmitError::StageLost(why)),
                    Err(error) => Err(SubmitError::Invalid(error.to_string())),
                };
                // Where nobody waits for it, the cancel is on its way.
                let _ = accepted.send(result);
            }
            Job::Cancel(ticket) => {
                let found = self.running.iter().find(|(_, client)| client.ticket == ticket);
                if let Some(id) = found.map(|(id, _)| *id) {
                    self.serving.cancel(id);
                }
            }
            Job::Loader(done) => {
                let loader = self.serving.engine().adapter_store().loader();
                let _ = done.send(loader.map_err(|error| error.to_string()));
            }
            Job::InsertAdapter(name, adapter, done) => {
                let store = self.serving.engine().adapter_store_mut();
                store.set_budget(u64::MAX);
                let inserted = store.insert(&name, *adapter).map_err(|error| error.to_string());
                note(&self.shared, &mut self.serving, &self.totals);
                let _ = done.send(inserted);
            }
            Job::UnloadAdapter(name, done) => {
                let removed = self.serving.engine().adapter_store_mut().remove(&name);
                note(&self.shared, &mut self.serving, &self.totals);
                let _ = done.send(removed);
            }
            Job::SaveSession(path, saved, done) => {
                let tokens = self.serving.save_session(&path, &saved);
                let _ = done.send(tokens.map_err(|error| error.to_string()));
            }
            Job::RestoreSession(path, adapters, tenant, done) => {
                let tokens = self.serving.restore_session(&path, &adapters, tenant);
                let _ = done.send(tokens.map_err(|error| error.to_string()));
            }
            Job::Drain(limit) => {
                self.totals.is_draining = true;
                self.serving.drain(limit);
            }
            Job::End => return true,
        }
        false
    }
}

/// How long the thread sleeps where time alone changes what there is to do.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Passes an event on. Who does not listen any more has dropped the request, which is cancelled.
fn tell(running: &mut HashMap<RequestId, Client>, totals: &mut Totals, id: RequestId, event: Event) {
    if let Event::Done(answer) = &event {
        let Answer { prompt_tokens, cached_tokens, .. } = **answer;
        totals.prompt_tokens += u64::from(prompt_tokens);
        totals.cached_tokens += u64::from(cached_tokens);
        if let Some(client) = running.remove(&id) {
            let _ = client.events.send(event);
        }
    } else if let Some(client) = running.get(&id) {
        let _ = client.events.send(event);
    }
}
