//! The form that a request holds its answer to, by any of the fields that servers have for one.

use crate::error::ApiError;
use crate::fields::Fields;
use crate::fields::shape::{Shape, field, flag, free, inner, object, refused, text, words};
use crate::limits;
use crate::scope::RequestScope;
use kernmill_chat::ResponseFormat;
use kernmill_constrain::Rule;
use serde_json::{Value, json};

/// An object with a `type` that describes a form, with a schema of its own or of one inside.
pub const FORMAT: Shape = object(&[
    words("type", "\"text\", \"json_object\" or \"json_schema\""),
    field("json_schema", object(&[]).needs(&["schema"]).with(&[&SCHEMA])),
    free("value"),
])
.named("Format", &["type"])
.with(&[&SCHEMA]);

const SCHEMA: Shape = object(&[text("name"), text("description"), free("schema"), flag("strict")]);

const JSON_SCHEMA: Shape = Shape::Json(|| json!({ "type": ["object", "string", "null"] }));
const CHOICE: Shape = Shape::List(&Shape::Text, 1, limits::MESSAGES);
const REGEX: Shape =
    Shape::Json(|| json!({ "type": ["string", "null"], "description": "Needs the option --allow-grammars" }));
const GRAMMAR: Shape = Shape::Json(|| {
    let about = "Lark's syntax; needs the option --allow-grammars";
    json!({ "type": ["string", "null"], "examples": ["start: \"yes\" | \"no\""], "description": about })
});

/// Fields that [`AnswerExtras::take`] reads.
pub const FORMS: Shape = object(&[
    inner(
        "kernmill",
        &[],
        &[field("regex", REGEX), field("lark", GRAMMAR), field("grammar", GRAMMAR), flag("drafts")],
    ),
    inner(
        "structured_outputs",
        &[],
        &[
            field("json", JSON_SCHEMA),
            field("regex", REGEX),
            field("choice", CHOICE),
            field("grammar", GRAMMAR),
            flag("json_object"),
            refused("structural_tag", "", "give `json`, `regex`, `choice` or `grammar`"),
        ],
    )
    .about("One of them"),
    field("guided_json", JSON_SCHEMA),
    field("guided_regex", REGEX),
    field("guided_choice", CHOICE),
    field("guided_grammar", GRAMMAR),
    field("json_schema", JSON_SCHEMA),
    field("regex", REGEX),
    field("grammar", GRAMMAR),
    field("ebnf", GRAMMAR),
])
.named("FormFields", &[]);

/// The form that an answer shall have, if a request asks for one.
#[derive(Debug, Default)]
pub struct AnswerForm {
    /// The field that it came from, for errors; empty without a form.
    pub field: String,
    /// JSON that a schema describes. The model is told the schema, where its format has a place for it.
    pub schema: Option<ResponseFormat>,
    /// A text that an expression or a grammar describes.
    pub text: Option<Rule>,
}

/// Extras of OpenAI's routes besides messages and tools: the form of the answer, and whether steps may check
/// guesses of how it goes on.
pub struct AnswerExtras {
    /// The form of the answer.
    pub wanted: AnswerForm,
    /// Whether steps may check guesses.
    pub drafts: bool,
}

impl AnswerExtras {
    /// Reads the object `kernmill` and the fields that vLLM, SGLang and llama.cpp have for the form of a
    /// text.
    ///
    /// # Errors
    /// When a field is wrong, there are two forms, or the server does not permit one.
    pub fn take(scope: &RequestScope<'_>, fields: &mut Fields) -> Result<AnswerExtras, ApiError> {
        let (mut wanted, mut drafts) = (AnswerForm::default(), true);
        if let Some(mut own) = fields.object("kernmill")? {
            wanted.regex(scope, &mut own, "regex")?;
            wanted.grammar(scope, &mut own, "lark")?;
            wanted.grammar(scope, &mut own, "grammar")?;
            drafts = own.flag("drafts")?.unwrap_or(true);
            if let Some(unknown) = own.rest().first() {
                let message = format!("`{unknown}` is not known, expected regex, lark or drafts");
                return Err(ApiError::field(unknown, message));
            }
        }
        // vLLM's, and the names that they had before.
        if let Some(mut outputs) = fields.object("structured_outputs")? {
            wanted.of_names(scope, &mut outputs, ["json", "regex", "choice", "grammar"])?;
            if outputs.flag("json_object")? == Some(true) {
                wanted.any_object(outputs.name("json_object"))?;
            }
            outputs.refuse()?;
        }
        wanted.of_names(scope, fields, ["guided_json", "guided_regex", "guided_choice", "guided_grammar"])?;
        // Names that llama.cpp and SGLang have.
        wanted.json(fields, "json_schema")?;
        wanted.regex(scope, fields, "regex")?;
        wanted.grammar(scope, fields, "grammar")?;
        wanted.grammar(scope, fields, "ebnf")?;
        Ok(AnswerExtras { wanted, drafts })
    }
}

impl AnswerForm {
    /// Reads an object with a `type`, as OpenAI's and Anthropic's APIs describe a form, of the field `field`.
    ///
    /// # Errors
    /// When the object is wrong, or there is another form.
    pub fn take(&mut self, fields: &mut Fields, field: &str) -> Result<(), ApiError> {
        let Some(mut format) = fields.object(field)? else { return Ok(()) };
        let kind = format.needed_text("type")?;
        let name = fields.name(field);
        match kind.as_str() {
            "text" => Ok(()),
            "json_object" => {
                // Other servers take a schema here.
                let schema =
                    ["schema", "value"].into_iter().find_map(|field| Some((field, format.take(field)?)));
                match schema {
                    None => self.any_object(name),
                    Some((_, schema @ Value::Object(_))) => self.schema(name, "json_object", None, schema),
                    Some((field, other)) => Err(format.wrong(field, &other, "a JSON schema")),
                }
            }
            "json_schema" => {
                // OpenAI's chat API has the schema in a separate object.
                let is_flat = field != "response_format" || format.look("schema").is_some();
                let mut inner = match format.object("json_schema")? {
                    Some(inner) => inner,
                    None if is_flat => format,
                    None => return Err(format.missing("json_schema")),
                };
                let title = inner.text("name")?.unwrap_or_else(|| "answer".to_owned());
                let description = inner.text("description")?;
                // An answer always follows its schema to the letter.
                inner.flag("strict")?;
                let schema = inner.take("schema").ok_or_else(|| inner.missing("schema"))?;
                if !schema.is_object() {
                    return Err(inner.wrong("schema", &schema, "a JSON schema"));
                }
                self.schema(name, &title, description, schema)
            }
            _ => Err(format.unlisted("type", &kind)),
        }
    }

    /// A form that the field `field` gives, if it gives any JSON object.
    ///
    /// # Errors
    /// When there is another form.
    pub fn any_object(&mut self, field: String) -> Result<(), ApiError> {
        self.schema(field, "json_object", None, json!({ "type": "object" }))
    }

    /// A form that the field `field` gives: JSON of this schema.
    ///
    /// # Errors
    /// When there is another form.
    pub fn schema(
        &mut self,
        field: String,
        name: &str,
        description: Option<String>,
        schema: Value,
    ) -> Result<(), ApiError> {
        self.add(field, Some(ResponseFormat { name: name.to_owned(), description, schema }), None)
    }

    /// The rule that the text of an answer is held to.
    pub fn rule(&self) -> Option<Rule> {
        let schema = self.schema.as_ref().map(|format| Rule::JsonSchema(format.schema.clone()));
        self.text.clone().or(schema)
    }

    fn add(
        &mut self,
        field: String,
        schema: Option<ResponseFormat>,
        text: Option<Rule>,
    ) -> Result<(), ApiError> {
        let of = |format: &Option<ResponseFormat>| format.as_ref().map(|format| format.schema.clone());
        if self.field.is_empty() {
            *self = AnswerForm { field, schema, text };
        } else if of(&self.schema) != of(&schema) || self.text != text {
            let message = format!("the text has two forms: give `{}` or `{field}`, and not both", self.field);
            return Err(ApiError::field(field, message));
        }
        Ok(())
    }

    /// Forms under the names that an object has for JSON, an expression, a choice and a grammar.
    fn of_names(
        &mut self,
        scope: &RequestScope<'_>,
        fields: &mut Fields,
        names: [&str; 4],
    ) -> Result<(), ApiError> {
        let [json, regex, choice, grammar] = names;
        self.json(fields, json)?;
        self.regex(scope, fields, regex)?;
        self.choice(fields, choice)?;
        self.grammar(scope, fields, grammar)
    }

    /// A schema, or the text of one.
    fn json(&mut self, fields: &mut Fields, field: &str) -> Result<(), ApiError> {
        let Some(given) = fields.take(field) else { return Ok(()) };
        let read = match &given {
            Value::String(text) => serde_json::from_str(text).ok(),
            other => Some(other.clone()),
        };
        match read.filter(Value::is_object) {
            Some(schema) => self.schema(fields.name(field), "answer", None, schema),
            None => Err(fields.wrong(field, &given, "a JSON schema")),
        }
    }

    fn regex(&mut self, scope: &RequestScope<'_>, fields: &mut Fields, field: &str) -> Result<(), ApiError> {
        let Some(text) = fields.text(field)?.filter(|text| !text.is_empty()) else { return Ok(()) };
        permitted(scope, fields.name(field))?;
        self.add(fields.name(field), None, Some(Rule::Regex(text)))
    }

    /// One of some texts. They need no permission: the work is bounded by their length.
    fn choice(&mut self, fields: &mut Fields, field: &str) -> Result<(), ApiError> {
        let Some(list) = fields.list(field)? else { return Ok(()) };
        let texts: Option<Vec<_>> = list.iter().map(|one| one.as_str().map(fancy_regex::escape)).collect();
        match texts.filter(|texts| !texts.is_empty()) {
            Some(texts) => self.add(fields.name(field), None, Some(Rule::Regex(texts.join("|")))),
            None => Err(fields.wrong(field, &Value::Array(list), "a list of at least one string")),
        }
    }

    fn grammar(
        &mut self,
        scope: &RequestScope<'_>,
        fields: &mut Fields,
        field: &str,
    ) -> Result<(), ApiError> {
        let Some(text) = fields.text(field)?.filter(|text| !text.is_empty()) else { return Ok(()) };
        let name = fields.name(field);
        if text.contains("::=") {
            let message =
                format!("`{name}` is a grammar with `::=` (GBNF or EBNF), expected one in Lark's syntax");
            return Err(ApiError::field(name, message));
        }
        permitted(scope, name.clone())?;
        self.add(name, None, Some(Rule::Lark(text)))
    }
}

/// Checks that requests may bring regular expressions and grammars along.
fn permitted(scope: &RequestScope<'_>, name: String) -> Result<(), ApiError> {
    if scope.grammars {
        return Ok(());
    }
    let message = format!(
        "`{name}` is not permitted: the option --allow-grammars permits regular expressions and grammars"
    );
    Err(ApiError::field(name, message))
}
