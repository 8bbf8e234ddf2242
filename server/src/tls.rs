//! TLS: connections that are encrypted. Without the feature `tls` there is only what says so.

use std::io;
use std::path::PathBuf;

/// Files of a server's certificate and key, as PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate, followed by the ones that sign it.
    pub certificate: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1. May be the same file.
    pub key: PathBuf,
}

#[cfg(feature = "tls")]
pub use rustls::{Acceptor, accept};
#[cfg(not(feature = "tls"))]
pub use without::{Acceptor, accept};

#[cfg(feature = "tls")]
mod rustls {
    use super::{Tls, io};
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

    /// Makes connections encrypted ones.
    #[derive(Clone)]
    pub struct Acceptor(TlsAcceptor);

    impl Tls {
        /// Reads the files.
        ///
        /// # Errors
        /// When a file cannot be read, has no certificate or key, or the two do not belong together.
        pub fn acceptor(&self) -> io::Result<Acceptor> {
            let wrong = |path: &Path, what: &dyn std::fmt::Display| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {what}", path.display()))
            };
            let chain: Result<Vec<_>, _> =
                CertificateDer::pem_file_iter(&self.certificate).and_then(Iterator::collect);
            let chain = chain.map_err(|error| wrong(&self.certificate, &error))?;
            if chain.is_empty() {
                return Err(wrong(&self.certificate, &"expected a certificate as PEM"));
            }
            let key = PrivateKeyDer::from_pem_file(&self.key);
            let key = key.map_err(|error| {
                wrong(&self.key, &format_args!("expected a private key as PEM without a passphrase: {error}"))
            })?;
            let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
            let config = config.map_err(|error| wrong(&self.key, &error))?;
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

    /// There is none.
    #[derive(Clone)]
    pub struct Acceptor(Infallible);

    impl Tls {
        /// Says that this build has no TLS.
        ///
        /// # Errors
        /// Always.
        pub fn acceptor(&self) -> io::Result<Acceptor> {
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
    use crate::listen::Server;
    use crate::scripted::Scripted;
    use crate::state::Config;
    use std::net::SocketAddr;
    use std::path::Path;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    /// A self-signed certificate for `localhost` until 2126, and its key.
    fn file() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/localhost.pem")
    }

    #[tokio::test]
    async fn a_client_that_knows_the_certificate_is_served() {
        let tls = Tls { certificate: file(), key: file() };
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = Config { address, tls: Some(tls), ..Config::default() };
        let server = Server::bind(Scripted::stops(&["Yes."]), config).await.unwrap();
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

    #[test]
    fn a_wrong_file_is_named() {
        let none = Path::new("no-such-file.pem").to_owned();
        let error = |certificate, key| Tls { certificate, key }.acceptor().err().unwrap().to_string();
        assert!(error(none.clone(), file()).contains("no-such-file.pem"));
        assert!(error(file(), none).contains("no-such-file.pem"));
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(error(text, file()).contains("Cargo.toml: expected a certificate"));
    }
}
