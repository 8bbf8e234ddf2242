//! The forms of conversation that a template takes, which it is asked once, and those that are tried.

use crate::calls::CallFormat;
use crate::conversation::{Call, Conversation, Item, Output, Tool};
use serde_json::json;
use std::borrow::Cow;

/// The forms that a template takes. Where it takes several, the usual one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Takes {
    /// Arguments of calls are texts of JSON, not objects.
    pub has_text_arguments: bool,
    /// A message with calls and no text has no content, rather than an empty one.
    pub has_null_content: bool,
    /// Identifiers of calls are nine letters and digits.
    pub has_short_ids: bool,
    /// A message has one call.
    pub has_single_calls: bool,
    /// There is a place for calls.
    pub has_calls: bool,
    /// There is a place for the outputs of calls, though there may be none for the calls.
    pub has_outputs: bool,
    /// There is a place for declared functions.
    pub tells_tools: bool,
    /// Where none are declared, `tools` is undefined, not none.
    pub has_undefined_tools: bool,
    /// How the model writes calls, as far as the template tells.
    pub format: &'static CallFormat,
    /// Parts of a conversation that the template drops silently: instructions at the beginning, instructions
    /// behind others, and one of two messages of the user that follow each other.
    pub drops: Has,
}

/// The features of a conversation that some templates do not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Has {
    /// Instructions at the beginning.
    pub first: bool,
    /// Instructions behind other messages.
    pub later: bool,
    /// Neighbours of one role.
    pub neighbours: bool,
}

/// Where instructions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    AsIs,
    /// In one message before the others.
    First,
    /// In the first message of the user.
    InUser,
}

/// A form of a conversation's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageForm {
    pub system: System,
    /// Neighbours of one role are one message.
    pub joins: bool,
}

/// Forms in the order in which they are tried.
pub(super) const FORMS: [MessageForm; 6] = [
    MessageForm { system: System::AsIs, joins: false },
    MessageForm { system: System::AsIs, joins: true },
    MessageForm { system: System::First, joins: false },
    MessageForm { system: System::First, joins: true },
    MessageForm { system: System::InUser, joins: false },
    MessageForm { system: System::InUser, joins: true },
];

impl MessageForm {
    /// Whether this form of a conversation differs from the others.
    pub fn is_own(self, has: Has) -> bool {
        let has_system = has.first || has.later;
        match self.system {
            System::AsIs => !self.joins || has.neighbours,
            System::First => has.later && (!self.joins || has.neighbours),
            System::InUser => has_system && (!self.joins || has.neighbours),
        }
    }

    /// Whether a template keeps all of a conversation in this form.
    pub fn is_kept(self, has: Has, drops: Has) -> bool {
        let drops_system = match self.system {
            System::AsIs => has.first && drops.first || has.later && drops.later,
            System::First => drops.first,
            System::InUser => false,
        };
        !drops_system && (self.joins || !(has.neighbours && drops.neighbours))
    }
}

/// Values that only calls of these conversations have, and an output.
const VALUES: [&str; 2] = ["Oslo", "Rome"];
const OUTPUT: &str = "21 degrees";

impl Takes {
    /// The forms that most templates take.
    pub fn usual(format: &'static CallFormat) -> Takes {
        Takes {
            has_text_arguments: false,
            has_null_content: false,
            has_short_ids: false,
            has_single_calls: false,
            has_calls: true,
            has_outputs: true,
            tells_tools: true,
            has_undefined_tools: false,
            format,
            drops: Has::default(),
        }
    }

    /// Asks a template, by what it writes of small conversations; `None` where it refuses.
    pub fn ask(usual: Takes, written: impl Fn(&Conversation, &Takes) -> Option<String>) -> Takes {
        let mut takes = usual;
        let hello = Item::User { name: None, text: "Hello".to_owned() };
        let hello = Conversation { items: vec![hello], ..Conversation::default() };
        if written(&hello, &takes).is_none() {
            takes.has_undefined_tools = true;
            // A template that does not even take this is asked no more.
            if written(&hello, &takes).is_none() {
                return usual;
            }
        }
        let told = |system: Option<&str>| {
            written(&conversation(system, 0), &takes).is_some_and(|text| text.contains("get_weather"))
        };
        takes.tells_tools = told(None) || told(Some("Be brief."));
        takes.drops = drops(&|conversation| written(conversation, &takes));
        let one = conversation(None, 1);
        let is_kept = |takes: &Takes, one: &Conversation| {
            let text = written(one, takes)?;
            let count = one.items.iter().filter(|item| matches!(item, Item::Call(_))).count();
            let has_all = VALUES[..count].iter().all(|value| text.contains(value)) && text.contains(OUTPUT);
            // An object that was meant to be a text is printed in Python's way.
            (has_all && !text.contains("{'city': 'Oslo'")).then_some(())
        };
        let mut ways = Vec::new();
        for has_short_ids in [false, true] {
            for has_text_arguments in [false, true] {
                for has_null_content in [false, true] {
                    ways.push(Takes { has_short_ids, has_text_arguments, has_null_content, ..takes });
                }
            }
        }
        match ways.into_iter().find(|way| is_kept(way, &one).is_some()) {
            Some(way) => takes = way,
            None => {
                takes.has_calls = false;
                takes.has_outputs = takes.tells_tools && is_kept(&takes, &one).is_some();
            }
        }
        let single = Takes { has_single_calls: true, ..takes };
        let two = conversation(None, 2);
        if takes.has_calls && is_kept(&takes, &two).is_none() && is_kept(&single, &two).is_some() {
            takes = single;
        }
        takes
    }

    /// The identifier of a call as the template takes it.
    pub fn id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        let fits = id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        if !self.has_short_ids || fits {
            return id.into();
        }
        // FNV-1a, so that an identifier is always made the same.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        let mut hash = id.bytes().fold(0xCBF2_9CE4_8422_2325, step);
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let digit = |_| {
            let digit = char::from(digits[(hash % 62) as usize]);
            hash /= 62;
            digit
        };
        (0..9).map(digit).collect::<String>().into()
    }
}

/// The parts that a template drops silently.
fn drops(written: &dyn Fn(&Conversation) -> Option<String>) -> Has {
    let user = |text: &str| Item::User { name: None, text: text.to_owned() };
    let system = || Item::Instructions("Be brief.".to_owned());
    let drops = |items: Vec<Item>, wanted: &[&str]| {
        let conversation = Conversation { items, ..Conversation::default() };
        written(&conversation).is_some_and(|text| wanted.iter().any(|wanted| !text.contains(wanted)))
    };
    let answer = Item::Answer("Good morning.".to_owned());
    Has {
        first: drops(vec![system(), user("Hello")], &["Be brief."]),
        later: drops(vec![user("Hello"), answer, system(), user("What is up?")], &["Be brief."]),
        neighbours: drops(vec![user("Hello"), user("What is up?")], &["Hello", "What is up?"]),
    }
}

/// A small conversation with a declared function and so many calls of it.
fn conversation(system: Option<&str>, calls: usize) -> Conversation {
    let city = json!({"type": "string", "description": "A city."});
    let schema = json!({"type": "object", "properties": {"city": city}, "required": ["city"]});
    let tool = Tool {
        name: "get_weather".to_owned(),
        description: "Says how the weather is.".to_owned(),
        parameters: Some(schema),
        strict: false,
    };
    let id = |n: usize| format!("call_{n}123456789abcdef01234567");
    let mut items: Vec<Item> = system.map(|text| Item::Instructions(text.to_owned())).into_iter().collect();
    items.push(Item::User { name: None, text: "How is the weather?".to_owned() });
    items.extend(VALUES[..calls].iter().enumerate().map(|(n, city)| {
        let (name, arguments) = (tool.name.clone(), json!({"city": city}).to_string());
        Item::Call(Call { id: id(n), name, arguments, is_builtin: false })
    }));
    items.extend((0..calls).map(|n| {
        let (name, text) = (tool.name.clone(), OUTPUT.to_owned());
        Item::Output(Output { id: id(n), name, text, is_builtin: false })
    }));
    Conversation { items, tools: vec![tool], ..Conversation::default() }
}
