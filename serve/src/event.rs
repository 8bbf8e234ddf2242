//! Events of requests and steps.

use crate::request::Answer;
use kernmill_runtime::Logprobs;
use std::time::Duration;

/// An event of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestEvent {
    /// A token has come, also one that ends the text.
    Token(Token),
    /// The text has ended.
    Done(Box<Answer>),
}

/// A token that was generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Id of the token.
    pub id: u32,
    /// The text that the token completes, which may be empty.
    pub text: String,
    /// Logarithms of probabilities, where the request asks for them ([`crate::Request::logprobs`]).
    pub logprobs: Option<Logprobs>,
}

/// The outcome of a call of [`crate::Serving::tick`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// A step was run.
    Ran,
    /// There was nothing to run. Nothing changes before that time, unless requests arrive or are cancelled;
    /// `None` if time changes nothing.
    Idle(Option<Duration>),
}
