//! Tests of values (`value is name`).

use super::arguments::GivenArguments;
use super::ast::Comparison;
use super::budget::{Budget, Result, failed};
use super::compare::compares;
use super::value::{Value, same};
use super::{methods, names};

/// Whether a value passes a test.
pub(super) fn passes(budget: &Budget, name: &str, value: &Value, given: GivenArguments) -> Result<bool> {
    let compare = match name {
        "==" | "eq" | "equalto" => Some(Comparison::Equal),
        "!=" | "ne" => Some(Comparison::Unequal),
        "<" | "lt" | "lessthan" => Some(Comparison::Less),
        "<=" | "le" => Some(Comparison::LessEqual),
        ">" | "gt" | "greaterthan" => Some(Comparison::Greater),
        ">=" | "ge" => Some(Comparison::GreaterEqual),
        "in" => Some(Comparison::In),
        _ => None,
    };
    if let Some(compare) = compare {
        let given = given.bind(name, ["other"])?;
        return compares(budget, compare, value, given.need(0)?);
    }
    if matches!(name, "sameas" | "divisibleby") {
        let given = given.bind(name, ["other"])?;
        let other = given.need(0)?;
        return match (name, value.as_int(), other.as_int()) {
            ("sameas", ..) => Ok(same(value, other)),
            (_, Some(_), Some(0)) => failed("division by zero"),
            (_, Some(value), Some(other)) => Ok(value.checked_rem(other).unwrap_or(0) == 0),
            _ => failed("`divisibleby` takes whole numbers"),
        };
    }
    given.bind(name, [])?;
    let parity = |wanted: i64| match value.as_int() {
        Some(number) => Ok(number.rem_euclid(2) == wanted),
        None => failed(format!("`{name}` takes a whole number")),
    };
    Ok(match name {
        "defined" => !matches!(value, Value::Undefined(_)),
        "undefined" => matches!(value, Value::Undefined(_)),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => value.as_float().is_some(),
        "string" => matches!(value, Value::Text(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => {
            value.is_sequence()
                || matches!(value, Value::Text(_) | Value::Dict(_) | Value::Range(_) | Value::Undefined(_))
        }
        "iterable" => matches!(
            value,
            Value::Undefined(_)
                | Value::Text(_)
                | Value::List(_)
                | Value::Dict(_)
                | Value::Range(_)
                | Value::Stream(_)
                | Value::Loop(_)
        ),
        "callable" => matches!(
            value,
            Value::Macro(_) | Value::Function(_) | Value::Method(_) | Value::Joiner(_) | Value::Loop(_)
        ),
        "escaped" => false,
        "odd" => parity(1)?,
        "even" => parity(0)?,
        "lower" | "upper" => {
            let text = super::write::text(budget, value)?;
            let method = if name == "lower" { "islower" } else { "isupper" };
            let fits = methods::call(budget, &Value::Text(text), &method.into(), GivenArguments::default())?;
            fits.is_true()
        }
        "filter" => value.as_str().is_some_and(names::is_filter),
        "test" => value.as_str().is_some_and(names::is_test),
        _ => return failed(format!("unknown test `{name}`")),
    })
}
