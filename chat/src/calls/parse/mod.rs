//! Generated ids to events, for models with marks in their texts.

mod arguments;

use super::format::{ArgumentStyle, BARE_KEYS, CallFormat, NAME_BYTES, ThoughtMarks};
use super::head::{CallHead, head};
use super::object::{ObjectStep, PartialObject, unquoted};
use super::python::begins_list;
use crate::conversation::Tool;
use crate::event::{Anomalies, Anomaly, AnswerPart, Event};
use kernmill_text::Utf8Stream;
use kernmill_text::Vocabulary;
use std::mem::take;

/// A parser of generated texts: thoughts, calls of tools, and the answer.
///
/// Any text has a meaning. Text that only looks like a call is part of the answer.
#[derive(Clone, Debug)]
pub struct TextParser {
    format: Option<&'static CallFormat>,
    thoughts: ThoughtMarks,
    /// Declared functions.
    declared: Vec<Tool>,
    /// Special tokens that are no marks, ascending.
    hidden: Vec<u32>,
    utf8: Utf8Stream,
    /// Text that is not decided yet.
    pending: String,
    state: CallState,
    /// The part that has begun, of those with text.
    open: Option<AnswerPart>,
    has_answer: bool,
    /// Whether an answer has a form: from its first character on, all is answer.
    has_form: bool,
    anomalies: Anomalies,
}

#[derive(Clone, Debug)]
enum CallState {
    Thoughts,
    Answer,
    /// Between calls; the mark before them, until there is one.
    Calls(String),
    /// The name of a function, which the arguments follow.
    Name(String),
    Call(Box<PartialCall>),
    /// Arguments that come one by one, after the name; how many there were.
    Pairs(String, usize),
    /// In a list of calls of Python; the mark before them, until there is one.
    List(String),
    /// Arguments by keyword, after the bracket; how many there were.
    Keywords(usize),
    /// The value of an argument.
    Value(Box<PartialValue>),
}

/// The value of an argument of those that come one by one.
#[derive(Clone, Debug)]
struct PartialValue {
    /// Name of the function, where its schema tells how the value is written.
    name: String,
    key: String,
    /// How many arguments there were before.
    count: usize,
    /// The quote that ends it, where no mark does.
    quote: Option<&'static str>,
    /// Whether it is a text whose beginning was given out.
    has_begun: bool,
}

#[derive(Clone, Debug, Default)]
struct PartialCall {
    object: PartialObject,
    /// All that was read of it, with the mark before it.
    raw: String,
    /// Arguments that were not given out yet.
    arguments: String,
    has_begun: bool,
    /// Whether all of the object is arguments, after a name.
    is_named: bool,
    /// Whether no mark was before it.
    is_bare: bool,
}

impl TextParser {
    /// A parser of what follows a prompt. `declared` are the functions that may be called; without any,
    /// nothing is a call. `thoughts` are the marks of thoughts, and `is_thinking` says that the prompt ends
    /// inside of some.
    pub fn new(
        vocabulary: &dyn Vocabulary,
        format: Option<&'static CallFormat>,
        declared: Vec<Tool>,
        thoughts: ThoughtMarks,
        is_thinking: bool,
    ) -> TextParser {
        let format = format.filter(|_| !declared.is_empty());
        let is_mark = |text: &str| {
            let of = |format: &CallFormat| format.marks().any(|mark| mark == text);
            [thoughts.open, thoughts.close].contains(&text) || format.is_some_and(of)
        };
        let hidden =
            vocabulary.added_tokens().into_iter().filter(|token| token.is_special && !is_mark(&token.text));
        let mut hidden: Vec<u32> = hidden.map(|token| token.id).collect();
        hidden.sort_unstable();
        TextParser {
            format,
            thoughts,
            declared,
            hidden,
            utf8: Utf8Stream::default(),
            pending: String::new(),
            state: if is_thinking { CallState::Thoughts } else { CallState::Answer },
            open: None,
            has_answer: false,
            has_form: false,
            anomalies: Anomalies::default(),
        }
    }

    /// The parser for a turn whose answer has a form: what looks like thoughts or a call inside of the answer
    /// belongs to it.
    pub fn with_form(self) -> TextParser {
        TextParser { has_form: true, ..self }
    }

    /// Deviations so far.
    pub fn anomalies(&self) -> &Anomalies {
        &self.anomalies
    }

    /// Takes one more id. Events that became certain by it are appended to `events`.
    pub fn push(&mut self, vocabulary: &dyn Vocabulary, id: u32, events: &mut Vec<Event>) {
        if self.hidden.binary_search(&id).is_ok() {
            return;
        }
        match vocabulary.bytes(id) {
            Some(bytes) => self.utf8.push(&bytes, &mut self.pending),
            None => self.anomalies.add(Anomaly::UnknownId),
        }
        while self.advance(events) {}
    }

    /// Ends the text.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        self.utf8.finish(&mut self.pending);
        while self.advance(events) {}
        match std::mem::replace(&mut self.state, CallState::Answer) {
            CallState::Call(call) if call.has_begun => events.push(Event::End { is_complete: false }),
            CallState::Call(call) => self.give_back(call.raw, events),
            CallState::Keywords(_) | CallState::Pairs(..) => {
                self.pending.clear();
                events.push(Event::End { is_complete: false });
            }
            CallState::Calls(raw) | CallState::List(raw) => {
                let rest = take(&mut self.pending);
                if !raw.is_empty() || !rest.trim().is_empty() {
                    self.give_back(raw + &rest, events);
                }
            }
            CallState::Name(raw) => {
                let rest = take(&mut self.pending);
                let marks = self.format.map_or(&[][..], |format| format.after_name);
                let end = marks.iter().filter_map(|mark| rest.find(mark)).min().unwrap_or(rest.len());
                match rest[..end].trim() {
                    name if self.is_declared(name) => self.without_arguments(name.to_owned(), events),
                    _ => self.give_back(raw + &rest, events),
                }
            }
            CallState::Value(part) => self.cut_value(&part, events),
            state @ (CallState::Thoughts | CallState::Answer) => {
                let part = if matches!(state, CallState::Thoughts) {
                    AnswerPart::Reasoning
                } else {
                    AnswerPart::Answer
                };
                let rest = take(&mut self.pending);
                self.text(part, &rest, events);
            }
        }
        self.close(events);
    }

    /// Decides as much of the pending text as is certain. Whether there may be more to decide.
    fn advance(&mut self, events: &mut Vec<Event>) -> bool {
        match &mut self.state {
            CallState::Thoughts => {
                let Some(end) = self.until(&[self.thoughts.close], AnswerPart::Reasoning, events) else {
                    return false;
                };
                self.pending.drain(..end.len());
                self.close(events);
                self.state = CallState::Answer;
                true
            }
            CallState::Answer => self.answer(events),
            CallState::Calls(_) => self.between(events),
            CallState::Name(_) => self.name(events),
            CallState::Call(_) => self.call(events),
            CallState::Pairs(..) => self.pairs(events),
            CallState::List(_) => self.list(events),
            CallState::Keywords(_) => self.keywords(events),
            CallState::Value(_) => self.value(events),
        }
    }

    fn is_declared(&self, name: &str) -> bool {
        self.declared.iter().any(|tool| tool.name == name)
    }

    fn answer(&mut self, events: &mut Vec<Event>) -> bool {
        let opens = self.format.map_or(&[][..], |format| format.opens);
        let mut found = None;
        if !self.has_answer {
            let lead = self.pending.trim_start();
            let mut marks = opens.iter().copied().chain([self.thoughts.open]);
            found = marks.clone().find(|mark| lead.starts_with(mark));
            if found.is_none() && marks.any(|mark| mark.starts_with(lead)) {
                return false;
            }
            let bare = self.format.filter(|format| format.has_bare).map(|format| format.arguments);
            match bare.map_or(Some(false), |arguments| match arguments {
                ArgumentStyle::Keywords => begins_list(lead, |name| self.is_declared(name)),
                _ => begins_call(lead),
            }) {
                None => return false,
                Some(true) => {
                    let is_list = bare == Some(ArgumentStyle::Keywords);
                    let start = self.pending.len() - lead.len() + usize::from(is_list);
                    let raw = self.pending.drain(..start).collect();
                    if is_list {
                        self.state = CallState::List(raw);
                        return true;
                    }
                    self.state = CallState::Call(Box::new(PartialCall {
                        raw,
                        is_bare: true,
                        ..PartialCall::default()
                    }));
                    return true;
                }
                Some(false) => {}
            }
            let skipped = if found.is_some() { self.pending.len() - lead.len() } else { 0 };
            self.pending.drain(..skipped);
        }
        if found.is_none() && self.has_form {
            let text = take(&mut self.pending);
            self.text(AnswerPart::Answer, &text, events);
            return false;
        }
        let Some(mark) = found.or_else(|| self.until(opens, AnswerPart::Answer, events)) else {
            return false;
        };
        self.pending.drain(..mark.len());
        self.close(events);
        self.state =
            if mark == self.thoughts.open { CallState::Thoughts } else { CallState::Calls(mark.to_owned()) };
        true
    }

    /// Gives text out until the next of some marks, with which the pending text then begins.
    fn until<'m>(&mut self, marks: &[&'m str], part: AnswerPart, events: &mut Vec<Event>) -> Option<&'m str> {
        let at = marks
            .iter()
            .filter_map(|mark| Some((self.pending.find(mark)?, *mark)))
            .min_by_key(|found| found.0);
        let end = at.map_or_else(|| self.pending.len() - unfinished(&self.pending, marks), |found| found.0);
        let text: String = self.pending.drain(..end).collect();
        self.text(part, &text, events);
        at.map(|found| found.1)
    }

    /// Between calls: another one, their end, or something else.
    fn between(&mut self, events: &mut Vec<Event>) -> bool {
        let CallState::Calls(raw) = &mut self.state else { return false };
        let Some(format) = self.format else { return false };
        let filler = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | ',' | ';');
        loop {
            let marks = || {
                let others = format.passed_over.iter().copied().chain([format.close]);
                format.opens.iter().copied().chain(others).filter(|mark| !mark.is_empty())
            };
            if let Some(mark) = marks().find(|mark| self.pending.starts_with(mark)) {
                self.pending.drain(..mark.len());
                if mark == format.close {
                    let raw = take(raw);
                    self.state = CallState::Answer;
                    if !raw.is_empty() {
                        // There was nothing between the marks.
                        self.give_back(raw + mark, events);
                    }
                    return true;
                }
                if !raw.is_empty() || format.opens.contains(&mark) {
                    raw.push_str(mark);
                }
                continue;
            }
            let Some(c) = self.pending.chars().next() else { return false };
            if marks().any(|mark| mark.starts_with(self.pending.as_str())) {
                return false;
            }
            if !filler(c) {
                break;
            }
            self.pending.drain(..c.len_utf8());
            if !raw.is_empty() {
                raw.push(c);
            }
        }
        let raw = take(raw);
        if self.pending.starts_with('{') {
            self.state = CallState::Call(Box::new(PartialCall { raw, ..PartialCall::default() }));
        } else if !raw.is_empty() && format.arguments == ArgumentStyle::Keywords {
            self.state = CallState::List(raw);
        } else if !raw.is_empty() && format.has_names() {
            self.state = CallState::Name(raw);
        } else {
            self.state = CallState::Answer;
            if !raw.is_empty() {
                self.give_back(raw, events);
            }
        }
        true
    }

    /// The name before arguments.
    fn name(&mut self, events: &mut Vec<Event>) -> bool {
        let CallState::Name(raw) = &mut self.state else { return false };
        let Some(format) = self.format else { return false };
        let raw = take(raw);
        match head(format, &self.pending) {
            CallHead::Unfinished => {
                self.state = CallState::Name(raw);
                return false;
            }
            CallHead::Name { name, end, .. } if format.pairs().is_some() => {
                self.pending.drain(..end);
                self.begin(name.clone(), events);
                self.state = CallState::Pairs(name, 0);
            }
            CallHead::Name { name, end, has_arguments: true } => {
                let raw = raw + &self.pending[..end];
                self.pending.drain(..end);
                let object = PartialObject::of(name);
                self.state = CallState::Call(Box::new(PartialCall {
                    object,
                    raw,
                    is_named: true,
                    ..PartialCall::default()
                }));
            }
            CallHead::Name { name, end, .. } if self.is_declared(&name) => {
                self.pending.drain(..end);
                self.without_arguments(name, events);
            }
            CallHead::Name { .. } | CallHead::Other => {
                self.state = CallState::Answer;
                self.give_back(raw, events);
            }
        }
        true
    }

    fn begin(&mut self, name: String, events: &mut Vec<Event>) {
        if !self.is_declared(&name) {
            self.anomalies.add(Anomaly::UnknownTool);
        }
        events.push(Event::Begin(AnswerPart::Call { name, is_builtin: false }));
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.declared.iter().find(|tool| tool.name == name)
    }

    /// A call that consists of a name.
    fn without_arguments(&mut self, name: String, events: &mut Vec<Event>) {
        self.begin(name, events);
        events.extend([Event::Delta("{}".to_owned()), Event::End { is_complete: true }]);
        self.state = CallState::Calls(String::new());
    }

    fn call(&mut self, events: &mut Vec<Event>) -> bool {
        let mut pending = take(&mut self.pending);
        let CallState::Call(call) = &mut self.state else { return false };
        let (mut end, mut new) = (None, String::new());
        for (at, c) in pending.char_indices() {
            let step = call.object.push(c);
            let is_done = step == ObjectStep::Done;
            if call.is_named || matches!(step, ObjectStep::Argument(_)) {
                new.push(c);
            }
            if is_done {
                end = Some(at + c.len_utf8());
                break;
            }
        }
        let end_at = end.unwrap_or(pending.len());
        call.raw.push_str(&pending[..end_at]);
        call.arguments.push_str(&new);
        self.pending = pending.split_off(end_at);
        let is_known = |name: &String| self.declared.iter().any(|tool| tool.name == *name);
        let name = call.object.name.clone().filter(|name| !name.is_empty() && name.len() <= NAME_BYTES);
        let name = name.filter(|name| !call.is_bare || is_known(name));
        let is_done = end.is_some();
        // Arguments that are no object, such as a string or null, are given out when they are whole.
        let is_other = !call.has_begun && !call.arguments.starts_with('{');
        let waits = is_other && !is_done;
        match name {
            Some(name) if !waits && (is_done || !call.arguments.is_empty()) => {
                if !call.has_begun {
                    call.has_begun = true;
                    if !is_known(&name) {
                        self.anomalies.add(Anomaly::UnknownTool);
                    }
                    events.push(Event::Begin(AnswerPart::Call { name, is_builtin: false }));
                }
                let text = take(&mut call.arguments);
                let text = if is_other { object_of(text) } else { text };
                if !text.is_empty() {
                    events.push(Event::Delta(text));
                }
                if is_done {
                    events.push(Event::End { is_complete: true });
                    self.state = CallState::Calls(String::new());
                }
            }
            _ if is_done => {
                let (raw, is_bare) = (take(&mut call.raw), call.is_bare);
                self.state = CallState::Answer;
                if is_bare && self.has_form {
                    // The answer's form may begin as a call does: that is no mistake.
                    self.text(AnswerPart::Answer, &raw, events);
                } else {
                    self.give_back(raw, events);
                }
            }
            _ => {}
        }
        is_done
    }

    /// Gives out what was no call after all.
    fn give_back(&mut self, raw: String, events: &mut Vec<Event>) {
        self.anomalies.add(Anomaly::BadCall);
        self.text(AnswerPart::Answer, &raw, events);
    }

    fn text(&mut self, part: AnswerPart, text: &str, events: &mut Vec<Event>) {
        let is_new = self.open.as_ref() != Some(&part);
        // Space at the beginning belongs to the marks before it.
        let text = if is_new { text.trim_start() } else { text };
        if text.is_empty() {
            return;
        }
        self.has_answer |= part == AnswerPart::Answer;
        if is_new {
            self.close(events);
            events.push(Event::Begin(part.clone()));
            self.open = Some(part);
        }
        events.push(Event::Delta(text.to_owned()));
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        if self.open.take().is_some() {
            events.push(Event::End { is_complete: true });
        }
    }
}

/// Whether an object that a text begins with may be a call without a mark: its first key says so. `None`
/// while that is open.
fn begins_call(text: &str) -> Option<bool> {
    let Some(rest) = text.strip_prefix('{') else { return Some(false) };
    let rest = rest.trim_start();
    let keys = || BARE_KEYS.iter().map(|key| format!("\"{key}\""));
    if keys().any(|key| rest.starts_with(&key)) {
        return Some(true);
    }
    if keys().any(|key| key.starts_with(rest)) { None } else { Some(false) }
}

/// Arguments as an object, where they were written as something else: a string that has them, or nothing.
fn object_of(text: String) -> String {
    let text = if text.starts_with('"') { unquoted(&text).unwrap_or(text) } else { text };
    if matches!(text.trim(), "" | "null") { "{}".to_owned() } else { text }
}

/// Bytes at the end of a text that may become one of some marks.
fn unfinished(text: &str, marks: &[&str]) -> usize {
    let longest = marks.iter().map(|mark| mark.len() - 1).max().unwrap_or(0).min(text.len());
    let may_be = |length: &usize| {
        let end = text.len() - length;
        text.is_char_boundary(end) && marks.iter().any(|mark| mark.starts_with(&text[end..]))
    };
    (1..=longest).rev().find(may_be).unwrap_or(0)
}
