//! Graphs of the presets.

use super::*;
use crate::testing::{Mlp, ModelShape, build};
use expect_test::expect;

#[test]
fn widths_without_blocks_are_for_preset_exact() {
    for (shape, place, cols) in [
        (ModelShape { hidden: 80, ..ModelShape::mini_gpt_oss() }, "%layers.0.attn_norm", 80),
        (ModelShape { mlp: Mlp::Dense { inner: 48 }, ..ModelShape::mini_gpt_oss() }, "%layers.0.h", 48),
    ] {
        let shape = ModelShape { layers: 1, mlp: Mlp::Dense { inner: 48 }, ..shape };
        let graph = build(&shape).unwrap();
        assert!(quantise(&graph, Preset::Exact).is_ok());
        let error = quantise(&graph, Preset::Faithful).unwrap_err().to_string();
        let expected =
            format!("{place}: it has {cols} columns, and preset faithful rounds it in blocks of 32");
        assert!(error.starts_with(&expected) && error.contains("preset exact"), "{error}");
    }
}

#[test]
fn faithful_mini_gpt_oss() {
    let shape = ModelShape { layers: 1, ..ModelShape::mini_gpt_oss() };
    let graph = quantise(&build(&shape).unwrap(), Preset::Faithful).unwrap();
    let text = graph.to_string();
    assert_eq!(text.parse::<Graph>().unwrap(), graph);
    expect![[r#"
        model "random" vocab 96 context 4096
        rope 0 head_dim 32 theta 10000.0 yarn factor 32.0 beta_fast 32.0 beta_slow 1.0 original_context 64.0 truncate false
        tensor @embed table bf16[96, 64] from "embed.weight"
        tensor @layers.0.attn_norm.weight vector f32[64] stored bf16 from "layers.0.attn_norm.weight"
        tensor @layers.0.q.weight matrix int8[128, 64] stored bf16 from "layers.0.q.weight"
        tensor @layers.0.q.bias vector f32[128] stored bf16 from "layers.0.q.bias"
        tensor @layers.0.k.weight matrix int8[64, 64] stored bf16 from "layers.0.k.weight"
        tensor @layers.0.k.bias vector f32[64] stored bf16 from "layers.0.k.bias"
        tensor @layers.0.v.weight matrix int8[64, 64] stored bf16 from "layers.0.v.weight"
        tensor @layers.0.v.bias vector f32[64] stored bf16 from "layers.0.v.bias"
        tensor @layers.0.sinks vector f32[4] stored bf16 from "layers.0.sinks"
        tensor @layers.0.o.weight matrix int8[64, 128] stored bf16 from "layers.0.o.weight"
        tensor @layers.0.o.bias vector f32[64] stored bf16 from "layers.0.o.bias"
        tensor @layers.0.mlp_norm.weight vector f32[64] stored bf16 from "layers.0.mlp_norm.weight"
        tensor @layers.0.router.weight matrix bf16[4, 64] from "layers.0.router.weight"
        tensor @layers.0.router.bias vector f32[4] stored bf16 from "layers.0.router.bias"
        tensor @layers.0.gate.weight expert_matrix mxfp4[4, 32, 64] from "layers.0.gate_up_blocks" scales "layers.0.gate_up_scales" rows even
        tensor @layers.0.gate.bias expert_vector f32[4, 32] stored bf16 from "layers.0.gate_up_bias" rows even
        tensor @layers.0.up.weight expert_matrix mxfp4[4, 32, 64] from "layers.0.gate_up_blocks" scales "layers.0.gate_up_scales" rows odd
        tensor @layers.0.up.bias expert_vector f32[4, 32] stored bf16 from "layers.0.gate_up_bias" rows odd
        tensor @layers.0.down.weight expert_matrix mxfp4[4, 64, 32] from "layers.0.down_blocks" scales "layers.0.down_scales"
        tensor @layers.0.down.bias expert_vector f32[4, 64] stored bf16 from "layers.0.down_bias"
        tensor @norm.weight vector f32[64] stored bf16 from "norm.weight"
        tensor @unembed matrix int8[96, 64] stored bf16 from "unembed.weight"
        input %tokens : ids[T]
        %embed = embed %tokens, @embed : f32[T, 64]
        %layers.0.attn_norm = rms_norm(eps=1e-5) %embed, @layers.0.attn_norm.weight : f32[T, 64]
        %layers.0.attn_norm.q8 = quantize_q8 %layers.0.attn_norm : q8[T, 64]
        %layers.0.q = quant_linear %layers.0.attn_norm.q8, @layers.0.q.weight, @layers.0.q.bias : f32[T, 128]
        %layers.0.k = quant_linear %layers.0.attn_norm.q8, @layers.0.k.weight, @layers.0.k.bias : f32[T, 64]
        %layers.0.v = quant_linear %layers.0.attn_norm.q8, @layers.0.v.weight, @layers.0.v.bias : f32[T, 64]
        %layers.0.q_rope = rope(rope=0, head_dim=32) %layers.0.q : f32[T, 128]
        %layers.0.k_rope = rope(rope=0, head_dim=32) %layers.0.k : f32[T, 64]
        %layers.0.attn.k_cast = kv_cast %layers.0.k_rope : f16[T, 64]
        %layers.0.attn.v_cast = kv_cast %layers.0.v : f16[T, 64]
        %layers.0.attn = attention(layer=0, heads=4, kv_heads=2, head_dim=32, scale=0.17677669, window=8, kv=f16) %layers.0.q_rope, %layers.0.attn.k_cast, %layers.0.attn.v_cast, @layers.0.sinks : f32[T, 128]
        %layers.0.attn.q8 = quantize_q8 %layers.0.attn : q8[T, 128]
        %layers.0.o = quant_linear %layers.0.attn.q8, @layers.0.o.weight, @layers.0.o.bias : f32[T, 64]
        %layers.0.attn_out = add %embed, %layers.0.o : f32[T, 64]
        %layers.0.mlp_norm = rms_norm(eps=1e-5) %layers.0.attn_out, @layers.0.mlp_norm.weight : f32[T, 64]
        %layers.0.router = linear %layers.0.mlp_norm, @layers.0.router.weight, @layers.0.router.bias : f32[T, 4]
        %layers.0.topk = router_topk(k=2) %layers.0.router : routing[T, 2]
        %layers.0.mlp_norm.q8 = quantize_q8 %layers.0.mlp_norm : q8[T, 64]
        %layers.0.gate = quant_expert_linear %layers.0.mlp_norm.q8, %layers.0.topk, @layers.0.gate.weight, @layers.0.gate.bias : f32[T*2, 32]
        %layers.0.up = quant_expert_linear %layers.0.mlp_norm.q8, %layers.0.topk, @layers.0.up.weight, @layers.0.up.bias : f32[T*2, 32]
        %layers.0.h = elementwise("((min(max(x1, -7.0), 7.0) + 1.0) * (min(x0, 7.0) * sigmoid((1.702 * min(x0, 7.0)))))") %layers.0.gate, %layers.0.up : f32[T*2, 32]
        %layers.0.h.q8 = quantize_q8 %layers.0.h : q8[T*2, 32]
        %layers.0.down = quant_expert_linear %layers.0.h.q8, %layers.0.topk, @layers.0.down.weight, @layers.0.down.bias : f32[T*2, 64]
        %layers.0.experts = expert_sum %layers.0.down, %layers.0.topk : f32[T, 64]
        %layers.0.mlp_out = add %layers.0.attn_out, %layers.0.experts : f32[T, 64]
        %last = select_rows %layers.0.mlp_out : f32[R, 64]
        %norm = rms_norm(eps=1e-5) %last, @norm.weight : f32[R, 64]
        %norm.q8 = quantize_q8 %norm : q8[R, 64]
        %logits = quant_linear %norm.q8, @unembed : f32[R, 96]
        output %logits
    "#]].assert_eq(&text);
}

#[test]
fn presets_have_their_forms() {
    for seed in 0..100 {
        let graph = build(&ModelShape::random(seed)).unwrap();
        let exact = quantise(&graph, Preset::Exact).unwrap();
        assert_eq!(exact.nodes, graph.nodes);
        let faithful = quantise(&graph, Preset::Faithful).unwrap();
        verify(&exact, Preset::Exact).unwrap();
        verify(&exact, Preset::Faithful).unwrap_err();
        verify(&faithful, Preset::Exact).unwrap_err();
        assert_eq!(faithful.to_string().parse::<Graph>().unwrap(), faithful);
        let uses = Uses::new(&faithful);
        for (_, node) in faithful.nodes() {
            for &value in &node.inputs {
                let quants = uses.users(value).iter();
                let quants = quants.filter(|&&user| faithful.node(user).op == Round::Q8.into()).count();
                assert!(quants <= 1, "seed {seed}: one quantize_q8 per value");
            }
        }
    }
}

#[test]
fn bf16_is_faithful_but_for_the_experts() {
    let shape = ModelShape { layers: 1, ..ModelShape::mini_gpt_oss() };
    let graph = build(&shape).unwrap();
    let faithful = quantise(&graph, Preset::Faithful).unwrap();
    let bf16 = quantise(&graph, Preset::Bf16).unwrap();
    assert_eq!(bf16.tensors, faithful.tensors);
    let text = bf16.to_string();
    assert_eq!(text.parse::<Graph>().unwrap(), bf16);
    let of_faithful = faithful.to_string();
    let theirs: Vec<&str> = of_faithful.lines().collect();
    let own: Vec<&str> = text.lines().filter(|line| !theirs.contains(line)).collect();
    expect![[r#"
        %layers.0.mlp_norm.bf16 = bf16_cast %layers.0.mlp_norm : bf16[T, 64]
        %layers.0.gate = bf16_expert_linear %layers.0.mlp_norm.bf16, %layers.0.topk, @layers.0.gate.weight, @layers.0.gate.bias : f32[T*2, 32]
        %layers.0.up = bf16_expert_linear %layers.0.mlp_norm.bf16, %layers.0.topk, @layers.0.up.weight, @layers.0.up.bias : f32[T*2, 32]
        %layers.0.h.bf16 = bf16_cast %layers.0.h : bf16[T*2, 32]
        %layers.0.down = bf16_expert_linear %layers.0.h.bf16, %layers.0.topk, @layers.0.down.weight, @layers.0.down.bias : f32[T*2, 64]"#]]
    .assert_eq(&own.join("\n"));
    for (of, preset) in [(&faithful, Preset::Bf16), (&bf16, Preset::Faithful), (&bf16, Preset::Exact)] {
        verify(of, preset).unwrap_err();
    }
}

#[test]
fn experts_that_are_not_mxfp4_take_q8_in_bf16() {
    let mlp = Mlp::Experts { experts: 2, top_k: 1, inner: 32, format: WeightFormat::Bf16 };
    let graph = build(&ModelShape { mlp, ..ModelShape::mini_gpt_oss() }).unwrap();
    assert_eq!(quantise(&graph, Preset::Bf16).unwrap(), quantise(&graph, Preset::Faithful).unwrap());
}

#[test]
fn plain_experts_become_int8_and_the_router_stays() {
    let mlp = Mlp::Experts { experts: 2, top_k: 1, inner: 32, format: WeightFormat::Bf16 };
    let graph = build(&ModelShape { mlp, ..ModelShape::mini_gpt_oss() }).unwrap();
    let graph = quantise(&graph, Preset::Faithful).unwrap();
    let format = |name: &str| graph.tensor(graph.find_tensor(name).unwrap()).format;
    assert_eq!(format("layers.0.gate.weight"), WeightFormat::Int8);
    assert_eq!(format("layers.0.router.weight"), WeightFormat::Bf16);
    assert_eq!(format("embed"), WeightFormat::Bf16);
    assert_eq!(format("layers.0.q.bias"), WeightFormat::F32);
}

#[test]
fn fast_needs_choices_and_keeps_to_them() {
    let graph = build(&ModelShape::mini_gpt_oss()).unwrap();
    let error = quantise(&graph, Preset::Fast).unwrap_err();
    assert_eq!(error, QuantError::NeedsChoices(Preset::Fast));
    let mut choices = FormatChoices::assumed(&graph);
    let held_back = graph.find_tensor("layers.0.k.weight").unwrap();
    choices.list.iter_mut().find(|c| c.tensor == held_back).unwrap().format = WeightFormat::Int8;
    let fast = quantise_chosen(&graph, Preset::Fast, Some(&choices)).unwrap();
    let faithful = quantise(&graph, Preset::Faithful).unwrap();
    assert_eq!(fast.nodes, faithful.nodes);
    for (id, (a, b)) in fast.tensors.iter().zip(&faithful.tensors).enumerate() {
        let chosen = choices.of(TensorId(id as u32));
        assert_eq!(a.format, chosen.map_or(b.format, |c| c.format), "{}", a.name);
    }
    verify(&fast, Preset::Faithful).unwrap_err();
    verify(&faithful, Preset::Fast).unwrap();
}

#[test]
fn int4_elsewhere_is_not_fast() {
    let graph = build(&ModelShape::mini_llama()).unwrap();
    let mut fast = quantise_chosen(&graph, Preset::Fast, Some(&FormatChoices::assumed(&graph))).unwrap();
    verify(&fast, Preset::Fast).unwrap();
    let gate = fast.find_tensor("layers.0.gate.weight").unwrap();
    fast.tensors[gate.0 as usize].format = WeightFormat::Int4;
    let error = verify(&fast, Preset::Fast).unwrap_err();
    assert_eq!(error.to_string(), "@layers.0.gate.weight: is int4, preset fast has int8");
}

/// The op, and the formats of the input and of the matrix, of each product of a graph.
fn products(graph: &Graph) -> Vec<String> {
    let products =
        graph.nodes.iter().filter(|node| node.op.matmul().is_some_and(|op| op.rows == MatrixRows::All));
    let text = |node: &Node| {
        let input = graph.value(node.inputs[0]).ty.text();
        let input = input.split('[').next().unwrap_or_default();
        let name = &graph.value(node.output).name;
        format!("{name} {} {input} {}", node.kind(), graph.tensor(node.tensors[0]).format.name())
    };
    products.map(text).collect()
}

#[test]
fn inputs_that_are_to_be_f32_meet_int8_matrices() {
    let shape = ModelShape { layers: 1, inputs: (Activations::F32, 2), ..ModelShape::mini_llama() };
    let graph = build(&shape).unwrap();
    assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
    for preset in [Preset::Faithful, Preset::Bf16] {
        let quantised = quantise(&graph, preset).unwrap();
        expect![[r#"
            layers.0.q quant_linear q8 int8
            layers.0.k linear f32 int8
            layers.0.v quant_linear q8 int8
            layers.0.o linear f32 int8
            layers.0.gate quant_linear q8 int8
            layers.0.up linear f32 int8
            layers.0.down quant_linear q8 int8
            logits linear f32 int8
        "#]]
        .assert_eq(&(products(&quantised).join("\n") + "\n"));
        assert_eq!(quantised.to_string().parse::<Graph>().unwrap(), quantised);
        // A product of f32 that no spec asked for is a fault of the pass.
        let mut other = quantised.clone();
        let f32_product = MatMul { x: Factor::F32(Activations::F32), ..MatMul::LINEAR }.into();
        other.nodes.iter_mut().filter(|node| node.op == f32_product).for_each(|node| {
            node.op = MatMul::LINEAR.into();
        });
        verify(&other, preset).unwrap_err();
    }
    let exact = quantise(&graph, Preset::Exact).unwrap();
    assert!(products(&exact).iter().all(|product| product.ends_with("linear f32 bf16")));
}

#[test]
fn products_of_two_terms_share_the_rows_with_those_of_one() {
    let shape = ModelShape { layers: 1, inputs: (Activations::Q8x2, 3), ..ModelShape::mini_llama() };
    let graph = build(&shape).unwrap();
    assert_eq!(graph.to_string().parse::<Graph>().unwrap(), graph);
    for preset in [Preset::Faithful, Preset::Bf16] {
        let quantised = quantise(&graph, preset).unwrap();
        expect![[r#"
            layers.0.q quant_linear q8x2 int8
            layers.0.k quant_linear q8x2 int8
            layers.0.v quant_linear q8x2 int8
            layers.0.o quant_linear q8 int8
            layers.0.gate quant_linear q8x2 int8
            layers.0.up quant_linear q8x2 int8
            layers.0.down quant_linear q8 int8
            logits quant_linear q8 int8
        "#]]
        .assert_eq(&(products(&quantised).join("\n") + "\n"));
        assert_eq!(quantised.to_string().parse::<Graph>().unwrap(), quantised);
    }
    let exact = quantise(&graph, Preset::Exact).unwrap();
    assert!(products(&exact).iter().all(|product| product.ends_with("linear f32 bf16")));
}

#[test]
fn matrices_of_4_bits_have_rounded_inputs() {
    let graph =
        build(&ModelShape { layers: 1, inputs: (Activations::F32, 1), ..ModelShape::mini_llama() }).unwrap();
    let mut choices = FormatChoices::assumed(&graph);
    let held_back = graph.find_tensor("layers.0.k.weight").unwrap();
    choices.list.iter_mut().find(|choice| choice.tensor == held_back).unwrap().format = WeightFormat::Int8;
    let fast = products(&quantise_chosen(&graph, Preset::Fast, Some(&choices)).unwrap());
    for product in &fast {
        let four_bits = product.ends_with("int4");
        assert_eq!(product.contains("quant_linear q8"), four_bits, "{product}");
        assert_eq!(product.contains(" linear f32"), !four_bits, "{product}");
    }
    assert!(
        fast.contains(&"layers.0.k linear f32 int8".to_owned())
            && fast.contains(&"logits quant_linear q8 int4".to_owned())
    );
}

#[test]
fn routers_are_as_stored_whatever_their_input_is_said_to_be() {
    for every in [0, 1] {
        let shape = ModelShape { inputs: (Activations::F32, every), ..ModelShape::mini_gpt_oss() };
        let graph = quantise(&build(&shape).unwrap(), Preset::Faithful).unwrap();
        let router = graph.find_tensor("layers.1.router.weight").unwrap();
        assert_eq!(graph.tensor(router).format, WeightFormat::Bf16);
    }
}

#[test]
fn products_in_f32_need_blocks_for_their_matrices_too() {
    let shape = ModelShape { hidden: 80, inputs: (Activations::F32, 1), ..ModelShape::mini_llama() };
    let graph = build(&shape).unwrap();
    assert!(quantise(&graph, Preset::Exact).is_ok());
    let error = quantise(&graph, Preset::Faithful).unwrap_err().to_string();
    assert!(error.contains("80 columns") && error.contains("a multiple of 32"), "{error}");
}
