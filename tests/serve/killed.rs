//! The program as a server, ended under load: by a signal that asks, and by one that does not.

use super::client::{get, post, post_bytes};
use crate::harness::program;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const PATH: &str = "/v1/chat/completions";

/// A server of the embedded model, and where it listens. Port 0 takes a free one.
pub fn start(port: u16, more: &[&str]) -> (Child, SocketAddr) {
    let mut program = program();
    program.args(["serve", "--threads", "1", "--port", &port.to_string()]).args(more);
    let mut child = program.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines.find_map(|line| {
        let line = line.unwrap();
        let rest = line.split_once("http://")?.1;
        Some(rest.split(' ').next()?.parse::<SocketAddr>().unwrap())
    });
    (child, address.unwrap())
}

/// A request that many send.
fn request(n: usize) -> Value {
    let text = format!("Sort: {}, {}, {}", n % 83, n % 59, n % 31);
    json!({
        "model": "nano", "messages": [{ "role": "user", "content": text }], "temperature": 0,
        "max_tokens": 60, "stream": n.is_multiple_of(2),
    })
}

/// The answer to a request, as far as it comes; `None` if nobody listens.
fn ask(address: SocketAddr, body: &Value) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let _ = stream.write_all(&post_bytes(PATH, &[], &body.to_string()));
    let mut answer = Vec::new();
    let end = stream.read_to_end(&mut answer);
    assert!(!end.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "the server hangs");
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// Whether an answer has come whole: with its length or its last chunk.
fn is_whole(answer: &str) -> bool {
    answer.ends_with("\r\n0\r\n\r\n") || (answer.ends_with('}') && !answer.contains("text/event-stream"))
}

/// Sends requests from several threads until `is_over`, while `during` runs; what came back.
fn under_load(
    address: SocketAddr,
    is_over: &AtomicBool,
    during: impl FnOnce(&AtomicUsize),
) -> Vec<Option<String>> {
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..12)
            .map(|_| {
                scope.spawn(|| {
                    let mut answers = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        answers.push(ask(address, &request(next.fetch_add(1, Ordering::Relaxed))));
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                    answers
                })
            })
            .collect();
        during(&ended);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

/// Waits until so many requests have ended.
fn wait_for(ended: &AtomicUsize, count: usize) {
    while ended.load(Ordering::Relaxed) < count {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn answer(address: SocketAddr) -> Value {
    let mut body = request(1);
    body["stream"] = json!(false);
    let reply = post(address, PATH, &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()["choices"].clone()
}

#[test]
fn a_server_that_was_killed_serves_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("sessions")).unwrap();
    let options = ["--session-dir", &path("sessions"), "--kv-disk", &path("blocks")];
    let (mut child, address) = start(0, &options);
    let expected = answer(address);
    let save = |name: &str| {
        let text = format!("{name} is a slice. ").repeat(20);
        post(address, "/v1/sessions", &json!({ "name": name, "model": "nano", "prompt": text })).status
    };
    for round in 0..4 {
        let is_over = AtomicBool::new(false);
        let answers = under_load(address, &is_over, |ended| {
            wait_for(ended, 8 * (round + 1));
            assert_eq!(save(&format!("a{round}")), 200);
            child.kill().unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
        child.wait().unwrap();
        let whole = answers.iter().flatten().filter(|answer| is_whole(answer)).count();
        assert!(whole >= 8 * (round + 1), "{whole} of {}", answers.len());
        (child, _) = start(address.port(), &options);
        assert_eq!(get(address, "/ready").status, 200);
        assert_eq!(answer(address), expected, "after kill {round}");
        let sessions = get(address, "/v1/sessions").json();
        let known = sessions["data"].as_array().unwrap();
        assert_eq!(known.len(), round + 1, "{sessions}");
        let left = walk(Path::new(&path("sessions")));
        assert!(left.iter().all(|file| file.ends_with(".session")), "{left:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Names of the files below a directory.
fn walk(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path.to_str().unwrap().to_owned()] })
        .collect()
}

#[test]
fn a_server_that_is_asked_to_end_answers_what_it_has_taken() {
    let (mut child, address) = start(0, &["--grace", "60"]);
    let is_over = AtomicBool::new(false);
    let answers = under_load(address, &is_over, |ended| {
        wait_for(ended, 20);
        let asked = std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(asked.success());
        is_over.store(true, Ordering::Relaxed);
        assert!(child.wait().unwrap().success());
    });
    assert!(answers.len() >= 20);
    for answer in answers.iter().flatten() {
        let is_answered = answer.starts_with("HTTP/1.1 200") && answer.contains("\"finish_reason\":\"");
        // A connection that was not accepted yet is closed; one that was, is told to try elsewhere. If its
        // stream has opened by then, it is told there.
        let is_told =
            answer.starts_with("HTTP/1.1 503") || answer.contains("has begun with this request: send");
        assert!(is_answered || is_told || answer.is_empty(), "{answer}");
        assert!(!is_answered || is_whole(answer), "{answer}");
    }
}
