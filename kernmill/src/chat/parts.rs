//! Items of a conversation, out of the events of an answer.

use kernmill_chat::{AnswerPart, Call, Conversation, Event, Item, Output};
use std::collections::BTreeMap;

/// The items of a conversation.
#[derive(Clone, Default)]
pub(super) struct ConversationItems {
    pub(super) conversation: Conversation,
    /// Ids of answers, by the place of their item, of formats that continue with what was generated.
    pub(super) answers: BTreeMap<usize, Vec<u32>>,
}

impl ConversationItems {
    /// Takes away all items from one on.
    pub(super) fn cut(&mut self, at: usize) {
        self.conversation.items.truncate(at);
        self.answers.split_off(&at);
    }
}

/// Items of an answer in the making.
pub(super) struct ReplyItems {
    items: Vec<Item>,
    open: Option<(AnswerPart, String)>,
    /// Names of the functions that the model may call.
    declared: Vec<String>,
    /// Items of the conversation before the answer.
    before: usize,
}

impl ReplyItems {
    /// An answer to a conversation.
    pub(super) fn new(conversation: &Conversation) -> ReplyItems {
        ReplyItems {
            items: Vec::new(),
            open: None,
            declared: conversation.tools.iter().map(|tool| tool.name.clone()).collect(),
            before: conversation.items.len(),
        }
    }

    /// Adds what an event says.
    pub(super) fn push(&mut self, event: Event) {
        match event {
            Event::Begin(part) => self.open = Some((part, String::new())),
            Event::Delta(more) => {
                if let Some((_, text)) = &mut self.open {
                    text.push_str(&more);
                }
            }
            Event::End { .. } => {
                let Some((part, text)) = self.open.take() else { return };
                self.add(part, text);
            }
        }
    }

    /// The id of the last call.
    pub(super) fn last_call(&self) -> Option<&str> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Call(call) => Some(&*call.id),
            _ => None,
        })
    }

    /// The items, with an answer at the end unless calls are there.
    pub(super) fn take_items(&mut self) -> Vec<Item> {
        if !self.items.iter().any(|item| matches!(item, Item::Answer(_) | Item::Call(_))) {
            self.items.push(Item::Answer(String::new()));
        }
        std::mem::take(&mut self.items)
    }

    fn add(&mut self, part: AnswerPart, text: String) {
        match part {
            AnswerPart::Reasoning => self.items.push(Item::Reasoning(text)),
            AnswerPart::Preamble => self.items.push(Item::Preamble(text)),
            AnswerPart::Answer => self.items.push(Item::Answer(text)),
            AnswerPart::Call { name, is_builtin } => {
                let id = format!("call-{}", self.before + self.items.len());
                let is_declared = !is_builtin && self.declared.contains(&name);
                let call = Call { id: id.clone(), name: name.clone(), arguments: text, is_builtin };
                self.items.push(Item::Call(call));
                if !is_declared {
                    // Nobody can give its result; a call without one would be no conversation.
                    let text = match self.declared.is_empty() {
                        true => "error: there are no tools here".to_owned(),
                        false => format!("error: there is no tool {name}, only {}", self.declared.join(", ")),
                    };
                    self.items.push(Item::Output(Output { id, name, text, is_builtin }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernmill_chat::Tool;

    fn called(name: &str, tools: &[&str]) -> Vec<Item> {
        let tool = |name: &&str| Tool {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: None,
            strict: false,
        };
        let mut conversation =
            Conversation { tools: tools.iter().map(tool).collect(), ..Conversation::default() };
        conversation.items.push(Item::User { name: None, text: "How warm is it?".to_owned() });
        let mut parts = ReplyItems::new(&conversation);
        let part = AnswerPart::Call { name: name.to_owned(), is_builtin: false };
        for event in [Event::Begin(part), Event::Delta("{}".to_owned()), Event::End { is_complete: true }] {
            parts.push(event);
        }
        parts.take_items()
    }

    #[test]
    fn a_declared_call_waits_for_its_result() {
        let items = called("weather", &["clock", "weather"]);
        assert!(matches!(&*items, [Item::Call(call)] if call.id == "call-1" && call.arguments == "{}"));
    }

    #[test]
    fn another_call_is_told_what_there_is() {
        let text = |items: Vec<Item>| match &*items {
            [Item::Call(call), Item::Output(output)] if call.id == output.id => output.text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(text(called("f", &[])), "error: there are no tools here");
        assert_eq!(
            text(called("f", &["clock", "weather"])),
            "error: there is no tool f, only clock, weather"
        );
    }

    #[test]
    fn an_answer_without_a_text_is_an_empty_one() {
        let mut parts = ReplyItems::new(&Conversation::default());
        parts.push(Event::Begin(AnswerPart::Reasoning));
        parts.push(Event::End { is_complete: false });
        assert_eq!(parts.take_items(), [Item::Reasoning(String::new()), Item::Answer(String::new())]);
    }
}
