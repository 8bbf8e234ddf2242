//! An item of a response that has begun.

use crate::chat::custom::wrapped;
use crate::ids;
use kernmill_chat::{AnswerPart, Call, Item};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An item that has begun.
pub struct OpenItem {
    /// The kind of item.
    pub part: AnswerPart,
    /// Name of the item.
    pub id: String,
    /// Name of a call, which its output refers to; empty for other items.
    pub call: String,
    /// Text so far.
    pub text: String,
    /// Whether it is a call of a custom tool, whose text is the tool's input.
    pub is_custom: bool,
}

impl OpenItem {
    /// An item that begins.
    pub fn new(part: AnswerPart) -> OpenItem {
        let (prefix, call) = match &part {
            AnswerPart::Reasoning => ("rs_", String::new()),
            AnswerPart::Preamble | AnswerPart::Answer => ("msg_", String::new()),
            AnswerPart::Call { .. } => ("fc_", ids::new("call_")),
        };
        OpenItem { part, id: ids::new(prefix), call, text: String::new(), is_custom: false }
    }

    /// A call of the custom tool of a name that begins.
    pub fn custom(name: String) -> OpenItem {
        let open = OpenItem::new(AnswerPart::Call { name, is_builtin: false });
        OpenItem { id: ids::new("ctc_"), is_custom: true, ..open }
    }

    /// The content of the item; `None` for a call, which has none.
    pub fn content(&self) -> Option<Value> {
        match self.part {
            AnswerPart::Reasoning => Some(json!({ "type": "reasoning_text", "text": self.text })),
            AnswerPart::Preamble | AnswerPart::Answer => {
                Some(json!({ "type": "output_text", "text": self.text, "annotations": [], "logprobs": [] }))
            }
            AnswerPart::Call { .. } => None,
        }
    }

    /// The item, with its content if it has ended.
    pub fn item(&self, status: &str, spaces: &BTreeMap<String, [String; 2]>) -> Value {
        let content: Vec<Value> = self.content().filter(|_| status != "in_progress").into_iter().collect();
        match &self.part {
            AnswerPart::Reasoning => json!({
                "type": "reasoning",
                "id": self.id,
                "summary": [],
                "content": content,
                "status": status,
            }),
            AnswerPart::Preamble | AnswerPart::Answer => json!({
                "type": "message",
                "id": self.id,
                "role": "assistant",
                "status": status,
                // Sent back with the item, so that the next prompt has the text in the same place.
                "phase": if self.part == AnswerPart::Answer { "final_answer" } else { "commentary" },
                "content": content,
            }),
            AnswerPart::Call { name, .. } => {
                let (kind, text) = if self.is_custom {
                    ("custom_tool_call", "input")
                } else {
                    ("function_call", "arguments")
                };
                let mut item = json!({
                    "type": kind,
                    "id": self.id,
                    "call_id": self.call,
                    "name": name,
                    text: self.text,
                    "status": status,
                });
                if let Some([space, name]) = spaces.get(name) {
                    (item["name"], item["namespace"]) = (json!(name), json!(space));
                }
                item
            }
        }
    }

    /// The item of a conversation that it becomes.
    pub fn said(self) -> Item {
        match self.part {
            AnswerPart::Reasoning => Item::Reasoning(self.text),
            AnswerPart::Preamble => Item::Preamble(self.text),
            AnswerPart::Answer => Item::Answer(self.text),
            AnswerPart::Call { name, is_builtin } => {
                let arguments = if self.is_custom { wrapped(&self.text) } else { self.text };
                Item::Call(Call { id: self.call, name, arguments, is_builtin })
            }
        }
    }
}
