//! Chat templates, as models bring them along.
//!
//! A template is a program that writes the prompt's text, special tokens included. What a conversation says
//! is data for it, and no text of a conversation may become a special token:
//!
//! 1. Texts know which of their characters the template wrote, whatever it does with them. Special tokens are
//!    only looked for among these.
//! 2. The tokenizer encodes the text as a whole, as it would for anybody. Its special tokens are compared
//!    with those found. Where the conversation has some written out, the text is encoded in pieces instead,
//!    with none of them whole.
//!
//! Templates differ in what they take: a system message in the middle, several calls in a message, arguments
//! as objects or as texts. A template is asked once what it takes ([`takes`]). If it refuses a conversation,
//! or drops a text of it, the conversation is tried in other forms.

mod context;
mod jinja;
mod marks;
mod takes;

use crate::calls::{CallFormat, THOUGHTS};
use crate::conversation::{Conversation, Date, Effort, Item};
use crate::grammar::Thoughts;
use crate::prompt::Prompt;
use jinja::{Budget, Fault, Program, Text, Value};
use kernmill_text::{Vocabulary, VocabularyError};
use marks::{Mark, Marks};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use takes::{FORMS, Form, Takes};

/// Bytes of the longest template.
pub const TEMPLATE_BYTES: usize = 1 << 20;

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

/// Why a template has no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template is not one, or too long.
    #[error("the chat template: {0}")]
    Parse(String),
    /// The template refuses the conversation.
    #[error("the chat template refuses this conversation: {0}")]
    Refused(String),
    /// The template fails, or does not come to an end.
    #[error("the chat template fails: {0}")]
    Render(String),
    /// A text cannot be encoded.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The tokenizer finds special tokens that the template did not write.
    #[error("the tokenizer finds other special tokens in the prompt than the chat template wrote")]
    Tokens,
}

/// A chat template with the special tokens of its model.
#[derive(Debug)]
pub struct Template {
    program: Program,
    marks: Marks,
    /// Texts of tokens, by the names that templates have for them.
    tokens: BTreeMap<String, String>,
    takes: Takes,
    /// How the model writes calls.
    calls: Option<&'static CallFormat>,
    /// Whether the model writes thoughts into its texts.
    thinks: bool,
}

impl Template {
    /// Reads a template, and asks it what it takes. `tokens` has texts of tokens by the names that templates
    /// have for them, such as `bos_token`.
    ///
    /// # Errors
    /// When it is too long or no template.
    pub fn new(
        source: &str,
        vocabulary: &dyn Vocabulary,
        tokens: &BTreeMap<String, String>,
    ) -> Result<Template, TemplateError> {
        if source.len() > TEMPLATE_BYTES {
            let bytes = source.len();
            return Err(TemplateError::Parse(format!(
                "it has {bytes} bytes, expected at most {TEMPLATE_BYTES}"
            )));
        }
        let wrong = |(what, line): (String, u32)| TemplateError::Parse(format!("{what} in line {line}"));
        let program = Program::parse(source).map_err(wrong)?;
        let mut tokens = tokens.clone();
        for name in ["bos_token", "eos_token"] {
            tokens.entry(name.to_owned()).or_default();
        }
        let (calls, thinks) = (CallFormat::of_template(source), source.contains(THOUGHTS[1]));
        let marks = Marks::of(vocabulary);
        // Only formats whose arguments are an object are told where the template has no place for functions.
        let told = calls.filter(|calls| calls.pairs.is_none()).unwrap_or(&CallFormat::UNTOLD);
        let takes = Takes::usual(told);
        let mut template = Template { program, marks, tokens, takes, calls, thinks };
        // What is asked depends on work alone, so that the same template always answers the same.
        let until = Instant::now() + 16 * TIME;
        template.takes = Takes::ask(takes, |conversation, takes| {
            let text = template.render(conversation, takes, FORMS[0], (WORK / 8, until)).ok()?;
            Some(text.as_str().to_owned())
        });
        if !template.takes.tells_tools {
            template.calls = Some(told);
        }
        Ok(template)
    }

    /// Whether the template has a place for declared functions.
    pub fn tells_tools(&self) -> bool {
        self.takes.tells_tools
    }

    /// How the model writes calls, if the template tells. Where it has no place for declared functions, the
    /// model is told of them in its instructions, and asked to call them in the format that the template
    /// shows, otherwise in [`CallFormat::UNTOLD`].
    pub fn calls(&self) -> Option<&'static CallFormat> {
        self.calls
    }

    /// Ids of a prompt: the conversation, and what comes before the model's answer.
    ///
    /// # Errors
    /// When the template refuses the conversation or fails, or a text cannot be encoded.
    pub fn prompt(
        &self,
        vocabulary: &dyn Vocabulary,
        conversation: &Conversation,
    ) -> Result<Prompt, TemplateError> {
        Ok(self.begin(vocabulary, conversation)?.0)
    }

    /// A prompt as [`Template::prompt`] makes it, and where the text behind it has thoughts.
    ///
    /// # Errors
    /// As [`Template::prompt`].
    pub fn begin(
        &self,
        vocabulary: &dyn Vocabulary,
        conversation: &Conversation,
    ) -> Result<(Prompt, Thoughts), TemplateError> {
        let written = self.written(conversation)?;
        let thoughts = self.thoughts(written.as_str(), conversation.effort);
        let text = characters(&written);
        let marks = self.marks.find(&text, |(_, is_template)| *is_template);
        let ids = self.encode(vocabulary, &text, &marks)?;
        let mut prompt = Prompt::default();
        for id in ids {
            // Turns begin and end with special tokens. Several of these may follow each other.
            let follows = prompt.ids.last().is_some_and(|last| self.marks.has(*last));
            if !follows && self.marks.has(id) {
                prompt.mark();
            }
            prompt.ids.push(id);
        }
        prompt.mark();
        Ok((prompt, thoughts))
    }

    /// Where the text behind a prompt has thoughts.
    fn thoughts(&self, prompt: &str, effort: Effort) -> Thoughts {
        let (prompt, [open, close]) = (prompt.trim_end(), THOUGHTS);
        if prompt.ends_with(open) {
            Thoughts::Begun
        } else if self.thinks && effort != Effort::None && !prompt.ends_with(close) {
            Thoughts::Optional
        } else {
            Thoughts::None
        }
    }

    /// Text of a prompt, special tokens as the template writes them.
    ///
    /// # Errors
    /// When the template refuses the conversation or fails.
    pub fn text(&self, conversation: &Conversation) -> Result<String, TemplateError> {
        Ok(self.written(conversation)?.as_str().to_owned())
    }

    /// The text of a prompt, in the first form of the conversation that the template takes whole.
    fn written(&self, conversation: &Conversation) -> Result<Text, TemplateError> {
        let limits = (WORK, Instant::now() + TIME);
        let has = context::has(conversation, &self.takes);
        let mut written = None;
        for form in FORMS.into_iter().filter(|form| form.is_own(has)) {
            let text = self.render(conversation, &self.takes, form, limits);
            let is_whole = text.is_ok() && form.is_kept(has, self.takes.drops);
            // What the template says of the conversation as it is says most.
            if is_whole
                || written.as_ref().is_none_or(|written: &Result<_, _>| written.is_err() && text.is_ok())
            {
                written = Some(text);
            }
            if is_whole {
                break;
            }
        }
        written.unwrap_or_else(|| self.render(conversation, &self.takes, FORMS[0], limits))
    }

    fn render(
        &self,
        conversation: &Conversation,
        takes: &Takes,
        form: Form,
        (work, until): (usize, Instant),
    ) -> Result<Text, TemplateError> {
        let bytes = size(conversation).saturating_mul(WORK_BY_BYTE);
        let more = conversation.items.len().saturating_mul(WORK_BY_ITEM).saturating_add(bytes);
        let budget = Budget::new(work.saturating_add(more), until);
        let date = conversation.date.or_else(|| Date::new(NO_DAY.0, NO_DAY.1, NO_DAY.2));
        let clock = |format: &str| date.map(|date| date.format(format)).unwrap_or_default();
        self.run(conversation, takes, form, budget, &clock).map_err(|fault| match *fault {
            Fault::Refused(message) => TemplateError::Refused(message),
            Fault::Failed(what, None) => TemplateError::Render(what),
            Fault::Failed(what, Some(line)) => TemplateError::Render(format!("{what} in line {line}")),
        })
    }

    fn run(
        &self,
        conversation: &Conversation,
        takes: &Takes,
        form: Form,
        budget: Budget,
        clock: jinja::Clock,
    ) -> jinja::Result<Text> {
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
            return Err(Box::new(Fault::Failed(what, None)));
        }
        Ok(text)
    }

    /// Ids of a text whose special tokens are `marks`, and no others.
    fn encode(
        &self,
        vocabulary: &dyn Vocabulary,
        text: &[(char, bool)],
        marks: &[Mark],
    ) -> Result<Vec<u32>, TemplateError> {
        let wanted = || marks.iter().map(|mark| mark.id);
        let is_right = |ids: &[u32]| ids.iter().copied().filter(|id| self.marks.has(*id)).eq(wanted());
        let plain = |text: &[(char, bool)]| text.iter().map(|(c, _)| c).collect::<String>();
        if self.marks.find(text, |_| true) == marks {
            let ids = vocabulary.encode_marked(&plain(text))?;
            if is_right(&ids) {
                return Ok(ids);
            }
        }
        let (mut ids, mut at) = (Vec::new(), 0);
        for mark in marks {
            self.encode_pieces(vocabulary, &text[at..mark.start], &mut ids)?;
            ids.push(mark.id);
            at = mark.end;
        }
        self.encode_pieces(vocabulary, &text[at..], &mut ids)?;
        if is_right(&ids) { Ok(ids) } else { Err(TemplateError::Tokens) }
    }

    /// Encodes a text in pieces: each special token that is written out is cut after its first character.
    fn encode_pieces(
        &self,
        vocabulary: &dyn Vocabulary,
        mut text: &[(char, bool)],
        ids: &mut Vec<u32>,
    ) -> Result<(), TemplateError> {
        while !text.is_empty() {
            let cut = self.marks.find(text, |_| true).first().map_or(text.len(), |mark| mark.start + 1);
            let (piece, rest) = text.split_at(cut);
            let piece: String = piece.iter().map(|(c, _)| c).collect();
            ids.extend(vocabulary.encode_ordinary(&piece)?);
            text = rest;
        }
        Ok(())
    }
}

/// Characters of a text, each with whether the template wrote it.
fn characters(text: &Text) -> Vec<(char, bool)> {
    text.runs().flat_map(|(run, is_template)| run.chars().map(move |c| (c, is_template))).collect()
}

/// Bytes of what a conversation says.
fn size(conversation: &Conversation) -> usize {
    let item = |item: &Item| match item {
        Item::Instructions(text) | Item::Reasoning(text) | Item::Preamble(text) | Item::Answer(text) => {
            text.len()
        }
        Item::User { text, .. } => text.len(),
        Item::Call(call) => call.name.len() + call.arguments.len(),
        Item::Output(output) => output.text.len(),
    };
    let schema = |schema: &serde_json::Value| schema.to_string().len();
    let tools = conversation
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.as_ref().map_or(0, schema));
    conversation.items.iter().map(item).sum::<usize>() + tools.sum::<usize>()
}
