//! Equality and order of values, as Python has them.

use super::ast::Comparison;
use super::budget::{Budget, Result, failed};
use super::value::{Value, check_key, equal};
use std::cmp::Ordering;

/// The order of two values. Values of types that Python does not order are an error.
pub(super) fn order(budget: &Budget, left: &Value, right: &Value) -> Result<Ordering> {
    budget.spend(32)?;
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            budget.spend(left.as_str().len().min(right.as_str().len()) / 8)?;
            return Ok(left.as_str().cmp(right.as_str()));
        }
        (Value::List(left), Value::List(right)) if left.kind == right.kind => {
            for (left, right) in left.items.iter().zip(&right.items) {
                if !equal(budget, left, right)? {
                    return order(budget, left, right);
                }
            }
            return Ok(left.items.len().cmp(&right.items.len()));
        }
        _ => {}
    }
    let ordered = match (left.as_int(), right.as_int()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => match (left.as_float(), right.as_float()) {
            (Some(left), Some(right)) => Some(left.partial_cmp(&right).unwrap_or(Ordering::Equal)),
            _ => None,
        },
    };
    match ordered {
        Some(ordering) => Ok(ordering),
        None => {
            failed(format!("values of types {} and {} have no order", left.type_name(), right.type_name()))
        }
    }
}

/// Whether a value is in another: an item of a list, a part of a text, a key of a dictionary.
pub(super) fn contains(budget: &Budget, whole: &Value, part: &Value) -> Result<bool> {
    match whole {
        Value::Text(whole) => match part {
            Value::Text(part) => {
                budget.spend(whole.as_str().len() / 4)?;
                Ok(whole.as_str().contains(part.as_str()))
            }
            _ => failed(format!("a value of type {} is in no text", part.type_name())),
        },
        Value::Dict(dict) => {
            check_key(budget, part)?;
            Ok(dict.get(budget, part)?.is_some())
        }
        Value::Namespace(space) => Ok(part.as_str().is_some_and(|name| space.get(name).is_some())),
        Value::List(list) => {
            for item in &list.items {
                if equal(budget, item, part)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        other => {
            for item in other.items(budget)? {
                if equal(budget, &item, part)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// Sorts by values that have an order. Equal ones stay as they were. (The library's sort may panic where an
/// order contradicts itself, as Python's of whole and other numbers does.)
pub(super) fn sort_by<T>(budget: &Budget, items: Vec<T>, key: &impl Fn(&T) -> &Value) -> Result<Vec<T>> {
    if items.len() < 2 {
        return Ok(items);
    }
    budget.steps(items.len())?;
    let mut left = items;
    let right = left.split_off(left.len() / 2);
    let mut left = sort_by(budget, left, key)?.into_iter().peekable();
    let mut right = sort_by(budget, right, key)?.into_iter().peekable();
    let mut sorted = Vec::with_capacity(left.len() + right.len());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let takes_right = order(budget, key(b), key(a))?.is_lt();
        sorted.extend(if takes_right { right.next() } else { left.next() });
    }
    sorted.extend(left.chain(right));
    Ok(sorted)
}

/// Whether two values compare so.
pub(super) fn compares(budget: &Budget, compare: Comparison, left: &Value, right: &Value) -> Result<bool> {
    let ordered = |accepts: fn(Ordering) -> bool| {
        let is_nan = |value: &Value| matches!(value, Value::Float(number) if number.is_nan());
        Ok(accepts(order(budget, left, right)?) && !is_nan(left) && !is_nan(right))
    };
    match compare {
        Comparison::Equal => equal(budget, left, right),
        Comparison::Unequal => Ok(!equal(budget, left, right)?),
        Comparison::Less => ordered(Ordering::is_lt),
        Comparison::LessEqual => ordered(Ordering::is_le),
        Comparison::Greater => ordered(Ordering::is_gt),
        Comparison::GreaterEqual => ordered(Ordering::is_ge),
        Comparison::In => contains(budget, right, left),
        Comparison::NotIn => Ok(!contains(budget, right, left)?),
    }
}
