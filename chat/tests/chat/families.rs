//! Calls as the templates of model families write them: read back whole and in pieces, and let through by the
//! grammar of a turn.

use super::follow::{LEXICON, VOCABULARY};
use fastrand::Rng;
use kernmill_chat::calls::{FORMATS, TextParser, ThoughtMarks};
use kernmill_chat::{
    AddedToken, Anomaly, AnswerPart, Conversation, Event, Template, ToolChoice, TurnGrammar, Vocabulary,
    VocabularyError,
};
use kernmill_constrain::Constraint;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How the template of a family tells functions and writes calls.
struct Family {
    /// The format that its template is known to have.
    format: &'static str,
    /// Text that tells the model how to call.
    told: &'static str,
    /// How a message has its calls; empty if the template has no place for calls.
    calls: &'static str,
    /// Whether values other than texts are written as Python prints them, which no grammar does.
    has_pythons_values: bool,
}

/// The name of a call's function, and the loop through its arguments.
const FUNCTION: &str = "{% set f = c.function %}";

const FAMILIES: [Family; 13] = [
    Family {
        format: "qwen3_coder",
        told: "<tool_call>\n<function=example_name>\n<parameter=example_key>\nvalue\n</parameter>\n</function>\n\
               </tool_call>",
        calls: "{% for c in m.tool_calls %}F{{ '\\n' }}<tool_call>\n<function={{ f.name }}>\n\
                {% for k, v in f.arguments.items() %}<parameter={{ k }}>\n\
                {{ v | tojson if v is mapping or v is sequence and v is not string else v | string }}\n</parameter>\n\
                {% endfor %}</function>\n</tool_call>{% endfor %}",
        has_pythons_values: true,
    },
    Family {
        format: "glm",
        told: "<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>\n<arg_value>{arg-value-1}</arg_value>\n\
               ...\n</tool_call>",
        calls: "{% for c in m.tool_calls %}F{{ '\\n' }}<tool_call>{{ f.name }}\n\
                {% for k, v in f.arguments.items() %}<arg_key>{{ k }}</arg_key>\n\
                <arg_value>{{ v if v is string else v | tojson }}</arg_value>\n{% endfor %}</tool_call>{% endfor %}",
        has_pythons_values: false,
    },
    Family {
        format: "seed",
        told: "<seed:tool_call>\n<function=example>\n<parameter=one>value</parameter>\n</function>\n</seed:tool_call>",
        calls: "{% for c in m.tool_calls %}F{{ '\\n' }}<seed:tool_call>\n<function={{ f.name }}>\n\
                {% for k, v in f.arguments.items() %}<parameter={{ k }}>{{ v | string }}</parameter>\n{% endfor %}\
                </function>\n</seed:tool_call>{% endfor %}",
        has_pythons_values: true,
    },
    Family {
        format: "phi4",
        told: "To use a tool, write <|tool_call|>{\"name\": \"f\", \"arguments\": {}}<|/tool_call|>",
        calls: "{% for c in m.tool_calls %}<|tool_call|>{{ c.function | tojson }}<|/tool_call|>{% endfor %}",
        has_pythons_values: false,
    },
    Family { format: "phi4_list", told: "<|tool|>", calls: "", has_pythons_values: false },
    Family {
        format: "functools",
        told: "prefix function calls with functools marker, as functools[{\"name\": ...}, ...]",
        calls: " functools[{% for c in m.tool_calls %}{{ c.function | tojson }}\
                {{ ', ' if not loop.last }}{% endfor %}]",
        has_pythons_values: false,
    },
    Family {
        format: "python",
        told: "Respond in the format [func_name1(params_name1=params_value1, params_name2=params_value2...)]",
        calls: "[{% for c in m.tool_calls %}F{{ f.name }}({% for k, v in f.arguments.items() %}\
                {{ k }}={{ v | tojson }}{{ ', ' if not loop.last }}{% endfor %})\
                {{ ', ' if not loop.last }}{% endfor %}]",
        has_pythons_values: false,
    },
    Family {
        format: "lfm2",
        told: "List of tools: [",
        calls: "<|tool_call_start|>[{% for c in m.tool_calls %}F{{ f.name }}({% for k, v in f.arguments.items() %}\
                {{ k }}={{ v | tojson if v is string else v | string }}{{ ', ' if not loop.last }}{% endfor %})\
                {{ ', ' if not loop.last }}{% endfor %}]<|tool_call_end|>",
        has_pythons_values: true,
    },
    Family {
        format: "olmo3",
        told: "Output any function calls within <function_calls></function_calls> XML tags.",
        calls: "<function_calls>{% for c in m.tool_calls %}F{{ f.name }}({% for k, v in f.arguments.items() %}\
                {{ k }}={{ v | tojson }}{{ ', ' if not loop.last }}{% endfor %})\
                {{ '\\n' if not loop.last }}{% endfor %}</function_calls>",
        has_pythons_values: false,
    },
    // Granite 3, whose templates have no place for calls.
    Family {
        format: "granite",
        told: "respond only with <|tool_call|> followed by a JSON list of tools used",
        calls: "",
        has_pythons_values: false,
    },
    // Granite 4, and ERNIE 4.5 with its space.
    Family {
        format: "hermes",
        told: "return a json object within <tool_call></tool_call> XML tags",
        calls: "{% for c in m.tool_calls %}F{{ '\\n' if not loop.first }}<tool_call>\n{\"name\": \"{{ f.name }}\", \
                \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>{% endfor %}",
        has_pythons_values: false,
    },
    Family {
        format: "hermes",
        told: "<tool_call>\n{\"name\": \"tool\", \"arguments\": {}}\n</tool_call>\n",
        calls: "\n{% for c in m.tool_calls %}<tool_call>\n{{ {'name': c.function.name, 'arguments': \
                c.function.arguments} | tojson }}\n</tool_call>\n{% endfor %}",
        has_pythons_values: false,
    },
    // SmolLM3, which also knows calls in code: these are no functions that a request declares.
    Family {
        format: "hermes",
        told: "return a json object within <tool_call></tool_call> XML tags, or code between '<code>' and '</code>'",
        calls: "",
        has_pythons_values: false,
    },
];

impl Family {
    fn template(&self) -> Template {
        let calls = match self.calls {
            "" => String::new(),
            calls => format!("{{% if m.tool_calls %}}{}{{% endif %}}", calls.replace('F', FUNCTION)),
        };
        let source = format!(
            "{{% if tools %}}[{{{{ {} }}}}{{% for t in tools %}}{{{{ t | tojson }}}}{{% endfor %}}]{{% endif %}}\
             {{% for m in messages %}}<{{{{ m.role }}}}>{{{{ m.content }}}}{calls}<end>{{% endfor %}}\
             {{% if add_generation_prompt %}}<assistant>{{% endif %}}",
            Value::from(self.told)
        );
        let template = Template::new(&source, &**VOCABULARY, &BTreeMap::new()).unwrap();
        assert_eq!(template.calls().map(|format| format.name), Some(self.format), "{}", self.told);
        assert!(template.tells_tools(), "{}", self.format);
        assert_eq!(template.tells_calls(), !self.calls.is_empty(), "{}", self.format);
        template
    }

    /// A turn of calls with words before it, as the template writes it.
    fn written(&self, template: &Template, words: &str, calls: &[(&str, Map<String, Value>)]) -> String {
        let call = |(at, (name, arguments)): (usize, &(&str, Map<String, Value>))| {
            let arguments = Value::from(arguments.clone()).to_string();
            json!({"call": {"id": format!("c{at}"), "name": name, "arguments": arguments}})
        };
        let mut items = vec![json!({"user": {"text": "Hi"}})];
        let before = template.text(&conversation(&items)).unwrap();
        items.extend((!words.is_empty()).then(|| json!({"preamble": words})));
        items.extend(calls.iter().enumerate().map(call));
        let all = template.text(&conversation(&items)).unwrap();
        let turn = all.strip_prefix(&before).unwrap().split_once("<end>").unwrap();
        assert!(["<assistant>", ""].contains(&turn.1), "{all}");
        turn.0.to_owned()
    }
}

fn tools() -> Value {
    let look = json!({"type": "object", "properties": {
        "place": {"type": "string"}, "days": {"type": "integer"}, "share": {"type": "number"},
        "now": {"type": "boolean"}, "list": {"type": "array"}, "map": {"type": "object"},
        "note": {"type": ["string", "null"]}, "either": {"type": ["string", "array"]}}});
    let other = json!({"type": "object", "properties": {}});
    json!([{"name": "look", "description": "Looks.", "parameters": look, "strict": true},
        {"name": "other.thing-2", "description": "", "parameters": other, "strict": true}])
}

fn conversation(items: &[Value]) -> Conversation {
    serde_json::from_value(json!({"items": items, "tools": tools()})).unwrap()
}

/// A text that no template writes in a way that has two meanings.
fn text(rng: &mut Rng) -> String {
    let words =
        ["Oslo", "it's", "\"b\"", "a\nb", "<b>", "ä 😀", "\\n", "null", "1", "</", "{}", "x, y", "()"];
    let first = *rng.choice(&["A", "tr", "<", "é"]).unwrap();
    first.to_owned() + &(0..rng.usize(..5)).map(|_| *rng.choice(&words).unwrap()).collect::<String>() + "."
}

fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth < 3 { 7 } else { 5 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => rng.i32(..).into(),
        3 => (f64::from(rng.i16(..)) / 8.0).into(),
        4 => text(rng).into(),
        5 => (0..rng.usize(..4)).map(|_| value(rng, depth + 1)).collect(),
        _ => map(rng, depth),
    }
}

fn map(rng: &mut Rng, depth: usize) -> Value {
    let keys = ["a", "b c", "it's", "\"q\""];
    let count = rng.usize(..5);
    let member = |key: &&str| ((*key).to_owned(), value(rng, depth + 1));
    keys[..count].iter().map(member).collect::<Map<_, _>>().into()
}

/// Arguments in the order of the schema.
fn arguments(rng: &mut Rng) -> Map<String, Value> {
    let all = [
        ("place", text(rng).into()),
        ("days", rng.i64(..).into()),
        ("share", (f64::from(rng.i32(..)) / 16.0).into()),
        ("now", rng.bool().into()),
        ("list", (0..rng.usize(..4)).map(|_| value(rng, 0)).collect()),
        ("map", map(rng, 0)),
        ("note", if rng.bool() { Value::Null } else { text(rng).into() }),
        ("either", if rng.bool() { text(rng).into() } else { json!([text(rng), 1]) }),
    ];
    let given = all.into_iter().filter(|_| rng.bool());
    given.map(|(key, value)| (key.to_owned(), value)).collect()
}

fn calls(rng: &mut Rng) -> Vec<(&'static str, Map<String, Value>)> {
    let call = |rng: &mut Rng| match rng.bool() {
        true => ("look", arguments(rng)),
        false => ("other.thing-2", Map::new()),
    };
    (0..rng.usize(1..4)).map(|_| call(rng)).collect()
}

/// A vocabulary whose tokens are pieces of one text.
struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    /// The text in pieces of at most `longest` bytes.
    fn of(text: &str, longest: usize, rng: &mut Rng) -> Pieces {
        let (mut pieces, mut rest) = (Vec::new(), text.as_bytes());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rng.usize(1..=rest.len().min(longest)));
            pieces.push(piece.to_vec());
            rest = others;
        }
        Pieces(pieces)
    }
}

impl Vocabulary for Pieces {
    fn encode_ordinary(&self, _: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(Vec::new())
    }

    fn encode_marked(&self, _: &str) -> Result<Vec<u32>, VocabularyError> {
        Ok(Vec::new())
    }

    fn added_tokens(&self) -> Vec<AddedToken> {
        Vec::new()
    }

    fn bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.get(id as usize).cloned()
    }
}

/// The parts of a text in pieces, each with its content and whether it is complete.
fn read(template: &Template, pieces: &Pieces) -> Vec<(AnswerPart, String, bool)> {
    let declared = conversation(&[]).tools;
    let mut parser = TextParser::new(pieces, template.calls(), declared, template.thought_marks(), false);
    let mut events = Vec::new();
    (0..pieces.0.len()).for_each(|id| parser.push(pieces, id as u32, &mut events));
    parser.finish(&mut events);
    let mut parts: Vec<(AnswerPart, String, bool)> = Vec::new();
    for event in events {
        match event {
            Event::Begin(part) => parts.push((part, String::new(), false)),
            Event::Delta(text) => parts.last_mut().unwrap().1 += &text,
            Event::End { is_complete } => parts.last_mut().unwrap().2 = is_complete,
        }
    }
    assert!(parser.anomalies().seen().next().is_none(), "{parts:?}");
    parts
}

#[test]
fn calls_are_read_as_templates_write_them() {
    for family in &FAMILIES {
        let template = family.template();
        for seed in 0..150 {
            let mut rng = Rng::with_seed(seed);
            let calls = calls(&mut rng);
            // Without a mark, calls are all of a turn.
            let words = if family.format == "python" || rng.bool() { "" } else { "I look.\n" };
            let written = family.written(&template, words, &calls);
            let what = format!("{}: {written}", family.format);
            let whole = read(&template, &Pieces(vec![written.clone().into_bytes()]));
            let mut expected: Vec<(AnswerPart, Value)> = Vec::new();
            expected.extend((!words.is_empty()).then(|| (AnswerPart::Answer, words.trim().into())));
            expected.extend(calls.iter().map(|(name, arguments)| {
                (AnswerPart::Call { name: (*name).to_owned(), is_builtin: false }, arguments.clone().into())
            }));
            let found: Vec<(AnswerPart, Value)> = whole
                .iter()
                .map(|(part, content, is_complete)| {
                    assert!(is_complete, "{what}");
                    match part {
                        AnswerPart::Call { .. } => {
                            let value = serde_json::from_str(content);
                            (
                                part.clone(),
                                value.unwrap_or_else(|error| panic!("{error}: {content} of {what}")),
                            )
                        }
                        _ => (part.clone(), content.trim().into()),
                    }
                })
                .collect();
            assert_eq!(found, expected, "{what}");
            for longest in [1, 3, 40] {
                let pieces = Pieces::of(&written, longest, &mut rng);
                assert_eq!(read(&template, &pieces), whole, "{what}");
            }
        }
    }
}

/// A turn that must call is held to what the template writes.
#[test]
fn grammars_let_through_what_templates_write() {
    for family in &FAMILIES {
        let template = family.template();
        let turn = TurnGrammar::of(&conversation(&[]), ToolChoice::Required);
        let rule = turn.text(template.calls(), &**VOCABULARY).unwrap().unwrap();
        let made = Constraint::new(&LEXICON, &rule).unwrap();
        for seed in 0..20 {
            let mut rng = Rng::with_seed(seed);
            let mut calls = calls(&mut rng);
            for (_, arguments) in &mut calls {
                // A grammar has strings in quotes where others may come, and constants as JSON has them.
                let is_alike = |value: &Value| value.is_string() || value.is_i64();
                arguments
                    .retain(|key, value| key != "either" && (!family.has_pythons_values || is_alike(value)));
            }
            let written = family.written(&template, "", &calls);
            let mut constraint = made.clone();
            let pieces = Pieces::of(written.trim(), 6, &mut rng);
            let text = String::from_utf8_lossy(&pieces.0.concat()).into_owned();
            let mut so_far = String::new();
            for id in VOCABULARY.encode_ordinary(&text).unwrap() {
                constraint.accept(id).unwrap_or_else(|error| {
                    panic!("{}: {error} after {so_far:?} of {text:?}", family.format)
                });
                so_far += &String::from_utf8_lossy(&VOCABULARY.bytes(id).unwrap());
            }
            let may_end = constraint.mask().unwrap().allows(200_002);
            assert!(may_end, "{}: {text:?}", family.format);
        }
    }
}

/// The start of a call up to a text among its arguments, and what ends it.
const TEXTS: [(&str, &str, &str); 5] = [
    (
        "qwen3_coder",
        "<tool_call>\n<function=look>\n<parameter=place>\n",
        "\n</parameter>\n</function>\n</tool_call>",
    ),
    ("glm", "<tool_call>look\n<arg_key>place</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>"),
    ("lfm2", "<|tool_call_start|>[look(place='", "')]<|tool_call_end|>"),
    ("olmo3", "<function_calls>look(place=\"\"\"", "\"\"\")</function_calls>"),
    ("hermes", "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"place\": \"", "\"}}\n</tool_call>"),
];

/// A reader waits no longer than a text may be the end of an argument.
#[test]
fn texts_among_arguments_come_as_they_are_written() {
    for (name, begin, end) in TEXTS {
        let format = FORMATS.iter().find(|format| format.name == name).unwrap();
        let written = "fn main() { /* ".repeat(2000);
        let pieces = Pieces::of(&format!("{begin}{written}{end}"), 7, &mut Rng::with_seed(1));
        let declared = conversation(&[]).tools;
        let mut parser = TextParser::new(&pieces, Some(format), declared, ThoughtMarks::default(), false);
        let (mut came, mut given) = (0, String::new());
        for (id, piece) in pieces.0.iter().enumerate() {
            let mut events = Vec::new();
            parser.push(&pieces, id as u32, &mut events);
            for event in events {
                if let Event::Delta(text) = event {
                    given += &text;
                }
            }
            came += piece.len();
            let of_text = came.saturating_sub(begin.len()).min(written.len());
            assert!(given.len() + 20 >= of_text, "{name}: {} of {of_text} bytes", given.len());
        }
        let arguments: Value = serde_json::from_str(&given).unwrap();
        assert_eq!(arguments, json!({"place": written}), "{name}");
    }
}

/// Text that is no call, or half of one, ends in parts that say so.
#[test]
fn hostile_calls_end() {
    let deep = |open: &str, close: &str| open.repeat(5000) + &close.repeat(5000);
    let many = "look(days=1), ".repeat(3000);
    for (name, text, anomaly) in [
        ("lfm2", format!("<|tool_call_start|>[look(list={})]", deep("[", "]")), Some(Anomaly::BadCall)),
        ("lfm2", format!("<|tool_call_start|>[look(map={})]", deep("{'a': ", "}")), Some(Anomaly::BadCall)),
        ("lfm2", format!("<|tool_call_start|>[look({}=1)]", "a".repeat(5000)), Some(Anomaly::BadCall)),
        ("lfm2", format!("<|tool_call_start|>[look(list=[{}", "1, ".repeat(5000)), None),
        ("lfm2", format!("<|tool_call_start|>[{many}"), None),
        ("lfm2", "<|tool_call_start|>[look(days=lambda: 1)]".to_owned(), Some(Anomaly::BadCall)),
        ("lfm2", "<|tool_call_start|>[unknown(a=1)]".to_owned(), Some(Anomaly::UnknownTool)),
        ("olmo3", format!("<function_calls>{}", "look(\n".repeat(5000)), Some(Anomaly::BadCall)),
        ("glm", format!("<tool_call>look\n<arg_key>list</arg_key>{}", deep("[", "")), Some(Anomaly::BadCall)),
        (
            "glm",
            "<tool_call>unknown\n<arg_key>a</arg_key><arg_value>1</arg_value>".to_owned(),
            Some(Anomaly::UnknownTool),
        ),
        ("glm", format!("<tool_call>{}", "a".repeat(5000)), Some(Anomaly::BadCall)),
        ("seed", format!("<function=look>\n<parameter=list>{}", deep("[", "]")), None),
        ("seed", format!("<function=look>{}", "<parameter=".repeat(5000)), Some(Anomaly::BadCall)),
        ("functools", format!("functools[{}", "{".repeat(5000)), Some(Anomaly::BadCall)),
        ("phi4_list", format!("<|tool_call|>{}", "[".repeat(5000)), Some(Anomaly::BadCall)),
    ] {
        let format = FORMATS.iter().find(|format| format.name == name).unwrap();
        let what = format!("{name}: {}", text.chars().take(80).collect::<String>());
        let pieces = Pieces::of(&text, 40, &mut Rng::with_seed(1));
        let declared = conversation(&[]).tools;
        let mut parser = TextParser::new(&pieces, Some(format), declared, ThoughtMarks::default(), false);
        let mut events = Vec::new();
        (0..pieces.0.len()).for_each(|id| parser.push(&pieces, id as u32, &mut events));
        parser.finish(&mut events);
        let seen: Vec<Anomaly> = parser.anomalies().seen().map(|(anomaly, _)| anomaly).collect();
        assert_eq!(seen, Vec::from_iter(anomaly), "{what}");
        let begun = events.iter().filter(|event| matches!(event, Event::Begin(_))).count();
        let ended = events.iter().filter(|event| matches!(event, Event::End { .. })).count();
        assert_eq!(begun, ended, "{what}");
    }
}
