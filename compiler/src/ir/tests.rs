use super::*;
use crate::testing::{ModelShape, build};
use expect_test::expect;
use proptest::prelude::*;

proptest! {
    #[test]
    fn text_parses_back(seed: u64) {
        let graph = build(&ModelShape::random(seed)).unwrap();
        prop_assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
    }

    /// Damaged text is an error or another graph, never a panic.
    #[test]
    fn damaged_text_never_panics(seed in 0u64..50, at: prop::sample::Index, with in "[ -~\n]{0,3}") {
        let mut text = build(&ModelShape::random(seed)).unwrap().to_string();
        let at = at.index(text.len() - 3);
        text.replace_range(at..at + 3, &with);
        let _ = text.parse::<Graph>();
    }
}

#[test]
fn mini_gpt_oss() {
    let shape = ModelShape { layers: 1, ..ModelShape::mini_gpt_oss() };
    expect![[r#"
        model "random" vocab 96 context 4096
        rope 0 head_dim 32 theta 10000.0 yarn factor 32.0 beta_fast 32.0 beta_slow 1.0 original_context 64.0 truncate false
        tensor @embed table bf16[96, 64] from "embed.weight"
        tensor @layers.0.attn_norm.weight vector bf16[64] from "layers.0.attn_norm.weight"
        tensor @layers.0.q.weight matrix bf16[128, 64] from "layers.0.q.weight"
        tensor @layers.0.q.bias vector bf16[128] from "layers.0.q.bias"
        tensor @layers.0.k.weight matrix bf16[64, 64] from "layers.0.k.weight"
        tensor @layers.0.k.bias vector bf16[64] from "layers.0.k.bias"
        tensor @layers.0.v.weight matrix bf16[64, 64] from "layers.0.v.weight"
        tensor @layers.0.v.bias vector bf16[64] from "layers.0.v.bias"
        tensor @layers.0.sinks vector bf16[4] from "layers.0.sinks"
        tensor @layers.0.o.weight matrix bf16[64, 128] from "layers.0.o.weight"
        tensor @layers.0.o.bias vector bf16[64] from "layers.0.o.bias"
        tensor @layers.0.mlp_norm.weight vector bf16[64] from "layers.0.mlp_norm.weight"
        tensor @layers.0.router.weight matrix bf16[4, 64] from "layers.0.router.weight"
        tensor @layers.0.router.bias vector bf16[4] from "layers.0.router.bias"
        tensor @layers.0.gate.weight expert_matrix mxfp4[4, 32, 64] from "layers.0.gate_up_blocks" scales "layers.0.gate_up_scales" rows even
        tensor @layers.0.gate.bias expert_vector bf16[4, 32] from "layers.0.gate_up_bias" rows even
        tensor @layers.0.up.weight expert_matrix mxfp4[4, 32, 64] from "layers.0.gate_up_blocks" scales "layers.0.gate_up_scales" rows odd
        tensor @layers.0.up.bias expert_vector bf16[4, 32] from "layers.0.gate_up_bias" rows odd
        tensor @layers.0.down.weight expert_matrix mxfp4[4, 64, 32] from "layers.0.down_blocks" scales "layers.0.down_scales"
        tensor @layers.0.down.bias expert_vector bf16[4, 64] from "layers.0.down_bias"
        tensor @norm.weight vector bf16[64] from "norm.weight"
        tensor @unembed matrix bf16[96, 64] from "unembed.weight"
        input %tokens : ids[T]
        %embed = embed %tokens, @embed : f32[T, 64]
        %layers.0.attn_norm = rms_norm(eps=1e-5) %embed, @layers.0.attn_norm.weight : f32[T, 64]
        %layers.0.q = linear %layers.0.attn_norm, @layers.0.q.weight, @layers.0.q.bias : f32[T, 128]
        %layers.0.k = linear %layers.0.attn_norm, @layers.0.k.weight, @layers.0.k.bias : f32[T, 64]
        %layers.0.v = linear %layers.0.attn_norm, @layers.0.v.weight, @layers.0.v.bias : f32[T, 64]
        %layers.0.q_rope = rope(rope=0, head_dim=32) %layers.0.q : f32[T, 128]
        %layers.0.k_rope = rope(rope=0, head_dim=32) %layers.0.k : f32[T, 64]
        %layers.0.attn = attention(layer=0, heads=4, kv_heads=2, head_dim=32, scale=0.17677669, window=8, kv=f32) %layers.0.q_rope, %layers.0.k_rope, %layers.0.v, @layers.0.sinks : f32[T, 128]
        %layers.0.o = linear %layers.0.attn, @layers.0.o.weight, @layers.0.o.bias : f32[T, 64]
        %layers.0.attn_out = add %embed, %layers.0.o : f32[T, 64]
        %layers.0.mlp_norm = rms_norm(eps=1e-5) %layers.0.attn_out, @layers.0.mlp_norm.weight : f32[T, 64]
        %layers.0.router = linear %layers.0.mlp_norm, @layers.0.router.weight, @layers.0.router.bias : f32[T, 4]
        %layers.0.topk = router_topk(k=2) %layers.0.router : routing[T, 2]
        %layers.0.gate = expert_linear %layers.0.mlp_norm, %layers.0.topk, @layers.0.gate.weight, @layers.0.gate.bias : f32[T*2, 32]
        %layers.0.up = expert_linear %layers.0.mlp_norm, %layers.0.topk, @layers.0.up.weight, @layers.0.up.bias : f32[T*2, 32]
        %layers.0.h = elementwise("((min(max(x1, -7.0), 7.0) + 1.0) * (min(x0, 7.0) * sigmoid((1.702 * min(x0, 7.0)))))") %layers.0.gate, %layers.0.up : f32[T*2, 32]
        %layers.0.down = expert_linear %layers.0.h, %layers.0.topk, @layers.0.down.weight, @layers.0.down.bias : f32[T*2, 64]
        %layers.0.experts = expert_sum %layers.0.down, %layers.0.topk : f32[T, 64]
        %layers.0.mlp_out = add %layers.0.attn_out, %layers.0.experts : f32[T, 64]
        %last = select_rows %layers.0.mlp_out : f32[R, 64]
        %norm = rms_norm(eps=1e-5) %last, @norm.weight : f32[R, 64]
        %logits = linear %norm, @unembed : f32[R, 96]
        output %logits
    "#]].assert_eq(&build(&shape).unwrap().to_string());
}

#[test]
fn escaped_names_parse_back() {
    let mut graph = build(&ModelShape::mini_llama()).unwrap();
    graph.name = "a \"model\"\\\nof two lines".into();
    assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
}

#[test]
fn parse_errors_say_where() {
    let good = build(&ModelShape::mini_gpt_oss()).unwrap().to_string();
    let mut errors = String::new();
    for (from, to) in [
        ("= linear %layers.0.attn_norm", "= lineal %layers.0.attn_norm"),
        ("%layers.1.q_rope = rope(rope=0", "%layers.1.q_rope = rope(rope=7"),
        ("rms_norm(eps=1e-5) %embed", "rms_norm(eps=1e-5) %embet"),
        ("@layers.0.o.weight matrix bf16[64, 128]", "@layers.0.o.weight matrix bf16[64, 127]"),
        ("%layers.0.v = ", "%layers.0.k = "),
        ("context 4096", "context many"),
        ("output %logits\n", ""),
        ("output %logits", "output %norm"),
        ("kv_heads=2", "kv_heads=3"),
        ("model", "modell"),
        ("head_dim=32) ", "head_dim=32 "),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        errors.push_str(&format!("{}\n", text.parse::<Graph>().unwrap_err()));
    }
    expect![[r#"
        line 47: unknown op `lineal`
        line 68: rope 7 is not defined, there are 1
        line 46: %embet is not defined before its use
        line 53: @layers.0.o.weight has shape [64, 127], expected [64, 128]
        line 49: %layers.0.k is defined twice
        line 1: expected a usize, found `many`
        line 84: no `output` line
        line 85: %norm: the output is f32[R, 64], expected f32[R, 96]
        line 52: heads = 4 are not a multiple of kv_heads = 3 (head_dim 32, v_head_dim 32)
        line 1: expected model, left_out, rope, tensor, input, output or a node, found `modell`
        line 50: expected `)` at `%layers.0.q : f32[T, 128]`
    "#]]
    .assert_eq(&errors);
}

#[test]
fn verifier_refuses() {
    let good = build(&ModelShape::mini_gpt_oss()).unwrap();
    let q = good.find_value("layers.0.q").unwrap();
    let table = good.find_tensor("embed").unwrap();
    let mut errors = String::new();
    let cases: [&dyn Fn(&mut Graph); 10] = [
        &|g| g.values[3].name = "tokens".into(),
        &|g| g.values[3].name = "two words".into(),
        &|g| g.values[q.0 as usize].ty = Type::F32(Rows::Tokens, 64),
        &|g| g.nodes.swap(2, 3),
        &|g| g.nodes[1].inputs[0] = ValueId(40),
        &|g| g.tensors[table.0 as usize].shape[0] = 95,
        &|g| g.tensors[table.0 as usize].role = Role::Matrix,
        &|g| g.output = q,
        &|g| g.ropes[0].theta = f64::NAN,
        &|g| {
            let attention = g.nodes.iter_mut().rev().find_map(|node| match &mut node.op {
                Op::Attention(attention) => Some(attention),
                _ => None,
            });
            attention.unwrap().layer = 5;
        },
    ];
    for damage in cases {
        let mut graph = good.clone();
        damage(&mut graph);
        errors.push_str(&format!("{}\n", graph.verify().unwrap_err()));
    }
    expect![[r#"
        %tokens: the name is used twice
        %two words: a name is made of letters, digits, `_`, `.` and `-`
        %layers.0.q (linear): its output is f32[T, 128], stated as f32[T, 64]
        %layers.0.q (linear): node 2 writes value 4, expected 3
        %layers.0.attn_norm (rms_norm): reads %logits, which is not defined before it
        %embed (embed): @embed has 95 rows, the vocabulary 96
        %embed (embed): table @embed is a matrix, expected a table
        %layers.0.q: the output is f32[T, 128], expected f32[R, 96]
        rope 0: theta = NaN, expected a number > 0
        %layers.1.attn: attention layer 5, expected 1
    "#]]
    .assert_eq(&errors);
}

impl Graph {
    /// The tensor of that name.
    pub fn find_tensor(&self, name: &str) -> Option<TensorId> {
        self.tensors.iter().position(|tensor| tensor.name == name).map(|i| TensorId(i as u32))
    }
}
