//! Operators on numbers, texts and lists, as Python has them.

use super::ast::{BinaryOperator, UnaryOperator};
use super::budget::{Budget, Result, failed};
use super::format::percent;
use super::text::TextBuilder;
use super::value::{SequenceKind, Value};

/// Most items of a list that a product makes.
const PRODUCT: usize = 1 << 20;

/// The result of an operator with two values.
pub(super) fn binary(
    budget: &Budget,
    operator: BinaryOperator,
    left: &Value,
    right: &Value,
) -> Result<Value> {
    match (operator, left, right) {
        (BinaryOperator::Add, Value::Text(left), Value::Text(right)) => {
            let mut text = TextBuilder::new(budget);
            text.push_text(left)?;
            text.push_text(right)?;
            return Ok(Value::Text(text.finish()));
        }
        (BinaryOperator::Add, Value::List(left), Value::List(right))
            if left.kind == right.kind && !matches!(left.kind, SequenceKind::View(_)) =>
        {
            let items = left.items.iter().chain(&right.items).cloned().collect();
            return Value::sequence(budget, items, left.kind);
        }
        (BinaryOperator::Multiply, whole @ (Value::Text(_) | Value::List(_)), times)
        | (BinaryOperator::Multiply, times, whole @ (Value::Text(_) | Value::List(_))) => {
            if let Some(times) = times.as_int() {
                return repeated(budget, whole, usize::try_from(times).unwrap_or(0));
            }
        }
        (BinaryOperator::Modulo, Value::Text(format), values) => {
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
    let is_division =
        matches!(operator, BinaryOperator::Divide | BinaryOperator::FloorDivide | BinaryOperator::Modulo);
    if b == 0.0 && is_division {
        return failed("division by zero");
    }
    Ok(Value::Float(match operator {
        BinaryOperator::Add => a + b,
        BinaryOperator::Subtract => a - b,
        BinaryOperator::Multiply => a * b,
        BinaryOperator::Divide => a / b,
        BinaryOperator::FloorDivide => (a / b).floor(),
        // The remainder has the sign of the divisor.
        BinaryOperator::Modulo => match a % b {
            rest if rest != 0.0 && (rest < 0.0) != (b < 0.0) => rest + b,
            rest => rest,
        },
        BinaryOperator::Power => a.powf(b),
    }))
}

fn mismatch(operator: BinaryOperator, left: &Value, right: &Value) -> Result<Value> {
    for value in [left, right] {
        if let Value::Undefined(what) = value {
            return failed(what.to_string());
        }
    }
    let sign = match operator {
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::FloorDivide => "//",
        BinaryOperator::Modulo => "%",
        BinaryOperator::Power => "**",
    };
    failed(format!("`{sign}` takes no values of types {} and {}", left.type_name(), right.type_name()))
}

fn repeated(budget: &Budget, whole: &Value, times: usize) -> Result<Value> {
    match whole {
        Value::Text(text) => {
            let mut all = TextBuilder::new(budget);
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
        _ => mismatch(BinaryOperator::Multiply, whole, &Value::None),
    }
}

/// The result of an operator with two whole numbers; `None` if that is no whole number.
fn whole_numbers(operator: BinaryOperator, a: i64, b: i64) -> Result<Option<Value>> {
    if b == 0
        && matches!(operator, BinaryOperator::Divide | BinaryOperator::FloorDivide | BinaryOperator::Modulo)
    {
        return failed("division by zero");
    }
    let value = match operator {
        BinaryOperator::Add => a.checked_add(b),
        BinaryOperator::Subtract => a.checked_sub(b),
        BinaryOperator::Multiply => a.checked_mul(b),
        BinaryOperator::Divide => return Ok(None),
        // Rounded down, whatever the signs.
        BinaryOperator::FloorDivide => a.checked_div_euclid(b).and_then(|quotient| {
            if b < 0 && a.checked_rem_euclid(b)? != 0 { quotient.checked_sub(1) } else { Some(quotient) }
        }),
        BinaryOperator::Modulo => {
            a.checked_rem_euclid(b).map(|rest| if b < 0 && rest != 0 { rest + b } else { rest })
        }
        BinaryOperator::Power if b < 0 => return Ok(None),
        BinaryOperator::Power => match u32::try_from(b) {
            Ok(b) => a.checked_pow(b),
            Err(_) => None,
        },
    };
    match value {
        Some(value) => Ok(Some(Value::Int(value))),
        None => failed("a number is too large"),
    }
}

/// The result of an operator with one value.
pub(super) fn unary(operator: UnaryOperator, value: &Value) -> Result<Value> {
    match (operator, value) {
        (UnaryOperator::Not, value) => Ok(Value::Bool(!value.is_true())),
        (UnaryOperator::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (UnaryOperator::Plus, Value::Float(number)) => Ok(Value::Float(*number)),
        (_, Value::Undefined(what)) => failed(what.to_string()),
        (_, value) => match value.as_int() {
            Some(number) if operator == UnaryOperator::Plus => Ok(Value::Int(number)),
            Some(number) => match number.checked_neg() {
                Some(number) => Ok(Value::Int(number)),
                None => failed("a number is too large"),
            },
            None => failed(format!("a value of type {} has no sign", value.type_name())),
        },
    }
}
