//! Generated ids, well-formed and not.

use super::{SPECIAL, VOCABULARY};
use kernmill_chat::harmony::{
    Author, Channel, ContentType, HarmonyMessage, HarmonyParser, HarmonyTokens, render,
};
use kernmill_chat::{Anomaly, AnswerPart, Conversation, Effort, Event, Tool, Vocabulary};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A conversation with the functions `f` and `get_weather`.
fn declared() -> Conversation {
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        description: String::new(),
        parameters: None,
        strict: false,
    };
    Conversation { tools: vec![tool("f"), tool("get_weather")], ..Conversation::default() }
}

fn tokens() -> HarmonyTokens {
    HarmonyTokens::of(&*VOCABULARY).unwrap()
}

/// Events of ids, and the parser after them.
fn events_of(ids: &[u32], conversation: &Conversation) -> (Vec<Event>, HarmonyParser) {
    let mut events = Vec::new();
    let mut parser = HarmonyParser::new(&*VOCABULARY, conversation, &mut events).unwrap();
    for id in ids {
        parser.push(&*VOCABULARY, *id, &mut events);
    }
    parser.finish(&mut events);
    (events, parser)
}

/// Parts with their contents, and whether the model ended them. Panics where events do not fit together.
fn parts(events: &[Event]) -> Vec<(AnswerPart, String, bool)> {
    let (mut done, mut open) = (Vec::new(), None::<(AnswerPart, String)>);
    for event in events {
        match event {
            Event::Begin(part) => assert_eq!(open.replace((part.clone(), String::new())), None),
            Event::Delta(text) => {
                assert!(!text.is_empty());
                open.as_mut().unwrap().1.push_str(text);
            }
            Event::End { is_complete } => {
                let (part, text) = open.take().unwrap();
                done.push((part, text, *is_complete));
            }
        }
    }
    assert_eq!(open, None);
    done
}

fn named(part: &AnswerPart) -> String {
    match part {
        AnswerPart::Reasoning => "reasoning".to_owned(),
        AnswerPart::Preamble => "preamble".to_owned(),
        AnswerPart::Answer => "answer".to_owned(),
        AnswerPart::Call { name, is_builtin: false } => format!("call {name}"),
        AnswerPart::Call { name, is_builtin: true } => format!("builtin {name}"),
    }
}

/// The contents of a marked text, in words, and the anomalies.
fn read(text: &str) -> (String, String) {
    let ids = VOCABULARY.encode_marked(text).unwrap();
    let (events, parser) = events_of(&ids, &declared());
    let shown = parts(&events).into_iter().map(|(part, text, is_complete)| {
        format!("{}: {text}{}", named(&part), if is_complete { "" } else { " (cut off)" })
    });
    let seen = parser.anomalies().seen().map(|(anomaly, count)| format!("{} {count}", anomaly.name()));
    (shown.collect::<Vec<_>>().join(" | "), seen.collect::<Vec<_>>().join(", "))
}

#[test]
fn turns_are_read() {
    let cases = [
        ("<|channel|>final<|message|>Hi<|return|>", "answer: Hi"),
        (
            "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>",
            "reasoning: Hm | answer: Hi",
        ),
        ("<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>", "call f: {}"),
        (" to=functions.f<|channel|>commentary json<|message|>{}<|call|>", "call f: {}"),
        (" to=functions.f<|channel|>commentary<|constrain|>json<|message|>{}<|call|>", "call f: {}"),
        ("<|channel|>commentary to=functions.f<|message|>{}<|call|>", "call f: {}"),
        ("<|channel|>analysis to=functions.f code<|message|>{}<|call|>", "call f: {}"),
        ("<|channel|>analysis to=browser.search code<|message|>{}<|call|>", "builtin browser.search: {}"),
        ("<|channel|>analysis to=python code<|message|>1+1<|call|>", "builtin python: 1+1"),
        (
            "<|channel|>commentary<|message|>Look.<|end|><|start|>assistant to=functions.get_weather<|channel|>\
                commentary json<|message|>{\"a\": 1}<|call|>",
            "preamble: Look. | call get_weather: {\"a\": 1}",
        ),
        ("<|channel|>final <|constrain|>json<|message|>{}<|return|>", "answer: {}"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), (expected.to_owned(), String::new()), "{text}");
    }
}

#[test]
fn deviations_are_read_as_they_were_meant() {
    let cases = [
        // Text without a header.
        ("Hello there<|return|>", "answer: Hello there", "no_header 1, no_channel 1"),
        ("😀 face<|return|>", "answer: 😀 face", "no_header 1, no_channel 1"),
        (" json is a format", "answer:  json is a format (cut off)", "no_header 1, no_channel 1"),
        ("a<|return|>", "answer: a", "no_channel 1, no_content 1"),
        ("to be<|return|>", "answer: to be", "no_header 1, no_channel 1"),
        (
            "<|start|>Hello world<|return|>",
            "answer: Hello world",
            "no_header 1, no_channel 1, other_author 1",
        ),
        // A header without a message token.
        ("<|channel|>finalHello<|return|>", "answer: Hello", "no_content 1"),
        ("<|channel|>final Hello<|return|>", "answer:  Hello", "no_content 1"),
        ("<|channel|>commentary to=functions.f json{}<|call|>", "call f: {}", "no_content 1"),
        // No arguments are an object of none.
        ("<|channel|>commentary to=functions.f<|call|>", "call f: {}", "no_content 1"),
        ("<|channel|>commentary to=functions.f<|message|> null<|call|>", "call f: {}", ""),
        ("<|channel|>commentary to=functions.f<|message|>nul<|call|>", "call f: nul", ""),
        ("<|channel|>final<|end|>", "", "no_content 1"),
        // Tokens behind an end.
        ("<|channel|>final<|message|>Hi<|end|><|return|>", "answer: Hi", "stray_end 1"),
        (
            "<|channel|>final<|message|>Hi<|end|>stray text<|return|>",
            "answer: Hi | answer: stray text",
            "no_header 1, no_channel 1",
        ),
        (
            "<|channel|>analysis<|message|>Hm<|end|>assistant<|channel|>final<|message|>Hi<|return|>",
            "reasoning: Hm | answer: Hi",
            "no_start 1",
        ),
        (
            "<|channel|>analysis<|message|>Hm<|end|><|channel|>final<|message|>Hi<|return|>",
            "reasoning: Hm | answer: Hi",
            "no_start 1",
        ),
        // Words in headers.
        (
            " to=f hm so json<|channel|>commentary<|message|>{}<|call|>",
            "call f: {}",
            "stray_words 1, bare_function 1",
        ),
        (
            "<|channel|>commentary to=get_weather json<|message|>{}<|call|>",
            "call get_weather: {}",
            "bare_function 1",
        ),
        ("<|channel|>commentary to=functions.g json<|message|>{}<|call|>", "call g: {}", "unknown_tool 1"),
        (
            "<|channel|>final<|message|>a<|end|><|start|>robot<|channel|>final<|message|>b<|return|>",
            "answer: a | answer: b",
            "other_author 1",
        ),
        (
            "<|channel|>analysis to=assistant<|channel|>commentary<|message|>Hi<|end|>",
            "preamble: Hi",
            "several_channels 1",
        ),
        ("<|channel|>commentary?<|message|>Hi<|end|>", "preamble: Hi", "stray_words 1"),
        ("<|channel|>comment<|message|>Hi<|end|>", "preamble: Hi", ""),
        ("<|channel|>thoughts<|message|>Hi<|end|>", "reasoning: Hi", "unknown_channel 1"),
        ("<|channel|>commentary to=<|message|>Hi<|end|>", "preamble: Hi", ""),
        // Cut off.
        ("<|channel|>commentary to=functions.f", "", "cut_header 1"),
        ("<|channel|>final<|message|>Hi", "answer: Hi (cut off)", ""),
        ("<|channel|>final<|message|>Hi<|end|><|start|>assistant", "answer: Hi", "cut_header 1"),
        // Special tokens inside a content.
        (
            "<|channel|>analysis<|message|>Hm<|channel|>final<|message|>Hi<|return|>",
            "reasoning: Hm | answer: Hi",
            "wrong_end 1",
        ),
        (
            "<|channel|>analysis<|message|>Hm<|start|>assistant<|channel|>final<|message|>Hi<|return|>",
            "reasoning: Hm | answer: Hi",
            "wrong_end 1",
        ),
        ("<|channel|>final<|message|>a<|message|>b<|constrain|>c<|return|>", "answer: abc", "stray_token 2"),
        ("<|channel|>commentary to=functions.f<|message|>{}<|end|>", "call f: {}", "wrong_end 1"),
        ("<|channel|>final<|message|>a<|endoftext|>", "answer: a", ""),
        ("<|channel|>final<|message|>a<|startoftext|>b<|return|>", "answer: ab", "stray_token 1"),
        ("<|end|><|return|>", "", "stray_end 2"),
    ];
    for (text, expected, anomalies) in cases {
        let (found, seen) = read(text);
        assert_eq!(found, expected, "{text}");
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(", ").map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(sorted(&seen), sorted(anomalies), "{text}");
    }
}

#[test]
fn an_answer_may_have_begun_in_the_prompt() {
    let conversation = Conversation { effort: Effort::None, ..Conversation::default() };
    let (events, parser) = events_of(&VOCABULARY.encode_marked("Hi<|return|>").unwrap(), &conversation);
    assert_eq!(parts(&events), [(AnswerPart::Answer, "Hi".to_owned(), true)]);
    assert_eq!(parser.anomalies().seen().count(), 0);
}

#[test]
fn text_without_a_header_does_not_wait() {
    let mut events = Vec::new();
    let mut parser = HarmonyParser::new(&*VOCABULARY, &declared(), &mut events).unwrap();
    let ids = VOCABULARY.encode_marked("Hello there, how are you?").unwrap();
    for (n, id) in ids.iter().enumerate() {
        parser.push(&*VOCABULARY, *id, &mut events);
        let deltas = events.iter().filter(|event| matches!(event, Event::Delta(_))).count();
        assert_eq!(deltas, n + 1);
    }
}

#[test]
fn long_headers_are_text() {
    let long = format!("<|channel|>final{}", " word".repeat(1000));
    let (found, _) = read(&long);
    assert_eq!(found, format!("answer: {} (cut off)", " word".repeat(1000)));
}

/// Random ids: special tokens and words of headers often, words of texts, halves of characters, and ids
/// without text.
fn ids() -> impl Strategy<Value = Vec<u32>> {
    let tokens = tokens();
    let marks = vec![
        tokens.start,
        tokens.message,
        tokens.end,
        tokens.channel,
        tokens.constrain,
        tokens.return_,
        tokens.call,
        199_998,
        199_999,
    ];
    let words =
        "assistant user final analysis commentary to=functions.f to=f to=assistant json code \u{1f600} é \n";
    let words: Vec<u32> =
        words.split(' ').flat_map(|word| VOCABULARY.encode_ordinary(word).unwrap()).collect();
    let halves: Vec<u32> = (0..256).filter(|id| !VOCABULARY.bytes(*id).unwrap().is_ascii()).collect();
    let id = prop_oneof![
        6 => prop::sample::select(marks),
        5 => prop::sample::select(words),
        2 => prop::sample::select(halves),
        2 => 0..SPECIAL,
        1 => prop_oneof![SPECIAL..201_088, Just(u32::MAX)],
    ];
    prop::collection::vec(id, 0..24)
}

/// Bytes of an id in a text.
fn text(id: u32) -> Vec<u8> {
    if id < SPECIAL { VOCABULARY.bytes(id).unwrap() } else { Vec::new() }
}

/// Contents by their definition: what stands between a message token and the next token that begins or ends a
/// message, special tokens without meaning there left out.
fn contents(ids: &[u32]) -> Vec<String> {
    let tokens = tokens();
    let (mut found, mut open) = (Vec::new(), None::<Vec<u8>>);
    let ends = [tokens.start, tokens.channel, tokens.end, tokens.return_, tokens.call, 199_999];
    for id in ids {
        if ends.contains(id) {
            found.extend(open.take());
        } else if [tokens.message, tokens.constrain].contains(id) {
            if *id == tokens.message {
                open.get_or_insert_default();
            }
        } else if let Some(bytes) = open.as_mut() {
            bytes.extend(text(*id));
        }
    }
    found.extend(open);
    found.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
}

#[test]
fn any_ids_are_read_and_no_content_is_lost() {
    let cases = std::env::var("KERNMILL_IDS").map_or(20_000, |count| count.parse().unwrap());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&ids(), |ids| {
        let (events, parser) = events_of(&ids, &declared());
        // Every content by its definition is a part, in order; others were texts without a message token.
        let found = parts(&events);
        let mut rest = found.iter();
        for content in contents(&ids) {
            // A character may have begun in a text before the message token.
            let content = content.trim_start_matches('\u{fffd}');
            // Missing arguments are an empty object.
            let is_none = matches!(content.trim(), "" | "null");
            let is_it = |text: &str| text.ends_with(content) || (is_none && text == "{}");
            prop_assert!(rest.any(|(_, text, _)| is_it(text)), "{content:?} of {found:?}");
        }
        // Nothing is given out that was not generated.
        let length = |text: &str| text.chars().filter(|c| *c != '\u{fffd}').count();
        let bytes: Vec<u8> = ids.iter().flat_map(|id| text(*id)).collect();
        let given: usize = found.iter().map(|(_, text, _)| length(text)).sum();
        prop_assert!(given <= length(&String::from_utf8_lossy(&bytes)));
        let unknown = ids.iter().filter(|id| VOCABULARY.bytes(**id).is_none()).count();
        prop_assert_eq!(parser.anomalies().count(Anomaly::UnknownId) as usize, unknown);
        Ok(())
    });
    outcome.unwrap();
}

/// A random message of the model, and what it is to be read as.
fn message() -> impl Strategy<Value = (HarmonyMessage, AnswerPart)> {
    let channel = prop::sample::select(vec![Channel::Analysis, Channel::Commentary, Channel::Final]);
    let text = "(?s)[a-z<|> \u{e9}\u{1f600}\n{}\":]{0,20}";
    let call = prop::option::of(prop::sample::select(vec!["functions.f", "functions.get_weather", "python"]));
    let kind = prop::sample::select(vec![
        None,
        Some(ContentType::Plain("json".to_owned())),
        Some(ContentType::Constrained("json".to_owned())),
    ]);
    (channel, text, call, kind, any::<bool>()).prop_map(|(channel, text, recipient, content_type, late)| {
        let part = match (&recipient, channel) {
            (Some("python"), _) => AnswerPart::Call { name: "python".to_owned(), is_builtin: true },
            (Some(name), _) => {
                AnswerPart::Call { name: name["functions.".len()..].to_owned(), is_builtin: false }
            }
            (None, Channel::Analysis) => AnswerPart::Reasoning,
            (None, Channel::Commentary) => AnswerPart::Preamble,
            (None, Channel::Final) => AnswerPart::Answer,
        };
        let message = HarmonyMessage {
            recipient: recipient.map(str::to_owned),
            has_late_recipient: late,
            content_type,
            ..HarmonyMessage::new(Author::Assistant, text).on(channel)
        };
        (message, part)
    })
}

#[test]
fn what_is_rendered_is_read_back() {
    let mut runner = TestRunner::new(Config { cases: 2_000, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&prop::collection::vec(message(), 1..5), |messages| {
        let mut ids = Vec::new();
        for (message, _) in &messages {
            render(&*VOCABULARY, &tokens(), message, &mut ids).unwrap();
        }
        // The prompt has the first start token and author.
        let (events, parser) = events_of(&ids[2..], &declared());
        let expected = messages.into_iter().map(|(message, part)| {
            let is_function = matches!(part, AnswerPart::Call { is_builtin: false, .. });
            // A call without arguments has an object of none.
            let is_none = is_function && message.text.trim().is_empty();
            (part, if is_none { "{}".to_owned() } else { message.text }, true)
        });
        let expected: Vec<(AnswerPart, String, bool)> = expected.collect();
        prop_assert_eq!(parts(&events), expected);
        prop_assert_eq!(parser.anomalies().seen().count(), 0);
        Ok(())
    });
    outcome.unwrap();
}
