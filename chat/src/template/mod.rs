//! Chat templates, as models bring them along.
//!
//! A template is a program that writes the prompt's text, special tokens included. What a conversation says
//! is data for it, and no text of a conversation may become a special token:
//!
//! 1. The template runs with every character of the conversation *tainted*. In what comes out, special tokens
//!    are only looked for among the characters that the template wrote.
//! 2. Templates look into texts: whether one ends with `</think>`, say. A tainted text never does. So the
//!    template runs once more, with the texts as they are, but for special tokens written out in them, which
//!    are tainted still. If that gives the same special tokens in the same order, it is taken, otherwise the
//!    first.
//! 3. The tokenizer encodes the text as a whole, as it would for anybody. Its special tokens are compared
//!    with those found. Where the conversation has some written out, the text is encoded in pieces instead,
//!    with none of them whole.

mod context;
mod functions;
mod marks;
mod taint;

use crate::conversation::{Conversation, Date};
use crate::prompt::Prompt;
use context::Context;
use functions::Refusal;
use kernmill_text::{Vocabulary, VocabularyError};
use marks::{Mark, Marks};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value};
use std::error::Error;
use std::io::{self, Write};

/// Bytes of the longest template.
pub const TEMPLATE_BYTES: usize = 1 << 20;

/// Bytes of the longest text that a template may write.
pub const TEXT_BYTES: usize = 64 << 20;

/// What a template may use up: one for each instruction, and for each 64 bytes that it makes. This bounds its
/// time, and its memory to 32 MiB.
const FUEL: u64 = 1 << 19;

/// What a template may use up besides for each byte of a conversation: it makes tainted copies of them.
const FUEL_BY_BYTE: u64 = 2;

/// What a template may use up besides for each item of a conversation.
const FUEL_BY_ITEM: u64 = 4096;

/// Deepest calls of macros.
const DEPTH: usize = 100;

/// Name of the template in its environment.
const NAME: &str = "chat";

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
    environment: Environment<'static>,
    marks: Marks,
    /// Values that every conversation has.
    values: Map<String, Value>,
}

impl Template {
    /// Reads a template. `start` and `end` are the texts of the tokens around a text, which templates write.
    ///
    /// # Errors
    /// When it is too long or no template.
    pub fn new(
        source: &str,
        vocabulary: &dyn Vocabulary,
        start: Option<&str>,
        end: Option<&str>,
    ) -> Result<Template, TemplateError> {
        if source.len() > TEMPLATE_BYTES {
            let bytes = source.len();
            return Err(TemplateError::Parse(format!(
                "it has {bytes} bytes, expected at most {TEMPLATE_BYTES}"
            )));
        }
        if taint::is_private(source) {
            return Err(TemplateError::Parse("it has characters for private use".to_owned()));
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| TemplateError::Parse(described(&error)))?);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_recursion_limit(DEPTH);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_formatter(|out, state, value| match functions::printed(value) {
            Some(text) => Ok(out.write_str(text)?),
            None => minijinja::escape_formatter(out, state, value),
        });
        environment.add_filter("tojson", functions::tojson);
        environment.add_function("raise_exception", functions::raise_exception);
        let source = without_generation(source);
        environment
            .add_template_owned(NAME, source)
            .map_err(|error| TemplateError::Parse(described(&error)))?;
        let mut values = Map::new();
        for (name, token) in [("bos_token", start), ("eos_token", end)] {
            values.insert(name.to_owned(), token.unwrap_or("").into());
        }
        Ok(Template { environment, marks: Marks::of(vocabulary), values })
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
        let text = self.tainted(conversation)?;
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
        Ok(prompt)
    }

    /// Text of a prompt, special tokens as the template writes them.
    ///
    /// # Errors
    /// When the template refuses the conversation or fails.
    pub fn text(&self, conversation: &Conversation) -> Result<String, TemplateError> {
        Ok(self.tainted(conversation)?.into_iter().map(|(c, _)| c).collect())
    }

    /// Characters of the prompt, each with whether the template wrote it.
    fn tainted(&self, conversation: &Conversation) -> Result<Vec<(char, bool)>, TemplateError> {
        let guarded = self.render(conversation, &|text| self.guard(text))?;
        let safe = self.render(conversation, &taint::taint)?;
        let [guarded, safe] = [guarded, safe].map(|text| taint::untaint(&text));
        let same = guarded.iter().map(|(c, _)| c).eq(safe.iter().map(|(c, _)| c));
        let ids = |text: &[(char, bool)]| -> Vec<u32> {
            self.marks.find(text, |(_, is_template)| *is_template).into_iter().map(|mark| mark.id).collect()
        };
        Ok(if !same && ids(&guarded) == ids(&safe) { guarded } else { safe })
    }

    /// A text in which special tokens that are written out are tainted, and nothing else.
    fn guard(&self, text: &str) -> String {
        let characters: Vec<(char, bool)> = text.chars().map(|c| (c, false)).collect();
        let mut marks = self.marks.find(&characters, |_| true).into_iter().peekable();
        let mut guarded = String::with_capacity(text.len());
        for (n, (c, _)) in characters.iter().enumerate() {
            while marks.next_if(|mark| mark.end <= n).is_some() {}
            let is_inside = marks.peek().is_some_and(|mark| mark.start <= n);
            let mut bytes = [0; 4];
            let c = c.encode_utf8(&mut bytes);
            if is_inside || taint::is_private(c) { guarded += &taint::taint(c) } else { guarded += c }
        }
        guarded
    }

    fn render(
        &self,
        conversation: &Conversation,
        mark: &dyn Fn(&str) -> String,
    ) -> Result<String, TemplateError> {
        let context = Context { mark };
        let mut values = self.values.clone();
        values.extend(context::effort(conversation.effort));
        values.insert("add_generation_prompt".to_owned(), true.into());
        values.insert("messages".to_owned(), context.messages(conversation));
        if !conversation.tools.is_empty() {
            values.insert("tools".to_owned(), context.tools(&conversation.tools));
        }
        let failed = |error: minijinja::Error| match refusal(&error) {
            Some(message) => TemplateError::Refused(message),
            None => TemplateError::Render(described(&error)),
        };
        let bytes: u64 = values.values().map(|value| value.to_string().len() as u64).sum();
        let items = conversation.items.len() as u64;
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(FUEL + FUEL_BY_BYTE * bytes + FUEL_BY_ITEM * items));
        let values = minijinja::Value::from(minijinja::value::Serde(&values));
        let dated = minijinja::context! { ..date(conversation.date), ..values };
        let mut out = Limited(Vec::new());
        let template = environment.get_template(NAME).map_err(failed)?;
        template.render_captured_to(dated, &mut out).map_err(failed)?;
        String::from_utf8(out.0).map_err(|error| TemplateError::Render(error.to_string()))
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

/// The function that tells the day, if there is one to tell.
fn date(date: Option<Date>) -> minijinja::Value {
    let Some(date) = date else { return minijinja::context! {} };
    let told = move |format: &str| {
        date.format(format).ok_or_else(|| {
            let what = format!("`strftime_now` knows no time in the form `{format}`");
            minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, what)
        })
    };
    minijinja::context! { strftime_now => minijinja::Value::from_function(told) }
}

/// A template without the blocks that mark what was generated, which only matter for training.
fn without_generation(source: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start + 2..].find("%}") else { break };
        let (before, tag) = (&rest[..start], &rest[start + 2..][..length]);
        out += before;
        let word = tag.trim_matches(['-', '+']).trim();
        let replaced = match word {
            "generation" => tag.replace("generation", "if true"),
            "endgeneration" => tag.replace("endgeneration", "endif"),
            _ => tag.to_owned(),
        };
        out += &format!("{{%{replaced}%}}");
        rest = &rest[start + 2 + length + 2..];
    }
    out + rest
}

/// An error with its place, in a line.
fn described(error: &minijinja::Error) -> String {
    let detail = error.detail().map(taint::plain).unwrap_or_default();
    let place = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    if detail.is_empty() {
        format!("{}{place}", error.kind())
    } else {
        format!("{}: {detail}{place}", error.kind())
    }
}

/// What a template says to refuse a conversation, if it did.
fn refusal(error: &minijinja::Error) -> Option<String> {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(Refusal(message)) = error.downcast_ref() {
            return Some(message.clone());
        }
        cause = error.source();
    }
    None
}

/// A text that grows to its limit.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > TEXT_BYTES {
            return Err(io::Error::other(format!("the text has more than {TEXT_BYTES} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
