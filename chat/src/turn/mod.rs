//! A model's turn: the prompt, what holds the text to its form, and what the generated tokens are.

mod begin;
mod options;
mod sources;

pub use options::{TurnError, TurnOptions};

use crate::conversation::{Conversation, Tool};
use crate::event::{Anomalies, AnswerPart, Event};
use crate::format::{AnswerReader, Format};
use begin::{TurnStart, begin};
use kernmill_constrain::{Composed, Constraint, Lexicon, Rule};
use kernmill_text::{StopMatcher, Vocabulary};
use sources::Sources;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// A turn of a model: all that lies between a conversation and the pieces of an answer.
///
/// The caller has an engine continue `prompt` until a token of `stop_tokens`, held to the constraint of
/// [`Turn::constraint`], gives every token to [`Turn::push`], and stops the engine when [`Turn::has_ended`].
/// How the tokens cut the text does not change the answer.
///
/// ```
/// use kernmill_chat::{Conversation, Event, Format, Item, Turn, TurnError, TurnOptions, Vocabulary};
///
/// fn answer(
///     vocabulary: &dyn Vocabulary,
///     format: &Format,
///     mut generate: impl FnMut(&[u32]) -> u32,
/// ) -> Result<String, TurnError> {
///     let user = Item::User { name: None, text: "Hello".to_owned() };
///     let conversation = Conversation { items: vec![user], ..Conversation::default() };
///     let options = TurnOptions { stop: vec!["\n\n".to_owned()], ..TurnOptions::default() };
///     let mut turn = Turn::new(vocabulary, format, &conversation, &Default::default(), options, &[])?;
///     let mut ids = turn.prompt.clone();
///     while !turn.has_ended() {
///         let id = generate(&ids);
///         turn.push(vocabulary, id, "");
///         ids.push(id);
///         if turn.stop_tokens.contains(&id) {
///             break;
///         }
///     }
///     turn.finish(true);
///     let texts = std::iter::from_fn(|| turn.pop()).filter_map(|piece| match piece.event {
///         Event::Delta(text) => Some(text),
///         _ => None,
///     });
///     Ok(texts.collect())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Turn {
    /// Ids of the prompt.
    pub prompt: Vec<u32>,
    /// Rule that the text is held to, if there is one.
    pub rule: Option<Rule>,
    /// Form of the answer, which is part of the rule.
    form: Option<Rule>,
    /// Tokens that end the text.
    pub stop_tokens: Vec<u32>,
    reader: AnswerReader,
    stops: StopMatcher,
    /// Special tokens that a stop string is the text of.
    stop_ids: Vec<(u32, String)>,
    /// The stop string that the format has itself.
    own_stop: Option<String>,
    one_call: bool,
    /// Whether it ended before its tokens did: by a stop string, or because its one call is complete.
    has_ended: bool,
    stop: Option<String>,
    /// The part that has begun.
    part: Option<AnswerPart>,
    ready: VecDeque<TurnPiece>,
    calls: u32,
    reasoning_tokens: u32,
    sources: Sources,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPiece {
    /// The piece itself.
    pub event: Event,
    /// Places of the tokens that the text of a delta came of, counted from the turn's first token; empty for
    /// other events. A token whose text is in two deltas belongs to the first.
    pub tokens: Range<usize>,
}

impl Turn {
    /// The turn that answers a conversation. `known` are as [`Format::prompt`] takes them, `end_tokens` end
    /// the model's texts.
    ///
    /// # Errors
    /// When the format refuses the conversation, or cannot be held to what is asked for.
    pub fn new(
        vocabulary: &dyn Vocabulary,
        format: &Format,
        conversation: &Conversation,
        known: &BTreeMap<usize, Vec<u32>>,
        options: TurnOptions,
        end_tokens: &[u32],
    ) -> Result<Turn, TurnError> {
        let TurnStart { prompt, rule, form, reader, events } =
            begin(vocabulary, format, conversation, known, &options)?;
        let own_stop = format.stop();
        let stops: Vec<String> = options.stop.into_iter().chain(own_stop.clone()).collect();
        let stop_tokens = format.stop_tokens(vocabulary, end_tokens);
        let turn = Turn::of(vocabulary, prompt, rule, stop_tokens, reader, stops);
        let mut turn = Turn { own_stop, form, one_call: options.one_call, ..turn };
        turn.give(events);
        Ok(turn)
    }

    /// A turn that goes on from a prompt as it stands: all that comes is the answer, up to one of the strings
    /// `stop` or a token of `end_tokens`.
    pub fn raw(
        vocabulary: &dyn Vocabulary,
        prompt: Vec<u32>,
        form: Option<Rule>,
        stop: Vec<String>,
        end_tokens: &[u32],
    ) -> Turn {
        let reader = AnswerReader::Plain { has_begun: true };
        let mut turn = Turn::of(vocabulary, prompt, form, end_tokens.to_vec(), reader, stop);
        turn.give(vec![Event::Begin(AnswerPart::Answer)]);
        turn
    }

    fn of(
        vocabulary: &dyn Vocabulary,
        prompt: Vec<u32>,
        rule: Option<Rule>,
        stop_tokens: Vec<u32>,
        reader: AnswerReader,
        stops: Vec<String>,
    ) -> Turn {
        let special = vocabulary.added_tokens().into_iter().filter(|token| token.is_special);
        let stop_ids =
            special.filter(|token| stops.contains(&token.text)).map(|token| (token.id, token.text));
        Turn {
            prompt,
            form: rule.clone(),
            rule,
            stop_tokens,
            reader,
            stop_ids: if stops.is_empty() { Vec::new() } else { stop_ids.collect() },
            stops: StopMatcher::new(&stops),
            own_stop: None,
            one_call: false,
            has_ended: false,
            stop: None,
            part: None,
            ready: VecDeque::new(),
            calls: 0,
            reasoning_tokens: 0,
            sources: Sources::default(),
        }
    }

    /// The constraint of the text, if it has a rule. `tools` are those of the conversation: a function whose
    /// schema is at fault is named.
    ///
    /// # Errors
    /// When the rule cannot be followed.
    pub fn constraint(&self, lexicon: &Lexicon, tools: &[Tool]) -> Result<Option<Constraint>, TurnError> {
        let Some(rule) = &self.rule else { return Ok(None) };
        let error = match Constraint::new(lexicon, rule) {
            Ok(constraint) => return Ok(Some(constraint)),
            Err(error) => error,
        };
        // The error of a whole turn points into a grammar that nobody wrote: each part alone says it better.
        if let Some(Err(error)) = self.form.as_ref().map(|form| Constraint::new(lexicon, form)) {
            return Err(TurnError::Form(error.to_string()));
        }
        let of_function = tools.iter().find_map(|tool| fault(lexicon, tool));
        Err(of_function.unwrap_or_else(|| TurnError::Choice(error.to_string())))
    }

    /// Takes the next token, and the text that the tokenizer releases with it, which counts in a format where
    /// text is text. Tokens behind the end are no part of the answer.
    pub fn push(&mut self, vocabulary: &dyn Vocabulary, id: u32, text: &str) {
        if self.has_ended() {
            return;
        }
        self.reasoning_tokens += u32::from(self.part == Some(AnswerPart::Reasoning));
        let is_end = self.stop_tokens.contains(&id);
        let bytes = if is_end { None } else { vocabulary.bytes(id).map(|bytes| bytes.len()) };
        self.sources.push(bytes);
        let stop = self.stop_ids.iter().find(|(stop, _)| *stop == id);
        if let Some((_, stop)) = stop.filter(|_| self.part == Some(AnswerPart::Answer)) {
            self.stop = Some(stop.clone());
            self.has_ended = true;
            self.flush();
            return;
        }
        let mut events = Vec::new();
        self.reader.push(vocabulary, id, &mut events);
        self.reader.text(text, &mut events);
        self.give(events);
    }

    /// Ends the answer. `is_complete` says that the model or a stop string ended it, and no limit did.
    pub fn finish(&mut self, is_complete: bool) {
        let mut events = Vec::new();
        if !self.has_ended() {
            self.reader.finish(is_complete, &mut events);
            self.give(events);
        }
        if self.part.take().is_some() {
            self.ready.push_back(TurnPiece { event: Event::End { is_complete: true }, tokens: 0..0 });
        }
    }

    /// The next piece that is ready.
    pub fn pop(&mut self) -> Option<TurnPiece> {
        self.ready.pop_front()
    }

    /// Whether no more tokens are needed: a stop string was found, or the one call is complete.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The stop string that ended the answer, of those that were asked for.
    pub fn stop(&self) -> Option<&str> {
        self.stop.as_deref().filter(|_| self.own_stop != self.stop)
    }

    /// Calls that have begun.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Tokens of the reasoning so far.
    pub fn reasoning_tokens(&self) -> u32 {
        self.reasoning_tokens
    }

    /// Deviations of the text from its format.
    pub fn anomalies(&self) -> Anomalies {
        self.reader.anomalies()
    }

    /// Makes pieces of events.
    fn give(&mut self, events: Vec<Event>) {
        let mut events = events.into_iter().peekable();
        while let Some(event) = events.next() {
            if self.has_ended() {
                return;
            }
            match event {
                Event::Begin(part) => {
                    let begun = events.peek().and_then(|next| match next {
                        Event::Delta(text) => Some(text.len()),
                        _ => None,
                    });
                    self.sources.begin(begun.unwrap_or(0));
                    self.calls += u32::from(matches!(part, AnswerPart::Call { .. }));
                    self.part = Some(part.clone());
                    self.ready.push_back(TurnPiece { event: Event::Begin(part), tokens: 0..0 });
                }
                Event::Delta(text) => {
                    self.sources.take(text.len());
                    if self.part != Some(AnswerPart::Answer) {
                        self.release(text);
                        continue;
                    }
                    let released = self.stops.push(&text);
                    (self.has_ended, self.stop) = (released.stop.is_some(), released.stop);
                    self.release(released.text);
                }
                Event::End { is_complete } => {
                    self.flush();
                    self.sources.begin(0);
                    let is_call = matches!(self.part.take(), Some(AnswerPart::Call { .. }));
                    self.ready.push_back(TurnPiece { event: Event::End { is_complete }, tokens: 0..0 });
                    self.has_ended = self.one_call && is_call;
                }
            }
        }
    }

    /// Gives out what was held back of the answer.
    fn flush(&mut self) {
        if self.part == Some(AnswerPart::Answer) {
            let text = self.stops.finish();
            self.release(text);
        }
    }

    fn release(&mut self, text: String) {
        if !text.is_empty() {
            let tokens = self.sources.release();
            self.ready.push_back(TurnPiece { event: Event::Delta(text), tokens });
        }
    }
}

/// The fault in a function's schema, if there is one.
fn fault(lexicon: &Lexicon, tool: &Tool) -> Option<TurnError> {
    let schema = tool.parameters.as_ref()?;
    let mut alone = Composed::default();
    let made = alone.schema("start", "the schema", schema, tool.strict);
    let error = made.and_then(|()| Constraint::new(lexicon, &Rule::Composed(alone)).map(drop)).err()?;
    let error = Constraint::new(lexicon, &Rule::JsonSchema(schema.clone())).err().unwrap_or(error);
    let help = if tool.strict { "; without `strict` it is followed as far as can be" } else { "" };
    Some(TurnError::Function(format!("the function `{}`: {error}{help}", tool.name)))
}
