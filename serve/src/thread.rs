//! A serving on a thread of its own, which takes requests and other jobs between steps.

use crate::error::{Error, Result};
use crate::event::{Event, Tick, Token};
use crate::finish::Finish;
use crate::request::{Answer, Request};
use crate::serving::Serving;
use kernmill_scheduler::RequestId;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, current};
use std::time::Duration;

/// How long the thread sleeps where time alone changes what there is to do.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Hears of one request, on the engine's thread: what it does delays the next step.
pub trait Listener: Send {
    /// The request has been taken up; or it has not, for this reason, and nothing follows.
    fn taken(&mut self, taken: Result<()>);

    /// Hears the next event; whether more of them are wanted. If not, the request is cancelled.
    fn hear(&mut self, event: Event) -> bool;

    /// All events of a step have been heard; whether more of them are wanted.
    fn step_ended(&mut self) -> bool {
        true
    }
}

/// Looks at the serving after every step.
type Observer = Box<dyn FnMut(&mut Serving) + Send>;

enum Job {
    Submit {
        ticket: u64,
        request: Box<Request>,
        listener: Box<dyn Listener>,
    },
    Cancel(u64),
    Run(Box<dyn FnOnce(&mut Serving) + Send>),
    /// The thread ends when no request is left.
    End,
}

/// A [`Serving`] on a thread of its own: the one loop that makes texts. Clones share it. When the last of
/// them is dropped, and every [`Ticket`], the requests end, and then the thread.
///
/// No thread of the caller becomes a worker, is pinned, or has its floating-point environment changed.
#[derive(Clone)]
pub struct ServingThread {
    shared: Arc<Shared>,
}

struct Shared {
    jobs: Sender<Job>,
    next: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Why the thread has ended, if it should not have.
    failure: Arc<OnceLock<String>>,
}

impl ServingThread {
    /// Moves a serving to a new thread.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub fn start(serving: Serving) -> Result<ServingThread> {
        ServingThread::start_observed(serving, |_: &mut Serving| {})
    }

    /// Moves a serving to a new thread, on which `observer` looks at it after every step.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub fn start_observed(
        serving: Serving,
        observer: impl FnMut(&mut Serving) + Send + 'static,
    ) -> Result<ServingThread> {
        let (jobs, inbox) = channel();
        let failure = Arc::new(OnceLock::new());
        let told = failure.clone();
        let observer: Observer = Box::new(observer);
        let work = move || {
            let mut work = Loop { serving, inbox, clients: BTreeMap::new(), observer, is_ending: false };
            let why = match catch_unwind(AssertUnwindSafe(|| work.run())) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => format!("the engine has failed: {error}"),
                Err(_) => "the engine has panicked (bug: please report it)".to_owned(),
            };
            tracing::error!("{why}");
            let why = told.get_or_init(|| why);
            for client in work.clients.values_mut() {
                let answer = Answer::empty(Finish::Failed(why.clone()));
                client.listener.hear(Event::Done(Box::new(answer)));
            }
        };
        let thread = Builder::new().name("kernmill-engine".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Error::Work(format!("no thread for the engine: {error}")))?;
        let (next, thread) = (AtomicU64::new(0), Mutex::new(Some(thread)));
        Ok(ServingThread { shared: Arc::new(Shared { jobs, next, thread, failure }) })
    }

    /// Hands in a request; `listener` hears of it. Dropping the ticket cancels the request.
    pub fn submit(&self, request: Request, listener: impl Listener + 'static) -> Ticket {
        let ticket = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (request, listener) = (Box::new(request), Box::new(listener));
        // Where the thread has ended, the listener is dropped, which tells so.
        let _ = self.shared.jobs.send(Job::Submit { ticket, request, listener });
        Ticket { thread: self.clone(), number: ticket }
    }

    /// Has a text made, and waits for its end. `on_token` gets every token on the engine's thread, also one
    /// that ends the text, and says whether the text is to go on.
    ///
    /// # Errors
    /// When the request is refused, the text cannot be made any further, or the engine has ended.
    pub fn follow(
        &self,
        request: Request,
        on_token: impl FnMut(Token) -> bool + Send + 'static,
    ) -> Result<Answer> {
        let (told, end) = sync_channel(1);
        let ticket = self.submit(request, Follower { on_token, told });
        let answer = end.recv().unwrap_or_else(|_| Err(self.gone()));
        drop(ticket);
        let answer = answer?;
        answer.finish.error().map_or(Ok(answer), Err)
    }

    /// Has a job done between two steps, and waits for its result.
    ///
    /// # Errors
    /// When the engine has ended, or the job panics.
    pub fn run<R: Send + 'static>(&self, job: impl FnOnce(&mut Serving) -> R + Send + 'static) -> Result<R> {
        let (done, result) = sync_channel(1);
        self.give(move |serving| drop(done.send(job(serving))));
        result.recv().map_err(|_| self.gone())
    }

    /// Has a job done between two steps, and does not wait for it. It is dropped where the engine has ended.
    pub fn give(&self, job: impl FnOnce(&mut Serving) + Send + 'static) {
        let _ = self.shared.jobs.send(Job::Run(Box::new(job)));
    }

    /// Takes no more requests, and waits until all have ended and the cache is on disk.
    pub fn end(&self) {
        let _ = self.shared.jobs.send(Job::End);
        self.shared.join();
    }

    /// Why the engine has failed, if it has.
    pub fn failure(&self) -> Option<&str> {
        self.shared.failure.get().map(String::as_str)
    }

    /// The error of a thread that has ended.
    pub(crate) fn gone(&self) -> Error {
        Error::Work(self.failure().unwrap_or("the engine has ended").to_owned())
    }
}

impl fmt::Debug for ServingThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingThread").field("failure", &self.failure()).finish_non_exhaustive()
    }
}

impl Shared {
    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A job may hold the last handle.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != current().id()) {
            // What it died of has been told.
            let _ = thread.join();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::Run(Box::new(Serving::cancel_all)));
        let _ = self.jobs.send(Job::End);
        self.join();
    }
}

/// A request that was handed in. Dropping it cancels the request.
#[derive(Debug)]
pub struct Ticket {
    thread: ServingThread,
    number: u64,
}

impl Ticket {
    /// The number of the request, which no other one of its thread has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Ends the request before its next step.
    pub fn cancel(&self) {
        let _ = self.thread.shared.jobs.send(Job::Cancel(self.number));
    }

    /// The error of a thread that has ended.
    pub(crate) fn gone(&self) -> Error {
        self.thread.gone()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Passes tokens on, and tells the end.
struct Follower<F> {
    on_token: F,
    told: SyncSender<Result<Answer>>,
}

impl<F: FnMut(Token) -> bool + Send> Listener for Follower<F> {
    fn taken(&mut self, taken: Result<()>) {
        if let Err(error) = taken {
            let _ = self.told.send(Err(error));
        }
    }

    fn hear(&mut self, event: Event) -> bool {
        match event {
            Event::Token(token) => (self.on_token)(token),
            Event::Done(answer) => self.told.send(Ok(*answer)).is_ok(),
        }
    }
}

/// The engine's thread.
struct Loop {
    serving: Serving,
    inbox: Receiver<Job>,
    /// By request that waits or runs, who hears of it.
    clients: BTreeMap<RequestId, Client>,
    observer: Observer,
    is_ending: bool,
}

struct Client {
    ticket: u64,
    listener: Box<dyn Listener>,
    /// Whether something came in this step.
    has_heard: bool,
    is_wanted: bool,
}

impl Loop {
    fn run(&mut self) -> Result<()> {
        loop {
            while let Ok(job) = self.inbox.try_recv() {
                self.take(job);
            }
            let clients = &mut self.clients;
            let tick = self.serving.tick(&mut |id, event| tell(clients, id, event))?;
            for (id, client) in clients.iter_mut().filter(|(_, client)| client.has_heard) {
                client.has_heard = false;
                client.is_wanted &= client.listener.step_ended();
                if !client.is_wanted {
                    self.serving.cancel(*id);
                }
            }
            (self.observer)(&mut self.serving);
            let Tick::Idle(wake) = tick else { continue };
            if self.is_ending && self.serving.is_empty() {
                self.serving.save_cache();
                return Ok(());
            }
            if wake.is_none() && !self.serving.is_empty() {
                let what = "the scheduler has requests and nothing to run (bug: please report it)";
                return Err(Error::Work(what.to_owned()));
            }
            // The scheduler's times are those since the serving began: how long that is from now is not known
            // here, so that the thread looks again soon.
            let job = match wake {
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => self.inbox.recv_timeout(LOOK_AGAIN),
            };
            match job {
                Ok(job) => self.take(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.is_ending = true,
            }
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Submit { mut listener, .. } if self.is_ending => {
                listener.taken(Err(Error::BadInput("the model has been closed".to_owned())));
            }
            Job::Submit { ticket, request, mut listener } => match self.serving.submit(*request) {
                Ok(id) => {
                    listener.taken(Ok(()));
                    self.clients.insert(id, Client { ticket, listener, has_heard: false, is_wanted: true });
                }
                Err(error) => listener.taken(Err(error)),
            },
            Job::Cancel(ticket) => {
                let found = self.clients.iter().find(|(_, client)| client.ticket == ticket);
                if let Some((id, _)) = found {
                    self.serving.cancel(*id);
                }
            }
            Job::Run(job) => job(&mut self.serving),
            Job::End => self.is_ending = true,
        }
    }
}

/// Passes an event on to the request's listener.
fn tell(clients: &mut BTreeMap<RequestId, Client>, id: RequestId, event: Event) {
    if matches!(event, Event::Done(_)) {
        if let Some(mut client) = clients.remove(&id) {
            client.listener.hear(event);
        }
    } else if let Some(client) = clients.get_mut(&id) {
        client.has_heard = true;
        client.is_wanted &= client.listener.hear(event);
    }
}
