//! Errors for clients that do not get what they asked for.

use crate::backend::SubmitError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kernmill_serve::{Refusal, RefusalReason};
use serde_json::{Value, json};
use std::time::Duration;

/// Longest wait that a client is told, in seconds. Clients of OpenAI's API do not wait longer.
const LONGEST_RETRY: u64 = 120;
/// When it is worth asking again while a stage is lost: it is called every two seconds.
const STAGE_RETRY: Duration = Duration::from_secs(2);
/// When it is worth asking again at a server that ends: another one, or its next start, may be there.
const DRAIN_RETRY: Duration = Duration::from_secs(5);

/// An error in the form of OpenAI's API.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    /// The field at fault, such as `messages[2].content`.
    param: Option<String>,
    message: String,
    retry_after: Option<Duration>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, kind, code: None, param: None, message: message.into(), retry_after: None }
    }

    /// The request is wrong, and sending it again does not help.
    pub fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// A field of the request is wrong.
    pub fn field(param: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError { param: Some(param.into()), ..ApiError::invalid(message) }
    }

    /// Prompt and answer do not fit the context.
    pub fn context(param: &str, prompt: usize, asked: Option<u32>, context: u32) -> ApiError {
        let asked = asked.map(|asked| format!(" and {asked} are asked for")).unwrap_or_default();
        let message = format!(
            "the context holds {context} tokens, the prompt has {prompt}{asked}: send less, or ask for less"
        );
        ApiError { code: Some("context_length_exceeded"), ..ApiError::field(param, message) }
    }

    /// A text is longer than any that the context holds, for this reason. Its tokens were not counted.
    pub fn too_long(param: &str, why: &str, context: u32) -> ApiError {
        let message = format!("the context holds {context} tokens, the prompt has more: {why}");
        ApiError { code: Some("context_length_exceeded"), ..ApiError::field(param, message) }
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    /// The route takes another method.
    pub fn method(found: &str, path: &str, expected: &str) -> ApiError {
        let message = format!("{path} takes {expected}, not {found}");
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
    }

    /// There is no model or adapter of that name.
    pub fn model(name: &str, known: &[String]) -> ApiError {
        let message = format!("there is no model `{name}`, expected one of: {}", known.join(", "));
        let error = ApiError { param: Some("model".to_owned()), ..ApiError::not_found(message) };
        ApiError { code: Some("model_not_found"), ..error }
    }

    /// There is no stored response of that name. `param` is the field that names it, if one does.
    pub fn response(id: &str, param: Option<&str>) -> ApiError {
        let message = format!(
            "there is no response `{id}`: it was not stored, was deleted, or has made room for newer ones"
        );
        ApiError { param: param.map(str::to_owned), ..ApiError::not_found(message) }
    }

    /// There is no item of that name in a stored response, to which `param` refers.
    pub fn item(id: &str, param: &str) -> ApiError {
        let message = format!(
            "`{param}` names the item `{id}`, which no stored response has: items are kept with the response \
             that they are of, unless its `store` is false; send the item itself"
        );
        ApiError { param: Some(param.to_owned()), ..ApiError::not_found(message) }
    }

    /// The caller has no session of that name.
    pub fn session(name: &str) -> ApiError {
        ApiError::not_found(format!("there is no session `{name}`: GET /v1/sessions lists those of this key"))
    }

    /// No answer is kept that a thread of Anthropic's API could go on from. Its clients know the code, and
    /// send all messages again.
    pub fn thread() -> ApiError {
        let message = "`thread` is not served: send all messages of the conversation";
        ApiError { code: Some("thread_unsupported_request"), ..ApiError::field("thread", message) }
    }

    /// The error with the name that an API has for the field `from`.
    pub fn renamed(self, from: &str, to: &str) -> ApiError {
        let param = self.param.map(|param| if param == from { to.to_owned() } else { param });
        let message = self.message.replace(&format!("`{from}`"), &format!("`{to}`"));
        ApiError { param, message, ..self }
    }

    /// The key is missing or wrong.
    pub fn unauthorized() -> ApiError {
        let message = "an API key is needed: send it as `Authorization: Bearer KEY`";
        let error = ApiError::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message);
        ApiError { code: Some("invalid_api_key"), ..error }
    }

    /// The caller may not do that.
    pub fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// The body is larger than bodies may be.
    pub fn too_large(most: usize) -> ApiError {
        let message = format!("the body is larger than {most} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
    }

    /// The body has another type than JSON.
    pub fn media_type() -> ApiError {
        let message = "the body must be JSON: send `Content-Type: application/json`";
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
    }

    /// The body is packed.
    pub fn encoding() -> ApiError {
        let message = "the body must not be packed: send it without `Content-Encoding`";
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
    }

    /// The body did not come in time.
    pub fn timeout() -> ApiError {
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", "the body did not come in time")
    }

    /// The key has used up what it may.
    pub fn quota(retry_after: Duration) -> ApiError {
        let message = "this key has used its tokens of the last minute: try again later";
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("rate_limit_exceeded"), retry_after: Some(retry_after), ..error }
    }

    /// There is too much to do, or the server is about to end.
    pub fn refused(refusal: &Refusal) -> ApiError {
        let message = refusal.reason.to_string();
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded_error", message);
        let wait = if refusal.reason == RefusalReason::Draining { DRAIN_RETRY } else { refusal.retry_after };
        ApiError { retry_after: (!wait.is_zero()).then_some(wait), ..error }
    }

    /// The server cannot go on.
    pub fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded_error", message)
    }

    /// The server drains, and has made nothing of a request. Another server, or the next start, can.
    pub fn drained() -> ApiError {
        let error =
            ApiError::unavailable("the server ends before it has begun with this request: send it again");
        ApiError { retry_after: Some(DRAIN_RETRY), ..error }
    }

    /// Another stage of the model cannot be reached. It is called again all the time.
    pub fn stage_lost(why: &str) -> ApiError {
        let error = ApiError::unavailable(format!("{why}: send the request again when it is back"));
        ApiError { code: Some("stage_lost"), retry_after: Some(STAGE_RETRY), ..error }
    }

    /// The error of a field whose request is not served here, though other servers of the protocol may.
    #[cfg(feature = "grpc")]
    pub fn unserved(param: &str, why: &str) -> ApiError {
        let message = format!("`{param}` is not served here: {why}");
        let error = ApiError::new(StatusCode::NOT_IMPLEMENTED, "invalid_request_error", message);
        ApiError { param: Some(param.to_owned()), ..error }
    }

    /// There is something of that name already.
    #[cfg(feature = "grpc")]
    pub fn conflict(param: &str, message: impl Into<String>) -> ApiError {
        let error = ApiError::new(StatusCode::CONFLICT, "invalid_request_error", message);
        ApiError { param: Some(param.to_owned()), ..error }
    }

    /// The time that the client gives has passed, or is too short.
    #[cfg(feature = "grpc")]
    pub fn deadline() -> ApiError {
        let message = "the deadline has passed, or cannot be met: give the request more time";
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, "invalid_request_error", message)
    }

    /// There is no room for what is asked for.
    #[cfg(feature = "grpc")]
    pub fn exhausted(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "invalid_request_error", message)
    }

    /// Time after which it is worth asking again.
    #[cfg(feature = "grpc")]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The fault is the server's.
    pub fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// The error as OpenAI's envelope.
    pub fn json(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        } })
    }

    /// The error as Anthropic's envelope.
    pub fn anthropic(&self) -> Value {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            status if status >= 500 => "api_error",
            _ => "invalid_request_error",
        };
        let mut error = json!({ "type": kind, "message": self.message });
        if let Some(code) = self.code {
            error["details"] = json!({ "error_code": code });
        }
        json!({ "type": "error", "error": error })
    }

    /// The error as Ollama's envelope, which has no place for the field but the message.
    pub fn ollama(&self) -> Value {
        match self.param.as_deref().filter(|param| !self.message.contains(param)) {
            Some(param) => json!({ "error": format!("`{param}`: {}", self.message) }),
            None => json!({ "error": self.message }),
        }
    }

    /// A response with this body.
    pub fn response_of(&self, body: &Value) -> Response {
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after {
            let seconds = (wait.as_secs_f64().ceil() as u64).clamp(1, LONGEST_RETRY);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Clients try again after a 5xx by themselves. A lasting failure is not tried again.
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }

    /// Status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Sentence that says what is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Kind of the error, such as `invalid_request_error`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> ApiError {
        match error {
            SubmitError::Invalid(message) => ApiError::invalid(message),
            SubmitError::Refused(refusal) => ApiError::refused(&refusal),
            SubmitError::StageLost(why) => ApiError::stage_lost(&why),
            SubmitError::Drained => ApiError::drained(),
            SubmitError::Gone => ApiError::internal("the engine has failed: the log says why"),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.response_of(&self.json())
    }
}
