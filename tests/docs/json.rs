//! `docs/user/json.md` lists the fields of every report, and no others.

use super::root;
use crate::harness::program;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use tempfile::TempDir;

/// How every report is asked for. Measurements are as short as possible.
const REPORTS: [(&str, &str); 22] = [
    ("kernmill.run/1", "run --prompt hi -n 2"),
    ("kernmill.run/1", "run --prompt hi -n 2 --lora a=lora"),
    ("kernmill.batch/1", "batch requests.jsonl -o answers.jsonl"),
    ("kernmill.load/1", "bench --serve --requests 2"),
    ("kernmill.bench/1", "bench --pp 2 --tg 1 --repeat 1 --read 1M --profile"),
    ("kernmill.explain/2", "explain"),
    ("kernmill.explain/2", "explain --all"),
    ("kernmill.inspect-model/1", "inspect"),
    ("kernmill.inspect-plan/1", "inspect nano.plan"),
    ("kernmill.dry-run/1", "compile --dry-run"),
    ("kernmill.hashes/1", "compile --emit hashes"),
    ("kernmill.cpu/2", "cpu"),
    ("kernmill.cpu/2", "cpu --measure --read 1M"),
    ("kernmill.eval-text/1", "eval text -f text.txt --window 16"),
    ("kernmill.eval-kl/1", "eval kl --reference nano.plan -f text.txt --window 16"),
    ("kernmill.eval-base/1", "eval kl --save nano.base -f text.txt"),
    ("kernmill.eval-choice/1", "eval choice --task hellaswag -f hellaswag.jsonl"),
    (
        "kernmill.eval-generate/1",
        "eval generate --task gsm8k -f gsm8k.jsonl -n 2 --samples 2 --temp 1 --limit 2",
    ),
    ("kernmill.eval-prompts/1", "eval prompts -n 2"),
    ("kernmill.eval-compare/1", "eval compare a.json a.json"),
    ("kernmill.fuse-check/1", "fuse check mish.toml --samples 1"),
    ("kernmill.fuse-check/1", "fuse check linear_residual.toml --samples 1"),
];

/// A row of a table: its fields, and whether they are always there.
struct Row {
    fields: Vec<String>,
    always: bool,
}

/// Rows of the section whose heading is `title`.
fn rows(title: &str) -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/user/json.md")).unwrap();
    let section =
        text.split(&format!("\n## {title}\n")).nth(1).unwrap_or_else(|| panic!("no section {title}"));
    let lines = section.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let (fields, meaning) = line[2..].split_once(" | ").expect("two columns");
            let fields = fields.split(", ").map(|field| field.trim_matches('`').to_owned()).collect();
            Row { fields, always: !meaning.starts_with("Only") }
        })
        .collect()
}

/// Paths of everything in a report that is no object, with `[]` for the elements of lists.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                paths(value, &path, found);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            elements.iter().for_each(|element| paths(element, &format!("{path}[]"), found));
        }
        Value::Array(_) => drop(found.insert(format!("{path}[]"))),
        _ => drop(found.insert(path.to_owned())),
    }
}

/// Whether a field of the document stands for a path of a report.
fn names(field: &str, path: &str) -> bool {
    match field.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        // An empty list shows nothing of its elements.
        None => field == path || path.ends_with("[]") && field.starts_with(&format!("{path}.")),
    }
}

#[test]
fn every_field_of_every_report_is_documented() {
    let dir = TempDir::new().unwrap();
    let run = |args: &str| {
        let mut program = program();
        let output = program.args(args.split(' ')).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    run("compile -o nano.plan -q");
    for (from, to) in [
        ("model-specs/nano/nano.toml", "nano.toml"),
        ("model-specs/examples/fused/mish.toml", "mish.toml"),
        ("model-specs/fused/linear_residual.toml", "linear_residual.toml"),
        ("eval/fixtures/hellaswag.jsonl", "hellaswag.jsonl"),
        ("eval/fixtures/gsm8k.jsonl", "gsm8k.jsonl"),
        ("tests/fixtures/nano/words.txt", "text.txt"),
    ] {
        fs::copy(root().join(from), dir.path().join(to)).unwrap();
    }
    fs::write(dir.path().join("requests.jsonl"), "{\"prompt\": [1], \"max_tokens\": 1}").unwrap();
    run("synth nano.toml -o lora --lora 2 -q");
    run("eval text -f text.txt --window 16 --limit 9 --out a.json");
    let schemas: BTreeSet<&str> = REPORTS.iter().map(|(schema, _)| *schema).collect();
    for schema in schemas {
        let mut found = BTreeSet::new();
        for (_, args) in REPORTS.iter().filter(|(name, _)| *name == schema) {
            let report: Value = serde_json::from_slice(&run(&format!("{args} --json"))).unwrap();
            assert_eq!(report["schema"], schema, "{args}");
            paths(&report, "", &mut found);
        }
        let documented: Vec<Row> =
            rows("All reports").into_iter().chain(rows(&format!("`{schema}`"))).collect();
        let fields = || documented.iter().flat_map(|row| &row.fields);
        let missing: Vec<_> = found.iter().filter(|path| !fields().any(|field| names(field, path))).collect();
        assert!(missing.is_empty(), "docs/user/json.md lacks fields of {schema}: {missing:?}");
        let certain = documented.iter().filter(|row| row.always).flat_map(|row| &row.fields);
        let idle: Vec<_> = certain.filter(|field| !found.iter().any(|path| names(field, path))).collect();
        assert!(idle.is_empty(), "docs/user/json.md lists for {schema} what is not there: {idle:?}");
    }
}
