//! Arguments of calls that come one by one.

use super::{CallState, PartialValue, TextParser, unfinished};
use crate::calls::format::{CallFormat, Pairs};
use crate::calls::pairs::{is_open_text, key, member, piece, value, whole};
use crate::calls::python::{KeywordValue, ReadStep, argument, name, string};
use crate::event::{Anomaly, Event};
use std::mem::take;

impl TextParser {
    /// In a list of calls: another one, its end, or something else.
    pub(super) fn list(&mut self, events: &mut Vec<Event>) -> bool {
        let CallState::List(raw) = &mut self.state else { return false };
        let separator = if raw.is_empty() { ',' } else { '[' };
        while let Some(c) = self.pending.chars().next().filter(|c| c.is_whitespace() || *c == separator) {
            self.pending.drain(..c.len_utf8());
            raw.push(c);
        }
        // Only what stands before the first call is given back.
        if separator == ',' {
            raw.clear();
        }
        match name(&self.pending) {
            ReadStep::Unfinished => return false,
            ReadStep::Whole(name, end) => {
                self.pending.drain(..end);
                self.begin(name, events);
                self.state = CallState::Keywords(0);
            }
            ReadStep::Other if raw.is_empty() => {
                let end = usize::from(self.pending.starts_with(']'));
                self.pending.drain(..end);
                self.state = CallState::Calls(String::new());
            }
            ReadStep::Other => {
                let raw = take(raw);
                self.state = CallState::Answer;
                self.give_back(raw, events);
            }
        }
        true
    }

    /// The next of arguments that come one by one, or their end.
    pub(super) fn pairs(&mut self, events: &mut Vec<Event>) -> bool {
        let CallState::Pairs(name, count) = &self.state else { return false };
        let Some((format, marks)) = self.format.and_then(|format| Some((format, format.pairs()?))) else {
            return false;
        };
        let space = self.pending.len() - self.pending.trim_start().len();
        self.pending.drain(..space);
        let ends = [marks.end, format.close];
        let end = ends.into_iter().find(|end| !end.is_empty() && self.pending.starts_with(end));
        if end.is_none() && self.pending.starts_with(marks.before_key) {
            match key(&marks, &self.pending) {
                ReadStep::Unfinished => return false,
                ReadStep::Whole(key, end) => {
                    self.pending.drain(..end);
                    let (name, count) = (name.clone(), *count);
                    let value = PartialValue { name, key, count, quote: None, has_begun: false };
                    self.state = CallState::Value(Box::new(value));
                    return true;
                }
                ReadStep::Other => {}
            }
        } else if end.is_none() {
            let mut marks = ends.into_iter().chain([marks.before_key]);
            if marks.any(|mark| mark.starts_with(self.pending.as_str())) {
                return false;
            }
        }
        // The mark that ends calls is still to come.
        self.pending.drain(..end.filter(|end| *end == marks.end).map_or(0, str::len));
        if end.is_none() {
            self.anomalies.add(Anomaly::BadCall);
        }
        let rest = if *count == 0 { "{}" } else { "}" };
        events.extend([Event::Delta(rest.to_owned()), Event::End { is_complete: true }]);
        self.state = CallState::Calls(String::new());
        true
    }

    /// The next of arguments by keyword, or their end.
    pub(super) fn keywords(&mut self, events: &mut Vec<Event>) -> bool {
        let CallState::Keywords(count) = &mut self.state else { return false };
        let is_between = |c: char| c.is_whitespace() || c == ',';
        let space = self.pending.len() - self.pending.trim_start_matches(is_between).len();
        self.pending.drain(..space);
        let has_ended = self.pending.starts_with(')');
        if !has_ended {
            match argument(&self.pending) {
                ReadStep::Unfinished => return false,
                ReadStep::Whole((key, KeywordValue::Json(json)), end) => {
                    events.push(Event::Delta(member(*count, &key, &json)));
                    *count += 1;
                    self.pending.drain(..end);
                    return true;
                }
                ReadStep::Whole((key, KeywordValue::String(quote)), end) => {
                    events.push(Event::Delta(member(*count, &key, "\"")));
                    let (name, count, quote) = (String::new(), *count, Some(quote));
                    let value = PartialValue { name, key, count, quote, has_begun: true };
                    self.state = CallState::Value(Box::new(value));
                    self.pending.drain(..end);
                    return true;
                }
                ReadStep::Other => self.anomalies.add(Anomaly::BadCall),
            }
        }
        let rest = if *count == 0 { "{}" } else { "}" };
        events.extend([Event::Delta(rest.to_owned()), Event::End { is_complete: true }]);
        self.pending.drain(..usize::from(has_ended));
        self.state = if has_ended { CallState::List(String::new()) } else { CallState::Calls(String::new()) };
        true
    }

    /// The value of an argument, or more of it: a text is given out as it comes.
    pub(super) fn value(&mut self, events: &mut Vec<Event>) -> bool {
        let CallState::Value(part) = &self.state else { return false };
        let marks = self.format.and_then(CallFormat::pairs);
        let (text, length, has_ended) = match (part.quote, marks) {
            (Some(quote), _) => string(&self.pending, quote),
            (None, None) => return false,
            (None, Some(marks)) if part.has_begun => open_text(&marks, &self.pending),
            (None, Some(marks)) => return self.begin_value(&marks, events),
        };
        self.pending.drain(..length);
        let text = piece(&text) + if has_ended { "\"" } else { "" };
        if !text.is_empty() {
            events.push(Event::Delta(text));
        }
        if has_ended {
            self.after_value();
        }
        has_ended
    }

    /// The beginning of a value between marks: of a text, or all of it.
    fn begin_value(&mut self, marks: &Pairs, events: &mut Vec<Event>) -> bool {
        let CallState::Value(part) = &self.state else { return false };
        let tool = self.tool(&part.name);
        // The first byte may be the margin.
        let body = self.pending.strip_prefix(marks.margin).unwrap_or(&self.pending);
        let margin = self.pending.len() - body.len();
        match is_open_text(tool, &part.key, body).filter(|_| !self.pending.is_empty()) {
            None => false,
            Some(true) => {
                events.push(Event::Delta(member(part.count, &part.key, "\"")));
                self.pending.drain(..margin);
                if let CallState::Value(part) = &mut self.state {
                    part.has_begun = true;
                }
                true
            }
            Some(false) => {
                let ReadStep::Whole(json, end) = whole(marks, body, tool, &part.key) else { return false };
                events.push(Event::Delta(member(part.count, &part.key, &json)));
                self.pending.drain(..margin + end);
                self.after_value();
                true
            }
        }
    }

    /// Goes on behind a value.
    fn after_value(&mut self) {
        if let CallState::Value(part) = &mut self.state {
            let (name, count) = (take(&mut part.name), part.count + 1);
            let is_pair = part.quote.is_none();
            self.state = if is_pair { CallState::Pairs(name, count) } else { CallState::Keywords(count) };
        }
    }

    /// Ends a value that is cut off.
    pub(super) fn cut_value(&mut self, part: &PartialValue, events: &mut Vec<Event>) {
        let rest = take(&mut self.pending);
        let text = match part.quote {
            Some(quote) => piece(&string(&rest, quote).0),
            None if part.has_begun => piece(&rest),
            None => {
                let margin = self.format.and_then(CallFormat::pairs).map_or("", |marks| marks.margin);
                let body = rest.strip_prefix(margin).unwrap_or(&rest);
                let mut text = value(self.tool(&part.name), &part.key, body);
                // A string that is cut off has no end.
                text.truncate(text.len() - usize::from(text.ends_with('"')));
                member(part.count, &part.key, &text)
            }
        };
        if !text.is_empty() {
            events.push(Event::Delta(text));
        }
        events.push(Event::End { is_complete: false });
    }
}

/// A text between marks: as much as is certain, the bytes that this takes, and whether that is all, with the
/// mark that ends it.
fn open_text(marks: &Pairs, text: &str) -> (String, usize, bool) {
    match text.find(marks.after_value) {
        Some(at) => {
            let body = text[..at].strip_suffix(marks.margin).unwrap_or(&text[..at]);
            (body.to_owned(), at + marks.after_value.len(), true)
        }
        None => {
            let end = [marks.margin, marks.after_value].concat();
            let held = unfinished(text, &[&end, marks.after_value]);
            (text[..text.len() - held].to_owned(), text.len() - held, false)
        }
    }
}
