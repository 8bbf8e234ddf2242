//! Every route, once: where it is, what clients are told of it, and what answers it.

use super::status::{health, loads, metrics, ready};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::openapi::{self, Operation};
use crate::responses::{self, stored};
use crate::state::ServerState;
use crate::{anthropic, chat, completions, models, ollama, page, reply, sessions, vectors};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use serde_json::json;
use std::pin::Pin;
use std::sync::Arc;

/// A request that has come to its route.
pub(super) struct RouteCall {
    pub state: Arc<ServerState>,
    pub caller: Caller,
    pub headers: HeaderMap,
    pub query: String,
    /// The text of the path in the place of `{name}` or `{id}`.
    pub name: String,
    /// The body of a POST.
    pub body: Vec<u8>,
}

impl RouteCall {
    fn is_anthropic(&self) -> bool {
        self.headers.contains_key(anthropic::VERSION)
    }
}

/// The callers that may use a route, and how often.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteAccess {
    /// Operators and browsers, again and again, without a key.
    Open,
    /// Monitors, again and again.
    Routine,
    /// Clients.
    Keyed,
}

/// A route.
pub(super) struct Route {
    pub operation: Operation,
    pub access: RouteAccess,
    pub answer: fn(RouteCall) -> ResponseFuture,
}

/// The answer of a route, which comes later.
pub(super) type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;

impl Route {
    /// The text of a path in the place of the pattern's `{...}`, if it fits the pattern.
    fn name_in<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (before, rest) = self.operation.path.split_once('{')?;
        let (_, after) = rest.split_once('}')?;
        path.strip_prefix(before)?.strip_suffix(after).filter(|name| !name.is_empty())
    }
}

/// The pattern that a path fits, and what the path has in the place of its `{...}`. A path that is a route's
/// own does not stand for the name in another one.
pub(super) fn pattern_of(path: &str) -> Option<(&'static str, &str)> {
    let own =
        ROUTES.iter().find(|route| route.operation.path == path).map(|route| (route.operation.path, ""));
    own.or_else(|| ROUTES.iter().find_map(|route| Some((route.operation.path, route.name_in(path)?))))
}

/// The routes of a pattern, one for each method.
pub(super) fn of_pattern(pattern: &'static str) -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(move |route| route.operation.path == pattern)
}

macro_rules! routes {
    ($(
        $access:ident $method:ident $path:literal ($body:expr) -> $response:literal, $about:literal,
        |$call:ident| $answer:expr;
    )*) => {
        /// All routes. Of two patterns that a path fits, the first one is meant.
        pub(super) const ROUTES: &[Route] = &[$(Route {
            operation: Operation {
                path: $path, method: Method::$method, about: $about, body: $body, answer: $response,
            },
            access: RouteAccess::$access,
            answer: |$call| Box::pin(async move { $answer }),
        }),*];
    };
}

routes! {
    Keyed POST "/v1/chat/completions" (Some(&chat::request::CHAT)) -> "ChatCompletion", "Answers a conversation",
        |call| chat::answer(call.state, call.caller, call.body).await;
    Keyed POST "/v1/completions" (Some(&completions::COMPLETION)) -> "Completion", "Goes on with texts",
        |call| completions::answer(call.state, call.caller, call.body).await;
    Keyed POST "/v1/responses" (Some(&responses::RESPONSES)) -> "Response", "Answers a conversation of items",
        |call| {
            let is_open = call.headers.contains_key(responses::OPEN_RESPONSES);
            responses::answer(call.state, call.caller, call.body, is_open).await
        };
    Keyed POST "/v1/responses/input_tokens" (Some(&responses::RESPONSES)) -> "InputTokens",
        "Counts the tokens of a request",
        |call| responses::count(call.state, call.caller, call.body).await;
    Keyed POST "/v1/responses/compact" (Some(&responses::RESPONSES)) -> "Compaction",
        "Summarises a conversation",
        |call| responses::compact(call.state, call.caller, call.body).await;
    Keyed GET "/v1/responses/{id}/input_items" (None) -> "Items",
        "The items of a stored response's request",
        |call| stored::items(&call.state, &call.caller, &call.name, &call.query);
    Keyed POST "/v1/responses/{id}/cancel" (None) -> "Response", "Says how a response is cancelled",
        |call| stored::cancel(&call.state, &call.caller, &call.name);
    Keyed GET "/v1/responses/{id}" (None) -> "Response", "A stored response",
        |call| stored::stored(&call.state, &call.caller, &call.name);
    Keyed DELETE "/v1/responses/{id}" (None) -> "Deleted", "Forgets a stored response",
        |call| stored::delete(&call.state, &call.caller, &call.name);
    Keyed POST "/v1/messages" (Some(&anthropic::MESSAGES)) -> "Message", "Answers messages of Anthropic's API",
        |call| anthropic::answer(call.state, call.caller, call.body).await;
    Keyed POST "/v1/messages/count_tokens" (Some(&anthropic::COUNTED)) -> "CountedTokens",
        "Counts the tokens of messages",
        |call| anthropic::count(call.state, call.caller, call.body).await;
    Keyed POST "/api/chat" (Some(&ollama::CHAT)) -> "OllamaChat",
        "Answers a conversation of Ollama's API",
        |call| ollama::answer(call.state, call.caller, call.body).await;
    Keyed POST "/api/generate" (Some(&ollama::GENERATE)) -> "OllamaText",
        "Answers a text, or goes on with it",
        |call| ollama::generate(call.state, call.caller, call.body).await;
    Keyed POST "/api/show" (Some(&ollama::SHOW)) -> "OllamaModel", "What a model is and can do",
        |call| ollama::show(&call.state, &call.state.scope(&call.caller), &call.body);
    Keyed GET "/api/tags" (None) -> "OllamaModels",
        "The model, its adapters and their other names, as Ollama lists them",
        |call| Ok(ollama::list(&call.state, &call.caller));
    Keyed GET "/api/ps" (None) -> "OllamaModels", "The same, as models that are in memory",
        |call| Ok(ollama::running(&call.state, &call.caller));
    Keyed GET "/api/version" (None) -> "OllamaVersion", "The version of Ollama whose API is served",
        |_call| Ok(ollama::version());
    Keyed GET "/v1/models" (None) -> "Models", "The model, its adapters and their other names",
        |call| Ok(models::list(&call.state, call.is_anthropic()));
    Keyed GET "/v1/models/{name}" (None) -> "Model", "A model or adapter",
        |call| models::one(&call.state, &call.name, call.is_anthropic());
    Keyed POST "/tokenize" (Some(&models::TOKENIZE)) -> "Tokens", "Ids of a text or conversation",
        |call| models::tokenize(call.state, call.caller, call.body).await;
    Keyed POST "/detokenize" (Some(&models::DETOKENIZE)) -> "Text", "The text of ids",
        |call| models::detokenize(call.state, call.body).await;
    Keyed GET "/tokenizer_info" (None) -> "TokenizerInfo", "What a client that counts tokens needs",
        |call| Ok(models::tokenizer_info(&call.state));
    Keyed POST "/v1/load_lora_adapter" (Some(&models::LOAD)) -> "AdapterStatus", "Loads an adapter",
        |call| models::load_adapter(call.state, call.caller, call.body).await;
    Keyed POST "/v1/unload_lora_adapter" (Some(&models::UNLOAD)) -> "AdapterStatus",
        "Forgets an adapter",
        |call| models::unload_adapter(call.state, call.caller, call.body).await;
    Keyed GET "/v1/sessions" (None) -> "Sessions", "The sessions of the key",
        |call| sessions::list(call.state, call.caller).await;
    Keyed POST "/v1/sessions" (Some(&sessions::SESSION)) -> "Session", "Saves a session",
        |call| sessions::save(call.state, call.caller, call.body).await;
    Keyed POST "/v1/sessions/{name}/restore" (None) -> "Session",
        "Brings a session into the prefix cache",
        |call| sessions::restore(call.state, call.caller, call.name).await;
    Keyed GET "/v1/sessions/{name}" (None) -> "Session", "A session with its token ids",
        |call| sessions::one(call.state, call.caller, call.name).await;
    Keyed DELETE "/v1/sessions/{name}" (None) -> "Deleted", "Deletes a session",
        |call| sessions::delete(call.state, call.caller, call.name).await;
    Keyed POST "/v1/embeddings" (Some(&vectors::EMBEDDINGS)) -> "Embeddings", "Vectors of texts",
        |call| vectors::embeddings(call.state, call.caller, call.body).await;
    Keyed POST "/v1/rerank" (Some(&vectors::RERANK)) -> "Rerank", "Orders documents by how they answer a query",
        |call| vectors::rerank(call.state, call.caller, call.body).await;
    Keyed POST "/v2/rerank" (Some(&vectors::RERANK)) -> "Rerank", "The same",
        |call| vectors::rerank(call.state, call.caller, call.body).await;
    Keyed POST "/rerank" (Some(&vectors::RERANK)) -> "Rerank", "The same",
        |call| vectors::rerank(call.state, call.caller, call.body).await;
    Keyed POST "/score" (Some(&vectors::SCORE)) -> "Scores", "Scores of pairs of texts",
        |call| vectors::score(call.state, call.caller, call.body).await;
    Keyed POST "/v1/score" (Some(&vectors::SCORE)) -> "Scores", "The same",
        |call| vectors::score(call.state, call.caller, call.body).await;
    Keyed POST "/api/embed" (Some(&vectors::EMBED)) -> "OllamaVectors", "Vectors of texts, by Ollama's API",
        |call| vectors::embed(call.state, call.caller, call.body).await;
    Keyed POST "/api/embeddings" (Some(&vectors::OLDER)) -> "OllamaVector", "The vector of a text",
        |call| vectors::older(call.state, call.caller, call.body).await;
    Open GET "/health" (None) -> "Status", "Whether the engine works", |call| health(&call.state);
    // Clients ask for the head alone, to see whether there is a server.
    Open HEAD "/health" (None) -> "Status", "Whether the engine works", |call| health(&call.state);
    Open GET "/v1/health" (None) -> "Status", "Whether the engine works", |call| health(&call.state);
    Open GET "/ping" (None) -> "Status", "Whether the engine works", |call| health(&call.state);
    Open GET "/ready" (None) -> "Status", "Whether requests are taken up", |call| ready(&call.state);
    Routine GET "/metrics" (None) -> "Metrics", "Figures for Prometheus", |call| Ok(metrics(&call.state));
    Routine GET "/v1/loads" (None) -> "Loads", "What waits and runs",
        |call| Ok(loads(&call.state));
    Keyed GET "/version" (None) -> "Version", "The version",
        |_call| Ok(reply::json(&json!({ "version": env!("CARGO_PKG_VERSION") })));
    Keyed GET "/openapi.json" (None) -> "OpenApi", "This document",
        |_call| Ok(reply::json(&openapi::document(ROUTES.iter().map(|route| &route.operation))));
    Open GET "/" (None) -> "Page", "A page to talk with the model", |_call| page::file("/");
    Open HEAD "/" (None) -> "Page", "Whether there is a page", |_call| page::file("/");
    Keyed POST "/drain" (None) -> "Draining", "Ends the taking up of requests",
        |call| models::drain(&call.state, &call.caller);
}
