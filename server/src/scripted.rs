//! A backend that says what it is told to, for tests without an engine.

use crate::backend::{Backend, BackendInfo, BackendLoad, Pending, Running};
use crate::routes;
use crate::script::{ScriptBackend, facts};
use crate::state::{ServerConfig, ServerState};
use axum::body::{Body, to_bytes};
use axum::extract::Request as HttpRequest;
use axum::http::HeaderMap;
use kernmill_plan::vectors::{Pooling, VectorForm};
use kernmill_serve::{Answer, Finish, Request, RequestEvent, Scoring, Token};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

/// Says the same to every request.
pub struct Scripted {
    facts: BackendInfo,
    says: Vec<String>,
    finish: Finish,
    /// Texts of the prompts that came.
    pub prompts: Mutex<Vec<String>>,
    /// The requests so far.
    pub requests: Mutex<Vec<Request>>,
}

impl Scripted {
    /// A backend that says these pieces and then ends so. 3 tokens of each prompt are cached.
    pub fn new(says: &[&str], finish: Finish) -> Arc<Scripted> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model-specs/nano/tokenizer.json");
        let mut tokenizer: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        // The answers are no Harmony, so that the tokenizer has no tokens of it.
        for token in tokenizer["added_tokens"].as_array_mut().unwrap() {
            if token["content"] != "<|endoftext|>" {
                token["content"] = format!("<|spare_{}|>", token["id"]).into();
            }
        }
        let json = tokenizer.to_string().into_bytes();
        let facts = facts(&json, 3072, "nano", 1024, "test".to_owned()).unwrap();
        let says = says.iter().map(|text| (*text).to_owned()).collect();
        Arc::new(Scripted { facts, says, finish, prompts: Mutex::default(), requests: Mutex::default() })
    }

    /// A backend that gives the same vector to every text.
    pub fn vectors() -> Arc<Scripted> {
        let scripted = Scripted::stops(&[]);
        let mut scripted = Arc::into_inner(scripted).unwrap();
        scripted.facts.vectors = Some(VectorForm { pooling: Pooling::Last, normalise: true });
        scripted.facts.scoring = Ok(Scoring::Cosine { prompts: Default::default() });
        Arc::new(scripted)
    }

    /// A backend whose model has this name.
    #[cfg(feature = "grpc")]
    pub fn called(name: &str) -> Arc<Scripted> {
        let mut scripted = Arc::into_inner(Scripted::stops(&["Yes."])).unwrap();
        scripted.facts.model = name.to_owned();
        Arc::new(scripted)
    }

    /// Ids of a text.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.facts.tokenizer().unwrap().encode_ordinary(text).unwrap()
    }

    /// A backend that ends its answer by itself.
    pub fn stops(says: &[&str]) -> Arc<Scripted> {
        Scripted::new(says, Finish::Token(0))
    }
}

/// Sends a request to a server; its status, headers and body.
pub async fn send(
    state: &Arc<ServerState>,
    method: &str,
    path: &str,
    key: &str,
    body: &Value,
) -> (u16, HeaderMap, String) {
    let mut body = body.clone();
    // A body that says no model means this one.
    if body.is_object() && body["model"].is_null() {
        body["model"] = "nano".into();
    }
    let request = HttpRequest::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("x-api-key", key)
        .body(Body::from(body.to_string()))
        .unwrap();
    let response = routes::respond(state.clone(), request).await;
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap();
    (parts.status.as_u16(), parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

/// A server whose model writes Harmony, and answers by the rules of a script.
pub fn harmony(rules: Value) -> Arc<ServerState> {
    let script = serde_json::json!({
        "tokenizer": "tokenizer.json", "vocab": 3072, "model": "nano", "context": 1024, "rules": rules,
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model-specs/nano/script.json");
    let backend = ScriptBackend::read(script.to_string().as_bytes(), &path).unwrap();
    let config = ServerConfig { grammars: true, ..ServerConfig::default() };
    ServerState::new(&[Arc::new(backend)], config).unwrap()
}

/// The text of the prompt that a server makes of a request to `/v1/chat/completions`.
pub async fn prompt(state: &Arc<ServerState>, body: &Value) -> String {
    let mut body = body.clone();
    body["return_token_strs"] = true.into();
    let (status, _, text) = send(state, "POST", "/tokenize", "", &body).await;
    assert_eq!(status, 200, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer["token_strs"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// A server with this backend.
pub fn state(backend: Arc<Scripted>, config: ServerConfig) -> Arc<ServerState> {
    ServerState::new(&[backend], config).unwrap()
}

/// Names and data of the events of a stream.
pub fn events(body: &str) -> Vec<(String, Value)> {
    let event = |text: &str| {
        let (name, data) = text.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap().to_owned();
        (name, serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap())
    };
    body.split_terminator("\n\n").map(event).collect()
}

impl Backend for Scripted {
    fn facts(&self) -> &BackendInfo {
        &self.facts
    }

    fn adapters(&self) -> Vec<String> {
        Vec::new()
    }

    fn submit(&self, request: Request) -> Running {
        let (sender, receiver) = unbounded_channel();
        let text = self.facts.tokenizer().unwrap().decode(&request.prompt).unwrap();
        self.prompts.lock().unwrap().push(text);
        self.requests.lock().unwrap().push(request.clone());
        let tokens: Vec<u32> = (1..).take(self.says.len()).collect();
        for (id, text) in tokens.iter().zip(&self.says) {
            sender.send(RequestEvent::Token(Token { id: *id, text: text.clone(), logprobs: None })).unwrap();
        }
        let answer = Answer {
            text: self.says.concat(),
            tokens,
            values: vec![0.6, 0.8],
            prompt_tokens: request.prompt.len() as u32,
            cached_tokens: 3,
            queued: Some(Duration::ZERO),
            first_token: Some(Duration::from_millis(1)),
            took: Duration::from_millis(2),
            ..Answer::empty(self.finish.clone())
        };
        sender.send(RequestEvent::Done(Box::new(answer))).unwrap();
        let (accepted, answer) = oneshot::channel();
        accepted.send(Ok(())).unwrap();
        Running::new(answer, receiver, || {})
    }

    fn load(&self) -> BackendLoad {
        BackendLoad::default()
    }

    fn load_adapter(&self, _: String, _: PathBuf) -> Pending<'_, Result<(), String>> {
        Box::pin(async { Err("there are no adapters".to_owned()) })
    }

    fn unload_adapter(&self, _: String) -> Pending<'_, bool> {
        Box::pin(async { false })
    }

    fn drain(&self, _: Duration) {}
}
