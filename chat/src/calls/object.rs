//! A JSON object that comes character by character: the name of a function, and its arguments.

use super::format::{ARGUMENTS, NAMES};

/// The thing that a character completes.
#[derive(Debug, PartialEq)]
pub(super) enum ObjectStep {
    /// Nothing.
    Inside,
    /// More of the arguments, as they are written.
    Argument(char),
    /// The object.
    Done,
}

/// An object so far.
#[derive(Clone, Debug, Default)]
pub(super) struct PartialObject {
    depth: usize,
    is_quoted: bool,
    is_escaped: bool,
    /// Whether a value follows, not a key.
    is_value: bool,
    /// The member's key, as it is written.
    key: String,
    /// The member's value, as it is written, if it is not the arguments.
    value: String,
    /// Whether there were arguments.
    has_arguments: bool,
    /// Name of the function.
    pub name: Option<String>,
}

impl PartialObject {
    /// Arguments of a function whose name is known.
    pub fn of(name: String) -> PartialObject {
        PartialObject { name: Some(name), ..PartialObject::default() }
    }

    /// Takes one more character, beginning with the brace that opens the object.
    pub fn push(&mut self, c: char) -> ObjectStep {
        let was_quoted = self.is_quoted;
        if self.is_quoted {
            self.is_quoted = c != '"' || self.is_escaped;
            self.is_escaped = c == '\\' && !self.is_escaped;
        } else {
            match c {
                '"' => self.is_quoted = true,
                '{' | '[' => self.depth += 1,
                '}' | ']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        let is_outer = !was_quoted && (self.depth == 1 || self.depth == 0);
        match c {
            '{' if is_outer && !self.is_value && self.key.is_empty() => ObjectStep::Inside,
            ':' if is_outer && !self.is_value => {
                self.is_value = true;
                ObjectStep::Inside
            }
            ',' if is_outer => {
                self.end_member();
                ObjectStep::Inside
            }
            _ if self.depth == 0 => {
                self.end_member();
                ObjectStep::Done
            }
            c if !self.is_value => {
                self.key.push(c);
                ObjectStep::Inside
            }
            c if self.is_arguments() => {
                // Space around the value does not belong to it.
                let is_space = c.is_whitespace() && self.depth == 1 && !was_quoted;
                if is_space { ObjectStep::Inside } else { ObjectStep::Argument(c) }
            }
            c => {
                self.value.push(c);
                ObjectStep::Inside
            }
        }
    }

    fn is_arguments(&self) -> bool {
        !self.has_arguments && ARGUMENTS.contains(&unquoted(&self.key).as_deref().unwrap_or(""))
    }

    fn end_member(&mut self) {
        self.has_arguments |= self.is_arguments();
        let key = unquoted(&self.key);
        if key.is_some_and(|key| NAMES.contains(&key.as_str())) && self.name.is_none() {
            self.name = unquoted(&self.value);
        }
        self.key.clear();
        self.value.clear();
        self.is_value = false;
    }
}

/// Text of a quoted string.
pub(super) fn unquoted(text: &str) -> Option<String> {
    serde_json::from_str(text.trim()).ok()
}
