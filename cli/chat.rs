//! `kernmill chat`: a conversation with a model.

use crate::aside::Aside;
use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::options::{CONTEXT, ContextArgs, TemplateArgs};
use crate::output;
use crate::run::sampling::SamplingArgs;
use kernmill::Model;
use kernmill::adapters::together;
use kernmill::chat::Chat as Conversation;
use kernmill_tools::chat::{AnswerStyle, Console, Effort, Talk, TypedLine};
use kernmill_tools::serve::{Request, SchedulerConfig as Scheduling};
use kernmill_tools::{terminal::output_has_colours, tokens};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Talks with a model
///
/// Messages are read line by line: from a terminal with line editing, or from a pipe. /help lists the
/// commands between them. Answers go to standard output as they come, reasoning dimmed; Ctrl-C ends an
/// answer, Ctrl-D the conversation. Each turn only computes what is new.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/chat.txt"))]
pub struct Chat {
    /// First message
    #[arg(value_name = "MESSAGE", index = 2, help_heading = None::<&'static str>)]
    message: Option<String>,
    /// Tokens of an answer at most; -1 goes on to its end, or until the context is full
    #[arg(short = 'n', long, value_name = "N", default_value = "-1", value_parser = tokens::most)]
    max_tokens: u32,
    /// Instructions for the model
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,
    /// How long the model reasons: none, low, medium or high
    #[arg(long, value_name = "LEVEL")]
    effort: Option<Effort>,
    /// File with functions that the model may call, as OpenAI's `tools` in JSON. You give their results
    #[arg(long, value_name = "FILE.json")]
    tools: Option<PathBuf>,
    /// File that the conversation is kept in, and goes on from. A file that is not there is a new
    /// conversation. With --kv-disk, what was computed comes back
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
    #[command(flatten)]
    template: TemplateArgs,
    #[command(flatten)]
    length: ContextArgs,
    /// Print events as JSON lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    model: ModelArgs,
}

impl Chat {
    /// Runs the command.
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        let first = self.model.given.take_named(explicit).map(|text| text.to_string_lossy().into_owned());
        let first = self.message.take().or(first);
        let (mut model, mut options) = model::open(&self.model, &Emit::NONE, explicit)?;
        options.chat_template = self.template.chat_template;
        let tokenizer = model.tokenizer();
        let sampler = self.sampling.params(model.vocab())?;
        let end_tokens = model.end_tokens()?;
        let context = model.context(self.length.context, CONTEXT)?;
        let (loaded, adapters) = model::load(model, &options, &Emit::NONE, context, 1)?;
        let request = Request {
            adapters: together(&options.adapters),
            sampler,
            drafter: self.sampling.drafter(tokenizer.as_ref())?,
            drafts: false,
            ..Request::greedy(Vec::new(), self.max_tokens)
        };
        let model = Model::of(loaded, Scheduling::default().with_sequences(1), end_tokens, adapters)?;
        let mut chat = Conversation::new(&model, request)?;
        if let Some(text) = &self.system {
            chat.system(text);
        }
        let is_terminal = io::stdin().is_terminal();
        let mut talk = Talk::new(model.clone(), chat, AnswerStyle::of(self.json, output_has_colours()));
        let aside = self.model.aside;
        let note = self.effort.and_then(|effort| talk.reason(effort)).map(str::to_owned);
        let notes = talk.set_up(self.session.as_deref(), self.tools.as_deref())?;
        note.into_iter().chain(notes).for_each(|note| aside.note(note));
        let mut terminal = Terminal::new(is_terminal, aside, first)?;
        if is_terminal {
            aside.line("/help lists the commands; Ctrl-D leaves");
        }
        let refused = talk.run(&mut terminal);
        model.thread().end();
        match (refused?, terminal.failure) {
            (_, Some(failure)) => Err(failure),
            (refused, None) if refused == 0 || is_terminal => Ok(()),
            (1, None) => Err(Failure::BadInput("1 line was refused".to_owned())),
            (refused, None) => Err(Failure::BadInput(format!("{refused} lines were refused"))),
        }
    }
}

/// Standard input and output.
struct Terminal {
    /// Line editing, if standard input is a terminal.
    editor: Option<Editor<(), MemHistory>>,
    aside: Aside,
    failure: Option<Failure>,
    /// A message that comes before those that are typed.
    first: Option<String>,
}

impl Terminal {
    fn new(is_terminal: bool, aside: Aside, first: Option<String>) -> Result<Terminal> {
        let failed = |error: ReadlineError| Failure::Work(format!("the terminal: {error}"));
        let config = Config::builder().auto_add_history(true).build();
        let editor = || Editor::with_history(config, MemHistory::new()).map_err(failed);
        let editor = if is_terminal { Some(editor()?) } else { None };
        Ok(Terminal { editor, aside, failure: None, first })
    }
}

impl Console for Terminal {
    fn read(&mut self, prompt: &str, initial: &str) -> io::Result<TypedLine> {
        if let Some(text) = self.first.take() {
            if self.editor.is_some() {
                self.aside.line(format_args!("{prompt}{text}"));
            }
            return Ok(TypedLine::Text(text));
        }
        let Some(editor) = &mut self.editor else { return TypedLine::read(&mut io::stdin().lock()) };
        match editor.readline_with_initial(prompt, (initial, "")) {
            Ok(text) => Ok(TypedLine::Text(text)),
            Err(ReadlineError::Interrupted) => Ok(TypedLine::Interrupted),
            Err(ReadlineError::Eof) => Ok(TypedLine::End),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn print(&mut self, text: &str) -> ControlFlow<()> {
        self.failure = output::print(text).err();
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn note(&mut self, text: &str) {
        self.aside.note(text);
    }

    fn say(&mut self, text: &str) {
        Aside::default().line(text);
    }

    fn can_edit(&self) -> bool {
        self.editor.is_some()
    }
}
