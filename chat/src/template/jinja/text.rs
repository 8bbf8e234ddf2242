//! Texts that know which of their characters the template wrote.

use super::budget::{Budget, Result};
use std::ops::Range;
use std::sync::Arc;

/// A text with the origin of its characters. Cutting and joining keeps origins.
#[derive(Clone, Debug)]
pub(in crate::template) struct TemplateText {
    text: Arc<str>,
    origin: TextOrigin,
}

/// Where the characters of a text come from.
#[derive(Clone, Debug)]
enum TextOrigin {
    Template,
    Conversation,
    /// Ends of runs in bytes, each with whether the template wrote it; the last end is the text's.
    Mixed(Arc<[(usize, bool)]>),
}

impl TemplateText {
    /// A text that the template wrote.
    pub fn of_template(text: impl Into<Arc<str>>) -> TemplateText {
        TemplateText { text: text.into(), origin: TextOrigin::Template }
    }

    /// A text of the conversation.
    pub fn of_conversation(text: impl Into<Arc<str>>) -> TemplateText {
        TemplateText { text: text.into(), origin: TextOrigin::Conversation }
    }

    /// A text of pieces, each with whether the template wrote it.
    pub fn of_runs<'r>(pieces: impl Iterator<Item = (&'r str, bool)>) -> TemplateText {
        let (mut text, mut runs) = (String::new(), Vec::<(usize, bool)>::new());
        for (piece, is_template) in pieces {
            add(&mut text, &mut runs, piece, is_template);
        }
        TemplateText::made(text, runs)
    }

    fn made(text: String, runs: Vec<(usize, bool)>) -> TemplateText {
        let origin = match runs[..] {
            [] | [(_, true)] => TextOrigin::Template,
            [(_, false)] => TextOrigin::Conversation,
            _ => TextOrigin::Mixed(runs.into()),
        };
        TemplateText { text: text.into(), origin }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Pieces of the text in order, each of one origin, with whether the template wrote it.
    pub fn runs(&self) -> impl Iterator<Item = (&str, bool)> {
        self.runs_in(0..self.text.len())
    }

    fn runs_in(&self, range: Range<usize>) -> impl Iterator<Item = (&str, bool)> {
        let whole = [(self.text.len(), !matches!(self.origin, TextOrigin::Conversation))];
        let (mixed, whole) = match &self.origin {
            TextOrigin::Mixed(runs) => (&runs[runs.partition_point(|run| run.0 <= range.start)..], None),
            _ => (&[][..], Some(whole)),
        };
        let mut at = range.start;
        mixed.iter().copied().chain(whole.into_iter().flatten()).map_while(move |(end, is_template)| {
            let start = at;
            at = end.min(range.end).max(start);
            (start < range.end).then(|| (&self.text[start..at], is_template))
        })
    }

    /// A part of the text, by bytes.
    pub fn slice(&self, budget: &Budget, range: Range<usize>) -> Result<TemplateText> {
        if range == (0..self.text.len()) {
            return Ok(self.clone());
        }
        let mut part = TextBuilder::new(budget);
        part.push_part(self, range)?;
        Ok(part.finish())
    }

    /// The text with each run replaced by what a function makes of it.
    pub fn map(&self, budget: &Budget, change: impl Fn(&str) -> String) -> Result<TemplateText> {
        let mut changed = TextBuilder::new(budget);
        for (run, is_template) in self.runs() {
            changed.push(&change(run), is_template)?;
        }
        Ok(changed.finish())
    }
}

/// A text that grows. It uses up the budget by what it makes.
pub(in crate::template) struct TextBuilder<'b> {
    budget: &'b Budget,
    text: String,
    runs: Vec<(usize, bool)>,
}

impl<'b> TextBuilder<'b> {
    pub fn new(budget: &'b Budget) -> TextBuilder<'b> {
        TextBuilder { budget, text: String::new(), runs: Vec::new() }
    }

    pub fn budget(&self) -> &'b Budget {
        self.budget
    }

    pub fn push(&mut self, text: &str, is_template: bool) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.budget.spend(text.len())?;
        self.add(text, is_template);
        Ok(())
    }

    /// Appends a text so many times.
    pub fn repeat(&mut self, text: &TemplateText, times: usize) -> Result<()> {
        self.budget.spend(text.text.len().saturating_mul(times))?;
        if let (TextOrigin::Template | TextOrigin::Conversation, false) = (&text.origin, text.text.is_empty())
        {
            self.add(&text.text.repeat(times), !matches!(text.origin, TextOrigin::Conversation));
            return Ok(());
        }
        let times = if text.text.is_empty() { 0 } else { times };
        (0..times).for_each(|_| text.runs().for_each(|(run, is_template)| self.add(run, is_template)));
        Ok(())
    }

    fn add(&mut self, text: &str, is_template: bool) {
        add(&mut self.text, &mut self.runs, text, is_template);
    }

    /// Appends what the template wrote.
    pub fn own(&mut self, text: &str) -> Result<()> {
        self.push(text, true)
    }

    pub fn push_text(&mut self, text: &TemplateText) -> Result<()> {
        self.push_part(text, 0..text.text.len())
    }

    pub fn push_part(&mut self, text: &TemplateText, range: Range<usize>) -> Result<()> {
        text.runs_in(range).try_for_each(|(run, is_template)| self.push(run, is_template))
    }

    pub fn finish(self) -> TemplateText {
        TemplateText::made(self.text, self.runs)
    }
}

/// Appends a piece that is not empty to a text, and to its runs.
fn add(text: &mut String, runs: &mut Vec<(usize, bool)>, piece: &str, is_template: bool) {
    text.push_str(piece);
    match runs.last_mut() {
        Some(last) if last.1 == is_template => last.0 = text.len(),
        _ => runs.push((text.len(), is_template)),
    }
}

/// Whether Python takes a character as space.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
