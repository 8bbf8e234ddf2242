//! Conversations in a batch: lines with the body of `/v1/chat/completions`, and answers as the route has
//! them.

use crate::backend::Facts;
use crate::chat::message::{Message, completion};
use crate::chat::pieces::{Outcome, Pieces};
use crate::chat::request::ChatRequest;
use crate::chat::turn::Prepared;
use crate::engine::fingerprint;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::head::Head;
use crate::scope::Scope;
use crate::state::Today;
use kernmill::batch::{BatchOptions, Draft, Form};
use kernmill::chat::Date;
use kernmill::observe::Observer;
use kernmill::serve::{Answer, Class, Request, Token};
use kernmill::{Engine, Loaded};
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads lines of a batch whose body is that of `/v1/chat/completions`. An answer is the one that the server
/// gives to the same body and seed.
pub struct ChatForm {
    model: String,
    fingerprint: String,
    /// Day that conversations are told: one for all lines, also past midnight.
    date: Option<Date>,
    observer: Arc<dyn Observer>,
    /// Made for the first line: the vocabulary is made ready for constraints, which takes time.
    facts: OnceCell<Result<Arc<Facts>, String>>,
}

impl ChatForm {
    /// A form for a loaded model. Conversations are told that it is this day. With the first of them,
    /// `observer` gets a note if the model has no format for conversations.
    pub fn new(loaded: &Loaded, day: Today, observer: Arc<dyn Observer>) -> ChatForm {
        ChatForm {
            model: loaded.image.program().model.name.clone(),
            fingerprint: fingerprint(loaded),
            date: day.date(),
            observer,
            facts: OnceCell::new(),
        }
    }

    fn facts(&self, engine: &Engine, end_tokens: &[u32]) -> Result<Arc<Facts>, String> {
        let made = || {
            let facts = Facts::of_engine(engine, &self.model, &self.fingerprint, end_tokens);
            let facts = facts.map_err(|error| error.to_string())?;
            facts.format.note().iter().for_each(|note| self.observer.note(note));
            Ok(Arc::new(facts))
        };
        self.facts.get_or_init(made).clone()
    }
}

/// Where conversations are served.
const URL: &str = "/v1/chat/completions";

impl Form for ChatForm {
    fn url(&self) -> &str {
        URL
    }

    fn fits(&self, body: &Value) -> bool {
        body.get("messages").is_some()
    }

    fn read(
        &self,
        engine: &Engine,
        body: &Value,
        options: &BatchOptions,
    ) -> Result<(Request, Box<dyn Draft>), String> {
        let facts = self.facts(engine, &options.end_tokens)?;
        let say = |error: ApiError| error.message().to_owned();
        let mut body = body.clone();
        if let Some(body) = body.as_object_mut() {
            // As lines with completions have it: no name is the model, and every run gives the same.
            body.entry("model").or_insert_with(|| json!(self.model));
            body.entry("seed").or_insert_with(|| json!(0));
        }
        let scope = Scope {
            facts: &facts,
            aliases: &BTreeMap::new(),
            adapters: engine.adapter_store().names().map(str::to_owned).collect(),
            tenant: 0,
            record: None,
            date: self.date,
            within: None,
            // Who writes the file runs the program.
            grammars: true,
        };
        let mut asked =
            Fields::of(body, "").and_then(|fields| ChatRequest::take(&scope, fields)).map_err(say)?;
        if let Some(unknown) = asked.unknown.first() {
            return Err(format!("unknown field `{unknown}`"));
        }
        if asked.n != 1 {
            return Err("`n` other than 1 is not served: give a line for each answer".to_owned());
        }
        if asked.streams {
            return Err("`stream` is of no use in a batch: leave it out".to_owned());
        }
        asked.ask.max_tokens = asked.ask.max_tokens.or(options.max_tokens);
        asked.ask.class = Class::Batch;
        let effort = asked.ask.conversation.effort.name();
        let prepared = Prepared::new(&facts, asked.ask).map_err(say)?;
        let (request, pieces) = prepared.parts();
        let head = Head::new("chatcmpl-", &asked.model, &facts);
        let message = if asked.is_older { Message::older() } else { Message::default() };
        let draft = ChatDraft { facts, pieces, message, head, effort };
        Ok((request, Box::new(draft)))
    }
}

/// An answer to a conversation in the making.
struct ChatDraft {
    facts: Arc<Facts>,
    pieces: Pieces,
    message: Message,
    head: Head,
    effort: &'static str,
}

impl ChatDraft {
    fn give(&mut self) -> Option<Outcome> {
        let mut outcome = None;
        while let Some(piece) = self.pieces.pop() {
            outcome = self.message.take(piece);
        }
        outcome
    }
}

impl Draft for ChatDraft {
    fn take(&mut self, token: Token) -> bool {
        // The tokenizer was read before the first line.
        if let Ok(tokenizer) = self.facts.tokenizer.get() {
            self.pieces.take(tokenizer, token);
        }
        self.give();
        !self.pieces.has_ended()
    }

    fn finish(mut self: Box<Self>, answer: Answer) -> Result<Value, String> {
        self.pieces.done(answer);
        let outcome = self.give().ok_or("the answer has no end")?;
        if let Some(error) = outcome.error() {
            return Err(error.message().to_owned());
        }
        let choice = self.message.choice(&self.facts, 0, &outcome);
        Ok(completion(&self.head, vec![choice], &[outcome], self.effort))
    }
}
