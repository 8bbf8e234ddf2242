//! Attributes, items and parts of values, as Python and Jinja have them.

use super::ast::Name;
use super::budget::{Budget, Result, failed};
use super::text::{TemplateText, TextBuilder};
use super::value::{Loop, SequenceKind, Value, check_key, range_length};
use super::{names, write};
use std::rc::Rc;

/// `value.name`: an attribute or a method, otherwise an item.
pub(super) fn attribute(budget: &Budget, value: &Value, name: &Name) -> Result<Value> {
    let found = match value {
        Value::Undefined(what) => return failed(what.to_string()),
        Value::Namespace(space) => space.get(name),
        Value::Loop(state) => match of_loop(state, budget, name)? {
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
        Value::List(list) if list.kind == SequenceKind::Group && matches!(&**name, "grouper" | "list") => {
            list.items.get(usize::from(&**name == "list")).cloned()
        }
        value if names::has(value, name) => Some(Value::method(budget, value, name)?),
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
            if check_key(budget, key).is_ok() {
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
        // A name that a dictionary does not have may still be a method.
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
        Value::List(list) if !matches!(list.kind, SequenceKind::View(_)) => {
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
            let mut part = TextBuilder::new(budget);
            for at in places {
                part.push_part(text, chars[at]..chars[at + 1])?;
            }
            Ok(Value::Text(part.finish()))
        }
        Value::List(list) => {
            let kind = if list.kind == SequenceKind::Group { SequenceKind::Tuple } else { list.kind };
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
pub(super) fn joined(budget: &Budget, values: &[Value]) -> Result<TemplateText> {
    let mut text = TextBuilder::new(budget);
    values.iter().try_for_each(|value| write::print(&mut text, value))?;
    Ok(text.finish())
}

/// An attribute of the loop, if it has one of the name.
fn of_loop(state: &Loop, budget: &Budget, name: &str) -> Result<Option<Value>> {
    let (at, count) = (state.at.get(), state.items.len());
    let number = |n: usize| Value::Int(n as i64);
    let item = |at: Option<usize>, what: &str| {
        at.and_then(|at| state.items.get(at)).cloned().unwrap_or_else(|| Value::undefined(what))
    };
    budget.spend(8)?;
    Ok(Some(match name {
        "index" => number(at + 1),
        "index0" => number(at),
        "revindex" => number(count.saturating_sub(at)),
        "revindex0" => number(count.saturating_sub(at + 1)),
        "first" => Value::Bool(at == 0),
        "last" => Value::Bool(at + 1 == count),
        "length" => number(count),
        "depth" => number(state.level + 1),
        "depth0" => number(state.level),
        "previtem" => item(at.checked_sub(1), "there is no previous item"),
        "nextitem" => item(Some(at + 1), "there is no next item"),
        _ => return Ok(None),
    }))
}
