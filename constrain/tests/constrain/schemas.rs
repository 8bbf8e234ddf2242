//! JSON of random schemas.

use super::follow::{LEXICON, generate, text_of, texts};
use super::random::{describes, schema};
use fastrand::Rng;
use kernmill_constrain::{Constraint, Rule};
use serde_json::{Value, json};

#[test]
fn every_text_is_json_of_its_schema() {
    for seed in 0..texts() {
        let mut rng = Rng::with_seed(seed);
        let schema = schema(&mut rng);
        let constraint = Constraint::new(&LEXICON, &Rule::JsonSchema(schema.clone()));
        let ids = generate(constraint.unwrap_or_else(|error| panic!("{seed}: {error}: {schema}")), &mut rng);
        let text = text_of(&ids);
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{seed}: {error}: {text}"));
        assert!(describes(&schema, &schema, &value), "{seed}: {text} is not of {schema}");
    }
}

#[test]
fn the_check_of_values_finds_wrong_ones() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": { "type": "integer", "minimum": 1, "maximum": 3 },
            "s": { "type": "string", "pattern": "^[a-c]{2,4}$" },
            "l": { "type": "array", "items": { "$ref": "#/$defs/shared" }, "minItems": 1, "maxItems": 2 },
        },
        "required": ["n"],
        "$defs": { "shared": { "enum": ["red", 7] } },
    });
    let is_right = |value: Value| describes(&schema, &schema, &value);
    assert!(is_right(json!({ "n": 2, "s": "abc", "l": ["red", 7] })));
    for wrong in [
        json!({}),
        json!({ "n": 4 }),
        json!({ "n": 2.5 }),
        json!({ "n": 1, "s": "abd" }),
        json!({ "n": 1, "l": [] }),
        json!({ "n": 1, "l": ["blue"] }),
        json!({ "n": 1, "more": 1 }),
        json!([1]),
    ] {
        assert!(!is_right(wrong.clone()), "{wrong}");
    }
}

#[test]
fn any_object_is_json() {
    for seed in 0..texts() / 10 {
        let mut rng = Rng::with_seed(seed);
        let ids = generate(Constraint::new(&LEXICON, &Rule::JsonObject).unwrap(), &mut rng);
        let text = text_of(&ids);
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => assert!(value.is_object(), "{seed}: {text}"),
            // JSON bounds no number; serde_json does.
            Err(error) => assert!(error.to_string().starts_with("number out of range"), "{error}: {text}"),
        }
    }
}
