//! Custom tools of OpenAI's APIs: their input is a text of a form, and no JSON. The model is told of a
//! function with one argument, and the input is taken out of the call's JSON again.

use crate::error::ApiError;
use crate::fields::Fields;
use kernmill_chat::Tool;
use kernmill_constrain::regular;
use serde_json::{Value, json};

/// The one argument of such a function.
const INPUT: &str = "input";

/// The function that stands for a custom tool, with the tool's format if it has one.
///
/// # Errors
/// When a field of the format is wrong, or calls cannot be held to it.
pub fn function(name: String, mut description: String, format: Option<Fields>) -> Result<Tool, ApiError> {
    let mut input = json!({ "type": "string" });
    if let Some(mut format) = format
        && let Some((definition, pattern)) = form(&mut format)?
    {
        input["pattern"] = json!(pattern);
        if !description.is_empty() {
            description.push_str("\n\n");
        }
        description.push_str(&format!("The input has this form:\n{definition}"));
    }
    let parameters = json!({
        "type": "object",
        "properties": { INPUT: input },
        "required": [INPUT],
        "additionalProperties": false,
    });
    Ok(Tool { name, description, parameters: Some(parameters), strict: true })
}

/// The definition of a format, and an expression for it; `None` for any text.
fn form(format: &mut Fields) -> Result<Option<(String, String)>, ApiError> {
    let kind = format.needed_text("type")?;
    match kind.as_str() {
        "text" => return Ok(None),
        "grammar" => {}
        _ => return Err(format.wrong("type", &Value::String(kind), "\"text\" or \"grammar\"")),
    }
    // The chat API has the grammar in a separate object.
    let mut grammar = format.object("grammar")?.unwrap_or_else(|| format.clone());
    let definition = grammar.needed_text("definition")?;
    let syntax = grammar.needed_text("syntax")?;
    let expression = match syntax.as_str() {
        "regex" => definition.clone(),
        "lark" => {
            let field = grammar.name("definition");
            regular(&definition).map_err(|error| ApiError::field(&field, format!("`{field}`: {error}")))?
        }
        _ => return Err(grammar.unlisted("syntax", &syntax)),
    };
    Ok(Some((definition, format!("^(?:{expression})$"))))
}

/// The arguments of the function whose call has this input.
pub fn wrapped(input: &str) -> String {
    json!({ INPUT: input }).to_string()
}

/// Takes the input out of a call's arguments, as these come. Arguments of another form are the input.
#[derive(Debug, Default)]
pub struct Unwrapping {
    /// Text that has come and is not given out.
    held: String,
    place: InputPosition,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum InputPosition {
    /// Before the input.
    #[default]
    Before,
    Inside,
    Behind,
    /// In a text that is no object with an input.
    Bare,
}

impl Unwrapping {
    /// Takes more of the arguments: more of the input.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        if self.place == InputPosition::Before {
            match opening(&self.held) {
                Opening::Short => return String::new(),
                Opening::Whole(length) => {
                    self.held.drain(..length);
                    self.place = InputPosition::Inside;
                }
                Opening::None => self.place = InputPosition::Bare,
            }
        }
        match self.place {
            InputPosition::Inside => self.inside(),
            InputPosition::Behind => {
                self.held.clear();
                String::new()
            }
            InputPosition::Before | InputPosition::Bare => std::mem::take(&mut self.held),
        }
    }

    fn inside(&mut self) -> String {
        let (mut input, mut at) = (String::new(), 0);
        while let Some(c) = self.held[at..].chars().next() {
            match c {
                '"' => {
                    self.place = InputPosition::Behind;
                    self.held.clear();
                    return input;
                }
                '\\' => {
                    let Some((c, length)) = escape(&self.held[at..]) else { break };
                    input.push(c);
                    at += length;
                }
                c => {
                    input.push(c);
                    at += c.len_utf8();
                }
            }
        }
        self.held.drain(..at);
        input
    }
}

enum Opening {
    /// More must come before it can be told.
    Short,
    /// The input begins behind so many bytes.
    Whole(usize),
    None,
}

/// Whether arguments begin as an object with the input alone.
fn opening(text: &str) -> Opening {
    let mut rest = text;
    for mark in ["{", "\"input\"", ":", "\""] {
        rest = rest.trim_start();
        match rest.strip_prefix(mark) {
            Some(behind) => rest = behind,
            None if mark.starts_with(rest) => return Opening::Short,
            None => return Opening::None,
        }
    }
    Opening::Whole(text.len() - rest.len())
}

/// The character of an escape, and its length; `None` if it is cut.
fn escape(text: &str) -> Option<(char, usize)> {
    let code = |from: usize| u32::from_str_radix(text.get(from..from + 4)?, 16).ok();
    Some(match text.chars().nth(1)? {
        'n' => ('\n', 2),
        't' => ('\t', 2),
        'r' => ('\r', 2),
        'b' => ('\x08', 2),
        'f' => ('\x0c', 2),
        'u' => {
            let first = code(2)?;
            if !(0xd800..0xdc00).contains(&first) {
                return Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6));
            }
            if text.len() >= 8 && !text[6..].starts_with("\\u") {
                return Some((char::REPLACEMENT_CHARACTER, 6));
            }
            let low = code(8)?.wrapping_sub(0xdc00);
            let whole = 0x1_0000 + ((first - 0xd800) << 10) + (low & 0x3ff);
            (char::from_u32(whole).filter(|_| low < 0x400).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        other => (other, 1 + other.len_utf8()),
    })
}

#[cfg(test)]
mod tests {
    use super::{Unwrapping, wrapped};

    #[test]
    fn the_input_is_the_same_however_it_is_cut() {
        for input in ["", "plain", "a \"b\" \\ c\n\td", "\u{1f600} é \u{7}", "*** Begin Patch\n+x\n"] {
            let compact = wrapped(input);
            let spaced = compact.replacen("{\"input\":", "{\n  \"input\" : ", 1);
            let escaped: String = input.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            for arguments in [compact, spaced, format!("{{\"input\":\"{escaped}\"}}")] {
                for size in 1..=arguments.len() {
                    let (mut unwrapping, mut found) = (Unwrapping::default(), String::new());
                    let chars: Vec<char> = arguments.chars().collect();
                    for piece in chars.chunks(size) {
                        found.push_str(&unwrapping.push(&piece.iter().collect::<String>()));
                    }
                    assert_eq!(found, input, "{arguments} in pieces of {size}");
                }
            }
        }
    }

    #[test]
    fn arguments_of_another_form_are_the_input() {
        for arguments in ["ls -l", "[1]", "{\"other\": 1}", "{\"input\": 5}"] {
            let mut unwrapping = Unwrapping::default();
            let found: String = arguments.chars().map(|c| unwrapping.push(&c.to_string())).collect();
            assert_eq!(found, arguments);
        }
    }
}
