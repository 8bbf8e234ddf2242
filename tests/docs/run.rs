//! The commands that documents and help texts show do what they say: those of each document, and of each
//! command's help, are run in their order, in a separate directory.
//!
//! Models of a true size are not at hand. A small one stands in for each of them under its name: the embedded
//! model's files, with a longer context.

use super::{call, root};
use crate::gguf::convert::convert;
use crate::gguf::writer::BF16;
use crate::harness::{machine, program};
use kernmill_checkpoint::gguf::{Gguf, GgufTensor, Imatrix, ImatrixEntry};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Mutex, OnceLock};
use tempfile::TempDir;

/// Context of the stand-ins, in tokens: what benchmarks of documents need.
const CONTEXT: &str = "8192";

/// Variables that make commands quick which measure.
const QUICK: [(&str, &str); 4] =
    [("KERNMILL_READ", "1M"), ("KERNMILL_REPEAT", "1"), ("KERNMILL_SAMPLES", "1"), ("KERNMILL_THREADS", "2")];

/// A fused-op spec.
const FUSION: &str = "model-specs/examples/fused/mish.toml";

/// Options whose value is written by the command.
const OUTPUTS: [&str; 8] =
    ["-o", "--output", "--out", "--save", "--save-imatrix", "--state", "--emit-dir", "--html"];

/// The directory that a document's commands run in.
struct CommandDir(TempDir);

impl CommandDir {
    fn new() -> CommandDir {
        let place = CommandDir(TempDir::new().unwrap());
        let specs = place.path("model-specs");
        fs::create_dir(&specs).unwrap();
        symlink(root().join("model-specs/examples"), specs.join("examples")).unwrap();
        symlink(root().join("model-specs/nano"), specs.join("nano")).unwrap();
        let spec = fs::read_to_string(root().join("model-specs/nano/nano.toml")).unwrap();
        let spec = spec.replace("max_context = 2048", &format!("max_context = {CONTEXT}"));
        assert!(spec.contains(CONTEXT));
        fs::write(specs.join("gpt-oss-20b.toml"), spec).unwrap();
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut program = program();
        program.args(args).envs(QUICK).current_dir(self.0.path()).output().unwrap()
    }

    /// A step that makes an input.
    fn make(&self, args: &[&str]) {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes the input called `name`, unless a command has made it.
    fn provide(&self, name: &str) {
        let name = name.trim_end_matches('/');
        if self.path(name).exists() {
            return;
        }
        match name {
            "DIR" | "MODEL" | "synth-20b" => self.checkpoint(&self.path(name)),
            "host.json" => drop(fs::copy(machine("two_cores"), self.path(name)).unwrap()),
            "ids.json" => fs::write(self.path(name), "[1, 2, 3, 4, 5]").unwrap(),
            "requests.jsonl" => {
                let requests =
                    "{\"prompt\": \"A slice is\", \"max_tokens\": 3}\n{\"prompt\": [1], \"max_tokens\": 2}\n";
                fs::write(self.path(name), requests).unwrap();
            }
            "answers.json" => {
                let script = "{\"tokenizer\": \"model-specs/nano/tokenizer.json\", \"vocab\": 3072, \
                    \"rules\": [{\"answer\": \"Yes.\"}]}";
                fs::write(self.path(name), script).unwrap();
            }
            "keys.txt" => fs::write(self.path(name), "ann key-of-ann-0123456789\n").unwrap(),
            "reply.json" => {
                let schema = "{\"type\": \"object\", \"properties\": {\"sized\": {\"type\": \"boolean\"}}}";
                fs::write(self.path(name), schema).unwrap();
            }
            "functions.json" => fs::write(self.path(name), "[{\"name\": \"clock\"}]").unwrap(),
            "list.lark" => {
                fs::write(self.path(name), "start: /[a-z]{1,8}/ (\", \" /[a-z]{1,8}/){1,3}").unwrap()
            }
            "mine.jinja" => fs::write(self.path(name), "{{ messages[0].content }}").unwrap(),
            "texts.txt" => fs::write(self.path(name), "A slice is a view.\nThreads may panic.\n").unwrap(),
            "text.txt" | "wiki.test.txt" => {
                fs::write(self.path(name), "A slice is a view into an array. ".repeat(80)).unwrap();
            }
            "texts.jsonl" => fs::write(self.path(name), "{\"text\": \"A slice is a view.\"}\n").unwrap(),
            "hellaswag_val.jsonl" => self.fixture("hellaswag.jsonl", name),
            "ARC-Challenge-Test.jsonl" => self.fixture("arc.jsonl", name),
            "anatomy_test.csv" => self.fixture("high_school_biology_test.csv", name),
            "valid.jsonl" => self.fixture("piqa.hub.jsonl", name),
            "train.jsonl" => self.fixture("gsm8k-train.jsonl", name),
            "test.jsonl" => {
                let questions = fs::read_to_string(root().join("eval/fixtures/gsm8k.jsonl")).unwrap();
                fs::write(self.path(name), questions.lines().next().unwrap()).unwrap();
            }
            "HumanEval.jsonl" => {
                let problem = "{\"task_id\": \"HumanEval/0\", \"prompt\": \"def one():\\n\", \"entry_point\": \"one\", \
                    \"test\": \"def check(one):\\n    assert one() == 1\\n\"}";
                fs::write(self.path(name), problem).unwrap();
            }
            "mbpp.jsonl" => {
                let rest = "\"text\": \"Give one.\", \"code\": \"def one(): return 1\", \
                    \"test_list\": [\"assert one() == 1\", \"assert one() > 0\", \"assert one() < 2\"]";
                let problems = [2, 3, 4, 11].map(|task| format!("{{\"task_id\": {task}, {rest}}}\n"));
                fs::write(self.path(name), problems.concat()).unwrap();
            }
            "samples.jsonl" => {
                let answer = "{\"task_id\": \"HumanEval/0\", \"completion\": \"    return 1\\n\"}";
                fs::write(self.path(name), answer).unwrap();
            }
            "before/samples_arc.jsonl" | "after/samples_arc.jsonl" => {
                let sample =
                    "{\"doc_id\": 0, \"prompt_hash\": \"a\", \"metrics\": [\"acc\"], \"acc\": 1.0}\n";
                fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
                fs::write(self.path(name), sample).unwrap();
            }
            _ if name.ends_with(".base") => {
                let text = self.input("text.txt");
                self.make(&["eval", "kl", "--preset", "exact", "--save", name, "-f", &text]);
            }
            "fast.json" | "other.json" => {
                let text = self.input("text.txt");
                self.make(&["eval", "text", "-f", &text, "--out", name]);
            }
            "question.txt" => fs::write(self.path(name), "What is a slice?").unwrap(),
            "model.imatrix" => {
                let gguf =
                    Gguf::from_bytes(name, convert("../../../model-specs/nano", BF16).bytes()).unwrap();
                let entry = |info: &GgufTensor| {
                    let sums =
                        vec![1.0; info.shape.iter().product::<usize>() / info.shape[info.shape.len() - 2]];
                    (info.name.clone(), ImatrixEntry { sums, counts: vec![1.0] })
                };
                let entries = gguf.tensors().iter().filter(|info| info.shape.len() > 1).map(entry).collect();
                fs::write(self.path(name), Imatrix { entries, ..Imatrix::default() }.to_gguf()).unwrap();
            }
            _ if name.ends_with(".gguf") => {
                let file = convert("../../../model-specs/nano", BF16).bytes();
                fs::write(self.path(name), file).unwrap();
                let tokenizer = root().join("model-specs/nano/tokenizer.json");
                let _ = symlink(tokenizer, self.path("tokenizer.json"));
            }
            "my_fusions" => {
                fs::create_dir(self.path(name)).unwrap();
                fs::copy(root().join(FUSION), self.path(name).join("mish.toml")).unwrap();
            }
            "lantern.toml" => {
                let page = fs::read_to_string(root().join("docs/user/new-family.md")).unwrap();
                fs::write(self.path(name), super::pages::blocks(&page, "toml").concat()).unwrap();
            }
            "model.toml" | "my.toml" => self.make(&["import", &self.input("DIR"), "-o", name]),
            _ if name.ends_with(".plan") => {
                // Every document's plan is the same one.
                static PLAN: OnceLock<Vec<u8>> = OnceLock::new();
                let plan = PLAN.get_or_init(|| {
                    self.make(&["compile", &self.input("DIR"), "-o", name, "-q", "--target", "all"]);
                    fs::read(self.path(name)).unwrap()
                });
                fs::write(self.path(name), plan).unwrap();
            }
            "DIR_A" | "DIR_B" | "adapters/poet" | "adapters/terse" | "synth-lora" => {
                let spec = "model-specs/gpt-oss-20b.toml";
                fs::create_dir_all(self.path("adapters")).unwrap();
                self.make(&["synth", spec, "-o", name, "--lora", "2", "-q"]);
            }
            _ => {}
        }
    }

    /// The name of an input that is there now.
    fn input(&self, name: &str) -> String {
        self.provide(name);
        name.to_owned()
    }

    /// Questions of a task.
    fn fixture(&self, of: &str, name: &str) {
        fs::copy(root().join("eval/fixtures").join(of), self.path(name)).unwrap();
    }

    fn checkpoint(&self, dir: &Path) {
        let nano = root().join("model-specs/nano");
        fs::create_dir(dir).unwrap();
        for file in ["model.safetensors", "tokenizer.json"] {
            symlink(nano.join(file), dir.join(file)).unwrap();
        }
        let config = fs::read_to_string(nano.join("config.json")).unwrap();
        let key = "\"max_position_embeddings\": ";
        let longer = config.replacen(&format!("{key}2048"), &format!("{key}{CONTEXT}"), 1);
        assert_ne!(longer, config);
        fs::write(dir.join("config.json"), longer).unwrap();
    }

    /// Makes what a command reads.
    fn provide_all(&self, args: &[String]) {
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if OUTPUTS.contains(&word.as_str()) {
                words.next();
                continue;
            }
            // NAME=DIR[:SCALE] of an adapter.
            let name = word.split_once('=').map_or(word.as_str(), |(_, path)| path);
            self.provide(name.split(':').next().unwrap());
        }
    }

    /// Runs a command, for which everything is there that it reads. One that stands elsewhere too is run
    /// once: what it would have written is provided to those that read it.
    #[track_caller]
    fn works(&self, call: &str, whose: &str) {
        static WHERE: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
        let place = WHERE.lock().unwrap().entry(call.to_owned()).or_insert_with(|| whose.to_owned()).clone();
        if place != whose {
            return;
        }
        // The rest of the line is for the shell.
        let words = super::commands::words(call).into_iter();
        let mut args: Vec<String> = words.take_while(|word| !matches!(word.as_str(), ">" | "|")).collect();
        self.provide_all(&args);
        // Each measurement is made once.
        if let Some(at) = args.iter().position(|arg| arg == "--repeat") {
            args[at + 1] = "1".to_owned();
        }
        if args[0] == "pull" {
            return self.pulls(&args, &format!("{whose}: kernmill {call}"));
        }
        if args[0] == "serve" {
            return self.serves(&args, &format!("{whose}: kernmill {call}"));
        }
        let output = self.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let errors = String::from_utf8_lossy(&output.stderr);
        if args.iter().take(2).eq(["eval", "code"]) && errors.contains(" bwrap ") {
            println!("NOT RUN: kernmill {call}: {errors}");
            return assert_eq!(output.status.code(), Some(2), "{whose}: kernmill {call}\n{errors}");
        }
        assert_eq!(output.status.code(), Some(0), "{whose}: kernmill {call}\n{errors}");
    }

    /// Fetches the stand-in from a hub on the loopback.
    #[track_caller]
    fn pulls(&self, args: &[String], whose: &str) {
        self.provide("DIR");
        self.provide("model-Q4_0.gguf");
        let named =
            ["config.json", "tokenizer.json", "model.safetensors"].map(|name| (name, format!("DIR/{name}")));
        let named = named.into_iter().chain([("model-Q4_0.gguf", "model-Q4_0.gguf".to_owned())]);
        let files =
            named.map(|(name, path)| (name.to_owned(), fs::read(self.path(&path)).unwrap())).collect();
        let hub = crate::pull::hub::Hub::start(&files, |_, _| None);
        let mut program = program();
        program.args(args).env("HF_ENDPOINT", format!("http://{}", hub.address)).env("NO_PROXY", "*");
        program.env("HF_HUB_CACHE", self.path("hub")).env_remove("HF_HUB_OFFLINE");
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{whose}\n{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a server at a free port until it answers, and ends it.
    #[track_caller]
    fn serves(&self, args: &[String], whose: &str) {
        let mut program = program();
        program
            .args(args)
            .args(["--port", "0"])
            .envs(QUICK)
            .current_dir(self.0.path())
            .stderr(Stdio::piped());
        let mut server = program.spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        let address = lines.by_ref().map(Result::unwrap).find_map(|line| {
            let address =
                line.split_once("http://").map(|(_, rest)| rest.split(' ').next().unwrap().to_owned());
            seen.push(line);
            address
        });
        let address = address.unwrap_or_else(|| panic!("{whose}\n{}", seen.join("\n")));
        let port = address.rsplit(':').next().unwrap();
        let health = crate::serve::get(format!("127.0.0.1:{port}").parse().unwrap(), "/health");
        assert_eq!(health.status, 200, "{whose}");
        // SAFETY: the process is a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(server.id() as libc::pid_t, libc::SIGTERM) }, 0);
        assert_eq!(server.wait().unwrap().code(), Some(0), "{whose}");
    }
}

#[test]
fn commands_in_documents_do_what_they_say() {
    let mut count = 0;
    let mut documents = super::files(&root().join("docs"), &["md"]);
    documents.push(root().join("README.md"));
    for document in documents {
        let place = CommandDir::new();
        let text = fs::read_to_string(&document).unwrap();
        for line in text.split("```sh").skip(1).flat_map(|block| block.split("```").next().unwrap().lines()) {
            let Some(call) = call(line) else { continue };
            place.works(call, &document.display().to_string());
            count += 1;
        }
    }
    assert!(count > 40, "found only {count} commands");
}

#[test]
fn examples_in_help_texts_do_what_they_say() {
    let mut count = 0;
    for (command, examples) in super::commands::examples() {
        let place = CommandDir::new();
        if command.first().is_some_and(|first| first == "fuse") {
            // Here it is a fused-op spec of one's own.
            fs::copy(root().join(FUSION), place.path("my.toml")).unwrap();
        }
        for example in &examples {
            place.works(example, &command.join(" "));
            count += 1;
        }
    }
    assert!(count > 50, "found only {count} examples");
}
