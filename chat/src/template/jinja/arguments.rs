//! Arguments of functions, methods, filters and tests.

use super::ast::Name;
use super::budget::{Budget, Result, failed};
use super::text::TemplateText;
use super::value::{Dict, Value};
use std::rc::Rc;

/// Arguments that were given.
#[derive(Clone, Default)]
pub(super) struct GivenArguments {
    pub positional: Vec<Value>,
    pub named: Vec<(Name, Value)>,
}

impl GivenArguments {
    /// The arguments of the parameters `names` of `what`, which has no others.
    pub fn bind<const N: usize>(self, what: &str, names: [&str; N]) -> Result<Bound<N>> {
        if self.positional.len() > N {
            return failed(format!("`{what}` has {} arguments, expected at most {N}", self.positional.len()));
        }
        let mut values = [const { None }; N];
        for (place, value) in values.iter_mut().zip(self.positional) {
            *place = Some(value);
        }
        for (name, value) in self.named {
            match names.iter().position(|known| **known == *name) {
                Some(at) if values[at].is_none() => values[at] = Some(value),
                Some(_) => return failed(format!("`{what}` has the argument `{name}` twice")),
                None => return failed(format!("`{what}` has no argument `{name}`")),
            }
        }
        Ok(Bound { what: what.to_owned(), names: names.map(str::to_owned), values })
    }

    /// Named arguments as a dictionary.
    pub fn named_dict(budget: &Budget, named: Vec<(Name, Value)>) -> Result<Value> {
        let entries = named.into_iter().map(|(name, value)| (Value::text(name), value));
        Ok(Value::Dict(Rc::new(Dict::of(budget, entries)?)))
    }
}

/// Arguments by their parameters.
pub(super) struct Bound<const N: usize> {
    what: String,
    names: [String; N],
    values: [Option<Value>; N],
}

impl<const N: usize> Bound<N> {
    /// An argument, if it was given.
    pub fn get(&self, at: usize) -> Option<&Value> {
        self.values[at].as_ref()
    }

    /// An argument, if it was given and is not none.
    pub fn given(&self, at: usize) -> Option<&Value> {
        self.get(at).filter(|value| !matches!(value, Value::None))
    }

    pub fn need(&self, at: usize) -> Result<&Value> {
        match self.get(at) {
            Some(value) => Ok(value),
            None => failed(format!("`{}` needs the argument `{}`", self.what, self.names[at])),
        }
    }

    pub fn int(&self, at: usize, usual: i64) -> Result<i64> {
        match self.get(at) {
            None => Ok(usual),
            Some(value) => match value.as_int() {
                Some(number) => Ok(number),
                None => self.wrong(at, "a whole number"),
            },
        }
    }

    /// An argument as a count; what is negative is `usize::MAX`.
    pub fn count(&self, at: usize, usual: i64) -> Result<usize> {
        Ok(usize::try_from(self.int(at, usual)?).unwrap_or(usize::MAX))
    }

    /// An argument that is a text, if it was given and is not none.
    pub fn text(&self, at: usize) -> Result<Option<&TemplateText>> {
        match self.given(at) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => self.wrong(at, "a text"),
        }
    }

    pub fn need_text(&self, at: usize) -> Result<&TemplateText> {
        match self.need(at)? {
            Value::Text(text) => Ok(text),
            _ => self.wrong(at, "a text"),
        }
    }

    pub fn is_true(&self, at: usize, usual: bool) -> bool {
        self.get(at).map_or(usual, Value::is_true)
    }

    fn wrong<T>(&self, at: usize, wanted: &str) -> Result<T> {
        let found = self.values[at].as_ref().map_or("nothing", Value::type_name);
        failed(format!(
            "the argument `{}` of `{}` is of type {found}, expected {wanted}",
            self.names[at], self.what
        ))
    }
}
