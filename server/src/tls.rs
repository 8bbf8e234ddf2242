//! TLS: connections that are encrypted. Without the feature `tls` there is only what says so.

use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncWrite};

/// Files of a server's certificate and key, as PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate, followed by the ones that sign it.
    pub certificate: PathBuf,
    /// Private key of the certificate: PKCS #8, PKCS #1 or SEC 1. May be in the same file.
    pub key: PathBuf,
}

/// A connection that may be encrypted.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[cfg(feature = "tls")]
pub use rustls::{Acceptor, accept};
#[cfg(not(feature = "tls"))]
pub use without::{Acceptor, accept};

#[cfg(feature = "tls")]
mod rustls {
    use super::{Tls, io};
    use kernmill_os::files::read_named;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::net::TcpStream;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::server::TlsStream;

    /// Bytes of a file at most: chains of certificates have a few thousand.
    const MOST_BYTES: u64 = 1 << 20;

    /// Makes connections encrypted ones.
    #[derive(Clone)]
    pub struct Acceptor(TlsAcceptor);

    impl Tls {
        /// Reads the files, for connections that speak `protocol`, as TLS names it. Where it is empty,
        /// nothing is said of it.
        ///
        /// # Errors
        /// When a file cannot be read, has no certificate or key, or the two do not belong together.
        pub fn acceptor(&self, protocol: &str) -> io::Result<Acceptor> {
            let wrong = |path: &Path, what: &dyn std::fmt::Display| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {what}", path.display()))
            };
            let read = |path: &Path| read_named(path, MOST_BYTES).map_err(|error| wrong(path, &error));
            let pem = read(&self.certificate)?;
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
            let chain = chain.map_err(|error| wrong(&self.certificate, &error))?;
            if chain.is_empty() {
                return Err(wrong(&self.certificate, &"expected a certificate as PEM"));
            }
            let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?);
            let key = key.map_err(|error| {
                wrong(&self.key, &format_args!("expected a private key as PEM without a passphrase: {error}"))
            })?;
            let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
            let mut config = config.map_err(|error| wrong(&self.key, &error))?;
            if !protocol.is_empty() {
                config.alpn_protocols.push(protocol.as_bytes().to_vec());
            }
            Ok(Acceptor(TlsAcceptor::from(Arc::new(config))))
        }
    }

    /// The encrypted connection; `None` if the two ends do not agree in time.
    pub async fn accept(
        acceptor: &Acceptor,
        stream: TcpStream,
        limit: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        tokio::time::timeout(limit, acceptor.0.accept(stream)).await.ok()?.ok()
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use super::{Tls, io};
    use std::convert::Infallible;
    use std::time::Duration;
    use tokio::net::TcpStream;

    /// An acceptor that cannot exist.
    #[derive(Clone)]
    pub struct Acceptor(Infallible);

    impl Tls {
        /// Says that this build has no TLS.
        ///
        /// # Errors
        /// Always.
        pub fn acceptor(&self, _: &str) -> io::Result<Acceptor> {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernmill is built without TLS; build it with `--features tls`, or put a reverse proxy in front",
            ))
        }
    }

    /// Cannot be called.
    pub async fn accept(acceptor: &Acceptor, _: TcpStream, _: Duration) -> Option<TcpStream> {
        match acceptor.0 {}
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::Tls;
    use std::path::Path;

    #[test]
    fn a_wrong_file_is_named() {
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/localhost.pem");
        let none = Path::new("no-such-file.pem").to_owned();
        let error = |certificate, key| Tls { certificate, key }.acceptor("").err().unwrap().to_string();
        assert!(error(none.clone(), own()).contains("no-such-file.pem"));
        assert!(error(own(), none).contains("no-such-file.pem"));
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(error(text, own()).contains("Cargo.toml: expected a certificate"));
    }
}
