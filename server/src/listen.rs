//! Connections: their number, the time that they may take, and the end of the server.

use crate::backend::Backend;
use crate::grpc;
use crate::limits;
use crate::routes::router;
use crate::state::{ServerConfig, ServerState};
use crate::tls::{self, Acceptor, Stream};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Time that the last spans have to go out.
const FLUSH: Duration = Duration::from_secs(5);

/// A server that listens.
pub struct Server {
    http: Door<Router>,
    grpc: Option<Door<grpc::Service>>,
    state: Arc<ServerState>,
}

/// Where connections come in, and what answers them.
struct Door<T> {
    listener: TcpListener,
    acceptor: Option<Acceptor>,
    service: T,
}

impl Server {
    /// Listens at the address of `config`. The first model is the one where a request names none.
    ///
    /// # Errors
    /// When the address is not free or not this machine's, other machines could reach it and there is no
    /// key, two models have one name, an alias means nothing, or there is no TLS with these files.
    pub async fn bind(models: &[Arc<dyn Backend>], config: ServerConfig) -> io::Result<Server> {
        let names: Vec<&str> = models.iter().map(|model| model.facts().model.as_str()).collect();
        let adapters = models.first().map(|model| model.adapters()).unwrap_or_default();
        let adapters: Vec<&str> = adapters.iter().map(String::as_str).collect();
        let checked = config.check().and_then(|()| config.check_names(&names, &adapters));
        checked.map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
        let state = ServerState::new(models, config)?;
        let address = state.config.address;
        let acceptor = |protocol| state.config.tls.as_ref().map(|tls| tls.acceptor(protocol)).transpose();
        let http = Door {
            acceptor: acceptor("")?,
            listener: TcpListener::bind(address).await?,
            service: router(state.clone()),
        };
        let grpc = match state.config.grpc_port {
            None => None,
            Some(port) => {
                let service = grpc::service(state.clone())?;
                let bound = TcpListener::bind(SocketAddr::new(address.ip(), port)).await;
                let listener = bound
                    .map_err(|error| io::Error::new(error.kind(), format!("gRPC, port {port}: {error}")))?;
                Some(Door { acceptor: acceptor("h2")?, listener, service })
            }
        };
        Ok(Server { http, grpc, state })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.http.listener.local_addr()
    }

    /// The address at which it listens for gRPC, if it does.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn grpc_address(&self) -> io::Result<Option<SocketAddr>> {
        self.grpc.as_ref().map(|door| door.listener.local_addr()).transpose()
    }

    /// A sentence that says what is served, and where.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn greeting(&self) -> io::Result<String> {
        let address = self.address()?;
        let scheme = if self.state.config.tls.is_some() { "https" } else { "http" };
        let grpc = self.grpc_address()?.map(|address| format!(", gRPC at {address}")).unwrap_or_default();
        let named = |state: &ServerState, is: &str| {
            let facts = state.backend.facts();
            format!("{}{is} ({} tokens)", facts.model, facts.context)
        };
        let (first, at) = (&self.state, format!(" is served at {scheme}://{address}"));
        let also: String = first.all().skip(1).map(|state| format!(", {}", named(state, ""))).collect();
        Ok(format!("{}{also}{grpc}; Ctrl-C ends", named(first, &at)))
    }

    /// Serves until `end` is there. Then no connection is accepted any more, and answers have the time of
    /// [`ServerConfig::grace`] to end by themselves.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(limits::CONNECTIONS));
        let graceful = GracefulShutdown::new();
        if let Ok(address) = self.address() {
            for facts in self.state.all().map(|state| state.backend.facts()) {
                let (model, context, fingerprint) = (&*facts.model, facts.context, &*facts.fingerprint);
                let version = env!("CARGO_PKG_VERSION");
                tracing::info!(%address, model, context, fingerprint, version, "start");
            }
        }
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                accepted = accept(Some(&self.http), &places) => {
                    spawn(accepted, &self.http, graceful.watcher(), answer);
                }
                accepted = accept(self.grpc.as_ref(), &places) => {
                    if let Some(door) = &self.grpc {
                        spawn(accepted, door, graceful.watcher(), grpc::answer);
                    }
                }
            }
        }
        drop((self.http, self.grpc));
        let grace = self.state.config.grace;
        tracing::info!(grace_seconds = grace.as_secs_f64(), "drain");
        self.state.all().for_each(|state| state.backend.drain(grace));
        // A little more than the backends have, so that the last pieces go out.
        let _ = tokio::time::timeout(grace + Duration::from_secs(2), graceful.shutdown()).await;
        if let Some(tracer) = self.state.tracer.clone() {
            // On a thread that may wait. Where it fails, spans are lost, and nothing else.
            let _ = tokio::task::spawn_blocking(move || tracer.finish(FLUSH)).await;
        }
        tracing::info!("end");
    }
}

/// Has a connection answered by a separate task.
fn spawn<T, F>(
    accepted: Option<(TcpStream, OwnedSemaphorePermit)>,
    door: &Door<T>,
    watcher: Watcher,
    answer: impl FnOnce(Box<dyn Stream>, T, Watcher) -> F + Send + 'static,
) where
    T: Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let Some((stream, place)) = accepted else { return };
    // Small pieces go out at once.
    let _ = stream.set_nodelay(true);
    let (acceptor, service) = (door.acceptor.clone(), door.service.clone());
    tokio::spawn(async move {
        if let Some(acceptor) = acceptor {
            let limit = Duration::from_secs(limits::HEAD_SECONDS);
            if let Some(stream) = tls::accept(&acceptor, stream, limit).await {
                answer(Box::new(stream), service, watcher).await;
            }
        } else {
            answer(Box::new(stream), service, watcher).await;
        }
        drop(place);
    });
}

/// Answers the requests of a connection.
async fn answer(stream: Box<dyn Stream>, router: Router, watcher: Watcher) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(limits::HEAD_SECONDS))
        .max_buf_size(limits::HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client may do to its connection as it likes.
    let _ = watcher.watch(connection).await;
}

/// The next connection that there is room for; `None` if it broke before it was there. Where there is no
/// door, none ever comes.
async fn accept<T>(
    door: Option<&Door<T>>,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let Some(door) = door else { return std::future::pending().await };
    let place = places.clone().acquire_owned().await.ok()?;
    match door.listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // Out of file descriptors, say: others end, and free some.
            tracing::warn!("a connection was not accepted: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// Serves until the program is told to end, by Ctrl-C or SIGTERM; a second one ends it at once. `on_ready` is
/// told what is served, and where. In the end it waits for the models' caches to be on disk.
///
/// # Errors
/// When the server cannot listen ([`Server::bind`]), or the system gives no signals.
pub fn serve(
    models: &[Arc<dyn Backend>],
    config: ServerConfig,
    on_ready: impl FnOnce(&str),
) -> io::Result<()> {
    // One thread: the engine's workers have the others.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let server = Server::bind(models, config).await?;
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut ends = signal(SignalKind::terminate())?;
        on_ready(&server.greeting()?);
        let (told, wait) = tokio::sync::oneshot::channel::<()>();
        let served = server.run(async move {
            // The sender is dropped with the first signal.
            let _ = wait.await;
        });
        let signals = async {
            tokio::select! { _ = interrupts.recv() => {}, _ = ends.recv() => {} }
            drop(told);
            tokio::select! { _ = interrupts.recv() => {}, _ = ends.recv() => {} }
        };
        tokio::select! { () = served => {}, () = signals => {} }
        Ok(())
    });
    // Work for a client that is gone does not hold up the end.
    runtime.shutdown_background();
    served.inspect(|()| models.iter().for_each(|model| model.end()))
}

#[cfg(all(test, feature = "tls"))]
mod tls_tests {
    use super::Server;
    use crate::scripted::Scripted;
    use crate::state::ServerConfig;
    use crate::tls::Tls;
    use std::net::SocketAddr;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    /// A self-signed certificate for `localhost` until 2126, and its key.
    fn file() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/localhost.pem")
    }

    #[tokio::test]
    async fn a_client_that_knows_the_certificate_is_served() {
        let tls = Tls { certificate: file(), key: file() };
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServerConfig { address, tls: Some(tls), ..ServerConfig::default() };
        let server = Server::bind(&[Scripted::stops(&["Yes."])], config).await.unwrap();
        let address = server.address().unwrap();
        let (end, ends) = tokio::sync::oneshot::channel::<()>();
        let served = tokio::spawn(server.run(async { drop(ends.await) }));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file()).unwrap()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let client = client.with_safe_default_protocol_versions().unwrap();
        let client = client.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await.unwrap();
        let request = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // The connection may end without a goodbye.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"nano\""), "{answer}");
        // Without TLS nothing is said.
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"));
        drop(end);
        served.await.unwrap();
    }
}
