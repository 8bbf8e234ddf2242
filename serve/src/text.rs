//! A text that is being made, as an iterator.

use crate::error::Result;
use crate::event::{RequestEvent, Token};
use crate::request::{Answer, Request};
use crate::thread::{Listener, ServingThread, Ticket};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A text as it comes: whole characters, nothing that may belong to a stop string. It is made while the
/// caller does something else. Dropping it ends the text.
pub struct Text {
    ticket: Ticket,
    events: Receiver<Heard>,
    answer: Option<Answer>,
    /// Whether the end, or the error, has been reported.
    has_ended: bool,
}

/// The messages of the engine's thread about a text.
enum Heard {
    Taken(Result<()>),
    Event(RequestEvent),
}

impl Listener for Sender<Heard> {
    fn taken(&mut self, taken: Result<()>) {
        let _ = self.send(Heard::Taken(taken));
    }

    fn hear(&mut self, event: RequestEvent) -> bool {
        self.send(Heard::Event(event)).is_ok()
    }
}

impl ServingThread {
    /// Has a text made, and waits until its request is taken up.
    ///
    /// # Errors
    /// When the request is refused, or the engine has ended.
    pub fn text(&self, request: Request) -> Result<Text> {
        let (heard, events) = channel();
        let ticket = self.submit(request, heard);
        match self.wait_for(&events) {
            Some(Heard::Taken(taken)) => taken?,
            // Nothing is told of a request before it is taken up.
            Some(Heard::Event(_)) | None => return Err(self.gone()),
        }
        Ok(Text { ticket, events, answer: None, has_ended: false })
    }
}

impl Text {
    /// The next token, also one that ends the text; `None` after the last one, and after an error.
    ///
    /// # Errors
    /// When the text cannot be made any further.
    pub fn next_token(&mut self) -> Result<Option<Token>> {
        if self.has_ended {
            return Ok(None);
        }
        let event = self.ticket.wait_for(&self.events);
        if let Some(Heard::Event(RequestEvent::Token(token))) = event {
            return Ok(Some(token));
        }
        self.has_ended = true;
        let Some(Heard::Event(RequestEvent::Done(answer))) = event else { return Err(self.ticket.gone()) };
        let error = answer.finish.error();
        self.answer = Some(*answer);
        error.map_or(Ok(None), Err)
    }

    /// Ends the text before its next step. The tokens that were on their way come, and the end.
    pub fn cancel(&self) {
        self.ticket.cancel();
    }

    /// The whole answer, with its times and the reason of its end; ends the text if it has not ended.
    ///
    /// # Errors
    /// When the text cannot be made any further.
    pub fn answer(mut self) -> Result<Answer> {
        self.cancel();
        self.finished()
    }

    /// The whole answer, once the text has ended by itself.
    ///
    /// # Errors
    /// When the text cannot be made any further.
    pub fn whole(mut self) -> Result<Answer> {
        self.finished()
    }

    fn finished(&mut self) -> Result<Answer> {
        while self.next_token()?.is_some() {}
        let answer = self.answer.take().ok_or_else(|| self.ticket.gone())?;
        // An error that was told before is told again: this is no whole text.
        answer.finish.error().map_or(Ok(answer), Err)
    }
}

impl Iterator for Text {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        loop {
            match self.next_token() {
                Ok(Some(token)) if token.text.is_empty() => {}
                Ok(token) => return token.map(|token| Ok(token.text)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
