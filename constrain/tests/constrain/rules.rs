//! Expressions, grammars, limits and mistakes.

use super::follow::{LEXICON, VOCABULARY, WIDTH, generate, text_of};
use fastrand::Rng;
use kernmill_constrain::{Constraint, Error, GRAMMAR_BYTES, Lexicon, Rule, SCHEMA_DEPTH, Vocabulary};
use serde_json::json;

fn made(rule: &Rule) -> Constraint {
    Constraint::new(&LEXICON, rule).unwrap()
}

/// Whether a text may be written, and may end after that.
fn takes(rule: &Rule, text: &str) -> bool {
    let mut constraint = made(rule);
    let ids = VOCABULARY.encode_ordinary(text).unwrap();
    ids.into_iter().all(|id| constraint.accept(id).is_ok())
        && (constraint.is_done() || constraint.accept(199_999).is_ok())
}

#[test]
fn expressions_and_grammars_are_followed() {
    let date = Rule::Regex(r"\d{4}-\d\d-\d\d".to_owned());
    let sum = Rule::Lark("start: N (\"+\" N)*\nN: /[0-9]{1,3}/".to_owned());
    for seed in 0..50 {
        let mut rng = Rng::with_seed(seed);
        let text = text_of(&generate(made(&date), &mut rng));
        let is_digit = |(at, c): (usize, char)| if [4, 7].contains(&at) { c == '-' } else { c.is_numeric() };
        assert!(text.chars().count() == 10 && text.chars().enumerate().all(is_digit), "{text}");
        let text = text_of(&generate(made(&sum), &mut rng));
        assert!(text.split('+').all(|n| (1..=3).contains(&n.len()) && n.parse::<u32>().is_ok()), "{text}");
    }
    assert!(takes(&sum, "1+22+333") && !takes(&sum, "1+") && !takes(&sum, "1234"));
}

#[test]
fn ids_without_text_and_past_the_vocabulary_are_never_allowed() {
    // There are more logits than tokens.
    let width = WIDTH + 100;
    let lexicon = Lexicon::new(VOCABULARY.clone(), width, &[199_999, u32::MAX]).unwrap();
    for rule in [Rule::JsonObject, Rule::Regex("(.|\n)*".to_owned())] {
        let mut constraint = Constraint::new(&lexicon, &rule).unwrap();
        let mask = constraint.mask().unwrap().clone();
        assert_eq!((mask.width(), mask.words().len()), (width, width.div_ceil(64)));
        let without: Vec<u32> = (0..width as u32).filter(|id| VOCABULARY.bytes(*id).is_none()).collect();
        assert!(without.len() >= 100 && without.iter().all(|id| !mask.allows(*id)));
        assert!(!mask.allows(width as u32) && !mask.allows(u32::MAX));
        // A special token belongs to no text.
        assert!((200_000..WIDTH as u32).all(|id| !mask.allows(id)));
        for id in [without[0], width as u32, u32::MAX, 200_006] {
            assert_eq!(constraint.accept(id), Err(Error::NotAllowed { id }));
        }
        assert_eq!(constraint.mask().unwrap(), &mask);
    }
}

#[test]
fn an_end_comes_only_after_a_whole_text() {
    let mut constraint = made(&Rule::Regex("[0-9]+".to_owned()));
    assert_eq!(constraint.accept(199_999), Err(Error::NotAllowed { id: 199_999 }));
    let one = VOCABULARY.encode_ordinary("1").unwrap()[0];
    constraint.accept(one).unwrap();
    let mask = constraint.mask().unwrap();
    assert!(mask.allows(199_999) && mask.allows(200_002) && mask.allows(one));
    assert!(!constraint.is_done());
    constraint.accept(200_002).unwrap();
    assert!(constraint.is_done() && constraint.forced().is_empty());
    assert_eq!(constraint.accept(one), Err(Error::AfterEnd { id: one }));
    assert_eq!(constraint.mask().unwrap().ids().collect::<Vec<_>>(), [199_999, 200_002, 200_012]);
}

#[test]
fn whitespace_is_bounded_whatever_a_schema_says() {
    let schema = json!({
        "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"],
        "x-guidance": { "whitespace_pattern": "[ \n]*" },
    });
    let rule = Rule::JsonSchema(schema);
    for text in ["{\"a\":1}", "{\"a\": 1}", "{ \"a\" : 1 }", "{\n  \"a\": 1\n}"] {
        assert!(takes(&rule, text), "{text:?}");
    }
    for text in ["{\n\n\"a\":1}", "{  \"a\":1}", " {\"a\":1}", "{\"a\":1}\n"] {
        assert!(!takes(&rule, text), "{text:?}");
    }
}

#[test]
fn mistakes_are_one_clear_line() {
    let deep = (0..SCHEMA_DEPTH).fold(json!({}), |inner, _| json!({ "items": inner }));
    let long = "a".repeat(GRAMMAR_BYTES + 1);
    let cases = [
        (Rule::JsonSchema(json!([])), "the JSON schema: it is an array, expected an object"),
        (Rule::JsonSchema(deep), "the JSON schema has 65 levels, expected at most 64"),
        (Rule::JsonSchema(json!({ "description": "x".repeat(200_000) })), "the JSON schema has 200018 bytes"),
        (Rule::JsonSchema(json!({ "type": "text" })), "Invalid type: text"),
        (Rule::JsonSchema(json!({ "if": {} })), "if"),
        (Rule::JsonSchema(json!({ "type": "string", "format": "colour" })), "colour"),
        (Rule::JsonSchema(json!({ "type": "string", "pattern": "(?=a)b" })), "look-around"),
        (Rule::JsonSchema(json!({ "$ref": "https://example.org/schema" })), "the JSON schema cannot be"),
        (Rule::JsonSchema(json!({ "type": "integer", "minimum": 2, "maximum": 1 })), "minimum"),
        // The reader of schemas cuts this text in the middle of a character.
        (Rule::JsonSchema(json!({ "minLength": "ü".repeat(60) })), "panic"),
        (Rule::Regex("(".to_owned()), "unclosed group"),
        (Rule::Regex(long.clone()), "the regular expression has 65537 bytes, expected at most 65536"),
        (Rule::Lark("start: missing".to_owned()), "missing"),
        (Rule::Lark("start: <|nobody|>".to_owned()), "nobody"),
        (Rule::Lark(long), "the grammar has 65537 bytes, expected at most 65536"),
    ];
    for (rule, expected) in cases {
        let name = format!("{rule:?}").chars().take(120).collect::<String>();
        let error = Constraint::new(&LEXICON, &rule).expect_err(&name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(error.lines().count() == 1 && error.len() < 500, "{name}: {error}");
    }
}

#[test]
fn the_work_of_a_rule_is_bounded() {
    let nested = (0..20).fold("a".to_owned(), |inner, _| format!("({inner}|{inner}b)"));
    let bombs = [
        Rule::Regex("((a{1,999}){1,999}){1,999}".to_owned()),
        Rule::Regex("(.*a){1,50}.{1,500}b".to_owned()),
        Rule::Regex(nested.chars().take(GRAMMAR_BYTES).collect()),
        Rule::JsonSchema(json!({ "type": "string", "minLength": 1_000_000, "maxLength": 2_000_000 })),
        Rule::JsonSchema(json!({ "type": "array", "items": {}, "minItems": 100_000, "maxItems": 200_000 })),
        Rule::Lark("start: start start | \"a\" | \"\"".to_owned()),
    ];
    let a = VOCABULARY.encode_ordinary("a").unwrap()[0];
    for rule in bombs {
        let start = std::time::Instant::now();
        let outcome = Constraint::new(&LEXICON, &rule).and_then(|mut constraint| {
            (0..100).try_for_each(|_| match constraint.mask()?.allows(a) {
                true => constraint.accept(a),
                false => Ok(()),
            })
        });
        match outcome {
            Ok(()) | Err(Error::Rule { .. } | Error::Stuck(_)) => {}
            Err(error) => panic!("{rule:?}: {error}"),
        }
        // Some hundred steps at the limit of their work, on a busy machine.
        assert!(start.elapsed().as_secs() < 120, "{rule:?}");
    }
}
