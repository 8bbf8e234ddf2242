//! A hub on the loopback, with a second host for large files, as hubs have it. It can be out of order in many
//! ways.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// The commit that the hub has.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The model that the hub has.
pub const MODEL: &str = "acme/tiny";

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Whether it came to the host for large files.
    pub at_store: bool,
    /// The path with its query.
    pub path: String,
    /// The header Authorization.
    pub token: Option<String>,
    /// The first byte that is wanted.
    pub from: usize,
}

/// An answer out of the usual.
pub enum Fault {
    /// This status, with lines of headers.
    Status(u16, String),
    /// The usual answer, which ends after so many bytes of its contents.
    Cut(usize),
    /// All of the file, whatever is wanted.
    Whole,
    /// Other contents.
    Contents(Vec<u8>),
}

/// The fault of an answer, if it has one; the number counts the requests.
type Faults = dyn Fn(&Asked, usize) -> Option<Fault> + Send + Sync;

pub struct Hub {
    /// Address of the hub.
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    files: BTreeMap<String, Vec<u8>>,
    store: String,
    faults: Box<Faults>,
    asked: Mutex<Vec<Asked>>,
}

/// Whether a file is kept in the store, as large files are.
fn is_stored(path: &str) -> bool {
    !path.ends_with(".json") && !path.ends_with(".md")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a file in the cache.
pub fn sum(path: &str, bytes: &[u8]) -> String {
    if is_stored(path) {
        return hex(digest(&SHA256, bytes).as_ref());
    }
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(format!("blob {}\0", bytes.len()).as_bytes());
    context.update(bytes);
    hex(context.finish().as_ref())
}

/// The description of a model with these files.
pub fn list(files: &BTreeMap<String, Vec<u8>>) -> Value {
    let file = |(path, bytes): (&String, &Vec<u8>)| {
        let sum = sum(path, bytes);
        match is_stored(path) {
            true => {
                let lfs = json!({ "sha256": sum, "size": bytes.len(), "pointerSize": 134 });
                json!({ "rfilename": path, "size": bytes.len(), "blobId": "f".repeat(40), "lfs": lfs })
            }
            false => json!({ "rfilename": path, "size": bytes.len(), "blobId": sum }),
        }
    };
    json!({ "id": MODEL, "sha": COMMIT, "siblings": files.iter().map(file).collect::<Vec<_>>() })
}

/// The file with the certificate of `localhost` and its key.
pub fn certificate_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/localhost.pem")
}

fn encryption() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(certificate_file()).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificate_file()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    Arc::new(config.with_single_cert(vec![certificate], key).unwrap())
}

impl Hub {
    pub fn start(
        files: &BTreeMap<String, Vec<u8>>,
        faults: impl Fn(&Asked, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Hub {
        Hub::of(files, faults, None)
    }

    /// A hub whose connections are encrypted; its address is that of `localhost`.
    pub fn encrypted(
        files: &BTreeMap<String, Vec<u8>>,
        faults: impl Fn(&Asked, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Hub {
        Hub::of(files, faults, Some(encryption()))
    }

    fn of(
        files: &BTreeMap<String, Vec<u8>>,
        faults: impl Fn(&Asked, usize) -> Option<Fault> + Send + Sync + 'static,
        encryption: Option<Arc<ServerConfig>>,
    ) -> Hub {
        let [hub, store] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let (address, store_address) = (hub.local_addr().unwrap(), store.local_addr().unwrap());
        let state = Arc::new(State {
            files: files.clone(),
            store: match encryption {
                None => format!("http://{store_address}"),
                Some(_) => format!("https://localhost:{}", store_address.port()),
            },
            faults: Box::new(faults),
            asked: Mutex::default(),
        });
        for (listener, at_store) in [(hub, false), (store, true)] {
            let (state, encryption) = (Arc::clone(&state), encryption.clone());
            spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (state, encryption) = (Arc::clone(&state), encryption.clone());
                    spawn(move || match encryption {
                        None => state.answer(stream, at_store),
                        Some(config) => {
                            let connection = ServerConnection::new(config).unwrap();
                            state.answer(StreamOwned::new(connection, stream), at_store);
                        }
                    });
                }
            });
        }
        Hub { address, state }
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// The paths of files that were sent, in order.
    pub fn sent(&self) -> Vec<String> {
        let asked = self.asked().into_iter().filter(|asked| asked.at_store || asked.path.ends_with(".json"));
        asked.map(|asked| asked.path.rsplit('/').next().unwrap().to_owned()).collect()
    }
}

impl State {
    fn answer(&self, mut stream: impl Read + Write, at_store: bool) {
        let mut lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
        let Some(first) = lines.next() else { return };
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let header = |name: &str| {
            headers.iter().find_map(|line| {
                let (own, value) = line.split_once(": ")?;
                own.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let from = header("range")
            .map_or(0, |range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap());
        let asked = Asked { at_store, path, token: header("authorization"), from };
        let number = {
            let mut all = self.asked.lock().unwrap();
            all.push(asked.clone());
            all.len()
        };
        // That who asked has gone changes nothing.
        let _ = self.write(stream, &asked, (self.faults)(&asked, number));
    }

    fn write(&self, mut stream: impl Write, asked: &Asked, fault: Option<Fault>) -> std::io::Result<()> {
        let path = asked.path.split('?').next().unwrap();
        if let Some(Fault::Status(status, headers)) = &fault {
            return write!(
                stream,
                "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n{headers}\r\n"
            );
        }
        if path.starts_with("/api/models/") && path.ends_with("/revision/main") {
            let text = match fault {
                Some(Fault::Contents(bytes)) => bytes,
                _ => list(&self.files).to_string().into_bytes(),
            };
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
            return stream.write_all(&[head.as_bytes(), &text].concat());
        }
        let resolved = path.split_once(&format!("/resolve/{COMMIT}/")).map(|(_, name)| name);
        let name = resolved.or_else(|| path.strip_prefix("/store/")).unwrap_or_default();
        let Some(contents) = self.files.get(name) else {
            return write!(stream, "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        if is_stored(name) && !asked.at_store {
            let to = format!("{}/store/{name}?Signature=secret", self.store);
            return write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        let changed = match &fault {
            Some(Fault::Contents(bytes)) => bytes,
            _ => contents,
        };
        let from = if matches!(fault, Some(Fault::Whole)) { 0 } else { asked.from };
        let body = &changed[from.min(changed.len())..];
        let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
        let range = match from {
            0 => String::new(),
            _ => format!("Content-Range: bytes {from}-{}/{}\r\n", changed.len() - 1, changed.len()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{range}Connection: close\r\n\r\n",
            body.len()
        );
        let shown = match fault {
            Some(Fault::Cut(bytes)) => &body[..bytes.min(body.len())],
            _ => body,
        };
        stream.write_all(&[head.as_bytes(), shown].concat())
    }
}
