//! One line of a batch: a request as JSON.
//!
//! Two forms are read. OpenAI's batch format has `custom_id`, `method`, `url` and `body`, where the body is
//! that of the route at `url`. The short form has the body's fields at the top, and `id` or `custom_id`.

use serde_json::{Map, Value};

/// A request of a batch.
#[derive(Clone, Debug)]
pub struct BatchLine {
    /// Name of the request, which its answer carries. A line without one is called by its number, `line-7`.
    pub custom_id: String,
    /// Number of the line in its file.
    pub number: usize,
    /// The route that reads the body.
    pub route: LineRoute,
    /// The body of the request, as it came.
    pub body: Value,
}

/// A route that answers lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRoute {
    /// Texts that go on from a prompt.
    Completions,
    /// Answers to conversations.
    Chat,
    /// Vectors of texts.
    Embeddings,
}

/// Where the routes are.
const URLS: [(&str, LineRoute); 3] = [
    ("/v1/completions", LineRoute::Completions),
    ("/v1/chat/completions", LineRoute::Chat),
    ("/v1/embeddings", LineRoute::Embeddings),
];

/// Why a line is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Name of the request, as far as it could be read.
    pub custom_id: String,
    /// The problem, its place, and what was expected.
    pub message: String,
    /// The session that the line would have been a turn of, as far as it could be read.
    pub session: Option<String>,
}

impl BatchLine {
    /// Reads a line, the `number`-th of its file. Its body is left to the route's reader.
    ///
    /// # Errors
    /// When the line is no JSON object in UTF-8, or what stands beside its body is wrong.
    pub fn parse(line: impl AsRef<[u8]>, number: usize) -> Result<BatchLine, LineError> {
        let mut custom_id = format!("line-{number}");
        // Also of a line whose bytes are no text, the error is to have the name and the session.
        let text = String::from_utf8_lossy(line.as_ref());
        let parsed: Result<Value, _> = serde_json::from_str(&text);
        let session =
            parsed.as_ref().ok().and_then(|line| session_of(line).or_else(|| session_of(&line["body"])));
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
        let (body, url) = body(fields).map_err(|what| fail(&custom_id, what))?;
        let named = URLS.into_iter().find(|(own, _)| url.as_deref() == Some(own));
        let fitting = match ["messages", "input"].map(|field| body.get(field).is_some()) {
            [true, _] => LineRoute::Chat,
            [false, true] => LineRoute::Embeddings,
            _ => LineRoute::Completions,
        };
        let route = named.map_or(fitting, |(_, route)| route);
        Ok(BatchLine { custom_id, number, route, body })
    }

    /// The line as one that is no request. Its name is that of the line's number.
    pub fn fault(&self, what: &str) -> LineError {
        let message = format!("line {}: `{}`: {what}", self.number, self.custom_id);
        let session = self.session().map(str::to_owned);
        LineError { custom_id: format!("line-{}", self.number), message, session }
    }

    /// The session that the line is a turn of. Conversations have none: they bring along what was said.
    pub fn session(&self) -> Option<&str> {
        self.body["session"].as_str().filter(|_| self.route == LineRoute::Completions)
    }
}

/// The body of a request, and the URL that it names.
fn body(mut fields: Map<String, Value>) -> Result<(Value, Option<String>), String> {
    let Some(body) = fields.remove("body") else { return Ok((Value::Object(fields), None)) };
    let mut one_of = |name: &str, expected: &[&str]| match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(found)) if expected.contains(&found.as_str()) => Ok(Some(found)),
        Some(found) => Err(format!("`{name}` is {found}, expected \"{}\"", expected.join("\" or \""))),
    };
    let url = one_of("url", &URLS.map(|(url, _)| url))?;
    one_of("method", &["POST"])?;
    match fields.keys().next() {
        Some(unknown) => {
            Err(format!("unknown field `{unknown}` beside `body`, expected custom_id, method, url"))
        }
        None => Ok((body, url)),
    }
}

/// The session that an object names.
fn session_of(object: &Value) -> Option<String> {
    object["session"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_a_body() {
        let long = r#"{"custom_id": "a", "method": "POST", "url": "/v1/completions",
            "body": {"prompt": [1, 2], "session": "s"}}"#;
        let short = r#"{"id": "a", "prompt": [1, 2], "session": "s"}"#;
        let [long, short] = [long, short].map(|text| BatchLine::parse(text, 1).unwrap());
        assert_eq!((&long.custom_id, long.route, &long.body), (&short.custom_id, short.route, &short.body));
        assert_eq!((short.custom_id.as_str(), short.session()), ("a", Some("s")));
        let unnamed = BatchLine::parse(r#"{"messages": [], "session": "s"}"#, 12).unwrap();
        assert_eq!(
            (unnamed.custom_id.as_str(), unnamed.route, unnamed.session()),
            ("line-12", LineRoute::Chat, None)
        );
        let named = r#"{"url": "/v1/completions", "body": {"messages": []}}"#;
        assert_eq!(BatchLine::parse(named, 1).unwrap().route, LineRoute::Completions);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refused = |text: &str| {
            let error = BatchLine::parse(text, 3).unwrap_err();
            (error.custom_id, error.message)
        };
        let (id, message) = refused("{");
        assert_eq!(id, "line-3");
        assert!(message.starts_with("line 3: EOF"), "{message}");
        assert!(refused("[1]").1.contains("expected a JSON object"));
        assert!(refused(r#"{"id": 4, "prompt": "x"}"#).1.contains("`id` is 4, expected a string"));
        let (id, message) = refused(r#"{"custom_id": "c", "url": "/v1/images", "body": {}}"#);
        assert_eq!(id, "c");
        let expected = "expected \"/v1/completions\" or \"/v1/chat/completions\" or \"/v1/embeddings\"";
        assert!(message.ends_with(expected), "{message}");
        assert!(refused(r#"{"body": {}, "seed": 1}"#).1.contains("unknown field `seed` beside `body`"));
        let session = BatchLine::parse(r#"{"id": 4, "body": {"session": "s"}}"#, 1).unwrap_err().session;
        assert_eq!(session.as_deref(), Some("s"));
    }
}
