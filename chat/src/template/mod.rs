//! Chat templates, as models bring them along.
//!
//! A template is a program that writes the prompt's text, special tokens included. A conversation is data for
//! it, and no text of a conversation may become a special token:
//!
//! 1. Texts know which of their characters the template wrote, whatever it does with them. Special tokens are
//!    only looked for among these.
//! 2. The tokenizer encodes the text as a whole, as it would for anybody. Its special tokens are compared
//!    with those found. Where the conversation has some written out, the text is encoded in pieces instead,
//!    with none of them whole.
//!
//! Templates run as other foreign work does: on a separate thread, with a limit of time, and only while
//! somebody waits ([`render`]).
//!
//! Templates differ in what they take: a system message in the middle, several calls in a message, arguments
//! as objects or as texts. A template is asked once what it takes ([`takes`]). If it refuses a conversation,
//! or drops a text of it, the conversation is tried in other forms.

mod content;
mod context;
mod error;
mod jinja;
mod marks;
mod render;
mod takes;

pub use error::TemplateError;
pub use render::TEXT_BYTES;

use crate::calls::{CallFormat, ThoughtMarks};
use crate::conversation::{Conversation, Effort};
use crate::grammar::Thoughts;
use crate::prompt::Prompt;
use jinja::TemplateText;
use kernmill_text::Vocabulary;
use marks::{Marks, TokenMark};
use render::Renderer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of the longest template.
pub const TEMPLATE_BYTES: usize = 1 << 20;

/// A chat template with the special tokens of its model.
#[derive(Debug)]
pub struct Template {
    renderer: Arc<Renderer>,
    marks: Marks,
    /// Marks of the thoughts that the model writes into its texts, if it does.
    thoughts: Option<ThoughtMarks>,
}

/// A prompt, and how the text behind it is read.
pub(crate) struct Written {
    /// Ids of the conversation, and what comes before the model's answer.
    pub prompt: Prompt,
    /// Where the text has thoughts.
    pub thoughts: Thoughts,
    /// How the model writes calls. This is [`Template::calls`], but where the template has no place for the
    /// functions of this conversation: the model is told there in its instructions how to call them.
    pub calls: Option<&'static CallFormat>,
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
        let mut tokens = tokens.clone();
        for name in ["bos_token", "eos_token"] {
            tokens.entry(name.to_owned()).or_default();
        }
        let renderer = Arc::new(Renderer::new(source, tokens, CallFormat::of_template(source))?);
        let (marks, thoughts) = (Marks::of(vocabulary), ThoughtMarks::of_template(source));
        Ok(Template { renderer, marks, thoughts })
    }

    /// Whether the template has a place for declared functions.
    pub fn tells_tools(&self) -> bool {
        self.renderer.takes.tells_tools
    }

    /// Whether the template has a place for calls. Otherwise they are texts of the model.
    pub fn tells_calls(&self) -> bool {
        self.renderer.takes.has_calls
    }

    /// How the model writes calls, if the template tells. Where it has no place for declared functions, the
    /// model is told of them in its instructions, and asked to call them in the format that the template
    /// shows, otherwise in [`CallFormat::UNTOLD`].
    pub fn calls(&self) -> Option<&'static CallFormat> {
        self.renderer.calls
    }

    /// Marks of thoughts in the model's texts: those that the template has, otherwise the usual ones.
    pub fn thought_marks(&self) -> ThoughtMarks {
        self.thoughts.unwrap_or_default()
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
        Ok(self.begin(vocabulary, conversation)?.prompt)
    }

    /// A prompt as [`Template::prompt`] makes it, and how the text behind it is read.
    ///
    /// # Errors
    /// As [`Template::prompt`].
    pub(crate) fn begin(
        &self,
        vocabulary: &dyn Vocabulary,
        conversation: &Conversation,
    ) -> Result<Written, TemplateError> {
        let (written, calls) = self.renderer.written(conversation)?;
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
        Ok(Written { prompt, thoughts, calls })
    }

    /// Where the text behind a prompt has thoughts.
    fn thoughts(&self, prompt: &str, effort: Effort) -> Thoughts {
        let (prompt, ThoughtMarks { open, close }) = (prompt.trim_end(), self.thought_marks());
        if prompt.ends_with(open) {
            Thoughts::Begun
        } else if self.thoughts.is_some() && effort != Effort::None && !prompt.ends_with(close) {
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
        Ok(self.renderer.written(conversation)?.0.as_str().to_owned())
    }

    /// Ids of a text whose special tokens are `marks`, and no others.
    fn encode(
        &self,
        vocabulary: &dyn Vocabulary,
        text: &[(char, bool)],
        marks: &[TokenMark],
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
fn characters(text: &TemplateText) -> Vec<(char, bool)> {
    text.runs().flat_map(|(run, is_template)| run.chars().map(move |c| (c, is_template))).collect()
}
