//! Typed access to TOML tables, with the errors that every section shares.

use super::number::Number;
use super::{Result, Scalar, ScalarText, Source, Spanned, SpecError};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A value of the parsed document.
pub(super) type Item<'a> = toml::Spanned<DeValue<'a>>;

/// A table whose keys are known.
pub(super) struct Section<'a> {
    pub(super) source: &'a Source,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    /// What it is, for errors: `[model]`, `this tensor`.
    what: String,
}

impl<'a> Section<'a> {
    /// `item` as a table.
    pub(super) fn new(source: &'a Source, item: &'a Item<'a>, what: &str) -> Result<Section<'a>> {
        match item.get_ref() {
            DeValue::Table(table) => Ok(Section { source, table, span: item.span(), what: what.to_owned() }),
            _ => Err(wrong_type(source, item, &format!("a table ({what})"))),
        }
    }

    /// The whole document.
    pub(super) fn root(source: &'a Source, table: &'a DeTable<'a>) -> Section<'a> {
        Section { source, table, span: 0..0, what: "the spec".to_owned() }
    }

    /// Refuses keys that are not among `known`.
    pub(super) fn only(self, known: &[&str]) -> Result<Section<'a>> {
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
    pub(super) fn entries(&self) -> Vec<(Spanned<String>, &'a Item<'a>)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .map(|(key, item)| (Spanned { value: key.get_ref().to_string(), span: key.span() }, item))
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Item<'a>> {
        self.table.get(key)
    }

    pub(super) fn require(&self, key: &str) -> Result<&'a Item<'a>> {
        self.get(key).ok_or_else(|| self.missing(key))
    }

    /// The error that `key` is missing.
    pub(super) fn missing(&self, key: &str) -> SpecError {
        let message = format!("{} lacks `{key}`", self.what);
        SpecError::new(self.source, self.span.clone(), message, format!("expected a key `{key}` here"))
    }
}

/// A non-empty string.
pub(super) fn string(source: &Source, item: &Item<'_>) -> Result<Spanned<String>> {
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

pub(super) fn boolean(source: &Source, item: &Item<'_>) -> Result<bool> {
    item.get_ref().as_bool().ok_or_else(|| wrong_type(source, item, "true or false"))
}

pub(super) fn array<'a>(source: &Source, item: &'a Item<'a>) -> Result<&'a [Item<'a>]> {
    match item.get_ref() {
        DeValue::Array(array) => Ok(array),
        _ => Err(wrong_type(source, item, "an array")),
    }
}

/// A number or the text of an expression.
pub(super) fn scalar(source: &Source, item: &Item<'_>) -> Result<Scalar> {
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

pub(super) fn scalars(source: &Source, item: &Item<'_>) -> Result<Spanned<Vec<Scalar>>> {
    let items = array(source, item)?.iter().map(|i| scalar(source, i)).collect::<Result<Vec<_>>>()?;
    if items.is_empty() {
        return Err(SpecError::new(source, item.span(), "an empty array", "expected at least one number"));
    }
    Ok(Spanned { value: items, span: item.span() })
}

/// Names of things: identifiers, so that expressions can use them.
pub(super) fn check_name(source: &Source, name: &Spanned<String>) -> Result<()> {
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

pub(super) fn wrong_type(source: &Source, item: &Item<'_>, expected: &str) -> SpecError {
    let found = item.get_ref().type_str();
    let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
    SpecError::new(
        source,
        item.span(),
        format!("wrong type: {article} {found}"),
        format!("expected {expected}"),
    )
}
