//! The engine's thread: it has the engine and its scheduler, and takes requests between steps.

use crate::error::Failure;
use crate::mailbox::Sender as Mail;
use kernmill::Error;
use kernmill::serve::{Answer, Event, Request, RequestId, Serving, Tick, Token};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// What the thread is asked for.
enum Job {
    Submit { ticket: u64, request: Box<Request>, mail: Mail },
    Cancel(u64),
    Run(Box<dyn FnOnce(&mut Serving) + Send>),
    End,
}

/// How long the thread sleeps where time alone changes what there is to do.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A thread that runs requests until it is ended.
pub struct EngineThread {
    jobs: Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl EngineThread {
    /// Starts the thread, which makes its engine itself. `loaded` gets what goes with it.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn start<T: Send + 'static>(
        load: impl FnOnce() -> Result<(Serving, T), Failure> + Send + 'static,
        loaded: Sender<Result<T, Failure>>,
    ) -> Result<EngineThread, Failure> {
        let (jobs, inbox) = channel();
        let work = move || {
            let serving = match catch_unwind(AssertUnwindSafe(load)) {
                Ok(Ok((serving, more))) => {
                    // Who no longer waits wants no engine: the job that ends it is on its way.
                    drop(loaded.send(Ok(more)));
                    serving
                }
                Ok(Err(failure)) => return drop(loaded.send(Err(failure))),
                Err(_) => {
                    let why = "loading the model panicked (bug: please report it)".to_owned();
                    return drop(loaded.send(Err(Failure::Defect(why))));
                }
            };
            let mut work = Loop { serving, inbox, running: HashMap::new(), is_ending: false };
            let why = match catch_unwind(AssertUnwindSafe(|| work.run())) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => Failure::Defect(format!("the engine has failed: {error}")),
                Err(_) => Failure::Defect("the engine has panicked (bug: please report it)".to_owned()),
            };
            for (_, (_, mail)) in work.running.drain() {
                mail.0.close(Err(why.clone()));
            }
        };
        let thread = Builder::new().name("kernmill-engine".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Failure::Defect(format!("no thread for the engine: {error}")))?;
        Ok(EngineThread { jobs, thread: Mutex::new(Some(thread)) })
    }

    /// Hands in a request; what comes of it goes to `mail`.
    pub fn submit(&self, ticket: u64, request: Request, mail: Mail) {
        // Where the thread has ended, what was sent is dropped, which tells so.
        drop(self.jobs.send(Job::Submit { ticket, request: Box::new(request), mail }));
    }

    /// Ends a request at the next step.
    pub fn cancel(&self, ticket: u64) {
        drop(self.jobs.send(Job::Cancel(ticket)));
    }

    /// Has something done between two steps. What it captures is dropped if the thread has ended.
    pub fn run(&self, work: impl FnOnce(&mut Serving) + Send + 'static) {
        drop(self.jobs.send(Job::Run(Box::new(work))));
    }

    /// Cancels every request and waits for the thread, which takes a step at most once the model is loaded.
    pub fn end(&self) {
        drop(self.jobs.send(Job::End));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // What it died of, its requests have been told.
            drop(thread.join());
        }
    }

    /// Has the thread end once its model is loaded, without waiting for it.
    pub fn abandon(&self) {
        drop(self.jobs.send(Job::End));
        drop(self.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// What the thread has.
struct Loop {
    serving: Serving,
    inbox: Receiver<Job>,
    /// Requests that wait or run: by the scheduler's name, the ticket and who is told.
    running: HashMap<RequestId, (u64, Mail)>,
    is_ending: bool,
}

impl Loop {
    fn run(&mut self) -> Result<(), Error> {
        loop {
            while let Ok(job) = self.inbox.try_recv() {
                self.take(job);
            }
            let mut came = Came::new();
            let tick = self.serving.tick(&mut |id, event| note(&mut came, id, event))?;
            for id in tell(&mut self.running, came) {
                self.serving.cancel(id);
            }
            let Tick::Idle(wake) = tick else { continue };
            if self.is_ending && self.serving.is_empty() {
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
                Ok(job) => self.take(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.take(Job::End),
            }
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Submit { mail, .. } if self.is_ending => {
                mail.0.close(Err(Failure::Input("the model has been closed".to_owned())));
            }
            Job::Submit { ticket, request, mail } => match self.serving.submit(*request) {
                Ok(id) => drop(self.running.insert(id, (ticket, mail))),
                Err(error) => mail.0.close(Err(error.into())),
            },
            Job::Cancel(ticket) => {
                let found = self.running.iter().find(|(_, (other, _))| *other == ticket);
                if let Some(id) = found.map(|(id, _)| *id) {
                    self.serving.cancel(id);
                }
            }
            Job::Run(work) => work(&mut self.serving),
            Job::End => {
                self.is_ending = true;
                for id in self.running.keys() {
                    self.serving.cancel(*id);
                }
            }
        }
    }
}

/// What a step gave, by request: tokens, and the end. It is told together, so that nobody sees a token that
/// ends a text without the end.
type Came = BTreeMap<RequestId, (Vec<Token>, Option<Result<Answer, Failure>>)>;

/// Adds an event to what a step gave.
fn note(came: &mut Came, id: RequestId, event: Event) {
    let (tokens, end) = came.entry(id).or_default();
    match event {
        Event::Token(token) => tokens.push(token),
        Event::Done(answer) => *end = Some(Failure::of(&answer.finish).map_or(Ok(*answer), Err)),
    }
}

/// Hands each request what came of it. Returns the requests that want no more tokens.
fn tell(running: &mut HashMap<RequestId, (u64, Mail)>, came: Came) -> Vec<RequestId> {
    let mut complete = Vec::new();
    for (id, (tokens, end)) in came {
        let has_ended = end.is_some();
        let is_wanted = running.get(&id).is_none_or(|(_, mail)| mail.0.put(tokens, end));
        if has_ended {
            running.remove(&id);
        } else if !is_wanted {
            complete.push(id);
        }
    }
    complete
}
