//! Equality and order of values, as Python has them.

use super::budget::{Budget, Result, failed};
use super::value::{Kind, Value};
use std::cmp::Ordering;
use std::rc::Rc;

/// Whether two values are equal.
pub(super) fn equal(budget: &Budget, left: &Value, right: &Value) -> Result<bool> {
    budget.spend(32)?;
    Ok(match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            left.len() == right.len() && {
                budget.spend(left.len() / 8)?;
                left == right
            }
        }
        (Value::List(left), Value::List(right)) => {
            let same = match (left.kind, right.kind) {
                (Kind::Tuple | Kind::Group, Kind::Tuple | Kind::Group) => true,
                (left, right) => left == right,
            };
            same && left.items.len() == right.items.len() && {
                for (left, right) in left.items.iter().zip(&right.items) {
                    if !equal(budget, left, right)? {
                        return Ok(false);
                    }
                }
                true
            }
        }
        (Value::Dict(left), Value::Dict(right)) => {
            left.entries().len() == right.entries().len() && {
                for (key, value) in left.entries() {
                    match right.get(budget, key)? {
                        Some(other) if equal(budget, value, other)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
        }
        (Value::Range(left), Value::Range(right)) => left == right,
        (Value::None, Value::None) | (Value::Undefined(_), Value::Undefined(_)) => true,
        _ => match (left.as_int(), right.as_int()) {
            (Some(left), Some(right)) => left == right,
            _ => match (left.as_float(), right.as_float()) {
                (Some(left), Some(right)) => left == right,
                _ => same(left, right),
            },
        },
    })
}

/// Whether two values are the same object.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::List(left), Value::List(right)) => Rc::ptr_eq(left, right),
        (Value::Dict(left), Value::Dict(right)) => Rc::ptr_eq(left, right),
        (Value::Stream(left), Value::Stream(right)) => Rc::ptr_eq(left, right),
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        (Value::Loop(left), Value::Loop(right)) => Rc::ptr_eq(left, right),
        (Value::Macro(left), Value::Macro(right)) => Rc::ptr_eq(left, right),
        (Value::Function(left), Value::Function(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => std::ptr::eq(left.as_str(), right.as_str()),
        _ => false,
    }
}

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
            super::value::check_key(budget, part)?;
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
