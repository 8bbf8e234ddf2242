//! Results of a request: the engine's thread puts them in, any other takes them out.

use crate::ask::Reading;
use crate::bell::Bell;
use crate::error::Failure;
use kernmill_chat::Event;
use kernmill_serve::{self as serve, Answer, Listener, RequestEvent as Heard, Token};
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tokens and end of one request.
pub struct Mailbox {
    inner: Mutex<Inner>,
    /// Told of every token.
    news: Condvar,
    /// Told of the end alone.
    end: Condvar,
    bell: Option<(Arc<Bell>, u64)>,
}

#[derive(Default)]
struct Inner {
    tokens: Vec<Token>,
    end: Option<Result<Answer, Failure>>,
    /// Makes parts of the tokens, where they answer a conversation.
    reading: Option<Reading>,
}

impl Mailbox {
    /// An empty one. `bell` is rung for this ticket when something comes, and `reading` makes parts of an
    /// answer of it.
    pub fn new(bell: Option<(Arc<Bell>, u64)>, reading: Option<Reading>) -> Mailbox {
        let inner = Mutex::new(Inner { reading, ..Inner::default() });
        Mailbox { inner, news: Condvar::new(), end: Condvar::new(), bell }
    }

    /// Adds the tokens of a step, and the end if it came with them; whether more of them are wanted.
    pub fn put(&self, tokens: Vec<Token>, mut end: Option<Result<Answer, Failure>>) -> bool {
        let has_ended = end.is_some();
        let mut inner = self.lock();
        for token in tokens {
            if inner.reading.as_mut().is_none_or(|reading| reading.push(&token)) {
                inner.tokens.push(token);
            }
        }
        if inner.end.is_none() {
            if let (Some(Ok(answer)), Some(reading)) = (&mut end, &mut inner.reading) {
                reading.end(answer);
            }
            inner.end = end;
        }
        let is_wanted = inner.reading.as_ref().is_none_or(|reading| !reading.has_ended());
        drop(inner);
        self.news.notify_all();
        if has_ended {
            self.end.notify_all();
        }
        self.ring();
        is_wanted
    }

    /// Events of an answer since the last time; `None` where none is read.
    pub fn events(&self) -> Option<Vec<Event>> {
        self.lock().reading.as_mut().map(Reading::events)
    }

    /// Notes the end, unless there is one.
    pub fn close(&self, end: Result<Answer, Failure>) {
        self.put(Vec::new(), Some(end));
    }

    /// Waits until there are more than `seen` tokens or the end has come; whether that is so.
    pub fn wait_more(&self, seen: usize, limit: Duration) -> bool {
        let is_same = |inner: &mut Inner| inner.tokens.len() <= seen && inner.end.is_none();
        let waited = self.news.wait_timeout_while(self.lock(), limit, is_same);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Waits until the end has come or the time is there; whether it has come.
    pub fn wait_end(&self, until: Instant) -> bool {
        let limit = until.saturating_duration_since(Instant::now());
        let waited = self.end.wait_timeout_while(self.lock(), limit, |inner| inner.end.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.end.is_some()
    }

    /// The tokens behind the first `seen`, and whether the end has come.
    pub fn after(&self, seen: usize) -> (Vec<Token>, bool) {
        let inner = self.lock();
        (inner.tokens.get(seen..).unwrap_or_default().to_vec(), inner.end.is_some())
    }

    /// The answer or its failure; `None` before the end.
    pub fn answer(&self) -> Option<Result<Answer, Failure>> {
        self.lock().end.clone()
    }

    fn ring(&self) {
        if let Some((bell, ticket)) = &self.bell {
            bell.ring(*ticket);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine's end of a mailbox. Where it is dropped without an answer, the engine has ended.
pub struct Sender {
    mail: Arc<Mailbox>,
    /// Tokens of a step, which are told together: nobody sees a token that ends a text without the end.
    tokens: Vec<Token>,
}

impl Sender {
    /// The engine's end of this mailbox.
    pub fn new(mail: Arc<Mailbox>) -> Sender {
        Sender { mail, tokens: Vec::new() }
    }
}

impl Listener for Sender {
    fn taken(&mut self, taken: serve::Result<()>) {
        if let Err(error) = taken {
            self.mail.close(Err(error.into()));
        }
    }

    fn hear(&mut self, event: Heard) -> bool {
        match event {
            Heard::Token(token) => {
                self.tokens.push(token);
                true
            }
            Heard::Done(answer) => {
                let end = Failure::of(&answer.finish).map_or(Ok(*answer), Err);
                self.mail.put(take(&mut self.tokens), Some(end))
            }
        }
    }

    fn step_ended(&mut self) -> bool {
        self.mail.put(take(&mut self.tokens), None)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.mail.answer().is_none() {
            self.mail.close(Err(Failure::Defect("the engine has ended".to_owned())));
        }
    }
}
