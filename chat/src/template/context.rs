//! A conversation as templates get it.

use super::content::MessageText;
use super::jinja::{self, Budget, TemplateText, Value};
use super::takes::{Has, MessageForm, System, Takes};
use crate::calls::{ArgumentStyle, CallFormat, Spelling};
use crate::conversation::{Call, Conversation, Effort, Item, Output, Tool};
use serde_json::{Map, json};

/// A message of a conversation.
#[derive(Clone, Default)]
struct TemplateMessage<'c> {
    role: &'static str,
    content: MessageText,
    reasoning: Option<MessageText>,
    calls: Vec<&'c Call>,
    /// Name of the user, or of the function whose output this is.
    name: Option<&'c str>,
    /// Identifier of the call whose output this is.
    id: Option<&'c str>,
}

/// Messages in the form that templates expect: an answer of a model is one, with its calls and reasoning.
fn messages(conversation: &Conversation) -> Vec<TemplateMessage<'_>> {
    let mut messages: Vec<TemplateMessage> = Vec::new();
    let mut is_turn = false;
    let mut is_instructed = false;
    for item in &conversation.items {
        let is_own = !matches!(item, Item::Instructions(_) | Item::User { .. } | Item::Output(_));
        if is_own && !is_turn {
            messages.push(TemplateMessage { role: "assistant", ..TemplateMessage::default() });
        }
        is_turn = is_own;
        match (item, messages.last_mut()) {
            // Templates know one system message, at the beginning.
            (Item::Instructions(text), Some(last)) if is_instructed => {
                last.content.add(&MessageText::of(text))
            }
            (Item::Instructions(text), _) => {
                messages.push(TemplateMessage {
                    role: "system",
                    content: MessageText::of(text),
                    ..TemplateMessage::default()
                });
            }
            (Item::User { name, text }, _) => {
                let (content, name) = (MessageText::of(text), name.as_deref());
                messages.push(TemplateMessage { role: "user", content, name, ..TemplateMessage::default() });
            }
            (Item::Output(Output { id, name, text, .. }), _) => {
                let (name, id, content) = (Some(name.as_str()), Some(id.as_str()), MessageText::of(text));
                messages.push(TemplateMessage {
                    role: "tool",
                    content,
                    name,
                    id,
                    ..TemplateMessage::default()
                });
            }
            (Item::Reasoning(text), Some(last)) => match &mut last.reasoning {
                Some(reasoning) => reasoning.add(&MessageText::of(text)),
                None => last.reasoning = Some(MessageText::of(text)),
            },
            (Item::Preamble(text) | Item::Answer(text), Some(last)) => {
                last.content.add(&MessageText::of(text))
            }
            (Item::Call(call), Some(last)) => last.calls.push(call),
            _ => {}
        }
        is_instructed = matches!(item, Item::Instructions(_));
    }
    messages
}

/// Messages with what a template takes of calls and declared functions.
fn taken<'c>(conversation: &'c Conversation, takes: &Takes) -> Vec<TemplateMessage<'c>> {
    let mut messages = messages(conversation);
    let is_untold = !takes.tells_tools && !conversation.tools.is_empty();
    if is_untold {
        let told = told(&conversation.tools, takes.format);
        match messages.first_mut().filter(|first| first.role == "system") {
            Some(first) => first.content.add(&told),
            None => messages
                .insert(0, TemplateMessage { role: "system", content: told, ..TemplateMessage::default() }),
        }
    }
    // Without functions a conversation goes as it is to a template that has no place for calls.
    if !takes.has_calls && !conversation.tools.is_empty() {
        messages = with_calls_in_texts(messages, takes);
    } else if takes.has_single_calls {
        messages = with_single_calls(messages);
    }
    messages
}

/// The features of a conversation that some templates do not take.
pub(super) fn has(conversation: &Conversation, takes: &Takes) -> Has {
    let messages = taken(conversation, takes);
    let is_system = |message: &TemplateMessage| message.role == "system";
    let others: Vec<&TemplateMessage> = messages.iter().filter(|message| !is_system(message)).collect();
    Has {
        first: messages.first().is_some_and(is_system),
        later: messages.iter().skip(1).any(is_system),
        neighbours: others.windows(2).any(|pair| pair[0].role == "user" && pair[1].role == "user"),
    }
}

/// Messages as a value, as a template takes them.
pub(super) fn value(
    conversation: &Conversation,
    takes: &Takes,
    form: MessageForm,
    budget: &Budget,
) -> jinja::Result<Value> {
    let mut messages = taken(conversation, takes);
    match form.system {
        System::AsIs => {}
        System::First | System::InUser => messages = with_system_first(messages, form.system),
    }
    if form.joins {
        messages = joined(messages);
    }
    let texts = |text: &str| TemplateText::of_conversation(text);
    let made = messages.iter().map(|message| message.value(takes, budget, &texts));
    Value::list(budget, made.collect::<jinja::Result<_>>()?)
}

impl TemplateMessage<'_> {
    fn value(
        &self,
        takes: &Takes,
        budget: &Budget,
        texts: &dyn Fn(&str) -> TemplateText,
    ) -> jinja::Result<Value> {
        let text = |text: &str| Value::Text(texts(text));
        let content = match takes.has_null_content && self.content.is_empty() && !self.calls.is_empty() {
            true => Value::None,
            false => Value::Text(self.content.text()),
        };
        let reasoning = |name| self.reasoning.as_ref().map(|reasoning| (name, Value::Text(reasoning.text())));
        let mut members = Vec::new();
        members.extend(reasoning("thinking"));
        members.extend([("role", Value::text(self.role)), ("content", content)]);
        members.extend(self.name.map(|name| ("name", text(name))));
        members.extend(self.id.map(|id| ("tool_call_id", text(&takes.id(id)))));
        members.extend(reasoning("reasoning_content"));
        if !self.calls.is_empty() {
            let call = |call: &&Call| {
                let arguments = arguments(call);
                let arguments = match arguments {
                    Ok(members) if takes.has_text_arguments => text(&json_text(&members.into())),
                    Ok(members) => Value::of_json(&members.into(), budget, texts)?,
                    Err(other) => text(other),
                };
                let function = object(budget, vec![("name", text(&call.name)), ("arguments", arguments)])?;
                let id = text(&takes.id(&call.id));
                object(budget, vec![("id", id), ("type", Value::text("function")), ("function", function)])
            };
            let calls = self.calls.iter().map(call).collect::<jinja::Result<_>>()?;
            members.push(("tool_calls", Value::list(budget, calls)?));
        }
        object(budget, members)
    }
}

/// Arguments of a call: an object, empty without arguments; otherwise the text itself.
fn arguments(call: &Call) -> Result<Map<String, serde_json::Value>, &str> {
    match call.arguments.trim() {
        "" | "null" => Ok(Map::new()),
        text => serde_json::from_str(text).map_err(|_| call.arguments.as_str()),
    }
}

/// JSON as Python writes it, with spaces behind commas and colons.
fn json_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json_text).collect();
            format!("[{}]", items.join(", "))
        }
        serde_json::Value::Object(members) => {
            let member = |(key, value): (&String, _)| format!("{}: {}", json!(key), json_text(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// A value as Python writes it, which strings and numbers of JSON are.
fn python_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "None".to_owned(),
        serde_json::Value::Bool(true) => "True".to_owned(),
        serde_json::Value::Bool(false) => "False".to_owned(),
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python_text).collect();
            format!("[{}]", items.join(", "))
        }
        serde_json::Value::Object(members) => {
            let member = |(key, value): (&String, _)| format!("{}: {}", json!(key), python_text(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

fn object(budget: &Budget, members: Vec<(&'static str, Value)>) -> jinja::Result<Value> {
    Value::dict(budget, members.into_iter().map(|(key, value)| (Value::text(key), value)))
}

/// Declared functions.
pub(super) fn tools(tools: &[Tool], budget: &Budget) -> jinja::Result<Value> {
    let made = tools.iter().map(|tool| {
        let text = |text: &str| Value::Text(TemplateText::of_conversation(text));
        let parameters =
            Value::of_json(&parameters(tool), budget, &|text| TemplateText::of_conversation(text))?;
        let members = vec![
            ("name", text(&tool.name)),
            ("description", text(&tool.description)),
            ("parameters", parameters),
        ];
        let function = object(budget, members)?;
        object(budget, vec![("type", Value::text("function")), ("function", function)])
    });
    Value::list(budget, made.collect::<jinja::Result<_>>()?)
}

/// The schema of a function's arguments. Templates expect one; that of no arguments has no members.
fn parameters(tool: &Tool) -> serde_json::Value {
    tool.parameters.clone().unwrap_or_else(|| json!({"type": "object", "properties": {}}))
}

/// The text that describes functions, and the format of calls, to a model whose template has no place for
/// them.
fn told(tools: &[Tool], format: &CallFormat) -> MessageText {
    let mut told = MessageText::of("You may call these functions. Each line describes one as JSON:\n");
    for tool in tools {
        let described =
            json!({"name": tool.name, "description": tool.description, "parameters": parameters(tool)});
        told.say(&json_text(&described));
        told.say("\n");
    }
    told.say(
        "\nTo call a function, write its name and its arguments in this form, and wait for the result:\n",
    );
    let example = [("argument".to_owned(), json!("value"))].into_iter().collect();
    write_calls(&mut told, format, &[("name", serde_json::Value::Object(example))]);
    told.say(
        "\nA result comes between <tool_response> and </tool_response>. Where no function is needed, just answer.",
    );
    told
}

/// Writes calls as a model writes them. The marks around them are special tokens where the vocabulary has
/// them, as in what a model generates; names and arguments are text.
fn write_calls(content: &mut MessageText, format: &CallFormat, calls: &[(&str, serde_json::Value)]) {
    let Spelling { open, before, middle, after, between, close } = format.spelling;
    content.mark(open);
    for (n, (name, arguments)) in calls.iter().enumerate() {
        content.mark(if n == 0 { "" } else { between });
        content.mark(before);
        content.say(name);
        content.mark(middle);
        let members = arguments.as_object().filter(|_| format.arguments != ArgumentStyle::Object);
        for (n, (key, value)) in members.into_iter().flatten().enumerate() {
            match format.arguments {
                ArgumentStyle::Pairs(marks) => {
                    content.mark(marks.before_key);
                    content.say(key);
                    content.mark(&[&marks.after_key.join(marks.space), marks.margin].concat());
                    content.say(&value.as_str().map_or_else(|| json_text(value), str::to_owned));
                    content.mark(&[marks.margin, marks.after_value, marks.space].concat());
                }
                _ => content.say(&format!("{}{key}={}", if n == 0 { "" } else { ", " }, python_text(value))),
            }
        }
        match format.arguments {
            ArgumentStyle::Object => content.say(&json_text(arguments)),
            ArgumentStyle::Pairs(marks) => content.mark(marks.end),
            ArgumentStyle::Keywords => {}
        }
        content.mark(after);
    }
    content.mark(close);
}

/// Calls as texts of the model, and their outputs as texts of the user where the template has no place for
/// them.
fn with_calls_in_texts<'c>(messages: Vec<TemplateMessage<'c>>, takes: &Takes) -> Vec<TemplateMessage<'c>> {
    let mut texts: Vec<TemplateMessage> = Vec::new();
    let mut follows = false;
    for mut message in messages {
        let calls = std::mem::take(&mut message.calls);
        if !calls.is_empty() {
            let call = |call: &&'c Call| {
                let given = arguments(call).map_or_else(|other| json!(other), serde_json::Value::Object);
                (call.name.as_str(), given)
            };
            message.content.say(if message.content.is_empty() { "" } else { "\n" });
            let calls: Vec<_> = calls.iter().map(call).collect();
            write_calls(&mut message.content, takes.format, &calls);
        }
        let is_output = message.role == "tool" && !takes.has_outputs;
        if is_output {
            let mut content = MessageText::of("<tool_response>\n");
            content.extend(&message.content);
            content.say("\n</tool_response>");
            match texts.last_mut().filter(|_| follows) {
                Some(last) => {
                    last.content.say("\n");
                    last.content.extend(&content);
                }
                None => texts.push(TemplateMessage { role: "user", content, ..TemplateMessage::default() }),
            }
        } else {
            texts.push(message);
        }
        follows = is_output;
    }
    texts
}

/// Several calls in a message one after the other, each with its output behind it.
fn with_single_calls(messages: Vec<TemplateMessage>) -> Vec<TemplateMessage> {
    let mut single = Vec::new();
    let mut rest = messages.into_iter().peekable();
    while let Some(mut message) = rest.next() {
        let calls = std::mem::take(&mut message.calls);
        if calls.len() < 2 {
            single.push(TemplateMessage { calls, ..message });
            continue;
        }
        let mut outputs = Vec::new();
        while let Some(output) = rest.next_if(|next| next.role == "tool") {
            outputs.push(output);
        }
        for call in calls {
            let role = message.role;
            let message =
                std::mem::replace(&mut message, TemplateMessage { role, ..TemplateMessage::default() });
            single.push(TemplateMessage { calls: vec![call], ..message });
            let (its, others): (Vec<_>, Vec<_>) =
                outputs.into_iter().partition(|output| output.id == Some(call.id.as_str()));
            single.extend(its);
            outputs = others;
        }
        single.extend(outputs);
    }
    single
}

/// All instructions in one message before the others, or in the first message of the user.
fn with_system_first(messages: Vec<TemplateMessage>, system: System) -> Vec<TemplateMessage> {
    let (system_messages, mut others): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| message.role == "system");
    if system_messages.is_empty() {
        return others;
    }
    let mut first = TemplateMessage { role: "system", ..TemplateMessage::default() };
    system_messages.iter().for_each(|message| first.content.add(&message.content));
    if system == System::InUser {
        first.role = "user";
        if let Some(user) = others.iter_mut().find(|message| message.role == "user") {
            first.content.add(&user.content);
            user.content = first.content;
            return others;
        }
    }
    others.insert(0, first);
    others
}

/// Neighbours of the system's and the user's as one message.
fn joined(messages: Vec<TemplateMessage>) -> Vec<TemplateMessage> {
    let mut joined: Vec<TemplateMessage> = Vec::new();
    for message in messages {
        match joined.last_mut() {
            Some(last) if last.role == message.role && matches!(message.role, "system" | "user") => {
                last.content.add(&message.content);
            }
            _ => joined.push(message),
        }
    }
    joined
}

/// Whether and how the model shall reason, under the names that templates know.
pub(super) fn effort(effort: Effort) -> Vec<(&'static str, Value)> {
    let mut values = vec![("enable_thinking", Value::Bool(effort != Effort::None))];
    if effort != Effort::None {
        values.push(("reasoning_effort", Value::text(effort.name())));
    }
    values
}
