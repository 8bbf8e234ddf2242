//! Models whose layers differ and whose checkpoints hold tensors in pieces: from random checkpoints on,
//! compiled plans give the interpreter's logits bit for bit.

use super::{Case, PRESETS, assert_bits, engine, logits, mixed, options};
use crate::harness::{Model, image_of, imports};
use fastrand::Rng;
use kernmill_checkpoint::Checkpoint;
use kernmill_compiler::front::import::{from_checkpoint, read_config};
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::{CompilerOptions, compile};
use kernmill_compiler::synth;
use kernmill_compiler::testing::RandomWeights;
use kernmill_plan::target::Level;
use tempfile::TempDir;

/// A dense layer before mixtures; attention with and without a window, of different heads, and with a rope
/// each or none; q, k and v, q and its gate, gate and up in one tensor each; experts that have tensors of
/// their own.
const MIXED: &str = include_str!("mixed.toml");

/// Synthesises a checkpoint for the spec, and compares kernels with the interpreter in every preset.
pub fn same_bits(spec: &str) {
    same_bits_in(&PRESETS, spec, "spec");
}

fn same_bits_in(presets: &[Preset], spec: &str, name: &str) {
    let graph = lower(&Spec::parse("spec.toml", spec).unwrap()).unwrap();
    graph.verify().unwrap();
    let dir = TempDir::new().unwrap();
    synth::write(&graph, ("spec.toml", spec), dir.path(), 3, &|_, _| {}).unwrap();
    let model = Model::of(spec, Checkpoint::open(dir.path()).unwrap());
    let mut rng = Rng::with_seed(7);
    let tokens = (0..45).map(|_| rng.u32(0..graph.vocab as u32)).collect();
    let (weights, choices) = (RandomWeights { raw: model.raw() }, mixed(&graph));
    let case = Case { graph, weights, tokens, choices };
    for &preset in presets {
        let expected = case.expected(preset);
        for (turn, level) in Level::supported().into_iter().enumerate() {
            let (threads, mut pieces) = [(2, [19, 1, 7]), (1, [45, 1, 1]), (5, [7, 7, 7])][turn % 3];
            let mut chunk = 32;
            if case.graph.whole_texts() {
                (pieces, chunk) = ([45; 3], 45);
            }
            for fuse in [true, false] {
                let compiled = case.compile(&CompilerOptions { fuse, chunk, ..options(preset, level) });
                let image = image_of(compiled.program.clone(), model.pack(&compiled));
                let actual = logits(&mut engine(&image, threads, 1, None), &case.tokens, &pieces);
                let what = format!("{name}: {}, {}, fuse {fuse}", preset.name(), level.name());
                assert_bits(&actual, &expected, case.graph.vocab, &what);
            }
        }
    }
}

#[test]
fn layers_may_differ_and_tensors_be_pieces() {
    same_bits(MIXED);
}

/// The spec of each class that is imported, with random weights.
#[test]
fn every_class_gives_the_interpreters_bits_on_every_level() {
    let mut directories: Vec<_> = std::fs::read_dir(imports()).unwrap().map(|e| e.unwrap().path()).collect();
    directories.sort();
    for directory in directories {
        let checkpoint = Checkpoint::open(&directory).unwrap();
        let spec = from_checkpoint("m", &read_config(&directory).unwrap(), &checkpoint).unwrap();
        same_bits_in(
            &[Preset::Exact, Preset::Faithful],
            &spec,
            directory.file_name().unwrap().to_str().unwrap(),
        );
    }
}

/// Norms of 1 + w before and behind, a soft cap of scores and one of logits.
#[test]
fn models_like_gemma_2_have_their_bits() {
    same_bits(include_str!("gemma2.toml"));
}

/// Attention and MLP beside each other, layer norms, pairs of neighbours in a part of each head.
#[test]
fn models_of_parallel_blocks_have_their_bits() {
    same_bits(include_str!("parallel.toml"));
}

/// Values of more and of fewer elements than keys, in a spec.
#[test]
fn heads_of_values_may_have_another_size() {
    let gemma = include_str!("gemma2.toml");
    for (v, o) in [(32, 64), (96, 192)] {
        let mut spec = gemma.to_owned();
        for (of, now) in [
            (r#"v", shape = [64, "hidden"]"#, format!(r#"v", shape = [{v}, "hidden"]"#)),
            (r#"o", shape = ["hidden", 128]"#, format!(r#"o", shape = ["hidden", {o}]"#)),
        ] {
            assert!(spec.contains(of), "{of}");
            spec = spec.replace(of, &now);
        }
        same_bits(&spec);
    }
    let uneven = gemma.replace(r#"v", shape = [64, "hidden"]"#, r#"v", shape = [63, "hidden"]"#);
    let error = lower(&Spec::parse("spec.toml", &uneven).unwrap()).unwrap_err().excerpt(false);
    assert!(error.contains("v has 63 columns"), "{error}");
}

/// Routers with biases and scales, a shared expert with a gate; each router is in the kernel of its experts.
const ROUTED: &str = include_str!("routed.toml");

#[test]
fn models_of_any_router_have_their_bits() {
    same_bits(ROUTED);
    assert_eq!(groups(ROUTED, ["moe_gate_up", "moe_down", "qkv_norm"]), [3; 3]);
}

/// Experts chosen from the best groups: few experts in the kernel of their MLPs, many in steps.
#[test]
fn experts_in_groups_have_their_bits() {
    let few = [("k = 4", "4", "2"), ("k = 3", "2", "1"), ("k = 2", "\"experts / 2\"", "3")];
    let grouped = few.iter().fold(ROUTED.to_owned(), |text, (k, groups, best)| {
        assert!(text.contains(&format!(", {k},")));
        text.replace(&format!(", {k},"), &format!(", {k}, groups = {groups}, top_groups = {best},"))
    });
    same_bits_in(&[Preset::Exact, Preset::Faithful], &grouped, "groups");
    assert_eq!(groups(&grouped, ["moe_gate_up", "moe_down", "qkv_norm"]), [3; 3]);
    let many = grouped.replace("experts = 12", "experts = 256");
    same_bits_in(&[Preset::Faithful], &many, "groups of many");
    assert_eq!(groups(&many, ["moe_router", "moe_routed", "moe_gate_up"]), [3, 3, 0]);
    let largest = |text: &str| text.replace("top_groups", "group_score = \"largest\", top_groups");
    same_bits_in(&[Preset::Exact], &largest(&grouped), "groups by their largest");
    same_bits_in(&[Preset::Faithful], &largest(&many), "groups of many by their largest");
}

/// Routers of many experts are steps of their own, shared out among the workers.
#[test]
fn routers_of_many_experts_have_their_bits() {
    let many = ROUTED.replace("experts = 12", "experts = 256");
    same_bits_in(&[Preset::Exact, Preset::Faithful], &many, "many experts");
    assert_eq!(groups(&many, ["moe_router", "moe_routed", "moe_gate_up"]), [3, 3, 0]);
}

/// One norm that the router, the experts and a shared expert read is an output of the kernel of the experts.
#[test]
fn shared_experts_have_their_bits() {
    let own = r#"  { out = "s", op = "rms_norm", input = "residual", weight = "mlp_norm", eps = "eps" },
"#;
    let unit = r#"  { out = "shared_act", op = "elementwise", inputs = ["shared_up"], expr = "silu(shared_up)" },
"#;
    let tensors = "[layer.tensors]\n";
    assert!([own, unit, tensors].iter().all(|text| ROUTED.contains(text)));
    let gate = r#"  { out = "other", op = "linear", input = "s", weight = "other" },
  { out = "shared_act", op = "glu", gate = "other", up = "shared_up", expr = "silu(gate) * up" },
"#;
    let other = r#"other = { from = "{layer}.other", shape = ["inner", "hidden"], format = "bf16" }"#;
    let shared = ROUTED.replace(own, "").replace(unit, gate).replace("input = \"s\"", "input = \"n\"");
    let shared = shared.replace(tensors, &format!("{tensors}{other}\n"));
    same_bits(&shared);
    assert_eq!(groups(&shared, ["moe_gate_up", "mlp_gate_up", "moe_down", "norm_quant"]), [3, 3, 3, 0]);
}

/// Groups that each of the rules makes of the model.
fn groups<const N: usize>(spec: &str, rules: [&str; N]) -> [usize; N] {
    let graph = lower(&Spec::parse("spec.toml", spec).unwrap()).unwrap();
    let compiled = compile(&graph, &options(Preset::Faithful, Level::V3)).unwrap();
    let made: Vec<_> = compiled.fused.groups.iter().filter_map(|group| group.rule.as_deref()).collect();
    rules.map(|rule| made.iter().filter(|made| **made == rule).count())
}
