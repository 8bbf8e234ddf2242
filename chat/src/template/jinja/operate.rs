//! Operators on values, their attributes, items and parts, as Python and Jinja have them.

use super::ast::{Binary, Compare, Name, Unary};
use super::budget::{Budget, Result, failed};
use super::compare::{contains, equal, order};
use super::format::percent;
use super::text::{Builder, Text};
use super::value::{Kind, Value, range_length};
use super::{methods, write};
use std::rc::Rc;

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

/// Whether two values compare so.
pub(super) fn compares(budget: &Budget, compare: Compare, left: &Value, right: &Value) -> Result<bool> {
    let ordered = |accepts: fn(std::cmp::Ordering) -> bool| {
        let is_nan = |value: &Value| matches!(value, Value::Float(number) if number.is_nan());
        Ok(accepts(order(budget, left, right)?) && !is_nan(left) && !is_nan(right))
    };
    match compare {
        Compare::Equal => equal(budget, left, right),
        Compare::Unequal => Ok(!equal(budget, left, right)?),
        Compare::Less => ordered(std::cmp::Ordering::is_lt),
        Compare::LessEqual => ordered(std::cmp::Ordering::is_le),
        Compare::Greater => ordered(std::cmp::Ordering::is_gt),
        Compare::GreaterEqual => ordered(std::cmp::Ordering::is_ge),
        Compare::In => contains(budget, right, left),
        Compare::NotIn => Ok(!contains(budget, right, left)?),
    }
}

/// `value.name`: an attribute or a method, otherwise an item.
pub(super) fn attribute(budget: &Budget, value: &Value, name: &Name) -> Result<Value> {
    let found = match value {
        Value::Undefined(what) => return failed(what.to_string()),
        Value::Namespace(space) => space.get(name),
        Value::Loop(state) => match state.attribute(budget, name)? {
            None if matches!(&**name, "cycle" | "changed") => Some(Value::method(budget, value, name)?),
            found => found,
        },
        Value::Cycler(cycler) => match &**name {
            "current" => cycler.0.get(cycler.1.get()).cloned(),
            "next" | "reset" => Some(Value::method(budget, value, name)?),
            _ => None,
        },
        Value::Macro(definition) => match &**name {
            "name" => Some(Value::text(definition.definition.name.clone())),
            "caller" => Some(Value::Bool(definition.definition.takes_caller)),
            "catch_kwargs" => Some(Value::Bool(definition.definition.takes_more_named)),
            "catch_varargs" => Some(Value::Bool(definition.definition.takes_more)),
            "arguments" => {
                let names =
                    definition.definition.parameters.iter().map(|(name, _)| Value::text(name.clone()));
                Some(Value::tuple(budget, names.collect())?)
            }
            _ => None,
        },
        Value::List(list) if list.kind == Kind::Group && matches!(&**name, "grouper" | "list") => {
            list.items.get(usize::from(&**name == "list")).cloned()
        }
        value if methods::has(value, name) => Some(Value::method(budget, value, name)?),
        Value::Dict(dict) => {
            budget.spend(name.len())?;
            dict.named(name).cloned()
        }
        _ => None,
    };
    Ok(found.unwrap_or_else(|| missing(value, name)))
}

fn missing(value: &Value, name: &str) -> Value {
    Value::undefined(format!("a value of type {} has no attribute `{name}`", value.type_name()))
}

/// `value[key]`: an item, otherwise an attribute of the name.
pub(super) fn item(budget: &Budget, value: &Value, key: &Value) -> Result<Value> {
    let found = match (value, key.as_int()) {
        (Value::Undefined(what), _) => return failed(what.to_string()),
        (Value::Dict(dict), _) => {
            if super::value::check_key(budget, key).is_ok() {
                dict.get(budget, key)?.cloned()
            } else {
                None
            }
        }
        (Value::List(list), Some(at)) => place(at, list.items.len()).map(|at| list.items[at].clone()),
        (Value::Range(range), Some(at)) => {
            place(at, range_length(range)).map(|at| Value::Int(range[0] + at as i64 * range[2]))
        }
        (Value::Text(text), Some(at)) => {
            let whole = text.as_str();
            budget.spend(whole.len())?;
            let found = if at < 0 {
                let from_end = usize::try_from(at.unsigned_abs() - 1).unwrap_or(usize::MAX);
                whole.char_indices().rev().nth(from_end)
            } else {
                whole.char_indices().nth(usize::try_from(at).unwrap_or(usize::MAX))
            };
            match found {
                Some((start, c)) => Some(Value::Text(text.slice(budget, start..start + c.len_utf8())?)),
                None => None,
            }
        }
        _ => None,
    };
    match (found, key) {
        (Some(found), _) => Ok(found),
        // What a dictionary does not have may still be a method.
        (None, Value::Text(name)) => attribute(budget, value, &name.as_str().into()),
        (None, key) => {
            let key = write::text(budget, key).map(|text| text.as_str().to_owned()).unwrap_or_default();
            Ok(missing(value, &key))
        }
    }
}

/// The number of an item that may be counted from the end.
fn place(at: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if at < 0 { at + length } else { at };
    if (0..length).contains(&at) { usize::try_from(at).ok() } else { None }
}

/// `value[start:stop:step]`.
pub(super) fn slice(budget: &Budget, value: &Value, bounds: [Value; 3]) -> Result<Value> {
    let [start, stop, step] = &bounds;
    let number = |value: &Value| match value {
        Value::None => Ok(None),
        value => match value.as_int() {
            Some(number) => Ok(Some(number)),
            None => failed("a slice has bounds that are no whole numbers"),
        },
    };
    let (start, stop, step) = (number(start)?, number(stop)?, number(step)?.unwrap_or(1));
    if step == 0 {
        return failed("a slice has a step of zero");
    }
    if let Value::Undefined(what) = value {
        return failed(what.to_string());
    }
    let chars: Vec<usize>;
    let length = match value {
        Value::Text(text) => {
            budget.spend(text.as_str().len())?;
            chars = text.as_str().char_indices().map(|(at, _)| at).chain([text.as_str().len()]).collect();
            chars.len() - 1
        }
        Value::List(list) if !matches!(list.kind, Kind::View(_)) => {
            chars = Vec::new();
            list.items.len()
        }
        Value::Range(range) => {
            chars = Vec::new();
            range_length(range)
        }
        _ => return Ok(Value::undefined(format!("a value of type {} has no parts", value.type_name()))),
    };
    let count = i64::try_from(length).unwrap_or(i64::MAX);
    let (low, high) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let bound = |bound: Option<i64>, usual: i64| match bound {
        None => usual,
        Some(at) => (if at < 0 { at.saturating_add(count) } else { at }).clamp(low, high),
    };
    let start = bound(start, if step > 0 { 0 } else { count - 1 });
    let stop = bound(stop, if step > 0 { count } else { -1 });
    if let (Value::Text(text), 1) = (value, step) {
        let (from, to) = (start as usize, stop.max(start) as usize);
        return Ok(Value::Text(text.slice(budget, chars[from]..chars[to])?));
    }
    let places = (0..range_length(&[start, stop, step])).map(|n| (start + n as i64 * step) as usize);
    budget.steps(places.len())?;
    match value {
        Value::Text(text) => {
            let mut part = Builder::new(budget);
            for at in places {
                part.push_part(text, chars[at]..chars[at + 1])?;
            }
            Ok(Value::Text(part.finish()))
        }
        Value::List(list) => {
            let kind = if list.kind == Kind::Group { Kind::Tuple } else { list.kind };
            Value::sequence(budget, places.map(|at| list.items[at].clone()).collect(), kind)
        }
        Value::Range(range) => {
            let [first, _, width] = **range;
            let at = |n: i64| first.saturating_add(n.saturating_mul(width));
            Ok(Value::Range(Rc::new([at(start), at(stop), width.saturating_mul(step)])))
        }
        _ => Ok(Value::None),
    }
}

/// Values joined as texts (`~`).
pub(super) fn joined(budget: &Budget, values: &[Value]) -> Result<Text> {
    let mut text = Builder::new(budget);
    values.iter().try_for_each(|value| write::print(&mut text, value))?;
    Ok(text.finish())
}
