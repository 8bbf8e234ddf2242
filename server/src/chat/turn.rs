//! A model's turn: from a conversation to the pieces of an answer. All APIs of conversations go through it.

use super::pieces::{AnswerPiece, Pieces};
use crate::backend::{Backend, BackendInfo, Running};
use crate::error::ApiError;
use crate::prompt;
pub use crate::prompt::tokenizer;
use kernmill_chat as chat;
use kernmill_chat::{Conversation, ToolChoice, TurnError, TurnOptions};
use kernmill_constrain::{Constraint, Rule};
use kernmill_runtime::AdapterUse;
use kernmill_runtime::SamplerParams;
use kernmill_serve::{Answer, Class, Finish, Request, RequestEvent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A request for a turn of a model.
#[derive(Clone, Debug)]
pub struct TurnRequest {
    /// The conversation so far.
    pub conversation: Conversation,
    /// Ids of messages that the model generated, by the place of their item, where they are known.
    pub known: BTreeMap<usize, Vec<u32>>,
    /// Names of functions that stand for custom tools: a call of one comes as its input.
    pub customs: BTreeSet<String>,
    /// Whether tools are called.
    pub choice: ToolChoice,
    /// Whether the turn has one call at most.
    pub one_call: bool,
    /// Names of the functions that may be called; `None` for all that are declared.
    pub allowed: Option<Vec<String>>,
    /// Whether the turn goes on in the conversation's last item, an answer that is not finished.
    pub continues: bool,
    /// A form that the answer has, in place of that of the conversation.
    pub form: Option<Rule>,
    /// Field that the form came from, of the conversation's form too, for errors.
    pub form_field: String,
    /// Whether steps may check guesses of how the answer goes on.
    pub drafts: bool,
    /// Text that much of the answer is likely to repeat.
    pub prediction: Option<String>,
    /// Tokens that are generated at most; `None` goes on until the context is full.
    pub max_tokens: Option<u32>,
    /// Field that `max_tokens` or the conversation came from, for errors.
    pub param: &'static str,
    /// How tokens are chosen.
    pub sampler: SamplerParams,
    /// Strings that end the answer.
    pub stop: Vec<String>,
    /// Tokens that end the answer, besides those of the model.
    pub stop_tokens: Vec<u32>,
    /// How many of the likeliest tokens are listed at each token of the answer.
    pub logprobs: Option<u32>,
    /// Adapters of all tokens.
    pub adapters: Vec<AdapterUse>,
    /// Whose share of the machine is used.
    pub tenant: u64,
    /// Name of the part of the prefix cache that is used; zeros for that of all who name none.
    pub salt: [u8; 16],
    /// The kind of work.
    pub class: Class,
    /// Time after which the answer is cut.
    pub within: Option<Duration>,
}

/// A turn that is ready to be run.
pub struct PreparedTurn {
    request: Request,
    turn: chat::Turn,
    customs: BTreeSet<String>,
}

impl PreparedTurn {
    /// Renders a conversation and checks what is asked. That takes time with the length of the conversation:
    /// callers do it on a thread that may wait.
    ///
    /// # Errors
    /// When the format refuses the conversation, it does not fit the context, or a form cannot be held to.
    pub fn new(facts: &BackendInfo, ask: TurnRequest) -> Result<PreparedTurn, ApiError> {
        prompt::check(facts, "messages", &ask.conversation)?;
        let options = TurnOptions {
            choice: ask.choice.clone(),
            allowed: ask.allowed.clone(),
            one_call: ask.one_call,
            form: ask.form.clone(),
            stop: ask.stop.clone(),
            continues: ask.continues,
        };
        let (tokenizer, ends) = (tokenizer(facts)?, &facts.end_tokens);
        let turn = chat::Turn::new(tokenizer, &facts.format, &ask.conversation, &ask.known, options, ends);
        let turn = turn.map_err(|error| refused(&ask, &error))?;
        PreparedTurn::of(facts, ask, turn)
    }

    /// Makes ready a text that goes on from a prompt as it stands: the model's format is neither put around
    /// it nor looked for in what comes.
    ///
    /// # Errors
    /// When the prompt has no tokens or does not fit the context, or a form cannot be held to.
    pub fn raw(facts: &BackendInfo, text: &str, ask: TurnRequest) -> Result<PreparedTurn, ApiError> {
        let prompt = prompt::encode(facts, "prompt", text, true)?;
        if prompt.is_empty() {
            return Err(ApiError::field("prompt", "`prompt` has no tokens, expected at least one"));
        }
        let schema = ask.conversation.format.as_ref().map(|format| Rule::JsonSchema(format.schema.clone()));
        let form = ask.form.clone().or(schema);
        let turn = chat::Turn::raw(tokenizer(facts)?, prompt, form, ask.stop.clone(), &facts.end_tokens);
        PreparedTurn::of(facts, ask, turn)
    }

    fn of(facts: &BackendInfo, ask: TurnRequest, mut turn: chat::Turn) -> Result<PreparedTurn, ApiError> {
        turn.stop_tokens.extend(&ask.stop_tokens);
        let prompt = std::mem::take(&mut turn.prompt);
        let room = (facts.context as usize).saturating_sub(prompt.len()) as u32;
        if room == 0 || ask.max_tokens.is_some_and(|asked| asked > room) {
            return Err(ApiError::context(ask.param, prompt.len(), ask.max_tokens, facts.context));
        }
        let constraint =
            turn.constraint(facts.lexicon().map_err(ApiError::internal)?, &ask.conversation.tools);
        let constraint = constraint.map_err(|error| refused(&ask, &error))?;
        // A prediction that cannot be read is dropped: it changes nothing of the answer.
        let prediction = ask.prediction.filter(|_| ask.drafts);
        let tokenizer = tokenizer(facts)?;
        let prediction = prediction.and_then(|text| tokenizer.encode_ordinary(&text).ok());
        let request = Request {
            prediction: prediction.unwrap_or_default(),
            drafts: ask.drafts,
            max_tokens: ask.max_tokens.unwrap_or(room),
            sampler: ask.sampler,
            logprobs: ask.logprobs,
            stop_tokens: turn.stop_tokens.clone(),
            adapters: ask.adapters,
            tenant: ask.tenant,
            salt: ask.salt,
            class: ask.class,
            within: ask.within,
            constraint,
            ..Request::greedy(prompt, 1)
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
