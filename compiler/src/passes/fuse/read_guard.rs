//! TOML to guards.

use super::guard::{Guard, GuardCheck, Quantity};
use super::repeat::{is_repeated, names_of};
use super::rule::PatternNode;
use crate::front::spec::section::{SpannedValue, SpecSection, one_of, string, strings, whole};
use crate::front::spec::{Result, Spanned, SpecError, SpecText};
use crate::ir::RowKind;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;

/// Guards, and the keys of each besides `check`, `when`, `why` and those of quantities.
pub(super) const GUARDS: [(&str, &[&str]); 8] = [
    ("used_only_by", &["value", "user"]),
    ("is_output", &["value"]),
    ("multiple_of", &["by"]),
    ("between", &["min", "max"]),
    ("same_cols", &["of"]),
    ("format", &["of", "is"]),
    ("rows", &["of", "is"]),
    ("features", &["has"]),
];

/// The node of the pattern that is named.
pub(super) fn capture<'p>(
    source: &SpecText,
    pattern: &'p [PatternNode],
    name: &Spanned<String>,
) -> Result<&'p PatternNode> {
    let mut named = pattern.iter().filter(|node| node.copy == 0);
    if let Some(node) = named.find(|node| node.capture == name.value) {
        return Ok(node);
    }
    let message = format!("there is no node `{}`", name.value);
    let error =
        SpecError::new(source, name.span.clone(), message, "expected the name of a node of the pattern");
    let named = pattern.iter().filter(|node| node.copy == 0);
    Err(error.near(&name.value, named.map(|node| node.capture.as_str())))
}

/// A guard over the nodes of `pattern`.
pub(super) fn guard(source: &SpecText, pattern: &[PatternNode], item: &SpannedValue<'_>) -> Result<Guard> {
    let section = SpecSection::new(source, item, "a guard")?;
    let check = string(source, section.require("check")?)?;
    let quantities = Quantity::NAMED.map(|(name, _)| name);
    let keys = one_of(source, &check, &GUARDS, "check")?;
    let numeric = matches!(check.value.as_str(), "multiple_of" | "between");
    let quantities: &[&str] = if numeric { &quantities } else { &[] };
    let what = format!("this `{}` guard", check.value);
    let section = SpecSection::new(source, item, &what)?;
    let section = section.only(&[&["check", "when", "why"], keys, quantities].concat())?;
    let one = |key: &str| -> Result<String> {
        let name = string(source, section.require(key)?)?;
        capture(source, pattern, &name).map(|node| node.capture.clone())
    };
    let check = match check.value.as_str() {
        "used_only_by" => {
            let user = one("user")?;
            if is_repeated(pattern, &user) {
                let item = section.require("user")?;
                let message = format!("`{user}` is repeated and cannot be the one reader");
                return Err(SpecError::new(
                    source,
                    item.span(),
                    message,
                    "expected a node that is there once",
                ));
            }
            GuardCheck::UsedOnlyBy { value: one("value")?, user }
        }
        "is_output" => GuardCheck::IsOutput { value: one("value")? },
        "multiple_of" => {
            let divisor = whole(source, section.require("by")?, 1, i64::from(u32::MAX))? as usize;
            GuardCheck::MultipleOf { quantity: quantity(source, &section, item, &one)?, divisor }
        }
        "between" => {
            let bound = |key: &str, default: usize| match section.get(key) {
                Some(item) => whole(source, item, 0, i64::from(u32::MAX)).map(|n| n as usize),
                None => Ok(default),
            };
            let quantity = quantity(source, &section, item, &one)?;
            GuardCheck::Between { quantity, min: bound("min", 0)?, max: bound("max", usize::MAX)? }
        }
        "same_cols" => {
            let names = strings(source, section.require("of")?)?;
            names.iter().try_for_each(|name| capture(source, pattern, name).map(drop))?;
            if names.iter().map(|name| names_of(pattern, &name.value).len()).sum::<usize>() < 2 {
                let item = section.require("of")?;
                return Err(SpecError::new(
                    source,
                    item.span(),
                    "nothing to compare",
                    "expected at least two nodes",
                ));
            }
            GuardCheck::SameCols { of: names.into_iter().map(|name| name.value).collect() }
        }
        "format" => {
            let known = WeightFormat::ALL.map(|format| (format.name(), format));
            let formats = strings(source, section.require("is")?)?;
            let formats = formats.iter().map(|name| one_of(source, name, &known, "format"));
            GuardCheck::Format { of: one("of")?, formats: formats.collect::<Result<_>>()? }
        }
        "rows" => {
            let rows = string(source, section.require("is")?)?;
            GuardCheck::RowsOf {
                of: one("of")?,
                rows: one_of(source, &rows, &RowKind::NAMED, "kind of rows")?,
            }
        }
        _ => {
            let mut known: Vec<(&str, ())> =
                Level::ALL.iter().flat_map(|level| level.features().names()).map(|name| (name, ())).collect();
            known.sort_unstable();
            known.dedup();
            let names = strings(source, section.require("has")?)?;
            names.iter().try_for_each(|name| one_of(source, name, &known, "CPU feature"))?;
            GuardCheck::Features { names: names.into_iter().map(|name| name.value).collect() }
        }
    };
    let when = section.get("when").map(|item| string(source, item)).transpose()?;
    if let Some(name) = &when
        && !capture(source, pattern, name)?.optional
    {
        let message = format!("`{}` is always there", name.value);
        return Err(SpecError::new(source, name.span.clone(), message, "expected an optional node"));
    }
    let why = string(source, section.require("why")?)?.value;
    Ok(Guard { check, when: when.map(|name| name.value), why })
}

/// The one quantity that a guard is about.
fn quantity(
    source: &SpecText,
    section: &SpecSection<'_>,
    item: &SpannedValue<'_>,
    capture: &dyn Fn(&str) -> Result<String>,
) -> Result<Quantity> {
    let given: Vec<_> = Quantity::NAMED.iter().filter(|(key, _)| section.get(key).is_some()).collect();
    match given.as_slice() {
        [(key, make)] => Ok(make(capture(key)?)),
        _ => {
            let names = Quantity::NAMED.map(|(name, _)| name);
            let message = format!("the guard is about {} numbers", given.len());
            Err(SpecError::new(
                source,
                item.span(),
                message,
                format!("expected one of: {}", names.join(", ")),
            ))
        }
    }
}
