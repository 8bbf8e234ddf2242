//! Targets of a load.

use kernmill::{Error, Result};
use kernmill_runtime::AdapterUse;
use kernmill_serve::EngineFigures;
use kernmill_serve::{Listener, Request, RequestEvent, Serving, ServingThread, Ticket};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A request to a target.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest<'a> {
    /// Token ids of the prompt.
    pub prompt: &'a [u32],
    /// Tokens of the answer.
    pub answer: u32,
    /// The adapter, by its name.
    pub adapter: Option<&'a str>,
    /// Whose request it is.
    pub tenant: u64,
}

/// News of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestUpdate {
    /// A token of the answer.
    Token,
    /// The whole answer.
    Done {
        /// Tokens of the answer.
        tokens: Vec<u32>,
        /// Tokens of the prompt that were cached, and not run.
        cached: u32,
    },
    /// There is no whole answer, for this reason.
    Failed(String),
}

/// Totals of a target since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Steps of the engine.
    pub steps: u64,
    /// Time in which the engine ran.
    pub busy: Duration,
    /// Sequences that lost their place.
    pub preemptions: u64,
}

/// Receives what becomes of requests: the request's number, the time, and the news.
pub type OnNews<'a> = dyn FnMut(u64, Duration, RequestUpdate) + 'a;

/// Something that answers requests. Its clock is that of the load.
pub trait LoadTarget {
    /// Time since the target was made.
    fn now(&self) -> Duration;

    /// Takes up a request; the number by which news of it come.
    ///
    /// # Errors
    /// When the request is refused: why.
    fn submit(&mut self, ask: &LoadRequest<'_>) -> std::result::Result<u64, String>;

    /// Goes on with the work for a short time, and tells the news. A target without work waits for a short
    /// time, and not longer than to `until`.
    ///
    /// # Errors
    /// When no more requests can be answered.
    fn poll(&mut self, until: Option<Duration>, on_news: &mut OnNews<'_>) -> Result<()>;

    /// Gives up a request.
    fn cancel(&mut self, request: u64);

    /// Requests that run, and that wait.
    fn queue(&self) -> [u32; 2];

    /// The totals so far.
    fn totals(&self) -> Totals;
}

/// News of a request, and when it came.
type Dated = (u64, Duration, RequestUpdate);

/// The engine of this process as a target.
pub struct EngineTarget {
    thread: ServingThread,
    start: Instant,
    next: u64,
    running: BTreeMap<u64, Ticket>,
    news: (Sender<Dated>, Receiver<Dated>),
    seen: Arc<Mutex<([u32; 2], Totals)>>,
}

/// The longest wait for news, so that Ctrl-C is seen.
const NAP: Duration = Duration::from_millis(20);

impl EngineTarget {
    /// Puts the load on `serving`. A short request is run before, so that what happens once is not measured.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn new(serving: Serving) -> Result<EngineTarget> {
        let seen = Arc::new(Mutex::default());
        let noted = Arc::clone(&seen);
        let thread = ServingThread::start(serving, move |serving: &mut Serving| {
            let (queue, stats) = (serving.queue(), serving.stats());
            let totals = Totals { steps: stats.steps, busy: stats.busy, preemptions: stats.preemptions };
            let queue = [queue.running.iter().sum(), queue.waiting.iter().sum()];
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = (queue, totals);
        })?;
        thread.text(Request::greedy(vec![0], 4))?.whole()?;
        let (start, running) = (Instant::now(), BTreeMap::new());
        Ok(EngineTarget { thread, start, next: 0, running, news: channel(), seen })
    }

    /// The state of the engine.
    ///
    /// # Errors
    /// When the engine has ended.
    pub fn figures(&self) -> Result<EngineFigures> {
        Ok(self.thread.run(|serving| EngineFigures::of(serving.engine()))?)
    }

    fn seen(&self) -> ([u32; 2], Totals) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports what becomes of one request.
struct Reporter {
    number: u64,
    start: Instant,
    told: Sender<Dated>,
}

impl Reporter {
    fn tell(&self, news: RequestUpdate) -> bool {
        self.told.send((self.number, self.start.elapsed(), news)).is_ok()
    }
}

impl Listener for Reporter {
    fn taken(&mut self, taken: kernmill_serve::Result<()>) {
        if let Err(error) = taken {
            self.tell(RequestUpdate::Failed(error.to_string()));
        }
    }

    fn hear(&mut self, event: RequestEvent) -> bool {
        self.tell(match event {
            RequestEvent::Token(_) => RequestUpdate::Token,
            RequestEvent::Done(answer) => match answer.finish.error() {
                None => RequestUpdate::Done { tokens: answer.tokens, cached: answer.cached_tokens },
                Some(error) => RequestUpdate::Failed(error.to_string()),
            },
        })
    }
}

impl LoadTarget for EngineTarget {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn submit(&mut self, ask: &LoadRequest<'_>) -> std::result::Result<u64, String> {
        let request = Request {
            adapters: ask.adapter.map(AdapterUse::of).into_iter().collect(),
            tenant: ask.tenant,
            // Texts of a load repeat themselves more than those of people.
            drafts: false,
            ..Request::greedy(ask.prompt.to_vec(), ask.answer)
        };
        let (number, start, told) = (self.next, self.start, self.news.0.clone());
        self.next += 1;
        self.running.insert(number, self.thread.submit(request, Reporter { number, start, told }));
        Ok(number)
    }

    fn poll(&mut self, until: Option<Duration>, on_news: &mut OnNews<'_>) -> Result<()> {
        if let Some(why) = self.thread.failure() {
            return Err(Error::failed(why.to_owned()));
        }
        let rest = until.map_or(NAP, |until| until.saturating_sub(self.now()).min(NAP));
        let mut next = self.news.1.recv_timeout(rest).ok();
        while let Some((number, time, news)) = next {
            if news != RequestUpdate::Token {
                self.running.remove(&number);
            }
            on_news(number, time, news);
            next = self.news.1.try_recv().ok();
        }
        Ok(())
    }

    fn cancel(&mut self, request: u64) {
        if let Some(ticket) = self.running.get(&request) {
            ticket.cancel();
        }
    }

    fn queue(&self) -> [u32; 2] {
        self.seen().0
    }

    fn totals(&self) -> Totals {
        self.seen().1
    }
}
