//! A serving on a separate thread, which takes requests and other jobs between steps.

use crate::error::{Error, Result};
use crate::event::{RequestEvent, Tick, Token};
use crate::finish::Finish;
use crate::request::{Answer, Request};
use crate::serving::Serving;
use kernmill_scheduler::RequestId;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
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
    fn hear(&mut self, event: RequestEvent) -> bool;

    /// All events of a step have been heard; whether more of them are wanted.
    fn step_ended(&mut self) -> bool {
        true
    }
}

/// Looks at the serving after every step.
type StepObserver = Box<dyn FnMut(&mut Serving) + Send>;

enum ThreadJob {
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

/// A [`Serving`] on a separate thread: the one loop that makes texts. Clones share it. When the last of
/// them is dropped, and every [`Ticket`], the requests end, and then the thread.
///
/// No thread of the caller becomes a worker, is pinned, or has its floating-point environment changed.
#[derive(Clone)]
pub struct ServingThread {
    shared: Arc<ThreadShared>,
}

struct ThreadShared {
    jobs: Sender<ThreadJob>,
    next: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The loop, where there is no thread for it.
    here: Arc<Mutex<Option<ServingLoop>>>,
    /// Why the thread has ended, if it should not have.
    failure: Arc<OnceLock<String>>,
}

impl ServingThread {
    /// Moves a serving to a new thread. Where the system makes none, those who wait for a result run the loop
    /// meanwhile ([`ServingThread::wait_for`]).
    pub fn anywhere(serving: Serving) -> ServingThread {
        ServingThread::of(serving, Box::new(|_| {}))
    }

    /// Moves a serving to a new thread, on which `observer` looks at it after every step.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub fn start(
        serving: Serving,
        observer: impl FnMut(&mut Serving) + Send + 'static,
    ) -> Result<ServingThread> {
        let started = ServingThread::of(serving, Box::new(observer));
        match started.shared.has_thread() {
            true => Ok(started),
            false => Err(Error::Work("the system makes no thread for the engine".to_owned())),
        }
    }

    fn of(serving: Serving, observer: StepObserver) -> ServingThread {
        let (jobs, inbox) = channel();
        let failure = Arc::new(OnceLock::new());
        let told = failure.clone();
        let work = ServingLoop { serving, inbox, clients: BTreeMap::new(), observer, is_ending: false, told };
        let here = Arc::new(Mutex::new(Some(work)));
        let moved = Arc::clone(&here);
        let body = move || {
            let work = moved.lock().unwrap_or_else(PoisonError::into_inner).take();
            work.into_iter().for_each(|mut work| while work.turn(true) {});
        };
        let thread = Builder::new().name("kernmill-engine".to_owned()).spawn(body);
        let thread = thread.inspect_err(|error| tracing::info!("no thread for the engine: {error}")).ok();
        let (next, thread) = (AtomicU64::new(0), Mutex::new(thread));
        ServingThread { shared: Arc::new(ThreadShared { jobs, next, thread, here, failure }) }
    }

    /// Hands in a request; `listener` hears of it. Dropping the ticket cancels the request.
    pub fn submit(&self, request: Request, listener: impl Listener + 'static) -> Ticket {
        let ticket = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (request, listener) = (Box::new(request), Box::new(listener));
        // Where the thread has ended, the listener is dropped, which tells so.
        let _ = self.shared.jobs.send(ThreadJob::Submit { ticket, request, listener });
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
        let ticket = self.submit(request, TextFollower { on_token, told });
        let answer = self.wait_for(&end).unwrap_or_else(|| Err(self.gone()));
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
        self.wait_for(&result).ok_or_else(|| self.gone())
    }

    /// Waits for what the loop sends; `None` if it has ended without sending anything. Where there is no
    /// thread for the loop, it runs here.
    pub fn wait_for<T>(&self, result: &Receiver<T>) -> Option<T> {
        loop {
            match result.try_recv() {
                Ok(found) => return Some(found),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if self.shared.turn() => {}
                Err(TryRecvError::Empty) => return result.recv().ok(),
            }
        }
    }

    /// Has a job done between two steps, and does not wait for it. It is dropped where the engine has ended.
    pub fn give(&self, job: impl FnOnce(&mut Serving) + Send + 'static) {
        let _ = self.shared.jobs.send(ThreadJob::Run(Box::new(job)));
    }

    /// Takes no more requests, and waits until all have ended and the cache is on disk.
    pub fn end(&self) {
        self.shared.end();
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

impl ThreadShared {
    fn has_thread(&self) -> bool {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Has the loop go on, where there is no thread for it; whether it is here and has not ended.
    fn turn(&self) -> bool {
        // A job of the loop may wait, too.
        let Ok(mut here) = self.here.try_lock() else { return false };
        let goes_on = !self.has_thread() && here.as_mut().is_some_and(|work| work.turn(false));
        if !goes_on && !self.has_thread() {
            *here = None;
        }
        goes_on
    }

    fn end(&self) {
        let _ = self.jobs.send(ThreadJob::End);
        while self.turn() {}
        self.join();
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A job may hold the last handle.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != current().id()) {
            // The cause of its death has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for ThreadShared {
    fn drop(&mut self) {
        let _ = self.jobs.send(ThreadJob::Run(Box::new(Serving::cancel_all)));
        self.end();
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
        let _ = self.thread.shared.jobs.send(ThreadJob::Cancel(self.number));
    }

    /// The error of a thread that has ended.
    pub(crate) fn gone(&self) -> Error {
        self.thread.gone()
    }

    /// Waits for what the loop sends.
    pub(crate) fn wait_for<T>(&self, result: &Receiver<T>) -> Option<T> {
        self.thread.wait_for(result)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Passes tokens on, and tells the end.
struct TextFollower<F> {
    on_token: F,
    told: SyncSender<Result<Answer>>,
}

impl<F: FnMut(Token) -> bool + Send> Listener for TextFollower<F> {
    fn taken(&mut self, taken: Result<()>) {
        if let Err(error) = taken {
            let _ = self.told.send(Err(error));
        }
    }

    fn hear(&mut self, event: RequestEvent) -> bool {
        match event {
            RequestEvent::Token(token) => (self.on_token)(token),
            RequestEvent::Done(answer) => self.told.send(Ok(*answer)).is_ok(),
        }
    }
}

/// The engine's thread.
struct ServingLoop {
    serving: Serving,
    inbox: Receiver<ThreadJob>,
    /// By request that waits or runs, who hears of it.
    clients: BTreeMap<RequestId, RequestListener>,
    observer: StepObserver,
    is_ending: bool,
    /// Why it has failed, for those who ask.
    told: Arc<OnceLock<String>>,
}

struct RequestListener {
    ticket: u64,
    listener: Box<dyn Listener>,
    /// Whether something came in this step.
    has_heard: bool,
    is_wanted: bool,
}

impl ServingLoop {
    /// Does the jobs that are there, and a step; if `waits`, it waits where there is nothing to do. Whether
    /// the loop goes on. It tells the clients if it has failed.
    fn turn(&mut self, waits: bool) -> bool {
        let why = match catch_unwind(AssertUnwindSafe(|| self.step(waits))) {
            Ok(Ok(goes_on)) => return goes_on,
            Ok(Err(error)) => format!("the engine has failed: {error}"),
            Err(_) => "the engine has panicked (bug: please report it)".to_owned(),
        };
        tracing::error!("{why}");
        let why = self.told.get_or_init(|| why);
        for client in self.clients.values_mut() {
            let answer = Answer::empty(Finish::Failed(why.clone()));
            client.listener.hear(RequestEvent::Done(Box::new(answer)));
        }
        false
    }

    fn step(&mut self, waits: bool) -> Result<bool> {
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
        let Tick::Idle(wake) = tick else { return Ok(true) };
        if self.is_ending && self.serving.is_empty() {
            self.serving.save_cache();
            return Ok(false);
        }
        if wake.is_none() && !self.serving.is_empty() {
            let what = "the scheduler has requests and nothing to run (bug: please report it)";
            return Err(Error::Work(what.to_owned()));
        }
        // The scheduler's times are those since the serving began: how long that is from now is not known
        // here, so that the thread looks again soon.
        let job = match wake {
            None if !waits => return Ok(true),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => self.inbox.recv_timeout(LOOK_AGAIN),
        };
        match job {
            Ok(job) => self.take(job),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_ending = true,
        }
        Ok(true)
    }

    fn take(&mut self, job: ThreadJob) {
        match job {
            ThreadJob::Submit { mut listener, .. } if self.is_ending => {
                listener.taken(Err(Error::BadInput("the model has been closed".to_owned())));
            }
            ThreadJob::Submit { ticket, request, mut listener } => match self.serving.submit(*request) {
                Ok(id) => {
                    listener.taken(Ok(()));
                    self.clients
                        .insert(id, RequestListener { ticket, listener, has_heard: false, is_wanted: true });
                }
                Err(error) => listener.taken(Err(error)),
            },
            ThreadJob::Cancel(ticket) => {
                let found = self.clients.iter().find(|(_, client)| client.ticket == ticket);
                if let Some((id, _)) = found {
                    self.serving.cancel(*id);
                }
            }
            ThreadJob::Run(job) => job(&mut self.serving),
            ThreadJob::End => self.is_ending = true,
        }
    }
}

/// Passes an event on to the request's listener.
fn tell(clients: &mut BTreeMap<RequestId, RequestListener>, id: RequestId, event: RequestEvent) {
    if matches!(event, RequestEvent::Done(_)) {
        if let Some(mut client) = clients.remove(&id) {
            client.listener.hear(event);
        }
    } else if let Some(client) = clients.get_mut(&id) {
        client.has_heard = true;
        client.is_wanted &= client.listener.hear(event);
    }
}
