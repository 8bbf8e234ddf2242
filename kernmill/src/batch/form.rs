//! Requests in another form than completions, such as conversations. The crate that serves a form reads them.

use crate::serve::{Answer, Request, Token};
use kernmill_runtime::Engine;
use serde_json::Value;

/// What a batch is run with.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// Sequences that run at once.
    pub parallel: u32,
    /// Tokens generated where a request does not say how many. `None` is 200, and for a [`Form`] as many as
    /// it likes.
    pub max_tokens: Option<u32>,
    /// How many of every hundred prompts that are found in the prefix cache are computed anew and compared
    /// ([`crate::serve::Serving::verify_hits`]).
    pub verify_cache: f64,
    /// Tokens that end a text.
    pub end_tokens: Vec<u32>,
}

impl BatchOptions {
    /// Sequences that the engine is to have: those that run, and one to compare with.
    pub fn sequences(&self) -> u32 {
        self.parallel + u32::from(self.verify_cache > 0.0)
    }
}

/// A form of bodies, with a URL of its own.
pub trait Form {
    /// The URL that lines with such a body have.
    fn url(&self) -> &str;

    /// Whether a line without a URL is of this form.
    fn fits(&self, body: &Value) -> bool;

    /// Reads a body; the request that it makes, and what makes an answer of its tokens.
    ///
    /// # Errors
    /// When the body is wrong, or the engine has no such request.
    fn read(
        &self,
        engine: &Engine,
        body: &Value,
        options: &BatchOptions,
    ) -> Result<(Request, Box<dyn Draft>), String>;
}

/// An answer in the making.
pub trait Draft {
    /// Takes the next token; whether more of them are needed.
    fn take(&mut self, token: Token) -> bool;

    /// The body of the answer, which has ended.
    ///
    /// # Errors
    /// When there is none, for this reason.
    fn finish(self: Box<Self>, answer: Answer) -> Result<Value, String>;
}
