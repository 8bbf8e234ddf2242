//! Why texts end.

use crate::error::Error;
use kernmill_scheduler::EndReason;

/// Why a text ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Finish {
    /// There are as many tokens as were asked for.
    MaxTokens,
    /// The context is full.
    Context,
    /// A stop token was generated.
    Token(u32),
    /// A stop string was generated, or the special token that it is the text of.
    Text(String),
    /// The text has the form that it is held to, and nothing can follow.
    Complete,
    /// The caller or the scheduler ended it. The tokens so far stand.
    Ended(EndReason),
    /// A step with it failed, for this reason.
    Failed(String),
    /// Another stage of the model is lost, for this reason, and with it the rows of the request. It can be
    /// asked for again.
    Unavailable(String),
    /// The request cannot be followed any further, for this reason: its constraint is too much work, or it
    /// forbids every token.
    Astray(String),
}

impl Finish {
    /// The caller ended the text.
    pub const CANCELLED: Finish = Finish::Ended(EndReason::Cancelled);

    /// Whether the text came to an end of its own: a stop token, a stop string, or the end of its form.
    pub fn is_complete(&self) -> bool {
        matches!(self, Finish::Token(_) | Finish::Text(_) | Finish::Complete)
    }

    /// Whether the text was cut where it could have gone on: it has all tokens that were asked for, or all
    /// that the context holds.
    pub fn is_cut(&self) -> bool {
        matches!(self, Finish::MaxTokens | Finish::Context)
    }

    /// The error that the text ended with, if it did: not where it is whole, cut, or ended by its caller.
    pub fn error(&self) -> Option<Error> {
        match self {
            Finish::Failed(why) => Some(Error::Work(why.clone())),
            Finish::Unavailable(why) => Some(Error::Unavailable(why.clone())),
            Finish::Astray(why) => Some(Error::BadInput(why.clone())),
            Finish::Ended(EndReason::Cancelled) => None,
            Finish::Ended(reason @ (EndReason::AdapterGone | EndReason::TooLarge)) => {
                Some(Error::BadInput(format!("the text was ended: {reason}")))
            }
            Finish::Ended(reason) => Some(Error::Unavailable(format!("the text was ended: {reason}"))),
            Finish::MaxTokens | Finish::Context => None,
            Finish::Token(_) | Finish::Text(_) | Finish::Complete => None,
        }
    }
}

impl From<EndReason> for Finish {
    fn from(reason: EndReason) -> Finish {
        if reason == EndReason::MaxTokens { Finish::MaxTokens } else { Finish::Ended(reason) }
    }
}
