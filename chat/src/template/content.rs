//! The text of a message, and the origin of each of its pieces.

use super::jinja::TemplateText;

/// The text of a message: what the conversation says, and marks that this program writes into it.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageText(Vec<(String, bool)>);

/// The separator of texts that become one.
const BREAK: &str = "\n\n";

impl MessageText {
    /// A text of the conversation.
    pub fn of(text: &str) -> MessageText {
        let mut content = MessageText::default();
        content.say(text);
        content
    }

    /// Goes on with a text of the conversation.
    pub fn say(&mut self, text: &str) {
        self.push(text, false);
    }

    /// Goes on with a text of this program's own, in which special tokens count.
    pub fn mark(&mut self, text: &str) {
        self.push(text, true);
    }

    fn push(&mut self, text: &str, is_own: bool) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.1 == is_own => last.0.push_str(text),
            _ => self.0.push((text.to_owned(), is_own)),
        }
    }

    /// Goes on with another content as it is.
    pub fn extend(&mut self, other: &MessageText) {
        other.0.iter().for_each(|(text, is_own)| self.push(text, *is_own));
    }

    /// Goes on with another content, behind a break.
    pub fn add(&mut self, other: &MessageText) {
        if !self.is_empty() {
            self.say(BREAK);
        }
        self.extend(other);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text as templates get it.
    pub fn text(&self) -> TemplateText {
        TemplateText::of_runs(self.0.iter().map(|(text, is_own)| (text.as_str(), *is_own)))
    }
}
