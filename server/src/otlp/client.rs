//! How spans go out: requests of HTTP from the thread of the exporter, one at a time. They block nobody else.

use axum::body::{Body, to_bytes};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Time that a collector has for a batch.
const LIMIT: Duration = Duration::from_secs(5);

/// Bytes of its response that are read at most.
const MOST: usize = 1 << 20;

/// Sends batches to a collector.
#[derive(Debug, Default)]
pub struct CollectorClient {
    /// Whether the last batch was lost, which is told once.
    is_down: AtomicBool,
}

/// The outcome of sending a batch.
type Sent = Result<Response<Bytes>, HttpError>;

impl CollectorClient {
    fn send(&self, request: Request<Bytes>) -> Sent {
        let url = request.uri().clone();
        // A separate runtime: that of the server may wait for the end of this one.
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let sent = runtime.block_on(async { timeout(LIMIT, post(request)).await? });
        let lost = match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("status {}", response.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        let was_down = self.is_down.swap(lost.is_some(), Ordering::Relaxed);
        match lost {
            Some(why) if !was_down => {
                tracing::warn!("{url} takes no spans: {why}; they are dropped until it does");
            }
            None if was_down => tracing::info!("{url} takes spans again"),
            _ => {}
        }
        sent
    }
}

impl HttpClient for CollectorClient {
    fn send_bytes<'own, 'future>(
        &'own self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Sent> + Send + 'future>>
    where
        'own: 'future,
        Self: 'future,
    {
        Box::pin(async move { self.send(request) })
    }
}

/// Sends a request on a separate connection.
async fn post(request: Request<Bytes>) -> Sent {
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().ok_or("the address names no machine")?.clone();
    let port = host.port_u16().unwrap_or(80);
    // An address of IPv6 has brackets in a URL alone.
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((name, port)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    parts.headers.insert(HOST, host.as_str().parse()?);
    parts.uri = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    let response = sender.send_request(Request::from_parts(parts, Body::from(body))).await?;
    let (parts, body) = response.into_parts();
    let body = to_bytes(Body::new(body), MOST).await?;
    Ok(Response::from_parts(parts, body))
}
