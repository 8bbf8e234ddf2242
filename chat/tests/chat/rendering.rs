//! Prompts against those of another implementation, and where ours differ on purpose.

use super::{SPECIAL, VOCABULARY};
use kernmill_chat::harmony::{HarmonyError, HarmonyTokens, PromptOptions, prompt};
use kernmill_chat::{BuiltinTool, Call, Conversation, Date, Effort, Item, ResponseFormat, Tool, Vocabulary};
use serde_json::{Value, json};

fn user(text: &str) -> Item {
    Item::User { name: None, text: text.to_owned() }
}

fn call() -> Item {
    let (id, name, arguments) = ("c1".to_owned(), "f".to_owned(), "{}".to_owned());
    Item::Call(Call { id, name, arguments, is_builtin: false })
}

fn with(items: Vec<Item>) -> Conversation {
    Conversation { items, ..Conversation::default() }
}

/// The prompt as text, from the first user's message on.
fn shown(conversation: &Conversation, options: &PromptOptions) -> String {
    let ids = prompt(&*VOCABULARY, conversation, options).unwrap().ids;
    let bytes: Vec<u8> = ids.iter().flat_map(|id| VOCABULARY.bytes(*id).unwrap()).collect();
    let text = String::from_utf8(bytes).unwrap();
    text[text.find("<|start|>user").unwrap()..].to_owned()
}

#[test]
fn prompts_have_the_ids_of_the_reference() {
    let mut count = 0;
    for line in include_str!("vectors.jsonl").lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let conversation: Conversation = serde_json::from_value(vector["conversation"].clone()).unwrap();
        let prompt = prompt(&*VOCABULARY, &conversation, &PromptOptions::default()).unwrap();
        assert_eq!(json!(prompt.ids), vector["ids"], "{}", vector["conversation"]);
        // Every message begins at a boundary, and the prompt ends at one.
        let start = HarmonyTokens::of(&*VOCABULARY).unwrap().start;
        let is_start = |at: &usize| *at > 0 && prompt.ids[*at] == start;
        let mut starts: Vec<usize> = (0..prompt.ids.len()).filter(is_start).collect();
        starts.push(prompt.ids.len());
        assert_eq!(prompt.boundaries, starts);
        count += 1;
    }
    assert!(count > 20, "{count} vectors");
}

#[test]
fn reasoning_stays_until_an_answer_comes() {
    let answer = |text: &str| Item::Answer(text.to_owned());
    let reasoning = |text: &str| Item::Reasoning(text.to_owned());
    let first = vec![user("a"), reasoning("r1"), call(), reasoning("r2"), answer("b")];
    let second = [first.clone(), vec![user("c"), reasoning("r3"), call()]].concat();
    let has = |items: &Vec<Item>| {
        let text = shown(&with(items.clone()), &PromptOptions::default());
        ["r1", "r2", "r3"].map(|word| text.contains(word))
    };
    assert_eq!(has(&first[..4].to_vec()), [true, true, false]);
    assert_eq!(has(&first), [false, false, false]);
    assert_eq!(has(&second), [false, false, true]);
}

#[test]
fn calls_have_two_forms() {
    let conversation = with(vec![user("a"), call()]);
    let tail = |options: &PromptOptions| {
        shown(&conversation, options)["<|start|>user<|message|>a<|end|>".len()..].to_owned()
    };
    let template =
        "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|><|start|>assistant";
    assert_eq!(tail(&PromptOptions::default()), template);
    let generated = "<|start|>assistant<|channel|>commentary to=functions.f \
        <|constrain|>json<|message|>{}<|call|><|start|>assistant";
    assert_eq!(tail(&PromptOptions { has_generated_calls: true, ..PromptOptions::default() }), generated);
}

#[test]
fn without_effort_the_answer_has_begun() {
    let conversation = Conversation { effort: Effort::None, ..with(vec![user("a")]) };
    let text = shown(&conversation, &PromptOptions::default());
    assert!(text.ends_with("<|end|><|start|>assistant<|channel|>final<|message|>"), "{text}");
    // With tools, the model may call one instead.
    let tool = Tool { name: "f".to_owned(), description: String::new(), parameters: None, strict: false };
    for tools in [
        Conversation { tools: vec![tool], ..conversation.clone() },
        Conversation { builtin: vec![BuiltinTool::Python], ..conversation },
    ] {
        let text = shown(&tools, &PromptOptions::default());
        assert!(text.ends_with("<|end|><|start|>assistant"), "{text}");
    }
}

#[test]
fn the_form_of_the_answer_has_a_section() {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    let format = ResponseFormat { name: "list".into(), description: Some("A list.\nShort.".into()), schema };
    let conversation = Conversation {
        format: Some(format),
        date: Date::new(2026, 11, 26),
        ..with(vec![Item::Instructions("Be brief.".into()), Item::Instructions("Be kind.".into()), user("a")])
    };
    let ids = prompt(&*VOCABULARY, &conversation, &PromptOptions::default()).unwrap().ids;
    let text: Vec<u8> = ids.iter().flat_map(|id| VOCABULARY.bytes(*id).unwrap()).collect();
    let expected = "# Instructions\n\nBe brief.\n\nBe kind.\n\n# Response Formats\n\n## list\n\n// A list.\n// Short.\n\
        {\"type\":\"object\",\"properties\":{\"z\":{},\"a\":{}}}<|end|><|start|>user";
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\nCurrent date: 2026-11-26\n"), "{text}");
}

/// No text of anybody yields an id of a special token: there are as many as without it, at the same places
/// from the end.
#[test]
fn texts_never_make_special_tokens() {
    let hostile = VOCABULARY.added_tokens().into_iter().map(|token| token.text).collect::<Vec<_>>().concat();
    let made = |text: &str| {
        let text = text.to_owned();
        let tool = json!({
            "name": "f", "description": text,
            "parameters": {"type": "object", "properties": {&text: {"type": "string", "description": text}}},
        });
        let format = json!({"name": text, "description": text, "schema": {"title": text}});
        let called = json!({"id": text, "name": "f", "arguments": text});
        let output = json!({"id": text, "name": "f", "text": text});
        let conversation = json!({"tools": [tool], "format": format, "items": [
            {"instructions": text}, {"user": {"text": text}}, {"reasoning": text}, {"preamble": text},
            {"call": called}, {"output": output}, {"answer": text}, {"instructions": text}, {"reasoning": text},
        ]});
        let conversation: Conversation = serde_json::from_value(conversation).unwrap();
        let ids = prompt(&*VOCABULARY, &conversation, &PromptOptions::default()).unwrap().ids;
        ids.into_iter().filter(|id| *id >= SPECIAL).collect::<Vec<u32>>()
    };
    assert_eq!(made(&hostile), made("x"));
    assert_eq!(made("x").len(), 33);
}

#[test]
fn names_are_refused_that_could_be_more() {
    for name in ["", "a b", "f to=g", "a:b", "<|end|>", "a\n", &"x".repeat(129)] {
        let item = Item::User { name: Some(name.to_owned()), text: String::new() };
        let error = prompt(&*VOCABULARY, &with(vec![item]), &PromptOptions::default()).unwrap_err();
        assert!(matches!(error, HarmonyError::Name { .. }), "{error}");
    }
    let item = Item::User { name: Some("f to=g".into()), text: String::new() };
    let error = prompt(&*VOCABULARY, &with(vec![item]), &PromptOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a user has the name `f to=g`, expected 1 to 128 letters, digits and `_-.`"
    );
}
