//! Damaged checkpoints: exit status 2, naming the file and the tensor.

use super::Sandbox;
use super::outputs::make_pipe;
use super::safetensors_file::{Entry, SafetensorsFile};
use crate::gguf::convert::convert;
use crate::gguf::writer::BF16;
use crate::harness::program;
use serde_json::json;
use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

const MODEL: &str = "model.safetensors";
const NORM: &str = "model.norm.weight";
const BLOCKS: &str = "model.layers.0.mlp.experts.gate_up_proj_blocks";
const SCALES: &str = "model.layers.0.mlp.experts.gate_up_proj_scales";

fn sandbox() -> (Sandbox, SafetensorsFile) {
    let sandbox = Sandbox::of("gptoss-base");
    let file = SafetensorsFile::read(&sandbox.path(MODEL));
    (sandbox, file)
}

#[test]
fn tensors_that_are_not_the_models_are_refused() {
    let (sandbox, mut file) = sandbox();

    file.entry(NORM).name = "model.norm.wight".to_owned();
    file.write();
    sandbox.refuses(&[], &["tensor `model.norm.weight` is missing", "did you mean `model.norm.wight`?"]);
    file.entry("model.norm.wight").name = NORM.to_owned();

    let extra = Entry { name: "model.spare".into(), dtype: "F32".into(), shape: vec![1], bytes: vec![0; 4] };
    file.entries.push(extra);
    file.write();
    sandbox.refuses(&[], &["1 tensor that the model does not use: model.spare"]);
    file.entries.pop();

    let norm = file.entry(NORM).clone();
    file.entry(NORM).dtype = "I16".to_owned();
    file.write();
    sandbox.refuses(&[], &["tensor `model.norm.weight` is I16, expected BF16"]);
    *file.entry(NORM) = Entry { shape: vec![norm.shape[0] / 2, 2], ..norm.clone() };
    file.write();
    sandbox.refuses(&[], &["tensor `model.norm.weight` has shape", "expected ["]);
    *file.entry(NORM) = norm;

    file.write();
    sandbox.logits(&[]).text();
}

#[test]
fn corrupt_files_are_refused() {
    let (sandbox, file) = sandbox();
    let whole = fs::read(sandbox.path(MODEL)).unwrap();
    let with_length = |length: u64| [&length.to_le_bytes()[..], &whole[8..]].concat();

    sandbox.write(MODEL, &whole[..5]);
    sandbox.refuses(&[], &[MODEL, "5 bytes long, expected at least the 8 bytes of the header length"]);
    sandbox.write(MODEL, with_length(u64::MAX));
    sandbox.refuses(&[], &[MODEL, "header length 18446744073709551615 is over the limit"]);
    sandbox.write(MODEL, with_length(whole.len() as u64));
    sandbox.refuses(&[], &[MODEL, "runs past the end of the file"]);
    sandbox.write(MODEL, with_length(9));
    sandbox.refuses(&[], &[MODEL, "the header is not a JSON object"]);
    sandbox.write(MODEL, &whole[..whole.len() - 100]);
    sandbox.refuses(&[], &[MODEL, "run past the end of the file", "truncated?"]);

    let bytes = file.entries[1].bytes.len();
    let second = file.entries[1].name.clone();
    file.write_with(|header| header[&second]["data_offsets"] = json!([0, bytes]));
    sandbox.refuses(&[], &[MODEL, "overlaps"]);
    let far = u64::MAX - bytes as u64;
    file.write_with(|header| header[&second]["data_offsets"] = json!([far, u64::MAX]));
    sandbox.refuses(&[], &[MODEL, &second, "past the end of the file"]);
    file.write_with(|header| header[&second]["data_offsets"] = json!([bytes, 0]));
    sandbox.refuses(&[], &[MODEL, &second, "do not fit its shape"]);
    file.write_with(|header| header[&second]["shape"] = json!([u64::MAX, u64::MAX]));
    sandbox.refuses(&[], &[MODEL, &second]);

    sandbox.write(MODEL, "");
    sandbox.refuses(&[], &[MODEL, "it is empty"]);
    sandbox.write(MODEL, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n");
    sandbox.refuses(&[], &[MODEL, "it is a git-lfs pointer"]);
    fs::remove_file(sandbox.path(MODEL)).unwrap();
    sandbox.refuses(&[], &["no checkpoint found: expected model.safetensors"]);
}

#[test]
fn an_index_must_fit_its_shards() {
    const INDEX: &str = "model.safetensors.index.json";
    const SECOND: &str = "model-00002-of-00002.safetensors";
    let sandbox = Sandbox::of("gptoss-sharded");
    let index = sandbox.read(INDEX);

    fs::rename(sandbox.path(SECOND), sandbox.path("away")).unwrap();
    sandbox.refuses(&[], &[INDEX, "names shard `model-00002-of-00002.safetensors`, which does not exist"]);
    fs::rename(sandbox.path("away"), sandbox.path(SECOND)).unwrap();

    // The shards say what they hold.
    sandbox.write(INDEX, index.replace("model.norm.weight", "model.norm.wight"));
    sandbox.logits(&[]).text();
    sandbox.write(INDEX, "[]");
    sandbox.refuses(&[], &[INDEX, "not an index"]);

    sandbox.write(INDEX, index);
    sandbox.logits(&[]).text();
}

#[test]
fn values_that_are_no_numbers_are_refused_by_tensor() {
    for preset in ["exact", "faithful", "fast"] {
        let (sandbox, mut file) = sandbox();
        let nan = 0x7fc0_u16.to_le_bytes();
        for name in [NORM, "lm_head.weight", "model.embed_tokens.weight", "model.layers.0.self_attn.sinks"] {
            let sound = file.entry(name).clone();
            assert_eq!(sound.dtype, "BF16");
            file.entry(name).bytes[6..8].copy_from_slice(&nan);
            file.write();
            sandbox.refuses(&["--preset", preset], &[name, "NaN"]);
            *file.entry(name) = sound;
        }
        assert!(file.entry(BLOCKS).dtype == "U8");
        file.entry(SCALES).bytes[7] = 255;
        file.write();
        sandbox.refuses(&["--preset", preset], &[SCALES, "255"]);
    }
}

#[test]
fn pipes_in_a_directory_are_refused_and_not_waited_for() {
    for (fixture, name) in [
        ("gptoss-base", "config.json"),
        ("gptoss-base", MODEL),
        ("gptoss-base", "tokenizer.json"),
        ("gptoss-base", "generation_config.json"),
        ("gptoss-sharded", "model.safetensors.index.json"),
        ("gptoss-sharded", "model-00002-of-00002.safetensors"),
    ] {
        let sandbox = Sandbox::of(fixture);
        let _ = fs::remove_file(sandbox.path(name));
        let compile = ["compile", "--weights", ".", "-o", "a.plan"];
        make_pipe(&sandbox.path(name));
        sandbox.run(&compile).refused(&[name, "a pipe or a device, expected a regular file"]);
        fs::remove_file(sandbox.path(name)).unwrap();
        for to in ["/dev/zero", "/dev/random", "pipe"] {
            let _ = fs::remove_file(sandbox.path("pipe"));
            make_pipe(&sandbox.path("pipe"));
            std::os::unix::fs::symlink(to, sandbox.path(name)).unwrap();
            sandbox.run(&compile).refused(&[name, "a pipe or a device, expected a regular file"]);
            fs::remove_file(sandbox.path(name)).unwrap();
        }
    }
}

/// A file of the checkpoint stands for its directory.
#[test]
fn a_file_of_a_checkpoint_will_do() {
    for (fixture, file) in [
        ("gptoss-base", MODEL),
        ("gptoss-sharded", "model-00001-of-00002.safetensors"),
        ("gptoss-sharded", "model.safetensors.index.json"),
    ] {
        let sandbox = Sandbox::of(fixture);
        let run = |weights: &str| {
            let out = format!("{}.logits", weights.len());
            sandbox.run(&["logits", "--weights", weights, "--tokens", "ids.json", "--out", &out]).text();
            fs::read(sandbox.path(&out)).unwrap()
        };
        assert_eq!(run(file), run("."), "{file}");
    }
}

#[test]
fn a_models_name_on_a_hub_says_how_to_get_it() {
    let sandbox = Sandbox::of("gptoss-base");
    for name in ["openai/gpt-oss-20b", "meta-llama/Llama-3.2-1B"] {
        let run = sandbox.run(&["run", "--weights", name]);
        run.refused(&[name, &format!("`kernmill pull {name}`")]);
    }
}

#[test]
fn a_checkpoint_that_is_cut_off_while_it_is_read_ends_in_a_message() {
    for weights in [MODEL, "model.gguf"] {
        let sandbox = Sandbox::of("gptoss-base");
        if weights != MODEL {
            sandbox.write(weights, convert("gptoss-base", BF16).bytes());
        }
        let (before, whole) = (sandbox.files(), fs::read(sandbox.path(weights)).unwrap());
        // Where the file is cut off too early or too late, another program is tried, and waited for longer.
        let message = (0..50).find_map(|attempt| {
            let wait = Duration::from_millis(5 * attempt);
            let message = compile_of_a_file_that_is_cut_off(&sandbox, weights, wait);
            if message.is_none() {
                sandbox.write(weights, &whole);
                let _ = fs::remove_file(sandbox.path("a.plan"));
            }
            message
        });
        let message = message.expect("one of 50 programs reads weights while they are cut off");
        for part in
            [&format!("{weights}: part of the file cannot be read any more")[..], "nothing was written"]
        {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
        assert_eq!(sandbox.files(), before);
    }
}

/// Cuts a file of weights off after a compiling program has mapped it and `wait` is over: the program's
/// message. `None` where it had not looked at the file's length yet, or had written the plan already.
fn compile_of_a_file_that_is_cut_off(sandbox: &Sandbox, weights: &str, wait: Duration) -> Option<String> {
    let mut child = program()
        .args(["compile", "-o", "a.plan", "--weights"])
        .arg(if weights == MODEL { "." } else { weights })
        .current_dir(sandbox.dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Code is generated between the mapping of the file and the reading of its weights.
    let maps = format!("/proc/{}/maps", child.id());
    let start = Instant::now();
    while !fs::read_to_string(&maps).unwrap_or_default().contains(weights) {
        assert!(start.elapsed() < Duration::from_secs(60), "the weights are never mapped");
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    std::thread::sleep(wait);
    File::options().write(true).open(sandbox.path(weights)).unwrap().set_len(4096).unwrap();
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    match child.wait().unwrap().code() {
        Some(0) => None,
        Some(2) if message.contains("truncated?") => None,
        code => {
            assert_eq!(code, Some(1), "{message}");
            Some(message)
        }
    }
}
