//! `kernmill eval`: references, records, runs that go on.

use super::{Sandbox, kernmill};
use serde_json::Value;
use std::fs;

/// The text that the tests measure on.
const TEXT: &str = "README.md";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_reference_is_a_model_or_a_base() {
    let sandbox = Sandbox::of("gptoss-base");
    let [plan, base, a, b] = ["nano.plan", "exact.base", "a.json", "b.json"].map(|name| sandbox.path(name));
    let [plan, base, a, b] = [&plan, &base, &a, &b].map(|path| path.to_str().unwrap());
    kernmill(&["compile", "--preset", "exact", "-o", plan, "-q"]).text();
    let text = ["-f", TEXT, "--window", "64", "--limit", "16"];
    let kl = |more: &[&str]| kernmill(&[&["eval", "kl", "--json"][..], more].concat()).text();
    let of_model = json(&kl(&[&["--preset", "fast", "--reference", plan, "--out", a][..], &text].concat()));
    kl(&[&["--preset", "exact", "--save", base][..], &text].concat());
    let of_base = json(&kl(&["--preset", "fast", "--reference", base, "--out", b]));
    let kls = [&of_model, &of_base].map(|report| report["kl"].as_f64().unwrap());
    assert!(kls[0] > 1e-4 && (kls[1] / kls[0] - 1.0).abs() < 0.01, "{kls:?}");
    for field in ["same_top", "more_nats_per_token", "tokens", "windows", "text_hash"] {
        assert_eq!(of_model[field], of_base[field], "{field}");
    }
    // A model is where its base is.
    for reference in [&[&["--reference", plan][..], &text].concat()[..], &["--reference", base]] {
        let own = json(&kl(&[&["--preset", "exact"][..], reference].concat()));
        assert_eq!((own["kl"].as_f64(), own["same_top"].as_f64()), (Some(0.0), Some(1.0)), "{own}");
    }

    let same = json(&kernmill(&["eval", "compare", a, a, "--json", "--fail-if", "kl>0.1,kl<-0.1"]).text());
    assert!(same["differences"].as_array().unwrap().iter().all(|it| it["seen"] == false), "{same}");
    kernmill(&["eval", "compare", a, b, "--fail-if", "acc>1"]).refused(&["--fail-if: no figure acc", "kl"]);
    kernmill(&["eval", "kl", "--reference", base, "-f", TEXT]).refused(&["--file: the base brings the text"]);
    kernmill(&["eval", "kl", "-f", TEXT]).refused(&["--reference is missing"]);
    sandbox.write("text.txt", b"A slice is a view.");
    for output in ["--save", "--out"] {
        let args = ["eval", "kl", "-f", "text.txt", output, "text.txt"];
        sandbox.run(&args).refused(&["text.txt: it is read as well"]);
    }
    let args = ["eval", "text", plan, "-f", "text.txt", "--out"];
    sandbox.run(&[&args[..], &[plan]].concat()).refused(&["it is a file of the model"]);
    sandbox.run(&[&args[..], &["missing/a.json"]].concat()).refused(&["missing"]);
    sandbox.write("cut.base", &fs::read(base).unwrap()[..5000]);
    sandbox.run(&["eval", "kl", "--reference", "cut.base"]).refused(&["cut.base", "it is cut or damaged"]);
}

#[test]
fn a_limit_that_is_passed_ends_with_status_1() {
    let sandbox = Sandbox::of("gptoss-base");
    let text = |preset: &str, out: &str| {
        let out = sandbox.path(out);
        let args =
            ["eval", "text", "--preset", preset, "-f", TEXT, "--window", "64", "--limit", "9", "--out"];
        kernmill(&[&args[..], &[out.to_str().unwrap()]].concat()).text();
    };
    text("exact", "a.json");
    text("fast", "b.json");
    let ran = sandbox.run(&["eval", "compare", "a.json", "b.json", "--fail-if", "nats_per_token<100"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("--fail-if: nats_per_token differs by"), "{ran:?}");
    assert!(ran.stdout.contains("smallest difference seen"), "{ran:?}");
    let other = ["eval", "text", "-f", TEXT, "--window", "32", "--limit", "9", "--out"];
    let out = sandbox.path("c.json");
    kernmill(&[&other[..], &[out.to_str().unwrap()]].concat()).text();
    sandbox.run(&["eval", "compare", "a.json", "c.json"]).refused(&["it is of other items than a.json"]);
}

#[test]
fn questions_go_on_where_they_ended() {
    let sandbox = Sandbox::of("gptoss-base");
    let part = sandbox.path("part.jsonl");
    let part = part.to_str().unwrap();
    let ask = |more: &[&str]| {
        let args = ["eval", "choice", "--task", "arc", "-f", "eval/fixtures/arc.jsonl", "--json"];
        json(&kernmill(&[&args[..], more].concat()).text())
    };
    let whole = ask(&[]);
    assert_eq!(ask(&["--resume", part])["acc"], whole["acc"]);
    let known = fs::read_to_string(part).unwrap();
    assert_eq!(known.lines().count(), 7);
    // Cut in its fifth line, as a kill may leave it.
    let cut = known.match_indices('\n').nth(3).unwrap().0 + 9;
    fs::write(part, &known[..cut]).unwrap();
    let rest = ask(&["--resume", part]);
    assert_eq!((&rest["acc"], &rest["acc_norm"]), (&whole["acc"], &whole["acc_norm"]));
    assert!(rest["tokens_run"].as_u64().unwrap() < whole["tokens_run"].as_u64().unwrap());
    let mut lines: Vec<String> = fs::read_to_string(part).unwrap().lines().map(str::to_owned).collect();
    let mut before: Vec<String> = known.lines().map(str::to_owned).collect();
    lines.sort();
    before.sort();
    assert_eq!(lines, before);
    assert_eq!(ask(&["--resume", part])["tokens_run"], 0);
    kernmill(&[
        "eval",
        "choice",
        "--task",
        "arc",
        "-f",
        "eval/fixtures/arc.jsonl",
        "--resume",
        part,
        "--preset",
        "exact",
    ])
    .refused(&["it is of another run"]);
    kernmill(&["eval", "choice", "--task", "boolq", "-f", "eval/fixtures/arc.jsonl"])
        .refused(&["arc.jsonl: line 1: expected a string \"passage\""]);
}
