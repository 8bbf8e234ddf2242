//! What is fuzzed: one function per reader of bytes from outside. A function may neither panic nor hang nor take memory
//! out of proportion, whatever the bytes; refusing them is fine.
//!
//! The fuzzing package (`fuzz/`) includes this file too: it uses nothing of its neighbours.

use kernmill_compiler::checkpoint::Checkpoint;
use kernmill_compiler::choose::Choices;
use kernmill_compiler::fuse::FusedSet;
use kernmill_compiler::graph::Graph;
use kernmill_compiler::import::from_config;
use kernmill_compiler::interp::RawTensor;
use kernmill_compiler::pack::MemorySource;
use kernmill_compiler::pipeline::{CompileError, Options, compile as compile_graph};
use kernmill_compiler::plan_file::{PlanParts, PlanWriter};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::spec::{Spec, SpecError, lower};
use kernmill_compiler::testing::{ModelShape, build, random_weights};
use kernmill_kernels::expr::Expr;
use kernmill_plan::adapter::MAX_RANK;
use kernmill_plan::check::check_program;
use kernmill_plan::file::check::{PlanFile, Section};
use kernmill_plan::program::Program;
use kernmill_plan::region::WeightRegion;
use kernmill_plan::target::Level;
use kernmill_runtime::adapter::{AdapterLoader, Loading};
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::tokenizer::TextStream;
use kernmill_runtime::{MemoryNeed, Tokenizer};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::from_utf8;
use std::sync::{Arc, OnceLock};

/// A reader under test.
pub struct Target {
    /// Its name: the corpus is in `fuzz/corpus/NAME`.
    pub name: &'static str,
    /// Gives it bytes.
    pub run: fn(&[u8]),
    /// Mutations that the test suite tries.
    pub mutations: usize,
}

/// Every target.
pub const TARGETS: [Target; 10] = [
    Target { name: "spec", run: spec, mutations: 1500 },
    Target { name: "config", run: config, mutations: 2000 },
    Target { name: "safetensors", run: safetensors, mutations: 4000 },
    Target { name: "graph", run: graph, mutations: 1000 },
    Target { name: "expr", run: expr, mutations: 4000 },
    Target { name: "program", run: program, mutations: 2500 },
    Target { name: "tokenizer", run: tokenizer, mutations: 1000 },
    Target { name: "compile", run: compile, mutations: 150 },
    Target { name: "plan", run: plan, mutations: 500 },
    Target { name: "adapter", run: adapter, mutations: 4000 },
];

/// A spec: read, lowered, or refused with a message that can be shown.
pub fn spec(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    match Spec::parse("fuzz.toml", text).and_then(|spec| lower(&spec)) {
        Ok(graph) => assert_legal(&graph),
        Err(error) => show(&error),
    }
}

/// What a spec becomes is legal, and its text is read back to it.
fn assert_legal(graph: &Graph) {
    graph.verify().unwrap_or_else(|error| panic!("lowered to an illegal graph: {error}"));
    assert_round_trip(graph);
}

fn assert_round_trip(graph: &Graph) {
    let text = graph.to_string();
    let again: Graph = text.parse().unwrap_or_else(|error| panic!("{error} in:\n{text}"));
    assert!(&again == graph, "another graph comes back from:\n{text}");
}

/// Renders an error as the command line does.
fn show(error: &SpecError) {
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
    handler.render_report(&mut String::new(), error).expect("the error can be shown");
    assert!(!format!("{error:?}").is_empty());
}

/// A `config.json`.
pub fn config(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    match from_config("fuzz", text) {
        Ok(written) => spec(written.as_bytes()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A safetensors file.
pub fn safetensors(data: &[u8]) {
    let Ok(checkpoint) = Checkpoint::from_bytes("fuzz.safetensors", data.to_vec()) else { return };
    let bytes: usize = checkpoint.tensors().map(|tensor| tensor.data.len()).sum();
    assert_eq!(bytes as u64, checkpoint.bytes());
    for tensor in checkpoint.tensors() {
        assert_eq!(&data[tensor.offset..][..tensor.data.len()], tensor.data);
    }
}

/// Graph text.
pub fn graph(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    match text.parse::<Graph>() {
        Ok(graph) => assert_round_trip(&graph),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// An elementwise expression.
pub fn expr(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let vars = ["gate", "up", "x0"];
    match Expr::parse(text, &vars) {
        Ok(expr) => {
            let again = Expr::parse(&expr.text(&vars), &vars);
            // What is near the limit of nesting can pass it in the text, which writes every parenthesis.
            if let Ok(again) = again {
                assert!(expr == again, "{} is another expression", expr.text(&vars));
            }
        }
        Err(error) => assert!(error.offset <= text.len(), "{error} in {} bytes", text.len()),
    }
}

/// A spec of a small model, compiled.
pub fn compile(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let Ok(graph) = Spec::parse("fuzz.toml", text).and_then(|spec| lower(&spec)) else { return };
    let elements = |shape: &[usize]| shape.iter().product::<usize>();
    let largest = graph.tensors.iter().map(|tensor| elements(&tensor.shape)).max().unwrap_or(0);
    if graph.nodes.len() > 48 || largest > 1 << 20 {
        return;
    }
    for (preset, fuse) in
        [(Preset::Exact, false), (Preset::Faithful, true), (Preset::Bf16, true), (Preset::Fast, true)]
    {
        let choices = Some(Choices::assumed(&graph));
        let options = Options { preset, choices, fuse, chunk: 16, ..Options::new(Level::V3) };
        match compile_graph(&graph, &options) {
            Ok(compiled) => assert!(check_program(&compiled.program).is_ok()),
            Err(CompileError::Graph(error)) => panic!("lowered to an illegal graph: {error}"),
            Err(CompileError::MemoryCheck(error)) => panic!("{error}"),
            Err(CompileError::Program(error)) => panic!("{error}"),
            // The model has something that is not supported.
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// A compiled program, damaged: the data is a list of edits of 8 bytes each, see [`edit`].
pub fn program(data: &[u8]) {
    let (sound, json) = sound_program();
    let mut json = json.clone();
    for instruction in data.chunks_exact(8).take(32) {
        let at = u16::from_le_bytes([instruction[0], instruction[1]]);
        let value = u32::from_le_bytes([instruction[4], instruction[5], instruction[6], instruction[7]]);
        edit(&mut json, at.into(), instruction[2], value);
    }
    let Ok(mut program) = serde_json::from_value::<Program>(json) else { return };
    program.code.bytes.clone_from(&sound.code.bytes);
    check(&program);
}

/// What the runtime does with a program: checks it, and goes on only if it is sound.
pub fn check(program: &Program) {
    if check_program(program).is_ok() {
        assert_runtime_agrees(program);
    }
}

/// What the runtime works out from a program that has passed, before it takes any memory.
fn assert_runtime_agrees(program: &Program) {
    for (context, chunk) in [(1, 1), (4096, 16), (1 << 24, 4096)] {
        let shape = KvShape { context, sequences: 3, chunk };
        let need = MemoryNeed::of(program, shape, 7);
        assert!(need.total() >= program.arena_bytes && need.total() >= program.scratch_bytes);
    }
    for class in &program.classes {
        for buffer in &class.buffers {
            assert!(buffer.offset + buffer.bytes <= program.arena_bytes);
        }
        for routing in &class.routings {
            let routes = u64::from(class.max_tokens) * u64::from(routing.top_k);
            assert!(class.buffers[routing.buffer as usize].bytes / 8 >= routes);
        }
    }
}

/// A compiled model; as JSON, without the machine code, which would be most of it.
pub fn sound_program() -> &'static (Program, Value) {
    static SOUND: OnceLock<(Program, Value)> = OnceLock::new();
    SOUND.get_or_init(|| {
        let graph = build(&ModelShape::mini_gpt_oss()).expect("a legal model");
        let options = Options { chunk: 16, ..Options::new(Level::V3) };
        let program = compile_graph(&graph, &options).expect("a supported model").program;
        check_program(&program).expect("a sound program");
        let mut bare = program.clone();
        bare.code.bytes.clear();
        (program, serde_json::to_value(bare).expect("a program is data"))
    })
}

/// Changes value number `at` (depth first, modulo their number): `how` says in what way.
fn edit(json: &mut Value, at: usize, how: u8, value: u32) {
    let count = count(json);
    let Some(place) = find(json, &mut (at % count)) else { return };
    let number = number(how, value, place.as_u64().unwrap_or(0));
    match place {
        Value::Array(items) if !items.is_empty() => {
            let index = value as usize % items.len();
            match how % 4 {
                0 => drop(items.remove(index)),
                1 => items.insert(index, items[index].clone()),
                2 => items.swap(0, index),
                _ => items.truncate(index),
            }
        }
        Value::Number(_) => *place = number.into(),
        Value::Null => *place = (number % 1024).into(),
        Value::Bool(flag) => *flag = !*flag,
        Value::String(text) => match text.as_str() {
            "full" => *text = "sliding".into(),
            "sliding" => *text = "full".into(),
            _ => text.push('~'),
        },
        Value::Array(_) | Value::Object(_) => {}
    }
}

/// A number that is likely to be trouble where `old` was right.
fn number(how: u8, value: u32, old: u64) -> u64 {
    match how % 12 {
        0 => 0,
        1 => old.wrapping_add(1),
        2 => old.wrapping_sub(1),
        3 => old.wrapping_add(64),
        4 => old.wrapping_sub(64),
        5 => u64::MAX,
        6 => u64::MAX - 63,
        7 => u32::MAX.into(),
        8 => 1 << (value % 64),
        9 => old.wrapping_mul(2),
        10 => u64::from(value) << 32,
        _ => value.into(),
    }
}

fn children(json: &mut Value) -> Vec<&mut Value> {
    match json {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    }
}

fn count(json: &mut Value) -> usize {
    1 + children(json).into_iter().map(count).sum::<usize>()
}

fn find<'a>(json: &'a mut Value, skip: &mut usize) -> Option<&'a mut Value> {
    if *skip == 0 {
        return Some(json);
    }
    *skip -= 1;
    children(json).into_iter().find_map(|child| find(child, skip))
}

/// A `tokenizer.json`, which then takes some text.
pub fn tokenizer(data: &[u8]) {
    let Ok(tokenizer) = Tokenizer::from_json(data, 512) else { return };
    assert!(tokenizer.end_tokens().iter().all(|id| *id < tokenizer.vocab()));
    for text in ["", "a b", "Hello, world! 12345", "Grüße\t世界 😀\u{301}</s>", "<|endoftext|>\u{0}\n\n"]
    {
        let Ok(ids) = tokenizer.encode(text, true) else { continue };
        assert!(ids.iter().all(|id| *id < tokenizer.vocab()), "{ids:?}");
        let _ = tokenizer.decode(&ids);
    }
    let mut stream = TextStream::new();
    for id in (0..tokenizer.vocab()).step_by(7) {
        let _ = stream.push(&tokenizer, id);
    }
    let _ = stream.finish(&tokenizer);
}

/// An adapter: its config, a zero byte, and its tensors.
pub fn adapter(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    let Ok(config) = from_utf8(&data[..end]) else { return };
    let tensors = data[end + 1..].to_vec();
    let loaded = adapter_loader().open_bytes(Path::new("fuzz"), config, tensors, 1.0);
    match loaded.and_then(Loading::run) {
        Ok(adapter) => assert!((1..=MAX_RANK).contains(&adapter.packed().rank())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A loader for a small model with experts.
fn adapter_loader() -> &'static AdapterLoader {
    static LOADER: OnceLock<AdapterLoader> = OnceLock::new();
    LOADER.get_or_init(|| {
        let config = include_str!("../fixtures/oracle/gptoss-base/config.json");
        let spec = from_config("small", config).expect("a config");
        let graph = Spec::parse("small.toml", &spec).and_then(|spec| lower(&spec)).expect("a spec");
        let options = Options { preset: Preset::Exact, adapters: true, chunk: 16, ..Options::new(Level::V3) };
        let program = compile_graph(&graph, &options).expect("a supported model").program;
        let weights = WeightRegion::anonymous(program.weight_bytes as usize).expect("memory");
        let adapters = Arc::new(program.model.adapters.expect("sites"));
        AdapterLoader::new(adapters, weights.freeze().expect("memory"), "small".into())
    })
}

/// A plan file. The first byte says what the others are: a file; edits of 8 bytes each (see [`edit_plan`]) of a sound one; or such edits,
/// after which all hashes are made to fit.
pub fn plan(data: &[u8]) {
    let Some((how, data)) = data.split_first() else { return };
    match how % 3 {
        0 => load(data),
        1 => load(&edited_plan(data)),
        _ => {
            let mut file = edited_plan(data);
            sign_plan(&mut file);
            load(&file);
        }
    }
}

/// Everything that is read from a plan file.
pub fn load(file: &[u8]) {
    let plan = match PlanFile::open(file) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let weights = plan.weights();
    assert_eq!(weights.end(), file.len() as u64);
    assert!(plan.sections().iter().all(|section| section.end() <= file.len() as u64));
    for target in 0..plan.metadata().targets.len() {
        match plan.program(target) {
            Ok((program, hash)) => {
                assert_eq!(*blake3::hash(&program.code.bytes).as_bytes(), hash);
                assert_runtime_agrees(&program);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let _ = (plan.spec(), plan.tokenizer_json(), plan.chat_template(), plan.verify(1, &|_| {}));
}

/// Bytes of a sound plan.
pub fn sound_plan() -> &'static [u8] {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let shape = ModelShape { layers: 1, vocab: 40, ..ModelShape::mini_gpt_oss() };
        let graph = build(&shape).expect("a legal model");
        let options = Options { chunk: 16, ..Options::new(Level::V3) };
        let compiled = [compile_graph(&graph, &options).expect("a supported model")];
        let parts = PlanParts {
            compiled: &compiled,
            choices: None,
            chunk: options.chunk,
            fused: true,
            fused_specs: &FusedSet::builtin(),
            spec: "# none",
            tokenizer_json: Some(b"{}"),
            end_tokens: &[3],
            chat_template: Some("{{ messages }}"),
        };
        let writer = PlanWriter::new(&parts).expect("a plan");
        let source = weights_of(&graph);
        let path = std::env::temp_dir().join(format!("kernmill-sound-plan-{}", std::process::id()));
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&path);
        let file = file.expect("a temporary file");
        std::fs::remove_file(&path).expect("it is there");
        writer.write(&file, &source, 1, &|_| {}).expect("it can be written");
        let mut bytes = vec![0; writer.bytes() as usize];
        file.read_exact_at(&mut bytes, 0).expect("it can be read");
        bytes
    })
}

/// Random weights for a graph.
pub fn weights_of(graph: &Graph) -> MemorySource {
    let mut source = MemorySource::default();
    for (tensor, raw) in graph.tensors.iter().zip(random_weights(graph, 1).raw) {
        let name = tensor.name.clone();
        match raw {
            RawTensor::Mxfp4 { blocks, scales } => drop(source.mxfp4.insert(name, (blocks, scales))),
            other => drop(source.f32.insert(name, other.to_f32())),
        }
    }
    source
}

/// The sound plan with edits: place (4 bytes), how, unused, value (2 bytes).
fn edited_plan(edits: &[u8]) -> Vec<u8> {
    let mut file = sound_plan().to_vec();
    for edit in edits.chunks_exact(8).take(32) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
        edit_plan(&mut file, at, edit[4], [edit[6], edit[7]]);
    }
    file
}

/// Changes bytes before the weights, or the file's length.
fn edit_plan(file: &mut Vec<u8>, at: usize, how: u8, value: [u8; 2]) {
    // The weights of the sound plan start at 2 MiB; most of what is before them is padding.
    let hashes =
        PlanFile::open(sound_plan()).expect("sound").sections().iter().rev().nth(1).map(Section::end);
    let front = (hashes.unwrap_or(4096) as usize).min(file.len());
    if front == 0 {
        return;
    }
    let at = match how >> 4 {
        // The header's fields and its table.
        0..=7 => at % front.min(1024),
        8..=13 => at % front,
        _ => at % file.len(),
    };
    match how % 8 {
        0 => file[at] ^= 1 << (value[0] % 8),
        1 => file[at] = value[0],
        2 => file[at] = file[at].wrapping_add(1),
        3 => file[at] = 0xff,
        4 => file[at] = 0,
        5 => file.truncate(at),
        6 => file.extend_from_slice(&value),
        _ => {
            for (byte, new) in file[at..].iter_mut().zip(value) {
                *byte = new;
            }
        }
    }
}

/// Makes the hashes of the sections in the table, and that of the header, fit.
fn sign_plan(file: &mut [u8]) {
    const HEADER: usize = 4096;
    if file.len() < HEADER {
        return;
    }
    for entry in (64..HEADER).step_by(64) {
        let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes")) as usize;
        let (kind, offset, bytes) = (file[entry], number(entry + 8), number(entry + 16));
        let section = offset.checked_add(bytes).and_then(|end| file.get(offset..end));
        // The weights, kind 8, have none.
        let Some(hash) = section.filter(|_| (1..8).contains(&kind)).map(blake3::hash) else { continue };
        file[entry + 32..entry + 64].copy_from_slice(hash.as_bytes());
    }
    file[32..64].fill(0);
    let hash = blake3::hash(&file[..HEADER]);
    file[32..64].copy_from_slice(hash.as_bytes());
}
