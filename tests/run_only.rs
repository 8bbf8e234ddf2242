//! The program as it is built without the compiler: `cargo test --no-default-features --test run_only`. With
//! the compiler the same plans run.

use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::output::plan_file::{PlanParts, PlanWriter};
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_compiler::synth::{AdapterShape, write_adapter};
use kernmill_compiler::weights::CheckpointWeights;
use kernmill_plan::target::Level;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn graph() -> Graph {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano/nano.toml");
    lower(&Spec::parse("nano.toml", &fs::read_to_string(spec).unwrap()).unwrap()).unwrap()
}

/// Writes a plan of the nano model.
fn plan(dir: &TempDir) -> PathBuf {
    let nano = Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano");
    let (spec, graph) = (fs::read_to_string(nano.join("nano.toml")).unwrap(), graph());
    let tokenizer = fs::read(nano.join("tokenizer.json")).unwrap();
    let checkpoint = Checkpoint::open(&nano).unwrap();
    let level = *Level::supported().last().unwrap();
    let compiled = [compile(&graph, &CompilerOptions::new(level)).unwrap()];
    let parts = PlanParts {
        producer: "kernmill tests",
        compiled: &compiled,
        choices: None,
        fused: true,
        fused_specs: &FusedSet::builtin(),
        spec: &spec,
        tokenizer_json: Some(&tokenizer),
        end_tokens: &[],
        chat_templates: None,
    };
    let path = dir.path().join("nano.plan");
    let file = File::create(&path).unwrap();
    file.set_permissions(Permissions::from_mode(0o644)).unwrap();
    let weights = CheckpointWeights::new(&graph, &checkpoint).unwrap();
    PlanWriter::new(&parts).unwrap().write(&file, &weights, 2, &|_| {}).unwrap();
    path
}

#[test]
fn the_version_names_the_features() {
    let optional = [
        ("compiler", cfg!(feature = "compiler")),
        ("grpc", cfg!(feature = "grpc")),
        ("otlp", cfg!(feature = "otlp")),
        ("pull", cfg!(feature = "pull")),
        ("tls", cfg!(feature = "tls")),
        ("vtune", cfg!(feature = "vtune")),
    ];
    let names: Vec<_> = optional.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
    let expected = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let output = kernmill(&TempDir::new().unwrap(), &["--version"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("\nfeatures: {expected}\n")), "{text}");
}

fn kernmill(dir: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernmill"));
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with("KERNMILL_")).for_each(|name| {
        command.env_remove(name);
    });
    command.args(args).current_dir(dir.path()).output().unwrap()
}

#[test]
fn plans_run_and_are_shown() {
    let dir = TempDir::new().unwrap();
    plan(&dir);
    let ran = kernmill(&dir, &["run", "nano.plan", "--prompt", "A slice is", "-n", "20", "--temp", "0"]);
    assert!(ran.status.success() && ran.stdout.len() > 10, "{ran:?}");
    let shown = kernmill(&dir, &["inspect", "nano.plan", "--verify"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("every hash fits"), "{shown:?}");
}

#[test]
fn adapters_are_served() {
    let dir = TempDir::new().unwrap();
    plan(&dir);
    let graph = graph();
    for (name, dora, targets) in [("most", false, "k,o,router,experts"), ("dora", true, "q,v")] {
        let targets = targets.split(',').map(str::to_owned).collect();
        let shape = AdapterShape { rank: 5, targets, dora };
        write_adapter(&graph, &dir.path().join(name), &shape, 3, &|_, _| {}).unwrap();
    }
    let run = |more: &[&str]| {
        let usual = ["run", "nano.plan", "--prompt", "A slice is", "-n", "12", "--temp", "0", "--json"];
        let ran = kernmill(&dir, &[&usual, more].concat());
        assert!(ran.status.success(), "{ran:?}");
        serde_json::from_slice::<serde_json::Value>(&ran.stdout).unwrap()
    };
    let plain = run(&[]);
    let both = run(&["--lora", "most=most:8", "--lora", "dora=dora"]);
    assert_eq!(both["adapters"].as_array().unwrap().len(), 2);
    assert_ne!(plain["text"], both["text"]);
    assert_eq!(run(&["--lora", "most=most:0"])["text"], plain["text"]);
    let ran = kernmill(&dir, &["run", "nano.plan", "--prompt", "x", "--lora", "a=nowhere"]);
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
}

#[cfg(not(feature = "compiler"))]
#[test]
fn what_needs_a_compiler_is_refused_and_the_ways_out_are_named() {
    let dir = TempDir::new().unwrap();
    let path = plan(&dir);
    let refused = |args: &[&str], parts: &[&str]| {
        let ran = kernmill(&dir, args);
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        let message = String::from_utf8(ran.stderr).unwrap();
        parts.iter().for_each(|part| assert!(message.contains(part), "`{part}` is not in: {message}"));
        assert!(ran.stdout.is_empty());
    };
    refused(&["run", "nano.plan", "--prompt", "x", "--regenerate"], &["--regenerate"]);
    refused(&["run"], &["PLAN"]);
    refused(
        &["pull", "acme/tiny"],
        &["pull: kernmill downloads nothing", "`hf download acme/tiny --local-dir tiny`"],
    );
    refused(&["compile", "-o", "a.plan"], &["compile"]);
    let other = Level::ALL.into_iter().find(|level| Some(level) != Level::supported().last()).unwrap();
    let target = ["run", "nano.plan", "--prompt", "x", "--target", other.name()];
    refused(&target, &["no target", "a kernmill with the compiler"]);
    fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    let ways_out = ["nano.plan", "chmod go-w", "--regenerate of a kernmill with the compiler"];
    refused(&["run", "nano.plan", "--prompt", "x"], &ways_out);
}
