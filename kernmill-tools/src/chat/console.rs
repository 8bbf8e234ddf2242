//! Input of a user: lines, and messages and commands out of them.

use kernmill::{Error, Result};
use kernmill_plan::limit;
use std::io::{self, BufRead, ErrorKind, Read};
use std::ops::ControlFlow;

/// Begins and ends a message of several lines.
const BLOCK: &str = "\"\"\"";

/// The input of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedLine {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of a file.
    End,
}

impl TypedLine {
    /// The next line of a pipe or a file.
    ///
    /// # Errors
    /// When it cannot be read, is no UTF-8, or is longer than a prompt may be.
    pub fn read(input: &mut dyn BufRead) -> io::Result<TypedLine> {
        let mut text = String::new();
        let most = limit::PROMPT_BYTES as u64;
        if Read::take(&mut *input, most).read_line(&mut text)? == 0 {
            return Ok(TypedLine::End);
        }
        if text.len() as u64 == most && !text.ends_with('\n') {
            let what = format!("a line is longer than {most} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let length = text.trim_end_matches(['\n', '\r']).len();
        text.truncate(length);
        Ok(TypedLine::Text(text))
    }
}

/// Where lines come from, and texts go to.
pub trait Console {
    /// Reads a line. A console with line editing shows `prompt`, and begins with the text `initial`.
    ///
    /// # Errors
    /// When there is no reading.
    fn read(&mut self, prompt: &str, initial: &str) -> io::Result<TypedLine>;

    /// Shows a piece of text at once. `Break` says that nobody sees it.
    fn print(&mut self, text: &str) -> ControlFlow<()>;

    /// Says what a user may not have meant: a sentence without its full stop.
    fn note(&mut self, text: &str);

    /// Says something else beside, on a separate line.
    fn say(&mut self, text: &str);

    /// Whether [`Console::read`] shows the text that it begins with.
    fn can_edit(&self) -> bool;
}

/// The input, lines put together.
pub(super) enum Typed {
    Command(String),
    Message(String),
    Nothing,
    End,
}

/// The next message or command, of one line or several.
pub(super) fn typed(console: &mut dyn Console) -> Result<Typed> {
    let mut text = match console.read("> ", "").map_err(unread)? {
        TypedLine::Text(text) => text,
        TypedLine::Interrupted => {
            console.say("Ctrl-D or /exit leaves, /help lists commands");
            return Ok(Typed::Nothing);
        }
        TypedLine::End => return Ok(Typed::End),
    };
    if let Some(first) = text.trim().strip_prefix(BLOCK) {
        return block(console, first);
    }
    while text.ends_with('\\') {
        text.pop();
        match console.read("... ", "").map_err(unread)? {
            TypedLine::Text(more) => text = format!("{text}\n{more}"),
            TypedLine::Interrupted => return Ok(Typed::Nothing),
            TypedLine::End => break,
        }
    }
    if text.trim().is_empty() {
        return Ok(Typed::Nothing);
    }
    Ok(if text.starts_with('/') { Typed::Command(text) } else { Typed::Message(text.trim().to_owned()) })
}

/// A text that is asked for: a line, or a block of lines. `None` if none is given.
pub(super) fn asked(console: &mut dyn Console, prompt: &str) -> Result<Option<String>> {
    let TypedLine::Text(text) = console.read(prompt, "").map_err(unread)? else { return Ok(None) };
    match text.trim().strip_prefix(BLOCK) {
        Some(first) => match block(console, first)? {
            Typed::Message(text) => Ok(Some(text)),
            _ => Ok(None),
        },
        None => Ok(Some(text)),
    }
}

/// Reads a block of lines, whose first one is `first`.
fn block(console: &mut dyn Console, first: &str) -> Result<Typed> {
    let mut lines = vec![first.to_owned()];
    loop {
        if let Some(last) = lines.last_mut()
            && let Some(end) = last.trim_end().strip_suffix(BLOCK)
        {
            *last = end.to_owned();
            break;
        }
        match console.read("... ", "").map_err(unread)? {
            TypedLine::Text(line) => lines.push(line),
            TypedLine::Interrupted => return Ok(Typed::Nothing),
            TypedLine::End => break,
        }
    }
    let text = lines.join("\n").trim_matches('\n').to_owned();
    Ok(if text.trim().is_empty() { Typed::Nothing } else { Typed::Message(text) })
}

pub(super) fn unread(error: io::Error) -> Error {
    Error::failed(format!("standard input: {error}"))
}
