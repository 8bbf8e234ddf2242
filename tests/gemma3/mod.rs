//! The tensors of Gemma 3 270M, a real model in Q4_K_M, whose architecture is not supported: `plain.toml` is
//! a plain decoder over all of them.
//!
//! `tools/models/fetch.py gemma3` fetches the file into `target/gemma3`, and `KERNMILL_GEMMA3` names another
//! place. Without it these tests say so and check nothing; where the variable names a file that is not
//! there, they fail.

use crate::gguf::decode::compare_tiles;
use crate::harness::{Model, RealModel, program};
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::output::plan_file::{PlanParts, PlanWriter};
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_plan::target::Level;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const SPEC: &str = include_str!("plain.toml");
/// Bytes of all tensors of the file.
const TENSORS: u64 = 246_587_904;
/// Bytes of the embedding table, which is the unembedding too.
const EMBEDDINGS: u64 = 178_257_920;

fn file(test: &str) -> Option<PathBuf> {
    RealModel { name: "gemma3", file: "gemma-3-270m-q4_k_m.gguf" }.find(test)
}

fn model(path: &Path) -> Model {
    Model::of(SPEC, Checkpoint::open(path).unwrap())
}

#[test]
fn tiles_hold_the_values_of_the_file_in_its_size() {
    let Some(path) = file("gemma3::tiles_hold_the_values_of_the_file_in_its_size") else { return };
    let (gguf, model) = (Gguf::open(&path).unwrap(), model(&path));
    let compared = compare_tiles(&model, &gguf, &|_| None);
    // The table once, and 7 matrices in each of 18 layers.
    assert_eq!(compared.tensors, 1 + 7 * 18, "{compared:?}");
    assert_eq!(gguf.data(gguf.info("token_embd.weight").unwrap()).len() as u64, EMBEDDINGS);
    assert!(compared.packed as f64 <= 1.04 * TENSORS as f64, "{compared:?}");
    println!("{compared:?}");
}

#[test]
fn a_plan_of_the_tensors_is_as_large_as_they_and_runs_in_its_size() {
    let test = "gemma3::a_plan_of_the_tensors_is_as_large_as_they_and_runs_in_its_size";
    let Some(path) = file(test) else { return };
    let model = model(&path);
    let level = *Level::supported().last().unwrap();
    let options = CompilerOptions { preset: Preset::Faithful, ..CompilerOptions::new(level) };
    let compiled = [compile(&model.graph, &options).unwrap()];
    let parts = PlanParts {
        producer: "kernmill tests",
        compiled: &compiled,
        choices: None,
        fused: true,
        fused_specs: &FusedSet::builtin(),
        spec: SPEC,
        // The file's tokenizer would be half as large as the layers.
        tokenizer_json: None,
        end_tokens: &[],
        chat_templates: None,
    };
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plain.plan");
    let new = File::create_new(&plan).unwrap();
    PlanWriter::new(&parts).unwrap().write(&new, &model.weights(), 2, &|_| {}).unwrap();
    let bytes = fs::metadata(&plan).unwrap().len();
    assert!(bytes as f64 <= 1.04 * TENSORS as f64, "a plan of {bytes} bytes");

    fs::write(dir.path().join("ids.json"), "[2, 100, 4000, 262143]").unwrap();
    let run = ["--tokens", "ids.json", "-n", "4", "--temp", "0", "--json"];
    let output = program().arg("run").arg("plain.plan").args(run).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["tokens"].as_array().unwrap().len(), 4, "{report}");
    let number = |key: &str| report["memory"][key].as_u64().unwrap();
    let (peak, kv, own) = (number("peak_resident"), number("kv"), fs::metadata(&path).unwrap().len());
    println!("a plan of {bytes} bytes ran in {peak}, of which {kv} are for keys and values");
    assert!(
        peak as f64 <= 1.15 * own as f64 + kv as f64,
        "{peak} bytes for a file of {own}, {kv} for the cache"
    );
}
