//! Typed access to TOML tables, with the errors that every section shares.

use super::number::Number;
use super::{Result, Scalar, ScalarText, Spanned, SpecError, SpecText};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A value of the parsed document.
pub(crate) type SpannedValue<'a> = toml::Spanned<DeValue<'a>>;

/// A table whose keys are known.
pub(crate) struct SpecSection<'a> {
    pub(crate) source: &'a SpecText,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    /// The section's name, for errors: `[model]`, `this tensor`.
    what: String,
}

impl<'a> SpecSection<'a> {
    /// `item` as a table.
    pub(crate) fn new(
        source: &'a SpecText,
        item: &'a SpannedValue<'a>,
        what: &str,
    ) -> Result<SpecSection<'a>> {
        match item.get_ref() {
            DeValue::Table(table) => {
                Ok(SpecSection { source, table, span: item.span(), what: what.to_owned() })
            }
            _ => Err(wrong_type(source, item, &format!("a table ({what})"))),
        }
    }

    /// The whole document.
    pub(crate) fn root(source: &'a SpecText, table: &'a DeTable<'a>, what: &str) -> SpecSection<'a> {
        SpecSection { source, table, span: 0..0, what: what.to_owned() }
    }

    /// Refuses keys that are not among `known`.
    pub(crate) fn only(self, known: &[&str]) -> Result<SpecSection<'a>> {
        for (key, _) in self.entries() {
            if !known.contains(&key.value.as_str()) {
                let message = format!("unknown key `{}` in {}", key.value, self.what);
                let label = format!("expected one of: {}", known.join(", "));
                let error = SpecError::new(self.source, key.span, message, label);
                return Err(error.near(&key.value, known.iter().copied()));
            }
        }
        Ok(self)
    }

    /// Keys and values in order of appearance.
    pub(crate) fn entries(&self) -> Vec<(Spanned<String>, &'a SpannedValue<'a>)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, item)| (Spanned { value: key.get_ref().to_string(), span: key.span() }, item))
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a SpannedValue<'a>> {
        self.table.get(key)
    }

    pub(crate) fn require(&self, key: &str) -> Result<&'a SpannedValue<'a>> {
        self.get(key).ok_or_else(|| self.missing(key))
    }

    /// The error that `key` is missing.
    pub(crate) fn missing(&self, key: &str) -> SpecError {
        let message = format!("{} lacks `{key}`", self.what);
        SpecError::new(self.source, self.span.clone(), message, format!("expected a key `{key}` here"))
    }
}

/// A non-empty string.
pub(crate) fn string(source: &SpecText, item: &SpannedValue<'_>) -> Result<Spanned<String>> {
    match item.get_ref() {
        DeValue::String(text) if !text.is_empty() => {
            Ok(Spanned { value: text.to_string(), span: item.span() })
        }
        DeValue::String(_) => {
            Err(SpecError::new(source, item.span(), "an empty string", "expected some text"))
        }
        _ => Err(wrong_type(source, item, "a string")),
    }
}

pub(crate) fn boolean(source: &SpecText, item: &SpannedValue<'_>) -> Result<bool> {
    item.get_ref().as_bool().ok_or_else(|| wrong_type(source, item, "true or false"))
}

pub(crate) fn array<'a>(source: &SpecText, item: &'a SpannedValue<'a>) -> Result<&'a [SpannedValue<'a>]> {
    match item.get_ref() {
        DeValue::Array(array) => Ok(array),
        _ => Err(wrong_type(source, item, "an array")),
    }
}

/// An array of non-empty strings, or one string.
pub(crate) fn strings(source: &SpecText, item: &SpannedValue<'_>) -> Result<Vec<Spanned<String>>> {
    match item.get_ref() {
        DeValue::String(_) => Ok(vec![string(source, item)?]),
        DeValue::Array(array) => array.iter().map(|item| string(source, item)).collect(),
        _ => Err(wrong_type(source, item, "a string or an array of strings")),
    }
}

/// A whole number in `min..=max`.
pub(crate) fn whole(source: &SpecText, item: &SpannedValue<'_>, min: i64, max: i64) -> Result<i64> {
    let label = format!("expected a whole number from {min} to {max}");
    match scalar(source, item)?.value {
        ScalarText::Number(Number::Int(i)) if (min..=max).contains(&i) => Ok(i),
        ScalarText::Number(number) => {
            Err(SpecError::new(source, item.span(), format!("{number} is out of range"), label))
        }
        ScalarText::Expr(_) => Err(wrong_type(source, item, "a whole number")),
    }
}

/// One of `known`, by its name; `what` it is, for errors.
pub(crate) fn one_of<T: Copy>(
    source: &SpecText,
    name: &Spanned<String>,
    known: &[(&str, T)],
    what: &str,
) -> Result<T> {
    if let Some((_, value)) = known.iter().find(|(other, _)| *other == name.value) {
        return Ok(*value);
    }
    let names = || known.iter().map(|(name, _)| *name);
    let label = format!("expected one of: {}", names().collect::<Vec<_>>().join(", "));
    let error = SpecError::new(source, name.span.clone(), format!("unknown {what} `{}`", name.value), label);
    Err(error.near(&name.value, names()))
}

/// A number or the text of an expression.
pub(crate) fn scalar(source: &SpecText, item: &SpannedValue<'_>) -> Result<Scalar> {
    let bad = |expected: &str| wrong_type(source, item, expected);
    let value = match item.get_ref() {
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
            .map(|i| ScalarText::Number(Number::Int(i)))
            .map_err(|_| bad("a whole number of at most 64 bits"))?,
        DeValue::Float(f) => match f.as_str().parse::<f64>() {
            Ok(value) if value.is_finite() => ScalarText::Number(Number::Float(value)),
            _ => return Err(bad("a finite number")),
        },
        DeValue::String(text) => ScalarText::Expr(text.to_string()),
        _ => return Err(bad("a number or an expression over dims")),
    };
    Ok(Spanned { value, span: item.span() })
}

pub(crate) fn scalars(source: &SpecText, item: &SpannedValue<'_>) -> Result<Spanned<Vec<Scalar>>> {
    let items = array(source, item)?.iter().map(|i| scalar(source, i)).collect::<Result<Vec<_>>>()?;
    if items.is_empty() {
        return Err(SpecError::new(source, item.span(), "an empty array", "expected at least one number"));
    }
    Ok(Spanned { value: items, span: item.span() })
}

/// Names of things: identifiers, so that expressions can use them.
pub(crate) fn check_name(source: &SpecText, name: &Spanned<String>) -> Result<()> {
    let text = &name.value;
    let ok = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if ok {
        return Ok(());
    }
    Err(SpecError::new(
        source,
        name.span.clone(),
        format!("`{text}` is not a name"),
        "expected letters, digits and `_`, not starting with a digit",
    ))
}

pub(crate) fn wrong_type(source: &SpecText, item: &SpannedValue<'_>, expected: &str) -> SpecError {
    let found = item.get_ref().type_str();
    let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
    SpecError::new(
        source,
        item.span(),
        format!("wrong type: {article} {found}"),
        format!("expected {expected}"),
    )
}
