//! A small right spec, and one wrong turn after another.

use super::*;
use crate::ir::{Activations, Factor, Graph, Op, RopeScaling, RowSelect};
use expect_test::{Expect, expect};

const RIGHT: &str = r#"
[model]
name = "small"
vocab = 8
max_context = 32

[dims]
hidden = 64
layers = 3
heads = 4
head_dim = "hidden / heads"
experts = 4
window = 8

[rope.main]
head_dim = "head_dim"
theta = 1e4

[tensors]
embed = { from = "embed", shape = [8, "hidden"], format = "bf16" }
norm = { from = "norm", shape = ["hidden"], format = "f32" }

[before]
node = [{ out = "x", op = "embed", table = "embed" }]

[layer]
count = "layers"
carry = { x = "y" }
node = [
  { out = "q", op = "linear", input = "x", weight = "q" },
  { out = "q_rot", op = "rope", input = "q", rope = "main" },
  { out = "a", op = "attention", q = "q_rot", k = "q", v = "q", heads = "heads", kv_heads = 4, window = "view" },
  { out = "scores", op = "linear", input = "a", weight = "router" },
  { out = "routing", op = "router_topk", input = "scores", k = 2 },
  { out = "m", op = "moe", input = "a", routing = "routing", gate = "e", up = "e", down = "e", activation = "silu(gate) * up" },
  { out = "y", op = "add", inputs = ["x", "m"] },
]
[layer.values]
view = { cycle = ["window", "full"] }
[layer.tensors]
q = { from = "{layer}.q", shape = ["heads * head_dim", "hidden"], format = "bf16" }
router = { from = "{layer}.router", shape = ["experts", "hidden"], format = "bf16" }
e = { from = "{layer}.e", scales = "{layer}.s", shape = ["experts", "hidden", "hidden"], format = "mxfp4" }

[after]
node = [
  { out = "last", op = "select_rows", input = "x" },
  { out = "n", op = "rms_norm", input = "last", weight = "norm", eps = 1e-5 },
  { out = "logits", op = "logits", input = "n", weight = "head" },
]
[tensors.head]
from = "embed"
shape = [8, "hidden"]
format = "bf16"
"#;

const ROUTER: &str = r#""{layer}.router", shape = ["experts", "hidden"], format = "bf16""#;
/// In the second layer blocks are longer than rows.
const Q4_K_ROUTER: &str =
    r#""{layer}.router", shape = ["experts", "hidden"], format = ["int8", "q4_k", "nvfp4"]"#;
const TABLE_WITH_SCALES: &str = r#"from = "embed", scales = "s", shape = [8, "hidden"], format = "mxfp4" }"#;

fn graph(text: &str) -> Result<Graph> {
    Spec::parse("small.toml", text).and_then(|spec| lower(&spec))
}

/// The error of the right spec with `from` replaced by `to`.
fn wrong(from: &str, to: &str) -> SpecError {
    assert!(RIGHT.contains(from), "{from}");
    graph(&RIGHT.replacen(from, to, 1)).expect_err(to)
}

#[test]
fn the_right_spec_lowers() {
    let graph = graph(RIGHT).unwrap();
    let windows: Vec<_> = graph
        .nodes
        .iter()
        .filter_map(|n| match &n.op {
            Op::Attention(a) => Some((a.layer, a.window)),
            _ => None,
        })
        .collect();
    assert_eq!(windows, [(0, Some(8)), (1, None), (2, Some(8))]);
    assert_eq!(graph.values[2].name, "layers.0.q");
    assert!(graph.tensors.iter().any(|t| t.name == "layers.2.e" && t.source.name == "2.e"));
    assert_eq!(graph.values[graph.output.0 as usize].name, "logits");
}

#[test]
fn every_kind_of_slip_is_told_with_its_place() {
    let cases = [
        ("vocab = 8", "vocab = 8\nsize = 3"),
        ("vocab = 8", "vocab = true"),
        ("vocab = 8\n", ""),
        ("vocab = 8", "vocab = 0"),
        ("vocab = 8", "vocab = ["),
        ("layers = 3", "layers = 3.5"),
        ("experts = 4", "experts = 0"),
        ("\"hidden / heads\"", "\"hidden / head\""),
        ("\"hidden / heads\"", "\"window * 2\""),
        ("heads = 4\n", "heads = 3\n"),
        ("theta = 1e4", "theta = 1e4\nscaling = { kind = \"yarm\" }"),
        ("theta = 1e4", "theta = 1e4\nscaling = { kind = \"linear\" }"),
        (
            "theta = 1e4",
            "theta = 1e4\nscaling = { kind = \"dynamic\", factor = 2, original_context = \"head_dim\" }",
        ),
        ("theta = 1e4", "theta = 0"),
        ("theta = 1e4", "theta = 1e4\nrotary_dim = 7"),
        ("theta = 1e4", "theta = 1e4\nrotary_dim = \"2 * head_dim\""),
        ("theta = 1e4", "theta = 1e4\npairs = \"neighbors\""),
        ("theta = 1e4", "theta = 1e4\nfactors = [1, 2]"),
        ("theta = 1e4", "theta = 1e4\nrotary_dim = 4\nfactors = [1, 0]"),
        ("theta = 1e4", "theta = 1e4\nattention_factor = -1"),
        ("weight = \"q\"", "wieght = \"q\""),
        ("weight = \"q\"", "weight = \"k\""),
        ("op = \"rope\"", "op = \"ropes\""),
        ("rope = \"main\"", "rope = \"mian\""),
        ("input = \"q\"", "input = \"qq\""),
        ("input = \"q\"", "input = \"scores\""),
        ("input = \"last\"", "input = \"a\""),
        ("kv_heads = 4", "kv_heads = 3"),
        ("kv_heads = 4", "kv_heads = 4, softcap = 0"),
        ("k = 2", "k = 5"),
        ("k = 2", "k = 2, scores = \"sigmoids\""),
        ("k = 2", "k = 2, normalise = true"),
        ("k = 2", "k = 2, scores = \"softmax\", normalise = 1"),
        ("k = 2", "k = 2, scores = \"sigmoid\", scale = 0"),
        ("k = 2", "k = 2, scores = \"sigmoid\", bias = \"attn_norm\""),
        ("[\"heads * head_dim\", \"hidden\"]", "[\"heads * head_dim\", 65]"),
        ("[\"experts\", \"hidden\", \"hidden\"]", "[\"experts\", \"hidden\", 40]"),
        ("[\"experts\", \"hidden\", \"hidden\"]", "[\"experts\", \"hidden\"]"),
        ("[\"experts\", \"hidden\", \"hidden\"]", "[2, \"hidden\", \"hidden\"]"),
        ("format = \"mxfp4\"", "format = \"q4_k\""),
        ("format = \"mxfp4\"", "format = 4"),
        ("format = \"mxfp4\"", "format = [\"mxfp4\", 4, \"mxfp4\"]"),
        ("format = \"mxfp4\"", "format = [\"mxfp4\", \"mxfp4\"]"),
        ("format = \"mxfp4\"", "format = [\"mxfp4\", \"bf16\", \"mxfp4\"]"),
        (ROUTER, Q4_K_ROUTER),
        ("format = \"f32\"", "format = \"int8\""),
        ("format = \"f32\"", "format = [\"f32\"]"),
        ("format = \"f32\"", "format = true"),
        ("from = \"embed\", shape = [8, \"hidden\"], format = \"bf16\" }", TABLE_WITH_SCALES),
        ("scales = \"{layer}.s\", ", "scales = \"{layer}.s\", transposed = true, "),
        ("shape = [\"hidden\"], ", "shape = [\"hidden\"], transposed = true, "),
        ("shape = [\"hidden\"], ", "shape = [\"head_dim\"], "),
        ("from = \"{layer}.q\", ", "from = \"{layer}.q\", plus = 1, "),
        ("op = \"rms_norm\", ", "op = \"layer_norm\", bias = \"head\", "),
        ("\"{layer}.q\"", "\"q\""),
        ("\"{layer}.q\"", "\"{layer}.{head}.q\""),
        ("\"{layer}.q\"", "\"{layer}.{expert}.q\""),
        ("\"{layer}.e\"", "\"{layer}.{expert}.e\""),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = \"third\""),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = 3"),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = { of = 128, take = 64 }"),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = { of = 128, take = \"64\" }"),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = { of = 128, take = \"0..hiden\" }"),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = { of = 128, take = \"64..129\" }"),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = { of = 128, take = \"64..64\" }"),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = { of = 50, take = \"0..48\" }"),
        ("\"{layer}.q\"", "\"{layer}.q\", rows = { of = 1000000000, take = \"0..1\" }"),
        ("op = \"embed\"", "op = \"embed\", by = \"place\""),
        ("op = \"embed\"", "op = \"embed\", by = \"position\""),
        ("kv_heads = 4", "kv_heads = 4, causal = false"),
        ("kv_heads = 4", "kv_heads = 4, causal = 0"),
        ("format = \"f32\"", "format = \"fp32\""),
        ("silu(gate) * up", "silu(gate) * upp"),
        ("silu(gate) * up", "sigmod(gate) * up"),
        ("silu(gate) * up", "clamp(gate, up)"),
        ("silu(gate) * up", "silu(gate, up)"),
        ("silu(gate) * up", "select(gate, up, 1)"),
        ("silu(gate) * up", "silu(gate) >= up"),
        ("out = \"q_rot\"", "out = \"q\""),
        ("{ x = \"y\" }", "{ x = \"z\" }"),
        ("{ x = \"y\" }", "{ x = \"q\", w = \"q\" }"),
        ("cycle = [\"window\", \"full\"]", "list = [\"window\", \"full\"]"),
        ("inputs = [\"x\", \"m\"]", "inputs = [\"x\", \"x\"]"),
        ("input = \"last\"", "input = \"x\""),
        ("op = \"logits\"", "op = \"linear\""),
        ("[tensors.head]", "[tensors.spare]\nfrom = \"s\"\nshape = [1]\nformat = \"f32\"\n[tensors.head]"),
    ];
    let mut told = String::new();
    for (from, to) in cases {
        told.push_str(&format!("{:?}\n", wrong(from, to)));
    }
    for (from, to) in block_tests::CASES {
        assert!(block_tests::RIGHT.contains(from), "{from}");
        let text = block_tests::RIGHT.replacen(from, to, 1);
        let error = Spec::parse("blocks.toml", &text).and_then(|spec| lower(&spec)).expect_err(to);
        told.push_str(&format!("{error:?}\n"));
    }
    expect_test::expect_file!["errors.txt"].assert_eq(&told);
}

/// Format of every tensor of layers of that name in the checkpoint.
fn stored(graph: &Graph, name: &str) -> Vec<&'static str> {
    let of_layers = graph.tensors.iter().filter(|t| t.name.rsplit('.').next() == Some(name));
    of_layers.map(|t| t.stored.name()).collect()
}

#[test]
fn layers_may_be_stored_in_different_formats() {
    let said = |format: &str| graph(&RIGHT.replacen(ROUTER, &ROUTER.replace("\"bf16\"", format), 1)).unwrap();
    let one = said("\"int8\"");
    assert_eq!(stored(&one, "router"), ["int8"; 3]);
    let list = said(r#"["int8", "f16", "nvfp4"]"#);
    assert_eq!(stored(&list, "router"), ["int8", "f32", "nvfp4"]);
    assert!(list.tensors.iter().all(|t| t.format == t.stored || t.name == "norm"));
}

#[test]
fn rows_may_be_pieces() {
    let rows = |rows: &str| {
        let graph =
            graph(&RIGHT.replacen("\"{layer}.q\"", &format!("\"{{layer}}.q\", rows = {rows}"), 1)).unwrap();
        graph.verify().unwrap();
        graph.tensors.iter().find(|t| t.name == "layers.1.q").unwrap().source.rows
    };
    assert_eq!(rows("\"even\""), RowSelect::EVEN);
    assert_eq!(rows("{ of = 2, take = \"1..2\" }"), RowSelect::ODD);
    assert_eq!(rows("{ of = \"heads\", take = \"0..heads\" }"), RowSelect::ALL);
    let piece = rows("{ of = \"3 * hidden\", take = \"hidden .. 2 * hidden\" }");
    assert_eq!((piece.of(), piece.take(), piece.stored(64)), (192, 64..128, Some(192)));
}

#[test]
fn scales_are_within_unless_they_have_a_name_of_their_own() {
    let scales = |from: &str, to: &str| -> Vec<Option<String>> {
        let graph = graph(&RIGHT.replacen(from, to, 1)).unwrap();
        let experts = graph.tensors.iter().filter(|t| t.name.ends_with(".e"));
        experts.map(|t| t.source.scales.clone()).collect()
    };
    assert_eq!(scales("", ""), ["0.s", "1.s", "2.s"].map(|name| Some(name.to_owned())));
    assert_eq!(scales("scales = \"{layer}.s\", ", ""), [None, None, None]);
    assert_eq!(scales("\"{layer}.s\"", "\"{layer}.e\""), [None, None, None]);
}

#[test]
fn logits_may_be_capped_and_gates_spread() {
    let after = "{ out = \"logits\", op = \"logits\", input = \"n\", weight = \"head\" },";
    let cap = r#"
  { out = "capped", op = "elementwise", inputs = ["logits"], expr = "30 * tanh(logits / 30)" },"#;
    let capped = graph(&RIGHT.replacen(after, &format!("{after}{cap}"), 1)).unwrap();
    assert!(
        capped.to_string().ends_with(
            "%capped = elementwise(\"(30.0 * tanh((x0 / 30.0)))\") %logits : f32[R, 8]\noutput %capped\n"
        ),
        "{capped}"
    );
    let add = "{ out = \"y\", op = \"add\", inputs = [\"x\", \"m\"] },";
    let gate = r#"{ out = "g", op = "linear", input = "x", weight = "gate" },
  { out = "y", op = "elementwise", inputs = ["x", "g", "m"], vectors = ["norm"], expr = "x + sigmoid(g) * m * norm" },"#;
    let weight =
        "[layer.tensors]\ngate = { from = \"{layer}.gate\", shape = [1, \"hidden\"], format = \"bf16\" }";
    let gated = RIGHT.replacen(add, gate, 1).replacen("[layer.tensors]", weight, 1);
    let text = graph(&gated).unwrap().to_string();
    let node =
        "broadcast(\"(x0 + ((sigmoid(x1) * x2) * x3))\") %x, %layers.0.g, %layers.0.m, @norm : f32[T, 64]";
    assert!(text.contains(node), "{text}");
    assert_eq!(text.parse::<Graph>().unwrap().to_string(), text);
    let error = |from: &str, to: &str| graph(&gated.replacen(from, to, 1)).unwrap_err().to_string();
    let wide = error("shape = [1, ", "shape = [2, ");
    assert!(wide.contains("`g` has 2 columns"), "{wide}");
    let other = gated.replacen("vectors = [\"norm\"]", "vectors = [\"head\"]", 1);
    let long = graph(&other.replacen("m * norm", "m * head", 1)).unwrap_err().to_string();
    assert!(long.contains("tensor `head`"), "{long}");
}

#[test]
fn norms_have_weights_as_the_model_has_them() {
    let of = |from: &str, to: &str| {
        let text = graph(&RIGHT.replacen(from, to, 1)).unwrap().to_string();
        assert_eq!(text.parse::<Graph>().unwrap().to_string(), text);
        text
    };
    let added = of("shape = [\"hidden\"], ", "shape = [\"hidden\"], plus = 1, ");
    assert!(added.contains("tensor @norm vector f32[64] from \"norm\" plus 1.0\n"), "{added}");
    let none = of(
        "{ out = \"n\", op = \"rms_norm\", input = \"last\", weight = \"norm\", eps = 1e-5 }",
        "{ out = \"m1\", op = \"rms_norm\", input = \"last\", eps = 1e-5 }, \
         { out = \"n\", op = \"layer_norm\", input = \"m1\", weight = \"norm\", bias = \"norm\", eps = 1e-5 }",
    );
    assert!(none.contains("%m1 = rms_norm(eps=1e-5) %last : f32[R, 64]\n"), "{none}");
    assert!(none.contains("%n = layer_norm(eps=1e-5) %m1, @norm, @norm : f32[R, 64]\n"), "{none}");
}

#[test]
fn a_part_of_each_head_may_rotate() {
    let keys = "theta = 1e4\nrotary_dim = 4\npairs = \"neighbours\"\nfactors = [1, \"heads\"]\nattention_factor = 1.5";
    let graph = graph(&RIGHT.replace("theta = 1e4", keys)).unwrap();
    let text = graph.to_string();
    let rope =
        "head_dim 16 theta 10000.0 plain rotary_dim 4 neighbours factors [1.0, 4.0] attention_factor 1.5\n";
    assert!(text.contains(rope), "{text}");
    assert!(text.contains("rope(rope=0, head_dim=16, rotary_dim=4, neighbours)"), "{text}");
    assert_eq!(text.parse::<Graph>().unwrap(), graph);
}

#[test]
fn linear_and_dynamic_scaling_lower() {
    let rope = |scaling: &str| {
        graph(&RIGHT.replace("theta = 1e4", &format!("theta = 1e4\nscaling = {scaling}"))).unwrap().ropes[0]
            .clone()
    };
    assert_eq!(rope("{ kind = \"linear\", factor = 2.5 }").scaling, RopeScaling::Linear { factor: 2.5 });
    let dynamic = "{ kind = \"dynamic\", factor = 4, original_context = 4096 }";
    assert_eq!(rope(dynamic).scaling, RopeScaling::Plain);
}

#[test]
fn errors_show_the_source() {
    let show = |error: SpecError, expect: Expect| {
        expect.assert_eq(&error.excerpt(false));
    };
    show(
        wrong("op = \"rope\"", "op = \"ropes\""),
        expect![[r#"
            error: unknown op `ropes`
              --> small.toml:31:25
               |
            31 |   { out = "q_rot", op = "ropes", input = "q", rope = "main" },
               |                         ^^^^^^^ expected one of: embed, rms_norm, layer_norm, linear, logits, rope, attention, router_topk, moe, elementwise, glu, add, mul, select_rows, embedding
               |
               = help: did you mean `rope`?
        "#]],
    );
}

#[test]
fn hostile_specs_do_not_panic() {
    for cut in 0..RIGHT.len() {
        let _ = graph(&RIGHT[..cut]);
        let _ = graph(&format!("{}{}", &RIGHT[..cut], &RIGHT[(cut + 3).min(RIGHT.len())..]));
    }
    for number in [
        "-1",
        "9223372036854775807",
        "\"9223372036854775807 * 9\"",
        "1e300",
        "nan",
        "\"\"",
        "0x7fffffffffffffff",
    ] {
        for line in [
            "hidden = 64",
            "layers = 3",
            "heads = 4",
            "experts = 4",
            "window = 8",
            "vocab = 8",
            "max_context = 32",
        ] {
            let key = line.split('=').next().unwrap();
            let _ = graph(&RIGHT.replacen(line, &format!("{key}= {number}"), 1));
        }
    }
    let blocks = block_tests::RIGHT;
    for cut in 0..blocks.len() {
        let _ = graph(&format!("{}{}", &blocks[..cut], &blocks[(cut + 3).min(blocks.len())..]));
    }
}

#[test]
fn inputs_are_rounded_as_the_spec_says() {
    let products = |text: &str, activations: Activations| -> Vec<String> {
        let graph = graph(text).unwrap();
        let kept = graph
            .nodes
            .iter()
            .filter(|node| node.op.matmul().is_some_and(|op| op.x == Factor::F32(activations)));
        kept.map(|node| graph.value(node.output).name.clone()).collect()
    };
    let f32_products = |text: &str| products(text, Activations::F32);
    assert_eq!(f32_products(RIGHT), Vec::<String>::new());
    let said = |of: &str, word: &str| RIGHT.replacen(of, &format!("{of}, activations = \"{word}\""), 1);
    let (q, head) = (r#"weight = "q""#, r#"weight = "head""#);
    assert_eq!(f32_products(&said(q, "preset")), Vec::<String>::new());
    assert_eq!(f32_products(&said(q, "f32")), ["layers.0.q", "layers.1.q", "layers.2.q"]);
    assert_eq!(f32_products(&said(q, "f32_in_last_layer")), ["layers.2.q"]);
    assert_eq!(f32_products(&said(head, "f32")), ["logits"]);
    assert_eq!(products(&said(q, "q8x2"), Activations::Q8x2), ["layers.0.q", "layers.1.q", "layers.2.q"]);
    let by_layer = said(q, "kept").replacen(
        "[layer.values]",
        "[layer.values]\nkept = { list = [\"f32\", \"preset\", \"q8x2\"] }",
        1,
    );
    assert_eq!(f32_products(&by_layer), ["layers.0.q"]);
    assert_eq!(products(&by_layer, Activations::Q8x2), ["layers.2.q"]);
    let error = graph(&by_layer.replacen("\"q8x2\"]", "\"full\"]", 1)).unwrap_err();
    assert!(error.excerpt(false).contains("unknown activations `full`"), "{}", error.excerpt(false));
    for (of, word, expected) in [
        (q, "f16", "unknown activations `f16`"),
        (q, "f32_in_last_layers", "did you mean `f32_in_last_layer`?"),
        (head, "f32_in_last_layer", "a node outside of the layers is in none of them"),
    ] {
        let error = graph(&said(of, word)).unwrap_err();
        let text = error.excerpt(false);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn groups_of_experts_are_checked_with_their_place() {
    let said = |k: u32, groups: &str| {
        let groups = format!(", scores = \"sigmoid\"{groups}");
        let text =
            RIGHT.replacen(r#"input = "scores", k = 2"#, &format!(r#"input = "scores", k = {k}{groups}"#), 1);
        graph(&text).map_err(|error| error.excerpt(false))
    };
    let routed = said(2, ", groups = 2, top_groups = 1").unwrap().to_string();
    assert!(routed.contains("router_topk(k=2, groups=1 of 2, scores=sigmoid)"), "{routed}");
    // A group that counts by its largest expert may have one expert only.
    let largest = said(2, ", groups = 4, top_groups = 3, group_score = \"largest\"").unwrap().to_string();
    assert!(largest.contains("router_topk(k=2, groups=3 of 4 by largest, scores=sigmoid)"), "{largest}");
    for (k, groups, expected) in [
        (2, ", group_score = \"largest\"", "`group_score` without `groups`"),
        (2, ", groups = 2, top_groups = 1, group_score = \"mean\"", "\"sum_of_two\" or \"largest\""),
        (2, ", groups = 2", "`groups` without `top_groups`"),
        (2, ", top_groups = 2", "`top_groups` without `groups`"),
        (2, ", groups = 3, top_groups = 1", "4 experts in 3 groups"),
        (2, ", groups = 4, top_groups = 3", "4 experts in 4 groups"),
        (2, ", groups = 2, top_groups = 3", "the best 3 of 2 groups"),
        (3, ", groups = 2, top_groups = 1", "top-3 of the 2 experts of 1 groups"),
        (2, ", groups = 0, top_groups = 1", "`groups` is 0"),
    ] {
        let text = said(k, groups).unwrap_err();
        assert!(text.contains(expected), "{text}");
    }
}
