//! What a load is put on.

use crate::error::{Error, Result};
use crate::serve::{Answer, EndReason, Event, Finish, Request, RequestId, Serving, Tick};
use kernmill_runtime::AdapterUse;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A request to a target.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Token ids of the prompt.
    pub prompt: &'a [u32],
    /// Tokens of the answer.
    pub answer: u32,
    /// The adapter, by its name.
    pub adapter: Option<&'a str>,
    /// Whose request it is.
    pub tenant: u64,
}

/// What a request has come to.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
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

/// What a target has done since it was made.
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
pub type OnNews<'a> = dyn FnMut(u64, Duration, News) + 'a;

/// Something that answers requests. Its clock is that of the load.
pub trait Target {
    /// Time since the target was made.
    fn now(&self) -> Duration;

    /// Takes up a request; the number by which news of it come.
    ///
    /// # Errors
    /// When the request is refused: why.
    fn submit(&mut self, ask: &Ask<'_>) -> std::result::Result<u64, String>;

    /// Goes on with the work for a short time, and tells the news. What has no work waits for a short time,
    /// and not longer than to `until`.
    ///
    /// # Errors
    /// When no more requests can be answered.
    fn poll(&mut self, until: Option<Duration>, on_news: &mut OnNews<'_>) -> Result<()>;

    /// Gives up a request.
    fn cancel(&mut self, request: u64);

    /// Requests that run, and that wait.
    fn queue(&self) -> [u32; 2];

    /// What was done so far.
    fn totals(&self) -> Totals;
}

/// The engine of this process as a target.
pub struct EngineTarget {
    serving: Serving,
    start: Instant,
}

/// The longest wait for news, so that Ctrl-C is seen.
const NAP: Duration = Duration::from_millis(20);

impl EngineTarget {
    /// Puts the load on `serving`. A short request is run before, so that what happens once is not measured.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn new(mut serving: Serving) -> Result<EngineTarget> {
        serving.submit(Request::greedy(vec![0], 4))?;
        while !serving.is_empty() {
            serving.tick(&mut |_, _| {})?;
        }
        Ok(EngineTarget { serving, start: Instant::now() })
    }

    /// What was served, with the engine.
    pub fn serving(&mut self) -> &mut Serving {
        &mut self.serving
    }
}

fn news(event: Event) -> News {
    match event {
        Event::Token(_) => News::Token,
        Event::Done(answer) => {
            let Answer { tokens, cached_tokens, finish, .. } = *answer;
            match finish {
                Finish::Stop(_) | Finish::Ended(EndReason::MaxTokens) => {
                    News::Done { tokens, cached: cached_tokens }
                }
                Finish::Ended(reason) => News::Failed(reason.to_string()),
                Finish::Failed(why) | Finish::Unavailable(why) | Finish::Astray(why) => News::Failed(why),
            }
        }
    }
}

impl Target for EngineTarget {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn submit(&mut self, ask: &Ask<'_>) -> std::result::Result<u64, String> {
        let request = Request {
            adapters: ask.adapter.map(AdapterUse::of).into_iter().collect(),
            tenant: ask.tenant,
            // Texts of a load repeat themselves more than those of people.
            drafts: false,
            ..Request::greedy(ask.prompt.to_vec(), ask.answer)
        };
        self.serving.submit(request).map(|id| id.0).map_err(|error| error.to_string())
    }

    fn poll(&mut self, until: Option<Duration>, on_news: &mut OnNews<'_>) -> Result<()> {
        let start = self.start;
        let tick = self.serving.tick(&mut |id, event| on_news(id.0, start.elapsed(), news(event)))?;
        let Tick::Idle(wake) = tick else { return Ok(()) };
        if wake.is_none() && until.is_none() && !self.serving.is_empty() {
            let what = "the scheduler has requests and nothing to run (bug: please report it)";
            return Err(Error::Work(what.to_owned()));
        }
        // The scheduler's clock is older than this one, so that its time tells nothing but that it waits.
        let rest = until.map_or(NAP, |until| until.saturating_sub(self.now()).min(NAP));
        sleep(if wake.is_some() { rest.min(Duration::from_millis(1)) } else { rest });
        Ok(())
    }

    fn cancel(&mut self, request: u64) {
        self.serving.cancel(RequestId(request));
    }

    fn queue(&self) -> [u32; 2] {
        let stats = self.serving.queue();
        [stats.running.iter().sum(), stats.waiting.iter().sum()]
    }

    fn totals(&self) -> Totals {
        let stats = self.serving.stats();
        Totals { steps: stats.steps, busy: stats.busy, preemptions: stats.preemptions }
    }
}
