//! Many clients at once: texts as alone, nothing left of those that go, an end that loses nothing.

use super::client::{Reply, get, post, post_bytes};
use super::killed::start;
use super::{Served, patient};
use fastrand::Rng;
use kernmill_serve::SchedulerConfig as Scheduling;
use kernmill_server::ServerConfig;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A number of a run of the tests; another one if the environment says so.
fn of_environment(name: &str) -> Option<usize> {
    std::env::var(name).ok().and_then(|count| count.parse().ok())
}

/// Requests of a run, usually so many.
fn count(usual: usize) -> usize {
    of_environment("KERNMILL_REQUESTS").unwrap_or(usual)
}

/// Clients at once.
fn clients() -> usize {
    of_environment("KERNMILL_CLIENTS").unwrap_or(24)
}

/// A request from a number: either API, streamed or not, a beginning that others share or one of its own.
fn request(n: usize) -> (&'static str, Value) {
    let mut rng = Rng::with_seed(n as u64 % 50);
    let starts =
        ["A slice is a view into a block of memory", "The standard library", "fn main() {", "Cargo is"];
    let text = format!("{} {}", rng.choice(starts).unwrap(), rng.u32(0..20));
    let (tokens, seed) = (rng.u32(1..24), rng.u64(..1000));
    let mut body = json!({ "model": "nano", "max_tokens": tokens, "seed": seed, "temperature": 0.7,
        "stream": n.is_multiple_of(3) });
    if rng.bool() {
        body["prompt"] = json!(text);
        ("/v1/completions", body)
    } else {
        body["messages"] = json!([{ "role": "user", "content": text }]);
        ("/v1/chat/completions", body)
    }
}

/// The text of an answer in any form.
fn text_of(path: &str, streams: bool, reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let is_chat = path.contains("chat");
    if !streams {
        let choice = &reply.json()["choices"][0];
        let message = &choice["message"];
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        return if is_chat {
            text(&message["reasoning"]) + &text(&message["content"])
        } else {
            text(&choice["text"])
        };
    }
    let events = reply.events();
    let of = |event: &Value| {
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        let texts =
            if is_chat { [&delta["reasoning"], &delta["content"]] } else { [&choice["text"], &Value::Null] };
        Some(texts.into_iter().filter_map(Value::as_str).collect::<String>())
    };
    assert!(events.iter().any(|event| event["choices"][0]["finish_reason"].is_string()), "{}", reply.body);
    events.iter().filter_map(of).collect()
}

/// Runs requests on so many threads, and hands every number out once.
fn in_a_crowd(threads: usize, requests: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= requests {
                        return;
                    }
                    work(n);
                }
            });
        }
    });
}

#[test]
fn texts_are_the_same_alone_and_in_a_crowd() {
    let scheduling = Scheduling { max_sequences: 8, ..patient() };
    let served = Served::with(ServerConfig::default(), scheduling);
    let alone: Vec<String> = (0..50)
        .map(|n| {
            let (path, mut body) = request(n);
            body["stream"] = json!(false);
            text_of(path, false, &post(served.address, path, &body))
        })
        .collect();
    in_a_crowd(clients(), count(200), |n| {
        let (path, body) = request(n);
        let reply = post(served.address, path, &body);
        assert_eq!(text_of(path, n.is_multiple_of(3), &reply), alone[n % 50], "request {n}");
    });
    served.settle();
}

/// Sends a request and goes away after reading so many bytes.
fn leave_after(address: SocketAddr, bytes: usize, n: usize) {
    let (path, mut body) = request(n);
    (body["stream"], body["max_tokens"]) = (json!(!n.is_multiple_of(4)), json!(100));
    let mut stream = TcpStream::connect(address).unwrap();
    let request = post_bytes(path, &[], &body.to_string());
    let sent = if n.is_multiple_of(7) { &request[..request.len() / 2] } else { &request[..] };
    let _ = stream.write_all(sent);
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut buffer = vec![0; bytes.max(1)];
    if n.is_multiple_of(11) {
        // One that reads slowly.
        for piece in buffer.chunks_mut(40) {
            if !stream.read(piece).is_ok_and(|read| read > 0) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    } else {
        let _ = stream.read(&mut buffer);
    }
}

#[test]
fn clients_that_go_away_leave_nothing_behind() {
    let scheduling = Scheduling { max_sequences: 8, ..patient() };
    let served = Served::with(ServerConfig::default(), scheduling);
    let (path, body) = request(1);
    let before = text_of(path, false, &post(served.address, path, &body));
    in_a_crowd(clients(), count(300), |n| {
        leave_after(served.address, Rng::with_seed(n as u64).usize(..2000), n);
    });
    let load = served.settle();
    assert!(load.generated_tokens > 100, "{load:?}");
    let after = text_of(path, false, &post(served.address, path, &body));
    assert_eq!(before, after);
}

/// Memory of a process, in KiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_servers_memory_stays_what_it_is_under_load() {
    let (mut child, address) = start(0, &["--context", "512", "--parallel", "8"]);
    let requests = count(600);
    let leave = |first: usize| {
        in_a_crowd(clients(), requests, |n| {
            let n = first + n;
            leave_after(address, Rng::with_seed(n as u64).usize(..2000), n);
        });
        let began = Instant::now();
        while get(address, "/v1/loads").json()["kv"]["used_bytes"] != 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "the server does not come to rest");
            std::thread::sleep(Duration::from_millis(10));
        }
        resident(child.id())
    };
    // At first caches, buffers and the allocator's own lists become full.
    let memory: Vec<u64> = (0..3).map(|round| leave(round * requests)).collect();
    println!("KiB after each {requests} requests: {memory:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(memory[2] <= memory[1] + 6 * 1024, "{memory:?}");
}

#[test]
fn too_much_work_is_refused_with_a_time() {
    let scheduling =
        Scheduling { max_sequences: 1, max_queue: 2, start_costs: vec![(1, 1.0)], ..Scheduling::default() };
    let served = Served::with(ServerConfig::default(), scheduling);
    let refused = AtomicUsize::new(0);
    in_a_crowd(16, 32, |n| {
        let body = json!({ "prompt": format!("A slice {n}"), "max_tokens": 200, "seed": n });
        let reply = post(served.address, "/v1/completions", &body);
        match reply.status {
            200 => {}
            503 => {
                refused.fetch_add(1, Ordering::Relaxed);
                assert_eq!(reply.json()["error"]["type"], "overloaded_error");
                if let Some(wait) = reply.header("retry-after") {
                    assert!((1..=120).contains(&wait.parse::<u64>().unwrap()), "{wait}");
                }
            }
            other => panic!("{other}: {}", reply.body),
        }
    });
    assert!(refused.load(Ordering::Relaxed) > 0);
    served.settle();
}

#[test]
fn a_drain_ends_what_runs_and_refuses_what_comes() {
    let mut served = Served::new(ServerConfig { grace: Duration::from_secs(20), ..ServerConfig::default() });
    let body = json!({ "model": "nano", "prompt": "A slice is a", "max_tokens": 400, "temperature": 0,
        "stream": true });
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.write_all(&post_bytes("/v1/completions", &[], &body.to_string())).unwrap();
    // The head may come before the first token, and what has none yet is told to come again.
    let (mut begun, mut byte) = (Vec::new(), [0; 1]);
    while !begun.ends_with(b"data: ") {
        stream.read_exact(&mut byte).unwrap();
        begun.extend(byte);
    }
    assert_eq!(post(served.address, "/drain", &json!({})).status, 200);
    // The engine hears of it before its next step.
    while get(served.address, "/ready").status == 200 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(get(served.address, "/health").status, 200);
    let refused = post(served.address, "/v1/completions", &json!({ "prompt": "a" }));
    assert_eq!(refused.status, 503, "{}", refused.body);
    drop(served.end.take());
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let text = String::from_utf8(rest).unwrap();
    assert!(text.contains("\"finish_reason\":\"") && text.contains("data: [DONE]"), "{text}");
}

#[test]
fn figures_count_what_was_done() {
    let served = Served::new(ServerConfig::default());
    let before = get(served.address, "/v1/loads").json();
    assert_eq!(before["generated_tokens"], 0);
    let body = json!({ "prompt": "A slice is a", "max_tokens": 9, "temperature": 0, "logit_bias": {} });
    let made =
        post(served.address, "/v1/completions", &body).json()["usage"]["completion_tokens"].as_u64().unwrap();
    served.settle();
    let after = get(served.address, "/v1/loads").json();
    assert!(after["generated_tokens"].as_u64().unwrap() >= made, "{after}");
    let text = get(served.address, "/metrics").body;
    for line in [
        r#"vllm:num_requests_running{model_name="nano",engine="0"} 0"#,
        r#"vllm:request_success_total{model_name="nano",engine="0",finished_reason="#,
        r#"vllm:time_to_first_token_seconds_count{model_name="nano",engine="0"} 1"#,
        r#"vllm:request_prompt_tokens_count{model_name="nano",engine="0"} 1"#,
        r#"route="/v1/completions",status="200"} 1"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(text.ends_with("# EOF\n"));
    assert!(!text.contains("slice"), "figures have texts in them");
}
