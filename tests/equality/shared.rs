//! Layers that read the cache of an earlier one: the interpreter's bits, no page stored twice, and what specs
//! may say.

use super::families::same_bits;
use super::stages::compare;
use super::{Case, assert_bits, engine, in_company, logits, options};
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::ir::{Graph, Op};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_plan::kv::{KvFormat, KvFormats};
use kernmill_plan::target::Level;
use kernmill_runtime::stages::StageShare;
use kernmill_runtime::{SequenceTokens, Steps};

/// Three layers with caches and four that read them, with windows and without, as in Gemma 3n.
const SHARED: &str = include_str!("shared.toml");

fn graph(spec: &str) -> Graph {
    lower(&Spec::parse("shared.toml", spec).unwrap()).unwrap()
}

#[test]
fn layers_that_share_caches_have_the_interpreters_bits() {
    same_bits(SHARED);
}

/// A cache of its own in every layer, with the same keys and values, is the same model.
#[test]
fn a_shared_cache_is_as_good_as_copies_of_it() {
    let shared = graph(SHARED);
    let mut copies = shared.clone();
    let mut layers = 0;
    for node in &mut copies.nodes {
        if let Op::Attention(attention) = &mut node.op {
            (attention.layer, attention.shared) = (layers, false);
            layers += 1;
        }
    }
    let (one, other) = (Case::of(shared, 1, 40), Case::of(copies, 1, 40));
    for format in KvFormat::ALL {
        let kv = KvFormats::uniform(format);
        let expected = other.expected_in(Preset::Faithful, &kv);
        assert_bits(&one.expected_in(Preset::Faithful, &kv), &expected, 96, &kv.to_string());
    }
    assert_eq!(layers, 7);
    let caches = |case: &Case| {
        let compiled = case.compile(&options(Preset::Faithful, Level::V3));
        compiled.program.model.kv.layers.len()
    };
    assert_eq!((caches(&one), caches(&other)), (3, 7));
}

/// Every format of the cache, sequences beside each other, forks, and a model in two stages.
#[test]
fn shared_caches_are_forked_and_cut_as_others_are() {
    let case = Case::of(graph(SHARED), 2, 50);
    let level = *Level::supported().last().unwrap();
    for format in KvFormat::ALL {
        let kv = KvFormats::uniform(format);
        let expected = case.expected_in(Preset::Faithful, &kv);
        for fuse in [true, false] {
            let options = CompilerOptions { fuse, kv: Some(kv), ..options(Preset::Faithful, level) };
            let image = case.image(&case.compile(&options));
            let what = format!("{kv}, fuse {fuse}");
            let mut engine = engine(&image, 2, 3, None);
            assert_bits(&logits(&mut engine, &case.tokens, &[31, 1, 18]), &expected, 96, &what);
            assert_bits(&in_company(&mut engine, &case.tokens), &expected, 96, &what);
            // Only the last token's logits: the layers that share caches run for it alone.
            let id = engine.create().unwrap();
            let mut last = Vec::new();
            let tokens = SequenceTokens::last(id, &case.tokens[..30]);
            engine.extend_in_order(&[tokens], &mut |row| last.extend_from_slice(row.logits)).unwrap();
            let fork = engine.fork(id, 17).unwrap();
            for (id, rest) in [(fork, 17..50), (id, 30..50)] {
                let tokens = SequenceTokens::last(id, &case.tokens[rest]);
                engine.extend_in_order(&[tokens], &mut |row| last.extend_from_slice(row.logits)).unwrap();
            }
            let rows = [29, 49, 49].map(|row: usize| &expected[row * 96..][..96]);
            assert_bits(&last, &rows.concat(), 96, &format!("{what}, forked"));
        }
    }
}

/// A stage has the caches that its layers read.
#[test]
fn stages_do_not_part_a_layer_from_its_cache() {
    let near = SHARED.replace("1, 1, 2, 0]", "1, 1, 2, 1]");
    let case = Case::of(graph(&near), 3, 60);
    let image = case.image(&case.compile(&options(Preset::Faithful, Level::V3))).with_identity([3; 32]);
    let expected = case.expected(Preset::Faithful);
    assert!(compare(&case, &image, 2, &expected, "two stages") > 40);
    // Here the last layer reads the cache of the first one.
    let far = Case::of(graph(SHARED), 3, 60).compile(&options(Preset::Faithful, Level::V3));
    let error = StageShare::of(&far.program, 1, 2).unwrap_err().to_string();
    assert!(error.contains("cannot be cut before attention layer 1"), "{error}");
}

#[test]
fn the_queries_of_shared_caches_are_one_kernel() {
    let graph = graph(SHARED);
    let compiled =
        kernmill_compiler::pipeline::compile(&graph, &options(Preset::Faithful, Level::V3)).unwrap();
    let rules: Vec<_> = compiled.fused.groups.iter().filter_map(|group| group.rule.as_deref()).collect();
    let count = |rule: &str| rules.iter().filter(|made| **made == rule).count();
    assert_eq!((count("qkv_norm") + count("post_qkv_norm"), count("post_q"), count("q")), (3, 4, 0));
    // Nothing behind the norm in front.
    let before = r#"  { out = "mlp_out", op = "rms_norm", input = "down", weight = "mlp_post", eps = "eps" },
  { out = "y", op = "add", inputs = ["residual", "mlp_out"] },"#;
    let post = "mlp_post = { from = \"{layer}.mlp_post\", shape = [\"hidden\"], format = \"bf16\" }\n";
    assert!(SHARED.contains(before) && SHARED.contains(post));
    let plain = SHARED.replace(before, r#"  { out = "y", op = "add", inputs = ["residual", "down"] },"#);
    let plain = plain.replace(post, "");
    let graph = lower(&Spec::parse("plain.toml", &plain).unwrap()).unwrap();
    let compiled =
        kernmill_compiler::pipeline::compile(&graph, &options(Preset::Faithful, Level::V3)).unwrap();
    let rules: Vec<_> = compiled.fused.groups.iter().filter_map(|group| group.rule.as_deref()).collect();
    assert_eq!(rules.iter().filter(|made| **made == "q").count(), 4);
    same_bits(&plain);
}

#[test]
fn mistakes_about_shared_caches_are_shown_in_their_place() {
    let shares = r#"shares = "source""#;
    for (of, now, expected) in [
        (shares, r#"shares = 6"#, "layer 6 has no attention with a cache of its own above this node"),
        (shares, r#"shares = 3"#, "layer 3 has no attention with a cache"),
        (shares, r#"shares = 2000"#, "`shares` is 2000"),
        (shares, r#"shares = 2"#, "another view than that of the layer whose cache it reads"),
        (shares, r#"shares = "source", k = "q_rot""#, "`k` beside `shares`"),
        (shares, r#"v = "q_rot""#, "attention without `k`"),
        (
            r#"shares = "source", heads = 4, kv_heads = 2"#,
            r#"shares = "source", heads = 4, kv_heads = 1"#,
            "1 KV heads of 32",
        ),
        (r#""none", 1, 1, 2, 0]"#, r#""none", 1, 1, 2, "none"]"#, "`source` is no layer here, but `none`"),
    ] {
        assert!(SHARED.contains(of), "{of}");
        let spec = Spec::parse("shared.toml", &SHARED.replacen(of, now, 1)).unwrap();
        let error = lower(&spec).unwrap_err().excerpt(false);
        assert!(error.contains(expected) && error.contains("shared.toml:"), "{error}");
    }
}

/// A graph says the same in words, and one that reads a cache which is not there is refused.
#[test]
fn graphs_of_shared_caches_are_checked() {
    let graph = graph(SHARED);
    let text = graph.to_string();
    assert!(text.contains("layer=1, shared, heads=4"), "{text}");
    assert_eq!(text.parse::<Graph>().unwrap(), graph);
    let spoilt = |change: &dyn Fn(&mut kernmill_compiler::ir::Node)| {
        let mut graph = graph.clone();
        let is_shared = |op: &Op| op.attention().is_some_and(|a| a.shared);
        change(graph.nodes.iter_mut().find(|node| is_shared(&node.op)).unwrap());
        graph.verify().unwrap_err().to_string()
    };
    let with = |change: &dyn Fn(&mut kernmill_compiler::ir::Attention)| {
        spoilt(&|node| {
            let Op::Attention(attention) = &mut node.op else { return };
            change(attention);
        })
    };
    assert!(with(&|a| a.layer = 9).contains("no attention has cache 9"));
    assert!(with(&|a| a.layer = 0).contains("reads cache 0 as another"));
    assert!(with(&|a| a.window = Some(3)).contains("reads cache 1 as another"));
    assert!(with(&|a| a.shared = false).contains("attention layer 1, expected 3"));
}
