//! Encrypted connections.

use super::{Served, ask};
use crate::scripted::Scripted;
use crate::state::ServerConfig;
use crate::tls::Tls;
use hyper_util::rt::TokioIo;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Channel, Uri};
use vllm_proto::inference_client::InferenceClient;

#[tokio::test]
async fn a_client_that_knows_the_certificate_is_served() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/localhost.pem");
    let tls = Tls { certificate: file.clone(), key: file.clone() };
    let served =
        Served::new(Scripted::stops(&["Yes."]), ServerConfig { tls: Some(tls), ..ServerConfig::default() })
            .await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file).unwrap()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let client = client.with_safe_default_protocol_versions().unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols.push(b"h2".to_vec());
    let (connector, address) = (TlsConnector::from(Arc::new(client)), served.address);
    let connect = tower::service_fn(move |_: Uri| {
        let connector = connector.clone();
        async move {
            let stream = TcpStream::connect(address).await?;
            let name = ServerName::try_from("localhost").unwrap();
            let stream = connector.connect(name, stream).await?;
            // Clients of gRPC leave where it was not agreed on.
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            Ok::<_, io::Error>(TokioIo::new(stream))
        }
    });
    let channel = Channel::from_static("http://localhost").connect_with_connector(connect).await.unwrap();
    let whole = InferenceClient::new(channel).generate(ask("Hi", 5)).await.unwrap().into_inner();
    assert_eq!(whole.outputs.unwrap().text, "Yes.");
    // Without TLS nothing is said.
    let plain = Channel::from_shared(format!("http://{address}")).unwrap();
    if let Ok(channel) = plain.connect().await {
        InferenceClient::new(channel).generate(ask("Hi", 5)).await.unwrap_err();
    }
}
