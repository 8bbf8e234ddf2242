//! Checkpoints of hundreds of files: one file is cut off while it is mapped.

use super::Sandbox;
use super::outputs::make_pipe;
use crate::harness::program;
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Columns of the model: a row takes more than a page, so that something is left to lose behind a header.
const WIDTH: usize = 2048;

/// A model of as many norms as `layers`.
fn spec(layers: usize) -> String {
    format!(
        "[model]\nname = \"norms\"\nvocab = 32\nmax_context = 64\n\
         [tensors]\ne = {{ from = \"e\", shape = [32, {WIDTH}], format = \"f32\" }}\n\
         u = {{ from = \"u\", shape = [32, {WIDTH}], format = \"f32\" }}\n\
         [before]\nnode = [{{ out = \"x\", op = \"embed\", table = \"e\" }}]\n\
         [layer]\ncount = {layers}\ncarry = {{ x = \"z\" }}\n\
         node = [{{ out = \"z\", op = \"rms_norm\", input = \"x\", weight = \"w\", eps = 1e-5 }}]\n\
         [layer.tensors]\nw = {{ from = \"w{{layer}}\", shape = [{WIDTH}], format = \"f32\" }}\n\
         [after]\nnode = [{{ out = \"y\", op = \"select_rows\", input = \"x\" }}, \
         {{ out = \"l\", op = \"logits\", input = \"y\", weight = \"u\" }}]\n"
    )
}

fn shard(layer: usize) -> String {
    format!("s{layer:04}.safetensors")
}

/// Writes tensors of halves, and enters them in `index`.
fn save(sandbox: &Sandbox, file: &str, tensors: &[(&str, &[usize])], index: &mut Map<String, Value>) {
    let (mut header, mut end) = (Map::new(), 0);
    for (name, shape) in tensors {
        let bytes = 4 * shape.iter().product::<usize>();
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [end, end + bytes] });
        header.insert((*name).to_owned(), entry);
        index.insert((*name).to_owned(), file.into());
        end += bytes;
    }
    let header = serde_json::to_vec(&header).unwrap();
    let data = 0.5f32.to_le_bytes().repeat(end / 4);
    sandbox.write(file, [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat());
}

/// A model with a file for every layer, and a pipe for the ids: everything is mapped by the time that it is
/// opened.
fn sharded(layers: usize) -> Sandbox {
    let sandbox = Sandbox { dir: TempDir::new().unwrap() };
    sandbox.write("spec.toml", spec(layers));
    let mut index = Map::new();
    save(&sandbox, "t.safetensors", &[("e", &[32, WIDTH]), ("u", &[32, WIDTH])], &mut index);
    for layer in 0..layers {
        save(&sandbox, &shard(layer), &[(&format!("w{layer}"), &[WIDTH])], &mut index);
    }
    sandbox.write("model.safetensors.index.json", json!({ "weight_map": index }).to_string());
    make_pipe(&sandbox.path("ids"));
    sandbox
}

#[test]
fn any_of_hundreds_of_files_that_is_cut_off_is_named() {
    for (layers, cut) in [(40, 31), (258, 256), (520, 257), (520, 519)] {
        let sandbox = sharded(layers);
        let mut child = program()
            .args([
                "run",
                "spec.toml",
                "--weights",
                ".",
                "--tokens",
                "ids",
                "-n",
                "1",
                "-q",
                "--threads",
                "1",
            ])
            .current_dir(sandbox.dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let start = Instant::now();
        let mut ids = loop {
            // Without a reader, opening it is refused.
            let open = File::options().write(true).custom_flags(libc::O_NONBLOCK).open(sandbox.path("ids"));
            if let Ok(ids) = open {
                break ids;
            }
            assert!(start.elapsed() < Duration::from_secs(120), "the ids are never read");
            assert!(child.try_wait().unwrap().is_none(), "it ends before the ids are read");
            std::thread::sleep(Duration::from_millis(5));
        };
        File::options().write(true).open(sandbox.path(&shard(cut))).unwrap().set_len(100).unwrap();
        ids.write_all(b"[1, 2]").unwrap();
        drop(ids);
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{layers} {cut}: {message}");
        let expected = format!("{}: part of the file cannot be read any more", shard(cut));
        assert!(message.contains(&expected), "{layers} {cut}: {message}");
        assert!(fs::metadata(sandbox.path(&shard(cut))).unwrap().len() == 100);
    }
}
