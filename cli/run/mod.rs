//! `kernmill run`: text from a prompt.

pub mod sampling;

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::options::ContextArgs;
use crate::prompt::PromptArgs;
use crate::{output, version};
use kernmill::adapters::{AdapterSource, together};
use kernmill::{Model, Opened};
use kernmill_tools::interrupt::Interrupt;
use kernmill_tools::prompt::{GivenPrompt, check_stops};
use kernmill_tools::run_figures::{Figures, ending};
use kernmill_tools::serve::{Answer, Request, SavedText, SchedulerConfig, Token};
use kernmill_tools::{EngineFigures, RuleSource, Tokenizer, TokenizerHandle, terminal, tokens};
use sampling::SamplingArgs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Generates text
///
/// Without a model, the embedded nano model is compiled on the spot: a GPT-OSS in miniature that writes in
/// the manner of the Rust documentation. Text goes to standard output as it comes, figures to standard error
/// at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/run.txt"))]
pub struct Run {
    #[command(flatten)]
    prompt: PromptArgs,
    /// Tokens to generate at most; -1 goes on to an end token, or until the context is full
    #[arg(short = 'n', long, value_name = "N", default_value = "200", value_parser = tokens::most)]
    max_tokens: u32,
    /// File in which the text is saved, and from which it goes on: nothing is computed twice. The prompt
    /// follows what is there; without one, the text goes on. A file that is not there is a new session
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
    #[command(flatten)]
    length: ContextArgs,
    /// End the text at this string, which is not shown, or at the special token of this name; may be given
    /// several times
    #[arg(long, value_name = "STR")]
    stop: Vec<String>,
    /// Show special tokens, such as those between the parts of an answer
    #[arg(long)]
    special: bool,
    /// Do not end at the model's own end tokens
    #[arg(long)]
    ignore_end: bool,
    /// Make the text a JSON object
    #[arg(long, group = "form", help_heading = "Form of the text")]
    json_object: bool,
    /// Make the text JSON of the schema in this file; a prompt that asks for it helps
    #[arg(long, value_name = "FILE", group = "form", help_heading = "Form of the text")]
    json_schema: Option<PathBuf>,
    /// Make the text one of the grammar in this file: Lark's syntax, the first rule is `start`
    #[arg(long, value_name = "FILE", group = "form", help_heading = "Form of the text")]
    grammar: Option<PathBuf>,
    /// Make the text one that this regular expression matches from beginning to end
    #[arg(long, value_name = "PATTERN", group = "form", help_heading = "Form of the text")]
    regex: Option<String>,
    /// Print one JSON object (text, tokens, figures) at the end instead of text as it comes
    #[arg(long)]
    json: bool,
    /// Say more at the end: steps, cached tokens, KV cache
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    emit: Emit,
}

impl Run {
    /// Runs the command.
    pub fn execute(mut self, explicit: &Explicit) -> Result<()> {
        self.prompt.follow(&mut self.model.given, explicit)?;
        self.emit.check(None)?;
        if self.json && self.emit.prints() {
            let what = "--emit prints to the same place; give --emit-dir, or leave out one of them";
            explicit.refuse(&["json"], what)?;
        }
        let start = Instant::now();
        let opened = model::open(&self.model, &self.emit, explicit);
        let (mut model, mut options) =
            opened.map_err(|failure| self.prompt.explained(failure, &self.model.given))?;
        options.sessions = self.session.is_some();
        let names = options.adapters.iter().map(|adapter| format!("{}:{}", adapter.name, adapter.scale));
        let mut session = SavedText::open(self.session.as_deref(), model.vocab(), names.collect())?;
        let tokenizer = self.tokenizer(&mut model);
        // The context must be possible before a prompt is held to it.
        let most = model.context(self.length.context, usize::MAX)?;
        let prompt = self.prompt.source().read(&model, tokenizer.as_ref(), session.tokens(), most)?;
        let context =
            model.context(self.length.context, prompt.ids.len().saturating_add(self.max_tokens as usize))?;
        tokens::check_length(prompt.ids.len(), context, model.longest_context())?;
        if tokenizer.is_none() && !self.stop.is_empty() {
            return Err(Failure::BadInput("--stop needs a tokenizer.json beside the weights".to_owned()));
        }
        if let Some(tokenizer) = &tokenizer {
            self.check_texts(&model, tokenizer.get()?, &prompt)?;
        }
        let mut request = self.request(&model, prompt.ids.clone(), &options.adapters)?;
        request.drafter = self.sampling.drafter(tokenizer.as_ref())?;
        let (json_schema, grammar) = (self.json_schema.clone(), self.grammar.clone());
        let rule =
            RuleSource { json_object: self.json_object, json_schema, grammar, regex: self.regex.clone() };
        request.constraint = rule.constraint(tokenizer.as_ref(), model.vocab(), &request.stop_tokens)?;
        let end_tokens = request.stop_tokens.clone();
        let (loaded, adapters) = model::load(model, &options, &self.emit, context, 1)?;
        let model = Model::of(loaded, SchedulerConfig::default().with_sequences(1), end_tokens, adapters)?;
        let has_seed = explicit.has("seed");
        let (session, request, note) = model.thread().run(move |serving| {
            let note = session.restore(serving, &mut request, has_seed);
            (session, request, note)
        })?;
        note?.iter().for_each(|note| options.observer.note(note));
        let ready_seconds = start.elapsed().as_secs_f64();
        tracing::info!(seconds = ready_seconds, "ready");
        let interrupt = Interrupt::default();
        let answer = self.generate(&model, &prompt, request.clone(), &interrupt)?;
        let (restored, seed, max_tokens) = (session.restored(), request.sampler.seed, self.max_tokens);
        let (answer, engine) = model.thread().run(move |serving| {
            let saved = session.save(serving, &request, &answer);
            serving.save_cache();
            saved.map(|()| (answer, EngineFigures::of(serving.engine())))
        })??;
        model.thread().end();
        let (model, answer, text) = (&model, &answer, prompt.shown + &answer.text);
        let figures = Figures { model, engine, answer, session: restored, max_tokens, seed, ready_seconds };
        let json = self.json.then(|| version::report("kernmill.run/1", figures.json(&text)));
        self.model.aside.end(json, figures.line(), self.stats.then(|| figures.lines()))?;
        if interrupt.came() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// The model's tokenizer. For a prompt of token ids one that cannot be read is done without.
    fn tokenizer(&self, model: &mut Opened) -> Option<TokenizerHandle> {
        let tokenizer = model.tokenizer()?;
        if self.prompt.is_ids()
            && let Err(error) = tokenizer.get()
        {
            self.model.aside.note(format_args!("token ids are shown instead of text: {error}"));
            model.leave_tokenizer();
            return None;
        }
        Some(tokenizer)
    }

    /// Says what may not be meant, and refuses stop strings that no text can have.
    fn check_texts(&self, model: &Opened, tokenizer: &Tokenizer, prompt: &GivenPrompt) -> Result<()> {
        let aside = self.model.aside;
        let is_asked = self.prompt.is_text() && terminal::is_watched();
        model.tokenizer_note().iter().for_each(|note| aside.note(note));
        model.chat_note().iter().filter(|_| is_asked).for_each(|note| aside.note(note));
        if let Some(start) = tokenizer.repeated_start(&prompt.ids).filter(|_| !self.prompt.is_ids()) {
            aside.note(format_args!(
                "the prompt begins with {start}, and the tokenizer puts another one before it"
            ));
        }
        if self.special { Ok(()) } else { Ok(check_stops(&self.stop, tokenizer)?) }
    }

    fn request(&self, model: &Opened, prompt: Vec<u32>, adapters: &[AdapterSource]) -> Result<Request> {
        let sampler = self.sampling.params(model.vocab())?;
        let stop_tokens = if self.ignore_end { Vec::new() } else { model.end_tokens()? };
        Ok(Request {
            adapters: together(adapters),
            sampler,
            stop: self.stop.clone(),
            stop_tokens,
            shows_special: self.special,
            drafts: false,
            ..Request::greedy(prompt, self.max_tokens)
        })
    }

    /// Generates, and shows the text as it comes when it is not wanted at the end. Ctrl-C ends it after the
    /// token at hand.
    fn generate(
        &self,
        model: &Model,
        prompt: &GivenPrompt,
        request: Request,
        interrupt: &Interrupt,
    ) -> Result<Answer> {
        let is_shown = !self.json;
        if is_shown {
            output::print(dimmed(&prompt.shown))?;
        }
        let failure = Arc::new(Mutex::new(None));
        let (mut interrupt, failed) = (interrupt.clone(), failure.clone());
        let answer = model.thread().follow(request, move |token: Token| {
            // While the prompt is read there is nothing to end well.
            interrupt.watch();
            let printed = if is_shown && !token.text.is_empty() { output::print(token.text) } else { Ok(()) };
            let goes_on = printed.is_ok() && !interrupt.came();
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = printed.err();
            goes_on
        })?;
        failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)?;
        if is_shown {
            output::print(ending(&answer, model.tokenizer().is_some()))?;
        }
        Ok(answer)
    }
}

/// The model's own example prompt, told apart from its text on a terminal.
fn dimmed(prompt: &str) -> String {
    let is_plain = prompt.is_empty() || !terminal::output_has_colours();
    if is_plain { prompt.to_owned() } else { format!("\u{1b}[2m{prompt}\u{1b}[0m") }
}
