//! Fields of a request's JSON, each with its type and its range. An error names the field.

use crate::error::ApiError;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object of a request. Its fields are taken one by one. A copy reads the same object.
#[derive(Clone)]
pub struct Fields {
    rest: Arc<Mutex<Rest>>,
    /// Where the object is, such as `messages[2].`; empty at the top.
    path: String,
}

/// The fields of an object that were not taken yet.
struct Rest {
    members: Map<String, Value>,
    /// Objects in it that were taken, to be read on their own.
    inner: Vec<Fields>,
}

impl Fields {
    /// The body of a request.
    ///
    /// # Errors
    /// When it is no object of JSON.
    pub fn of_body(body: &[u8]) -> Result<Fields, ApiError> {
        let value = serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(format!("the body is no JSON: {error}")))?;
        Fields::of(value, "")
    }

    /// An object at `path`, which is empty or ends before the name of a field.
    ///
    /// # Errors
    /// When it is no object.
    pub fn of(value: Value, path: &str) -> Result<Fields, ApiError> {
        match value {
            Value::Object(object) => {
                let rest = Rest { members: object, inner: Vec::new() };
                Ok(Fields { rest: Arc::new(Mutex::new(rest)), path: path.to_owned() })
            }
            other => {
                let place = path.trim_end_matches('.');
                let (what, name) = if place.is_empty() { ("the body", "") } else { (place, place) };
                Err(ApiError::field(name, format!("{what} is {}, expected an object", kind(&other))))
            }
        }
    }

    /// Name of a field with where it is.
    pub fn name(&self, field: &str) -> String {
        format!("{}{field}", self.path)
    }

    /// An error about a field.
    pub fn wrong(&self, field: &str, found: &Value, expected: &str) -> ApiError {
        let name = self.name(field);
        let message = format!("`{name}` is {}, expected {expected}", shown(found));
        ApiError::field(name, message)
    }

    /// An error about a field that is not there.
    pub fn missing(&self, field: &str) -> ApiError {
        let name = self.name(field);
        let message = format!("`{name}` is missing");
        ApiError::field(name, message)
    }

    /// A field's value; `null` is the same as none.
    pub fn take(&mut self, field: &str) -> Option<Value> {
        self.left().members.shift_remove(field).filter(|value| !value.is_null())
    }

    /// A copy of a field's value, which stays to be taken; `null` is the same as none.
    pub fn look(&self, field: &str) -> Option<Value> {
        self.left().members.get(field).filter(|value| !value.is_null()).cloned()
    }

    fn left(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A text.
    ///
    /// # Errors
    /// When the value is another one.
    pub fn text(&mut self, field: &str) -> Result<Option<String>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(field, &other, "a string")),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// When the value is another one.
    pub fn flag(&mut self, field: &str) -> Result<Option<bool>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong(field, &other, "true or false")),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// When the value is another one, or out of its range.
    pub fn whole(&mut self, field: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.take(field) else { return Ok(None) };
        // Some clients write 1.0.
        let float = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number));
        match value.as_u64().or(float.map(|number| number as u64)).filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let expected = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.wrong(field, &value, &expected))
            }
        }
    }

    /// A number.
    ///
    /// # Errors
    /// When the value is another one, or out of its range.
    pub fn number(&mut self, field: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, ApiError> {
        let Some(value) = self.take(field) else { return Ok(None) };
        match value.as_f64().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let expected = format!("a number from {} to {}", range.start(), range.end());
                Err(self.wrong(field, &value, &expected))
            }
        }
    }

    /// A list.
    ///
    /// # Errors
    /// When the value is another one, or has more than `most` members.
    pub fn list(&mut self, field: &str, most: usize) -> Result<Option<Vec<Value>>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Array(list)) if list.len() <= most => Ok(Some(list)),
            Some(Value::Array(list)) => {
                let name = self.name(field);
                let message = format!("`{name}` has {} members, expected at most {most}", list.len());
                Err(ApiError::field(name, message))
            }
            Some(other) => Err(self.wrong(field, &other, "a list")),
        }
    }

    /// An object.
    ///
    /// # Errors
    /// When the value is another one.
    pub fn object(&mut self, field: &str) -> Result<Option<Fields>, ApiError> {
        match self.take(field) {
            None => Ok(None),
            Some(value) => self.within(field, value).map(Some),
        }
    }

    /// An object that is the value of a field, or of a member of it such as `tools[2]`. Fields that nobody
    /// takes are part of [`Fields::rest`].
    ///
    /// # Errors
    /// When the value is no object.
    pub fn within(&mut self, field: &str, value: Value) -> Result<Fields, ApiError> {
        let read = Fields::of(value, &format!("{}.", self.name(field)))?;
        self.left().inner.push(read.clone());
        Ok(read)
    }

    /// Forgets fields that mean nothing here.
    pub fn pass_over(&mut self, fields: &[&str]) {
        let mut left = self.left();
        fields.iter().for_each(|field| {
            left.members.shift_remove(*field);
        });
    }

    /// Forgets a field whose value means the same as none.
    pub fn pass_over_if(&mut self, field: &str, is_none: impl Fn(&Value) -> bool) {
        if self.look(field).is_some_and(|value| is_none(&value)) {
            self.pass_over(&[field]);
        }
    }

    /// Refuses a field that would change the answer, and that nothing is done about here, unless its value
    /// asks for nothing. `help` is what to do in its place.
    ///
    /// # Errors
    /// When the field asks for something.
    pub fn refuse(
        &mut self,
        field: &str,
        asks_nothing: impl Fn(&Value) -> bool,
        help: &str,
    ) -> Result<(), ApiError> {
        match self.take(field).filter(|value| !asks_nothing(value)) {
            None => Ok(()),
            Some(value) => {
                let name = self.name(field);
                let message = format!("`{name}` is {}, which is not served here: {help}", shown(&value));
                Err(ApiError::field(name, message))
            }
        }
    }

    /// Names of the fields that nobody took, of the objects in this one, too. Fields without a value do not
    /// count.
    pub fn rest(&self) -> Vec<String> {
        let left = self.left();
        let own =
            left.members.iter().filter(|(_, value)| !value.is_null()).map(|(field, _)| self.name(field));
        own.chain(left.inner.iter().flat_map(Fields::rest)).collect()
    }
}

/// The kind of a value, in a word.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value for an error: itself, if it is short.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= 60 { text } else { kind(value).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use serde_json::json;

    #[test]
    fn errors_name_field_value_and_what_was_expected() {
        let body =
            json!({ "a": -1, "b": "x", "c": 1.5, "d": [1, 2, 3], "e": { "f": true }, "g": null, "h": 2.0 });
        let mut fields = Fields::of(body, "").unwrap();
        let message = |result: Result<Option<u64>, super::ApiError>| result.unwrap_err().message().to_owned();
        assert_eq!(message(fields.whole("a", 0..=9)), "`a` is -1, expected a whole number from 0 to 9");
        assert_eq!(message(fields.whole("b", 0..=9)), "`b` is \"x\", expected a whole number from 0 to 9");
        assert_eq!(message(fields.whole("c", 0..=9)), "`c` is 1.5, expected a whole number from 0 to 9");
        assert_eq!(fields.whole("h", 0..=9).unwrap(), Some(2));
        assert_eq!(fields.text("g").unwrap(), None);
        let list = fields.list("d", 2).unwrap_err();
        assert_eq!(list.message(), "`d` has 3 members, expected at most 2");
        let mut inner = fields.object("e").unwrap().unwrap();
        assert_eq!(inner.text("f").unwrap_err().json()["error"]["param"], "e.f");
        assert!(Fields::of_body(b"[1]").err().unwrap().message().contains("the body is a list"));
        assert!(Fields::of_body(b"{").err().unwrap().message().contains("no JSON"));
    }
}
