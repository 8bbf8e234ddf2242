//! The victims of damage: a small compiled model, its plan file, its image in memory.

use super::small_model::{ModelShape, build};
use kernmill_compiler::emit::pack::MemorySource;
use kernmill_compiler::ir::Graph;
use kernmill_compiler::output::plan_file::{PlanParts, PlanWriter};
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::passes::fuse::FusedSet;
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_compiler::testing::random_weights;
use kernmill_plan::chat::{ChatTemplate, ChatTemplates, ChatToken, DEFAULT, TOOL_USE, TokenName};
use kernmill_plan::check::check_program;
use kernmill_plan::program::Program;
use kernmill_plan::target::Level;
use kernmill_runtime::PlanImage;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Tokens per chunk.
const CHUNK: usize = 16;

/// A model of one layer.
pub fn sound_graph() -> Graph {
    let shape = ModelShape { layers: 1, vocab: 40, ..ModelShape::mini_gpt_oss() };
    build(&shape).expect("a legal model")
}

fn compiled(graph: &Graph, level: Level) -> Compiled {
    let options = CompilerOptions { chunk: CHUNK, ..CompilerOptions::new(level) };
    compile(graph, &options).expect("a supported model")
}

/// A compiled model of two layers; as JSON, without the machine code, which would be most of it.
pub fn sound_program() -> &'static (Program, Value) {
    static SOUND: OnceLock<(Program, Value)> = OnceLock::new();
    SOUND.get_or_init(|| {
        let graph = build(&ModelShape::mini_gpt_oss()).expect("a legal model");
        let program = compiled(&graph, Level::V3).program;
        check_program(&program).expect("a sound program");
        let mut bare = program.clone();
        bare.code.bytes.clear();
        (program, serde_json::to_value(bare).expect("a program is data"))
    })
}

/// The model of one layer in memory, for the lowest level.
pub fn sound_image() -> &'static PlanImage {
    static SOUND: OnceLock<PlanImage> = OnceLock::new();
    SOUND.get_or_init(|| {
        let graph = sound_graph();
        let compiled = compiled(&graph, Level::V3);
        let weights = build_weights(&compiled, &weights_of(&graph), 1, &|_| {}).expect("sound weights");
        // SAFETY: the compiler of this process made the program.
        unsafe { PlanImage::generated(compiled.program, weights) }
    })
}

/// Bytes of a sound plan of one target.
pub fn sound_plan() -> &'static [u8] {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    SOUND.get_or_init(|| plan_of(&[Level::V3]))
}

/// Bytes of a plan of the model of one layer.
pub fn plan_of(levels: &[Level]) -> Vec<u8> {
    let graph = sound_graph();
    let compiled: Vec<Compiled> = levels.iter().map(|level| compiled(&graph, *level)).collect();
    let template = |name: &str| ChatTemplate {
        name: name.to_owned(),
        place: String::new(),
        text: "{{ messages }}".to_owned(),
    };
    let templates = ChatTemplates {
        templates: vec![template(DEFAULT), template(TOOL_USE)],
        tokens: vec![ChatToken { name: "bos_token".to_owned(), token: TokenName::Id(1) }],
        ..ChatTemplates::default()
    };
    let parts = PlanParts {
        producer: "kernmill tests",
        compiled: &compiled,
        choices: None,
        fused: true,
        fused_specs: &FusedSet::builtin(),
        spec: "# none",
        tokenizer_json: Some(b"{}"),
        end_tokens: &[3],
        chat_templates: Some(&templates),
    };
    let writer = PlanWriter::new(&parts).expect("a plan");
    let name = format!("kernmill-sound-plan-{}-{}", std::process::id(), levels.len());
    let path = std::env::temp_dir().join(name);
    let file = File::options().create(true).truncate(true).read(true).write(true).open(&path);
    let file = file.expect("a temporary file");
    std::fs::remove_file(&path).expect("it is there");
    writer.write(&file, &weights_of(&graph), 1, &|_| {}).expect("it can be written");
    let mut bytes = vec![0; writer.bytes() as usize];
    file.read_exact_at(&mut bytes, 0).expect("it can be read");
    bytes
}

/// Random weights for a graph.
pub fn weights_of(graph: &Graph) -> MemorySource {
    random_weights(graph, 1).source(graph)
}
