//! `docs/user/fits.md`: its table of models and memory is what `--dry-run` says.

use super::root;
use crate::harness::{machine, program};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// A model's shapes: class, hidden size, layers, heads, KV heads, size of a head, inner size of the MLP,
/// vocabulary, and whether the unembedding is the table.
type Shapes = (&'static str, u64, u64, u64, u64, u64, u64, u64, bool);

/// Models that are made from their shapes.
const MODELS: [(&str, Shapes); 13] = [
    ("SmolLM2 135M", ("Llama", 576, 30, 9, 3, 64, 1536, 49152, true)),
    ("Qwen 2.5 0.5B", ("Qwen2", 896, 24, 14, 2, 64, 4864, 151_936, true)),
    ("Llama 3.2 1B", ("Llama", 2048, 16, 32, 8, 64, 8192, 128_256, true)),
    ("Qwen 2.5 1.5B", ("Qwen2", 1536, 28, 12, 2, 128, 8960, 151_936, true)),
    ("SmolLM2 1.7B", ("Llama", 2048, 24, 32, 32, 64, 8192, 49152, true)),
    ("Qwen 2.5 3B", ("Qwen2", 2048, 36, 16, 2, 128, 11008, 151_936, true)),
    ("Llama 3.2 3B", ("Llama", 3072, 28, 24, 8, 128, 8192, 128_256, true)),
    ("Mistral 7B v0.3", ("Mistral", 4096, 32, 32, 8, 128, 14336, 32768, false)),
    ("Qwen 2.5 7B", ("Qwen2", 3584, 28, 28, 4, 128, 18944, 152_064, false)),
    ("Llama 3.1 8B", ("Llama", 4096, 32, 32, 8, 128, 14336, 128_256, false)),
    ("Qwen 2.5 14B", ("Qwen2", 5120, 48, 40, 8, 128, 13824, 152_064, false)),
    ("Qwen 2.5 32B", ("Qwen2", 5120, 64, 40, 8, 128, 27648, 152_064, false)),
    ("Llama 3.3 70B", ("Llama", 8192, 80, 64, 8, 128, 28672, 128_256, false)),
];

/// Models whose specs are in the repository.
const SPECS: [(&str, &str, &str); 3] = [
    ("TinyLlama 1.1B", "model-specs/tinyllama-1.1b.toml", "2048"),
    ("GPT-OSS 20B", "model-specs/gpt-oss-20b.toml", "4096"),
    ("GPT-OSS 120B", "model-specs/gpt-oss-120b.toml", "4096"),
];

/// The `config.json` of a model with these shapes.
fn config(shapes: Shapes) -> Value {
    let (class, hidden, layers, heads, kv_heads, head_dim, inner, vocab, tied) = shapes;
    json!({
        "architectures": [format!("{class}ForCausalLM")],
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate_size": inner,
        "vocab_size": vocab,
        "tie_word_embeddings": tied,
        "max_position_embeddings": 8192,
        "sliding_window": null,
        "torch_dtype": "bfloat16",
    })
}

/// A figure of the table: gigabytes with one digit.
fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// Smallest memory of the usual sizes that holds so many bytes, with 2 GB left to the system.
fn fits(bytes: u64) -> String {
    let sizes = [8u64, 16, 32, 64];
    let size = sizes.into_iter().find(|size| bytes + 2_000_000_000 <= size * 1_000_000_000);
    size.map_or_else(|| "more than 64 GB".to_owned(), |size| format!("{size} GB"))
}

/// The report of `--dry-run` for a spec, on a machine that is the same everywhere.
fn dry_run(spec: &str, preset: &str, context: &str) -> Value {
    let machine = machine("two_cores");
    let args = ["compile", spec, "--dry-run", "--json", "-q", "--preset", preset, "--context", context];
    let output =
        program().args(args).args(["--target", "x86-64-v3", "--machine"]).arg(machine).output().unwrap();
    assert!(output.status.success(), "{spec}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_table_of_models_and_memory_is_what_a_dry_run_says() {
    let dir = TempDir::new().unwrap();
    let page = fs::read_to_string(root().join("docs/user/fits.md")).unwrap();
    let made = MODELS.map(|(name, shapes)| {
        let place = dir.path().join(name.replace(' ', "-"));
        fs::create_dir(&place).unwrap();
        fs::write(place.join("config.json"), config(shapes).to_string()).unwrap();
        let spec = place.join("model.toml").display().to_string();
        let output = program().arg("import").arg(&place).args(["-o", &spec]).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        (name, spec, "4096")
    });
    let there = SPECS.map(|(name, spec, context)| (name, root().join(spec).display().to_string(), context));
    let mut lines = Vec::new();
    for (name, spec, context) in made.into_iter().chain(there) {
        let [faithful, fast] = ["faithful", "fast"].map(|preset| dry_run(&spec, preset, context));
        let number = |report: &Value, key: [&str; 2]| report[key[0]][key[1]].as_u64().unwrap();
        let total = number(&faithful, ["memory", "total"]);
        let read = number(&faithful, ["decode", "bytes_per_token"]);
        let fast = number(&fast, ["memory", "total"]);
        lines.push((name, [gigabytes(total), gigabytes(fast), gigabytes(read), fits(total)].join(" | ")));
    }
    let wrong: Vec<String> = lines
        .iter()
        .filter(|(name, figures)| {
            let row = page.lines().find(|line| line.starts_with(&format!("| {name} | ")));
            !row.is_some_and(|row| row.ends_with(&format!(" GB | {figures} |")))
        })
        .map(|(name, figures)| format!("| {name} | ... | {figures} |"))
        .collect();
    assert!(wrong.is_empty(), "docs/user/fits.md should have:\n{}", wrong.join("\n"));
    let rows = page.lines().filter(|line| line.contains(" GB | ")).count();
    assert_eq!(rows, lines.len(), "docs/user/fits.md has other models too");
}
