//! A reply of a model, as it comes.

use super::parts::{ConversationItems, ReplyItems};
use crate::error::{Error, Result};
use kernmill_chat::{AnswerPart, Call, Event, Item, Turn};
use kernmill_runtime::TokenizerHandle;
use kernmill_serve::{Finish, Text};
use std::collections::VecDeque;

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// More of what the model thinks before it answers.
    Reasoning(String),
    /// More of what the model says before it calls a function.
    Preamble(String),
    /// More of the answer.
    Answer(String),
    /// A whole call of a function. [`Chat::give`](super::Chat::give) gives its result.
    Call(Call),
}

/// Figures of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// Tokens of the prompt: the whole conversation.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were in the prefix cache, and were not run.
    pub cached_tokens: u32,
    /// Tokens that were generated, a stop token not included.
    pub tokens: Vec<u32>,
    /// Why the answer ended.
    pub finish: Finish,
    /// Seed of the choices.
    pub seed: u64,
    /// Seconds of reading the prompt.
    pub prefill_seconds: f64,
    /// Seconds of writing the answer.
    pub decode_seconds: f64,
    /// Tokens that were run within `decode_seconds`.
    pub decoded: u32,
}

/// A turn that has begun.
pub(super) struct BegunTurn {
    pub(super) turn: Turn,
    pub(super) parts: ReplyItems,
    pub(super) text: Text,
    /// Seed of the choices.
    pub(super) seed: u64,
    pub(super) tokenizer: TokenizerHandle,
    /// Whether the format goes on with the tokens that were generated.
    pub(super) is_plain: bool,
}

/// A reply as it comes: an iterator of its pieces. It is made while the caller does something else; dropping
/// it ends the reply, and what has come stays part of the conversation.
pub struct Reply<'a> {
    history: &'a mut ConversationItems,
    /// The items before the reply; they come back when no answer is made.
    before: Option<ConversationItems>,
    turn: Turn,
    parts: ReplyItems,
    /// `None` once it has ended.
    text: Option<Text>,
    seed: u64,
    tokenizer: TokenizerHandle,
    is_plain: bool,
    taken: usize,
    /// Events of the end.
    rest: VecDeque<Event>,
    /// The part that has begun, with its text if it is a call.
    open: Option<(AnswerPart, String)>,
    answered: Option<Answered>,
}

impl<'a> Reply<'a> {
    pub(super) fn new(
        history: &'a mut ConversationItems,
        before: ConversationItems,
        begun: BegunTurn,
    ) -> Reply<'a> {
        let BegunTurn { turn, parts, text, seed, tokenizer, is_plain } = begun;
        let (before, text) = (Some(before), Some(text));
        let (rest, open, answered) = (VecDeque::new(), None, None);
        Reply {
            history,
            before,
            turn,
            parts,
            text,
            seed,
            tokenizer,
            is_plain,
            taken: 0,
            rest,
            open,
            answered,
        }
    }

    /// The next event: a part begins, goes on or ends. `None` behind the last one.
    ///
    /// # Errors
    /// When the reply cannot be made any further. The message is then not part of the conversation.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.rest.pop_front() {
                return Ok(Some(event));
            }
            if let Some(piece) = self.turn.pop() {
                self.parts.push(piece.event.clone());
                return Ok(Some(piece.event));
            }
            let Some(text) = &mut self.text else { return Ok(None) };
            let next = text.next_token();
            if next.is_err() {
                // There is no answer: what has come goes with the message.
                self.text = None;
            }
            match next? {
                Some(token) => {
                    self.turn.push(self.tokenizer.get()?, token.id, &token.text);
                    self.taken += 1;
                    if self.turn.has_ended() {
                        // Pieces of the stop string's end come first.
                        self.gather();
                        self.end()?;
                    }
                }
                None => self.end()?,
            }
        }
    }

    /// The rest of the answer as one text, without reasoning and calls.
    ///
    /// # Errors
    /// When the reply cannot be made any further.
    pub fn text(mut self) -> Result<String> {
        let mut answer = String::new();
        for said in &mut self {
            if let Said::Answer(text) = said? {
                answer.push_str(&text);
            }
        }
        Ok(answer)
    }

    /// Figures of the reply; ends it if it has not ended.
    ///
    /// # Errors
    /// When the reply cannot be made any further.
    pub fn answered(mut self) -> Result<Answered> {
        self.end()?;
        // Without figures, it failed before.
        self.answered.take().ok_or_else(|| Error::failed("the reply has failed and cannot go on"))
    }

    /// Takes the pieces that are ready.
    fn gather(&mut self) {
        while let Some(piece) = self.turn.pop() {
            self.parts.push(piece.event.clone());
            self.rest.push_back(piece.event);
        }
    }

    /// Ends the reply, and makes it part of the conversation if it got so far.
    fn end(&mut self) -> Result<()> {
        let Some(text) = self.text.take() else { return Ok(()) };
        let mut answer = text.answer()?;
        if self.turn.has_ended() {
            answer.finish = Finish::Complete;
        }
        // Tokens in flight are not part of the answer.
        answer.tokens.truncate(self.taken);
        self.gather();
        self.turn.finish(answer.finish.is_complete());
        self.gather();
        let answered = Answered {
            prompt_tokens: answer.prompt_tokens,
            cached_tokens: answer.cached_tokens,
            seed: self.seed,
            prefill_seconds: answer.prefill_seconds(),
            decode_seconds: answer.decode_seconds(),
            decoded: answer.stepped,
            finish: answer.finish,
            tokens: answer.tokens,
        };
        if answered.finish != Finish::CANCELLED || !answered.tokens.is_empty() {
            self.before = None;
            self.keep(&answered.tokens);
        }
        self.answered = Some(answered);
        Ok(())
    }

    /// Makes the answer part of the conversation. Tokens with a stop string at the end do not stay.
    fn keep(&mut self, tokens: &[u32]) {
        let items: Vec<Item> = self.parts.take_items();
        let ConversationItems { conversation, answers } = &mut *self.history;
        if self.is_plain && !self.turn.has_ended() {
            answers.insert(conversation.items.len(), tokens.to_vec());
        }
        conversation.items.extend(items);
    }

    /// The piece of an event, once a whole piece of it is there.
    fn said(&mut self, event: Event) -> Option<Said> {
        match event {
            Event::Begin(part) => {
                self.open = Some((part, String::new()));
                None
            }
            Event::Delta(text) => match self.open.as_mut()? {
                (AnswerPart::Reasoning, _) => Some(Said::Reasoning(text)),
                (AnswerPart::Preamble, _) => Some(Said::Preamble(text)),
                (AnswerPart::Answer, _) => Some(Said::Answer(text)),
                (AnswerPart::Call { .. }, arguments) => {
                    arguments.push_str(&text);
                    None
                }
            },
            Event::End { .. } => match self.open.take()? {
                (AnswerPart::Call { name, is_builtin }, arguments) => {
                    let id = self.parts.last_call().unwrap_or_default().to_owned();
                    Some(Said::Call(Call { id, name, arguments, is_builtin }))
                }
                _ => None,
            },
        }
    }
}

impl Iterator for Reply<'_> {
    type Item = Result<Said>;

    fn next(&mut self) -> Option<Result<Said>> {
        loop {
            match self.next_event() {
                Ok(event) => {
                    if let Some(said) = self.said(event?) {
                        return Some(Ok(said));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        // A failure was told before, or nobody listens.
        let _ = self.end();
        if let Some(before) = self.before.take() {
            *self.history = before;
        }
    }
}
