//! Records of the answers and guesses of models: a change is told with the items that it changed.

use super::{Sandbox, kernmill};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Windows of the text: half of the 256 tokens of each are measured.
const WINDOWS: &str = "33";

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/eval/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The file in a folder whose name begins and ends so.
fn named(dir: &Path, start: &str, end: &str) -> String {
    let mut names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let is_it = |name: &str| name.starts_with(start) && name.ends_with(end);
    let found = names.find(|entry| is_it(&entry.file_name().to_string_lossy())).unwrap();
    fs::read_to_string(found.path()).unwrap()
}

/// Likelihoods of 64 items, and the divergence of preset `fast` from `exact` in each window of a text.
fn measured(sandbox: &Sandbox, model: &[&str], reference: &[&str]) -> Value {
    let path = |name: &str| sandbox.path(name).to_str().unwrap().to_owned();
    let [out, text, figures] = [path("out"), path("text.txt"), path("kl.json")];
    let file = fixture("hellaswag.jsonl");
    let choice = ["--task", "hellaswag", "-f", &file, "--out", &out];
    kernmill(&[&["eval", "choice"], model, &choice].concat()).text();
    let samples = named(Path::new(&out), "samples_", ".jsonl");
    let items = samples.lines().map(|line| {
        let sample: Value = serde_json::from_str(line).unwrap();
        json!([
            sample["acc"],
            sample["filtered_resps"].as_array().unwrap().iter().map(|it| &it[0]).collect::<Vec<_>>()
        ])
    });
    let items: Vec<Value> = items.collect();
    let parts = [fs::read_to_string("LICENSE-APACHE").unwrap(), fs::read_to_string(file).unwrap()];
    fs::write(&text, parts.concat()).unwrap();
    let kl = ["--preset", "fast", "-f", &text, "--window", "256", "--limit", WINDOWS, "--out", &figures];
    kernmill(&[&["eval", "kl"], model, &kl, reference].concat()).text();
    let kl: Value = serde_json::from_str(&fs::read_to_string(figures).unwrap()).unwrap();
    assert!(kl["tokens"].as_u64().unwrap() >= 4096 && items.len() == 64, "{}", kl["tokens"]);
    json!({ "items": items, "kl": kl["blocks_of"]["kl"] })
}

/// Items and windows that differ from the record, by their numbers.
fn changed(record: &Value, found: &Value) -> Vec<String> {
    let list = |value: &Value, name: &str| value[name].as_array().unwrap().clone();
    let mut changed = Vec::new();
    for name in ["items", "kl"] {
        let (before, now) = (list(record, name), list(found, name));
        if before.len() != now.len() {
            changed.push(format!("{} {name}, {} before", now.len(), before.len()));
        }
        let pairs = before.iter().zip(&now).enumerate().filter(|(_, (before, now))| before != now);
        changed.extend(pairs.map(|(at, (before, now))| format!("{name} {at}: {now}, {before} before")));
    }
    changed
}

/// Holds what was found to the record of this name, or writes it.
fn check(name: &str, found: &Value) {
    let path = fixture(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let mut text = String::new();
        for (at, key) in ["items", "kl"].into_iter().enumerate() {
            let lines: Vec<String> = found[key].as_array().unwrap().iter().map(Value::to_string).collect();
            let start = if at == 0 { "{" } else { "" };
            let end = if at == 0 { "]," } else { "]}" };
            writeln!(text, "{start}\"{key}\": [\n{}\n{end}", lines.join(",\n")).unwrap();
        }
        fs::write(&path, text).unwrap();
    }
    let record: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let changed = changed(&record, found);
    assert!(changed.is_empty(), "not as in {name} (UPDATE_EXPECT=1 writes it anew):\n{}", changed.join("\n"));
    // A single item or window that is not the same is named.
    for key in ["items", "kl"] {
        let mut other = record.clone();
        other[key][7] = json!([1.0, ["-2.5"]]);
        let told = self::changed(&other, found);
        assert!(told.len() == 1 && told[0].starts_with(&format!("{key} 7: ")), "{told:?}");
    }
}

#[test]
fn nano_is_as_in_its_record() {
    let sandbox = Sandbox::of("gptoss-base");
    let plan = sandbox.path("nano.plan");
    let plan = plan.to_str().unwrap();
    kernmill(&["compile", "--preset", "exact", "-o", plan, "-q"]).text();
    check("nano.json", &measured(&sandbox, &[], &["--reference", plan]));
}

#[test]
fn smollm2_is_as_in_its_record() {
    let Some(path) = crate::smollm2::model("cli::eval_record::smollm2_is_as_in_its_record") else { return };
    let model = path.to_str().unwrap();
    let sandbox = Sandbox::of("gptoss-base");
    let reference = ["--reference", model, "--reference-preset", "exact"];
    check("smollm2.json", &measured(&sandbox, &[model], &reference));
}
