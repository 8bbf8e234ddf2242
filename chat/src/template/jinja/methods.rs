//! Methods of texts, lists and dictionaries, those of Python that change nothing.

use super::arguments::GivenArguments;
use super::ast::Name;
use super::budget::{Budget, Result, failed};
use super::text::{TemplateText, TextBuilder, is_space};
use super::value::{Dict, SequenceKind, Value, check_key, equal};
use super::write::is_printable;
use super::{format, names};
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// The result of a method.
pub(super) fn call(budget: &Budget, value: &Value, name: &Name, given: GivenArguments) -> Result<Value> {
    match value {
        Value::Text(text) => of_text(budget, text, name, given),
        Value::Dict(dict) => of_dict(budget, value, dict, name, given),
        Value::Float(number) => Ok(Value::Bool(number.fract() == 0.0)),
        _ if &**name == "copy" => Ok(value.clone()),
        _ if names::changes(value, name) => {
            failed(format!("`{name}` changes a list, which templates may not"))
        }
        _ => {
            let wanted = given.bind(name, ["value"])?;
            let wanted = wanted.need(0)?;
            let mut places = Vec::new();
            for (at, item) in value.items(budget)?.iter().enumerate() {
                if equal(budget, item, wanted)? {
                    places.push(at as i64);
                }
            }
            match (&**name, places.first()) {
                ("count", _) => Ok(Value::Int(places.len() as i64)),
                (_, Some(at)) => Ok(Value::Int(*at)),
                (_, None) => failed("`index` finds no such item"),
            }
        }
    }
}

fn of_dict(budget: &Budget, value: &Value, dict: &Dict, name: &Name, given: GivenArguments) -> Result<Value> {
    let parts = dict.entries().iter();
    match &**name {
        "get" => {
            let given = given.bind("get", ["key", "default"])?;
            check_key(budget, given.need(0)?)?;
            let found = dict.get(budget, given.need(0)?)?.cloned();
            Ok(found.or_else(|| given.get(1).cloned()).unwrap_or(Value::None))
        }
        "copy" => Ok(value.clone()),
        "items" => {
            let pairs = parts.map(|(key, value)| Value::tuple(budget, vec![key.clone(), value.clone()]));
            Value::sequence(budget, pairs.collect::<Result<_>>()?, SequenceKind::View("dict_items"))
        }
        "keys" => Value::sequence(
            budget,
            parts.map(|(key, _)| key.clone()).collect(),
            SequenceKind::View("dict_keys"),
        ),
        "values" => Value::sequence(
            budget,
            parts.map(|(_, value)| value.clone()).collect(),
            SequenceKind::View("dict_values"),
        ),
        name => failed(format!("`{name}` changes a dictionary, which templates may not")),
    }
}

fn of_text(budget: &Budget, text: &TemplateText, name: &Name, given: GivenArguments) -> Result<Value> {
    let whole = text.as_str();
    budget.spend(whole.len() / 4)?;
    let made = |text: Result<TemplateText>| text.map(Value::Text);
    match &**name {
        "upper" => made(text.map(budget, str::to_uppercase)),
        "lower" | "casefold" => made(text.map(budget, str::to_lowercase)),
        "title" => made(title(budget, text)),
        "capitalize" => made(capitalized(budget, text)),
        "swapcase" => made(text.map(budget, |run| run.chars().map(swapped).collect())),
        "strip" | "lstrip" | "rstrip" => {
            let given = given.bind(name, ["chars"])?;
            made(stripped(
                budget,
                text,
                given.text(0)?.map(TemplateText::as_str),
                [&**name != "rstrip", &**name != "lstrip"],
            ))
        }
        "split" | "rsplit" => {
            let given = given.bind(name, ["sep", "maxsplit"])?;
            let separator = given.text(0)?.map(TemplateText::as_str);
            if separator == Some("") {
                return failed(format!("`{name}` needs a separator that is not empty"));
            }
            let ranges = split(whole, separator, given.count(1, -1)?, &**name == "rsplit");
            parts(budget, text, ranges)
        }
        "splitlines" => {
            let given = given.bind(name, ["keepends"])?;
            parts(budget, text, lines(whole, given.is_true(0, false)))
        }
        "partition" | "rpartition" => {
            let given = given.bind(name, ["sep"])?;
            let separator = given.need_text(0)?;
            let (mark, end) = (separator.as_str(), whole.len());
            if mark.is_empty() {
                return failed(format!("`{name}` needs a separator that is not empty"));
            }
            let found = if &**name == "partition" { whole.find(mark) } else { whole.rfind(mark) };
            let ranges = match found {
                Some(at) => [0..at, at..at + mark.len(), at + mark.len()..end],
                None if &**name == "partition" => [0..end, end..end, end..end],
                None => [0..0, 0..0, 0..end],
            };
            let texts = ranges.map(|range| made(text.slice(budget, range)));
            Value::tuple(budget, texts.into_iter().collect::<Result<_>>()?)
        }
        "replace" => {
            let given = given.bind(name, ["old", "new", "count"])?;
            made(replaced(budget, text, given.need_text(0)?, given.need_text(1)?, given.count(2, -1)?))
        }
        "removeprefix" | "removesuffix" => {
            let given = given.bind(name, ["affix"])?;
            let affix = given.need_text(0)?.as_str();
            let range = if &**name == "removeprefix" {
                whole.len() - whole.strip_prefix(affix).unwrap_or(whole).len()..whole.len()
            } else {
                0..whole.strip_suffix(affix).unwrap_or(whole).len()
            };
            made(text.slice(budget, range))
        }
        "startswith" | "endswith" => {
            let given = given.bind(name, ["affix", "start", "end"])?;
            let part = &whole[span(whole, given.given(1), given.given(2))?];
            let affixes = match given.need(0)? {
                Value::List(list) if list.kind == SequenceKind::Tuple => list.items.clone(),
                one => vec![one.clone()],
            };
            let mut fits = false;
            for affix in &affixes {
                let Some(affix) = affix.as_str() else {
                    return failed(format!("`{name}` needs a text or a tuple of texts"));
                };
                fits |= if &**name == "startswith" { part.starts_with(affix) } else { part.ends_with(affix) };
            }
            Ok(Value::Bool(fits))
        }
        "find" | "rfind" | "index" | "rindex" | "count" => {
            let given = given.bind(name, ["sub", "start", "end"])?;
            let range = span(whole, given.given(1), given.given(2))?;
            let (part, wanted) = (&whole[range.clone()], given.need_text(0)?.as_str());
            if &**name == "count" {
                return Ok(Value::Int(part.matches(wanted).count() as i64));
            }
            let found = if name.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) };
            match found {
                Some(at) => Ok(Value::Int(whole[..range.start + at].chars().count() as i64)),
                None if name.ends_with("find") => Ok(Value::Int(-1)),
                None => failed(format!("`{name}` finds no such text")),
            }
        }
        "join" => {
            let given = given.bind(name, ["items"])?;
            let mut joined = TextBuilder::new(budget);
            for (n, item) in given.need(0)?.items(budget)?.iter().enumerate() {
                let Value::Text(item) = item else {
                    return failed(format!(
                        "`join` takes texts, and there is a value of type {}",
                        item.type_name()
                    ));
                };
                if n > 0 {
                    joined.push_text(text)?;
                }
                joined.push_text(item)?;
            }
            made(Ok(joined.finish()))
        }
        "center" | "ljust" | "rjust" => {
            let given = given.bind(name, ["width", "fillchar"])?;
            given.need(0)?;
            let fill = given.text(1)?.cloned().unwrap_or_else(|| TemplateText::of_template(" "));
            let missing =
                usize::try_from(given.int(0, 0)?).unwrap_or(0).saturating_sub(whole.chars().count());
            let before = match &**name {
                "ljust" => 0,
                "rjust" => missing,
                _ => missing / 2 + (missing & (missing + whole.chars().count()) & 1),
            };
            made(padded(budget, text, &fill, [before, missing - before]))
        }
        "zfill" => {
            let given = given.bind(name, ["width"])?;
            let missing =
                usize::try_from(given.int(0, 0)?).unwrap_or(0).saturating_sub(whole.chars().count());
            let sign = usize::from(whole.starts_with(['+', '-']));
            let mut out = TextBuilder::new(budget);
            out.push_part(text, 0..sign)?;
            out.repeat(&TemplateText::of_template("0"), missing)?;
            out.push_part(text, sign..whole.len())?;
            made(Ok(out.finish()))
        }
        "expandtabs" => {
            let given = given.bind(name, ["tabsize"])?;
            let (size, column) = (given.count(0, 8)?, Cell::new(0));
            let mut out = TextBuilder::new(budget);
            for (run, is_template) in text.runs() {
                for c in run.chars() {
                    if c == '\t' {
                        let width =
                            if size == usize::MAX || size == 0 { 0 } else { size - column.get() % size };
                        out.repeat(&TemplateText::of_template(" "), width)?;
                        column.set(column.get() + width);
                    } else {
                        out.push(c.encode_utf8(&mut [0; 4]), is_template)?;
                        column.set(if matches!(c, '\n' | '\r') { 0 } else { column.get() + 1 });
                    }
                }
            }
            made(Ok(out.finish()))
        }
        "format" => made(format::braces(budget, text, &given)),
        "format_map" => {
            let values = given.bind(name, ["mapping"])?;
            let mut named = Vec::new();
            if let Value::Dict(dict) = values.need(0)? {
                let entries = dict.entries().iter();
                named.extend(entries.filter_map(|(key, value)| Some((key.as_str()?.into(), value.clone()))));
            }
            made(format::braces(budget, text, &GivenArguments { positional: Vec::new(), named }))
        }
        "encode" => failed("`encode` makes bytes, which templates cannot use"),
        name => Ok(Value::Bool(is_of(whole, name))),
    }
}

/// Whether a text is of a kind, by the name of Python's method.
fn is_of(text: &str, method: &str) -> bool {
    let all = |accepts: fn(char) -> bool| !text.is_empty() && text.chars().all(accepts);
    let cased = |accepts: fn(char) -> bool| {
        let mut letters = text.chars().filter(|c| c.is_lowercase() || c.is_uppercase()).peekable();
        letters.peek().is_some() && letters.all(accepts)
    };
    match method {
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => text.is_ascii(),
        "isdecimal" | "isdigit" => all(|c| c.is_numeric() && (c.is_ascii_digit() || !c.is_ascii())),
        "isnumeric" => all(char::is_numeric),
        "isidentifier" => {
            text.chars().next().is_some_and(|c| c == '_' || c.is_alphabetic())
                && text.chars().all(|c| c == '_' || c.is_alphanumeric())
        }
        "islower" => cased(char::is_lowercase),
        "isupper" => cased(char::is_uppercase),
        "isprintable" => text.chars().all(is_printable),
        "isspace" => all(is_space),
        // Capitals begin words, and nothing else does.
        _ => {
            let mut has_letter = false;
            let mut follows = false;
            text.chars().all(|c| {
                let fits = if c.is_uppercase() { !follows } else { !c.is_lowercase() || follows };
                follows = c.is_uppercase() || c.is_lowercase();
                has_letter |= follows;
                fits
            }) && has_letter
        }
    }
}

fn swapped(c: char) -> String {
    if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
}

/// Every word with a capital, and else small.
pub(super) fn title(budget: &Budget, text: &TemplateText) -> Result<TemplateText> {
    let follows = Cell::new(false);
    text.map(budget, |run| {
        let mut changed = String::with_capacity(run.len());
        for c in run.chars() {
            if follows.get() {
                changed.extend(c.to_lowercase())
            } else {
                changed.extend(c.to_uppercase())
            }
            follows.set(c.is_alphabetic());
        }
        changed
    })
}

/// A capital first, and else small.
pub(super) fn capitalized(budget: &Budget, text: &TemplateText) -> Result<TemplateText> {
    let follows = Cell::new(false);
    text.map(budget, |run| {
        let mut changed = String::with_capacity(run.len());
        for c in run.chars() {
            if follows.replace(true) {
                changed.extend(c.to_lowercase())
            } else {
                changed.extend(c.to_uppercase())
            }
        }
        changed
    })
}

/// A text without some characters, or space, at its ends.
pub(super) fn stripped(
    budget: &Budget,
    text: &TemplateText,
    chars: Option<&str>,
    [left, right]: [bool; 2],
) -> Result<TemplateText> {
    let whole = text.as_str();
    let goes = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let end = if right { whole.trim_end_matches(goes).len() } else { whole.len() };
    let start = if left { end - whole[..end].trim_start_matches(goes).len() } else { 0 };
    text.slice(budget, start..end)
}

/// A text with one part of it replaced by another, as often as a count allows.
pub(super) fn replaced(
    budget: &Budget,
    text: &TemplateText,
    old: &TemplateText,
    new: &TemplateText,
    count: usize,
) -> Result<TemplateText> {
    let (mut out, mut at) = (TextBuilder::new(budget), 0);
    for (start, found) in text.as_str().match_indices(old.as_str()).take(count) {
        out.push_part(text, at..start)?;
        out.push_text(new)?;
        at = start + found.len();
    }
    out.push_part(text, at..text.as_str().len())?;
    Ok(out.finish())
}

/// A text with a character before and behind it, so many times each.
pub(super) fn padded(
    budget: &Budget,
    text: &TemplateText,
    fill: &TemplateText,
    [before, behind]: [usize; 2],
) -> Result<TemplateText> {
    let mut out = TextBuilder::new(budget);
    out.repeat(fill, before)?;
    out.push_text(text)?;
    out.repeat(fill, behind)?;
    Ok(out.finish())
}

fn parts(budget: &Budget, text: &TemplateText, ranges: Vec<Range<usize>>) -> Result<Value> {
    let texts = ranges.into_iter().map(|range| text.slice(budget, range).map(Value::Text));
    Value::list(budget, texts.collect::<Result<_>>()?)
}

/// The bytes between two numbers of characters, as slices have them.
fn span(text: &str, start: Option<&Value>, end: Option<&Value>) -> Result<Range<usize>> {
    if start.is_none() && end.is_none() {
        return Ok(0..text.len());
    }
    let length = text.chars().count() as i64;
    let place = |bound: Option<&Value>, usual: i64| {
        let at = bound.and_then(Value::as_int).unwrap_or(usual);
        let at = if at < 0 { at.saturating_add(length) } else { at }.clamp(0, length);
        text.char_indices().nth(at as usize).map_or(text.len(), |(at, _)| at)
    };
    let start = place(start, 0);
    Ok(start..place(end, length).max(start))
}

/// Parts of a text between separators, or between spaces, with at most so many cuts.
fn split(text: &str, separator: Option<&str>, most: usize, from_end: bool) -> Vec<Range<usize>> {
    let place = |part: &str| {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        start..start + part.len()
    };
    let cuts = most.saturating_add(1);
    let mut ranges: Vec<Range<usize>> = match (separator, from_end) {
        (Some(separator), false) => text.splitn(cuts, separator).map(place).collect(),
        (Some(separator), true) => text.rsplitn(cuts, separator).map(place).collect(),
        (None, false) => {
            let (mut ranges, mut rest) = (Vec::new(), text.trim_start_matches(is_space));
            while !rest.is_empty() {
                let end =
                    if ranges.len() == most { rest.len() } else { rest.find(is_space).unwrap_or(rest.len()) };
                ranges.push(place(&rest[..end]));
                rest = rest[end..].trim_start_matches(is_space);
            }
            ranges
        }
        (None, true) => {
            let (mut ranges, mut rest) = (Vec::new(), text.trim_end_matches(is_space));
            while !rest.is_empty() {
                let last = |(at, c): (usize, char)| at + c.len_utf8();
                let found = rest.char_indices().rev().find(|(_, c)| is_space(*c)).map(last);
                let start = if ranges.len() == most { 0 } else { found.unwrap_or(0) };
                ranges.push(place(&rest[start..]));
                rest = rest[..start].trim_end_matches(is_space);
            }
            ranges
        }
    };
    if from_end {
        ranges.reverse();
    }
    ranges
}

/// Lines of a text, with or without their ends.
pub(super) fn lines(text: &str, keeps_ends: bool) -> Vec<Range<usize>> {
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let (mut ranges, mut start) = (Vec::new(), 0);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !is_end(c) {
            continue;
        }
        let mut next = at + c.len_utf8();
        if c == '\r' && chars.next_if(|(_, c)| *c == '\n').is_some() {
            next += 1;
        }
        ranges.push(start..if keeps_ends { next } else { at });
        start = next;
    }
    if start < text.len() {
        ranges.push(start..text.len());
    }
    ranges
}

/// A dictionary's entries as pairs.
pub(super) fn pairs(budget: &Budget, dict: &Rc<Dict>) -> Result<Vec<Value>> {
    dict.entries().iter().map(|(key, value)| Value::tuple(budget, vec![key.clone(), value.clone()])).collect()
}
