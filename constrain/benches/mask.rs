//! Time of a mask over the vocabulary of GPT-OSS, for typical texts.

#[path = "../tests/constrain/o200k.rs"]
mod o200k;

use kernmill_constrain::{Composed, Constraint, Lexicon, Rule, Vocabulary};
use serde_json::json;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

const WIDTH: u32 = 201_088;

/// Texts. A mask is taken at every token of them.
const TEXTS: [&str; 2] = [
    r#"{"city": "Osnabrück", "days": [{"day": "2026-03-01", "high": 12, "rain": false},
        {"day": "2026-03-02", "high": 9, "rain": true}], "unit": "celsius"}"#,
    r#"{"city":"São Paulo","days":[],"unit":"fahrenheit"}"#,
];

fn main() -> io::Result<()> {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "maxLength": 60 },
            "days": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "day": { "type": "string", "format": "date" },
                    "high": { "type": "integer", "minimum": -90, "maximum": 60 },
                    "rain": { "type": "boolean" },
                },
                "required": ["day", "high", "rain"],
                "additionalProperties": false,
            } },
            "unit": { "enum": ["celsius", "fahrenheit"] },
        },
        "required": ["city", "days", "unit"],
        "additionalProperties": false,
    });
    let mut turn = Composed::default();
    turn.rule("TEXT", "/(.|\\n)*/");
    turn.schema("arguments", "the schema", &schema, false).expect("a schema");
    let call = "<|channel|> \"commentary to=functions.weather \" <|constrain|> \"json\" <|message|> arguments <|call|>";
    let reasoning = "<|channel|> \"analysis\" <|message|> TEXT <|end|> <|start|> \"assistant\"";
    turn.rule("start", &format!("{reasoning} {call}"));
    let mut out = io::stdout().lock();

    let start = Instant::now();
    let vocabulary = Arc::new(o200k::O200k::new());
    writeln!(out, "vocabulary       {:8.1} ms", start.elapsed().as_secs_f64() * 1e3)?;
    let start = Instant::now();
    let lexicon =
        Lexicon::new(vocabulary.clone(), WIDTH as usize, &[200_002, 199_999]).expect("a vocabulary");
    writeln!(out, "lexicon          {:8.1} ms", start.elapsed().as_secs_f64() * 1e3)?;

    let header = "<|channel|>analysis<|message|>The user asks for the weather, so I call the tool.<|end|>\
                  <|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>";
    let ordinary = |text: &str| vocabulary.encode_ordinary(text).expect("a text");
    let objects: Vec<Vec<u32>> = TEXTS.iter().map(|text| ordinary(text)).collect();
    let turns = TEXTS.iter().map(|text| format!("{header}{text}<|call|>"));
    let turns: Vec<Vec<u32>> = turns.map(|text| vocabulary.encode_marked(&text).expect("a text")).collect();
    let numbers = ["555-0100-88", "12-34-5"].map(ordinary);
    let cases = [
        ("schema", Rule::JsonSchema(schema), &objects[..]),
        ("any object", Rule::JsonObject, &objects),
        ("Harmony turn", Rule::Composed(turn), &turns),
        ("regex", Rule::Regex("[0-9]+(-[0-9]+)*".to_owned()), &numbers),
    ];
    for (name, rule, texts) in cases {
        let (mut masks, mut forced) = (Vec::new(), 0);
        let start = Instant::now();
        Constraint::new(&lexicon, &rule).expect("a rule");
        let compiled = start.elapsed().as_secs_f64();
        for _ in 0..20 {
            for text in texts {
                // Nothing is kept from one text to the next.
                let mut constraint = Constraint::new(&lexicon, &rule).expect("a rule");
                for id in text {
                    forced += usize::from(!constraint.forced().is_empty());
                    let start = Instant::now();
                    constraint.mask().expect("a mask");
                    masks.push(start.elapsed().as_secs_f64() * 1e6);
                    constraint.accept(*id).expect("an allowed token");
                }
            }
        }
        masks.sort_unstable_by(f64::total_cmp);
        let mean = masks.iter().sum::<f64>() / masks.len() as f64;
        let at = |part: f64| masks[((masks.len() - 1) as f64 * part) as usize];
        writeln!(
            out,
            "{name:16} compile {:6.2} ms, {} masks: mean {mean:6.1} us, median {:6.1}, p99 {:6.1}, most {:6.1}; \
             {:.0} % forced",
            compiled * 1e3,
            masks.len(),
            at(0.5),
            at(0.99),
            at(1.0),
            forced as f64 / masks.len() as f64 * 100.0
        )?;
    }
    Ok(())
}
