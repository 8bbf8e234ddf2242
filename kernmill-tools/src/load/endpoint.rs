//! A server somewhere as the target of a load: OpenAI's completions over HTTP.
//!
//! This is for `kernmill bench --serve --endpoint`: connections go to the address that is given, and nowhere
//! else. Servers have no part in it.

use super::target::{LoadRequest, LoadTarget, OnNews, RequestUpdate, Totals};
use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kernmill::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The longest wait for news, so that Ctrl-C is seen.
const NAP: Duration = Duration::from_millis(20);
/// Bytes of an answer to a question about models that are read at most.
const MOST: usize = 4 << 20;
/// Seconds in which an endpoint has to say what it serves.
const FACTS_SECONDS: u64 = 20;

/// Where a server is, and what it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address as it was given, without a slash at the end.
    pub url: String,
    /// Name and port of the machine.
    host: String,
    /// Path before `/completions`.
    path: String,
    /// The key, if the server wants one.
    key: Option<String>,
}

/// Facts about an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointFacts {
    /// Name of the model.
    pub model: String,
    /// Tokens of its context, if the server tells.
    pub context: Option<u32>,
    /// Tokens of its vocabulary, if the server tells.
    pub vocab: Option<u32>,
}

impl Endpoint {
    /// Reads an address such as `http://127.0.0.1:8080/v1`, with a key for the server if it wants one.
    ///
    /// # Errors
    /// When it is no address: a sentence that names what was expected.
    pub fn new(url: &str, key: Option<String>) -> Result<Endpoint, String> {
        let expected = "expected http://HOST:PORT/v1";
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => {
                return Err(format!(
                    "{url}: TLS is not supported here, {expected} (a tunnel such as ssh -L helps)"
                ));
            }
            _ => return Err(format!("{url} is no address, {expected}")),
        };
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']') && is_port(port));
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '@' | '?' | '#');
        if name.is_empty()
            || !rest.chars().all(is_plain)
            || (host.contains(':') && !has_port && !host.ends_with(']'))
        {
            return Err(format!("{url} is no address, {expected}"));
        }
        let host = if has_port { host.to_owned() } else { format!("{host}:80") };
        let path = path.trim_end_matches('/').to_owned();
        Ok(Endpoint { url: url.trim_end_matches('/').to_owned(), host, path, key })
    }

    /// Asks for what is served: the model of a name, or the first one.
    ///
    /// # Errors
    /// When there is no server, or it has no such model.
    pub fn facts(&self, name: Option<&str>) -> Result<EndpointFacts, String> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
        let limit = Duration::from_secs(FACTS_SECONDS);
        let late = |_| format!("{}: no answer within {FACTS_SECONDS} s", self.url);
        let get = |path: String| async move { self.whole(self.request("GET", &path, Body::empty())?).await };
        runtime.block_on(async {
            let list =
                tokio::time::timeout(limit, get(format!("{}/models", self.path))).await.map_err(late)??;
            let models = list["data"].as_array().cloned().unwrap_or_default();
            let is_wanted = |model: &&Value| name.is_none_or(|name| model["id"] == name);
            let Some(model) = models.iter().find(is_wanted) else {
                let names: Vec<&str> = models.iter().filter_map(|model| model["id"].as_str()).collect();
                let wanted = name.unwrap_or("any");
                return Err(format!("{}: there is no model {wanted}, only {}", self.url, names.join(", ")));
            };
            // Servers other than this one may not tell.
            let tokenizer =
                tokio::time::timeout(limit, get("/tokenizer_info".to_owned())).await.map_err(late)?;
            let whole = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
            Ok(EndpointFacts {
                model: model["id"].as_str().unwrap_or_default().to_owned(),
                context: whole(&model["max_model_len"]),
                vocab: tokenizer.ok().and_then(|facts| whole(&facts["vocab_size"])),
            })
        })
    }

    fn request(&self, method: &str, path: &str, body: Body) -> Result<Request<Body>, String> {
        let mut request = Request::builder().method(method).uri(path).header("host", &self.host);
        request = request.header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request.body(body).map_err(|error| format!("{}: {error}", self.url))
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.url);
        let stream = TcpStream::connect(&self.host).await.map_err(|error| failed(&error))?;
        let _ = stream.set_nodelay(true);
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| failed(&error))?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let body = read(response.into_body(), MOST).await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message =
            body["error"]["message"].as_str().or(body["message"].as_str()).unwrap_or("no reason given");
        Err(format!("status {status}: {message}"))
    }

    /// A whole answer in JSON.
    async fn whole(&self, request: Request<Body>) -> Result<Value, String> {
        let body = read(self.send(request).await?.into_body(), MOST).await?;
        serde_json::from_slice(&body).map_err(|error| format!("{}: the answer is no JSON: {error}", self.url))
    }

    /// Streams an answer; `on_piece` is told of its pieces. The tokens of the answer, and those of the prompt
    /// that were cached.
    async fn stream(&self, body: Value, on_piece: impl Fn()) -> Result<[u32; 2], String> {
        let path = format!("{}/completions", self.path);
        let request = self.request("POST", &path, Body::from(body.to_string()))?;
        let mut incoming = self.send(request).await?.into_body();
        let (mut rest, mut pieces, mut told, mut cached) = (Vec::new(), 0, None, 0);
        while let Some(bytes) = next(&mut incoming).await? {
            rest.extend_from_slice(&bytes);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let Some(data) = line.strip_prefix(b"data:") else { continue };
                if data.trim_ascii() == b"[DONE]" {
                    return Ok([told.unwrap_or(pieces), cached]);
                }
                let event: Value =
                    serde_json::from_slice(data).map_err(|error| format!("an event is no JSON: {error}"))?;
                if let Some(message) = event["error"]["message"].as_str() {
                    return Err(message.to_owned());
                }
                if event["choices"][0]["text"].as_str().is_some_and(|text| !text.is_empty()) {
                    pieces += 1;
                    on_piece();
                }
                let whole = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
                told = whole(&event["usage"]["completion_tokens"]).or(told);
                cached = whole(&event["usage"]["prompt_tokens_details"]["cached_tokens"]).unwrap_or(cached);
            }
            if rest.len() > MOST {
                return Err(format!("a line of events is longer than {MOST} bytes"));
            }
        }
        Err("the stream ended before [DONE]".to_owned())
    }
}

/// The next bytes of a body.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame.map_err(|error| format!("the connection broke: {error}"))?;
        // Frames that are no data are trailers.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

async fn read(mut body: Incoming, most: usize) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    while let Some(bytes) = next(&mut body).await? {
        if all.len() + bytes.len() > most {
            return Err(format!("the answer is longer than {most} bytes"));
        }
        all.extend_from_slice(&bytes);
    }
    Ok(all)
}

/// An endpoint as the target of a load. Every request has a separate connection.
///
/// Servers do not tell the ids of answers, so that those of the prompt stand for them in the next turn of a
/// conversation.
pub struct EndpointTarget {
    endpoint: Arc<Endpoint>,
    model: String,
    handle: Handle,
    /// Ends the thread of the connections when it is dropped.
    _end: oneshot::Sender<()>,
    sender: Sender<(u64, Duration, RequestUpdate)>,
    news: Receiver<(u64, Duration, RequestUpdate)>,
    running: BTreeMap<u64, AbortHandle>,
    next: u64,
    start: Instant,
}

/// A model of an endpoint that has answered.
pub struct Reached {
    /// The target that puts a load on it.
    pub target: EndpointTarget,
    /// The endpoint's address, and the model's name.
    pub at: (String, String),
    /// Tokens that a text may have; `u32::MAX` where it does not tell.
    pub context: u32,
    /// Tokens of the vocabulary.
    pub vocab: u32,
}

impl EndpointTarget {
    /// Reaches the model `model` of the endpoint at `url`, or its first one. `vocab` is the number of its
    /// tokens where it does not tell.
    ///
    /// # Errors
    /// When the address is not valid, the endpoint does not answer or has no such model, or nobody says how
    /// many tokens there are.
    pub fn reach(
        url: &str,
        key: Option<String>,
        model: Option<&str>,
        vocab: Option<u32>,
    ) -> Result<Reached, Error> {
        let endpoint = Endpoint::new(url, key).map_err(Error::bad_input)?;
        let facts = endpoint.facts(model).map_err(Error::failed)?;
        let untold = || format!("{url} does not tell its vocabulary: --endpoint-vocab N says it");
        let vocab = vocab.or(facts.vocab).ok_or_else(|| Error::bad_input(untold()))?;
        let at = (endpoint.url.clone(), facts.model.clone());
        let target = EndpointTarget::new(endpoint, facts.model);
        let target = target.map_err(|error| Error::failed(error.to_string()))?;
        Ok(Reached { target, at, context: facts.context.unwrap_or(u32::MAX), vocab })
    }

    /// Puts the load on a model of an endpoint. Adapters are models by their names.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(endpoint: Endpoint, model: String) -> std::io::Result<EndpointTarget> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, (end, ended)) = (runtime.handle().clone(), oneshot::channel::<()>());
        std::thread::Builder::new().name("connections".to_owned()).spawn(move || {
            // The sender is dropped, which is an end too.
            let _ = runtime.block_on(ended);
        })?;
        let (sender, news) = channel();
        Ok(EndpointTarget {
            endpoint: Arc::new(endpoint),
            model,
            handle,
            _end: end,
            sender,
            news,
            running: BTreeMap::new(),
            next: 0,
            start: Instant::now(),
        })
    }

    fn tell(&mut self, (id, at, news): (u64, Duration, RequestUpdate), on_news: &mut OnNews<'_>) {
        if !matches!(news, RequestUpdate::Token) {
            self.running.remove(&id);
        }
        on_news(id, at, news);
    }
}

impl LoadTarget for EndpointTarget {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn submit(&mut self, ask: &LoadRequest<'_>) -> Result<u64, String> {
        let body = json!({
            "model": ask.adapter.unwrap_or(&self.model),
            "prompt": ask.prompt,
            "max_tokens": ask.answer,
            "temperature": 0,
            "ignore_eos": true,
            "stream": true,
            "stream_options": { "include_usage": true },
            "user": format!("tenant-{}", ask.tenant),
        });
        let (id, start, sender) = (self.next, self.start, self.sender.clone());
        self.next += 1;
        let (endpoint, prompt) = (self.endpoint.clone(), ask.prompt.to_vec());
        let task = self.handle.spawn(async move {
            // A caller that gave the request up does not listen.
            let tell = |news| drop(sender.send((id, start.elapsed(), news)));
            let news = match endpoint.stream(body, || tell(RequestUpdate::Token)).await {
                Ok([answer, cached]) => {
                    let tokens = prompt.iter().cycle().take(answer as usize).copied().collect();
                    RequestUpdate::Done { tokens, cached }
                }
                Err(why) => RequestUpdate::Failed(why),
            };
            tell(news);
        });
        self.running.insert(id, task.abort_handle());
        Ok(id)
    }

    fn poll(&mut self, until: Option<Duration>, on_news: &mut OnNews<'_>) -> kernmill::Result<()> {
        let rest = until.map_or(NAP, |until| until.saturating_sub(self.now()).min(NAP));
        match self.news.recv_timeout(rest) {
            Ok(first) => self.tell(first, on_news),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
        while let Ok(more) = self.news.try_recv() {
            self.tell(more, on_news);
        }
        Ok(())
    }

    fn cancel(&mut self, request: u64) {
        if let Some(task) = self.running.remove(&request) {
            task.abort();
        }
    }

    fn queue(&self) -> [u32; 2] {
        [self.running.len() as u32, 0]
    }

    fn totals(&self) -> Totals {
        Totals::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let of = |url| Endpoint::new(url, None).map(|endpoint| (endpoint.host, endpoint.path));
        let is = |host: &str, path: &str| Ok((host.to_owned(), path.to_owned()));
        assert_eq!(of("http://127.0.0.1:8080/v1/"), is("127.0.0.1:8080", "/v1"));
        assert_eq!(of("http://localhost"), is("localhost:80", ""));
        assert_eq!(of("http://[::1]:8080/v1"), is("[::1]:8080", "/v1"));
        for (url, says) in [
            ("https://x/v1", "TLS is not supported here"),
            ("127.0.0.1:8080", "is no address, expected http://HOST:PORT/v1"),
            ("http://", "is no address"),
            ("http://a b/v1", "is no address"),
            ("http://host:99999/v1", "is no address"),
            ("http://user@host/v1", "is no address"),
        ] {
            let error = of(url).unwrap_err();
            assert!(error.contains(says), "{url}: {error}");
        }
    }

    #[test]
    fn who_is_not_there_is_told() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = Endpoint::new(&format!("http://{free}/v1"), None).unwrap().facts(None).unwrap_err();
        assert!(error.contains("refused"), "{error}");
    }
}
