//! `kernmill fuse`, `--fused`, `--without-fusion`.

use super::{Sandbox, kernmill};
use kernmill_plan::target::Level;
use std::fs;
use std::io::Write;
use std::process::Stdio;

const EXAMPLES: &str = "model-specs/examples/fused";
const TINY: &str = "model-specs/examples/tiny.toml";

#[test]
fn check_holds_every_spec_against_the_interpreter() {
    for (dir, names) in [
        (EXAMPLES, &["bilinear", "capped_norm", "mish"][..]),
        (
            "model-specs/fused",
            &[
                "attention",
                "linear_act",
                "linear_combined",
                "linear_residual",
                "logits",
                "mlp_gate_up",
                "moe_down",
                "moe_gate_up",
                "moe_routed",
                "moe_router",
                "norm_quant",
                "post_mlp_gate_up",
                "post_norm_add",
                "post_q",
                "post_qkv",
                "post_qkv_norm",
                "q",
                "qkv",
                "qkv_alone",
                "qkv_norm",
                "routed_shrink",
                "shrink",
            ],
        ),
    ] {
        // A model on every level, and two more on the best.
        let best = Level::supported().last().unwrap().name();
        for how in [&["--samples", "1"][..], &["--samples", "2", "--seed", "1", "--target", best]] {
            let text = kernmill(&[&["fuse", "check", dir], how].concat()).text();
            assert_eq!(text.matches("every logit has the interpreter's bits").count(), names.len(), "{text}");
            for name in names {
                assert!(
                    text.contains(&format!("\n{name}: ")) || text.starts_with(&format!("{name}: ")),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn check_tells_costs_and_near_misses_of_a_model() {
    let text = kernmill(&["fuse", "check", EXAMPLES, "--spec", TINY, "--samples", "1", "--json"]).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let bilinear = json["specs"].as_array().unwrap().iter().find(|spec| spec["name"] == "bilinear").unwrap();
    assert_eq!(bilinear["matches"], 2);
    assert_eq!(bilinear["mismatches"], serde_json::json!([]));
    let of = |side: &str, what: &str| bilinear["costs"][side][what].as_f64().unwrap();
    for what in ["barriers", "bytes", "microseconds_1", "microseconds_512"] {
        assert!(of("before", what) > of("after", what), "{what}: {text}");
    }
}

/// The cost model's times stand beside measured ones; a reason is told once, not once for every level.
#[test]
fn check_tells_measured_times_and_each_reason_once() {
    let args = ["fuse", "check", "model-specs/fused/qkv.toml", "--seed", "5", "--samples"];
    let text = kernmill(&[&args[..], &["9"]].concat()).text();
    for line in ["us of 1 token, estimated", "us of 1 token, measured", "us of 512 tokens, measured"] {
        assert_eq!(text.matches(line).count(), 1, "{line}: {text}");
    }
    assert!(text.find("measured").unwrap() < text.find("estimated").unwrap(), "{text}");
    // A rule that applied is not told as one that did not.
    assert!(!text.contains("did not apply") && text.matches("models do without it").count() <= 1, "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&kernmill(&[&args[..], &["3", "--json"]].concat()).text()).unwrap();
    let reasons: Vec<&str> = json["specs"][0]["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason.as_str().unwrap())
        .collect();
    let mut distinct = reasons.clone();
    distinct.dedup();
    assert_eq!(reasons, distinct);
    assert!(reasons.iter().all(|reason| !reason.contains("x86-64")), "{reasons:?}");
}

/// The trials are a separate process: one that has too little memory ends, and the one that started it
/// does not.
#[test]
fn trials_answer_in_lines_and_keep_to_their_memory() {
    let mish = fs::read_to_string(format!("{}/{EXAMPLES}/mish.toml", env!("CARGO_MANIFEST_DIR")));
    let request = |memory: u64| {
        serde_json::json!({
            "specs": [["mish.toml", mish.as_ref().unwrap()]], "spec": 0, "seed": 3, "samples": 1,
            "levels": ["x86-64-v3"], "model": null, "costs": false, "memory": memory,
        })
    };
    let run = |request: &str| {
        let program = crate::harness::program()
            .args(["fuse", "trial"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = program.unwrap();
        child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = run(&request(6 << 30).to_string());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["At"]["model"], 3);
    assert_eq!(lines[0]["At"]["function"], "tanh_softplus");
    assert_eq!(lines.last().unwrap()["Done"]["outcome"]["mismatches"], serde_json::json!([]));
    for memory in [1 << 20, 32 << 20] {
        assert!(!run(&request(memory).to_string()).status.success(), "{memory} bytes are enough");
    }
    assert_eq!(run("{}").status.code(), Some(2));
}

#[test]
fn the_built_in_specs_are_listed_in_their_order() {
    let text = kernmill(&["fuse", "list"]).text();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!((names.first(), names.last()), (Some(&"post_qkv_norm"), Some(&"shrink")), "{text}");
    let priorities: Vec<i64> =
        text.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert!(priorities.is_sorted_by(|a, b| a >= b) && priorities.len() == 22, "{text}");
}

#[test]
fn wrong_specs_are_shown_with_their_place() {
    let sandbox = Sandbox::of("llama-plain");
    sandbox
        .write("wrong.toml", "name = \"wrong\"\ndoc = \"x\"\nkernel = \"gemm\"\nmatch = []\noutputs = []\n");
    let parts = ["unknown kind of kernel `gemm`", "wrong.toml:3:10", "expected one of: rows, matmul"];
    sandbox.run(&["fuse", "check", "wrong.toml"]).refused(&parts);
    sandbox.refuses(&["--fused", "wrong.toml"], &parts);
    sandbox.refuses(
        &["--without-fusion", "qvk"],
        &["--without-fusion: there is no fused-op spec `qvk`", "did you mean `qkv`?"],
    );
    sandbox.refuses(&["--fused", "none.toml"], &["none.toml"]);
    fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.refuses(&["--fused", "empty"], &["no .toml files in it"]);
}

/// A plan keeps the fused-op specs that it was compiled with: its code can be generated anew, and the same
/// input gives the same bytes.
#[test]
fn plans_keep_their_fused_op_specs() {
    let sandbox = Sandbox::of("llama-plain");
    let examples = format!("{}/{EXAMPLES}", env!("CARGO_MANIFEST_DIR"));
    let tiny = format!("{}/{TINY}", env!("CARGO_MANIFEST_DIR"));
    sandbox.run(&["synth", &tiny, "--fused", &examples, "-o", "weights", "-q"]).text();
    let compile = |plan: &str| {
        let args = [
            "compile",
            &tiny,
            "--weights",
            "weights",
            "--fused",
            &examples,
            "--without-fusion",
            "norm_quant",
        ];
        sandbox.run(&[&args[..], &["-o", plan, "-q"]].concat()).text();
        fs::read(sandbox.path(plan)).unwrap()
    };
    assert!(compile("a.plan") == compile("b.plan"));
    let logits = |more: &[&str]| {
        let usual = ["logits", "--tokens", "ids.json", "--out", "out.safetensors", "-q"];
        sandbox.run(&[&usual, more].concat()).text();
        fs::read(sandbox.path("out.safetensors")).unwrap()
    };
    let compiled = logits(&["a.plan"]);
    assert!(compiled == logits(&["a.plan", "--regenerate"]));
    assert!(
        compiled == logits(&["--spec", &tiny, "--weights", "weights", "--fused", &examples, "--no-fuse"])
    );
}

#[test]
fn the_schema_is_printed() {
    let text = kernmill(&["fuse", "schema"]).text();
    let committed =
        fs::read_to_string(format!("{}/model-specs/fused/schema.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert_eq!(text, committed);
}
