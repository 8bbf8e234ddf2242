//! State that every request sees: the backend, the configuration, the figures.

use crate::backend::{Backend, BackendLoad, Running};
use crate::caller::{Caller, Keys};
use crate::chat::pieces::TurnOutcome;
use crate::error::ApiError;
use crate::ids;
use crate::metrics::Metrics;
use crate::otlp::Tracer;
use crate::record::Record;
use crate::reply;
use crate::responses::seal::Seal;
use crate::responses::store::ResponseStore;
use crate::scope::RequestScope;
use crate::tls::Tls;
use axum::http::HeaderMap;
use kernmill_chat::Date;
use kernmill_serve::Request;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a server behaves.
#[derive(Debug)]
pub struct ServerConfig {
    /// Address and port; port 0 takes a free one.
    pub address: SocketAddr,
    /// Port of the same address for gRPC; `None` for none, port 0 takes a free one.
    pub grpc_port: Option<u16>,
    /// Keys of those who may ask; without any, everybody who reaches the server may.
    pub keys: Keys,
    /// Values of the header `Host` that are served, besides the names of this machine's loopback.
    pub hosts: Vec<String>,
    /// Origins of pages elsewhere that may send requests.
    pub origins: Vec<String>,
    /// Names of the model and of adapters besides their own.
    pub aliases: BTreeMap<String, String>,
    /// Whether requests may bring regular expressions and grammars along.
    pub grammars: bool,
    /// Bytes of a body at most.
    pub body_bytes: usize,
    /// Time in which a request's body must come.
    pub body_time: Duration,
    /// Time after which an answer is cut.
    pub longest_answer: Option<Duration>,
    /// The date of conversations.
    pub date: Today,
    /// Directory below which adapters may be loaded by requests; `None` for none.
    pub adapters: Option<PathBuf>,
    /// Directory in which keys keep sessions; `None` for none.
    pub sessions: Option<PathBuf>,
    /// Time that running requests have when the server ends.
    pub grace: Duration,
    /// Certificate and key of encrypted connections; `None` for connections in the clear.
    pub tls: Option<Tls>,
    /// Address of a collector of traces, such as `http://127.0.0.1:4318`; `None` for the one that the
    /// environment names, if it does.
    pub otlp: Option<String>,
}

/// The date of conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Today {
    /// Nothing: the same prompt has the same ids on every day.
    None,
    /// The day in UTC.
    #[default]
    Now,
    /// A certain day.
    Day(Date),
}

impl Today {
    /// The day that conversations are told.
    pub fn date(self) -> Option<Date> {
        match self {
            Today::None => None,
            Today::Now => Date::from_unix_days((ids::now() / 86_400) as u32),
            Today::Day(day) => Some(day),
        }
    }
}

impl FromStr for Today {
    type Err = String;

    /// Reads `today`, `none` or `YYYY-MM-DD`.
    fn from_str(text: &str) -> Result<Today, String> {
        let expected = || "expected today, none or YYYY-MM-DD".to_owned();
        match text {
            "today" => Ok(Today::Now),
            "none" => Ok(Today::None),
            day => Date::parse(day).map(Today::Day).ok_or_else(expected),
        }
    }
}

/// Whether requests may have this name in `model`.
fn is_name(name: &str) -> bool {
    (1..=200).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic())
}

impl ServerConfig {
    /// Reads `NAME=MODEL`, another name of the model or of an adapter.
    ///
    /// # Errors
    /// When it is no alias, or a name is longer than 200 characters.
    pub fn alias(text: &str) -> Result<(String, String), String> {
        match text.split_once('=') {
            Some((name, meant)) if is_name(name) && is_name(meant) => Ok((name.to_owned(), meant.to_owned())),
            _ => Err("expected NAME=MODEL, with the name of the model or of an adapter".to_owned()),
        }
    }

    /// Reads `NAME=MODEL`, a further model and its name.
    ///
    /// # Errors
    /// When it is no such pair, or the name is longer than 200 characters.
    pub fn also(text: &str) -> Result<(String, PathBuf), String> {
        match text.split_once('=') {
            Some((name, model)) if is_name(name) && !model.is_empty() => Ok((name.to_owned(), model.into())),
            _ => Err("expected NAME=MODEL, with a name for requests and a model".to_owned()),
        }
    }

    /// Checks the names of models, the first one first, and of its adapters: those of the others are no other
    /// model's, and further names mean something. With a directory of adapters, one may still come.
    ///
    /// # Errors
    /// When a name is that of a model already, or means none.
    pub fn check_names(&self, models: &[&str], adapters: &[&str]) -> Result<(), String> {
        for (at, name) in models.iter().enumerate().skip(1) {
            if models[..at].contains(name) || adapters.contains(name) {
                return Err(format!("--also {name}=...: `{name}` is a model already"));
            }
        }
        let known = [models, adapters].concat();
        for (name, meant) in self.aliases.iter().map(|(name, meant)| (name.as_str(), meant.as_str())) {
            if known.contains(&name) {
                return Err(format!("--alias {name}={meant}: `{name}` is a model already"));
            }
            if self.adapters.is_none() && !known.contains(&meant) {
                let known = known.join(", ");
                return Err(format!(
                    "--alias {name}={meant}: there is no model `{meant}`, expected one of: {known}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that no one can ask who should not.
    ///
    /// # Errors
    /// When other machines could reach the address, and no key is needed.
    pub fn check(&self) -> Result<(), String> {
        if self.address.ip().is_loopback() || !self.keys.is_empty() {
            return Ok(());
        }
        let host = self.address.ip();
        Err(format!(
            "--host {host}: other machines could reach this address, so that --api-keys FILE is needed"
        ))
    }
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            grpc_port: None,
            keys: Keys::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            aliases: BTreeMap::new(),
            grammars: false,
            body_bytes: crate::limits::BODY_BYTES,
            body_time: Duration::from_secs(crate::limits::BODY_SECONDS),
            longest_answer: None,
            date: Today::default(),
            adapters: None,
            sessions: None,
            grace: Duration::from_secs(30),
            tls: None,
            otlp: None,
        }
    }
}

/// The state that every request to a model sees.
pub struct ServerState {
    /// The backend that makes texts.
    pub backend: Arc<dyn Backend>,
    /// How the server behaves.
    pub config: Arc<ServerConfig>,
    /// Figures of the model for operators.
    pub metrics: Arc<Metrics>,
    /// Where traces go, if they go anywhere.
    pub tracer: Option<Tracer>,
    /// Responses that can be asked for again.
    pub responses: Arc<ResponseStore>,
    /// Seals what clients keep for the server.
    pub seal: Seal,
    /// Seconds from 1970 to the start.
    pub started: u64,
    /// The models beside this one, if this is the first one.
    also: Vec<Arc<ServerState>>,
    /// Names of all models but this one.
    others: Vec<String>,
}

impl ServerState {
    /// The state of a server that begins: that of its first model, with the other ones.
    ///
    /// # Errors
    /// When there is no model, the system gives no random bytes, or traces cannot go where they shall.
    pub fn new(models: &[Arc<dyn Backend>], config: ServerConfig) -> io::Result<Arc<ServerState>> {
        let (first, also) = models.split_first().ok_or_else(|| io::Error::other("there is no model"))?;
        let (tracer, seal) = (Tracer::new(config.otlp.as_deref())?, Seal::new()?);
        let (config, responses, started) = (Arc::new(config), Arc::default(), ids::now());
        let of = |backend: &Arc<dyn Backend>, also: Vec<Arc<ServerState>>| {
            let facts = backend.facts();
            let names = models.iter().map(|model| &model.facts().model);
            Arc::new(ServerState {
                config: Arc::clone(&config),
                metrics: Arc::new(Metrics::new(&facts.model, facts.cache.as_ref(), &backend.pace())),
                tracer: tracer.clone(),
                responses: Arc::clone(&responses),
                seal: seal.of_model(&facts.model),
                started,
                also,
                others: names.filter(|name| **name != facts.model).cloned().collect(),
                backend: Arc::clone(backend),
            })
        };
        let also = also.iter().map(|backend| of(backend, Vec::new())).collect();
        Ok(of(first, also))
    }

    /// This model and those beside it.
    pub fn all(&self) -> impl Iterator<Item = &ServerState> {
        std::iter::once(self).chain(self.also.iter().map(|state| &**state))
    }

    /// The model that a name asks for; this one, which then says what names there are, for any other name.
    pub fn named(self: &Arc<Self>, name: &str) -> Arc<ServerState> {
        // Ollama's clients write a tag behind each name.
        let plain = name.strip_suffix(":latest").unwrap_or(name);
        let is_of = |state: &ServerState| {
            let meant = [name, plain].map(|name| state.config.aliases.get(name).map_or(name, String::as_str));
            meant.contains(&state.backend.facts().model.as_str())
        };
        self.also.iter().find(|state| is_of(state)).unwrap_or(self).clone()
    }

    /// The model that the body of a request asks for, whatever its API.
    ///
    /// # Errors
    /// When the body cannot be looked at.
    pub async fn asked(self: Arc<Self>, body: Vec<u8>) -> Result<(Arc<ServerState>, Vec<u8>), ApiError> {
        if self.also.is_empty() {
            return Ok((self, body));
        }
        reply::blocking(move || {
            // A body that is no JSON goes to the route, which says what is wrong with it.
            let request: Value = serde_json::from_slice(&body).unwrap_or_default();
            let name = ["model", "name"].iter().find_map(|field| request[field].as_str());
            Ok((name.map_or_else(|| self.clone(), |name| self.named(name)), body))
        })
        .await
    }

    /// The work that waits and the work done, of every model by its name.
    pub fn loads(&self) -> Vec<(&str, BackendLoad)> {
        self.all().map(|state| (state.backend.facts().model.as_str(), state.backend.load())).collect()
    }

    /// The record of a request that has come with these headers.
    pub fn record(&self, route: &'static str, is_routine: bool, headers: &HeaderMap) -> Arc<Record> {
        let trace = self.tracer.as_ref().and_then(|tracer| tracer.begin(route, headers));
        let record = Record::new(route, is_routine, self.metrics.clone(), trace);
        // The first one is the client's own, the other one a gateway's.
        let name = headers.get("x-client-request-id").or(headers.get("x-request-id"));
        if let Some(name) = name.and_then(|name| name.to_str().ok()) {
            record.client(name);
        }
        Arc::new(record)
    }

    /// The scope in which the requests of a caller are read.
    pub fn scope(&self, caller: &Caller) -> RequestScope<'_> {
        RequestScope {
            facts: self.backend.facts(),
            aliases: &self.config.aliases,
            adapters: self.backend.adapters(),
            others: &self.others,
            tenant: caller.tenant,
            record: caller.record.clone(),
            date: self.config.date.date(),
            within: self.config.longest_answer,
            said: &[],
            max_tokens: None,
            grammars: self.config.grammars,
        }
    }

    /// Hands a request to the backend. Its generated tokens are taken off the tokens that its caller may use,
    /// and go into the record of the client's request.
    pub fn submit(self: &Arc<ServerState>, request: Request, record: &Option<Arc<Record>>) -> Running {
        let (state, tenant, record) = (self.clone(), request.tenant, record.clone());
        let prompt_tokens = request.prompt.len() as u64;
        if let Some(record) = &record {
            record.submitted(&request);
        }
        let mut running = self.backend.submit(request);
        running.count(move |figures| {
            state.config.keys.spend(tenant, figures.tokens, Instant::now());
            state.metrics.counted(prompt_tokens, figures);
            if let Some(record) = record {
                record.add(prompt_tokens, figures);
            }
        });
        running
    }

    /// Takes a prompt off the tokens that a caller may use.
    ///
    /// # Errors
    /// When the caller has used up its tokens.
    pub fn charge(&self, caller: &Caller, prompt_tokens: usize) -> Result<(), ApiError> {
        self.config.keys.charge(caller, prompt_tokens as u64, Instant::now())
    }

    /// Notes a turn that has ended.
    pub fn ended(&self, outcome: &TurnOutcome) {
        self.metrics.ended(outcome.reason, outcome.tokens.len(), outcome.first_token, outcome.took);
        self.metrics.saw(&outcome.anomalies);
    }
}
