//! Models by their names on a hub: in the cache of its tools.

use super::{Ran, Sandbox};
use crate::harness::program;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

/// A sandbox whose checkpoint lies in a cache `hub` as the model `acme/tiny`, in links to blobs.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::of("gptoss-base");
    let repository = sandbox.path("hub/models--acme--tiny");
    let snapshot = repository.join("snapshots/0a1b2c");
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir(repository.join("blobs")).unwrap();
    fs::create_dir(repository.join("refs")).unwrap();
    fs::write(repository.join("refs/main"), "0a1b2c").unwrap();
    for (at, file) in ["config.json", "model.safetensors"].into_iter().enumerate() {
        let blob = format!("b10b{at}");
        fs::copy(sandbox.path(file), repository.join("blobs").join(&blob)).unwrap();
        symlink(format!("../../blobs/{blob}"), snapshot.join(file)).unwrap();
    }
    sandbox
}

/// Runs the program with the cache of [`sandbox`].
fn run(sandbox: &Sandbox, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut program = program();
    program.args(args).current_dir(sandbox.dir.path()).env("HF_HUB_CACHE", sandbox.path("hub"));
    let Output { status, stdout, stderr } = program.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { status: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

#[test]
fn a_model_in_the_cache_of_the_hubs_tools_is_the_one_in_its_directory() {
    let sandbox = sandbox();
    let logits = |variables: &[(&str, &str)], model: &[&str]| {
        let usual = ["logits", "--tokens", "ids.json", "--out", "out.safetensors"];
        run(&sandbox, variables, &[&usual, model].concat()).text();
        fs::read(sandbox.path("out.safetensors")).unwrap()
    };
    let expected = logits(&[], &["."]);
    assert_eq!(logits(&[], &["acme/tiny", "--hf-cache"]), expected);
    assert_eq!(logits(&[("KERNMILL_HF_CACHE", "1")], &["acme/tiny"]), expected);
    // The model has the name that it has on the hub, and not that of a revision.
    let json = run(
        &sandbox,
        &[],
        &["run", "acme/tiny", "--hf-cache", "--tokens", "ids.json", "-n", "2", "-q", "--json"],
    );
    let report: serde_json::Value = serde_json::from_str(&json.text()).unwrap();
    assert_eq!(report["model"], "tiny");
    // A path goes before a name.
    fs::create_dir_all(sandbox.path("acme/tiny")).unwrap();
    run(&sandbox, &[], &["run", "acme/tiny", "--hf-cache"]).refused(&["acme/tiny: no config.json"]);
}

#[test]
fn what_is_not_in_the_cache_says_where_it_was_looked_for() {
    let sandbox = sandbox();
    let hub = sandbox.path("hub").display().to_string();
    let parts = ["acme/small: ", &hub, "`kernmill pull acme/small` fetches it"];
    run(&sandbox, &[], &["run", "acme/small", "--hf-cache"]).refused(&parts);
    let moved = [("HF_HUB_CACHE", ""), ("HF_HOME", "elsewhere")];
    run(&sandbox, &moved, &["run", "acme/tiny", "--hf-cache"]).refused(&["elsewhere/hub/models--acme--tiny"]);
}
