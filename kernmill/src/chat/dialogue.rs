//! A conversation with a model: every turn only computes what is new.

use super::parts::Parts;
use super::saved::SavedConversation;
use super::templates::format_of;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::text::Model;
use kernmill_chat::{Call, Conversation, Effort, Event, Format, Item, Output, Tool, Turn, TurnOptions};
use kernmill_runtime::{AdapterUse, TokenizerHandle};
use kernmill_serve::{Finish, Request};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A conversation with a model.
///
/// The prompt of a turn is the whole conversation, and the engine's prefix cache has the beginning of it.
pub struct Dialogue {
    model: Model,
    format: Format,
    tokenizer: TokenizerHandle,
    conversation: Conversation,
    /// Ids of answers, by the place of their item, of formats that continue with what was generated.
    answers: BTreeMap<usize, Vec<u32>>,
    /// How answers are made.
    request: Request,
    /// Answers that the last message had before this one.
    retries: u64,
}

/// Figures of an answer.
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

impl Answered {
    /// Why the answer ended, in a word for reports.
    pub fn end(&self) -> &'static str {
        match &self.finish {
            Finish::MaxTokens => "max_tokens",
            Finish::Context => "context",
            finish if finish.is_complete() => "complete",
            _ => "interrupt",
        }
    }
}

/// Receives the events of an answer, and may end it.
pub(super) type OnEvent<'a> = dyn FnMut(&Event) -> ControlFlow<()> + 'a;

impl Dialogue {
    /// A conversation that begins. `request` says how answers are made; where these end is the format's
    /// affair.
    ///
    /// # Errors
    /// When the model has no tokenizer, or its chat template is of no use.
    pub fn new(model: Model, request: Request) -> Result<Dialogue> {
        let tokenizer = model.tokenizer().cloned().ok_or_else(|| {
            Error::BadInput(
                "the model has no tokenizer: put its tokenizer.json beside the weights".to_owned(),
            )
        })?;
        let read = tokenizer.get()?;
        let format = format_of(read, model.image().chat_templates(), model.end_tokens())?;
        if let Format::Unusable(why) = format {
            return Err(Error::BadInput(why));
        }
        Ok(Dialogue {
            model,
            request,
            format,
            tokenizer,
            conversation: Conversation::default(),
            answers: BTreeMap::new(),
            retries: 0,
        })
    }

    /// The model's format of conversations.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// What was said.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// What the user said last.
    pub fn last_message(&self) -> Option<&str> {
        self.conversation.items.iter().rev().find_map(|item| match item {
            Item::User { text, .. } => Some(&**text),
            _ => None,
        })
    }

    /// The instructions at the beginning.
    pub fn instructions(&self) -> Option<&str> {
        match self.conversation.items.first() {
            Some(Item::Instructions(text)) => Some(text),
            _ => None,
        }
    }

    /// Sets the instructions at the beginning; an empty text takes them away.
    pub fn instruct(&mut self, text: &str) {
        let had = usize::from(self.instructions().is_some());
        self.conversation.items.drain(..had);
        let has = usize::from(!text.is_empty());
        if has == 1 {
            self.conversation.items.insert(0, Item::Instructions(text.to_owned()));
        }
        let answers = std::mem::take(&mut self.answers);
        self.answers = answers.into_iter().map(|(at, ids)| (at + has - had, ids)).collect();
    }

    /// Sets how long the model shall reason. A sentence that says so if it changes nothing.
    pub fn set_effort(&mut self, effort: Effort) -> Option<&'static str> {
        self.conversation.effort = effort;
        matches!(self.format, Format::Plain { .. })
            .then_some("this model has no format that says how long to reason: the effort changes nothing")
    }

    /// Sets the adapters of the turns that follow.
    pub fn set_adapters(&mut self, adapters: Vec<AdapterUse>) {
        self.request.adapters = adapters;
    }

    /// Names of the adapters.
    pub fn adapters(&self) -> Vec<String> {
        self.request.adapters.iter().map(|adapter| adapter.name.clone()).collect()
    }

    /// Forgets what was said, but for the instructions.
    pub fn clear(&mut self) {
        self.cut(usize::from(self.instructions().is_some()));
        self.retries = 0;
    }

    /// Says something; the model's answer is given to `on_event` as it comes. Ctrl-C ends the answer. A
    /// message that has no answer is not part of the conversation.
    ///
    /// # Errors
    /// When the conversation does not fit the context, its format refuses it, or a step fails.
    pub fn say(
        &mut self,
        text: &str,
        interrupt: &mut Interrupt,
        on_event: &mut OnEvent<'_>,
    ) -> Result<Answered> {
        self.give_up_calls();
        let at = self.conversation.items.len();
        self.retries = 0;
        self.conversation.items.push(Item::User { name: None, text: text.to_owned() });
        let turn = self.answer(interrupt, on_event);
        if !turn.as_ref().is_ok_and(has_answer) {
            self.cut(at);
        }
        turn
    }

    /// Answers the last message once more, with the next seed.
    ///
    /// # Errors
    /// When nothing was said, and as those of [`Dialogue::say`].
    pub fn retry(&mut self, interrupt: &mut Interrupt, on_event: &mut OnEvent<'_>) -> Result<Answered> {
        let at = self.last_user()?;
        self.retries += 1;
        self.instead(at + 1, |dialogue| dialogue.answer(interrupt, on_event))
    }

    /// Says something else instead of the last message.
    ///
    /// # Errors
    /// When nothing was said, and as those of [`Dialogue::say`].
    pub fn edit(
        &mut self,
        text: &str,
        interrupt: &mut Interrupt,
        on_event: &mut OnEvent<'_>,
    ) -> Result<Answered> {
        let at = self.last_user()?;
        self.instead(at, |dialogue| dialogue.say(text, interrupt, on_event))
    }

    /// The functions that the model may call.
    pub fn tools(&self) -> &[Tool] {
        &self.conversation.tools
    }

    /// Sets the functions that the model may call. A sentence that says so if it changes nothing.
    pub fn set_tools(&mut self, tools: Vec<Tool>) -> Option<&'static str> {
        self.conversation.tools = tools;
        matches!(self.format, Format::Plain { .. })
            .then_some("this model has no format that tells it of functions: it will call none")
    }

    /// Calls of the last answer that have no result yet.
    pub fn open_calls(&self) -> Vec<&Call> {
        let items = &self.conversation.items;
        let has_output = |id: &str| items.iter().any(|item| matches!(item, Item::Output(o) if o.id == id));
        let calls = items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            _ => None,
        });
        calls.filter(|call| !has_output(&call.id)).collect()
    }

    /// Gives the results of [`Dialogue::open_calls`], in their order; the model goes on with them. Without an
    /// answer, the calls are open again.
    ///
    /// # Errors
    /// As those of [`Dialogue::say`].
    pub fn give(
        &mut self,
        results: Vec<String>,
        interrupt: &mut Interrupt,
        on_event: &mut OnEvent<'_>,
    ) -> Result<Answered> {
        let at = self.conversation.items.len();
        self.put_results(results);
        let turn = self.answer(interrupt, on_event);
        if !turn.as_ref().is_ok_and(has_answer) {
            self.cut(at);
        }
        turn
    }

    /// Tells the model that its open calls have no results.
    pub fn give_up_calls(&mut self) {
        let results = vec!["error: there is no result".to_owned(); self.open_calls().len()];
        self.put_results(results);
    }

    fn put_results(&mut self, results: Vec<String>) {
        let calls = self.open_calls().into_iter().cloned();
        let outputs = calls.zip(results).map(|(call, text)| {
            Item::Output(Output { id: call.id, name: call.name, text, is_builtin: call.is_builtin })
        });
        let outputs: Vec<Item> = outputs.collect();
        self.conversation.items.extend(outputs);
    }

    /// What the model reasoned last.
    pub fn last_reasoning(&self) -> Option<&str> {
        self.conversation.items.iter().rev().find_map(|item| match item {
            Item::Reasoning(text) => Some(&**text),
            _ => None,
        })
    }

    /// The conversation as a file may have it.
    pub fn to_saved(&self) -> SavedConversation {
        let seed = self.request.sampler.seed.unwrap_or_default();
        let (conversation, answers) = (self.conversation.clone(), self.answers.clone());
        SavedConversation::new(model_name(&self.model), self.adapters(), seed, conversation, answers)
    }

    /// Goes on with a conversation from a file, with its seed. The adapters stay those of now. A sentence
    /// that says what is different from when it was saved, if something is.
    ///
    /// # Errors
    /// When the file's answers are not of this vocabulary.
    pub fn load(&mut self, saved: SavedConversation) -> Result<Option<String>> {
        let is_same = saved.model == model_name(&self.model);
        let vocab = self.model.vocab() as u32;
        let wrong = saved.answers.values().flatten().find(|id| **id >= vocab);
        if let Some(id) = wrong.filter(|_| is_same) {
            let what = format!("an answer has token {id}, expected ids below {vocab}, the vocabulary");
            return Err(Error::BadInput(what));
        }
        self.conversation = saved.conversation;
        self.answers = if is_same { saved.answers } else { BTreeMap::new() };
        self.request.sampler.seed = Some(saved.seed);
        self.retries = 0;
        let (then, now) = (saved.adapters.join(", "), self.adapters().join(", "));
        let or_none = |names: &str| if names.is_empty() { "no adapter".to_owned() } else { names.to_owned() };
        Ok(if !is_same {
            Some(format!("the answers so far are of {}, this is {}", saved.model, model_name(&self.model)))
        } else if then != now {
            Some(format!("it was saved with {}, and goes on with {}", or_none(&then), or_none(&now)))
        } else {
            None
        })
    }

    fn last_user(&self) -> Result<usize> {
        let is_user = |item: &Item| matches!(item, Item::User { .. });
        let nothing = || Error::BadInput("nothing has been said yet".to_owned());
        self.conversation.items.iter().rposition(is_user).ok_or_else(nothing)
    }

    /// Takes away all items from one on.
    fn cut(&mut self, at: usize) {
        self.conversation.items.truncate(at);
        self.answers.split_off(&at);
    }

    /// Another turn instead of the items from one on. They come back where it has no answer.
    fn instead(
        &mut self,
        at: usize,
        turn: impl FnOnce(&mut Dialogue) -> Result<Answered>,
    ) -> Result<Answered> {
        let (old, answers) = (self.conversation.items.clone(), self.answers.clone());
        self.cut(at);
        let turn = turn(self);
        if !turn.as_ref().is_ok_and(has_answer) {
            (self.conversation.items, self.answers) = (old, answers);
        }
        turn
    }

    /// Answers the conversation as it is.
    fn answer(&mut self, interrupt: &mut Interrupt, on_event: &mut OnEvent<'_>) -> Result<Answered> {
        let handle = self.tokenizer.clone();
        let vocabulary = handle.get()?;
        let options = TurnOptions { stop: self.request.stop.clone(), ..TurnOptions::default() };
        let (said, ends) = (&self.conversation, self.model.end_tokens());
        let mut turn = Turn::new(vocabulary, &self.format, said, &self.answers, options, ends)?;
        let prompt = std::mem::take(&mut turn.prompt);
        check_room(&self.model, prompt.len())?;
        let seed = self.request.sampler.seed.unwrap_or_default().wrapping_add(self.retries);
        let mut request = Request {
            prompt,
            stop: Vec::new(),
            stop_tokens: turn.stop_tokens.clone(),
            cancelled: Some(interrupt.flag()),
            ..self.request.clone()
        };
        request.sampler.seed = Some(seed);
        interrupt.clear();
        interrupt.watch();
        let mut text = self.model.thread().text(request)?;
        let mut parts = Parts::new(&self.conversation);
        let mut give = |turn: &mut Turn| {
            std::iter::from_fn(|| turn.pop()).try_for_each(|piece| {
                let flow = on_event(&piece.event);
                parts.push(piece.event);
                flow
            })
        };
        let mut taken = 0;
        while let Some(token) = text.next_token()? {
            turn.push(vocabulary, token.id, &token.text);
            taken += 1;
            if give(&mut turn).is_break() || turn.has_ended() {
                break;
            }
        }
        let mut answer = text.answer()?;
        if turn.has_ended() {
            answer.finish = Finish::Complete;
        }
        // What was on its way is not part of the answer.
        answer.tokens.truncate(taken);
        turn.finish(answer.finish.is_complete());
        // Where nobody listens any more, there is nobody to tell.
        let _ = give(&mut turn);
        let answered = Answered {
            prompt_tokens: answer.prompt_tokens,
            cached_tokens: answer.cached_tokens,
            seed,
            prefill_seconds: answer.prefill_seconds(),
            decode_seconds: answer.decode_seconds(),
            decoded: answer.stepped,
            finish: answer.finish,
            tokens: answer.tokens,
        };
        if has_answer(&answered) {
            self.keep(parts, &answered.tokens, turn.has_ended());
        }
        Ok(answered)
    }

    /// Makes an answer part of the conversation. `is_cut` says that the tokens have a stop string at the end.
    fn keep(&mut self, parts: Parts, tokens: &[u32], is_cut: bool) {
        let items = parts.into_items();
        if matches!(self.format, Format::Plain { .. }) && !is_cut {
            self.answers.insert(self.conversation.items.len(), tokens.to_vec());
        }
        self.conversation.items.extend(items);
    }
}

/// Whether a turn got so far that it is part of the conversation.
fn has_answer(turn: &Answered) -> bool {
    turn.finish != Finish::CANCELLED || !turn.tokens.is_empty()
}

/// Checks that a prompt of `tokens` tokens leaves room for an answer.
fn check_room(model: &Model, tokens: usize) -> Result<()> {
    let (context, longest) = (model.context(), model.image().program().model.max_context);
    if tokens < context as usize {
        return Ok(());
    }
    let more = if context < longest {
        format!(", or start with a larger --context (at most {longest}, the model's longest)")
    } else {
        String::new()
    };
    Err(Error::BadInput(format!(
        "the context is full: the conversation has {tokens} tokens with this message, the context holds {context}: \
         say less, begin anew with /clear{more}"
    )))
}

/// The model, for people and for comparing.
fn model_name(model: &Model) -> String {
    let model = &model.image().program().model;
    format!("{}, preset {}", model.name, model.preset)
}
