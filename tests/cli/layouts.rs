//! Directories and files as people have them that are no checkpoint, and configs that are not understood: one
//! line that helps.

use super::{Ran, Sandbox};
use std::fs;

const CONFIG: &str = "config.json";

/// A sandbox with the config of a fixture and, in place of its weights, the files `names`.
fn instead_of_weights(names: &[&str], config: bool) -> Sandbox {
    let sandbox = Sandbox::of("llama-plain");
    let weights = fs::read(sandbox.path("model.safetensors")).expect("readable");
    fs::remove_file(sandbox.path("model.safetensors")).expect("removable");
    if !config {
        fs::remove_file(sandbox.path(CONFIG)).expect("removable");
    }
    for name in names {
        sandbox.write(name, &weights);
    }
    sandbox
}

fn logits(sandbox: &Sandbox, model: &str) -> Ran {
    sandbox.run(&["logits", model, "--tokens", "ids.json", "--out", "out.safetensors"])
}

#[test]
fn directories_of_other_layouts_say_what_helps() {
    for (name, parts) in [
        ("pytorch_model.bin", &["no checkpoint found", "save_pretrained"][..]),
        ("consolidated.safetensors", &["Mistral's own layout"]),
        ("model-00001-of-00001.safetensors", &["shards but not their index"]),
        ("weights.npz", &["MLX"]),
        ("pruned.safetensors", &["found pruned.safetensors", "give one of them"]),
    ] {
        logits(&instead_of_weights(&[name], true), ".").refused(parts);
    }
    for (name, parts) in [
        ("adapter_config.json", &["no config.json", "--lora"][..]),
        ("params.json", &["no config.json", "Meta's or Mistral's own layout"]),
    ] {
        logits(&instead_of_weights(&[name], false), ".").refused(parts);
    }
}

/// The advice in messages works.
#[test]
fn a_safetensors_file_of_another_name_will_do() {
    let sandbox = instead_of_weights(&["pruned.safetensors"], true);
    logits(&sandbox, "pruned.safetensors").text();
}

#[test]
fn keys_that_are_not_understood_are_refused_by_every_command() {
    for (key, value) in
        [("attention_multiplier", "0.5"), ("use_qk_norm", "true"), ("window_pattern", "\"SSL\"")]
    {
        let sandbox = Sandbox::of("llama-plain");
        sandbox.replace(CONFIG, "\"hidden_act\"", &format!("\"{key}\": {value},\n  \"hidden_act\""));
        let says = [&format!("unknown key `{key}` with value {value}")[..], "remove it from config.json"];
        logits(&sandbox, ".").refused(&says);
        sandbox.run(&["import", "."]).refused(&says);
        sandbox.run(&["compile", ".", "-o", "a.plan"]).refused(&says);
        // A spec that is given goes before the config.
        sandbox.logits(&[]).text();
    }
}

#[test]
fn a_config_of_another_kind_says_what_it_is() {
    let sandbox = Sandbox::of("llama-plain");
    for (text, says) in [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "it is a git-lfs pointer"),
        ("<html><body>404</body></html>", "it is a web page"),
        (r#"{"num_experts": 32, "swiglu_limit": 7.0, "initial_context_length": 4096}"#, "`original` layout"),
        (r#"{"architectures": ["MambaForCausalLM"]}"#, "docs/user/architectures.md"),
    ] {
        sandbox.write(CONFIG, text);
        logits(&sandbox, ".").refused(&[CONFIG, says]);
    }
}
