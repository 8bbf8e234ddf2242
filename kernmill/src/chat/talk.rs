//! Talking with a model: what is typed, line by line, and what is shown.

use super::commands::{Command, HELP};
use super::dialogue::{Dialogue, Turn, TurnEnd};
use super::events::{Look, Shown, line};
use super::format::Format;
use super::saved::SavedConversation;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::model::Loaded;
use crate::tools::engine_figures::EngineFigures;
use kernmill_os::files::read_named_text;
use kernmill_os::output::NewFile;
use kernmill_plan::limit;
use kernmill_runtime::AdapterUse;
use serde_json::json;
use std::io::{self, BufRead, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Begins and ends a message of several lines.
const BLOCK: &str = "\"\"\"";

/// What a user typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of a file.
    End,
}

impl Line {
    /// The next line of a pipe or a file.
    ///
    /// # Errors
    /// When it cannot be read, is no UTF-8, or is longer than a prompt may be.
    pub fn read(input: &mut dyn BufRead) -> io::Result<Line> {
        let mut text = String::new();
        let most = limit::PROMPT_BYTES as u64;
        if Read::take(&mut *input, most).read_line(&mut text)? == 0 {
            return Ok(Line::End);
        }
        if text.len() as u64 == most && !text.ends_with('\n') {
            let what = format!("a line is longer than {most} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let length = text.trim_end_matches(['\n', '\r']).len();
        text.truncate(length);
        Ok(Line::Text(text))
    }
}

/// Where lines come from, and texts go to.
pub trait Console {
    /// Reads a line. A console with line editing shows `prompt`, and begins with the text `initial`.
    ///
    /// # Errors
    /// When there is no reading.
    fn read(&mut self, prompt: &str, initial: &str) -> io::Result<Line>;

    /// Shows a piece of text at once. `Break` says that nobody sees it.
    fn print(&mut self, text: &str) -> ControlFlow<()>;

    /// Says something beside, on a line of its own.
    fn note(&mut self, text: &str);

    /// Whether [`Console::read`] shows the text that it begins with.
    fn can_edit(&self) -> bool;
}

/// A talk: the model, what was said, and how it is shown.
pub struct Talk<'l> {
    loaded: &'l mut Loaded,
    dialogue: Dialogue,
    /// Names of the adapters that were loaded.
    adapters: Vec<String>,
    look: Look,
    /// File that the conversation is kept in.
    session: Option<PathBuf>,
    interrupt: Interrupt,
    /// Files that go before the next message.
    attached: String,
    last: Option<Turn>,
    /// Lines that were refused.
    refused: usize,
}

/// What follows a line.
enum Next {
    GoOn,
    Leave,
}

/// What was typed, lines put together.
enum Typed {
    Command(String),
    Message(String),
    Nothing,
    End,
}

impl<'l> Talk<'l> {
    /// A talk that begins. Adapters are all those that the model was loaded with, by their names.
    pub fn new(loaded: &'l mut Loaded, dialogue: Dialogue, adapters: Vec<String>, look: Look) -> Talk<'l> {
        Talk {
            loaded,
            dialogue,
            adapters,
            look,
            session: None,
            interrupt: Interrupt::default(),
            attached: String::new(),
            last: None,
            refused: 0,
        }
    }

    /// Keeps the conversation in a file after every turn, and goes on with it if there is one. A sentence
    /// that says what is different from when it was saved, if something is.
    ///
    /// # Errors
    /// When the file is no conversation, or could not be written again.
    pub fn keep_in(&mut self, path: &Path) -> Result<Option<String>> {
        NewFile::check(path).map_err(|error| Error::input(path, error))?;
        self.session = Some(path.to_owned());
        if path.try_exists().is_ok_and(|exists| !exists) {
            return Ok(None);
        }
        self.dialogue.load(self.loaded, SavedConversation::read(path)?)
    }

    /// Talks until the user leaves. How many lines were refused.
    ///
    /// # Errors
    /// When lines cannot be read, or the engine fails.
    pub fn run(&mut self, console: &mut dyn Console) -> Result<usize> {
        if self.look == Look::Json {
            let model = self.loaded.engine.model();
            let start = json!({
                "event": "start",
                "schema": "kernmill.chat/1",
                "model": model.name,
                "preset": model.preset,
                "format": self.dialogue.format().name(),
                "context": self.loaded.engine.context(),
                "adapters": self.adapters,
            });
            if console.print(&line(&start)).is_break() {
                return Ok(self.refused);
            }
        }
        if matches!(self.dialogue.format(), Format::Plain) {
            console.note(
                "note: this model has neither Harmony nor a chat template: turns are lines with `User:` and `Assistant:`",
            );
        }
        loop {
            let next = match self.typed(console)? {
                Typed::Nothing => continue,
                Typed::End => return Ok(self.refused),
                Typed::Message(text) => self.say(console, &text),
                Typed::Command(text) => Command::parse(&text).and_then(|command| self.obey(console, command)),
            };
            match next {
                Ok(ControlFlow::Continue(Next::GoOn)) => {}
                Ok(ControlFlow::Continue(Next::Leave) | ControlFlow::Break(())) => return Ok(self.refused),
                Err(Error::BadInput(what)) => {
                    if self.refuse(console, &what).is_break() {
                        return Ok(self.refused);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn refuse(&mut self, console: &mut dyn Console, what: &str) -> ControlFlow<()> {
        self.refused += 1;
        if self.look == Look::Json {
            return console.print(&line(&json!({ "event": "error", "message": what })));
        }
        console.note(&format!("error: {what}"));
        ControlFlow::Continue(())
    }

    /// Tells what a command did.
    fn reply(&self, console: &mut dyn Console, text: &str) -> Result<ControlFlow<(), Next>> {
        let shown = match self.look {
            Look::Json => line(&json!({ "event": "reply", "text": text.trim_end() })),
            _ => format!("{}\n", text.trim_end()),
        };
        Ok(console.print(&shown).map_continue(|()| Next::GoOn))
    }

    /// Tells what a user may not have meant.
    fn note(&self, console: &mut dyn Console, text: &str) -> ControlFlow<()> {
        if self.look == Look::Json {
            return console.print(&line(&json!({ "event": "note", "text": text })));
        }
        console.note(&format!("note: {text}"));
        ControlFlow::Continue(())
    }

    fn obey(&mut self, console: &mut dyn Console, command: Command) -> Result<ControlFlow<(), Next>> {
        match command {
            Command::Help => self.reply(console, HELP),
            Command::System(text) if text.is_empty() => {
                let text = self.dialogue.instructions().unwrap_or("there are no instructions").to_owned();
                self.reply(console, &text)
            }
            Command::System(text) => {
                self.dialogue.instruct(if text == "-" { "" } else { &text });
                Ok(ControlFlow::Continue(Next::GoOn))
            }
            Command::Effort(None) => {
                let effort = self.dialogue.conversation().effort.name();
                self.reply(console, &format!("the effort is {effort}"))
            }
            Command::Effort(Some(effort)) => {
                let note = self.dialogue.set_effort(effort);
                let flow = note.map_or(ControlFlow::Continue(()), |note| self.note(console, note));
                Ok(flow.map_continue(|()| Next::GoOn))
            }
            Command::Lora(name) => self.lora(console, &name),
            Command::File(path) => {
                let text = read_named_text(&path, limit::PROMPT_BYTES as u64).map_err(Error::read(&path))?;
                self.attached.push_str(text.trim_end());
                self.attached.push_str("\n\n");
                let (path, bytes) = (path.display(), text.len());
                self.reply(console, &format!("{path}: {bytes} bytes, before the next message"))
            }
            Command::Retry => self.turn(console, |dialogue, loaded, interrupt, on_event| {
                dialogue.retry(loaded, interrupt, on_event)
            }),
            Command::Edit(text) => self.edit(console, text),
            Command::Save(path) => {
                self.save(&path)?;
                let (path, items) = (path.display(), self.dialogue.conversation().items.len());
                self.reply(console, &format!("{path}: {items} items saved"))
            }
            Command::Load(path) => {
                let saved = SavedConversation::read(&path)?;
                let note =
                    self.dialogue.load(self.loaded, saved).map_err(|error| Error::input(&path, error))?;
                if let Some(note) = note
                    && self.note(console, &note).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
                let (path, items) = (path.display(), self.dialogue.conversation().items.len());
                self.reply(console, &format!("{path}: {items} items loaded"))
            }
            Command::Stats => {
                let last = self.last.as_ref().map_or("no answer yet".to_owned(), Turn::line);
                let engine = EngineFigures::of(&self.loaded.engine).lines();
                self.reply(console, &format!("{last}\n{engine}"))
            }
            Command::Clear => {
                self.dialogue.clear();
                self.attached.clear();
                Ok(ControlFlow::Continue(Next::GoOn))
            }
            Command::Exit => Ok(ControlFlow::Continue(Next::Leave)),
        }
    }

    fn lora(&mut self, console: &mut dyn Console, name: &str) -> Result<ControlFlow<(), Next>> {
        let all = if self.adapters.is_empty() { "none".to_owned() } else { self.adapters.join(", ") };
        match name {
            "" => {
                let used = self.dialogue.adapters();
                let used = if used.is_empty() { "none".to_owned() } else { used.join(", ") };
                return self.reply(console, &format!("adapters: {all}; in use: {used}"));
            }
            "none" => self.dialogue.set_adapters(Vec::new()),
            name if self.adapters.iter().any(|known| known == name) => {
                self.dialogue.set_adapters(vec![AdapterUse::of(name)]);
            }
            name => {
                let what = format!("/lora: there is no adapter {name}, expected none or one of: {all}");
                return Err(Error::BadInput(format!("{what} (--lora NAME=DIR loads one)")));
            }
        }
        Ok(ControlFlow::Continue(Next::GoOn))
    }

    fn edit(&mut self, console: &mut dyn Console, text: String) -> Result<ControlFlow<(), Next>> {
        let Some(last) = self.dialogue.last_message().map(str::to_owned) else {
            return Err(Error::BadInput("/edit: nothing has been said yet".to_owned()));
        };
        let text = match text.is_empty() {
            false => text,
            true if !console.can_edit() => {
                let what = "/edit: expected the text behind it, since there is no line to edit here";
                return Err(Error::BadInput(what.to_owned()));
            }
            true => match console.read("edit> ", &last).map_err(unread)? {
                Line::Text(text) if !text.trim().is_empty() => text,
                _ => return Ok(ControlFlow::Continue(Next::GoOn)),
            },
        };
        self.turn(console, |dialogue, loaded, interrupt, on_event| {
            dialogue.edit(loaded, &text, interrupt, on_event)
        })
    }

    fn say(&mut self, console: &mut dyn Console, text: &str) -> Result<ControlFlow<(), Next>> {
        let text = format!("{}{text}", self.attached);
        let turn = self.turn(console, |dialogue, loaded, interrupt, on_event| {
            dialogue.say(loaded, &text, interrupt, on_event)
        });
        self.attached.clear();
        turn
    }

    fn save(&self, path: &Path) -> Result<()> {
        match self.dialogue.to_saved(self.loaded).write(path) {
            // A file that cannot be written does not end the talk.
            Err(Error::Work(what)) => Err(Error::BadInput(what)),
            done => done,
        }
    }

    /// Makes an answer, and shows it.
    fn turn(
        &mut self,
        console: &mut dyn Console,
        make: impl FnOnce(
            &mut Dialogue,
            &mut Loaded,
            &mut Interrupt,
            &mut dyn FnMut(&kernmill_chat::Event) -> ControlFlow<()>,
        ) -> Result<Turn>,
    ) -> Result<ControlFlow<(), Next>> {
        let mut shown = Shown::new(self.look);
        let mut flow = ControlFlow::Continue(());
        let mut on_event = |event: &kernmill_chat::Event| {
            if flow.is_continue() {
                flow = console.print(&shown.event(event));
            }
            flow
        };
        let turn = make(&mut self.dialogue, self.loaded, &mut self.interrupt, &mut on_event)?;
        if flow.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(note) = self.about(&turn)
            && self.note(console, &note).is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        if self.look == Look::Json && console.print(&line(&turn.json())).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.last = Some(turn);
        if let Some(path) = &self.session {
            self.save(path)?;
        }
        Ok(ControlFlow::Continue(Next::GoOn))
    }

    /// What a user should know of how an answer ended.
    fn about(&self, turn: &Turn) -> Option<String> {
        let (written, context) = (turn.tokens.len(), self.loaded.engine.context());
        match turn.end {
            TurnEnd::Complete => None,
            TurnEnd::MaxTokens => Some(format!("the answer is cut off at -n {written}")),
            TurnEnd::Context => Some(format!(
                "the context is full: {} tokens of the conversation and {written} of the answer, the context holds {context}; \
                 the answer is cut off",
                turn.prompt_tokens
            )),
            TurnEnd::Interrupted if written == 0 => {
                Some("Ctrl-C came before the answer: the message is not part of the conversation".to_owned())
            }
            TurnEnd::Interrupted => Some(format!("Ctrl-C ended the answer after {written} tokens")),
        }
    }

    /// The next message or command, of one line or several.
    fn typed(&mut self, console: &mut dyn Console) -> Result<Typed> {
        let mut text = match console.read("> ", "").map_err(unread)? {
            Line::Text(text) => text,
            Line::Interrupted => {
                console.note("Ctrl-D or /exit leaves, /help lists commands");
                return Ok(Typed::Nothing);
            }
            Line::End => return Ok(Typed::End),
        };
        if let Some(first) = text.trim().strip_prefix(BLOCK) {
            return block(console, first);
        }
        while text.ends_with('\\') {
            text.pop();
            match console.read("... ", "").map_err(unread)? {
                Line::Text(more) => text = format!("{text}\n{more}"),
                Line::Interrupted => return Ok(Typed::Nothing),
                Line::End => break,
            }
        }
        if text.trim().is_empty() {
            return Ok(Typed::Nothing);
        }
        Ok(if text.starts_with('/') { Typed::Command(text) } else { Typed::Message(text.trim().to_owned()) })
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
            Line::Text(line) => lines.push(line),
            Line::Interrupted => return Ok(Typed::Nothing),
            Line::End => break,
        }
    }
    let text = lines.join("\n").trim_matches('\n').to_owned();
    Ok(if text.trim().is_empty() { Typed::Nothing } else { Typed::Message(text) })
}

fn unread(error: io::Error) -> Error {
    Error::Work(format!("standard input: {error}"))
}
