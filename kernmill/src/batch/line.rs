//! One line of a batch: a request as JSON.
//!
//! Two forms are read. OpenAI's batch format has `custom_id`, `method`, `url` and `body`, where the body is
//! that of `/v1/completions`; the adapter is named as `model`. The short form has the body's fields at the
//! top, and `id` or `custom_id`. Bodies of another URL are left to a [`Form`].

use super::form::{BatchOptions, Form};
use crate::constrain::Rule;
use crate::serve::{Class, Request};
use kernmill_runtime::{AdapterUse, SamplerParams, Tokenizer};
use serde::Deserialize;
use serde_json::Value;

/// A request of a batch.
#[derive(Clone, Debug)]
pub struct BatchLine {
    /// Name of the request, which its answer carries. A line without one is called by its number, `line-7`.
    pub custom_id: String,
    body: LineBody,
}

/// The body of a line.
#[derive(Clone, Debug)]
enum LineBody {
    Completion(Box<Body>),
    /// The body of another URL.
    Other(Value),
}

/// Why a line is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Name of the request, as far as it could be read.
    pub custom_id: String,
    /// What is wrong, where, and what was expected.
    pub message: String,
    /// The session that the line would have been a turn of, as far as it could be read.
    pub session: Option<String>,
}

/// The fields of a completion that are served. What is not known is refused, so that nobody waits for what
/// does not come.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    prompt: Prompt,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    adapter: Option<String>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    temperature: Option<f32>,
    #[serde(default)]
    top_p: Option<f32>,
    #[serde(default)]
    top_k: Option<usize>,
    #[serde(default)]
    min_p: Option<f32>,
    #[serde(default)]
    repetition_penalty: Option<f32>,
    #[serde(default)]
    presence_penalty: Option<f32>,
    #[serde(default)]
    frequency_penalty: Option<f32>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    stop: Option<Stops>,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    response_format: Option<ResponseFormat>,
    #[serde(default)]
    kernmill: Own,
    #[serde(default)]
    n: Option<u32>,
    #[serde(default)]
    stream: Option<bool>,
    /// Taken and not used: OpenAI's clients send it.
    #[serde(default, rename = "user")]
    _user: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Stops {
    One(String),
    Several(Vec<String>),
}

/// OpenAI's field for the form of the text.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: NamedSchema },
}

/// A schema, and what OpenAI's clients send with it. The text is always held to the schema, whether `strict`
/// is given or not.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedSchema {
    #[serde(default, rename = "name")]
    _name: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, rename = "strict")]
    _strict: Option<bool>,
    schema: Value,
}

/// Fields that OpenAI's format does not have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    regex: Option<String>,
    /// Named as the server names it, too.
    #[serde(default, alias = "lark")]
    grammar: Option<String>,
    /// Whether steps may check guesses of how the text goes on.
    #[serde(default)]
    drafts: Option<bool>,
}

/// Where completions are served.
const URL: &str = "/v1/completions";

/// Tokens generated where nobody says how many.
const MAX_TOKENS: u32 = 200;

impl BatchLine {
    /// Reads a line, the `number`-th of its file. What `form` has is not looked into.
    ///
    /// # Errors
    /// When the line is no JSON object in UTF-8, or a field is missing, unknown, or of another type.
    pub fn parse(
        line: impl AsRef<[u8]>,
        number: usize,
        form: Option<&dyn Form>,
    ) -> Result<BatchLine, LineError> {
        let mut custom_id = format!("line-{number}");
        // Also of a line whose bytes are no text, the error is to have the name and the session.
        let text = String::from_utf8_lossy(line.as_ref());
        let parsed: Result<Value, _> = serde_json::from_str(&text);
        let session = parsed.as_ref().ok().and_then(session_of);
        let fail = |custom_id: &str, message: String| LineError {
            custom_id: custom_id.to_owned(),
            message: format!("line {number}: {message}"),
            session: session.clone(),
        };
        let value = parsed.map_err(|error| fail(&custom_id, error.to_string()))?;
        let Value::Object(mut fields) = value else {
            return Err(fail(&custom_id, "expected a JSON object".to_owned()));
        };
        for name in ["custom_id", "id"] {
            match fields.remove(name) {
                Some(Value::String(id)) => custom_id = id,
                Some(other) => {
                    return Err(fail(&custom_id, format!("`{name}` is {other}, expected a string")));
                }
                None => {}
            }
        }
        if let Err(error) = str::from_utf8(line.as_ref()) {
            let what = format!("byte {} is no UTF-8, expected JSON in UTF-8", error.valid_up_to() + 1);
            return Err(fail(&custom_id, what));
        }
        let mut url = None;
        let body = match fields.remove("body") {
            None => Value::Object(fields),
            Some(body) => {
                let other = form.map(Form::url);
                for (name, expected) in [("url", vec![Some(URL), other]), ("method", vec![Some("POST")])] {
                    let expected: Vec<&str> = expected.into_iter().flatten().collect();
                    match fields.remove(name) {
                        Some(Value::String(found)) if expected.contains(&found.as_str()) => {
                            url = if name == "url" { Some(found) } else { url };
                        }
                        None => {}
                        Some(found) => {
                            let expected = expected.join("\" or \"");
                            return Err(fail(
                                &custom_id,
                                format!("`{name}` is {found}, expected \"{expected}\""),
                            ));
                        }
                    }
                }
                if let Some(unknown) = fields.keys().next() {
                    let what =
                        format!("unknown field `{unknown}` beside `body`, expected custom_id, method, url");
                    return Err(fail(&custom_id, what));
                }
                body
            }
        };
        let is_other = form.is_some_and(|form| match &url {
            Some(url) => url == form.url(),
            None => form.fits(&body),
        });
        let body = if is_other {
            LineBody::Other(body)
        } else {
            let body = serde_json::from_value(body).map_err(|error| fail(&custom_id, error.to_string()))?;
            LineBody::Completion(body)
        };
        Ok(BatchLine { custom_id, body })
    }

    /// The body, if it is one of a [`Form`].
    pub(super) fn other(&self) -> Option<&Value> {
        match &self.body {
            LineBody::Other(body) => Some(body),
            LineBody::Completion(_) => None,
        }
    }

    fn completion(&self) -> Option<&Body> {
        match &self.body {
            LineBody::Completion(body) => Some(body),
            LineBody::Other(_) => None,
        }
    }

    /// The line as one that is no request. Its name is that of the line's number.
    pub(super) fn fault(&self, number: usize, what: &str) -> LineError {
        let message = format!("line {number}: `{}`: {what}", self.custom_id);
        let session = self.session().map(str::to_owned);
        LineError { custom_id: format!("line-{number}"), message, session }
    }

    /// The session that the line is a turn of.
    pub fn session(&self) -> Option<&str> {
        self.completion()?.session.as_deref()
    }

    /// What the line's text must be, if it says so.
    pub(super) fn rule(&self) -> Result<Option<Rule>, String> {
        let Some(body) = self.completion() else { return Ok(None) };
        let format = match &body.response_format {
            None | Some(ResponseFormat::Text) => None,
            Some(ResponseFormat::JsonObject) => Some(Rule::JsonObject),
            Some(ResponseFormat::JsonSchema { json_schema }) => {
                Some(Rule::JsonSchema(json_schema.schema.clone()))
            }
        };
        let Own { regex, grammar, .. } = body.kernmill.clone();
        let mut rules = format.into_iter().chain(regex.map(Rule::Regex)).chain(grammar.map(Rule::Lark));
        match (rules.next(), rules.next()) {
            (_, Some(_)) => {
                let fields = "`response_format`, `kernmill.regex` and `kernmill.grammar`";
                Err(format!("the text has two forms: give at most one of {fields}"))
            }
            (rule, None) => Ok(rule),
        }
    }

    /// The request that the line makes, behind the tokens `said` of the turns before, without what holds its
    /// text to a rule.
    pub(super) fn request(
        &self,
        tokenizer: Option<&Tokenizer>,
        options: &BatchOptions,
        said: &[u32],
    ) -> Result<Request, String> {
        let body = self.completion().ok_or("it is no completion")?;
        if body.n.is_some_and(|n| n != 1) {
            return Err("`n` other than 1 is not served: give a line for each answer".to_owned());
        }
        if body.stream == Some(true) {
            return Err("`stream` is of no use in a batch: leave it out".to_owned());
        }
        let new = match &body.prompt {
            Prompt::Ids(ids) => ids.clone(),
            // What a tokenizer puts before a text belongs before the first turn only.
            Prompt::Text(text) => encode(tokenizer, text, said.is_empty())?,
        };
        let adapter = body.adapter.as_ref().or(body.model.as_ref());
        let usual = SamplerParams::default();
        Ok(Request {
            prompt: [said, &new].concat(),
            max_tokens: body.max_tokens.or(options.max_tokens).unwrap_or(MAX_TOKENS),
            sampler: SamplerParams {
                temperature: body.temperature.unwrap_or(0.6),
                top_p: body.top_p.unwrap_or(0.9),
                top_k: body.top_k.filter(|k| *k > 0),
                min_p: body.min_p.unwrap_or(usual.min_p),
                repetition_penalty: body.repetition_penalty.unwrap_or(usual.repetition_penalty),
                presence_penalty: body.presence_penalty.unwrap_or(usual.presence_penalty),
                frequency_penalty: body.frequency_penalty.unwrap_or(usual.frequency_penalty),
                seed: Some(body.seed.unwrap_or(0)),
                ..usual
            },
            stop: match &body.stop {
                None => Vec::new(),
                Some(Stops::One(stop)) => vec![stop.clone()],
                Some(Stops::Several(stops)) => stops.clone(),
            },
            stop_tokens: options.end_tokens.clone(),
            constraint: None,
            drafts: body.kernmill.drafts.unwrap_or(true),
            adapters: adapter.filter(|name| !name.is_empty()).map(AdapterUse::of).into_iter().collect(),
            class: Class::Batch,
            ..Request::greedy(Vec::new(), 1)
        })
    }

    /// The name that the request gave its model or adapter.
    pub(super) fn model(&self) -> Option<&str> {
        let body = self.completion()?;
        body.adapter.as_deref().or(body.model.as_deref())
    }
}

/// The tokens of a text, with what the tokenizer puts before the first of a conversation.
fn encode(tokenizer: Option<&Tokenizer>, text: &str, is_first: bool) -> Result<Vec<u32>, String> {
    let tokenizer =
        tokenizer.ok_or("the model has no tokenizer: give token ids in `prompt`, such as [1, 2, 3]")?;
    tokenizer.encode(text, is_first).map_err(|error| error.to_string())
}

/// The session that an object names, in either form.
fn session_of(line: &Value) -> Option<String> {
    line["session"].as_str().or_else(|| line["body"]["session"].as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (String, String) {
        let error = BatchLine::parse(text, 3, None).unwrap_err();
        (error.custom_id, error.message)
    }

    #[test]
    fn both_forms_are_read() {
        let long = r#"{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"model": "poet", "prompt": [1, 2], "max_tokens": 4, "seed": 9, "stop": "x"}}"#;
        let short =
            r#"{"id": "a", "adapter": "poet", "prompt": [1, 2], "max_tokens": 4, "seed": 9, "stop": ["x"]}"#;
        let options =
            BatchOptions { parallel: 1, max_tokens: Some(7), verify_cache: 0.0, end_tokens: vec![5] };
        for text in [long, short] {
            let line = BatchLine::parse(text, 1, None).unwrap();
            assert_eq!((line.custom_id.as_str(), line.model()), ("a", Some("poet")));
            let request = line.request(None, &options, &[]).unwrap();
            assert_eq!(
                (request.prompt, request.max_tokens, request.stop),
                (vec![1, 2], 4, vec!["x".to_owned()])
            );
            assert_eq!((request.sampler.seed, request.sampler.temperature), (Some(9), 0.6));
            assert_eq!((request.adapters, request.stop_tokens), (vec![AdapterUse::of("poet")], vec![5]));
        }
        let unnamed = BatchLine::parse(r#"{"prompt": "x"}"#, 12, None).unwrap();
        assert_eq!(unnamed.custom_id, "line-12");
        assert!(unnamed.request(None, &options, &[]).unwrap_err().contains("no tokenizer"));
    }

    #[test]
    fn a_turn_continues_what_was_said() {
        let options =
            BatchOptions { parallel: 1, max_tokens: Some(7), verify_cache: 0.0, end_tokens: Vec::new() };
        let line = BatchLine::parse(r#"{"prompt": [5, 6], "session": "s"}"#, 1, None).unwrap();
        assert_eq!(line.session(), Some("s"));
        assert_eq!(line.request(None, &options, &[1, 2, 3]).unwrap().prompt, [1, 2, 3, 5, 6]);
        let wrong = BatchLine::parse(r#"{"promt": [5, 6], "session": "s"}"#, 1, None).unwrap_err();
        assert_eq!(wrong.session.as_deref(), Some("s"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let (id, message) = refused("{");
        assert_eq!(id, "line-3");
        assert!(message.starts_with("line 3: EOF"), "{message}");
        assert!(refused("[1]").1.contains("expected a JSON object"));
        assert!(refused(r#"{"id": 4, "prompt": "x"}"#).1.contains("`id` is 4, expected a string"));
        assert!(refused(r#"{"id": "b"}"#).1.contains("missing field `prompt`"));
        let (id, message) = refused(r#"{"id": "b", "prompt": "x", "tempreature": 1}"#);
        assert_eq!(id, "b");
        assert!(message.contains("unknown field `tempreature`"), "{message}");
        let chat = r#"{"custom_id": "c", "url": "/v1/chat/completions", "body": {"prompt": "x"}}"#;
        assert!(refused(chat).1.contains("expected \"/v1/completions\""));
        let options =
            BatchOptions { parallel: 1, max_tokens: Some(7), verify_cache: 0.0, end_tokens: Vec::new() };
        let two = BatchLine::parse(r#"{"prompt": [1], "n": 2}"#, 1, None).unwrap();
        assert!(two.request(None, &options, &[]).unwrap_err().contains("a line for each answer"));
    }
}
