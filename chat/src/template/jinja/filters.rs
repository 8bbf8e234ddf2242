//! Filters that look at one value: its text, its numbers, its JSON.

use super::arguments::GivenArguments;
use super::budget::{Budget, Result, failed};
use super::lists;
use super::text::{TemplateText, TextBuilder, is_space};
use super::value::{SequenceKind, Value};
use super::write::{Json, text};
use super::{format, methods, names};

/// The result of a filter.
pub(super) fn apply(budget: &Budget, name: &str, value: &Value, given: GivenArguments) -> Result<Value> {
    budget.steps(1)?;
    if let (Value::Undefined(what), "int" | "float") = (value, name) {
        return failed(what.to_string());
    }
    if names::is_list_filter(name) {
        let apply = |name: &str, value: &Value, given| apply(budget, name, value, given);
        return lists::apply(budget, name, value, given, &apply);
    }
    match name {
        "default" | "d" => {
            let given = given.bind(name, ["default_value", "boolean"])?;
            let is_missing =
                matches!(value, Value::Undefined(_)) || given.is_true(1, false) && !value.is_true();
            let usual = || given.get(0).cloned().unwrap_or_else(|| Value::text(""));
            Ok(if is_missing { usual() } else { value.clone() })
        }
        "length" | "count" => {
            given.bind(name, [])?;
            Ok(Value::Int(value.length(budget)? as i64))
        }
        "tojson" => json(budget, value, given),
        "attr" => {
            let given = given.bind(name, ["name"])?;
            let name = given.need_text(0)?.as_str();
            // Items do not count here.
            match value {
                Value::Dict(_) if !names::has(value, name) => {
                    Ok(Value::undefined(format!("there is no `{name}`")))
                }
                _ => super::operate::attribute(budget, value, &name.into()),
            }
        }
        "abs" => {
            given.bind(name, [])?;
            match (value, value.as_int()) {
                (Value::Float(number), _) => Ok(Value::Float(number.abs())),
                (_, Some(number)) => Ok(Value::Int(number.saturating_abs())),
                _ => failed(format!("a value of type {} has no amount", value.type_name())),
            }
        }
        "int" => int(value, given),
        "float" => {
            let given = given.bind(name, ["default"])?;
            let read = match value {
                Value::Text(text) => number(text.as_str()),
                value => value.as_float(),
            };
            Ok(read.map_or_else(|| given.get(0).cloned().unwrap_or(Value::Float(0.0)), Value::Float))
        }
        "round" => round(value, given),
        "string" | "safe" => {
            given.bind(name, [])?;
            Ok(Value::Text(text(budget, value)?))
        }
        "pprint" => {
            given.bind(name, ["verbose"])?;
            let mut out = TextBuilder::new(budget);
            super::write::represent(&mut out, value)?;
            Ok(Value::Text(out.finish()))
        }
        _ => of_text(budget, name, value, given),
    }
}

/// Filters that take the value as a text.
fn of_text(budget: &Budget, name: &str, value: &Value, given: GivenArguments) -> Result<Value> {
    let whole = text(budget, value)?;
    budget.spend(whole.as_str().len() / 4)?;
    let method =
        |given: GivenArguments| methods::call(budget, &Value::Text(whole.clone()), &name.into(), given);
    let made = match name {
        "upper" | "lower" | "capitalize" => return method(given),
        "title" => whole.map(budget, str::to_lowercase).and_then(|lower| titled(budget, &lower))?,
        "trim" => {
            let given = given.bind(name, ["chars"])?;
            methods::stripped(budget, &whole, given.text(0)?.map(TemplateText::as_str), [true, true])?
        }
        "replace" => {
            let given = given.bind(name, ["old", "new", "count"])?;
            let count = if given.given(2).is_some() { given.count(2, -1)? } else { usize::MAX };
            let [old, new] = [text(budget, given.need(0)?)?, text(budget, given.need(1)?)?];
            methods::replaced(budget, &whole, &old, &new, count)?
        }
        "center" => {
            let given = given.bind(name, ["width"])?;
            let arguments =
                GivenArguments { positional: vec![Value::Int(given.int(0, 80)?)], named: Vec::new() };
            return method(arguments);
        }
        "escape" | "e" | "forceescape" => {
            given.bind(name, [])?;
            whole.map(budget, |run| {
                let escaped = run.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                escaped.replace('"', "&#34;").replace('\'', "&#39;")
            })?
        }
        "format" => {
            if !given.named.is_empty() {
                let named = GivenArguments::named_dict(budget, given.named)?;
                return Ok(Value::Text(format::percent(budget, &whole, &named)?));
            }
            let values = Value::tuple(budget, given.positional)?;
            format::percent(budget, &whole, &values)?
        }
        "wordcount" => {
            given.bind(name, [])?;
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let count = whole.as_str().split(|c| !is_part(c)).filter(|word| !word.is_empty()).count();
            return Ok(Value::Int(count as i64));
        }
        "truncate" => truncate(budget, &whole, given)?,
        "indent" => indent(budget, &whole, given)?,
        _ => return failed(format!("unknown filter `{name}`")),
    };
    Ok(Value::Text(made))
}

/// Every word with a capital. Words are between spaces, hyphens and opening brackets.
fn titled(budget: &Budget, text: &TemplateText) -> Result<TemplateText> {
    let is_start = std::cell::Cell::new(true);
    text.map(budget, |run| {
        let mut changed = String::with_capacity(run.len());
        for c in run.chars() {
            if is_start.get() {
                changed.extend(c.to_uppercase())
            } else {
                changed.push(c)
            }
            is_start.set(is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<'));
        }
        changed
    })
}

/// The first characters of a text, up to a word's end, and three points; texts that are a little longer stay.
fn truncate(budget: &Budget, text: &TemplateText, given: GivenArguments) -> Result<TemplateText> {
    let given = given.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let (length, leeway) = (given.int(0, 255)?, if given.given(3).is_some() { given.int(3, 5)? } else { 5 });
    let end = given.text(2)?.cloned().unwrap_or_else(|| TemplateText::of_template("..."));
    let whole = text.as_str();
    let most = length - end.as_str().chars().count() as i64;
    if most < 0 || leeway < 0 {
        return failed("`truncate` has a length that is too small");
    }
    if whole.chars().count() as i64 <= length.saturating_add(leeway) {
        return Ok(text.clone());
    }
    let cut = whole.char_indices().nth(most as usize).map_or(whole.len(), |(at, _)| at);
    let cut = if given.is_true(1, false) { cut } else { whole[..cut].rfind(' ').unwrap_or(cut) };
    let mut out = TextBuilder::new(budget);
    out.push_part(text, 0..cut)?;
    out.push_text(&end)?;
    Ok(out.finish())
}

/// Lines with a text before each, as a rule but before the first and empty ones.
fn indent(budget: &Budget, text: &TemplateText, given: GivenArguments) -> Result<TemplateText> {
    let given = given.bind("indent", ["width", "first", "blank"])?;
    let width = match given.get(0) {
        Some(Value::Text(text)) => text.clone(),
        _ => {
            let mut spaces = TextBuilder::new(budget);
            spaces.repeat(&TemplateText::of_template(" "), usize::try_from(given.int(0, 4)?).unwrap_or(0))?;
            spaces.finish()
        }
    };
    let (first, blank) = (given.is_true(1, false), given.is_true(2, false));
    let whole = text.as_str();
    let mut lines = methods::lines(whole, false);
    // A newline at the end begins a separate line.
    if whole.is_empty() || lines.last().is_some_and(|last| last.end < whole.len()) {
        lines.push(whole.len()..whole.len());
    }
    let mut out = TextBuilder::new(budget);
    for (n, line) in lines.into_iter().enumerate() {
        if n > 0 {
            out.own("\n")?;
        }
        if if n == 0 { first } else { blank || !line.is_empty() } {
            out.push_text(&width)?;
        }
        out.push_part(text, line)?;
    }
    Ok(out.finish())
}

/// A number as Python's `float` reads it.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_space);
    let is_named = |name: &str| text.trim_start_matches(['+', '-']).eq_ignore_ascii_case(name);
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '_' | 'e' | 'E' | '+' | '-'));
    if !is_plain && !["inf", "infinity", "nan"].into_iter().any(is_named) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn int(value: &Value, given: GivenArguments) -> Result<Value> {
    let given = given.bind("int", ["default", "base"])?;
    let usual = || Ok(given.get(0).cloned().unwrap_or(Value::Int(0)));
    let whole = |x: f64| if x.is_finite() && x.abs() < 9e18 { Some(Value::Int(x as i64)) } else { None };
    match (value, value.as_int()) {
        (_, Some(number)) => Ok(Value::Int(number)),
        (Value::Float(x), _) => whole(*x).map_or_else(usual, Ok),
        (Value::Text(text), _) => {
            let base =
                u32::try_from(given.int(1, 10)?).ok().filter(|base| (2..=36).contains(base)).unwrap_or(10);
            let text = text.as_str().trim_matches(is_space).replace('_', "");
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => ("-", digits),
                None => ("", text.strip_prefix('+').unwrap_or(&text)),
            };
            let prefix = match base {
                16 => ["0x", "0X"],
                8 => ["0o", "0O"],
                2 => ["0b", "0B"],
                _ => ["", ""],
            };
            let digits = prefix.iter().find_map(|prefix| digits.strip_prefix(*prefix)).unwrap_or(digits);
            match i64::from_str_radix(&format!("{sign}{digits}"), base) {
                Ok(number) => Ok(Value::Int(number)),
                Err(_) => number(&text).and_then(whole).map_or_else(usual, Ok),
            }
        }
        _ => usual(),
    }
}

fn round(value: &Value, given: GivenArguments) -> Result<Value> {
    let given = given.bind("round", ["precision", "method"])?;
    let precision = given.int(0, 0)?.clamp(-300, 300) as i32;
    let method = given.text(1)?.map_or("common", TemplateText::as_str);
    let Some(x) = value.as_float() else {
        return failed(format!("a value of type {} cannot be rounded", value.type_name()));
    };
    let scale = 10f64.powi(precision);
    let rounded = match method {
        "ceil" => (x * scale).ceil() / scale,
        "floor" => (x * scale).floor() / scale,
        "common" if precision >= 0 => format!("{x:.*}", precision as usize).parse().unwrap_or(x),
        "common" => (x * scale).round_ties_even() / scale,
        _ => return failed("`round` has the methods common, ceil and floor"),
    };
    // Python rounds whole numbers to such.
    Ok(match (value.as_int(), method) {
        (Some(_), "common") => Value::Int(rounded as i64),
        _ => Value::Float(rounded),
    })
}

/// `tojson` as transformers has it: JSON of Python's `json.dumps`, with its options.
fn json(budget: &Budget, value: &Value, given: GivenArguments) -> Result<Value> {
    let given = given.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let indent = match given.given(1) {
        None => None,
        Some(Value::Text(text)) => Some(text.as_str().to_owned()),
        Some(_) => Some(" ".repeat(given.count(1, 0)?.min(64))),
    };
    let usual = [if indent.is_some() { "," } else { ", " }, ": "];
    let [item, key] = match given.given(2) {
        None => usual.map(TemplateText::of_template),
        Some(Value::List(list))
            if list.items.len() == 2 && matches!(list.kind, SequenceKind::Tuple | SequenceKind::List) =>
        {
            [text(budget, &list.items[0])?, text(budget, &list.items[1])?]
        }
        Some(_) => return failed("`separators` of `tojson` needs two texts"),
    };
    let options =
        Json { indent, item, key, is_ascii: given.is_true(0, false), is_sorted: given.is_true(3, false) };
    let mut out = TextBuilder::new(budget);
    options.write(&mut out, value, 0)?;
    Ok(Value::Text(out.finish()))
}
