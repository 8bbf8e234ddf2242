//! The HTTP server of kernmill: OpenAI's API, and those of Anthropic and Ollama, over one engine that runs
//! many texts at once.
//!
//! A [`Backend`] makes texts; [`EngineBackend`] is an engine on a separate thread. [`Server`] answers
//! requests with it. It opens no connection of its own but to a collector of traces, where one is named. It
//! serves the machine it runs on unless it is told otherwise, and answers a wrong request with what is wrong.
//! `docs/user/serve.md` has the routes.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod anthropic;
mod asked;
mod backend;
pub mod batch;
mod caller;
mod chat;
mod completions;
mod engine;
mod error;
mod fields;
mod form;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc/without.rs"]
mod grpc;
mod guard;
mod head;
mod ids;
pub mod limits;
pub mod lines;
mod listen;
mod metrics;
mod models;
mod ollama;
mod openapi;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "otlp/without.rs"]
mod otlp;
mod pace;
mod page;
mod prompt;
mod record;
mod reply;
mod responses;
mod routes;
mod sampling;
mod scope;
mod script;
#[cfg(test)]
mod scripted;
mod sessions;
mod state;
mod tls;
mod trace;
mod vectors;

pub use backend::{
    Accepted, AdapterLoad, Backend, BackendInfo, BackendLoad, CacheFacts, Pending, Running, SubmitError,
};
pub use caller::{ApiKey, Caller, Keys};
pub use engine::EngineBackend;
pub use error::ApiError;
pub use listen::{Server, serve};
pub use pace::StepHistograms;
pub use script::ScriptBackend;
pub use state::{ServerConfig, Today};
pub use tls::Tls;
