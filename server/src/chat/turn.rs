//! A model's turn: from a conversation to the pieces of an answer. All APIs of conversations go through it.

use super::pieces::{AnswerPiece, Pieces};
use crate::backend::{Backend, BackendInfo, Running};
use crate::error::ApiError;
use crate::prompt;
pub use crate::prompt::tokenizer;
use kernmill_chat as chat;
use kernmill_chat::{Conversation, TurnError, TurnOptions};
use kernmill_constrain::{Constraint, Rule};
use kernmill_serve::{Answer, Finish, Request, RequestEvent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A request for a turn of a model.
#[derive(Clone, Debug)]
pub struct TurnRequest {
    /// The conversation so far.
    pub conversation: Conversation,
    /// Ids of messages that the model generated, by the place of their item, where they are known.
    pub known: BTreeMap<usize, Vec<u32>>,
    /// Names of functions that stand for custom tools: a call of one comes as its input.
    pub customs: BTreeSet<String>,
    /// Wishes about the turn.
    pub wishes: TurnOptions,
    /// Field that the form came from, of the conversation's form too, for errors.
    pub form_field: String,
    /// Text that much of the answer is likely to repeat.
    pub prediction: Option<String>,
    /// Tokens that are generated at most; `None` goes on until the context is full.
    pub max_tokens: Option<u32>,
    /// Field that `max_tokens` or the conversation came from, for errors.
    pub param: &'static str,
    /// A prompt that goes to the model as it stands, in place of the conversation.
    pub raw: Option<String>,
    /// The text that is made: all but its prompt, its end, and what it is held to.
    pub request: Request,
}

impl TurnRequest {
    /// The next turn of a conversation, or of what else the field `param` has.
    pub fn new(conversation: Conversation, param: &'static str, request: Request) -> TurnRequest {
        TurnRequest {
            conversation,
            known: BTreeMap::new(),
            customs: BTreeSet::new(),
            wishes: TurnOptions::default(),
            form_field: String::new(),
            prediction: None,
            max_tokens: None,
            param,
            raw: None,
            request,
        }
    }
}

/// A turn that is ready to be run.
pub struct PreparedTurn {
    request: Request,
    turn: chat::Turn,
    customs: BTreeSet<String>,
}

impl PreparedTurn {
    /// Renders a conversation and checks what is asked. That takes time with the length of the conversation:
    /// callers do it on a thread that may wait. Around a raw prompt the model's format is not put, nor looked
    /// for in what comes.
    ///
    /// # Errors
    /// When the format refuses the conversation, it does not fit the context, or a form cannot be held to.
    pub fn new(facts: &BackendInfo, ask: TurnRequest) -> Result<PreparedTurn, ApiError> {
        let param = ask.param;
        PreparedTurn::of(facts, ask).map_err(|error| error.renamed("messages", param))
    }

    fn of(facts: &BackendInfo, mut ask: TurnRequest) -> Result<PreparedTurn, ApiError> {
        let (ends, wishes) = (&facts.end_tokens, std::mem::take(&mut ask.wishes));
        let turn = if let Some(text) = &ask.raw {
            let prompt = prompt::encode(facts, "prompt", text, true)?;
            if prompt.is_empty() {
                return Err(ApiError::field("prompt", "`prompt` has no tokens, expected at least one"));
            }
            let schema = ask.conversation.format.as_ref();
            let schema = schema.map(|format| Rule::JsonSchema(format.schema.clone()));
            Ok(chat::Turn::raw(tokenizer(facts)?, prompt, wishes.form.or(schema), wishes.stop, ends))
        } else {
            prompt::check(facts, "messages", &ask.conversation)?;
            let (conversation, known) = (&ask.conversation, &ask.known);
            chat::Turn::new(tokenizer(facts)?, &facts.format, conversation, known, wishes, ends)
        };
        let mut turn = turn.map_err(|error| refused(&ask, &error))?;
        turn.stop_tokens.append(&mut ask.request.stop_tokens);
        let prompt = std::mem::take(&mut turn.prompt);
        let room = (facts.context as usize).saturating_sub(prompt.len()) as u32;
        if room == 0 || ask.max_tokens.is_some_and(|asked| asked > room) {
            return Err(ApiError::context(ask.param, prompt.len(), ask.max_tokens, facts.context));
        }
        let constraint =
            turn.constraint(facts.lexicon().map_err(ApiError::internal)?, &ask.conversation.tools);
        let constraint = constraint.map_err(|error| refused(&ask, &error))?;
        // A prediction that cannot be read is left out: it changes nothing of the answer.
        let prediction = ask.prediction.filter(|_| ask.request.drafts);
        let tokenizer = tokenizer(facts)?;
        let prediction = prediction.and_then(|text| tokenizer.encode_ordinary(&text).ok());
        let request = Request {
            prompt,
            prediction: prediction.unwrap_or_default(),
            max_tokens: ask.max_tokens.unwrap_or(room),
            stop_tokens: turn.stop_tokens.clone(),
            constraint,
            ..ask.request
        };
        Ok(PreparedTurn { request, turn, customs: ask.customs })
    }

    /// Tokens of the prompt.
    pub fn prompt_tokens(&self) -> usize {
        self.request.prompt.len()
    }

    /// Ids of the prompt.
    pub fn prompt(&self) -> &[u32] {
        &self.request.prompt
    }

    /// A copy of the turn with another seed.
    pub fn with_seed(&self, seed: u64) -> PreparedTurn {
        let mut request = self.request.clone();
        request.sampler.seed = Some(seed);
        PreparedTurn { request, turn: self.turn.clone(), customs: self.customs.clone() }
    }

    /// The seed of the choices.
    pub fn seed(&self) -> u64 {
        self.request.sampler.seed.unwrap_or_default()
    }

    /// The request for the engine, and what makes pieces of its tokens.
    pub fn parts(self) -> (Request, Pieces) {
        let (seed, prompt_tokens) = (self.seed(), self.request.prompt.len() as u32);
        (self.request, Pieces::new(self.turn, self.customs, prompt_tokens, seed))
    }

    /// Hands the turn to a backend by `submit`.
    pub fn start(self, backend: Arc<dyn Backend>, submit: impl FnOnce(Request) -> Running) -> RunningTurn {
        let (request, pieces) = self.parts();
        RunningTurn { running: Some(submit(request)), backend, pieces }
    }
}

/// The error of a request whose turn is refused: it names the field at fault.
fn refused(ask: &TurnRequest, error: &TurnError) -> ApiError {
    let field = match error {
        TurnError::Conversation(_) => "messages",
        TurnError::Choice(_) => "tool_choice",
        TurnError::Function(_) => "tools",
        TurnError::Form(_) => &ask.form_field,
    };
    ApiError::field(field, error.to_string())
}

/// The constraint that holds a text to a rule, which the field `param` gives.
///
/// # Errors
/// When the rule cannot be followed.
pub fn held_to(facts: &BackendInfo, rule: &Rule, param: &str) -> Result<Constraint, ApiError> {
    let lexicon = facts.lexicon().map_err(ApiError::internal)?;
    Constraint::new(lexicon, rule).map_err(|error| ApiError::field(param, error.to_string()))
}

/// An answer that is being made. Dropping it cancels it.
pub struct RunningTurn {
    backend: Arc<dyn Backend>,
    /// Until it has ended.
    running: Option<Running>,
    pieces: Pieces,
}

impl RunningTurn {
    /// Waits until the turn is taken up, and before a stream until there is something to send.
    ///
    /// # Errors
    /// When it is not taken up.
    pub async fn ready(&mut self, is_stream: bool) -> Result<(), ApiError> {
        match &mut self.running {
            Some(running) => Ok(running.ready(is_stream).await?),
            None => Ok(()),
        }
    }

    /// Ids that have come so far.
    pub fn tokens(&self) -> &[u32] {
        self.pieces.tokens()
    }

    /// The next piece; `None` after the last one, which is [`AnswerPiece::Done`].
    pub async fn next(&mut self) -> Option<AnswerPiece> {
        loop {
            if let Some(piece) = self.pieces.pop() {
                return Some(piece);
            }
            if let Err(error) = self.ready(false).await {
                self.running = None;
                let answer = self.pieces.so_far();
                self.pieces.end(Err(error), answer);
                continue;
            }
            let running = self.running.as_mut()?;
            match running.next().await {
                Some(RequestEvent::Token(token)) => {
                    let had_ended = self.pieces.has_ended();
                    // The backend's tokenizer was read before the turn began.
                    if let Ok(tokenizer) = tokenizer(self.backend.facts()) {
                        self.pieces.take(tokenizer, token);
                    }
                    if self.pieces.has_ended() && !had_ended {
                        // The figures come with the end.
                        running.cancel();
                    }
                    continue;
                }
                Some(RequestEvent::Done(answer)) => {
                    let reason = self.pieces.done(*answer);
                    running.finished(reason);
                }
                None => {
                    let why = "the engine has failed: the log says why".to_owned();
                    let answer = Answer { finish: Finish::Failed(why), ..self.pieces.so_far() };
                    self.pieces.done(answer);
                }
            }
            self.running = None;
        }
    }
}
