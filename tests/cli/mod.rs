//! The built program: what it prints, what it leaves behind, and its exit status.

mod adapters;
mod answers;
mod batch;
mod batch_lines;
mod bench;
mod chat;
mod checkpoints;
mod commands;
mod confined;
mod embed;
mod emit;
mod environment;
mod eval;
mod eval_record;
mod eval_texts;
mod explain;
mod explain_page;
mod foreign;
mod front_door;
mod fuse;
mod given;
mod hub;
mod layouts;
mod limits;
mod machines;
mod options;
mod outputs;
mod perf;
mod plans;
mod prompts;
mod quantized;
mod reports;
mod requests;
mod safetensors_file;
mod sessions;
mod shards;
mod specs;
mod stored;
mod streams;
mod system;
mod templates;
mod texts;
mod timeline;
mod tokenizers;
mod workers;

use crate::harness::{machine, oracle, program, read};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use tempfile::TempDir;

/// A finished run of the program.
#[derive(Debug)]
pub struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the program in `dir`.
fn kernmill_in(dir: &Path, args: &[&str]) -> Ran {
    let output = program().args(args).current_dir(dir).output();
    let Output { status, stdout, stderr } = output.expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { status: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Runs the program in the repository's root.
pub fn kernmill(args: &[&str]) -> Ran {
    kernmill_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

/// The program, for tests that send it Ctrl-C.
fn interruptible() -> Command {
    let mut command = program();
    // A shell that starts the tests in the background has them ignore Ctrl-C, which their children would
    // inherit.
    let listen = || {
        // SAFETY: `signal` may be called between fork and exec, and touches no memory of ours.
        match unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) } {
            libc::SIG_ERR => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: `listen` makes one call, which is allowed there.
    unsafe { command.pre_exec(listen) };
    command
}

/// Sends Ctrl-C to a program that has not been waited for.
fn interrupt(child: &Child) {
    // SAFETY: the child has not been waited for, so that its number is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
}

impl Ran {
    /// Standard output of a run that went well.
    #[track_caller]
    fn text(self) -> String {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        self.stdout
    }

    /// The run must have refused its input with a message that has all of `parts`.
    #[track_caller]
    fn refused(self, parts: &[&str]) {
        let message = &self.stderr;
        assert_eq!(self.status, Some(2), "stdout: {}\nstderr: {message}", self.stdout);
        assert!(message.starts_with("error: "), "{message}");
        for part in parts {
            assert!(message.contains(part), "`{part}` is not in:\n{message}");
        }
        assert_eq!(self.stdout, "", "nothing is printed when the input is refused");
    }
}

impl Ran {
    /// The command line must have been refused before anything was read, with a message about `argument`.
    #[track_caller]
    fn misused(self, argument: &str) {
        assert_eq!(self.status, Some(2), "{}", self.stderr);
        assert!(self.stderr.contains(argument) && self.stderr.contains("Usage:"), "{}", self.stderr);
    }
}

/// A directory with a copy of a small checkpoint, for damaging.
struct Sandbox {
    dir: TempDir,
}

impl Sandbox {
    /// Copies fixture checkpoint `name`, and writes its spec to `spec.toml` and some token ids to `ids.json`.
    fn of(name: &str) -> Sandbox {
        let sandbox = Sandbox { dir: TempDir::new().expect("a temporary directory") };
        for entry in fs::read_dir(oracle(name)).expect("the fixture exists") {
            let path = entry.expect("readable").path();
            let file = path.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
            if file != "oracle.safetensors" {
                fs::write(sandbox.path(&file), fs::read(&path).expect("readable")).expect("writable");
            }
        }
        sandbox.write("ids.json", "[1, 2, 3, 4, 5]");
        sandbox.run(&["import", ".", "-o", "spec.toml"]).text();
        sandbox
    }

    /// Writes the description of a machine to `host.json`: what is said of it is not said of this one.
    fn describe(&self, name: &str) {
        self.write("host.json", fs::read(machine(name)).expect("readable"));
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("readable")
    }

    fn write(&self, file: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(file), contents).expect("writable");
    }

    /// Replaces the only occurrence of `from` in a text file.
    fn replace(&self, file: &str, from: &str, to: &str) {
        let text = self.read(file);
        assert_eq!(text.matches(from).count(), 1, "`{from}` in {file}:\n{text}");
        self.write(file, text.replace(from, to));
    }

    /// Changes a key of `config.json`, or of another JSON file that need not be there; null takes it away.
    fn set(&self, file: &str, key: &str, value: Value) {
        let text = fs::read_to_string(self.path(file)).unwrap_or_else(|_| "{}".to_owned());
        let mut json: Value = serde_json::from_str(&text).expect("JSON");
        match value {
            Value::Null => drop(json.as_object_mut().expect("an object").remove(key)),
            value => json[key] = value,
        }
        self.write(file, json.to_string());
    }

    /// The largest difference of the logits in a file from another file's.
    fn difference(&self, file: &str, other: &str) -> f32 {
        let of =
            |file: &str| read(&fs::read(self.path(file)).expect("readable"), "logits", f32::from_le_bytes);
        let (a, b) = (of(file), of(other));
        assert_eq!(a.len(), b.len());
        a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    fn run(&self, args: &[&str]) -> Ran {
        kernmill_in(self.dir.path(), args)
    }

    /// Asks for the logits of `ids.json`.
    fn logits(&self, more: &[&str]) -> Ran {
        let usual = [
            "logits",
            "--spec",
            "spec.toml",
            "--weights",
            ".",
            "--tokens",
            "ids.json",
            "--out",
            "out.safetensors",
        ];
        self.run(&[&usual, more].concat())
    }

    /// Logits must be refused, and no file be written, not even for a while.
    #[track_caller]
    fn refuses(&self, more: &[&str], parts: &[&str]) {
        let before = self.files();
        self.logits(more).refused(parts);
        assert_eq!(self.files(), before, "files were left behind");
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).expect("readable");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
