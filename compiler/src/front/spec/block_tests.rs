//! A spec whose layers have different blocks, and one wrong turn after another.

use super::*;
use crate::ir::{Graph, Op};

pub(super) const RIGHT: &str = r#"
[model]
name = "blocks"
vocab = 64
max_context = 32

[dims]
hidden = 64
layers = 4
window = 8
eps = 1e-5

[rope.near]
head_dim = 16
theta = 1e4
[rope.far]
head_dim = 32
theta = 1e6

[tensors]
embed = { from = "embed", shape = [64, "hidden"], format = "bf16" }
head = { from = "embed", shape = [64, "hidden"], format = "bf16" }

[before]
node = [{ out = "x", op = "embed", table = "embed" }]

[layer]
count = "layers"
carry = { x = "y" }
node = [
  { out = "n", op = "rms_norm", input = "x", weight = "norm", eps = "eps" },
  { out = "mixed", block = "mixer", x = "n" },
  { out = "with", op = "add", inputs = ["x", "mixed"] },
  { out = "out", block = "mlp", x = "with" },
  { out = "y", op = "add", inputs = ["with", "out"] },
]
[layer.values]
mixer = { cycle = ["sliding", "full"] }
mlp = { list = ["dense", "moe", "moe", "dense"] }
turn = { list = ["near", "far", "none", "none"] }
[layer.tensors]
norm = { from = "{layer}.norm", shape = ["hidden"], format = "f32" }
o = { from = "{layer}.o", shape = ["hidden", 64], format = "bf16" }

[block.sliding]
inputs = ["x"]
node = [
  { out = "q", op = "linear", input = "x", weight = "q" },
  { out = "k", op = "linear", input = "x", weight = "k" },
  { out = "q_rot", op = "rope", input = "q", rope = "turn" },
  { out = "k_rot", op = "rope", input = "k", rope = "turn" },
  { out = "a", op = "attention", q = "q_rot", k = "k_rot", v = "k", heads = 4, kv_heads = 2, window = "window" },
  { out = "o", op = "linear", input = "a", weight = "o" },
]
[block.sliding.tensors]
q = { from = "{layer}.q", shape = [64, "hidden"], format = "bf16" }
k = { from = "{layer}.k", shape = [32, "hidden"], format = "bf16" }

[block.full]
inputs = ["x"]
node = [
  { out = "q", op = "linear", input = "x", weight = "q" },
  { out = "q_rot", op = "rope", input = "q", rope = "turn" },
  { out = "a", op = "attention", q = "q_rot", k = "q_rot", v = "q", heads = 2, kv_heads = 2 },
  { out = "o", op = "linear", input = "a", weight = "o" },
]
[block.full.tensors]
q = { from = "{layer}.q", shape = [64, "hidden"], format = "bf16" }

[block.dense]
inputs = ["x"]
node = [{ out = "y", op = "linear", input = "x", weight = "w" }]
tensors.w = { from = "{layer}.dense", shape = ["hidden", "hidden"], format = "bf16" }

[block.moe]
inputs = ["x"]
node = [
  { out = "scores", op = "linear", input = "x", weight = "router" },
  { out = "routing", op = "router_topk", input = "scores", k = 1 },
  { out = "m", op = "moe", input = "x", routing = "routing", gate = "e", up = "e", down = "e", activation = "gate * up" },
]
[block.moe.tensors]
router = { from = "{layer}.router", shape = [4, "hidden"], format = "bf16" }
e = { from = "{layer}.{expert}", shape = [4, "hidden", "hidden"], format = ["f32", "bf16", "bf16", "f32"] }

[after]
node = [
  { out = "last", op = "select_rows", input = "x" },
  { out = "logits", op = "logits", input = "last", weight = "head" },
]
"#;

/// A part of the right spec, and the mistake that replaces it.
pub(super) const CASES: [(&str, &str); 24] = [
    ("block = \"mlp\"", "block = \"mpl\""),
    ("[\"dense\", \"moe\",", "[\"dense\", \"meo\","),
    ("[\"dense\", \"moe\",", "[\"dense\", \"near\","),
    ("[\"dense\", \"moe\",", "[\"dense\", 3,"),
    ("\"moe\", \"dense\"]", "\"moe\"]"),
    ("block = \"mlp\", x = \"with\"", "block = \"mlp\""),
    ("block = \"mlp\", x = \"with\"", "block = \"mlp\", z = \"with\""),
    ("block = \"mlp\", x = \"with\"", "block = \"mlp\", x = \"wiht\""),
    ("block = \"mlp\", x = \"with\"", "block = \"mlp\", x = 3"),
    ("block = \"mlp\", x", "block = \"mlp\", op = \"add\", x"),
    ("out = \"out\", block", "out = \"with\", block"),
    ("op = \"select_rows\", input = \"x\"", "block = \"dense\", x = \"x\""),
    ("op = \"linear\", input = \"x\", weight = \"w\"", "block = \"moe\", x = \"x\""),
    ("op = \"linear\", input = \"x\", weight = \"w\"", "op = \"add\", inputs = [\"x\", \"n\"]"),
    ("[block.dense]\ninputs = [\"x\"]", "[block.dense]\ninputs = [\"x\", \"z\"]"),
    ("[block.dense]\ninputs = [\"x\"]", "[block.dense]\ninputs = [\"x\", \"x\"]"),
    ("[block.dense]\ninputs = [\"x\"]", "[block.dense]\ninputs = [\"out\"]"),
    ("[block.dense]\ninputs = [\"x\"]", "[block.dense]\nreads = [\"x\"]"),
    ("[{ out = \"y\", op = \"linear\", input = \"x\", weight = \"w\" }]", "[]"),
    ("weight = \"w\"", "weight = \"v\""),
    ("\"moe\", \"moe\"", "\"dense\", \"dense\""),
    ("rope = \"turn\"", "rope = \"mlp\""),
    ("[\"near\", \"far\", \"none\", \"none\"]", "[\"near\", \"window\", \"none\", \"none\"]"),
    ("[\"near\", \"far\", \"none\", \"none\"]", "[\"near\", \"near\", \"none\", \"none\"]"),
];

fn graph(text: &str) -> Result<Graph> {
    Spec::parse("blocks.toml", text).and_then(|spec| lower(&spec))
}

#[test]
fn layers_have_the_blocks_that_their_values_name() {
    let graph = graph(RIGHT).unwrap();
    graph.verify().unwrap();
    let names = |layer: &str| -> Vec<&str> {
        let names = graph.values.iter().map(|value| value.name.as_str());
        names.filter_map(|name| name.strip_prefix("layers.")?.strip_prefix(layer)).collect()
    };
    let dense = [".n", ".mixed.q", ".mixed.k", ".mixed.a", ".mixed", ".with", ".out", ".y"];
    assert_eq!(
        names("0"),
        [&dense[..3], &[".mixed.q_rot", ".mixed.k_rot"], &dense[3..]].concat(),
        "a block's value has its node's name"
    );
    let moe = [".out.scores", ".out.routing", ".out.gate", ".out.up", ".out.glu", ".out.down", ".out", ".y"];
    assert_eq!(names("1")[..6], [".n", ".mixed.q", ".mixed.q_rot", ".mixed.a", ".mixed", ".with"]);
    assert_eq!(names("1").last(), moe.last());
    assert!(names("2").contains(&".out.scores") && !names("2").contains(&".mixed.q_rot"), "{:?}", names("2"));
    let tensors: Vec<&str> = graph.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    for name in ["layers.0.norm", "layers.0.sliding.k", "layers.0.o", "layers.1.full.q", "layers.1.moe.e"] {
        assert!(tensors.contains(&name), "{name}: {tensors:?}");
    }
    assert!(!tensors.contains(&"layers.0.moe.e"));
    let kv: Vec<_> = graph.nodes.iter().filter_map(|node| node.op.attention()).collect();
    let heads: Vec<_> = kv.iter().map(|a| (a.layer, a.kv_heads, a.head_dim, a.window)).collect();
    let (sliding, full) = ((2, 16, Some(8)), (2, 32, None));
    let with = |layer: u32, (a, b, c): (usize, usize, Option<u32>)| (layer, a, b, c);
    assert_eq!(heads, [with(0, sliding), with(1, full), with(2, sliding), with(3, full)]);
    let ropes = graph.nodes.iter().filter_map(|node| match &node.op {
        Op::Rope(rope) => Some(rope.rope),
        _ => None,
    });
    assert_eq!(ropes.collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn blocks_are_called_by_their_own_names_and_several_times() {
    let twice = RIGHT
        .replacen(
            "  { out = \"out\", block",
            "  { out = \"first\", block = \"dense\", x = \"with\" },\n  { out = \"out\", block",
            1,
        )
        .replacen("block = \"mlp\", x = \"with\"", "block = \"dense\", x = \"first\"", 1);
    let error = graph(&twice).unwrap_err();
    assert!(error.to_string().contains("no layer has [block.moe]"), "{error}");
    let once = twice.replacen("block = \"dense\", x = \"first\"", "block = \"mlp\", x = \"first\"", 1);
    let graph = graph(&once).unwrap();
    graph.verify().unwrap();
    let dense = graph.tensors.iter().filter(|tensor| tensor.name.ends_with(".dense.w"));
    assert_eq!(dense.count(), 4, "a block's tensors are there once in a layer");
}

#[test]
fn nodes_that_rotate_nothing_count() {
    let mut chain = String::from("{ out = \"v0\", op = \"rope\", input = \"n\", rope = \"none\" },\n");
    for i in 1..200 {
        chain += &format!("{{ out = \"v{i}\", op = \"rope\", input = \"v{}\", rope = \"none\" }},\n", i - 1);
    }
    let text = RIGHT
        .replacen(
            "  { out = \"mixed\", block = \"mixer\", x = \"n\" }",
            &format!("{chain}  {{ out = \"mixed\", block = \"mixer\", x = \"v199\" }}"),
            1,
        )
        .replacen("layers = 4", "layers = 1024", 1)
        .replace("{ list = [\"dense\", \"moe\", \"moe\", \"dense\"] }", "{ cycle = [\"dense\", \"moe\"] }")
        .replace("{ list = [\"near\", \"far\", \"none\", \"none\"] }", "{ cycle = [\"near\", \"far\"] }")
        .replace("[\"f32\", \"bf16\", \"bf16\", \"f32\"]", "\"bf16\"");
    let error = graph(&text).unwrap_err().to_string();
    assert!(error.contains("the model has more than 32768 nodes in all layers"), "{error}");
}
