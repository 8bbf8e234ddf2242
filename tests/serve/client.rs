//! A small HTTP client: it sends exactly what it is told to, also what no library would.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Reply {
    /// Value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            own.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The lines of a stream of Ollama's API.
    pub fn lines(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("application/x-ndjson"), "{}", self.body);
        self.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Data of the events of a stream, without the end that OpenAI's API has, which must be there.
    pub fn events(&self) -> Vec<Value> {
        let data = self.body.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
        let mut data: Vec<&str> = data.collect();
        assert_eq!(data.pop(), Some("[DONE]"), "{}", self.body);
        data.into_iter().map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

/// Sends bytes and reads until the server closes the connection.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    // A server that has refused already may not read to the end.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    read(&answer)
}

fn read(answer: &[u8]) -> Reply {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]).replace("\r\n", "\n");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut body = answer.get(end + 4..).unwrap_or_default().to_vec();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        body = joined(&body);
    }
    Reply { status, head, body: String::from_utf8(body).unwrap() }
}

/// A body that was sent in chunks.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = chunks.windows(2).position(|bytes| bytes == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 4 + length..];
    }
    body
}

/// The bytes of a request with a body of JSON.
pub fn post_bytes(path: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let more: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{more}\r\n{body}"
    )
    .into_bytes()
}

/// Posts JSON.
pub fn post(address: SocketAddr, path: &str, body: &Value) -> Reply {
    post_with(address, path, &[], body)
}

/// Posts JSON with more headers. Requests for texts name the model, unless they do so themselves.
pub fn post_with(address: SocketAddr, path: &str, headers: &[&str], body: &Value) -> Reply {
    let mut body = body.clone();
    if path.ends_with("completions") && body["model"].is_null() {
        body["model"] = "nano".into();
    }
    raw(address, &post_bytes(path, headers, &body.to_string()))
}

/// Gets what is at a path, with more headers.
pub fn get_with(address: SocketAddr, path: &str, headers: &[&str]) -> Reply {
    let more: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    raw(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n").as_bytes(),
    )
}

/// Gets what is at a path.
pub fn get(address: SocketAddr, path: &str) -> Reply {
    get_with(address, path, &[])
}
