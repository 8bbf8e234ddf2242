//! Expressions, grammars, limits and mistakes.

use super::follow::{LEXICON, VOCABULARY, WIDTH, generate, text_of, texts};
use super::forms::form;
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
fn long_texts_that_must_come_are_looked_ahead_in_parts() {
    let rules = [
        Rule::Regex("a{4294967295}".to_owned()),
        Rule::JsonSchema(json!({ "type": "string", "pattern": "^a{4294967295}$" })),
        Rule::Regex("(ab){18000}".to_owned()),
        Rule::Lark("start: X~20000\nX: /a{19000}/".to_owned()),
        Rule::Lark("start: \"ab\" start".to_owned()),
    ];
    for rule in rules {
        let mut constraint = made(&rule);
        let mut bytes = 0;
        for _ in 0..10 {
            let forced = constraint.forced();
            let text = forced.iter().flat_map(|id| VOCABULARY.bytes(*id).unwrap()).count();
            assert!((1..=256).contains(&text), "{rule:?}: {text} bytes");
            bytes += text;
            assert_eq!(constraint.mask().unwrap().ids().collect::<Vec<_>>(), forced[..1]);
            forced.into_iter().for_each(|id| constraint.accept(id).unwrap());
        }
        assert!(bytes > 1000, "{rule:?}: {bytes} bytes");
    }
}

#[test]
fn what_must_come_ends_where_the_text_may_end() {
    let open = ["a(bc)?", "ab*", "(abc|a)(bc)?"];
    for expression in open {
        let rule = Rule::Regex(expression.to_owned());
        let mut constraint = made(&rule);
        let forced = constraint.forced();
        assert!(text_of(&forced).len() <= 1, "{expression}: {}", text_of(&forced));
        constraint.accept(VOCABULARY.encode_ordinary("a").unwrap()[0]).unwrap();
        assert_eq!(constraint.forced(), [0; 0], "{expression}");
        assert!(constraint.mask().unwrap().allows(199_999), "{expression}");
    }
    for (text, end) in [("start: \"a\" \"bc\"?", "a"), ("start: \"ab\" (\"c\" | \"d\")", "ab")] {
        let forced = text_of(&made(&Rule::Lark(text.to_owned())).forced());
        assert!(end.starts_with(&forced), "{text}: {forced}");
    }
}

#[test]
fn what_costs_more_than_it_looks_is_refused_by_name() {
    let pattern = |n: u64| json!({ "type": "string", "pattern": format!(".*a.{{{n}}}b.*") });
    let member = |n: u64| (format!("m{n}"), json!({ "type": "integer" }));
    let members: serde_json::Map<_, _> = (0..1501).map(member).collect();
    let closed = json!({ "type": "object", "properties": members, "additionalProperties": false });
    made(&Rule::JsonSchema(closed));
    let multiple = |of: serde_json::Value| json!({ "type": "number", "multipleOf": of });
    let patterns: Vec<_> = (0..20).map(pattern).collect();
    let cases = [
        (multiple(json!(999_983)), "`multipleOf` is 999983, expected at most 10000"),
        (multiple(json!(9_999_991)), "`multipleOf` is 9999991, expected at most 10000"),
        (multiple(json!(1e-9)), "`multipleOf` is 1e-9, expected at most 10000"),
        (
            json!({ "properties": members }),
            "has 1501 properties without `additionalProperties: false`, expected",
        ),
        (json!({ "allOf": patterns }), "must match 20 of its patterns together"),
    ];
    for (schema, expected) in cases {
        let error = Constraint::new(&LEXICON, &Rule::JsonSchema(schema)).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let joined = (0..12).map(|n| format!("/.*a.{{{n}}}b.*/")).collect::<Vec<_>>().join(" & ");
    let error = Constraint::new(&LEXICON, &Rule::Lark(format!("start: T\nT: {joined}"))).unwrap_err();
    assert!(error.to_string().contains("12 expressions are joined by `&`"), "{error}");
}

#[test]
fn bounds_at_the_end_of_64_bits_end_nobody() {
    let bounds = [json!(i64::MIN), json!(-1e300), json!(i64::MAX), json!(u64::MAX), json!(1e300), json!(0)];
    for kind in ["integer", "number"] {
        for least in &bounds {
            for most in &bounds {
                let schema = json!({ "type": kind, "minimum": least, "maximum": most });
                match Constraint::new(&LEXICON, &Rule::JsonSchema(schema.clone())) {
                    Ok(mut constraint) => drop(constraint.mask().unwrap()),
                    Err(Error::Rule { reason, .. }) => {
                        assert!(!reason.contains("panic"), "{schema}: {reason}")
                    }
                    Err(error) => panic!("{schema}: {error}"),
                }
            }
        }
    }
}

#[test]
fn rules_that_lead_to_rules_do_not_overflow_a_stack() {
    let chain = |n: usize| (0..n).map(|i| format!("T{i}: \"b\" T{}\n", i + 1)).collect::<String>();
    let terminals = Rule::Lark(format!("start: T0\n{}T2500: \"a\"\n", chain(2500)));
    let rules = (0..2500).map(|i| format!("r{i}: \"b\" r{} | \"c\"\n", i + 1)).collect::<String>();
    let rules = Rule::Lark(format!("start: r0\n{rules}r2500: \"a\"\n"));
    let defined: serde_json::Map<_, _> =
        (0..2500).map(|i| (format!("d{i}"), json!({ "$ref": format!("#/$defs/d{}", i + 1) }))).collect();
    let mut references = json!({ "$ref": "#/$defs/d0", "$defs": defined });
    references["$defs"]["d2500"] = json!({ "type": "integer" });
    for rule in [terminals, rules, Rule::JsonSchema(references)] {
        // A thread of a server has this much.
        let small = std::thread::Builder::new().stack_size(2 << 20);
        let made = small.spawn(move || made(&rule).mask().is_ok()).unwrap();
        assert!(made.join().unwrap());
    }
}

#[test]
fn schemas_of_everyday_size_are_taken() {
    let word = |n: u64| format!("word{}", n.wrapping_mul(0x9e37_79b9) % 1_000_003);
    let members: serde_json::Map<_, _> = (0..300).map(|n| (word(n), json!({ "type": "integer" }))).collect();
    for schema in [
        json!({ "type": "number", "multipleOf": 0.01, "minimum": 0 }),
        json!({ "type": "integer", "multipleOf": 5000 }),
        json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX }),
        json!({ "type": "string", "maxLength": 65_535 }),
        json!({ "type": "string", "minLength": 8, "pattern": "^\\w+$" }),
        json!({ "enum": (0..5000).map(word).collect::<Vec<_>>() }),
        json!({ "type": "object", "properties": members }),
        json!({ "type": "array", "items": { "type": "number" }, "maxItems": 1_000_000 }),
    ] {
        let made = Constraint::new(&LEXICON, &Rule::JsonSchema(schema.clone()));
        made.unwrap_or_else(|error| panic!("{error}: {schema}"));
    }
}

#[test]
fn random_sizes_and_bounds_are_held_to_or_refused() {
    for seed in 0..texts() {
        let mut rng = Rng::with_seed(seed);
        let rule = form(&mut rng);
        let outcome = Constraint::new(&LEXICON, &rule).and_then(|mut constraint| {
            for _ in 0..5 {
                let forced = constraint.forced();
                forced.into_iter().try_for_each(|id| constraint.accept(id))?;
                if constraint.is_done() {
                    break;
                }
                let allowed: Vec<u32> = constraint.mask()?.ids().collect();
                constraint.accept(allowed[rng.usize(..allowed.len())])?;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            let text = error.to_string();
            let is_told = matches!(error, Error::Rule { .. } | Error::TooLarge { .. } | Error::Stuck(_));
            assert!(is_told && text.lines().count() == 1 && text.len() < 600, "{seed}: {text}: {rule:?}");
            assert!(!text.contains("may take"), "{seed}: {text}: {rule:?}");
        }
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
