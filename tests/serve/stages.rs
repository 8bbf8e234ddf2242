//! The server of a model in two stages: its clients see one model, and a 503 while a stage is away.

use super::client::{Reply, get, post};
use super::{Served, nano};
use crate::equality::stages::Others;
use kernmill::stage::Stage;
use kernmill::{Loaded, Opened, Options};
use kernmill_runtime::PlanImage;
use kernmill_server::ServerConfig;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

const PATH: &str = "/v1/completions";

/// Nano's first stage, which calls the second one at `peer`.
fn first(peer: SocketAddr) -> (Loaded, Vec<u32>) {
    let place = "1/2".parse().unwrap();
    let stage = Stage::new(place, Some(peer.to_string()), None, IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
    let options = Options::default().with(|it| {
        it.threads = Some(1);
        it.stage = Some(stage);
    });
    let mut opened = Opened::open(kernmill::locate::nano(), &options).unwrap();
    opened.tokenizer();
    let ends = opened.end_tokens().unwrap();
    (opened.prepare(&options).unwrap().load(&options, 512, 4).unwrap(), ends)
}

/// Nano as the stages have it: with the name of its contents.
fn image() -> PlanImage {
    nano(512, 1).0.image
}

fn request(n: usize) -> Value {
    json!({
        "model": "nano", "prompt": format!("A slice of {} elements is", n % 7), "seed": n, "logprobs": 2,
        "max_tokens": 3 + n % 20, "temperature": if n.is_multiple_of(2) { 0.0 } else { 0.9 },
    })
}

/// The answers to all requests when they are sent at once.
fn all(address: SocketAddr) -> Vec<Reply> {
    std::thread::scope(|scope| {
        let asks: Vec<_> = (0..20).map(|n| scope.spawn(move || post(address, PATH, &request(n)))).collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    })
}

/// Texts with logarithms of replies; every reply must have one.
fn choices(replies: &[Reply]) -> Vec<Value> {
    let choices = |reply: &Reply| {
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["choices"].clone()
    };
    replies.iter().map(choices).collect()
}

fn ready(address: SocketAddr, status: u16) {
    let start = Instant::now();
    while get(address, "/ready").status != status {
        assert!(start.elapsed() < Duration::from_secs(60), "/ready is not {status}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_model_in_two_stages_answers_as_one_process_does() {
    let image = image();
    let others = Others::start(&image, 2);
    let served = Served::of(first(others.address), "nano", ServerConfig::default());
    let whole = Served::of(nano(512, 4), "nano", ServerConfig::default());
    ready(served.address, 200);
    let (staged, alone) = (all(served.address), all(whole.address));
    assert_eq!(choices(&staged), choices(&alone));
    served.settle();
}

#[test]
fn a_stage_that_dies_is_told_to_clients_and_joined_again() {
    let image = image();
    let others = Others::start(&image, 2);
    let address = others.address;
    let served = Served::of(first(address), "nano", ServerConfig::default());
    ready(served.address, 200);
    let before = choices(&all(served.address));
    let long = json!({ "model": "nano", "prompt": "A slice is", "max_tokens": 400, "ignore_eos": true });
    let lost = std::thread::scope(|scope| {
        let asks: Vec<_> = (0..3).map(|_| scope.spawn(|| post(served.address, PATH, &long))).collect();
        while served.backends[0].load().running == [0; 3] {
            std::thread::yield_now();
        }
        drop(others);
        asks.into_iter().map(|ask| ask.join().unwrap()).collect::<Vec<_>>()
    });
    // An answer may have been whole before.
    for reply in lost.iter().filter(|reply| reply.status != 200) {
        is_lost(reply, address);
    }
    ready(served.address, 503);
    is_lost(&post(served.address, PATH, &request(0)), address);
    assert_eq!(get(served.address, "/health").status, 200, "the server itself is well");
    let _others = Others::at(address, &image, 2);
    ready(served.address, 200);
    assert_eq!(choices(&all(served.address)), before);
    served.settle();
}

fn is_lost(reply: &Reply, address: SocketAddr) {
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("2")), "{}", reply.body);
    let error = &reply.json()["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("stage 2 at {address} cannot be reached: ")), "{message}");
    assert_eq!(error["code"], "stage_lost");
}
