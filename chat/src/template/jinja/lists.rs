//! Filters that go through the items of a value.

use super::arguments::{Bound, GivenArguments};
use super::arithmetic::binary;
use super::ast::{BinaryOperator, Name};
use super::budget::{Budget, Result, failed};
use super::compare::{order, sort_by};
use super::text::TemplateText;
use super::value::{SequenceKind, Value, equal};
use super::write::join as join_texts;
use super::{methods, operate, tests, write};

/// Applies a filter of a name.
type Apply<'a> = &'a dyn Fn(&str, &Value, GivenArguments) -> Result<Value>;

/// The result of a filter.
pub(super) fn apply(
    budget: &Budget,
    name: &str,
    value: &Value,
    given: GivenArguments,
    filter: Apply,
) -> Result<Value> {
    match name {
        "first" => {
            given.bind(name, [])?;
            let first = match value {
                Value::Stream(stream) => stream.0.borrow_mut().next(),
                value => value.items(budget)?.into_iter().next(),
            };
            Ok(first.unwrap_or_else(|| Value::undefined("`first` has no items")))
        }
        "last" => {
            given.bind(name, [])?;
            if matches!(value, Value::Stream(_)) {
                return failed("`last` takes no generator");
            }
            Ok(value.items(budget)?.pop().unwrap_or_else(|| Value::undefined("`last` has no items")))
        }
        "list" => {
            given.bind(name, [])?;
            Value::list(budget, value.items(budget)?)
        }
        "items" => {
            given.bind(name, [])?;
            match value {
                Value::Undefined(_) => Value::stream(budget, Vec::new()),
                Value::Dict(dict) => Value::stream(budget, methods::pairs(budget, dict)?),
                _ => failed(format!("`items` takes a mapping, and no value of type {}", value.type_name())),
            }
        }
        "join" => join(budget, value, &given.bind(name, ["d", "attribute"])?),
        "reverse" => {
            given.bind(name, [])?;
            let mut items = match value {
                Value::Stream(_) | Value::Namespace(_) => return failed("`reverse` takes no generator"),
                value => value.items(budget)?,
            };
            items.reverse();
            match value {
                Value::Text(_) => {
                    Ok(Value::Text(join_texts(budget, &items, &TemplateText::of_template(""))?))
                }
                _ => Value::stream(budget, items),
            }
        }
        "map" => map(budget, value, given, filter),
        "select" | "reject" | "selectattr" | "rejectattr" => select(budget, name, value, given),
        "sum" => {
            let given = given.bind(name, ["attribute", "start"])?;
            let mut sum = given.get(1).cloned().unwrap_or(Value::Int(0));
            for item in value.items(budget)? {
                let item = by_attribute(budget, &item, given.given(0))?;
                if let Value::Text(_) = sum {
                    return failed("`sum` takes no texts");
                }
                sum = binary(budget, BinaryOperator::Add, &sum, &item)?;
            }
            Ok(sum)
        }
        "min" | "max" => {
            let given = given.bind(name, ["case_sensitive", "attribute"])?;
            let keyed = keyed(budget, value, given.given(1), given.is_true(0, false))?;
            let mut best: Option<(Value, Value)> = None;
            for (key, item) in keyed {
                let is_better = match &best {
                    None => true,
                    Some((best, _)) if name == "min" => order(budget, &key, best)?.is_lt(),
                    Some((best, _)) => order(budget, &key, best)?.is_gt(),
                };
                if is_better {
                    best = Some((key, item));
                }
            }
            Ok(best.map_or_else(|| Value::undefined("there are no items"), |(_, item)| item))
        }
        "sort" => {
            let given = given.bind(name, ["reverse", "case_sensitive", "attribute"])?;
            let keyed = keyed(budget, value, given.given(2), given.is_true(1, false))?;
            let sorted = sorted(budget, keyed, given.is_true(0, false))?;
            Value::list(budget, sorted.into_iter().map(|(_, item)| item).collect())
        }
        "dictsort" => {
            let given = given.bind(name, ["case_sensitive", "by", "reverse"])?;
            let Value::Dict(dict) = value else { return failed("`dictsort` takes a dictionary") };
            let at = match given.text(1)?.map(TemplateText::as_str) {
                None | Some("key") => 0,
                Some("value") => 1,
                Some(_) => return failed("`dictsort` sorts by `key` or `value`"),
            };
            let mut keyed = Vec::new();
            for ((key, value), pair) in dict.entries().iter().zip(methods::pairs(budget, dict)?) {
                let by = if at == 0 { key } else { value };
                keyed.push((folded(budget, by, given.is_true(0, false))?, pair));
            }
            let sorted = sorted(budget, keyed, given.is_true(2, false))?;
            Value::list(budget, sorted.into_iter().map(|(_, pair)| pair).collect())
        }
        "unique" => unique(budget, value, given),
        "groupby" => group(budget, value, &given.bind(name, ["attribute", "default", "case_sensitive"])?),
        "batch" | "slice" => pieces(budget, name, value, &given.bind(name, ["count", "fill_with"])?),
        _ => failed(format!("`{name}` is not supported, because prompts are not random")),
    }
}

fn join(budget: &Budget, value: &Value, given: &Bound<2>) -> Result<Value> {
    let between = match given.get(0) {
        Some(between) => write::text(budget, between)?,
        None => TemplateText::of_template(""),
    };
    let items = value.items(budget)?;
    let items: Vec<Value> =
        items.iter().map(|item| by_attribute(budget, item, given.given(1))).collect::<Result<_>>()?;
    Ok(Value::Text(join_texts(budget, &items, &between)?))
}

/// An attribute of an item: names and numbers of items with dots between them. Without one, the item itself.
fn by_attribute(budget: &Budget, item: &Value, attribute: Option<&Value>) -> Result<Value> {
    let mut value = item.clone();
    match attribute {
        None => {}
        Some(Value::Text(path)) => {
            for name in path.as_str().split('.') {
                let key = name.parse().map_or_else(|_| Value::text(name), Value::Int);
                value = operate::item(budget, &value, &key)?;
            }
        }
        Some(key) => value = operate::item(budget, &value, key)?,
    }
    Ok(value)
}

/// A value to compare by: texts without regard of case, unless that counts.
fn folded(budget: &Budget, value: &Value, counts_case: bool) -> Result<Value> {
    match value {
        Value::Text(text) if !counts_case => Ok(Value::Text(text.map(budget, str::to_lowercase)?)),
        value => Ok(value.clone()),
    }
}

/// Items with what they are compared by.
fn keyed(
    budget: &Budget,
    value: &Value,
    attribute: Option<&Value>,
    counts_case: bool,
) -> Result<Vec<(Value, Value)>> {
    let key = |item: Value| {
        let key = match attribute {
            // Several attributes, one after the other.
            Some(Value::Text(paths)) if paths.as_str().contains(',') => {
                let keys = paths.as_str().split(',').map(|path| {
                    folded(budget, &by_attribute(budget, &item, Some(&Value::text(path)))?, counts_case)
                });
                Value::list(budget, keys.collect::<Result<_>>()?)?
            }
            attribute => folded(budget, &by_attribute(budget, &item, attribute)?, counts_case)?,
        };
        Ok((key, item))
    };
    value.items(budget)?.into_iter().map(key).collect()
}

fn sorted(budget: &Budget, mut keyed: Vec<(Value, Value)>, is_reverse: bool) -> Result<Vec<(Value, Value)>> {
    // Equal items stay in their order either way.
    if is_reverse {
        keyed.reverse();
    }
    let mut sorted = sort_by(budget, keyed, &|pair: &(Value, Value)| &pair.0)?;
    if is_reverse {
        sorted.reverse();
    }
    Ok(sorted)
}

/// `map`: attributes of the items, or what a filter makes of each.
fn map(budget: &Budget, value: &Value, mut given: GivenArguments, apply: Apply) -> Result<Value> {
    let items = items_if_any(budget, value)?;
    if given.positional.is_empty() && given.named.iter().any(|(name, _)| &**name == "attribute") {
        let given = given.bind("map", ["attribute", "default"])?;
        let one = |item: &Value| {
            let found = by_attribute(budget, item, given.get(0))?;
            Ok(match (&found, given.get(1)) {
                (Value::Undefined(_), Some(usual)) => usual.clone(),
                _ => found,
            })
        };
        return Value::stream(budget, items.iter().map(one).collect::<Result<_>>()?);
    }
    let Some(filter) = take_name(&mut given) else { return failed("`map` needs the name of a filter") };
    let mapped = items.iter().map(|item| apply(&filter, item, given.clone()));
    Value::stream(budget, mapped.collect::<Result<_>>()?)
}

/// Items of a value. A false value has none here, whatever its type.
fn items_if_any(budget: &Budget, value: &Value) -> Result<Vec<Value>> {
    if value.is_true() { value.items(budget) } else { Ok(Vec::new()) }
}

fn take_name(given: &mut GivenArguments) -> Option<Name> {
    if given.positional.is_empty() {
        return None;
    }
    given.positional.remove(0).as_str().map(Name::from)
}

/// Items that pass a test, or fail it, themselves or by an attribute.
fn select(budget: &Budget, name: &str, value: &Value, mut given: GivenArguments) -> Result<Value> {
    let wanted = name.starts_with("select");
    let attribute = match name.ends_with("attr") {
        true if given.positional.is_empty() => {
            return failed(format!("`{name}` needs the name of an attribute"));
        }
        true => Some(given.positional.remove(0)),
        false => None,
    };
    let test = take_name(&mut given);
    let mut selected = Vec::new();
    for item in items_if_any(budget, value)? {
        budget.steps(1)?;
        let tested = by_attribute(budget, &item, attribute.as_ref())?;
        let passes = match &test {
            Some(test) => tests::passes(budget, test, &tested, given.clone())?,
            None => tested.is_true(),
        };
        if passes == wanted {
            selected.push(item);
        }
    }
    Value::stream(budget, selected)
}

fn group(budget: &Budget, value: &Value, given: &Bound<3>) -> Result<Value> {
    let attribute = given.need(0)?;
    let counts_case = given.is_true(2, false);
    let key = |item: Value| {
        let found = by_attribute(budget, &item, Some(attribute))?;
        let found = match (&found, given.given(1)) {
            (Value::Undefined(_), Some(usual)) => usual.clone(),
            _ => found,
        };
        Ok((folded(budget, &found, counts_case)?, item, found))
    };
    let keyed = value.items(budget)?.into_iter().map(key).collect::<Result<Vec<_>>>()?;
    let sorted = sort_by(budget, keyed, &|item: &(Value, Value, Value)| &item.0)?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for (key, item, shown) in sorted {
        match groups.last_mut() {
            Some((last, _, items)) if equal(budget, last, &key)? => items.push(item),
            _ => groups.push((key, shown, vec![item])),
        }
    }
    let made = |(_, shown, items): (Value, Value, Vec<Value>)| {
        let pair = vec![shown, Value::list(budget, items)?];
        Value::sequence(budget, pair, SequenceKind::Group)
    };
    Value::list(budget, groups.into_iter().map(made).collect::<Result<_>>()?)
}

/// `batch`: lists of so many items. `slice`: so many lists.
fn pieces(budget: &Budget, name: &str, value: &Value, given: &Bound<2>) -> Result<Value> {
    given.need(0)?;
    let items = value.items(budget)?;
    let count = match usize::try_from(given.int(0, 0)?) {
        Ok(count) if count > 0 => count,
        _ => return failed(format!("`{name}` needs a number from 1")),
    };
    budget.steps(count)?;
    let fill = given.given(1).cloned();
    let mut lists = Vec::new();
    if name == "batch" {
        for chunk in items.chunks(count) {
            let missing = if fill.is_some() { count - chunk.len() } else { 0 };
            budget.steps(missing)?;
            let rest = std::iter::repeat_n(fill.clone().unwrap_or(Value::None), missing);
            lists.push(Value::list(budget, chunk.iter().cloned().chain(rest).collect())?);
        }
    } else {
        let (each, more) = (items.len() / count, items.len() % count);
        let mut rest = items.into_iter();
        for n in 0..count {
            let mut list: Vec<Value> = rest.by_ref().take(each + usize::from(n < more)).collect();
            list.extend(fill.clone().filter(|_| more > 0 && n >= more));
            lists.push(Value::list(budget, list)?);
        }
    }
    Value::stream(budget, lists)
}

/// Distinct items, in the order of their first appearance.
fn unique(budget: &Budget, value: &Value, given: GivenArguments) -> Result<Value> {
    let given = given.bind("unique", ["case_sensitive", "attribute"])?;
    let mut seen: Vec<Value> = Vec::new();
    let mut items = Vec::new();
    'items: for (key, item) in keyed(budget, value, given.given(1), given.is_true(0, false))? {
        for known in &seen {
            if equal(budget, known, &key)? {
                continue 'items;
            }
        }
        seen.push(key);
        items.push(item);
    }
    Value::stream(budget, items)
}
