//! Tests of gRPC by its own client, over connections.

mod calls;
mod fields;
mod services;
#[cfg(feature = "tls")]
mod tls;

use crate::backend::Backend;
use crate::listen::Server;
use crate::script::ScriptBackend;
use crate::state::ServerConfig;
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use vllm_proto::generate_request::Prompt;
use vllm_proto::inference_client::InferenceClient;
use vllm_proto::{GenerateRequest, StoppingCriteria};

/// A server that runs until it is dropped.
struct Served {
    address: SocketAddr,
    _end: oneshot::Sender<()>,
    _task: JoinHandle<()>,
}

impl Served {
    async fn new(backend: Arc<dyn Backend>, config: ServerConfig) -> Served {
        Served::of(&[backend], config).await
    }

    async fn of(models: &[Arc<dyn Backend>], config: ServerConfig) -> Served {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServerConfig { address, grpc_port: Some(0), ..config };
        let server = Server::bind(models, config).await.unwrap();
        let address = server.grpc_address().unwrap().unwrap();
        let (end, ends) = oneshot::channel();
        let task = tokio::spawn(server.run(async { drop(ends.await) }));
        Served { address, _end: end, _task: task }
    }

    async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    async fn inference(&self) -> InferenceClient<Channel> {
        InferenceClient::new(self.channel().await)
    }
}

/// A backend that says a long text, a token in every millisecond. To `short` it says `Yes.` only.
fn slow() -> Arc<ScriptBackend> {
    let tokenizer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model-specs/nano/tokenizer.json");
    let script = json!({
        "tokenizer": tokenizer,
        "vocab": 3072,
        "context": 65_536,
        "model": "nano",
        "adapters": ["poet"],
        "token_seconds": 0.001,
        "rules": [
            { "match": "short", "answer": "Yes." },
            { "match": "", "answer": "It goes on and on. ".repeat(2000) },
        ],
    });
    Arc::new(ScriptBackend::read(script.to_string().as_bytes(), Path::new("script.json")).unwrap())
}

/// A request for at most so many tokens.
fn ask(prompt: &str, max_new_tokens: u32) -> GenerateRequest {
    GenerateRequest {
        prompt: Some(Prompt::Text(prompt.to_owned())),
        stopping: Some(StoppingCriteria { max_new_tokens, ..StoppingCriteria::default() }),
        ..GenerateRequest::default()
    }
}
