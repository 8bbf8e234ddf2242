//! `--machine`: models compiled for a machine that is not here.

use super::Sandbox;
use serde_json::Value;
use std::fs;

#[test]
fn a_measured_machine_is_what_a_model_is_compiled_for() {
    let sandbox = Sandbox::of("gptoss-base");
    let measure = ["cpu", "--measure", "--threads", "3", "--read", "4M", "-o", "host.json"];
    assert_eq!(sandbox.run(&measure).text(), "");
    let host: Value = serde_json::from_str(&sandbox.read("host.json")).unwrap();
    let dry = ["compile", "spec.toml", "--dry-run", "--json", "--machine", "host.json"];
    let estimate: Value = serde_json::from_str(&sandbox.run(&dry).text()).unwrap();
    assert_eq!(estimate["decode"]["threads"], 3);
    let read = host["measured"][2]["gb_per_s"].as_f64().unwrap() * 1e9;
    assert!((estimate["decode"]["bytes_per_second"].as_f64().unwrap() / read - 1.0).abs() < 1e-9);
    assert_eq!(estimate["memory"]["available"], host["available_memory"]);
}

#[test]
fn a_described_machine_decides_target_workers_and_family() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.describe("many_cores");
    let host = &sandbox.read("host.json");
    let explain = |more: &[&str]| {
        let args = [&["explain", "spec.toml", "-q", "--json", "--machine", "host.json"], more].concat();
        serde_json::from_str::<Value>(&sandbox.run(&args).text()).unwrap()
    };
    assert_eq!(explain(&[])["workers"], 56);
    let plan = |more: &[&str]| {
        let spec = ["compile", "spec.toml", "--weights", ".", "-o", "a.plan", "-q"];
        sandbox.run(&[&spec, more].concat()).text();
        fs::read(sandbox.path("a.plan")).unwrap()
    };
    // The best target of that CPU, which need not be this one's; a target that is named wins.
    let fat = plan(&["--machine", "host.json"]);
    assert!(fat == plan(&["--machine", "host.json", "--target", "x86-64-v4-vnni", "--tune", "intel"]));
    assert!(fat != plan(&["--machine", "host.json", "--target", "x86-64-v3"]));
    for (from, to, says) in [
        (
            "kernmill.cpu/2",
            "kernmill.cpu/1",
            "host.json: `schema` is kernmill.cpu/1, expected kernmill.cpu/2",
        ),
        ("\"gb_per_s\": 14.0", "\"gb_per_s\": -14.0", "host.json: `measured[0].gb_per_s` is -14.0, expected"),
        ("\"family\": \"intel\"", "\"family\": 7", "host.json: `family` is 7, expected a text"),
    ] {
        sandbox.write("host.json", host.replace(from, to));
        for command in [
            &["compile", "spec.toml", "--dry-run"][..],
            &["explain", "spec.toml"],
            &["fuse", "check", "a.toml"],
        ] {
            sandbox.run(&[command, &["--machine", "host.json"]].concat()).refused(&[says]);
        }
    }
}
