//! Random schemas, expressions and grammars whose sizes, bounds and multiples have up to 64 bits.

use fastrand::Rng;
use kernmill_constrain::Rule;
use serde_json::{Map, Value, json};
use std::iter::repeat_with;

/// A random rule.
pub fn form(rng: &mut Rng) -> Rule {
    match rng.u8(..8) {
        0..4 => Rule::JsonSchema(schema(rng, 3)),
        4 | 5 => Rule::Regex(expression(rng, 4)),
        _ => Rule::Lark(grammar(rng)),
    }
}

/// A number of any size, small ones as often as large ones.
fn number(rng: &mut Rng) -> u64 {
    let bits = rng.u32(..65);
    let any = rng.u64(..).checked_shr(64 - bits).unwrap_or(0);
    match rng.u8(..4) {
        // Next to a power of two or of ten.
        0 => 1u64.checked_shl(bits).unwrap_or(0).wrapping_sub(rng.u64(..2)),
        1 => 10u64.pow(rng.u32(..20)) - rng.u64(..2),
        _ => any,
    }
}

/// A number as JSON writes it: also negative, or with a fraction.
fn bound(rng: &mut Rng) -> Value {
    let n = number(rng);
    match rng.u8(..6) {
        0 => json!(-(n as f64)),
        1 => json!(n as f64 / 100.0),
        2 => json!(1.0 / (n as f64 + 1.0)),
        3 => json!(-((n >> 1) as i64)),
        _ => json!(n),
    }
}

fn small(rng: &mut Rng) -> usize {
    if rng.u8(..20) == 0 { rng.usize(..600) } else { rng.usize(..5) }
}

fn word(rng: &mut Rng) -> String {
    let letters = rng.usize(1..9);
    repeat_with(|| rng.lowercase()).take(letters).collect()
}

fn schema(rng: &mut Rng, depth: u32) -> Value {
    let mut members = Map::new();
    let kinds = if depth == 0 { 4 } else { 9 };
    match rng.u8(..kinds) {
        0 | 1 => {
            members.insert("type".into(), json!(if rng.bool() { "integer" } else { "number" }));
            for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
                if rng.u8(..4) == 0 {
                    members.insert(key.into(), bound(rng));
                }
            }
            if rng.bool() {
                let multiple = if rng.bool() { json!(number(rng)) } else { bound(rng) };
                members.insert("multipleOf".into(), multiple);
            }
        }
        2 => {
            members.insert("type".into(), json!("string"));
            for key in ["minLength", "maxLength"] {
                if rng.bool() {
                    members.insert(key.into(), json!(number(rng)));
                }
            }
            if rng.bool() {
                members.insert("pattern".into(), json!(expression(rng, 3)));
            }
        }
        3 => {
            let words: Vec<Value> = (0..1 + small(rng)).map(|_| json!(word(rng))).collect();
            members.insert("enum".into(), json!(words));
        }
        4 | 5 => {
            members.insert("type".into(), json!("array"));
            members.insert("items".into(), schema(rng, depth - 1));
            for key in ["minItems", "maxItems"] {
                if rng.bool() {
                    members.insert(key.into(), json!(number(rng)));
                }
            }
        }
        6 | 7 => {
            members.insert("type".into(), json!("object"));
            let names: Vec<String> = (0..small(rng)).map(|_| word(rng)).collect();
            let parts: Map<String, Value> =
                names.iter().map(|name| (name.clone(), schema(rng, depth - 1))).collect();
            members.insert("properties".into(), json!(parts));
            if rng.bool() {
                members.insert("required".into(), json!(names));
            }
            if rng.u8(..4) == 0 {
                members.insert("additionalProperties".into(), schema(rng, depth - 1));
            }
            if rng.u8(..4) == 0 {
                members.insert(
                    "patternProperties".into(),
                    json!({ expression(rng, 2): schema(rng, depth - 1) }),
                );
            }
            if rng.u8(..8) == 0 {
                members.insert("maxProperties".into(), json!(number(rng)));
                members.insert("minProperties".into(), json!(number(rng)));
            }
        }
        _ => {
            let key = ["anyOf", "oneOf", "allOf"][rng.usize(..3)];
            let parts: Vec<Value> = (0..1 + small(rng)).map(|_| schema(rng, depth - 1)).collect();
            members.insert(key.into(), json!(parts));
        }
    }
    Value::Object(members)
}

fn expression(rng: &mut Rng, depth: u32) -> String {
    if depth == 0 {
        let atoms = ["a", "b", ".", "[a-z]", "\\d", "\\w", "\\p{L}", "[^a]", "é", "(a|ab)", "x*", "^", "$"];
        return atoms[rng.usize(..atoms.len())].to_owned();
    }
    let inner = |rng: &mut Rng| expression(rng, depth - 1);
    match rng.u8(..8) {
        0..3 => {
            let part = inner(rng);
            let (a, b) = (number(rng), number(rng));
            let (low, high) = (a.min(b), a.max(b));
            match rng.u8(..3) {
                0 => format!("({part}){{{low}}}"),
                1 => format!("({part}){{{low},}}"),
                _ => format!("({part}){{{low},{high}}}"),
            }
        }
        3 => format!("({})*", inner(rng)),
        4 => (0..2 + small(rng)).map(|_| expression(rng, depth.min(2) - 1)).collect::<Vec<_>>().join("|"),
        5 => format!("(?:{})?", inner(rng)),
        _ => (0..2).map(|_| inner(rng)).collect(),
    }
}

fn grammar(rng: &mut Rng) -> String {
    let repeat = |rng: &mut Rng| {
        let (a, b) = (number(rng), number(rng));
        match rng.u8(..5) {
            0 => format!("~{a}"),
            1 => format!("~{}..{}", a.min(b), a.max(b)),
            2 => format!("{{{},{}}}", a.min(b), a.max(b)),
            3 => "*".to_owned(),
            _ => String::new(),
        }
    };
    let rules = 1 + rng.usize(..3);
    let mut text = String::from("start: r0\n");
    for index in 0..rules {
        let other = rng.usize(..rules);
        let (one, two, three) = (repeat(rng), repeat(rng), repeat(rng));
        text.push_str(&format!("r{index}: T0{one} | \"a\" r{other}{two} | (T1 \",\"){three}\n"));
    }
    let (one, two) = (expression(rng, 3), expression(rng, 2));
    let (but, and) = (expression(rng, 2), expression(rng, 2));
    match rng.u8(..3) {
        0 => text.push_str(&format!("T0: /{one}/ & ~/{but}/\nT1: /{two}/{}\n", repeat(rng))),
        1 => text.push_str(&format!("T0: /{one}/ & /{and}/\nT1: /{two}/{}\n", repeat(rng))),
        _ => text.push_str(&format!("T0: /{one}/{}\nT1: /{two}/\n", repeat(rng))),
    }
    text
}
