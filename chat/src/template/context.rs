//! A conversation as templates get it.

use crate::conversation::{Call, Conversation, Effort, Item, Output, Tool};
use serde_json::{Map, Value, json};

/// Values of a conversation. Every text of it goes through `mark`.
pub(super) struct Context<'a> {
    pub mark: &'a dyn Fn(&str) -> String,
}

impl Context<'_> {
    /// Messages in the form that templates expect: an answer of a model is one, with its calls and reasoning.
    pub fn messages(&self, conversation: &Conversation) -> Value {
        let mut messages: Vec<Value> = Vec::new();
        let items = &conversation.items;
        let mut at = 0;
        while let Some(item) = items.get(at) {
            at += 1;
            messages.push(match item {
                Item::Instructions(_) => {
                    // Templates know one system message, at the beginning.
                    let texts = items[at - 1..].iter().map_while(|item| match item {
                        Item::Instructions(text) => Some(text.as_str()),
                        _ => None,
                    });
                    let texts: Vec<&str> = texts.collect();
                    at += texts.len() - 1;
                    json!({"role": "system", "content": self.text(&texts.join("\n\n"))})
                }
                Item::User { name, text } => {
                    let mut message = json!({"role": "user", "content": self.text(text)});
                    if let Some(name) = name {
                        message["name"] = self.text(name);
                    }
                    message
                }
                Item::Output(Output { id, name, text, .. }) => json!({
                    "role": "tool", "name": self.text(name), "tool_call_id": self.text(id), "content": self.text(text),
                }),
                Item::Reasoning(_) | Item::Preamble(_) | Item::Call(_) | Item::Answer(_) => {
                    let is_own = |item: &&Item| {
                        !matches!(item, Item::Instructions(_) | Item::User { .. } | Item::Output(_))
                    };
                    let turn: Vec<&Item> = items[at - 1..].iter().take_while(is_own).collect();
                    at += turn.len() - 1;
                    self.assistant(&turn)
                }
            });
        }
        messages.into()
    }

    fn text(&self, text: &str) -> Value {
        (self.mark)(text).into()
    }

    fn assistant(&self, items: &[&Item]) -> Value {
        let (mut reasoning, mut said, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match item {
                Item::Reasoning(text) => reasoning.push(text.as_str()),
                Item::Preamble(text) | Item::Answer(text) => said.push(text.as_str()),
                Item::Call(call) => calls.push(self.call(call)),
                _ => {}
            }
        }
        let mut message = json!({"role": "assistant", "content": self.text(&said.join("\n\n"))});
        if !reasoning.is_empty() {
            message["reasoning_content"] = self.text(&reasoning.join("\n\n"));
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        message
    }

    fn call(&self, call: &Call) -> Value {
        let arguments = match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
            Ok(arguments) => self.data(&Value::Object(arguments)),
            Err(_) => self.text(&call.arguments),
        };
        json!({
            "id": self.text(&call.id), "type": "function",
            "function": {"name": self.text(&call.name), "arguments": arguments},
        })
    }

    /// Declared functions.
    pub fn tools(&self, tools: &[Tool]) -> Value {
        let tools = tools.iter().map(|tool| {
            let mut function =
                json!({"name": self.text(&tool.name), "description": self.text(&tool.description)});
            // Templates expect a schema; that of no arguments has no members.
            let none = || json!({"type": "object", "properties": {}});
            function["parameters"] =
                tool.parameters.as_ref().map_or_else(none, |schema| self.schema(schema, ""));
            json!({"type": "function", "function": function})
        });
        tools.collect()
    }

    /// A value with all its texts marked, names of members too.
    fn data(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().map(|item| self.data(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| ((self.mark)(key), self.data(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// A JSON schema, or what is under the keyword `key` in one. Keywords and names of types stay as they
    /// are, because templates look for them.
    fn schema(&self, value: &Value, key: &str) -> Value {
        let named = ["properties", "patternProperties", "$defs", "definitions"].contains(&key);
        match value {
            Value::Object(members) => {
                let member = |(key, value): (&String, &Value)| {
                    if named || !is_word(key) {
                        ((self.mark)(key), self.schema(value, ""))
                    } else if matches!(key.as_str(), "default" | "const" | "enum" | "examples" | "example") {
                        (key.clone(), self.data(value))
                    } else {
                        (key.clone(), self.schema(value, key))
                    }
                };
                members.iter().map(member).collect()
            }
            Value::Array(items) => items.iter().map(|item| self.schema(item, key)).collect(),
            Value::String(text) if key == "type" && is_word(text) => text.clone().into(),
            other => self.data(other),
        }
    }
}

/// Whether a text is too plain to be a part of a special token.
fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '$')
}

/// Whether and how the model shall reason, under the names that templates know.
pub(super) fn effort(effort: Effort) -> Map<String, Value> {
    let mut values = Map::new();
    values.insert("enable_thinking".to_owned(), (effort != Effort::None).into());
    if effort != Effort::None {
        values.insert("reasoning_effort".to_owned(), effort.name().into());
    }
    values
}
