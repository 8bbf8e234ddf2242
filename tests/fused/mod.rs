//! Fused-op specs: the examples of docs/user/fused-ops.md, each held to the interpreter's bits; the schema;
//! the commands.

mod pair;
mod pairs;
mod repeats;
mod widths;

use crate::docs::root;
use crate::harness::image_of;
use fastrand::Rng;
use kernmill_compiler::emit::pack::MemorySource;
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::interp::Interpreter;
use kernmill_compiler::ir::{Graph, Node};
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec, schema};
use kernmill_compiler::passes::quant::{Preset, quantise};
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_compiler::testing::{RandomWeights, random_weights};
use kernmill_plan::target::Level;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, SequenceTokens, Steps};
use std::fs;

const PRESETS: [Preset; 3] = [Preset::Exact, Preset::Faithful, Preset::Bf16];

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn example(name: &str) -> FusedSpec {
    let path = format!("model-specs/examples/fused/{name}.toml");
    FusedSpec::parse(&path, &text(&path)).unwrap()
}

fn examples() -> FusedSet {
    let specs = ["mish", "capped_norm", "bilinear"].map(example);
    FusedSet::builtin().with(specs.to_vec()).unwrap()
}

fn tiny(set: &FusedSet) -> Graph {
    let path = "model-specs/examples/tiny.toml";
    lower(&Spec::parse_with(path, &text(path), &set.language()).unwrap()).unwrap()
}

struct Case {
    graph: Graph,
    weights: RandomWeights,
    tokens: Vec<u32>,
}

impl Case {
    fn new(graph: Graph) -> Case {
        let weights = random_weights(&graph, 7);
        let mut rng = Rng::with_seed(7);
        let tokens = (0..41).map(|_| rng.u32(0..graph.vocab as u32)).collect();
        Case { graph, weights, tokens }
    }

    fn expected(&self, preset: Preset) -> Vec<f32> {
        let graph = quantise(&self.graph, preset).unwrap();
        Interpreter::new(&graph, &self.weights.for_graph(&graph)).unwrap().extend(0, &self.tokens).unwrap()
    }

    fn compile(&self, set: &FusedSet, preset: Preset, level: Level) -> Compiled {
        let options =
            CompilerOptions { preset, chunk: 32, fused: set.clone(), ..CompilerOptions::new(level) };
        compile(&self.graph, &options).unwrap()
    }

    fn logits(&self, compiled: &Compiled, pieces: &[usize]) -> Vec<f32> {
        let mut source = MemorySource::default();
        for (tensor, raw) in self.graph.tensors.iter().zip(&self.weights.raw) {
            source.f32.insert(tensor.name.clone(), raw.to_f32());
        }
        let weights = build_weights(compiled, &source, 1, &|_| {}).unwrap();
        let image = image_of(compiled.program.clone(), weights);
        let pool = PoolConfig { threads: Some(2), ..PoolConfig::default() };
        let config =
            EngineConfig { pool, context: Some(64), sequences: 1, chunk: None, ..EngineConfig::default() };
        let mut engine = Engine::new(&image, config).unwrap();
        let id = engine.create().unwrap();
        let (mut out, mut rest, mut turn) = (Vec::new(), &self.tokens[..], 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(pieces[turn % pieces.len()].min(rest.len()));
            engine
                .extend_in_order(&[SequenceTokens::all(id, piece)], &mut |row| {
                    out.extend_from_slice(row.logits)
                })
                .unwrap();
            (rest, turn) = (after, turn + 1);
        }
        out
    }

    /// Every preset, level and way to cut, with `set`: the interpreter's bits.
    fn check(&self, set: &FusedSet, what: &str) {
        let bits = |logits: &[f32]| logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for preset in PRESETS {
            let expected = self.expected(preset);
            assert!(expected.iter().all(|x| x.is_finite()));
            for level in Level::supported() {
                let compiled = self.compile(set, preset, level);
                for pieces in [&[1][..], &[7, 9, 3], &[41]] {
                    let actual = self.logits(&compiled, pieces);
                    let what = format!("{what}, {}, {}, {pieces:?}", preset.name(), level.name());
                    assert!(bits(&actual) == bits(&expected), "{what}");
                }
            }
        }
    }
}

/// Groups that the rule made.
fn uses(compiled: &Compiled, rule: &str) -> usize {
    compiled.fused.groups.iter().filter(|group| group.rule.as_deref() == Some(rule)).count()
}

#[test]
fn a_new_activation_needs_one_file() {
    let set = examples();
    let case = Case::new(tiny(&set));
    let compiled = case.compile(&set, Preset::Faithful, Level::V3);
    // The activation is part of the kernel of gate and up, in every layer.
    let glu = compiled.fused.groups.iter().filter(|group| group.capture("glu").is_some()).count();
    assert_eq!(glu, 2);
    assert!(compiled.fused.graph.to_string().contains("exp(min(x0, 20.0))"));
    case.check(&set, "all examples");
}

#[test]
fn a_norm_variant_fuses_into_what_follows() {
    let set = examples();
    let case = Case::new(tiny(&set));
    for preset in PRESETS {
        assert_eq!(uses(&case.compile(&set, preset, Level::V3), "capped_norm"), 2, "{}", preset.name());
    }
    // Without it the norm and the cap are separate kernels.
    let without = set.without("capped_norm").unwrap();
    let graph = &case.graph;
    let is_cap = |node: &&Node| node.kind().name == "elementwise" && node.inputs.len() == 1;
    assert_eq!(graph.nodes.iter().filter(is_cap).count(), 2);
    case.check_same_graph(&without, "without capped_norm");
}

#[test]
fn a_pair_of_matrices_shares_its_prologue() {
    let set = examples();
    let case = Case::new(tiny(&set));
    let compiled = case.compile(&set, Preset::Faithful, Level::V3);
    assert_eq!(uses(&compiled, "bilinear"), 2);
    let group = compiled.fused.groups.iter().find(|group| group.rule.as_deref() == Some("bilinear")).unwrap();
    assert_eq!((group.prologue.len(), group.roots.len(), group.epilogue.len()), (2, 2, 2));
    case.check_same_graph(&set.without("bilinear").unwrap(), "without bilinear");
}

impl Case {
    /// One level only: for sets that leave something out.
    fn check_same_graph(&self, set: &FusedSet, what: &str) {
        let level = *Level::supported().last().unwrap();
        for preset in PRESETS {
            let actual = self.logits(&self.compile(set, preset, level), &[7, 9, 3]);
            let same = actual.iter().zip(&self.expected(preset)).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{what}, {}", preset.name());
        }
    }
}

#[test]
fn hints_change_kernels_and_no_bit() {
    let hinted = |hints: &str| {
        let bilinear = text("model-specs/examples/fused/bilinear.toml");
        let bilinear =
            FusedSpec::parse("hinted.toml", &format!("{bilinear}\n[schedule]\n{hints}\n")).unwrap();
        FusedSet::builtin().with(vec![example("mish"), example("capped_norm"), bilinear]).unwrap()
    };
    let case = Case::new(tiny(&examples()));
    let level = *Level::supported().last().unwrap();
    for (hints, step) in [("prologue = \"step\"", true), ("prologue = \"workers\"\ntiling = \"dots\"", false)]
    {
        let set = hinted(hints);
        case.check_same_graph(&set, hints);
        let compiled = case.compile(&set, Preset::Faithful, level);
        let labels = compiled.selections[0].uses.iter().map(|one| one.label.as_str());
        assert_eq!(labels.into_iter().any(|label| label.ends_with("bilinear_prologue")), step, "{hints}");
    }
}

/// The document shows the files as they are.
#[test]
fn the_document_has_the_examples_as_they_are() {
    let document = text("docs/user/fused-ops.md");
    for name in ["mish", "capped_norm", "bilinear"] {
        let file = text(&format!("model-specs/examples/fused/{name}.toml"));
        assert!(
            document.contains(&format!("```toml\n{file}```")),
            "docs/user/fused-ops.md has another {name}.toml"
        );
    }
    for word in schema()["properties"].as_object().unwrap().keys() {
        assert!(
            document.contains(&format!("`{word}`")) || document.contains(&format!("[{word}]")),
            "`{word}` is not explained"
        );
    }
}

#[test]
fn the_schema_is_the_committed_one_and_describes_every_file() {
    let path = root().join("model-specs/fused/schema.json");
    expect_test::expect_file![path].assert_eq(&format!("{:#}\n", schema()));
    for dir in ["model-specs/fused", "model-specs/examples/fused"] {
        for file in crate::docs::files(&root().join(dir), &["toml"]) {
            let value: toml::Value = toml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            let wrong = violation(&schema(), &serde_json::to_value(value).unwrap());
            assert_eq!(wrong, None, "{}", file.display());
        }
    }
    let wrong = |text: &str| {
        violation(&schema(), &serde_json::to_value(toml::from_str::<toml::Value>(text).unwrap()).unwrap())
    };
    assert!(wrong("name = \"x\"").is_some());
    assert!(wrong("name = \"x\"\ndoc = \"y\"\nkernel = \"gemm\"").is_some());
    assert!(wrong("name = \"x\"\ndoc = \"y\"\ncolour = 1").is_some());
}

/// The first place where a value breaks a schema, of the words that ours uses.
fn violation(schema: &serde_json::Value, value: &serde_json::Value) -> Option<String> {
    use serde_json::Value;
    if let Some(options) = schema["anyOf"].as_array() {
        let all: Vec<Option<String>> = options.iter().map(|option| violation(option, value)).collect();
        return if all.iter().any(Option::is_none) { None } else { all.into_iter().flatten().next() };
    }
    if let Some(options) = schema["enum"].as_array() {
        return (!options.contains(value)).then(|| format!("{value} is not one of {options:?}"));
    }
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let fits = match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
        _ => true,
    };
    if !fits {
        return Some(format!("{value} is no {}", schema["type"]));
    }
    if let Some(items) = value.as_array() {
        return items.iter().find_map(|item| violation(&schema["items"], item));
    }
    let (Some(object), Some(properties)) = (value.as_object(), schema["properties"].as_object()) else {
        return None;
    };
    let missing = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|key| !object.contains_key(key.as_str().unwrap()));
    if let Some(key) = missing {
        return Some(format!("lacks {key}"));
    }
    object.iter().find_map(|(key, item)| match properties.get(key) {
        Some(schema) => violation(schema, item).map(|wrong| format!("{key}: {wrong}")),
        None => (schema["additionalProperties"] == false).then(|| format!("unknown key {key}")),
    })
}
