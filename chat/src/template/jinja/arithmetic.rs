//! Operators on numbers, texts and lists, as Python has them.

use super::ast::{Binary, Unary};
use super::budget::{Budget, Result, failed};
use super::format::percent;
use super::text::Builder;
use super::value::{Kind, Value};

/// Most items of a list that a product makes.
const PRODUCT: usize = 1 << 20;

/// What an operator makes of two values.
pub(super) fn binary(budget: &Budget, operator: Binary, left: &Value, right: &Value) -> Result<Value> {
    match (operator, left, right) {
        (Binary::Add, Value::Text(left), Value::Text(right)) => {
            let mut text = Builder::new(budget);
            text.push_text(left)?;
            text.push_text(right)?;
            return Ok(Value::Text(text.finish()));
        }
        (Binary::Add, Value::List(left), Value::List(right))
            if left.kind == right.kind && !matches!(left.kind, Kind::View(_)) =>
        {
            let items = left.items.iter().chain(&right.items).cloned().collect();
            return Value::sequence(budget, items, left.kind);
        }
        (Binary::Multiply, whole @ (Value::Text(_) | Value::List(_)), times)
        | (Binary::Multiply, times, whole @ (Value::Text(_) | Value::List(_))) => {
            if let Some(times) = times.as_int() {
                return repeated(budget, whole, usize::try_from(times).unwrap_or(0));
            }
        }
        (Binary::Modulo, Value::Text(format), values) => {
            return Ok(Value::Text(percent(budget, format, values)?));
        }
        _ => {}
    }
    if let (Some(left), Some(right)) = (left.as_int(), right.as_int())
        && let Some(value) = whole_numbers(operator, left, right)?
    {
        return Ok(value);
    }
    let (Some(a), Some(b)) = (left.as_float(), right.as_float()) else {
        return mismatch(operator, left, right);
    };
    let is_division = matches!(operator, Binary::Divide | Binary::FloorDivide | Binary::Modulo);
    if b == 0.0 && is_division {
        return failed("division by zero");
    }
    Ok(Value::Float(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::FloorDivide => (a / b).floor(),
        // The remainder has the sign of the divisor.
        Binary::Modulo => match a % b {
            rest if rest != 0.0 && (rest < 0.0) != (b < 0.0) => rest + b,
            rest => rest,
        },
        Binary::Power => a.powf(b),
    }))
}

fn mismatch(operator: Binary, left: &Value, right: &Value) -> Result<Value> {
    for value in [left, right] {
        if let Value::Undefined(what) = value {
            return failed(what.to_string());
        }
    }
    let sign = match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::FloorDivide => "//",
        Binary::Modulo => "%",
        Binary::Power => "**",
    };
    failed(format!("`{sign}` takes no values of types {} and {}", left.type_name(), right.type_name()))
}

fn repeated(budget: &Budget, whole: &Value, times: usize) -> Result<Value> {
    match whole {
        Value::Text(text) => {
            let mut all = Builder::new(budget);
            all.repeat(text, times)?;
            Ok(Value::Text(all.finish()))
        }
        Value::List(list) => {
            let count = list.items.len().saturating_mul(times);
            budget.steps(count)?;
            if count > PRODUCT {
                return failed(format!("a product has more than {PRODUCT} items"));
            }
            let times = if list.items.is_empty() { 0 } else { times };
            Value::sequence(budget, (0..times).flat_map(|_| list.items.iter().cloned()).collect(), list.kind)
        }
        _ => mismatch(Binary::Multiply, whole, &Value::None),
    }
}

/// What an operator makes of two whole numbers; `None` if that is no whole number.
fn whole_numbers(operator: Binary, a: i64, b: i64) -> Result<Option<Value>> {
    if b == 0 && matches!(operator, Binary::Divide | Binary::FloorDivide | Binary::Modulo) {
        return failed("division by zero");
    }
    let value = match operator {
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        Binary::Divide => return Ok(None),
        // Rounded down, whatever the signs.
        Binary::FloorDivide => a.checked_div_euclid(b).and_then(|quotient| {
            if b < 0 && a.checked_rem_euclid(b)? != 0 { quotient.checked_sub(1) } else { Some(quotient) }
        }),
        Binary::Modulo => {
            a.checked_rem_euclid(b).map(|rest| if b < 0 && rest != 0 { rest + b } else { rest })
        }
        Binary::Power if b < 0 => return Ok(None),
        Binary::Power => match u32::try_from(b) {
            Ok(b) => a.checked_pow(b),
            Err(_) => None,
        },
    };
    match value {
        Some(value) => Ok(Some(Value::Int(value))),
        None => failed("a number is too large"),
    }
}

/// What an operator makes of a value.
pub(super) fn unary(operator: Unary, value: &Value) -> Result<Value> {
    match (operator, value) {
        (Unary::Not, value) => Ok(Value::Bool(!value.is_true())),
        (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (Unary::Plus, Value::Float(number)) => Ok(Value::Float(*number)),
        (_, Value::Undefined(what)) => failed(what.to_string()),
        (_, value) => match value.as_int() {
            Some(number) if operator == Unary::Plus => Ok(Value::Int(number)),
            Some(number) => match number.checked_neg() {
                Some(number) => Ok(Value::Int(number)),
                None => failed("a number is too large"),
            },
            None => failed(format!("a value of type {} has no sign", value.type_name())),
        },
    }
}
