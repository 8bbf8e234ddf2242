//! Grammars as regular expressions: a text is one of both, or of none.

use super::follow::{LEXICON, VOCABULARY};
use kernmill_constrain::{Constraint, Rule, Vocabulary, regular};
use serde_json::json;

/// Whether a text may be written, and may end after that.
fn takes(rule: &Rule, text: &str) -> bool {
    let mut constraint = Constraint::new(&LEXICON, rule).unwrap();
    let ids = VOCABULARY.encode_ordinary(text).unwrap();
    ids.into_iter().all(|id| constraint.accept(id).is_ok())
        && (constraint.is_done() || constraint.accept(199_999).is_ok())
}

/// Checks texts against a grammar, against its expression, and inside of JSON.
fn check(grammar: &str, good: &[&str], bad: &[&str]) {
    let expression = regular(grammar).unwrap();
    let schema = json!({ "type": "string", "pattern": format!("^(?:{expression})$") });
    let rules = [Rule::Lark(grammar.to_owned()), Rule::Regex(expression.clone())];
    for (texts, is_good) in [(good, true), (bad, false)] {
        for text in texts {
            for rule in &rules {
                assert_eq!(takes(rule, text), is_good, "{text:?} by {rule:?}");
            }
            let inside = json!(text).to_string();
            let rule = Rule::JsonSchema(schema.clone());
            assert_eq!(takes(&rule, &inside), is_good, "{inside} inside of JSON by {expression}");
        }
    }
}

#[test]
fn a_grammar_without_recursion_is_an_expression() {
    let patch = r#"
        // A change of files, as programs that edit code ask for it.
        start: begin change+ end
        begin: "*** Begin" LF
        end: "*** End" LF?
        change: add | drop
              | rename
        add: "*** Add: " name LF line+
        drop: "*** Drop: " name LF
        rename: "*** Rename: " name " -> " name LF -> moved
        line: ("+" | "-" | " ") /[^\n]*/ LF
        name: /[a-z\/.]+/
        %import common.LF
    "#;
    check(
        patch,
        &[
            "*** Begin\n*** Add: src/a.rs\n+let a = \"b\\n\";\n-\n*** End\n",
            "*** Begin\n*** Drop: a\n*** Rename: a -> b.c\n*** End",
        ],
        &["*** Begin\n*** End", "*** Begin\n*** Add: A\n+x\n*** End", "x", "*** Begin\n*** Drop: a\n"],
    );
    let sum = "start: term (SP (\"+\" | \"-\") SP term)* -> sum\n?term: INT | [\"-\"] \"(\" INT \")\"\nSP: \" \"\n\
        %import common (INT, WS)";
    check(sum, &["1", "12 + 3", "-(4) - 5 + (6)"], &["", "1+2", "1 + ", "(1"]);
    let words = "start: WORD (\",\" WORD)~1..2\nWORD: \"a\"..\"c\" \"x\"i?\n%ignore \" \"";
    check(words, &["a,b", "a , bX ,cx", "c,c"], &["a", "a,b,c,a", "d,a", "a,b,"]);
    let escapes = r#"start: "\"\u00e9\t" /\d+/ "[.]" D D: /Z/i"#.replace(" D D:", " D\nD:");
    // Which terminal comes first does not change the texts.
    assert_eq!(regular("start: A\nA.2: \"x\"").unwrap(), regular("start: A\nA: \"x\"").unwrap());
    check(&escapes, &["\"\u{e9}\t12[.]z"], &["\"\u{e9}\t12x", "\"\u{e9}\t[.]z"]);
}

#[test]
fn what_no_expression_can_match_is_said() {
    for (grammar, what) in [
        ("start: \"(\" start \")\" | \"x\"", "the rule `start` has itself inside"),
        ("start: a\na: b\nb: \"x\" a?", "the rule `a` has itself inside"),
        ("start: missing", "there is no rule `missing`"),
        ("other: \"x\"", "there is no rule `start`"),
        ("start: \"x", "has no end"),
        ("start: /x", "has no end"),
        ("start: (\"x\"", "a bracket has no end"),
        ("start \"x\"", "expected `:`"),
        ("start: \"x\"\nstart: \"y\"", "two rules `start`"),
        ("%import python.NAME\nstart: NAME", "expected common"),
        ("%declare A\nstart: A", "%declare is not followed"),
        ("start: <|call|>", "`<` is not read here"),
        ("start: \"ab\"..\"c\"", "one character on each side"),
        ("start: \"a\"~3..2", "a range of numbers from 3"),
        (&format!("start: {}\"x\"{}", "(".repeat(80), ")".repeat(80)), "more than 64 levels"),
    ] {
        let error = regular(grammar).unwrap_err().to_string();
        assert!(error.starts_with("the grammar: ") && error.contains(what), "{grammar}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    // An expression has no names: what a name doubles, it doubles.
    let rules = |at: usize| format!("r{at}: r{next} r{next}\n", next = at + 1);
    let bomb = format!("start: r0\n{}r40: \"x\"", (0..40).map(rules).collect::<String>());
    let deep = |at: usize| format!("r{at}: r{}\n", at + 1);
    let deep = format!("start: r0\n{}r4000: \"x\"", (0..4000).map(deep).collect::<String>());
    let wide = format!("start: {}\na: \"{}\"", vec!["a"; 10_000].join(" | "), "x".repeat(20_000));
    for (grammar, what) in [
        (bomb, "65536 bytes as one expression"),
        (deep, "more than 256 levels of others inside"),
        (wide, "65536 bytes as one expression"),
    ] {
        let error = regular(&grammar).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
