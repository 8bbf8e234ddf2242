//! Small inputs that ask for much: every list element of every format a thousand times, every text a thousand
//! times as long.
//!
//! What a reader takes is held to what it is given: memory of 64 times the input and 16 MiB, time in
//! proportion. Refusing is fine.

use super::grow::{Node, TIMES, grown_text, long, times, tried};
use super::targets::{Part, adapter, assemble, sign_plan, sound_parts};
use super::{corpus, memory, watch};
use crate::harness::shell;
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::front::import::{from_config, from_gguf};
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::ir::expr;
use kernmill_compiler::machine::Description;
use kernmill_compiler::passes::fuse::FusedSpec;
use kernmill_plan::file::check::PlanFile;
use kernmill_plan::file::{FusedSpecText, Metadata, SectionKind, TargetInfo, TargetProgram, TensorInfo};
use kernmill_runtime::Tokenizer;
use serde::Serialize;
use std::backtrace::Backtrace;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Once;

/// Heap bytes that an input may take: for each of its bytes, and besides.
const BYTES_EACH: u64 = 64;
const BYTES: u64 = 16 << 20;
/// Processor time that an input may take, in seconds: for each of its bytes, and besides.
const SECONDS_EACH: f64 = 2e-6;
const SECONDS: f64 = 1.0;

/// Gives an input to a reader and holds what it takes to what it was given. The input is on disk while it
/// runs.
fn hold(name: &str, input: &[u8], read: &dyn Fn(&[u8])) {
    // The tokenizer library may panic, which its caller contains. The first message with a backtrace reads
    // the test binary's symbols, which are larger than any input.
    static SYMBOLS: Once = Once::new();
    SYMBOLS.call_once(|| drop(Backtrace::force_capture().to_string()));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("amplify-{name}"));
    fs::write(&path, input).expect("writable");
    let _watched = watch::input(&path);
    let start = watch::thread_seconds();
    let mut outcome = Ok(());
    let bytes = memory::peak_of(|| outcome = catch_unwind(AssertUnwindSafe(|| read(input))));
    let seconds = watch::thread_seconds() - start;
    if let Err(panic) = outcome {
        eprintln!("{name} panics on {}", path.display());
        resume_unwind(panic);
    }
    let (of, at) = (input.len(), path.display());
    assert!(
        bytes <= BYTES + BYTES_EACH * of as u64,
        "{name} took {bytes} bytes of memory for the {of} of {at}"
    );
    assert!(
        seconds <= SECONDS + SECONDS_EACH * of as f64,
        "{name} took {seconds} s for the {of} bytes of {at}"
    );
}

/// The sound inputs of a target's corpus.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let seeds = corpus(target);
    assert!(!seeds.is_empty());
    seeds
}

fn grow_json(name: &str, text: &[u8], read: &dyn Fn(&[u8])) {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(text) else { return };
    Node::from(&value).grown(true, &mut |grown| {
        let mut json = String::new();
        grown.json(&mut json);
        hold(name, json.as_bytes(), read);
    });
}

fn grow_toml(name: &str, text: &[u8], read: &dyn Fn(&[u8])) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(value) = toml::from_str::<toml::Value>(text) else { return };
    Node::from(&value).grown(false, &mut |grown| hold(name, grown.toml().as_bytes(), read));
}

fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a text")
}

#[test]
fn model_specs() {
    let read = |bytes: &[u8]| drop(Spec::parse("grown.toml", text_of(bytes)).and_then(|spec| lower(&spec)));
    seeds("spec").iter().for_each(|seed| grow_toml("spec", seed, &read));
}

#[test]
fn fused_op_specs() {
    let read = |bytes: &[u8]| drop(FusedSpec::parse("grown.toml", text_of(bytes)));
    seeds("fused").iter().for_each(|seed| grow_toml("fused", seed, &read));
}

#[test]
fn configs_of_models() {
    let read = |bytes: &[u8]| drop(from_config("grown", text_of(bytes)));
    seeds("config").iter().for_each(|seed| grow_json("config", seed, &read));
}

#[test]
fn descriptions_of_machines() {
    let read = |bytes: &[u8]| drop(Description::parse(text_of(bytes)));
    seeds("machine").iter().for_each(|seed| grow_json("machine", seed, &read));
}

#[test]
fn tokenizers() {
    let read = |bytes: &[u8]| drop(Tokenizer::from_json(bytes, 512));
    seeds("tokenizer").iter().for_each(|seed| grow_json("tokenizer", seed, &read));
}

#[test]
fn configs_and_headers_of_adapters() {
    for seed in seeds("adapter") {
        let end = seed.iter().position(|byte| *byte == 0).expect("a zero byte ends the config");
        let (config, tensors) = (&seed[..end], &seed[end + 1..]);
        grow_json("adapter config", config, &|config| adapter(&[config, &[0], tensors].concat()));
        grow_header("adapter header", tensors, &|tensors| adapter(&[config, &[0], tensors].concat()));
    }
}

/// The header of a safetensors file; the data stays as it is.
fn grow_header(name: &str, file: &[u8], read: &dyn Fn(&[u8])) {
    let Some((length, rest)) = file.split_first_chunk::<8>() else { return };
    let Some((json, data)) = rest.split_at_checked(u64::from_le_bytes(*length) as usize) else { return };
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(json) else { return };
    Node::from(&value).grown(true, &mut |grown| {
        let mut json = String::new();
        grown.json(&mut json);
        let file = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes(), data].concat();
        hold(name, &file, read);
    });
}

#[test]
fn headers_of_safetensors_files() {
    let read = |bytes: &[u8]| drop(Checkpoint::from_bytes("grown.safetensors", bytes.to_vec()));
    for seed in seeds("safetensors") {
        grow_header("safetensors", &seed, &read);
    }
    // Tensors without elements take no data, so that any number of them is a file.
    for name in ["", "a tensor's name"] {
        let entry = |n: usize| format!(r#""{name}{n}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#);
        let json = format!("{{{}}}", (0..100 * TIMES).map(entry).collect::<Vec<_>>().join(","));
        hold("safetensors", &[&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat(), &read);
    }
}

/// The index and what else a checkpoint's directory has, read from there.
#[test]
fn files_of_a_checkpoint_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let index = r#"{"metadata":{"total_size":4},"weight_map":{
        "a.weight":"model-00001-of-00002.safetensors",
        "b.weight":"model-00002-of-00002.safetensors"}}"#;
    let read = |bytes: &[u8]| {
        fs::write(dir.path().join("model.safetensors.index.json"), bytes).expect("writable");
        drop(Checkpoint::open(dir.path()));
    };
    grow_json("index", index.as_bytes(), &read);
    let read = |bytes: &[u8]| drop(kernmill_checkpoint::end_tokens::in_config(text_of(bytes)));
    let generation =
        br#"{"eos_token_id":[1,2],"do_sample":true,"temperature":0.6,"transformers_version":"4.55"}"#;
    grow_json("generation config", generation, &read);
}

#[test]
fn texts_of_graphs_and_expressions() {
    let read = |bytes: &[u8]| drop(text_of(bytes).parse::<Graph>());
    for seed in seeds("graph") {
        grown_text(text_of(&seed), &mut |text| hold("graph", text.as_bytes(), &read));
    }
    let read = |bytes: &[u8]| drop(expr::parse(text_of(bytes), &["gate", "up", "x0"]));
    for seed in seeds("expr") {
        let Ok(text) = std::str::from_utf8(&seed) else { continue };
        grown_text(text, &mut |text| hold("expr", text.as_bytes(), &read));
    }
    for part in ["(", "-", "exp(", "x0 +", "x0 ? ", "1e", "x0 < "] {
        hold("expr", format!("{} x0", part.repeat(100 * TIMES)).as_bytes(), &read);
    }
}

/// The parts of a GGUF file before its data.
#[derive(Clone)]
struct Parts {
    keys: Vec<(String, u32, Payload)>,
    tensors: Vec<(String, Vec<u8>)>,
    /// Behind the list of tensors.
    rest: Vec<u8>,
}

#[derive(Clone)]
enum Payload {
    Fixed(Vec<u8>),
    Text(String),
    List(u32, Vec<Payload>),
}

/// Reads a sound file of version 3 and little else.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken.to_vec())
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        let mut all = [0; 8];
        all[..bytes].copy_from_slice(&self.take(bytes)?);
        Some(u64::from_le_bytes(all) as usize)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number(8)?;
        String::from_utf8(self.take(length)?).ok()
    }

    fn payload(&mut self, kind: u32) -> Option<Payload> {
        Some(match kind {
            0 | 1 | 7 => Payload::Fixed(self.take(1)?),
            2 | 3 => Payload::Fixed(self.take(2)?),
            4..=6 => Payload::Fixed(self.take(4)?),
            8 => Payload::Text(self.text()?),
            9 => {
                let (kind, count) = (self.number(4)? as u32, self.number(8)?);
                Payload::List(kind, (0..count).map(|_| self.payload(kind)).collect::<Option<_>>()?)
            }
            10..=12 => Payload::Fixed(self.take(8)?),
            _ => return None,
        })
    }
}

impl Parts {
    fn read(file: &[u8]) -> Option<Parts> {
        let mut from = Cursor(file.strip_prefix(b"GGUF\x03\0\0\0")?);
        let (tensors, keys) = (from.number(8)?, from.number(8)?);
        let mut key = || {
            let (name, kind) = (from.text()?, from.number(4)? as u32);
            Some((name, kind, from.payload(kind)?))
        };
        let keys = (0..keys).map(|_| key()).collect::<Option<_>>()?;
        let mut tensor = || {
            let (name, dims) = (from.text()?, from.number(4)?);
            let rest = from.take(dims * 8 + 12)?;
            Some((name, [&(dims as u32).to_le_bytes()[..], &rest].concat()))
        };
        let tensors = (0..tensors).map(|_| tensor()).collect::<Option<_>>()?;
        Some(Parts { keys, tensors, rest: from.0.to_vec() })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.keys.len() as u64).to_le_bytes());
        for (name, kind, payload) in &self.keys {
            put_text(&mut file, name);
            file.extend(kind.to_le_bytes());
            payload.put(&mut file);
        }
        for (name, info) in &self.tensors {
            put_text(&mut file, name);
            file.extend(info);
        }
        file.extend(&self.rest);
        file
    }
}

impl Payload {
    fn put(&self, file: &mut Vec<u8>) {
        match self {
            Payload::Fixed(bytes) => file.extend(bytes),
            Payload::Text(text) => put_text(file, text),
            Payload::List(kind, list) => {
                file.extend(kind.to_le_bytes());
                file.extend((list.len() as u64).to_le_bytes());
                list.iter().for_each(|element| element.put(file));
            }
        }
    }

    fn grown(&self, out: &mut dyn FnMut(Payload)) {
        match self {
            Payload::Fixed(_) => {}
            Payload::Text(text) => out(Payload::Text(long(text))),
            Payload::List(kind, list) => {
                for at in tried(list.len()) {
                    let mut more = list.clone();
                    more.extend(std::iter::repeat_n(list[at].clone(), 100 * TIMES));
                    out(Payload::List(*kind, more));
                    list[at].grown(&mut |element| {
                        let mut list = list.clone();
                        list[at] = element;
                        out(Payload::List(*kind, list));
                    });
                }
            }
        }
    }
}

fn put_text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

#[test]
fn metadata_of_gguf_files() {
    let read = |bytes: &[u8]| {
        let Ok(gguf) = Gguf::from_bytes("grown.gguf", bytes.to_vec()) else { return };
        let _ = (gguf.architecture(), gguf.chat_templates(), from_gguf("grown", &gguf));
        if let Ok(Some(json)) = gguf.tokenizer_json() {
            let _ = Tokenizer::from_json(&json, 512);
        }
        let _ = gguf.into_checkpoint();
    };
    let mut files = 0;
    for parts in seeds("gguf").iter().filter_map(|seed| Parts::read(seed)) {
        files += 1;
        for at in tried(parts.keys.len()) {
            let (name, kind, payload) = &parts.keys[at];
            let mut more = parts.clone();
            more.keys.extend((0..TIMES).map(|n| (format!("{name}{n}"), *kind, payload.clone())));
            hold("gguf", &more.bytes(), &read);
            let mut more = parts.clone();
            more.keys[at].0 = long(name);
            hold("gguf", &more.bytes(), &read);
            payload.grown(&mut |payload| {
                let mut more = parts.clone();
                more.keys[at].2 = payload;
                hold("gguf", &more.bytes(), &read);
            });
        }
        for at in tried(parts.tensors.len()) {
            let (name, info) = &parts.tensors[at];
            let mut more = parts.clone();
            more.tensors.extend((0..TIMES).map(|n| (format!("{name}{n}"), info.clone())));
            hold("gguf", &more.bytes(), &read);
            let mut more = parts.clone();
            more.tensors[at].0 = long(name);
            hold("gguf", &more.bytes(), &read);
        }
    }
    assert!(files > 3, "the corpus has sound files");
}

/// A plan with another value in one of its sections.
fn plan_with(kind: SectionKind, value: &impl Serialize) -> Vec<u8> {
    let mut parts: Vec<Part> = sound_parts();
    let part = parts.iter_mut().find(|part| part.kind == kind as u32).expect("it has one");
    part.bytes = postcard::to_allocvec(value).expect("data");
    let mut file = assemble(&parts);
    sign_plan(&mut file);
    file
}

fn read_plan(bytes: &[u8]) {
    if let Ok(plan) = PlanFile::open(bytes) {
        (0..plan.metadata().targets.len()).for_each(|target| drop(plan.program(target)));
        let _ = (plan.spec(), plan.tokenizer_json(), plan.chat_templates());
    }
}

fn sound_section<T: serde::de::DeserializeOwned>(kind: SectionKind) -> T {
    let parts = sound_parts();
    let part = parts.iter().find(|part| part.kind == kind as u32).expect("it has one");
    postcard::from_bytes(&part.bytes).expect("sound")
}

fn more<T: Clone>(list: &mut Vec<T>, element: T) {
    list.extend(std::iter::repeat_n(element, 100 * TIMES));
}

#[test]
fn metadata_of_plans() {
    let tensor = TensorInfo {
        name: String::new(),
        format: String::new(),
        shape: Vec::new(),
        offset: 0,
        bytes: 0,
        int4_error: None,
    };
    let target = TargetInfo { level: String::new(), features: Vec::new(), abi: 0 };
    let empty = FusedSpecText { name: String::new(), text: String::new() };
    let changes: [&dyn Fn(&mut Metadata); 12] = [
        &|m| more(&mut m.tensors, tensor.clone()),
        &|m| more(&mut m.targets, target.clone()),
        &|m| more(&mut m.targets[0].features, String::new()),
        &|m| more(&mut m.targets[0].features, "avx2".to_owned()),
        &|m| more(&mut m.tensors[0].shape, 0),
        &|m| more(&mut m.fused_specs, empty.clone()),
        &|m| more(&mut m.end_tokens, 0),
        &|m| more(&mut m.model.ropes.first_mut().expect("it has one").inv_freq, 0.5),
        &|m| {
            let layer = m.model.kv.layers[0];
            more(&mut m.model.kv.layers, layer);
        },
        &|m| m.producer = long(&m.producer),
        &|m| m.targets[0].features[0] = long("avx2"),
        &|m| m.tensors.iter_mut().for_each(|tensor| tensor.name = long(&tensor.name)),
    ];
    for change in changes {
        let mut metadata: Metadata = sound_section(SectionKind::Metadata);
        change(&mut metadata);
        hold("plan metadata", &plan_with(SectionKind::Metadata, &metadata), &read_plan);
    }
    // As much as a section may have, and more, of elements that take no byte but their length's.
    for count in [1 << 20, 15 << 20, 40 << 20] {
        let mut metadata: Metadata = sound_section(SectionKind::Metadata);
        metadata.targets[0].features = vec![String::new(); count];
        let file = plan_with(SectionKind::Metadata, &metadata);
        drop(metadata);
        hold("plan metadata", &file, &read_plan);
    }
}

#[test]
fn programs_of_plans() {
    let sound: TargetProgram = sound_section(SectionKind::Program);
    let changes: [&dyn Fn(&mut TargetProgram); 9] = [
        &|p| {
            let symbol = p.symbols[0].clone();
            more(&mut p.symbols, symbol);
        },
        &|p| {
            let class = p.classes[0].clone();
            p.classes.extend(std::iter::repeat_n(class, TIMES));
        },
        &|p| {
            let step = p.classes[0].steps[0].clone();
            p.classes[0].steps.extend(std::iter::repeat_n(step, 10 * TIMES));
        },
        &|p| more(&mut p.classes[0].steps[0].reads, 0),
        &|p| more(&mut p.classes[0].steps[0].lora_targets, 0),
        &|p| p.classes[0].steps[0].label = long("label"),
        &|p| {
            let buffer = p.classes[0].buffers[0].clone();
            more(&mut p.classes[0].buffers, buffer);
        },
        &|p| {
            let routings = p.classes[0].routings.clone();
            routings.into_iter().for_each(|routing| more(&mut p.classes[0].routings, routing));
        },
        &|p| {
            let operand = p.classes[0].steps[0].operands[0];
            more(&mut p.classes[0].steps[0].operands, operand);
        },
    ];
    for change in changes {
        let mut program = sound.clone();
        change(&mut program);
        hold("plan program", &plan_with(SectionKind::Program, &program), &read_plan);
    }
}

/// The list of a request's token ids is read by the program, whose address space is bounded here.
#[test]
fn lists_of_token_ids() {
    let dir = tempfile::tempdir().expect("a directory");
    let ids = |name: &str, text: String| fs::write(dir.path().join(name), text).expect("writable");
    ids("few.json", "[1, 2]".to_owned());
    ids("many.json", format!("[{}1]", "1,".repeat(3_000_000)));
    ids("long.json", format!("[{}]", "1".repeat(3_000_000)));
    ids("deep.json", "[".repeat(3_000_000));
    ids("huge.json", format!("[{}1]", "1,".repeat(10_000_000)));
    // Kilobytes that the program takes for two ids, and 64 times the largest file besides would be 400 MB
    // more.
    for (name, status) in [("few", 0), ("many", 2), ("long", 2), ("deep", 2), ("huge", 2)] {
        let script =
            r#"ulimit -v 400000; ulimit -t 20; exec "$0" logits --tokens "$1" --out "$2" --threads 1 -q"#;
        let mut command = shell(script);
        let ran =
            command.arg(dir.path().join(format!("{name}.json"))).arg(dir.path().join("out.safetensors"));
        let output = ran.output().expect("it can be started");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{name}: {message}");
        assert!(message.len() < 2000, "{name}: {} bytes of message", message.len());
    }
    assert!(times(1) == TIMES);
}
