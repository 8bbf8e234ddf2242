//! Texts: specs, `config.json`, descriptions of machines, graphs, expressions, tokenizers.

use super::any_bytes::parse_bytes;
use super::trial::{Trial, difference};
use kernmill_compiler::front::import::from_config;
use kernmill_compiler::front::spec::{Spec, SpecError, lower};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::ir::expr;
use kernmill_compiler::machine::Description;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec, fuse, sample};
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::quant::{Preset, quantise};
use kernmill_compiler::passes::select::cost::CostModel;
use kernmill_compiler::pipeline::{CompileError, CompilerOptions, compile as compile_graph};
use kernmill_compiler::testing::random_weights;
use kernmill_plan::check::check_program;
use kernmill_plan::target::Level;
use kernmill_runtime::Tokenizer;
use kernmill_runtime::guarded::{Flush, GuardedConfig};
use kernmill_runtime::tokenizer::TextStream;
use std::str::from_utf8;

/// A spec: read, lowered, or refused with a message that can be shown.
pub fn spec(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    match Spec::parse("fuzz.toml", text).and_then(|spec| lower(&spec)) {
        Ok(graph) => assert_legal(&graph),
        Err(error) => show(&error),
    }
}

/// The graph of a spec is legal, and its text is read back to it.
pub(super) fn assert_legal(graph: &Graph) {
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
    assert!(!error.excerpt(false).is_empty());
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

/// A description of a machine.
pub fn machine(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    match Description::parse(text) {
        Ok(machine) => {
            let costs = machine.costs();
            assert!(costs.workers > 0 && costs.bytes() > 0.0 && costs.barrier.is_finite());
            for preset in Preset::ALL {
                let level = machine.level(preset);
                assert!(machine.features.has(level.features()));
                assert!(CostModel::on(level, machine.family, costs).machine() == &costs);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.to_string().contains('\n')),
    }
}

/// Whether a description of a machine is read to its end.
pub fn reads_machine(data: &[u8]) -> bool {
    from_utf8(data).is_ok_and(|text| Description::parse(text).is_ok())
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
    match expr::parse(text, &vars) {
        Ok(expr) => {
            let again = expr::parse(&expr.text(&vars), &vars);
            // A spec near the limit of nesting can pass it in the text, which writes every parenthesis.
            if let Ok(again) = again {
                assert!(expr == again, "{} is another expression", expr.text(&vars));
            }
        }
        Err(error) => assert!(error.offset <= text.len(), "{error} in {} bytes", text.len()),
    }
}

/// A fused-op spec: read, tried on a model that is made of its pattern, and where it applies there, run.
pub fn fused(data: &[u8]) {
    parse_bytes(data);
    let Ok(text) = from_utf8(data) else { return };
    match FusedSpec::parse("fuzz.toml", text) {
        Ok(spec) => run_fused(spec, data.len()),
        Err(error) => show(&error),
    }
}

/// Elements of the weights of a model that is run.
const MAX_ELEMENTS: usize = 1 << 17;

/// Kernels of a small model of the rule's pattern, fused and not, give the interpreter's bits between guard
/// pages.
fn run_fused(spec: FusedSpec, seed: usize) {
    let Some(rule) = spec.rule.clone() else { return };
    let Ok(graph) = sample(&rule, seed as u64) else { return };
    let elements = graph.tensors.iter().map(|tensor| tensor.shape.iter().product::<usize>());
    if graph.nodes.len() > 48 || elements.sum::<usize>() > MAX_ELEMENTS {
        return;
    }
    let preset = [Preset::Exact, Preset::Faithful, Preset::Bf16][seed % 3];
    let levels = Level::supported();
    let level = levels[seed / 3 % levels.len()];
    let (Ok(set), Ok(quantised)) = (FusedSet::builtin().with(vec![spec]), quantise(&graph, preset)) else {
        return;
    };
    let (fused, _) = fuse(&quantised, set.rules(), level);
    if !fused.groups.iter().any(|group| group.rule.as_deref() == Some(&rule.name)) {
        return;
    }
    let options =
        CompilerOptions { preset, chunk: 6, adapters: false, fused: set, ..CompilerOptions::new(level) };
    let weights = random_weights(&graph, seed as u64);
    let tokens: Vec<u32> = (0..9).map(|i| (i * 7 % graph.vocab) as u32).collect();
    let trial = Trial { graph: &graph, weights: &weights, tokens: &tokens };
    let expected = trial.expected(&quantised, None);
    for (fuse, flush) in [(true, Flush::End), (true, Flush::Start), (false, Flush::End)] {
        let compiled = match compile_graph(&graph, &CompilerOptions { fuse, ..options.clone() }) {
            Ok(compiled) => compiled,
            Err(error) => return assert_refusal(&error),
        };
        let config = GuardedConfig { context: 16, sequences: 1, workers: 2, flush };
        let actual = trial.guarded(&compiled, None, &[1, 6, 2], config).unwrap();
        let wrong = difference(&actual, &expected, graph.vocab);
        assert_eq!(wrong, None, "fuse {fuse}, {}, {}, {flush:?}", preset.name(), level.name());
    }
}

/// A compiler that fails has been asked for what is not supported; a check of its own work never fails.
fn assert_refusal(error: &CompileError) {
    match error {
        CompileError::Graph(error) => panic!("lowered to an illegal graph: {error}"),
        CompileError::MemoryCheck(error) => panic!("{error}"),
        CompileError::Program(error) => panic!("{error}"),
        error => assert!(!error.to_string().is_empty()),
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
    // One of them for each text: all would take a good part of the time that an input may.
    let ways = [(Preset::Exact, false), (Preset::Faithful, true), (Preset::Bf16, true), (Preset::Fast, true)];
    let (preset, fuse) = ways[data.iter().map(|byte| usize::from(*byte)).sum::<usize>() % ways.len()];
    let choices = Some(FormatChoices::assumed(&graph));
    let options = CompilerOptions { preset, choices, fuse, chunk: 16, ..CompilerOptions::new(Level::V3) };
    match compile_graph(&graph, &options) {
        Ok(compiled) => assert!(check_program(&compiled.program).is_ok()),
        Err(error) => assert_refusal(&error),
    }
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
        let _ = tokenizer.encode_ordinary(text);
    }
    let ids: Vec<u32> = (0..tokenizer.vocab()).step_by(7).collect();
    let mut stream = TextStream::new();
    let pieces: Result<String, _> = ids.iter().map(|id| stream.push(&tokenizer, *id)).collect();
    if let (Ok(text), Ok(rest), Ok(whole)) = (pieces, stream.finish(&tokenizer), tokenizer.decode(&ids)) {
        assert_eq!(text + &rest, whole);
    }
}
