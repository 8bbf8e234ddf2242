//! Load on a server from outside: `bench --serve --endpoint`.

use super::{Served, VOCAB, patient};
use crate::harness::program;
use kernmill_server::{Keys, ServerConfig};
use kernmill_tools::load::Endpoint;
use serde_json::Value;

fn served() -> Served {
    Served::with(ServerConfig::default(), patient().with_sequences(8))
}

#[test]
fn an_endpoint_tells_what_it_serves() {
    let served = served();
    let endpoint = Endpoint::new(&format!("http://{}/v1", served.address), None).unwrap();
    let facts = endpoint.facts(None).unwrap();
    assert_eq!((&*facts.model, facts.context, facts.vocab), ("nano", Some(512), Some(VOCAB as u32)));
    assert_eq!(endpoint.facts(Some("nano")).unwrap(), facts);
    let error = endpoint.facts(Some("poet")).unwrap_err();
    assert!(error.ends_with("there is no model poet, only nano"), "{error}");
}

#[test]
fn a_load_is_put_on_a_server() {
    let served = served();
    let url = format!("http://{}/v1", served.address);
    let mix = "turns=2,prompt=40,answer=8,prefix=0.5,seed=3";
    let output = program()
        .args(["bench", "--serve", "--endpoint", &url, "--mix", mix, "--requests", "24", "--json", "-q"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["endpoint"], &report["model"]), (&url.into(), &"nano".into()));
    assert_eq!((&report["requests"]["served"], &report["tokens"]["answer"]), (&24.into(), &(24 * 8).into()));
    assert!(report["busy"].is_null() && report["preset"].is_null(), "{report}");
    let load = served.settle();
    let tokens = &report["tokens"];
    assert_eq!(tokens["prompt"].as_u64(), Some(load.prompt_tokens));
    assert_eq!(tokens["cached"].as_u64(), Some(load.cached_tokens));
    assert!(load.cached_tokens > 0, "second turns begin with their first ones");
}

#[test]
fn what_an_endpoint_refuses_is_told() {
    let keys = Keys::read("someone secret-of-someone-else-than-you\n").unwrap();
    let served = Served::new(ServerConfig { keys, ..ServerConfig::default() });
    let url = format!("http://{}/v1", served.address);
    let bench = |key: Option<&str>| {
        let mut command = program();
        command.args([
            "bench",
            "--serve",
            "--endpoint",
            &url,
            "--requests",
            "2",
            "--mix",
            "prompt=4,answer=2",
        ]);
        command.args(["-q", "--json"]).env_remove("KERNMILL_API_KEY");
        key.map(|key| command.env("KERNMILL_API_KEY", key));
        command.output().unwrap()
    };
    let refused = bench(None);
    assert_eq!(refused.status.code(), Some(1));
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(says.starts_with("error: status 401: "), "{says}");
    assert!(bench(Some("secret-of-someone-else-than-you")).status.success());
    for (url, says) in [("https://x/v1", "TLS is not supported"), ("x", "is no address")] {
        let output = program().args(["bench", "--serve", "--endpoint", url]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(says));
    }
}
