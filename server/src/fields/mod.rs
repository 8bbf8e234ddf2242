//! Fields of a request's JSON, read by the table of what they are. An error names the field.

pub mod shape;

use crate::error::ApiError;
use serde_json::{Map, Value};
use shape::Shape;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object of a request. Its fields are taken one by one. A copy reads the same object.
#[derive(Clone)]
pub struct Fields {
    rest: Arc<Mutex<Rest>>,
    /// The fields that it may have.
    shape: Shape,
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
    /// The body of a request of this shape.
    ///
    /// # Errors
    /// When it is no object of JSON.
    pub fn of_body(shape: &Shape, body: &[u8]) -> Result<Fields, ApiError> {
        let value = serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(format!("the body is no JSON: {error}")))?;
        Fields::of(shape, value, "")
    }

    /// An object of this shape at `path`, which is empty or ends before the name of a field.
    ///
    /// # Errors
    /// When it is no object.
    pub fn of(shape: &Shape, value: Value, path: &str) -> Result<Fields, ApiError> {
        match value {
            Value::Object(object) => {
                let rest = Rest { members: object, inner: Vec::new() };
                Ok(Fields { rest: Arc::new(Mutex::new(rest)), shape: *shape, path: path.to_owned() })
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

    /// An error about a field that has none of its words.
    pub fn unlisted(&self, field: &str, found: &str) -> ApiError {
        let told = if let Some(Shape::Words(told, _)) = self.shape_of(field) { told } else { "another one" };
        self.wrong(field, &Value::from(found), told)
    }

    /// An error about a field that is not there.
    pub fn missing(&self, field: &str) -> ApiError {
        let name = self.name(field);
        let message = format!("`{name}` is missing");
        ApiError::field(name, message)
    }

    /// The shape of a field, or of a member such as `tools[2]`.
    fn shape_of(&self, field: &str) -> Option<Shape> {
        let name = field.split('[').next();
        self.shape.fields().iter().find(|field| Some(field.name) == name).map(|field| field.shape)
    }

    /// A field's value; `null` is the same as none.
    pub fn take(&mut self, field: &str) -> Option<Value> {
        let is_known = || self.shape.fields().is_empty() || self.shape_of(field).is_some();
        debug_assert!(is_known(), "`{field}` is in no table");
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

    /// A text that must be there.
    ///
    /// # Errors
    /// When the field is missing, or has another type.
    pub fn needed_text(&mut self, field: &str) -> Result<String, ApiError> {
        self.text(field)?.ok_or_else(|| self.missing(field))
    }

    /// A name that must be there. It is part of the prompt's structure, so that it has few characters.
    ///
    /// # Errors
    /// When it is missing, has other characters than names have, or is too long.
    pub fn needed_name(&mut self, field: &str) -> Result<String, ApiError> {
        let name = self.needed_text(field)?;
        if let Some(Shape::Name(most)) = self.shape_of(field) {
            check_name(&self.name(field), &name, most)?;
        }
        Ok(name)
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
    pub fn whole(&mut self, field: &str) -> Result<Option<u64>, ApiError> {
        let (least, most) = self.shape_of(field).and_then(|shape| shape.range()).unwrap_or((0, u64::MAX));
        let Some(value) = self.take(field) else { return Ok(None) };
        // Some clients write 1.0.
        let float = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number));
        match value
            .as_u64()
            .or(float.map(|number| number as u64))
            .filter(|number| (least..=most).contains(number))
        {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(field, &value, &format!("a whole number from {least} to {most}"))),
        }
    }

    /// A number.
    ///
    /// # Errors
    /// When the value is another one, or out of its range.
    pub fn number(&mut self, field: &str) -> Result<Option<f64>, ApiError> {
        let (least, most, is_open) = match self.shape_of(field) {
            Some(Shape::Number(least, most)) => (least, most, false),
            Some(Shape::Above(most)) => (0.0, most, true),
            _ => (f64::MIN, f64::MAX, false),
        };
        let Some(value) = self.take(field) else { return Ok(None) };
        match value.as_f64().filter(|number| (least..=most).contains(number)) {
            Some(0.0) if is_open => {
                let name = self.name(field);
                Err(ApiError::field(&name, format!("`{name}` is 0, expected more: 0.01, say")))
            }
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(field, &value, &format!("a number from {least} to {most}"))),
        }
    }

    /// A list.
    ///
    /// # Errors
    /// When the value is another one, or has too many members.
    pub fn list(&mut self, field: &str) -> Result<Option<Vec<Value>>, ApiError> {
        let most = self.shape_of(field).map_or(usize::MAX, |shape| shape.most());
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
        let shape = self.shape_of(field).unwrap_or(Shape::Anything);
        let read = Fields::of(&shape, value, &format!("{}.", self.name(field)))?;
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

    /// Refuses fields that would change the answer, and that nothing is done about here.
    ///
    /// # Errors
    /// When one of them asks for something.
    pub fn refuse(&mut self) -> Result<(), ApiError> {
        for field in self.shape.fields() {
            if let Shape::Refused(_, help) = field.shape
                && let Some(value) = self.take(field.name).filter(|value| !field.shape.asks_nothing(value))
            {
                let name = self.name(field.name);
                let message = format!("`{name}` is {}, which is not served here: {help}", shown(&value));
                return Err(ApiError::field(name, message));
            }
        }
        Ok(())
    }

    /// Names of the fields that nobody took, of the objects in this one, too. Fields without a value do not
    /// count.
    pub fn rest(&self) -> Vec<String> {
        let (left, fields) = (self.left(), self.shape.fields());
        let is_passed = |name: &str| {
            fields.iter().any(|field| field.name == name && matches!(field.shape, Shape::Passed))
        };
        let own = left.members.iter().filter(|(field, value)| !value.is_null() && !is_passed(field));
        let own = own.map(|(field, _)| self.name(field));
        own.chain(left.inner.iter().flat_map(Fields::rest)).collect()
    }
}

/// Checks a name of at most `most` letters.
///
/// # Errors
/// When it has other characters than names have, or is too long.
pub fn check_name(param: &str, name: &str, most: usize) -> Result<(), ApiError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=most).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let message = format!("`{param}` must have 1 to {most} letters, digits, `_`, `-` and `.`");
    Err(ApiError::field(param, message))
}

/// The type of a value, in words.
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
    use super::shape::{Shape, free, list, object, text, whole};
    use serde_json::json;

    const SHAPE: Shape = object(&[
        whole("a", 0, 9),
        whole("b", 0, 9),
        whole("c", 0, 9),
        list("d", &Shape::Anything, 2),
        free("e"),
        text("g"),
        whole("h", 0, 9),
    ]);

    #[test]
    fn errors_name_field_value_and_what_was_expected() {
        let body =
            json!({ "a": -1, "b": "x", "c": 1.5, "d": [1, 2, 3], "e": { "f": true }, "g": null, "h": 2.0 });
        let mut fields = Fields::of(&SHAPE, body, "").unwrap();
        let message = |result: Result<Option<u64>, super::ApiError>| result.unwrap_err().message().to_owned();
        assert_eq!(message(fields.whole("a")), "`a` is -1, expected a whole number from 0 to 9");
        assert_eq!(message(fields.whole("b")), "`b` is \"x\", expected a whole number from 0 to 9");
        assert_eq!(message(fields.whole("c")), "`c` is 1.5, expected a whole number from 0 to 9");
        assert_eq!(fields.whole("h").unwrap(), Some(2));
        assert_eq!(fields.text("g").unwrap(), None);
        let list = fields.list("d").unwrap_err();
        assert_eq!(list.message(), "`d` has 3 members, expected at most 2");
        let mut inner = fields.object("e").unwrap().unwrap();
        assert_eq!(inner.text("f").unwrap_err().json()["error"]["param"], "e.f");
        assert!(Fields::of_body(&SHAPE, b"[1]").err().unwrap().message().contains("the body is a list"));
        assert!(Fields::of_body(&SHAPE, b"{").err().unwrap().message().contains("no JSON"));
    }
}
