//! Talking with a model: what is typed, line by line, and what is shown.

use super::commands::{ChatCommand, HELP};
use super::console::{Console, Typed, TypedLine, asked, typed, unread};
use super::events::{AnswerDisplay, AnswerStyle, line, turn_json, turn_line};
use super::tools::read_tools;
use crate::interrupt::Interrupt;
use kernmill::Model;
use kernmill::chat::{Answered, Chat, Effort, Format, Reply};
use kernmill::{Error, ErrorKind, Result};
use kernmill_chat::Item;
use kernmill_os::files::read_named_text;
use kernmill_os::output::NewFile;
use kernmill_plan::limit;
use kernmill_serve::EngineFigures;
use kernmill_serve::Finish;
use serde_json::json;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A talk: the model, what was said, and how it is shown.
pub struct Talk {
    model: Model,
    chat: Chat,
    /// Names of the adapters that were loaded.
    adapters: Vec<String>,
    look: AnswerStyle,
    /// File that the conversation is kept in.
    session: Option<PathBuf>,
    interrupt: Interrupt,
    /// Whether reasoning is folded.
    folds: bool,
    /// Files that go before the next message.
    attached: String,
    last: Option<Answered>,
    /// Lines that were refused.
    refused: usize,
}

/// The action that follows a line.
enum NextAction {
    GoOn,
    Leave,
}

impl Talk {
    /// A talk that begins.
    pub fn new(model: Model, mut chat: Chat, look: AnswerStyle) -> Talk {
        let interrupt = Interrupt::default();
        chat.cancelled_by(interrupt.flag());
        Talk {
            adapters: model.about().adapters.iter().map(|adapter| adapter.name.clone()).collect(),
            model,
            chat,
            look,
            session: None,
            interrupt,
            folds: false,
            attached: String::new(),
            last: None,
            refused: 0,
        }
    }

    /// Keeps the conversation in the file `session`, and lets the model call the functions of the file
    /// `tools`, where these are given. Sentences about what is not as it may seem.
    ///
    /// # Errors
    /// When a file is of another kind, or the conversation's could not be written again.
    pub fn set_up(&mut self, session: Option<&Path>, tools: Option<&Path>) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if let Some(path) = session
            && let Some(note) = self.keep_in(path)?
        {
            notes.push(format!("{}: {note}", path.display()));
        }
        if let Some(path) = tools
            && let Some(note) = self.let_call(path)?
        {
            notes.push(format!("{}: {note}", path.display()));
        }
        Ok(notes)
    }

    /// Keeps the conversation in a file after every turn, and goes on with it if there is one. A sentence
    /// that says what is different from when it was saved, if something is.
    fn keep_in(&mut self, path: &Path) -> Result<Option<String>> {
        NewFile::check(path).map_err(Error::read(path))?;
        self.session = Some(path.to_owned());
        if path.try_exists().is_ok_and(|exists| !exists) {
            return Ok(None);
        }
        self.chat.load(path)
    }

    /// Lets the model call the functions of a file, as `/tools` does. A sentence that says so if it changes
    /// nothing.
    fn let_call(&mut self, path: &Path) -> Result<Option<&'static str>> {
        self.chat.tools(read_tools(path)?);
        Ok(self.lacks_format("this model has no format that tells it of functions: it will call none"))
    }

    /// Sets how long the model shall reason. A sentence that says so if it changes nothing.
    pub fn reason(&mut self, effort: Effort) -> Option<&'static str> {
        self.chat.effort(effort);
        let what = "this model has no format that says how long to reason: the effort changes nothing";
        self.lacks_format(what)
    }

    /// The note about a setting that a model without a format does not heed.
    fn lacks_format(&self, note: &'static str) -> Option<&'static str> {
        matches!(self.chat.format(), Format::Plain { .. }).then_some(note)
    }

    fn items(&self) -> &[Item] {
        &self.chat.conversation().items
    }

    /// Talks until the user leaves. How many lines were refused.
    ///
    /// # Errors
    /// When lines cannot be read, or the engine fails.
    pub fn run(&mut self, console: &mut dyn Console) -> Result<usize> {
        if self.look == AnswerStyle::Json {
            let model = &self.model.image().program().model;
            let start = json!({
                "event": "start",
                "schema": "kernmill.chat/1",
                "model": model.name,
                "preset": model.preset,
                "format": self.chat.format().name(),
                "context": self.model.about().context,
                "adapters": self.adapters,
            });
            if console.print(&line(&start)).is_break() {
                return Ok(self.refused);
            }
        }
        if let Some(note) = self.chat.format().note() {
            console.note(&note);
        }
        loop {
            let next = match typed(console)? {
                Typed::Nothing => continue,
                Typed::End => return Ok(self.refused),
                Typed::Message(text) => self.say(console, &text),
                Typed::Command(text) => {
                    ChatCommand::parse(&text).and_then(|command| self.obey(console, command))
                }
            };
            match next {
                Ok(ControlFlow::Continue(NextAction::GoOn)) => {}
                Ok(ControlFlow::Continue(NextAction::Leave) | ControlFlow::Break(())) => {
                    return Ok(self.refused);
                }
                Err(error) if error.kind() == ErrorKind::BadInput => {
                    if self.refuse(console, &error.to_string()).is_break() {
                        return Ok(self.refused);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn refuse(&mut self, console: &mut dyn Console, what: &str) -> ControlFlow<()> {
        self.refused += 1;
        if self.look == AnswerStyle::Json {
            return console.print(&line(&json!({ "event": "error", "message": what })));
        }
        console.say(&format!("error: {what}"));
        ControlFlow::Continue(())
    }

    /// Tells what a command did.
    fn reply(&self, console: &mut dyn Console, text: &str) -> Result<ControlFlow<(), NextAction>> {
        let shown = match self.look {
            AnswerStyle::Json => line(&json!({ "event": "reply", "text": text.trim_end() })),
            _ => format!("{}\n", text.trim_end()),
        };
        Ok(console.print(&shown).map_continue(|()| NextAction::GoOn))
    }

    /// Tells what a user may not have meant.
    fn note(&self, console: &mut dyn Console, text: &str) -> ControlFlow<()> {
        if self.look == AnswerStyle::Json {
            return console.print(&line(&json!({ "event": "note", "text": text })));
        }
        console.note(text);
        ControlFlow::Continue(())
    }

    fn obey(
        &mut self,
        console: &mut dyn Console,
        command: ChatCommand,
    ) -> Result<ControlFlow<(), NextAction>> {
        match command {
            ChatCommand::Help => self.reply(console, HELP),
            ChatCommand::System(text) if text.is_empty() => {
                let text = match self.items().first() {
                    Some(Item::Instructions(text)) => text.clone(),
                    _ => "there are no instructions".to_owned(),
                };
                self.reply(console, &text)
            }
            ChatCommand::System(text) => {
                self.chat.system(if text == "-" { "" } else { &text });
                Ok(ControlFlow::Continue(NextAction::GoOn))
            }
            ChatCommand::Effort(None) => {
                let effort = self.chat.conversation().effort.name();
                self.reply(console, &format!("the effort is {effort}"))
            }
            ChatCommand::Effort(Some(effort)) => {
                let note = self.reason(effort);
                let flow = note.map_or(ControlFlow::Continue(()), |note| self.note(console, note));
                Ok(flow.map_continue(|()| NextAction::GoOn))
            }
            ChatCommand::Lora(name) => self.lora(console, &name),
            ChatCommand::Tools(None) => {
                let names: Vec<&str> =
                    self.chat.conversation().tools.iter().map(|tool| &*tool.name).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                self.reply(console, &format!("functions: {names}"))
            }
            ChatCommand::Tools(Some(path)) if path.as_os_str() == "none" => {
                self.chat.tools(Vec::new());
                Ok(ControlFlow::Continue(NextAction::GoOn))
            }
            ChatCommand::Tools(Some(path)) => {
                let note = self.let_call(&path)?;
                let flow = note.map_or(ControlFlow::Continue(()), |note| self.note(console, note));
                Ok(flow.map_continue(|()| NextAction::GoOn))
            }
            ChatCommand::Reasoning(None) => {
                let reasoning = self.items().iter().rev().find_map(|item| match item {
                    Item::Reasoning(text) => Some(&**text),
                    _ => None,
                });
                let text = reasoning.unwrap_or("there is no reasoning").to_owned();
                self.reply(console, &text)
            }
            ChatCommand::Reasoning(Some(folds)) => {
                self.folds = folds;
                Ok(ControlFlow::Continue(NextAction::GoOn))
            }
            ChatCommand::File(path) => {
                let text = read_named_text(&path, limit::PROMPT_BYTES as u64).map_err(Error::read(&path))?;
                self.attached.push_str(text.trim_end());
                self.attached.push_str("\n\n");
                let (path, bytes) = (path.display(), text.len());
                self.reply(console, &format!("{path}: {bytes} bytes, before the next message"))
            }
            ChatCommand::Retry => self.turn(console, Chat::retry),
            ChatCommand::Edit(text) => self.edit(console, text),
            ChatCommand::Save(path) => {
                self.save(&path)?;
                let (path, items) = (path.display(), self.chat.conversation().items.len());
                self.reply(console, &format!("{path}: {items} items saved"))
            }
            ChatCommand::Load(path) => {
                let note = self.chat.load(&path)?;
                if let Some(note) = note
                    && self.note(console, &note).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
                let (path, items) = (path.display(), self.chat.conversation().items.len());
                self.reply(console, &format!("{path}: {items} items loaded"))
            }
            ChatCommand::Stats => {
                let last = self.last.as_ref().map_or("no answer yet".to_owned(), turn_line);
                let engine = EngineFigures::now(self.model.thread())?.lines();
                self.reply(console, &format!("{last}\n{engine}"))
            }
            ChatCommand::Clear => {
                self.chat.clear();
                self.attached.clear();
                Ok(ControlFlow::Continue(NextAction::GoOn))
            }
            ChatCommand::Exit => Ok(ControlFlow::Continue(NextAction::Leave)),
        }
    }

    fn lora(&mut self, console: &mut dyn Console, name: &str) -> Result<ControlFlow<(), NextAction>> {
        let all = if self.adapters.is_empty() { "none".to_owned() } else { self.adapters.join(", ") };
        match name {
            "" => {
                let used = self.chat.adapters();
                let used = if used.is_empty() { "none".to_owned() } else { used.join(", ") };
                return self.reply(console, &format!("adapters: {all}; in use: {used}"));
            }
            "none" => _ = self.chat.adapter(None),
            name if self.adapters.iter().any(|known| known == name) => {
                self.chat.adapter(Some(name));
            }
            name => {
                let what = format!("/lora: there is no adapter {name}, expected none or one of: {all}");
                return Err(Error::bad_input(format!("{what} (--lora NAME=DIR loads one)")));
            }
        }
        Ok(ControlFlow::Continue(NextAction::GoOn))
    }

    fn edit(&mut self, console: &mut dyn Console, text: String) -> Result<ControlFlow<(), NextAction>> {
        let last = self.items().iter().rev().find_map(|item| match item {
            Item::User { text, .. } => Some(text.clone()),
            _ => None,
        });
        let Some(last) = last else {
            return Err(Error::bad_input("/edit: nothing has been said yet".to_owned()));
        };
        let text = match text.is_empty() {
            false => text,
            true if !console.can_edit() => {
                let what = "/edit: expected the text behind it, since there is no line to edit here";
                return Err(Error::bad_input(what.to_owned()));
            }
            true => match console.read("edit> ", &last).map_err(unread)? {
                TypedLine::Text(text) if !text.trim().is_empty() => text,
                _ => return Ok(ControlFlow::Continue(NextAction::GoOn)),
            },
        };
        self.turn(console, |chat| chat.edit(&text))
    }

    fn say(&mut self, console: &mut dyn Console, text: &str) -> Result<ControlFlow<(), NextAction>> {
        let text = format!("{}{text}", self.attached);
        let turn = self.turn(console, |chat| chat.send(&text));
        self.attached.clear();
        turn
    }

    fn save(&self, path: &Path) -> Result<()> {
        // A file that cannot be written does not end the talk.
        self.chat.save(path).map_err(|error| Error::bad_input(error.to_string()))
    }

    /// Makes an answer, shows it, and lets the model go on with the results of the calls that it has.
    fn turn(
        &mut self,
        console: &mut dyn Console,
        make: impl FnOnce(&mut Chat) -> Result<Reply<'_>>,
    ) -> Result<ControlFlow<(), NextAction>> {
        let mut flow = self.part_of_turn(console, make)?;
        while let ControlFlow::Continue(NextAction::GoOn) = flow
            && !self.chat.open_calls().is_empty()
        {
            let results = match self.results(console)? {
                ControlFlow::Continue(results) => results,
                ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
            };
            // The next message says that these calls have no results.
            let Some(results) = results else { break };
            flow = self.part_of_turn(console, |chat| chat.give(results))?;
        }
        Ok(flow)
    }

    /// Makes an answer until its end or its calls, and shows it.
    fn part_of_turn(
        &mut self,
        console: &mut dyn Console,
        make: impl FnOnce(&mut Chat) -> Result<Reply<'_>>,
    ) -> Result<ControlFlow<(), NextAction>> {
        let mut shown = AnswerDisplay::new(self.look, self.folds);
        let mut flow = ControlFlow::Continue(());
        self.interrupt.clear();
        self.interrupt.watch();
        let mut reply = make(&mut self.chat)?;
        while let Some(event) = reply.next_event()? {
            flow = console.print(&shown.event(&event));
            if flow.is_break() {
                break;
            }
        }
        let turn = reply.answered()?;
        if flow.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(note) = self.about(&turn)
            && self.note(console, &note).is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        if self.look == AnswerStyle::Json && console.print(&line(&turn_json(&turn))).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.last = Some(turn);
        if let Some(path) = &self.session {
            self.save(path)?;
        }
        Ok(ControlFlow::Continue(NextAction::GoOn))
    }

    /// Asks for the results of the open calls. `None` without them all.
    fn results(&self, console: &mut dyn Console) -> Result<ControlFlow<(), Option<Vec<String>>>> {
        let mut results = Vec::new();
        for call in self.chat.open_calls() {
            if self.look == AnswerStyle::Json {
                let wanted = json!({ "event": "result_wanted", "id": call.id, "name": call.name });
                if console.print(&line(&wanted)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let text = asked(console, &format!("result of {}> ", call.name))?;
            let Some(text) = text else { return Ok(ControlFlow::Continue(None)) };
            results.push(text);
        }
        Ok(ControlFlow::Continue(Some(results)))
    }

    /// A note for the user about the end of an answer.
    fn about(&self, turn: &Answered) -> Option<String> {
        let (written, context) = (turn.tokens.len(), self.model.about().context);
        match &turn.finish {
            finish if finish.is_complete() => None,
            Finish::MaxTokens => Some(format!("the answer is cut off at -n {written}")),
            Finish::Context => Some(format!(
                "the context is full: {} tokens of the conversation and {written} of the answer, the context \
                 holds {context}; the answer is cut off",
                turn.prompt_tokens
            )),
            _ if written == 0 => {
                Some("Ctrl-C came before the answer: the message is not part of the conversation".to_owned())
            }
            _ => Some(format!("Ctrl-C ended the answer after {written} tokens")),
        }
    }
}
