//! Arguments of calls that come one by one.

use super::{CallState, TextParser};
use crate::calls::pairs::{KeyValuePair, member, pair, value};
use crate::calls::python::{PythonStep, argument, name};
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
            PythonStep::Unfinished => return false,
            PythonStep::Whole(name, end) => {
                self.pending.drain(..end);
                self.begin(name, events);
                self.state = CallState::Keywords(0);
            }
            PythonStep::Other if raw.is_empty() => {
                let end = usize::from(self.pending.starts_with(']'));
                self.pending.drain(..end);
                self.state = CallState::Calls(String::new());
            }
            PythonStep::Other => {
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
            match pair(&marks, &self.pending, self.tool(name)) {
                KeyValuePair::Unfinished(_) => return false,
                KeyValuePair::Whole(key, text, end) => {
                    let text = value(self.tool(name), key, text);
                    events.push(Event::Delta(member(*count, key, &text)));
                    self.state = CallState::Pairs(name.clone(), count + 1);
                    self.pending.drain(..end);
                    return true;
                }
                KeyValuePair::Other => {}
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
                PythonStep::Unfinished => return false,
                PythonStep::Whole((key, json), end) => {
                    events.push(Event::Delta(member(*count, &key, &json)));
                    *count += 1;
                    self.pending.drain(..end);
                    return true;
                }
                PythonStep::Other => self.anomalies.add(Anomaly::BadCall),
            }
        }
        let rest = if *count == 0 { "{}" } else { "}" };
        events.extend([Event::Delta(rest.to_owned()), Event::End { is_complete: true }]);
        self.pending.drain(..usize::from(has_ended));
        self.state = if has_ended { CallState::List(String::new()) } else { CallState::Calls(String::new()) };
        true
    }
}
