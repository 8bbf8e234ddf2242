//! A conversation with a model: every turn only computes what is new.

use super::parts::{ConversationItems, ReplyItems};
use super::reply::{BegunTurn, Reply};
use super::saved::SavedConversation;
use super::templates::format_of;
use crate::error::{Error, Result};
use crate::text::{Model, Sampling};
use kernmill_chat::{Call, Conversation, Effort, Format, Item, Output, Tool, Turn, TurnOptions};
use kernmill_constrain::Rule;
use kernmill_runtime::{AdapterUse, TokenizerHandle};
use kernmill_serve::Request;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A conversation with a model.
///
/// The prompt of a turn is the whole conversation, and the engine's prefix cache has the beginning of it.
///
/// ```
/// # fn main() -> Result<(), kernmill::Error> {
/// use kernmill::chat::{Effort, Said};
///
/// let mut chat = kernmill::Model::nano()?.chat()?;
/// chat.effort(Effort::Low).sampling(&kernmill::Sampling::greedy().max_tokens(100));
/// for said in chat.send("What is 17 + 25?")? {
///     match said? {
///         Said::Answer(text) => print!("{text}"),
///         Said::Call(call) => println!("{}({})", call.name, call.arguments),
///         _ => {} // reasoning
///     }
/// }
/// assert_eq!(chat.send("What is 2 + 3?")?.text()?, "2 + 3 = 5");
/// # Ok(())
/// # }
/// ```
pub struct Chat {
    model: Model,
    format: Format,
    tokenizer: TokenizerHandle,
    history: ConversationItems,
    /// How answers are made.
    request: Request,
    /// The form that answers must have.
    form: Option<Rule>,
    /// Answers that the last message had before this one.
    retries: u64,
}

impl Model {
    /// A conversation that begins. Its answers are as long as they get: [`Chat::sampling`] sets a limit.
    ///
    /// # Errors
    /// When the model has no tokenizer, or its chat template is of no use.
    pub fn chat(&self) -> Result<Chat> {
        Chat::new(self, self.request(Vec::new(), &Sampling::default().max_tokens(usize::MAX))?)
    }
}

impl Chat {
    /// A conversation that begins. `request` says how answers are made; where these end is the format's
    /// affair.
    ///
    /// # Errors
    /// When the model has no tokenizer, or its chat template is of no use.
    pub fn new(model: &Model, request: Request) -> Result<Chat> {
        let missing = "the model has no tokenizer: put its tokenizer.json beside the weights";
        let tokenizer = model.tokenizer().cloned().ok_or_else(|| Error::bad_input(missing))?;
        let format = format_of(tokenizer.get()?, model.image().chat_templates(), model.end_tokens())?;
        if let Format::Unusable(why) = format {
            return Err(Error::bad_input(why));
        }
        let (model, history) = (model.clone(), ConversationItems::default());
        Ok(Chat { model, format, tokenizer, history, request, form: None, retries: 0 })
    }

    /// Sets the instructions at the beginning; an empty text takes them away.
    pub fn system(&mut self, text: &str) -> &mut Chat {
        let items = &mut self.history.conversation.items;
        let had = usize::from(matches!(items.first(), Some(Item::Instructions(_))));
        items.drain(..had);
        let has = usize::from(!text.is_empty());
        if has == 1 {
            items.insert(0, Item::Instructions(text.to_owned()));
        }
        let answers = std::mem::take(&mut self.history.answers);
        self.history.answers = answers.into_iter().map(|(at, ids)| (at + has - had, ids)).collect();
        self
    }

    /// Sets how long the model shall reason. It changes nothing where the model's format has no word for it.
    pub fn effort(&mut self, effort: Effort) -> &mut Chat {
        self.history.conversation.effort = effort;
        self
    }

    /// Sets the functions that the model may call. Their results are given by [`Chat::give`]. A model whose
    /// format has no functions calls none.
    pub fn tools(&mut self, tools: Vec<Tool>) -> &mut Chat {
        self.history.conversation.tools = tools;
        self
    }

    /// Sets the adapter of the turns that follow, by its name in
    /// [`Options::adapters`](crate::Options::adapters); `None` is the model alone. Until this is called, all
    /// of these adapters answer together.
    pub fn adapter(&mut self, name: Option<&str>) -> &mut Chat {
        self.request.adapters = name.map(AdapterUse::of).into_iter().collect();
        self
    }

    /// Sets length, randomness, stop strings and form of the answers. Stop strings do not end reasoning, and
    /// a form is that of the answer alone.
    pub fn sampling(&mut self, sampling: &Sampling) -> &mut Chat {
        self.request.sampler = sampling.sampler.clone();
        self.request.max_tokens = u32::try_from(sampling.max_tokens).unwrap_or(u32::MAX);
        self.request.stop.clone_from(&sampling.stop);
        self.request.drafts = sampling.drafts;
        self.form.clone_from(&sampling.rule);
        self
    }

    /// Ends answers when `flag` is set, by another thread or a signal.
    pub fn cancelled_by(&mut self, flag: Arc<AtomicBool>) -> &mut Chat {
        self.request.cancelled = Some(flag);
        self
    }

    /// Says something; the iterator gives the model's reply as it comes. A message whose reply is dropped
    /// before it has a token is not part of the conversation.
    ///
    /// # Errors
    /// When the conversation does not fit the context, or its format refuses it.
    pub fn send(&mut self, text: &str) -> Result<Reply<'_>> {
        self.give_up_calls();
        let before = self.history.clone();
        self.retries = 0;
        self.history.conversation.items.push(Item::User { name: None, text: text.to_owned() });
        self.answer(before)
    }

    /// Answers the last message once more, with the next seed.
    ///
    /// # Errors
    /// When nothing was said, and as those of [`Chat::send`].
    pub fn retry(&mut self) -> Result<Reply<'_>> {
        let at = self.last_user()?;
        self.retries += 1;
        let before = self.history.clone();
        self.history.cut(at + 1);
        self.answer(before)
    }

    /// Says something else instead of the last message.
    ///
    /// # Errors
    /// When nothing was said, and as those of [`Chat::send`].
    pub fn edit(&mut self, text: &str) -> Result<Reply<'_>> {
        let at = self.last_user()?;
        let before = self.history.clone();
        self.history.cut(at);
        self.retries = 0;
        self.history.conversation.items.push(Item::User { name: None, text: text.to_owned() });
        self.answer(before)
    }

    /// Gives the results of [`Chat::open_calls`], in their order; the model goes on with them. Where it has
    /// no answer, the calls are open again.
    ///
    /// # Errors
    /// As those of [`Chat::send`].
    pub fn give(&mut self, results: Vec<String>) -> Result<Reply<'_>> {
        let before = self.history.clone();
        self.put_results(results);
        self.answer(before)
    }

    /// Calls of the last answer that have no result yet.
    pub fn open_calls(&self) -> Vec<&Call> {
        let items = &self.history.conversation.items;
        let has_output = |id: &str| items.iter().any(|item| matches!(item, Item::Output(o) if o.id == id));
        let calls = items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            _ => None,
        });
        calls.filter(|call| !has_output(&call.id)).collect()
    }

    /// Tells the model that its open calls have no results.
    fn give_up_calls(&mut self) {
        let results = vec!["error: there is no result".to_owned(); self.open_calls().len()];
        self.put_results(results);
    }

    /// Forgets what was said, but for the instructions.
    pub fn clear(&mut self) {
        let has = matches!(self.history.conversation.items.first(), Some(Item::Instructions(_)));
        self.history.cut(usize::from(has));
        self.retries = 0;
    }

    /// The model's format of conversations.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// The conversation so far.
    pub fn conversation(&self) -> &Conversation {
        &self.history.conversation
    }

    /// Names of the adapters that answer.
    pub fn adapters(&self) -> Vec<String> {
        self.request.adapters.iter().map(|adapter| adapter.name.clone()).collect()
    }

    /// Writes the conversation to a file, with all that the next answer depends on but the model. The file
    /// appears whole or stays what it was, and only its owner can read it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let seed = self.request.sampler.seed.unwrap_or_default();
        let ConversationItems { conversation, answers } = self.history.clone();
        SavedConversation::new(model_name(&self.model), self.adapters(), seed, conversation, answers)
            .write(path)
    }

    /// Goes on with a conversation from a file, with its seed. The adapters stay those of now. A sentence
    /// that says what is different from when it was saved, if something is.
    ///
    /// # Errors
    /// When the file cannot be read, is no conversation, or has answers that are not of this vocabulary.
    pub fn load(&mut self, path: &Path) -> Result<Option<String>> {
        let saved = SavedConversation::read(path)?;
        let is_same = saved.model == model_name(&self.model);
        let vocab = self.model.vocab() as u32;
        let wrong = saved.answers.values().flatten().find(|id| **id >= vocab);
        if let Some(id) = wrong.filter(|_| is_same) {
            let what = format!("an answer has token {id}, expected ids below {vocab}, the vocabulary");
            return Err(Error::input(path, what));
        }
        self.history.conversation = saved.conversation;
        self.history.answers = if is_same { saved.answers } else { BTreeMap::new() };
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

    fn put_results(&mut self, results: Vec<String>) {
        let calls = self.open_calls().into_iter().cloned();
        let outputs = calls.zip(results).map(|(call, text)| {
            Item::Output(Output { id: call.id, name: call.name, text, is_builtin: call.is_builtin })
        });
        let outputs: Vec<Item> = outputs.collect();
        self.history.conversation.items.extend(outputs);
    }

    fn last_user(&self) -> Result<usize> {
        let is_user = |item: &Item| matches!(item, Item::User { .. });
        let nothing = || Error::bad_input("nothing has been said yet");
        self.history.conversation.items.iter().rposition(is_user).ok_or_else(nothing)
    }

    /// Answers the conversation as it is. `before` comes back where there is no answer.
    fn answer(&mut self, before: ConversationItems) -> Result<Reply<'_>> {
        match self.begin() {
            Ok((turn, request)) => {
                let seed = request.sampler.seed.unwrap_or_default();
                let parts = ReplyItems::new(&self.history.conversation);
                match self.model.thread().text(request) {
                    Ok(text) => {
                        let is_plain = matches!(self.format, Format::Plain { .. });
                        let tokenizer = self.tokenizer.clone();
                        let begun = BegunTurn { turn, parts, text, seed, tokenizer, is_plain };
                        Ok(Reply::new(&mut self.history, before, begun))
                    }
                    Err(error) => {
                        self.history = before;
                        Err(error.into())
                    }
                }
            }
            Err(error) => {
                self.history = before;
                Err(error)
            }
        }
    }

    /// The next turn, and the request of it.
    fn begin(&self) -> Result<(Turn, Request)> {
        let options = TurnOptions {
            stop: self.request.stop.clone(),
            form: self.form.clone(),
            ..TurnOptions::default()
        };
        let ConversationItems { conversation, answers } = &self.history;
        let ends = self.model.end_tokens();
        let vocabulary = self.tokenizer.get()?;
        let mut turn = Turn::new(vocabulary, &self.format, conversation, answers, options, ends)?;
        let constraint = match self.form {
            Some(_) => turn.constraint(self.model.lexicon()?, &conversation.tools)?,
            None => None,
        };
        let prompt = std::mem::take(&mut turn.prompt);
        check_room(&self.model, prompt.len())?;
        let seed = self.request.sampler.seed.unwrap_or_default().wrapping_add(self.retries);
        let mut request = Request {
            prompt,
            constraint,
            stop: Vec::new(),
            stop_tokens: turn.stop_tokens.clone(),
            ..self.request.clone()
        };
        request.sampler.seed = Some(seed);
        Ok((turn, request))
    }
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
    Err(Error::bad_input(format!(
        "the context is full: the conversation has {tokens} tokens with this message, the context holds {context}: \
         say less, begin anew with /clear{more}"
    )))
}

/// The model, for people and for comparing.
fn model_name(model: &Model) -> String {
    let model = &model.image().program().model;
    format!("{}, preset {}", model.name, model.preset)
}
