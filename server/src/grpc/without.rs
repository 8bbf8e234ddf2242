//! The stand-in for a build without the feature `grpc`: it reports that.

use crate::state::ServerState;
use crate::tls::Stream;
use hyper_util::server::graceful::Watcher;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;

/// A service that cannot exist.
#[derive(Clone)]
pub struct Service(Infallible);

/// Says that this build has no gRPC.
///
/// # Errors
/// Always.
pub fn service(_: Arc<ServerState>) -> io::Result<Service> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this kernmill is built without gRPC; build it with `--features grpc`",
    ))
}

/// Cannot be called.
pub async fn answer(_: Box<dyn Stream>, service: Service, _: Watcher) {
    match service.0 {}
}
