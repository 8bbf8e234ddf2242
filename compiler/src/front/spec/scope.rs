//! The meaning of expressions and names in a spec, and their places in the file.

use super::number::{self, Number};
use super::{BlockDef, Result, Scalar, ScalarText, Spec, SpecError, SpecText};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// A window that sees everything.
pub(crate) const FULL: &str = "full";
/// A rope that rotates nothing.
pub(crate) const NONE: &str = "none";

/// The meaning of expressions and names at some place.
pub(crate) struct NameScope<'a> {
    pub(crate) spec: &'a Spec,
    /// Layer number, inside the template.
    pub(crate) layer: Option<usize>,
    /// Whether that is the last layer.
    pub(crate) in_last_layer: bool,
    /// Per-layer values.
    pub(crate) values: Rc<BTreeMap<&'a str, LayerValue<'a>>>,
    /// The block that the nodes are of, and the name of its value in the layer.
    pub(crate) block: Option<(&'a BlockDef, &'a str)>,
}

/// A per-layer value in a layer.
pub(crate) struct LayerValue<'a> {
    pub(crate) number: Option<Number>,
    /// The name of a block or rope, [`FULL`] or [`NONE`].
    pub(crate) name: Option<&'a str>,
}

impl<'a> NameScope<'a> {
    pub(crate) fn source(&self) -> &'a SpecText {
        &self.spec.source
    }

    /// An error, which says the layer it was found in.
    pub(crate) fn error(&self, span: Range<usize>, message: &str, label: impl Into<String>) -> SpecError {
        let message = match self.layer {
            Some(layer) if layer > 0 => format!("{message} (in layer {layer})"),
            _ => message.to_owned(),
        };
        SpecError::new(self.source(), span, message, label)
    }

    /// The name that `text` stands for: what a per-layer value names, else itself.
    pub(crate) fn name_of<'n>(&'n self, text: &'n str) -> &'n str {
        self.values.get(text).and_then(|value| value.name).unwrap_or(text)
    }

    /// The full name of a value of this place.
    pub(crate) fn value_name(&self, name: &str) -> String {
        match (self.layer, self.block) {
            (Some(layer), Some((block, out))) => match block.nodes.last() {
                Some(last) if last.out.value == name => format!("layers.{layer}.{out}"),
                _ => format!("layers.{layer}.{out}.{name}"),
            },
            (Some(layer), None) => format!("layers.{layer}.{name}"),
            _ => name.to_owned(),
        }
    }

    /// The value of `scalar`.
    pub(crate) fn evaluate(&self, scalar: &Scalar) -> Result<Number> {
        let lookup = |name: &str| match self.values.get(name) {
            Some(value) => value.number,
            None => self.spec.dims.get(name).copied(),
        };
        let names =
            || self.spec.dims.keys().cloned().chain(self.values.keys().map(ToString::to_string)).collect();
        evaluate(self.source(), scalar, &lookup, &names)
    }

    /// A whole number in `min..=max`.
    pub(crate) fn whole(&self, scalar: &Scalar, what: &str, min: u64, max: u64) -> Result<u64> {
        let expected = format!("expected a whole number from {min} to {max}");
        match self.evaluate(scalar)? {
            Number::Int(i) if u64::try_from(i).is_ok_and(|i| (min..=max).contains(&i)) => Ok(i as u64),
            Number::Float(x) if matches!(&scalar.value, ScalarText::Expr(t) if t.contains('/')) => Err(self
                .error(
                    scalar.span.clone(),
                    &format!("{what} is {x}: the division leaves a remainder"),
                    expected,
                )),
            value => Err(self.error(scalar.span.clone(), &format!("{what} is {value}"), expected)),
        }
    }

    /// A number above 0 that f32 can hold.
    pub(crate) fn positive(&self, scalar: &Scalar, what: &str) -> Result<f64> {
        let value = self.evaluate(scalar)?.to_f64();
        if value as f32 > 0.0 && (value as f32).is_finite() {
            return Ok(value);
        }
        Err(self.error(scalar.span.clone(), &format!("{what} is {value}"), "expected a number above 0"))
    }
}

/// The value of `scalar`; `names` lists what `lookup` knows, for suggestions.
pub(crate) fn evaluate(
    source: &SpecText,
    scalar: &Scalar,
    lookup: &dyn Fn(&str) -> Option<Number>,
    names: &dyn Fn() -> Vec<String>,
) -> Result<Number> {
    let text = match &scalar.value {
        ScalarText::Number(number) => return Ok(*number),
        ScalarText::Expr(text) => text,
    };
    number::evaluate(text, lookup).map_err(|e| {
        let span = inner_span(source, &scalar.span, text, &e.span);
        let error = SpecError::new(source, span, e.message, e.expected);
        match &e.unknown {
            Some(name) => error.near(name, names().iter().map(String::as_str)),
            None => error,
        }
    })
}

/// Where bytes `inner` of a string's content stand in the file; all of the string if it has escapes.
pub(crate) fn inner_span(
    source: &SpecText,
    string: &Range<usize>,
    content: &str,
    inner: &Range<usize>,
) -> Range<usize> {
    let start = string.start + 1;
    match source.text().get(start..start + content.len()) {
        Some(text) if text == content => start + inner.start..start + inner.end,
        _ => string.clone(),
    }
}
