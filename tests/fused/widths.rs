//! Rules whose matrices have other widths, or another order, than those of the built-in rules: one kernel has
//! parts with heads and parts without.

use super::{Case, PRESETS, uses};
use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec};
use kernmill_compiler::passes::quant::Preset;
use kernmill_plan::target::Level;

/// q, k, v and a gate of the same norm.
const GATED: &str = r#"
name = "gated_qkv"
doc = "q, k, v and a gate of the same norm"
kernel = "matmul"
before = "qkv"
match = [
  { name = "norm", op = "rms_norm", inputs = ["x"], part = "prologue" },
  { name = "quant", op = "quantize_q8", inputs = ["norm"], part = "prologue", optional = true },
  { name = "gate", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "q", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "k", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "v", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "turned_q", op = "rope", inputs = ["q"], part = "epilogue" },
  { name = "turned_k", op = "rope", inputs = ["k"], part = "epilogue" },
  { name = "cast_k", op = "kv_cast", inputs = ["turned_k"], part = "epilogue", optional = true },
  { name = "cast_v", op = "kv_cast", inputs = ["v"], part = "epilogue", optional = true },
  { name = "attention", op = "attention", inputs = ["turned_q", "cast_k", "cast_v"], part = "context" },
]
outputs = ["turned_q", "cast_k", "cast_v", "gate"]
"#;

/// A dense gate and up, of which the rule names up first.
const UP_FIRST: &str = r#"
name = "up_first"
doc = "dense up and gate, their product, and its rounding"
kernel = "matmul"
priority = 900
match = [
  { name = "norm", op = "rms_norm", inputs = ["x"], part = "prologue" },
  { name = "quant", op = "quantize_q8", inputs = ["norm"], part = "prologue", optional = true },
  { name = "up", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "gate", op = ["linear", "quant_linear"], inputs = ["quant"], part = "root" },
  { name = "product", op = "glu", inputs = ["gate", "up"], part = "epilogue" },
  { name = "quant_out", op = "quantize_q8", inputs = ["product"], part = "epilogue", optional = true },
]
outputs = ["product", "quant_out"]
"#;

/// A layer of attention with heads of `head_dim`, gated by a matrix of `gate` rows, and a dense MLP of width
/// `inner`.
fn model(head_dim: usize, gate: usize, inner: usize) -> Graph {
    let text = format!(
        r#"
[model]
name = "widths"
vocab = 80
max_context = 128
[dims]
hidden = 64
layers = 2
[rope.main]
head_dim = {head_dim}
theta = 10000.0
[tensors]
table = {{ from = "table", shape = [80, "hidden"], format = "bf16" }}
norm = {{ from = "norm", shape = ["hidden"], format = "bf16" }}
[before]
node = [{{ out = "x", op = "embed", table = "table" }}]
[layer]
count = "layers"
carry = {{ x = "out" }}
node = [
  {{ out = "n", op = "rms_norm", input = "x", weight = "norm_a", eps = 1e-5 }},
  {{ out = "q", op = "linear", input = "n", weight = "q" }},
  {{ out = "k", op = "linear", input = "n", weight = "k" }},
  {{ out = "v", op = "linear", input = "n", weight = "v" }},
  {{ out = "turned_q", op = "rope", input = "q", rope = "main" }},
  {{ out = "turned_k", op = "rope", input = "k", rope = "main" }},
  {{ out = "a", op = "attention", q = "turned_q", k = "turned_k", v = "v", heads = 3, kv_heads = 1 }},
  {{ out = "o", op = "linear", input = "a", weight = "o" }},
  {{ out = "gate", op = "linear", input = "n", weight = "gate" }},
  {{ out = "open", op = "elementwise", inputs = ["gate"], expr = "sigmoid(gate)" }},
  {{ out = "g", op = "linear", input = "open", weight = "from_gate" }},
  {{ out = "y", op = "add", inputs = ["o", "g"] }},
  {{ out = "m", op = "rms_norm", input = "y", weight = "norm_b", eps = 1e-5 }},
  {{ out = "mlp_gate", op = "linear", input = "m", weight = "mlp_gate" }},
  {{ out = "mlp_up", op = "linear", input = "m", weight = "mlp_up" }},
  {{ out = "h", op = "glu", gate = "mlp_gate", up = "mlp_up", expr = "silu(gate) * up" }},
  {{ out = "down", op = "linear", input = "h", weight = "down" }},
  {{ out = "out", op = "add", inputs = ["y", "down"] }},
]
[layer.tensors]
norm_a = {{ from = "{{layer}}.norm_a", shape = ["hidden"], format = "bf16" }}
norm_b = {{ from = "{{layer}}.norm_b", shape = ["hidden"], format = "bf16" }}
q = {{ from = "{{layer}}.q", shape = [{q}, "hidden"], format = "bf16" }}
k = {{ from = "{{layer}}.k", shape = [{head_dim}, "hidden"], format = "bf16" }}
v = {{ from = "{{layer}}.v", shape = [{head_dim}, "hidden"], format = "bf16" }}
o = {{ from = "{{layer}}.o", shape = ["hidden", {q}], format = "bf16" }}
gate = {{ from = "{{layer}}.gate", shape = [{gate}, "hidden"], format = "bf16" }}
from_gate = {{ from = "{{layer}}.from_gate", shape = ["hidden", {gate}], format = "bf16" }}
mlp_gate = {{ from = "{{layer}}.mlp_gate", shape = [{inner}, "hidden"], format = "bf16" }}
mlp_up = {{ from = "{{layer}}.mlp_up", shape = [{inner}, "hidden"], format = "bf16" }}
down = {{ from = "{{layer}}.down", shape = ["hidden", {inner}], format = "bf16" }}
[after]
node = [
  {{ out = "last", op = "select_rows", input = "x" }},
  {{ out = "final", op = "rms_norm", input = "last", weight = "norm", eps = 1e-5 }},
  {{ out = "logits", op = "logits", input = "final", weight = "table_out" }},
]
"#,
        q = 3 * head_dim
    );
    let text = text.replace(
        "[before]",
        "table_out = { from = \"table\", shape = [80, \"hidden\"], format = \"bf16\" }\n[before]",
    );
    lower(&Spec::parse("widths.toml", &text).unwrap()).unwrap()
}

/// The lowest and the highest level that the machine has, each preset, tokens one by one and several at a
/// time: the interpreter's bits.
fn check(case: &Case, set: &FusedSet, what: &str) {
    let levels = Level::supported();
    for preset in PRESETS {
        let expected: Vec<u32> = case.expected(preset).iter().map(|x| x.to_bits()).collect();
        for level in [levels[0], levels[levels.len() - 1]] {
            let compiled = case.compile(set, preset, level);
            for pieces in [&[1][..], &[7, 9, 3]] {
                let actual: Vec<u32> = case.logits(&compiled, pieces).iter().map(|x| x.to_bits()).collect();
                assert!(actual == expected, "{what}, {}, {}, {pieces:?}", preset.name(), level.name());
            }
        }
    }
}

fn with(rule: &str) -> FusedSet {
    FusedSet::builtin().with(vec![FusedSpec::parse("rule.toml", rule).unwrap()]).unwrap()
}

/// Gates narrower than a head, wider, and no multiple of it; a multiple of 32 each, so that every preset
/// takes them.
#[test]
fn heads_and_other_widths_share_a_kernel() {
    let into_buffers = with(GATED);
    let into_the_cache = with(&format!("{GATED}kv_write = [\"cast_k\", \"cast_v\"]\n"));
    for (set, head_dim, gate) in [
        (&into_buffers, 64, 96),
        (&into_the_cache, 64, 32),
        (&into_the_cache, 96, 64),
        (&into_buffers, 32, 160),
    ] {
        let case = Case::new(model(head_dim, gate, 64));
        let compiled = case.compile(set, Preset::Faithful, Level::V3);
        assert_eq!(uses(&compiled, "gated_qkv"), 2, "{head_dim}, {gate}");
        check(&case, set, &format!("heads of {head_dim}, a gate of {gate}"));
    }
}

#[test]
fn matrices_may_be_named_in_another_order_than_they_lie_in_memory() {
    let set = with(UP_FIRST);
    for inner in [96, 160] {
        let case = Case::new(model(32, 64, inner));
        let compiled = case.compile(&set, Preset::Faithful, Level::V3);
        let group =
            compiled.fused.groups.iter().find(|group| group.rule.as_deref() == Some("up_first")).unwrap();
        assert_eq!((group.roots.len(), group.epilogue.len()), (2, 2), "{inner}");
        check(&case, &set, &format!("an MLP of {inner}"));
    }
}
