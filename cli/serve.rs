//! `kernmill serve`: the APIs of OpenAI, Anthropic and Ollama over HTTP.

use crate::aside::Aside;
use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::options::{CONTEXT, ContextArgs, ConversationArgs};
use kernmill::locate::locate;
use kernmill::stage::{Stage, StagePosition, address};
use kernmill_tools::OF_THE_FIRST_STAGE;
use kernmill_tools::server::{Backend, Keys, ScriptBackend, ServerConfig, Tls, serve};
use kernmill_tools::serving::{ServedModel, backends};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Serves a model over HTTP, to many clients at once
///
/// The API is OpenAI's: /v1/chat/completions, /v1/models and others; Anthropic's and Ollama's clients are
/// served, too. Adapters are models by their names. A text is the one that its request gets alone. / is a
/// page to talk with the model. Only this machine is served, unless --host says otherwise, which takes
/// --api-keys.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/serve.txt"))]
pub struct Serve {
    /// Address to listen at, or the name of one; another than this machine's own takes --api-keys
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", value_parser = address)]
    host: IpAddr,
    /// Port to listen at; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// Port for gRPC, in the protocol of vLLM; 0 takes a free one (a build with the feature `grpc`)
    #[arg(long, value_name = "PORT")]
    grpc_port: Option<u16>,
    /// Address for traces over OTLP, such as http://127.0.0.1:4318 (a build with the feature `otlp`)
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// File of keys: lines of NAME KEY, with `admin` or `tokens-per-minute=N` behind them
    #[arg(long, value_name = "FILE")]
    api_keys: Option<PathBuf>,
    /// Certificate as PEM, followed by the ones that sign it: connections are encrypted (a build with the
    /// feature `tls`)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Name of this machine that requests may have in their header Host; * is any
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// Origin of a page elsewhere that may send requests, such as https://app.example
    #[arg(long, value_name = "ORIGIN")]
    cors_origin: Vec<String>,
    /// Texts that run at once. Of up to 4, each keeps a third of the speed that it has alone, of 8 a sixth,
    /// and so on; others wait until this can be
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=32))]
    parallel: u32,
    #[command(flatten)]
    length: ContextArgs,
    /// Name of the model in the API; by default its own
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Another name of the model or of an adapter in the API; may be given several times
    #[arg(long, value_name = "NAME=MODEL", value_parser = ServerConfig::alias)]
    alias: Vec<(String, String)>,
    /// A model beside MODEL, by its name in requests, such as one for embeddings; may be given several times.
    /// --max-memory is for all, options of a model for MODEL alone
    #[arg(long, value_name = "NAME=MODEL", value_parser = ServerConfig::also)]
    also: Vec<(String, PathBuf)>,
    /// Take regular expressions and grammars from requests: kernmill.regex and kernmill.lark
    #[arg(long)]
    allow_grammars: bool,
    /// Seconds that a request may have to wait, by estimate; more is refused
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    max_wait: u64,
    /// Directory below which requests may load adapters; by default they may not
    #[arg(long, value_name = "DIR")]
    lora_dir: Option<PathBuf>,
    /// Directory in which keys keep sessions by /v1/sessions; by default they cannot
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,
    /// Seconds that running texts have when the server ends
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace: u64,
    #[command(flatten)]
    conversations: ConversationArgs,
    /// Run this stage of the model alone, such as 1/2; all but the first listen for it at --host and --port
    #[arg(long, value_name = "K/N", conflicts_with = "also")]
    stage: Option<StagePosition>,
    /// Address of the next stage, or the name of one, and its port: HOST:PORT
    #[arg(long, value_name = "ADDRESS", requires = "stage")]
    peer: Option<String>,
    /// File of a secret that all stages share; without it they must be on this machine
    #[arg(long, value_name = "FILE", requires = "stage")]
    stage_key: Option<PathBuf>,
    /// Answer from this file in place of a model: for tests of programs that use the API
    #[arg(long, value_name = "FILE", conflicts_with = "also")]
    script: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
}

impl Serve {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        let config = ServerConfig {
            address: SocketAddr::new(self.host, self.port),
            grpc_port: self.grpc_port,
            otlp: self.otlp,
            keys: self.api_keys.as_deref().map(Keys::open).transpose()?.unwrap_or_default(),
            hosts: self.allowed_host,
            origins: self.cors_origin,
            date: self.conversations.date,
            aliases: self.alias.into_iter().collect(),
            grammars: self.allow_grammars,
            adapters: self.lora_dir,
            sessions: self.session_dir,
            grace: Duration::from_secs(self.grace),
            tls: self.tls_certificate.zip(self.tls_key).map(|(certificate, key)| Tls { certificate, key }),
            ..ServerConfig::default()
        };
        let stage =
            self.stage.map(|place| Stage::new(place, self.peer, self.stage_key.as_deref(), self.host));
        let (stage, waits) = (stage.transpose()?, self.stage.is_some_and(|place| place.number > 1));
        match waits {
            true => explicit.refuse(&OF_THE_FIRST_STAGE, "the first stage alone has clients")?,
            false => config.check().map_err(Failure::BadInput)?,
        }
        let aside = self.model.aside;
        if let Some(script) = &self.script {
            return listen(&[Arc::new(ScriptBackend::open(script)?)], config, aside);
        }
        let (model, mut options) = model::open(&self.model, &Emit::NONE, explicit)?;
        (options.kv_yields, options.identity, options.stage) = (true, true, stage);
        options.chat_template = self.conversations.template.chat_template;
        options.sessions = config.sessions.is_some();
        if let Some(stage) = options.stage.as_ref().filter(|_| waits) {
            let prepared = model.prepare(&options)?;
            return Ok(stage.serve(prepared, &options, config.address, |greeting| aside.line(greeting))?);
        }
        let context = model.context(self.length.context, CONTEXT)?;
        let mut models = vec![ServedModel { name: self.name, opened: model, options, context }];
        for (name, path) in self.also {
            let located = locate(&self.model.given.found(&path, explicit)?)?;
            models.push(models[0].beside(name, located, CONTEXT)?);
        }
        let models = backends(models, &config, self.parallel, Duration::from_secs(self.max_wait))?;
        listen(&models, config, aside)
    }
}

/// Serves until the end.
fn listen(models: &[Arc<dyn Backend>], config: ServerConfig, aside: Aside) -> Result<()> {
    let address = config.address;
    let served = serve(models, config, |greeting| aside.line(greeting));
    served.map_err(|error| Failure::Work(format!("{address}: {error}")))
}
