//! The fields of requests: the name, type, range and words of each, written once.
//! [`super::Fields`] reads by these tables, and `/openapi.json` and `docs/user/fields.md` show them.

use serde_json::{Map, Value, json};

/// A field of an object.
#[derive(Clone, Copy)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Shape of its value.
    pub shape: Shape,
    /// A sentence on it, or nothing.
    pub about: &'static str,
}

/// The shape of a value: its type, and the values that it may have.
#[derive(Clone, Copy)]
pub enum Shape {
    /// A text.
    Text,
    /// A name of at most so many letters, digits, `_`, `-` and `.`.
    Name(usize),
    /// One of some words, as an error lists them, such as `low, medium or high`; and others that are taken.
    Words(&'static str, &'static [&'static str]),
    /// This word.
    Is(&'static str),
    /// True or false.
    Flag,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A number from the first to the second.
    Number(f64, f64),
    /// A number above 0, up to this one.
    Above(f64),
    /// A list of such members: at least so many, and at most so many.
    List(&'static Shape, usize, usize),
    /// An object with these fields.
    Object(Object),
    /// One of several shapes.
    Any(&'static [Shape]),
    /// Anything: the reader looks at it in its own way.
    Anything,
    /// Anything: the field is taken, and changes nothing.
    Passed,
    /// A field that would change the answer, and that nothing is done about here, unless it has one of these
    /// values, which ask for nothing; and what to do in its place.
    Refused(&'static str, &'static str),
    /// A JSON schema, for shapes that no other variant describes.
    Json(fn() -> Value),
}

/// Fields of an object.
#[derive(Clone, Copy)]
pub struct Object {
    /// Name of its schema; empty for one that stands where it is used.
    pub name: &'static str,
    /// Names of fields that must be there.
    pub needed: &'static [&'static str],
    /// Fields of this object alone.
    pub own: &'static [Field],
    /// Objects whose fields it has, too.
    pub more: &'static [&'static Shape],
    /// Names of fields that are taken and change nothing, with spaces between.
    pub passed: &'static str,
}

impl Field {
    /// The field with a sentence on it.
    pub const fn about(self, about: &'static str) -> Field {
        Field { about, ..self }
    }

    /// The schema of the field, which may be null unless it is needed.
    pub fn schema(&self, is_needed: bool) -> Value {
        let mut schema = self.shape.schema(!is_needed);
        let about = match self.shape {
            Shape::Refused(_, help) => format!("Is not served: {help}"),
            _ => self.about.to_owned(),
        };
        if !about.is_empty() {
            schema["description"] = json!(about);
        }
        schema
    }
}

/// A field of this shape.
pub const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, about: "" }
}

/// Short words for fields of a shape.
macro_rules! fields {
    ($($(#[$about:meta])* $maker:ident($($given:ident: $kind:ty),*) => $shape:expr;)*) => {$(
        $(#[$about])*
        pub const fn $maker(name: &'static str, $($given: $kind),*) -> Field {
            field(name, $shape)
        }
    )*};
}

fields! {
    /// A field with a text.
    text() => Shape::Text;
    /// A field with one of some words, as [`Shape::Words`] has them.
    words(told: &'static str) => Shape::Words(told, &[]);
    /// A field with this word.
    is(word: &'static str) => Shape::Is(word);
    /// A field that is true or false.
    flag() => Shape::Flag;
    /// A field with a whole number.
    whole(least: u64, most: u64) => Shape::Whole(least, most);
    /// A field with a number.
    number(least: f64, most: f64) => Shape::Number(least, most);
    /// A field with a list of at most so many.
    list(of: &'static Shape, most: usize) => Shape::List(of, 0, most);
    /// A field with any object.
    free() => object(&[]);
    /// A field with an object of these fields. Those that are `needed` must be there.
    inner(needed: &'static [&'static str], own: &'static [Field]) => object(own).needs(needed);
    /// A field that is refused, unless it has one of these values of JSON; and what to do in its place.
    refused(unless: &'static str, help: &'static str) => Shape::Refused(unless, help);
    /// A field with this schema.
    like(schema: fn() -> Value) => Shape::Json(schema);
}

/// The field `name` with a name of at most so many letters.
pub const fn name(most: usize) -> Field {
    field("name", Shape::Name(most))
}

/// A field that is taken, and changes nothing.
pub const fn passed(name: &'static str) -> Field {
    field(name, Shape::Passed).about("Is taken, and changes nothing")
}

/// An object with these fields.
pub const fn object(own: &'static [Field]) -> Shape {
    Shape::Object(Object { name: "", needed: &[], own, more: &[], passed: "" })
}

impl Shape {
    /// Whether it is an object with a field of this name.
    pub fn has_field(&self, name: &str) -> bool {
        let Shape::Object(object) = self else { return false };
        object.own.iter().any(|field| field.name == name)
            || object.more.iter().any(|more| more.has_field(name))
    }

    /// An object in which these fields must be there.
    pub const fn needs(self, needed: &'static [&'static str]) -> Shape {
        self.named("", needed)
    }

    /// An object whose schema has a name, and in which these fields must be there.
    pub const fn named(self, name: &'static str, needed: &'static [&'static str]) -> Shape {
        match self {
            Shape::Object(object) => Shape::Object(Object { name, needed, ..object }),
            other => other,
        }
    }

    /// An object with more fields, which are taken and change nothing: their names with spaces between.
    pub const fn passing(self, passed: &'static str) -> Shape {
        match self {
            Shape::Object(object) => Shape::Object(Object { passed, ..object }),
            other => other,
        }
    }

    /// An object that has the fields of other ones, too.
    pub const fn with(self, more: &'static [&'static Shape]) -> Shape {
        match self {
            Shape::Object(object) => Shape::Object(Object { more, ..object }),
            other => other,
        }
    }

    /// Fields that a value of this shape may have; a list has those of its members.
    pub fn fields(&self) -> Vec<Field> {
        match self {
            Shape::Object(object) => {
                let more = object.more.iter().flat_map(|more| more.fields());
                let passed = object.passed.split_whitespace().map(passed);
                object.own.iter().copied().chain(more).chain(passed).collect()
            }
            Shape::Any(shapes) => shapes.iter().flat_map(Shape::fields).collect(),
            Shape::List(of, ..) => of.fields(),
            _ => Vec::new(),
        }
    }

    /// Whether a value of a refused field asks for nothing. A list of what a harmless one has is harmless,
    /// too.
    pub fn asks_nothing(&self, value: &Value) -> bool {
        self.harmless().iter().any(|harmless| match (harmless, value) {
            (Value::Array(harmless), Value::Array(given)) => given.iter().all(|one| harmless.contains(one)),
            _ => harmless == value,
        })
    }

    /// Values of a refused field that ask for nothing.
    fn harmless(&self) -> Vec<Value> {
        let Shape::Refused(unless, _) = self else { return Vec::new() };
        serde_json::from_str(&format!("[{unless}]")).unwrap_or_default()
    }

    /// The first and the last of the whole numbers that are taken.
    pub fn range(&self) -> Option<(u64, u64)> {
        match self {
            Shape::Whole(least, most) => Some((*least, *most)),
            Shape::Any(shapes) => shapes.iter().find_map(Shape::range),
            _ => None,
        }
    }

    /// Members of a list at most.
    pub fn most(&self) -> usize {
        match self {
            Shape::List(_, _, most) => *most,
            Shape::Any(shapes) => shapes.iter().map(Shape::most).min().unwrap_or(usize::MAX),
            _ => usize::MAX,
        }
    }

    /// The name of the schema; empty without one.
    pub fn name(&self) -> &'static str {
        if let Shape::Object(object) = self { object.name } else { "" }
    }

    /// The schema of such a value, or of one that may be null.
    fn schema(&self, or_null: bool) -> Value {
        let kind = |name: &str| if or_null { json!([name, "null"]) } else { json!(name) };
        let null = or_null.then_some(Value::Null);
        match self {
            Shape::Text => json!({ "type": kind("string") }),
            Shape::Name(most) => {
                json!({ "type": kind("string"), "pattern": format!("^[A-Za-z0-9_.-]{{1,{most}}}$") })
            }
            Shape::Words(told, others) => {
                let told = told.split(", ").flat_map(|word| word.split(" or "));
                let told = told.map(|word| word.trim_matches('"')).chain(others.iter().copied());
                json!({ "enum": told.map(Value::from).chain(null).collect::<Vec<_>>() })
            }
            Shape::Is(word) => json!({ "const": word }),
            Shape::Flag => json!({ "type": kind("boolean") }),
            Shape::Whole(least, u64::MAX) => json!({ "type": kind("integer"), "minimum": least }),
            Shape::Whole(least, most) => {
                json!({ "type": kind("integer"), "minimum": least, "maximum": most })
            }
            Shape::Number(least, most) => {
                json!({ "type": kind("number"), "minimum": least, "maximum": most })
            }
            Shape::Above(most) => json!({ "type": kind("number"), "exclusiveMinimum": 0, "maximum": most }),
            Shape::List(of, least, most) => {
                let mut schema = json!({ "type": kind("array"), "items": of.schema(false) });
                if *least > 0 {
                    schema["minItems"] = json!(least);
                }
                if *most < usize::MAX {
                    schema["maxItems"] = json!(most);
                }
                schema
            }
            Shape::Object(object) if !object.name.is_empty() => {
                let schema = json!({ "$ref": format!("#/components/schemas/{}", object.name) });
                if or_null { json!({ "anyOf": [schema, { "type": "null" }] }) } else { schema }
            }
            Shape::Object(_) => self.whole(kind("object")),
            Shape::Any(shapes) => {
                let null = null.map(|_| json!({ "type": "null" }));
                json!({ "anyOf": shapes.iter().map(|shape| shape.schema(false)).chain(null).collect::<Vec<_>>() })
            }
            Shape::Anything | Shape::Passed => json!({}),
            Shape::Refused(..) => {
                json!({ "enum": self.harmless().into_iter().chain(null).collect::<Vec<_>>() })
            }
            Shape::Json(schema) => schema(),
        }
    }

    /// The schema of an object, written out.
    fn whole(&self, kind: Value) -> Value {
        let mut schema = json!({ "type": kind });
        if let Shape::Object(object) = self {
            for field in self.fields() {
                let is_needed = object.needed.contains(&field.name);
                schema["properties"][field.name] = field.schema(is_needed);
            }
            if !object.needed.is_empty() {
                schema["required"] = json!(object.needed);
            }
        }
        schema
    }

    /// Adds the schemas that have names: this one and those inside of it.
    pub fn define(&self, schemas: &mut Map<String, Value>) {
        let name = self.name();
        if schemas.contains_key(name) {
            return;
        }
        if !name.is_empty() {
            schemas.insert(name.to_owned(), self.whole(json!("object")));
        }
        match self {
            Shape::Any(shapes) => shapes.iter().for_each(|shape| shape.define(schemas)),
            Shape::List(of, ..) => of.define(schemas),
            _ => self.fields().iter().for_each(|field| field.shape.define(schemas)),
        }
    }
}
