//! Turns in Harmony, read by the parser of them.

use super::follow::{LEXICON, VOCABULARY, generate, text_of, texts};
use super::random::{describes, schema};
use fastrand::Rng;
use kernmill_chat::harmony::{HarmonyParser, HarmonyTokens};
use kernmill_chat::{
    AnswerPart, BuiltinTool, Conversation, Effort, Event, ResponseFormat, Tool, ToolChoice, TurnGrammar,
    Vocabulary,
};
use kernmill_constrain::{Constraint, Error};
use serde_json::{Value, json};

fn conversation(rng: &mut Rng) -> Conversation {
    let names = ["get", "get_weather", "f", "a.b-c"];
    let tools = names[..rng.usize(..5)].iter().map(|name| Tool {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: rng.bool().then(|| schema(rng)),
        strict: rng.bool(),
    });
    let tools = tools.collect();
    let format = rng.bool().then(|| ResponseFormat {
        name: "answer".to_owned(),
        description: None,
        schema: schema(rng),
    });
    let effort = if rng.u8(..5) == 0 { Effort::None } else { Effort::Low };
    let builtin = match rng.u8(..4) {
        0 => vec![BuiltinTool::Python],
        1 => vec![BuiltinTool::Browser, BuiltinTool::Python],
        _ => Vec::new(),
    };
    Conversation { tools, format, effort, builtin, ..Conversation::default() }
}

/// Parts of a turn with their contents.
fn parts(ids: &[u32], conversation: &Conversation) -> Vec<(AnswerPart, String)> {
    let mut events = Vec::new();
    let mut parser = HarmonyParser::new(&**VOCABULARY, conversation, &mut events).unwrap();
    ids.iter().for_each(|id| parser.push(&**VOCABULARY, *id, &mut events));
    parser.finish(&mut events);
    let seen: Vec<_> = parser.anomalies().seen().collect();
    assert!(seen.is_empty(), "{seen:?}: {ids:?} {}", text_of(ids));
    let mut parts = Vec::<(AnswerPart, String)>::new();
    for event in events {
        match event {
            Event::Begin(part) => parts.push((part, String::new())),
            Event::Delta(text) => parts.last_mut().unwrap().1.push_str(&text),
            Event::End { is_complete } => assert!(is_complete),
        }
    }
    parts
}

#[test]
fn every_turn_is_read_without_anomalies() {
    let tokens = HarmonyTokens::of(&**VOCABULARY).unwrap();
    let (mut calls, mut answers, mut reasonings, mut unreasoned) = (0, 0, 0, 0);
    for seed in 0..texts() {
        let mut rng = Rng::with_seed(seed);
        let conversation = conversation(&mut rng);
        let can_call = !conversation.tools.is_empty();
        let choice = match rng.u8(..4) {
            0 if can_call => ToolChoice::Required,
            1 if can_call => ToolChoice::Function(conversation.tools[0].name.clone()),
            2 => ToolChoice::None,
            _ => ToolChoice::Auto,
        };
        // The first function stays, so that what must be called can be.
        let allowed = (rng.u8(..3) == 0).then(|| vec!["get".to_owned(), "python".to_owned()]);
        let turn = TurnGrammar { allowed, ..TurnGrammar::of(&conversation, choice.clone()) };
        let constraint = turn
            .harmony()
            .and_then(|rule| Constraint::new(&LEXICON, &rule))
            .unwrap_or_else(|error| panic!("{seed}: {error}: {conversation:?}"));
        let ids = generate(constraint, &mut rng);
        let parts = parts(&ids, &conversation);
        let is_valid = |schema: &Value, text: &str| {
            let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{seed}: {error}: {text}"));
            assert!(describes(schema, schema, &value), "{seed}: {text} is not of {schema}");
        };
        let (last, before) = parts.split_last().unwrap();
        reasonings += before.iter().filter(|(part, _)| *part == AnswerPart::Reasoning).count();
        let is_before = |part: &AnswerPart| matches!(part, AnswerPart::Reasoning | AnswerPart::Preamble);
        assert!(before.len() <= 2 && before.iter().all(|(part, _)| is_before(part)), "{seed}: {parts:?}");
        let may_reason = conversation.effort != Effort::None;
        assert!(
            may_reason || !before.iter().any(|(part, _)| *part == AnswerPart::Reasoning),
            "{seed}: {parts:?}"
        );
        let is_allowed =
            |name: &str| turn.allowed.as_ref().is_none_or(|names| names.iter().any(|n| n == name));
        match &last.0 {
            AnswerPart::Answer => {
                answers += 1;
                assert_eq!(ids.last(), Some(&tokens.return_));
                assert!(matches!(choice, ToolChoice::Auto | ToolChoice::None), "{seed}");
                conversation.format.iter().for_each(|format| is_valid(&format.schema, &last.1));
            }
            AnswerPart::Call { name, is_builtin: false } => {
                calls += 1;
                assert_eq!(ids.last(), Some(&tokens.call));
                unreasoned += usize::from(!may_reason);
                assert!(choice != ToolChoice::None && is_allowed(name), "{seed}");
                let tool = conversation.tools.iter().find(|tool| tool.name == *name).unwrap();
                match &tool.parameters {
                    Some(schema) => is_valid(schema, &last.1),
                    None => assert_eq!(serde_json::from_str::<Value>(&last.1).unwrap(), json!({})),
                }
                if let ToolChoice::Function(wanted) = &choice {
                    assert_eq!(wanted, name);
                }
            }
            AnswerPart::Call { name, is_builtin: true } => {
                assert!(!conversation.builtin.is_empty() && is_allowed(name.split('.').next().unwrap()));
            }
            other => panic!("{seed}: a turn ends with {other:?}"),
        }
    }
    let seen = [calls, answers, reasonings, unreasoned];
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn headers_of_a_named_call_are_forced() {
    let tool =
        Tool { name: "get_weather".to_owned(), description: String::new(), parameters: None, strict: false };
    let conversation = Conversation { tools: vec![tool], ..Conversation::default() };
    let turn = TurnGrammar::of(&conversation, ToolChoice::Function("get_weather".to_owned()));
    let mut constraint = turn.harmony().and_then(|rule| Constraint::new(&LEXICON, &rule)).unwrap();
    let tokens = HarmonyTokens::of(&**VOCABULARY).unwrap();
    let start = |constraint: &mut Constraint, marked: &str| {
        for id in VOCABULARY.encode_marked(marked).unwrap() {
            constraint.accept(id).unwrap();
        }
    };
    start(&mut constraint, "<|channel|>analysis<|message|>Hm<|end|>");
    assert_eq!(constraint.forced(), [tokens.start, 173_781]);
    start(&mut constraint, "<|start|>assistant<|channel|>commentary to=functions");
    let forced = text_of(&constraint.forced());
    assert_eq!(forced, ".get_weather");
    start(&mut constraint, ".get_weather <|constrain|>json<|message|>{}");
    assert_eq!(constraint.forced(), [tokens.call]);
    assert_eq!(constraint.accept(tokens.return_), Err(Error::NotAllowed { id: tokens.return_ }));
    constraint.accept(tokens.call).unwrap();
    assert!(constraint.is_done());
}

/// Schemas of others' tools have what no grammar can hold a call to.
#[test]
fn only_strict_functions_must_have_schemas_that_can_be_followed() {
    let made = |strict: bool, parameters: Value| {
        let tool =
            Tool { name: "f".to_owned(), description: String::new(), parameters: Some(parameters), strict };
        let turn = TurnGrammar { tools: vec![tool], ..TurnGrammar::default() };
        turn.harmony().and_then(|rule| Constraint::new(&LEXICON, &rule))
    };
    let either = json!({ "oneOf": [{ "minimum": 1, "type": "integer" }, { "type": "number" }] });
    let of = |member: Value| json!({ "type": "object", "properties": { "a": member }, "required": ["a"] });
    for member in
        [either, json!({ "type": "string", "pattern": "^(?=a)b$" }), json!({ "not": { "const": 1 } })]
    {
        let parameters = of(member.clone());
        assert!(made(false, parameters.clone()).is_ok(), "{member}");
        assert!(matches!(made(true, parameters), Err(Error::Rule { .. })), "{member}");
    }
    // A schema that can be followed is followed.
    let number = of(json!({ "oneOf": [{ "type": "integer" }] }));
    let mut constraint = made(false, number).unwrap();
    let begun = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\":";
    for id in VOCABULARY.encode_marked(begun).unwrap() {
        constraint.accept(id).unwrap();
    }
    let quote = VOCABULARY.encode_marked("\"").unwrap()[0];
    assert_eq!(constraint.accept(quote), Err(Error::NotAllowed { id: quote }));
}

#[test]
fn impossible_choices_are_refused() {
    let refused = |turn: TurnGrammar| {
        turn.harmony().and_then(|rule| Constraint::new(&LEXICON, &rule)).unwrap_err().to_string()
    };
    let required = TurnGrammar { choice: ToolChoice::Required, ..TurnGrammar::default() };
    assert_eq!(
        refused(required),
        "the choice of tools: a tool shall be called, but no such tool is declared"
    );
    let tool =
        Tool { name: "f".to_owned(), description: String::new(), parameters: Some(json!([])), strict: false };
    let wrong = TurnGrammar { tools: vec![tool.clone()], ..TurnGrammar::default() };
    assert_eq!(refused(wrong), "the schema of the function `f`: it is an array, expected an object");
    let wrong =
        TurnGrammar { tools: vec![Tool { name: "a\"b".to_owned(), ..tool }], ..TurnGrammar::default() };
    assert!(refused(wrong).contains("its name has other characters than"));
}
