//! Running a template on a separate thread.
//!
//! What a template does is not known before it runs. It counts its own work, and looks whether somebody
//! still waits for it: a server's client may go, and a limit of time holds for all forms of a conversation
//! together.

use super::context;
use super::error::TemplateError;
use super::jinja::{self, Budget, TemplateFault, TemplateProgram, TemplateText, Value, stopped};
use super::takes::{FORMS, MessageForm, Takes};
use crate::calls::CallFormat;
use crate::conversation::{Conversation, Date, Item};
use kernmill_os::foreign::{self, Cancel, Watch};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the longest text that a template may write.
pub const TEXT_BYTES: usize = 64 << 20;

/// Work that a template may do: a step of it counts as 64, and every byte that it makes or looks at as one.
/// This bounds its time, and its memory to 32 MiB.
const WORK: usize = 32 << 20;

/// Work that a template may do besides for each byte of a conversation.
const WORK_BY_BYTE: usize = 64;

/// Work that a template may do besides for each item of a conversation.
const WORK_BY_ITEM: usize = 256 << 10;

/// Longest time of a template for one prompt, in all forms in which a conversation is tried.
const TIME: Duration = Duration::from_secs(2);

/// The day that is told where none is to be told: the one that templates of Llama have for that.
const NO_DAY: (u16, u8, u8) = (2024, 7, 26);

/// A template that was read, with what it takes.
#[derive(Debug)]
pub(super) struct Renderer {
    program: TemplateProgram,
    /// Texts of tokens, by the names that templates have for them.
    tokens: BTreeMap<String, String>,
    pub takes: Takes,
    /// How the model's calls are read, if the template shows it, or if kernmill told the model.
    pub calls: Option<&'static CallFormat>,
}

impl Renderer {
    /// Reads a template, which shows the format `calls`, and asks it what it takes.
    ///
    /// # Errors
    /// When it is no template.
    pub fn new(
        source: &str,
        tokens: BTreeMap<String, String>,
        calls: Option<&'static CallFormat>,
    ) -> Result<Renderer, TemplateError> {
        let source = source.to_owned();
        // The answers depend on work alone, not on time, so that the same template always gives the same
        // ones.
        away(16 * TIME, move |watch| {
            let wrong = |(what, line): (String, u32)| TemplateError::Parse(format!("{what} in line {line}"));
            let program = TemplateProgram::parse(&source).map_err(wrong)?;
            // Only formats whose arguments are an object are told where the template has no place for
            // functions.
            let told = calls.filter(|calls| calls.pairs().is_none()).unwrap_or(&CallFormat::UNTOLD);
            let mut renderer = Renderer { program, tokens, takes: Takes::usual(told), calls: Some(told) };
            renderer.takes = Takes::ask(renderer.takes, |conversation, takes| {
                let text = renderer.render(conversation, takes, FORMS[0], (WORK / 8, watch)).ok()?;
                Some(text.as_str().to_owned())
            });
            if renderer.takes.tells_tools {
                renderer.takes.format = calls.unwrap_or(told);
                renderer.calls = calls;
            }
            Ok(renderer)
        })
    }

    /// The text of a prompt, special tokens as the template writes them, and how calls behind it are read.
    ///
    /// # Errors
    /// When the template refuses the conversation or fails, or nobody waits any more.
    pub fn written(
        self: &Arc<Renderer>,
        conversation: &Conversation,
    ) -> Result<(TemplateText, Option<&'static CallFormat>), TemplateError> {
        let (renderer, conversation) = (Arc::clone(self), conversation.clone());
        away(TIME, move |watch| renderer.in_a_form(&conversation, watch))
    }

    /// The text of a prompt, with all declared functions, and how calls behind it are read.
    fn in_a_form(
        &self,
        conversation: &Conversation,
        watch: &Watch,
    ) -> Result<(TemplateText, Option<&'static CallFormat>), TemplateError> {
        let text = self.whole(conversation, &self.takes, watch)?;
        if !self.takes.tells_tools || self.are_told(conversation, &text, watch) {
            return Ok((text, self.calls));
        }
        // The template has a place for functions, but not in this conversation.
        let lost = "it drops the functions that are declared, because of the turns beside them";
        if self.takes.format.pairs().is_some() {
            return Err(TemplateError::Refused(lost.to_owned()));
        }
        let text = self.whole(conversation, &Takes { tells_tools: false, ..self.takes }, watch)?;
        match self.are_told(conversation, &text, watch) {
            true => Ok((text, Some(self.takes.format))),
            false => Err(TemplateError::Refused(lost.to_owned())),
        }
    }

    /// Whether a text, that of a conversation, tells the declared functions: it names all of them, and it is
    /// another one without them. Their names alone can also stand in earlier calls.
    fn are_told(&self, conversation: &Conversation, text: &TemplateText, watch: &Watch) -> bool {
        let text = text.as_str();
        if !conversation.tools.iter().all(|tool| text.contains(&tool.name)) {
            return false;
        }
        // A name that no turn has can come from the declaration alone.
        let is_said =
            |name: &str| conversation.items.iter().any(|item| texts(item).any(|text| text.contains(name)));
        if conversation.tools.is_empty() || conversation.tools.iter().any(|tool| !is_said(&tool.name)) {
            return true;
        }
        let without = Conversation { tools: Vec::new(), ..conversation.clone() };
        self.whole(&without, &self.takes, watch).map_or(true, |other| other.as_str() != text)
    }

    /// The text of a prompt, in the first form of the conversation that the template takes whole.
    fn whole(
        &self,
        conversation: &Conversation,
        takes: &Takes,
        watch: &Watch,
    ) -> Result<TemplateText, TemplateError> {
        let limits = (WORK, watch);
        let has = context::has(conversation, takes);
        let mut written = None;
        for form in FORMS.into_iter().filter(|form| form.is_own(has)) {
            let text = self.render(conversation, takes, form, limits);
            let is_whole = text.is_ok() && form.is_kept(has, takes.drops);
            // The template's message about the conversation as it is tells most.
            if is_whole
                || written.as_ref().is_none_or(|written: &Result<_, _>| written.is_err() && text.is_ok())
            {
                written = Some(text);
            }
            if is_whole {
                break;
            }
        }
        written.unwrap_or_else(|| self.render(conversation, takes, FORMS[0], limits))
    }

    fn render(
        &self,
        conversation: &Conversation,
        takes: &Takes,
        form: MessageForm,
        (work, watch): (usize, &Watch),
    ) -> Result<TemplateText, TemplateError> {
        let bytes = size(conversation).saturating_mul(WORK_BY_BYTE);
        let more = conversation.items.len().saturating_mul(WORK_BY_ITEM).saturating_add(bytes);
        let budget = Budget::new(work.saturating_add(more), watch.clone());
        let date = conversation.date.or_else(|| Date::new(NO_DAY.0, NO_DAY.1, NO_DAY.2));
        let clock = |format: &str| date.map(|date| date.format(format)).unwrap_or_default();
        self.run(conversation, takes, form, budget, &clock).map_err(|fault| match *fault {
            TemplateFault::Refused(message) => TemplateError::Refused(message),
            TemplateFault::Failed(what, None) => TemplateError::Render(what),
            TemplateFault::Failed(what, Some(line)) => {
                TemplateError::Render(format!("{what} in line {line}"))
            }
        })
    }

    fn run(
        &self,
        conversation: &Conversation,
        takes: &Takes,
        form: MessageForm,
        budget: Budget,
        clock: jinja::TimeFormatter,
    ) -> jinja::Result<TemplateText> {
        let mut values = context::effort(conversation.effort);
        values.extend(self.tokens.iter().map(|(name, token)| (name.as_str(), Value::text(token.as_str()))));
        values.push(("add_generation_prompt", Value::Bool(true)));
        values.push(("messages", context::value(conversation, takes, form, &budget)?));
        if !conversation.tools.is_empty() {
            values.push(("tools", context::tools(&conversation.tools, &budget)?));
        } else if !takes.has_undefined_tools {
            values.push(("tools", Value::None));
        }
        values.push(("documents", Value::None));
        let text = self.program.text(values, budget, clock)?;
        if text.as_str().len() > TEXT_BYTES {
            let what = format!("the text has more than {TEXT_BYTES} bytes");
            return Err(Box::new(TemplateFault::Failed(what, None)));
        }
        Ok(text)
    }
}

/// Does the work of a template on a separate thread.
fn away<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&Watch) -> Result<T, TemplateError> + Send + 'static,
) -> Result<T, TemplateError> {
    let done = foreign::run("template", limit, &Cancel::default(), work);
    done.unwrap_or_else(|why| Err(TemplateError::Render(stopped(&why))))
}

/// Texts of an item that a template may write.
fn texts(item: &Item) -> impl Iterator<Item = &str> {
    let (first, second) = match item {
        Item::Instructions(text) | Item::Reasoning(text) | Item::Preamble(text) | Item::Answer(text) => {
            (text, None)
        }
        Item::User { name, text } => (text, name.as_ref()),
        Item::Call(call) => (&call.arguments, Some(&call.name)),
        Item::Output(output) => (&output.text, Some(&output.name)),
    };
    [Some(first), second].into_iter().flatten().map(String::as_str)
}

/// Bytes of what a conversation says.
fn size(conversation: &Conversation) -> usize {
    let schema = |schema: &serde_json::Value| schema.to_string().len();
    let tools = conversation
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.as_ref().map_or(0, schema));
    conversation.items.iter().flat_map(texts).map(str::len).sum::<usize>() + tools.sum::<usize>()
}
