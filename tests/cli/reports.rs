//! JSON: every report says what it is, and which kernmill made it.

use super::{Sandbox, kernmill};
use serde_json::Value;

/// How each report is asked for, and its name.
const REPORTS: [(&[&str], &str); 11] = [
    (&["run", ".", "--tokens", "ids.json", "-n", "1", "--json"], "kernmill.run/1"),
    (
        &["bench", ".", "--pp", "2", "--tg", "1", "--repeat", "1", "--read", "1M", "--json"],
        "kernmill.bench/1",
    ),
    (&["bench", ".", "--paired", "--units", "8", "--threads", "1", "--json"], "kernmill.paired/1"),
    (&["batch", ".", "requests.jsonl", "-o", "answers.jsonl", "--json"], "kernmill.batch/1"),
    (&["explain", ".", "--json"], "kernmill.explain/2"),
    (&["inspect", ".", "--json"], "kernmill.inspect-model/1"),
    (&["inspect", "a.plan", "--json"], "kernmill.inspect-plan/1"),
    (&["compile", "spec.toml", "--dry-run", "--json"], "kernmill.dry-run/1"),
    (&["compile", "spec.toml", "--emit", "hashes", "--json"], "kernmill.hashes/1"),
    (&["cpu", "--json"], "kernmill.cpu/2"),
    (&["fuse", "check", "mish.toml", "--samples", "1", "--json"], "kernmill.fuse-check/1"),
];

#[test]
fn every_report_names_its_schema_and_its_maker() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    sandbox.write("mish.toml", include_str!("../../model-specs/examples/fused/mish.toml"));
    sandbox.write("requests.jsonl", "{\"prompt\": [1, 2], \"max_tokens\": 1}\n");
    let documented = include_str!("../../docs/user/json.md");
    for (args, schema) in REPORTS {
        let report: Value = serde_json::from_str(&sandbox.run(args).text()).unwrap();
        assert_eq!(report["schema"], schema);
        assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
        assert!(report["commit"].is_string() && report["built_with"][0] == "compiler", "{report:#}");
        assert!(documented.contains(&format!("| `{schema}` |")), "docs/user/json.md lacks {schema}");
    }
    let bench: Value = serde_json::from_str(&sandbox.run(REPORTS[1].0).text()).unwrap();
    let cpu: Value = serde_json::from_str(&kernmill(&["cpu", "--json"]).text()).unwrap();
    assert_eq!(bench["cpu"], cpu["cpu"]);
}

#[test]
fn the_version_and_a_plan_have_the_same_facts() {
    let sandbox = Sandbox::of("gptoss-base");
    sandbox.run(&["compile", ".", "-o", "a.plan", "-q"]).text();
    let version = kernmill(&["--version"]).text();
    let line = |name: &str| {
        let found = version.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name}: {version}")).to_owned()
    };
    assert_eq!(line("kernmill "), env!("CARGO_PKG_VERSION"));
    assert!(line("target: ").starts_with("x86_64-"), "{version}");
    let producer =
        format!("kernmill {}, commit {}, features compiler", env!("CARGO_PKG_VERSION"), line("commit: "));
    let plan: Value = serde_json::from_str(&sandbox.run(&["inspect", "a.plan", "--json"]).text()).unwrap();
    let features: Vec<_> = plan["built_with"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(features.join(", "), line("features: "));
    assert_eq!(plan["producer"], producer);
    assert!(sandbox.run(&["inspect", "a.plan"]).text().contains(&format!("written by {producer}\n")));
}
