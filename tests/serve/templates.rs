//! Chat templates that do much: none goes on when nobody waits for it.

use super::client::{post, post_bytes};
use super::{Served, nano_with};
use kernmill::Options;
use kernmill_server::ServerConfig;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CHAT: &str = "/v1/chat/completions";

/// A template that does much for a conversation of many messages only, which it is not asked about before.
const HEAVY: &str = "{% if messages|length > 100 %}{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}\
                     {% endfor %}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}";

/// A server of nano with that template.
fn served(grace: Duration) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("heavy.jinja");
    std::fs::write(&file, HEAVY).unwrap();
    let options = Options::default().with(|it| it.chat_template = Some(file));
    Served::of(nano_with(options, 512, 1), "nano", ServerConfig { grace, ..ServerConfig::default() })
}

/// A conversation of so many messages. The work that a template may do grows with them.
fn body(messages: usize) -> Value {
    let message = |n: usize| {
        json!({ "role": (if n.is_multiple_of(2) { "user" } else { "assistant" }),
        "content": "a" })
    };
    let messages: Vec<Value> = (0..messages).map(message).collect();
    json!({ "model": "nano", "messages": messages, "max_tokens": 1 })
}

/// Threads of this process that run a template.
fn running() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    // A thread that has ended since has no name.
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    names.filter(|name| name == "template\n").count()
}

/// Waits until there is such a thread, or none; how long that took.
fn wait(is_running: bool) -> Duration {
    let start = Instant::now();
    while (running() > 0) != is_running {
        assert!(start.elapsed() < Duration::from_secs(60), "{} templates run", running());
        std::thread::sleep(Duration::from_millis(2));
    }
    start.elapsed()
}

#[test]
fn a_template_ends_with_its_client_at_its_limit_and_with_the_server() {
    let served = served(Duration::from_millis(50));
    assert_eq!(post(served.address, CHAT, &body(3)).status, 200);
    wait(false);
    // At one of its limits, of work and of time.
    let reply = post(served.address, CHAT, &body(4001));
    assert!(reply.status == 400 && reply.body.contains("than a template may"), "{}", reply.body);
    wait(false);
    // With its client.
    let asks = || {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.write_all(&post_bytes(CHAT, &[], &body(4001).to_string())).unwrap();
        wait(true);
        stream
    };
    drop(asks());
    let taken = wait(false);
    assert!(taken < Duration::from_millis(1500), "{taken:?}");
    assert_eq!(post(served.address, CHAT, &body(3)).status, 200);
    // With the server, though its client stays.
    let client = asks();
    drop(served);
    let taken = wait(false);
    assert!(taken < Duration::from_millis(500), "{taken:?}");
    drop(client);
}
