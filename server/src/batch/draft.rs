//! Lines in the routes' hands: their readers read its body, and their writers write its answer.

use super::line::{BatchLine, LineRoute};
use super::options::BatchOptions;
use crate::backend::BackendInfo;
use crate::chat::message::{Message, completion};
use crate::chat::pieces::{Pieces, TurnOutcome};
use crate::chat::request::{self, CHAT};
use crate::chat::turn::PreparedTurn;
use crate::completions::{self, COMPLETION};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, object, text};
use crate::head::AnswerHead;
use crate::scope::RequestScope;
use crate::vectors::{EMBEDDINGS, Embeddings};
use kernmill::observe::Observer;
use kernmill::{Error, Loaded};
use kernmill_chat::Date;
use kernmill_serve::{Answer, Class, Request, Token};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;

/// Tokens of a completion where nobody says how many.
const MAX_TOKENS: u32 = 200;

/// Fields of a line's completion.
const COMPLETION_LINE: Shape = object(&[text("session")]).with(&[&COMPLETION]);

/// Models and adapters of a batch go by their own names.
static NO_ALIASES: BTreeMap<String, String> = BTreeMap::new();

/// Reads lines as the routes read their bodies.
pub struct LineReader {
    facts: Arc<BackendInfo>,
    adapters: Vec<String>,
    date: Option<Date>,
    max_tokens: Option<u32>,
    /// Until the first conversation.
    observer: Option<Arc<dyn Observer>>,
}

impl LineReader {
    /// A reader for a loaded model.
    ///
    /// # Errors
    /// When the tokenizer cannot be read.
    pub fn new(loaded: &Loaded, options: &BatchOptions) -> Result<LineReader, Error> {
        let name = &loaded.image.program().model.name;
        Ok(LineReader {
            facts: Arc::new(BackendInfo::of(loaded, name, &options.end_tokens)?),
            adapters: loaded.engine.adapter_store().names().map(str::to_owned).collect(),
            date: options.date.date(),
            max_tokens: options.max_tokens,
            observer: Some(options.observer.clone()),
        })
    }

    /// The facts that do not change while the batch runs.
    pub fn facts(&self) -> &Arc<BackendInfo> {
        &self.facts
    }

    /// The request that a line makes behind the tokens `said` of the turns before, and its answer, which has
    /// not begun.
    ///
    /// # Errors
    /// When the body is wrong: what is, and what was expected.
    pub fn read(&mut self, line: &BatchLine, said: &[u32]) -> Result<(Request, PendingAnswer), String> {
        let mut body = line.body.clone();
        let fields = body.as_object_mut();
        let has_adapter = fields.is_some_and(|fields| usual(fields, line.route, &self.facts.model));
        let of = |fields: Fields| match line.route {
            LineRoute::Completions => self.completion(fields, said),
            LineRoute::Chat => self.chat(fields),
            LineRoute::Embeddings => self.vector(fields),
        };
        let shape = match line.route {
            LineRoute::Completions => &COMPLETION_LINE,
            LineRoute::Chat => &CHAT,
            LineRoute::Embeddings => &EMBEDDINGS,
        };
        let read = Fields::of(shape, body, "").and_then(of);
        let read = read.map_err(|error| match has_adapter {
            true => error.renamed("lora_path", "adapter").message().to_owned(),
            false => error.message().to_owned(),
        });
        if line.route == LineRoute::Chat
            && let Some(observer) = self.observer.take()
        {
            self.facts.format.note().iter().for_each(|note| observer.note(note));
        }
        let (request, draft) = read?;
        Ok((Request { class: Class::Batch, ..request }, draft))
    }

    fn scope<'a>(&'a self, said: &'a [u32], max_tokens: Option<u32>) -> RequestScope<'a> {
        RequestScope {
            facts: &self.facts,
            aliases: &NO_ALIASES,
            adapters: self.adapters.clone(),
            others: &[],
            tenant: 0,
            record: None,
            date: self.date,
            within: None,
            said,
            max_tokens,
            // The author of the file runs the program.
            grammars: true,
        }
    }

    fn completion(&self, mut fields: Fields, said: &[u32]) -> Result<(Request, PendingAnswer), ApiError> {
        fields.text("session")?;
        let scope = self.scope(said, self.max_tokens.or(Some(MAX_TOKENS)));
        let mut asked = completions::take(&scope, fields)?;
        check(&asked.unknown, asked.shows.n, asked.streams)?;
        let (Some(request), 1) = (asked.ask.pop(), asked.shows.prompts.len()) else {
            let message = format!("`prompt` has {} prompts: give a line for each", asked.shows.prompts.len());
            return Err(ApiError::field("prompt", message));
        };
        let head = AnswerHead::new("cmpl-", &asked.model, &self.facts);
        let kind = AnswerKind::Completion(Box::new(asked.shows), completions::PendingCompletion::default());
        Ok((request, PendingAnswer { head, kind }))
    }

    fn vector(&self, fields: Fields) -> Result<(Request, PendingAnswer), ApiError> {
        let (request, shows) = Embeddings::of_line(&self.scope(&[], None), fields)?;
        let head = AnswerHead::new("embd-", &shows.model, &self.facts);
        Ok((request, PendingAnswer { head, kind: AnswerKind::Vector(shows) }))
    }

    fn chat(&self, fields: Fields) -> Result<(Request, PendingAnswer), ApiError> {
        let asked = request::take(&self.scope(&[], self.max_tokens), fields)?;
        check(&asked.unknown, asked.shows.n as usize, asked.streams)?;
        let effort = asked.ask.conversation.effort.name();
        let (request, pieces) = PreparedTurn::new(&self.facts, asked.ask)?.parts();
        let message = if asked.shows.is_older { Message::older() } else { Message::default() };
        let head = AnswerHead::new("chatcmpl-", &asked.model, &self.facts);
        Ok((request, PendingAnswer { head, kind: AnswerKind::Chat(Box::new((pieces, message)), effort) }))
    }
}

/// Puts in what a body leaves out, so that every run gives the same; whether it has its adapter in `adapter`,
/// the short form's name for it.
fn usual(fields: &mut Map<String, Value>, route: LineRoute, model: &str) -> bool {
    if fields.get("model").is_some_and(|name| name == "") {
        fields.remove("model");
    }
    let sampling = [("temperature", json!(0.6)), ("top_p", json!(0.9))];
    let sampling = sampling.into_iter().filter(|_| route == LineRoute::Completions);
    let seed = (route != LineRoute::Embeddings).then(|| ("seed", json!(0)));
    for (field, value) in [("model", json!(model))].into_iter().chain(seed).chain(sampling) {
        if fields.get(field).is_none_or(Value::is_null) {
            fields.insert(field.to_owned(), value);
        }
    }
    let adapter = if fields.contains_key("lora_path") { None } else { fields.remove("adapter") };
    let has_adapter = adapter.is_some();
    fields.extend(adapter.map(|adapter| ("lora_path".to_owned(), adapter)));
    has_adapter
}

/// Checks what the routes take and a batch does not.
fn check(unknown: &[String], n: usize, streams: bool) -> Result<(), ApiError> {
    if let Some(unknown) = unknown.first() {
        return Err(ApiError::field(unknown, format!("unknown field `{unknown}`")));
    }
    if n != 1 {
        let message = "`n` other than 1 is not served: give a line for each answer";
        return Err(ApiError::field("n", message));
    }
    if streams {
        return Err(ApiError::field("stream", "`stream` is of no use in a batch: leave it out"));
    }
    Ok(())
}

/// An answer in the making.
pub struct PendingAnswer {
    head: AnswerHead,
    kind: AnswerKind,
}

/// The kind of answer that a route makes.
enum AnswerKind {
    Completion(Box<completions::Shows>, completions::PendingCompletion),
    /// With the effort of the conversation.
    Chat(Box<(Pieces, Message)>, &'static str),
    Vector(Embeddings),
}

impl PendingAnswer {
    /// Takes the next token; whether more of them are needed.
    pub fn take(&mut self, facts: &BackendInfo, token: Token) -> bool {
        match &mut self.kind {
            AnswerKind::Completion(_, draft) => {
                draft.take(token);
                true
            }
            AnswerKind::Vector(_) => true,
            AnswerKind::Chat(parts, _) => {
                let (pieces, message) = &mut **parts;
                // The tokenizer was read before the first line.
                if let Ok(tokenizer) = facts.tokenizer() {
                    pieces.take(tokenizer, token);
                }
                give(pieces, message);
                !pieces.has_ended()
            }
        }
    }

    /// Tokens that a session has said with this answer.
    pub fn said(&self, answer: &Answer) -> Vec<u32> {
        match &self.kind {
            AnswerKind::Completion(asked, _) => [&asked.prompts[0], asked.made(answer)].concat(),
            AnswerKind::Chat(..) | AnswerKind::Vector(_) => Vec::new(),
        }
    }

    /// The body of the answer, which has ended; `session` is the one that it is a turn of.
    ///
    /// # Errors
    /// When the text has no answer, with the reason.
    pub fn finish(
        self,
        facts: &BackendInfo,
        answer: &Answer,
        session: Option<&str>,
    ) -> Result<Value, String> {
        let say = |error: ApiError| error.message().to_owned();
        match self.kind {
            AnswerKind::Completion(asked, draft) => {
                let choice = draft.choice(facts, &asked, 0, answer).map_err(say)?;
                let mut body = asked.object(&self.head, vec![choice], from_ref(answer));
                // The ids serve clients that go on from the answer, and this batch after a stop.
                body["choices"][0]["token_ids"] = json!(asked.made(answer));
                body["usage"]["prompt_tokens_details"]["disk_tokens"] = json!(answer.disk_tokens);
                if let Some(session) = session {
                    body["session"] = json!(session);
                }
                Ok(body)
            }
            AnswerKind::Vector(shows) => match answer.values.is_empty() {
                true => Err(answer
                    .finish
                    .error()
                    .map_or_else(|| "the answer has no end".into(), |it| it.to_string())),
                false => Ok(shows.object(from_ref(answer))),
            },
            AnswerKind::Chat(parts, effort) => {
                let (mut pieces, mut message) = *parts;
                pieces.done(answer.clone());
                let outcome = give(&mut pieces, &mut message).ok_or("the answer has no end")?;
                if let Some(error) = outcome.error() {
                    return Err(say(error));
                }
                let choice = message.choice(facts, 0, &outcome);
                Ok(completion(&self.head, vec![choice], &[outcome], effort))
            }
        }
    }
}

/// Puts the pieces that are there into a message; how the answer ended, if it has.
fn give(pieces: &mut Pieces, message: &mut Message) -> Option<TurnOutcome> {
    std::iter::from_fn(|| pieces.pop()).fold(None, |_, piece| message.take(piece))
}

#[cfg(test)]
mod tests {
    use super::COMPLETION_LINE;

    #[test]
    fn the_fields_of_the_document_are_those_of_a_line() {
        let text = include_str!("../../../docs/user/batch.md");
        let table =
            text.split_once("| field | meaning | without it |\n").unwrap().1.split("\n\n").next().unwrap();
        let known = COMPLETION_LINE.fields();
        for row in table.lines().skip(1) {
            for name in row.split('|').nth(1).unwrap().split(", ").map(|name| name.trim().trim_matches('`')) {
                let is_own = ["id", "custom_id", "adapter"].contains(&name);
                assert!(is_own || known.iter().any(|field| field.name == name), "{name}");
            }
        }
    }
}
