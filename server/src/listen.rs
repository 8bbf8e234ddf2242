//! Connections: their number, the time that they may take, and the end of the server.

use crate::backend::Backend;
use crate::limits;
use crate::routes::router;
use crate::state::{Config, State};
use crate::tls::{self, Acceptor};
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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    acceptor: Option<Acceptor>,
    state: Arc<State>,
}

impl Server {
    /// Listens at the address of `config`.
    ///
    /// # Errors
    /// When the address is not free or not this machine's, other machines could reach it and there is no
    /// key, an alias means nothing, or there is no TLS with these files.
    pub async fn bind(backend: Arc<dyn Backend>, config: Config) -> io::Result<Server> {
        let checked = config.check().and_then(|()| config.check_aliases(&*backend));
        checked.map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
        let acceptor = config.tls.as_ref().map(|tls| tls.acceptor()).transpose()?;
        let listener = TcpListener::bind(config.address).await?;
        Ok(Server { listener, acceptor, state: Arc::new(State::new(backend, config)?) })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `end` is there. Then no connection is accepted any more, and answers have the time of
    /// [`Config::grace`] to end by themselves.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(limits::CONNECTIONS));
        let graceful = GracefulShutdown::new();
        let router = router(self.state.clone());
        if let Ok(address) = self.address() {
            let facts = self.state.backend.facts();
            let (model, context, fingerprint) = (&*facts.model, facts.context, &*facts.fingerprint);
            tracing::info!(%address, model, context, fingerprint, version = env!("CARGO_PKG_VERSION"), "start");
        }
        let mut end = std::pin::pin!(end);
        loop {
            let accepted = tokio::select! {
                () = &mut end => break,
                accepted = accept(&self.listener, &places) => accepted,
            };
            let Some((stream, place)) = accepted else { continue };
            // Small pieces go out at once.
            let _ = stream.set_nodelay(true);
            let (acceptor, router, watcher) = (self.acceptor.clone(), router.clone(), graceful.watcher());
            tokio::spawn(async move {
                if let Some(acceptor) = acceptor {
                    let limit = Duration::from_secs(limits::HEAD_SECONDS);
                    if let Some(stream) = tls::accept(&acceptor, stream, limit).await {
                        answer(stream, router, watcher).await;
                    }
                } else {
                    answer(stream, router, watcher).await;
                }
                drop(place);
            });
        }
        drop(self.listener);
        let grace = self.state.config.grace;
        tracing::info!(grace_seconds = grace.as_secs_f64(), "drain");
        self.state.backend.drain(grace);
        // A little more than the backend has, so that the last pieces go out.
        let _ = tokio::time::timeout(grace + Duration::from_secs(2), graceful.shutdown()).await;
        tracing::info!("end");
    }
}

/// Answers the requests of a connection.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, router: Router, watcher: Watcher) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(limits::HEAD_SECONDS))
        .max_buf_size(limits::HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // What a client does to its connection is its own affair.
    let _ = watcher.watch(connection).await;
}

/// The next connection that there is room for; `None` if it broke before it was there.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
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
/// told the address.
///
/// # Errors
/// When the server cannot listen ([`Server::bind`]), or the system gives no signals.
pub fn serve(
    backend: Arc<dyn Backend>,
    config: Config,
    on_ready: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> io::Result<()> {
    // One thread: the engine's workers have the others.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Server::bind(backend, config).await?;
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut ends = signal(SignalKind::terminate())?;
        on_ready(server.address()?)?;
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
    })
}
