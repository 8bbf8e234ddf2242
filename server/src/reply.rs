//! Responses: JSON, and streams of events.

use crate::error::ApiError;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use kernmill_os::foreign::Cancel;
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often a stream without events shows that it is alive. Proxies and clients give up on silent ones.
const PING: Duration = Duration::from_secs(10);

/// A response of JSON.
pub fn json(value: &Value) -> Response {
    let mut response = value.to_string().into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Names fields that mean nothing here in a header of the response.
pub fn with_warnings(mut response: Response, unknown: &[String]) -> Response {
    let names: Vec<&str> = unknown.iter().map(String::as_str).take(20).collect();
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    let text: String = names.join(", ").chars().filter(|c| is_plain(*c)).take(500).collect();
    if let Ok(value) = HeaderValue::from_str(&text)
        && !text.is_empty()
    {
        response.headers_mut().insert("x-kernmill-unknown-fields", value);
    }
    response
}

/// Does something that takes time, off the thread that serves connections. Work of foreign programs in it
/// ends soon when the client is gone.
///
/// # Errors
/// As those of `work`; when it panics.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let panicked = |_| ApiError::internal("the request could not be read: the log says why");
    let cancel = Cancel::default();
    let _gone = cancel.on_drop();
    tokio::task::spawn_blocking(move || cancel.around(work)).await.map_err(panicked)?
}

/// Where the events of a response go. The last clone that is dropped ends the response.
#[derive(Clone)]
pub struct ReplyStream(UnboundedSender<Bytes>);

impl ReplyStream {
    /// A stream and its response, whose headers are sent at once.
    pub fn new() -> (ReplyStream, Response) {
        let mut ping = interval(PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping.reset();
        ReplyStream::of("text/event-stream", Some(ping))
    }

    /// A stream of lines of JSON, among which there is no place for anything else.
    pub fn lines() -> (ReplyStream, Response) {
        ReplyStream::of("application/x-ndjson", None)
    }

    fn of(kind: &'static str, ping: Option<Interval>) -> (ReplyStream, Response) {
        let (sender, receiver) = unbounded_channel();
        let body = EventBody { receiver, ping };
        let mut response = Body::from_stream(body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // nginx would collect the events otherwise.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        (ReplyStream(sender), response)
    }

    /// Sends an event of JSON; `None` if nobody listens any more.
    pub fn send(&self, value: &Value) -> Option<()> {
        self.0.send(Bytes::from(format!("data: {value}\n\n"))).ok()
    }

    /// Sends an event with a name; `None` if nobody listens any more.
    pub fn send_named(&self, name: &str, value: &Value) -> Option<()> {
        self.0.send(Bytes::from(format!("event: {name}\ndata: {value}\n\n"))).ok()
    }

    /// Sends a line of JSON; `None` if nobody listens any more.
    pub fn send_line(&self, value: &Value) -> Option<()> {
        self.0.send(Bytes::from(format!("{value}\n"))).ok()
    }

    /// Sends the end as OpenAI's API has it.
    pub fn done(&self) {
        // A client that is gone needs no end.
        let _ = self.0.send(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    /// Waits until nobody listens any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// The body of a stream, with a comment where nothing else comes and the stream has comments.
struct EventBody {
    receiver: UnboundedReceiver<Bytes>,
    ping: Option<Interval>,
}

impl futures_core::Stream for EventBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(event) = self.receiver.poll_recv(context) {
            self.ping.iter_mut().for_each(Interval::reset);
            return Poll::Ready(event.map(Ok));
        }
        match self.ping.as_mut().map(|ping| ping.poll_tick(context)) {
            Some(Poll::Ready(_)) => Poll::Ready(Some(Ok(Bytes::from_static(b": ping\n\n")))),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }
}
