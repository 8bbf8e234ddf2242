//! Numbers in schemas that cost more than their size tells.

use crate::error::Error;
use serde_json::Value;

/// Largest multiple, counted in its last digit: 1.25 is 125. A number is followed by its remainder, so there
/// are as many states as the multiple has parts.
const MULTIPLE: u64 = 10_000;

/// Most digits behind the point of a multiple.
const PLACES: usize = 6;

/// Smallest bound of the parser, which negates bounds as numbers of 64 bits: that next to -2^63 as a double.
const LEAST: i64 = -9_223_372_036_854_774_784;

/// Keywords with values that are data, and not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "example", "examples"];

/// Checks the numbers of a schema. `what` names it in errors. The depth of `schema` has been checked.
///
/// # Errors
/// When a number is more work than is allowed.
pub(crate) fn check(what: &str, schema: &Value) -> Result<(), Error> {
    match schema {
        Value::Array(parts) => parts.iter().try_for_each(|part| check(what, part)),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            if DATA.contains(&name.as_str()) {
                return Ok(());
            }
            if let ("multipleOf", Value::Number(multiple)) = (name.as_str(), value) {
                let text = multiple.to_string();
                if !is_multiple(&text) {
                    let reason = format!(
                        "its `multipleOf` is {text}, expected at most {MULTIPLE} without the point, with at \
                         most {PLACES} digits behind it"
                    );
                    return Err(Error::Rule { what: what.to_owned(), reason });
                }
            }
            if let ("maximum" | "exclusiveMaximum", Some(most)) = (name.as_str(), value.as_f64())
                && most <= LEAST as f64
            {
                let reason = format!("its `{name}` is {value}, expected more than {LEAST}");
                return Err(Error::Rule { what: what.to_owned(), reason });
            }
            check(what, value)
        }),
        _ => Ok(()),
    }
}

/// Raises lower bounds that are too small for the parser to the smallest that is not. Numbers that are held
/// to these are held to those.
pub(crate) fn raise_bounds(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(raise_bounds),
        Value::Object(members) => {
            for (name, value) in members.iter_mut().filter(|(name, _)| !DATA.contains(&name.as_str())) {
                let is_bound = matches!(name.as_str(), "minimum" | "exclusiveMinimum");
                if is_bound && value.as_f64().is_some_and(|least| least < LEAST as f64) {
                    *value = LEAST.into();
                }
                raise_bounds(value);
            }
        }
        _ => {}
    }
}

/// Whether numbers can be held to a multiple that is written as this text.
fn is_multiple(text: &str) -> bool {
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let Ok(power) = power.parse::<i64>() else { return false };
    // The point moves by the power of ten.
    let places = part.len() as i64 - power;
    let Ok(value) = format!("{whole}{part}").parse::<u64>() else { return false };
    match u32::try_from(-places) {
        Ok(zeros) => {
            10u64.checked_pow(zeros).and_then(|ten| value.checked_mul(ten)).is_some_and(|n| n <= MULTIPLE)
        }
        Err(_) => value <= MULTIPLE && places <= PLACES as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn multiples_are_counted_in_their_last_digit() {
        for text in
            ["1", "10000", "0.01", "0.05", "1.25", "12.340", "0.000001", "1e-6", "1e4", "2.5e2", "10.0", "0"]
        {
            assert!(is_multiple(text), "{text}");
        }
        for text in
            ["10001", "999983", "9999991", "18446744073709551615", "1e300", "1e-7", "1e-300", "-2", "100.01"]
        {
            assert!(!is_multiple(text), "{text}");
        }
    }

    #[test]
    fn bounds_at_the_end_of_64_bits_are_held_to_or_refused() {
        for least in [json!(i64::MIN), json!(-i64::MAX), json!(-1e300), json!(-9.3e18)] {
            for (name, kept) in [("minimum", true), ("exclusiveMinimum", true), ("default", false)] {
                let mut schema = json!({ "items": { "type": "integer", name: least } });
                raise_bounds(&mut schema);
                assert_eq!(schema["items"][name] == json!(LEAST), kept, "{name} {least}");
            }
            for name in ["maximum", "exclusiveMaximum"] {
                let error = check("the schema", &json!({ name: least })).unwrap_err().to_string();
                assert!(
                    error.contains(name) && error.contains("expected more than -9223372036854774784"),
                    "{error}"
                );
            }
        }
        for least in [json!(0), json!(-1e18), json!(LEAST), json!(1e300)] {
            let mut schema = json!({ "minimum": least });
            raise_bounds(&mut schema);
            assert_eq!(schema["minimum"], least);
        }
    }

    #[test]
    fn the_keyword_is_found_wherever_it_is_one() {
        let many = json!({ "type": "integer", "multipleOf": 999_983 });
        for schema in [
            many.clone(),
            json!({ "properties": { "a": { "items": { "anyOf": [{}, many] } } } }),
            json!({ "$defs": { "multipleOf": { "multipleOf": 9_999_991 } } }),
        ] {
            let error = check("the schema", &schema).unwrap_err().to_string();
            assert!(error.starts_with("the schema: its `multipleOf` is 999"), "{error}");
            assert!(error.contains("expected at most 10000"), "{error}");
        }
        for schema in [
            json!({ "enum": [many], "default": { "multipleOf": 1e9 } }),
            json!({ "properties": { "multipleOf": { "type": "integer" } } }),
        ] {
            assert_eq!(check("the schema", &schema), Ok(()));
        }
    }
}
