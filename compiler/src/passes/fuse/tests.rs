use super::*;
use crate::interp::Interpreter;
use crate::ir::lora::with_adapters;
use crate::ir::ops::Packed;
use crate::ir::{Graph, GraphMat, Node, NodeId, OpKind, TensorId};
use crate::passes::layout::gate_up_pairs;
use crate::passes::quant::choose::FormatChoices;
use crate::passes::quant::{Preset, quantise_chosen};
use crate::testing::{ModelShape, Rng, Twist, build, random_weights};
use expect_test::expect;
use kernmill_kernels_gen::row_op::RowOp;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;

const LEVEL: Level = Level::V4Vnni;

fn quantised(graph: &Graph, preset: Preset) -> Graph {
    quantise_chosen(graph, preset, Some(&FormatChoices::assumed(graph))).unwrap()
}

fn mini(shape: &ModelShape, preset: Preset) -> (FusedGraph, FusionReport) {
    let graph = quantised(&build(shape).unwrap(), preset);
    let (fused, report) = fuse(&graph, FusedSet::builtin().rules(), LEVEL);
    fused.verify().unwrap();
    (fused, report)
}

/// A unit whose gate has no activation is `mul` in the graph, whichever op the spec has.
#[test]
fn a_bilinear_unit_fuses_as_others_do() {
    let graph = build(&ModelShape::mini_llama()).unwrap().to_string();
    let bilinear: Graph = graph.replace("elementwise(\"(silu(x0) * x1)\")", "mul").parse().unwrap();
    let bilinear = quantised(&bilinear, Preset::Faithful);
    assert_eq!(bilinear.nodes.iter().filter(|node| node.kind().name == "mul").count(), 2);
    assert_eq!(gate_up_pairs(&bilinear).len(), 2);
    let (fused, _) = fuse(&bilinear, FusedSet::builtin().rules(), LEVEL);
    assert_eq!(fused.groups.iter().filter(|group| group.name() == "mlp_gate_up").count(), 2);
}

#[test]
fn faithful_mini_gpt_oss() {
    let shape = ModelShape { layers: 1, ..ModelShape::mini_gpt_oss() };
    let (fused, report) = mini(&shape, Preset::Faithful);
    let missed: Vec<&str> = report.near_misses.iter().map(|miss| miss.rule.as_str()).collect();
    assert_eq!(missed, ["moe_router"]);
    expect![[r#"
        group 0 embed (%tokens) -> %embed
          root     %embed = embed %tokens, @embed : f32[T, 64]
        group 1 qkv (%embed) -> %layers.0.q_rope, %layers.0.attn.k_cast, %layers.0.attn.v_cast
          prologue %layers.0.attn_norm = rms_norm(eps=1e-5) %embed, @layers.0.attn_norm.weight : f32[T, 64]
          prologue %layers.0.attn_norm.q8 = quantize_q8 %layers.0.attn_norm : q8[T, 64]
          root     %layers.0.q = quant_linear %layers.0.attn_norm.q8, @layers.0.q.weight, @layers.0.q.bias : f32[T, 128]
          root     %layers.0.k = quant_linear %layers.0.attn_norm.q8, @layers.0.k.weight, @layers.0.k.bias : f32[T, 64]
          root     %layers.0.v = quant_linear %layers.0.attn_norm.q8, @layers.0.v.weight, @layers.0.v.bias : f32[T, 64]
          epilogue %layers.0.q_rope = rope(rope=0, head_dim=32) %layers.0.q : f32[T, 128]
          epilogue %layers.0.k_rope = rope(rope=0, head_dim=32) %layers.0.k : f32[T, 64]
          epilogue %layers.0.attn.k_cast = kv_cast %layers.0.k_rope : f16[T, 64]
          epilogue %layers.0.attn.v_cast = kv_cast %layers.0.v : f16[T, 64]
        group 2 attention (%layers.0.q_rope, %layers.0.attn.k_cast, %layers.0.attn.v_cast) -> %layers.0.attn.q8
          root     %layers.0.attn = attention(layer=0, heads=4, kv_heads=2, head_dim=32, scale=0.17677669, window=8, kv=f16) %layers.0.q_rope, %layers.0.attn.k_cast, %layers.0.attn.v_cast, @layers.0.sinks : f32[T, 128]
          epilogue %layers.0.attn.q8 = quantize_q8 %layers.0.attn : q8[T, 128]
        group 3 linear_residual (%embed, %layers.0.attn.q8) -> %layers.0.attn_out
          root     %layers.0.o = quant_linear %layers.0.attn.q8, @layers.0.o.weight, @layers.0.o.bias : f32[T, 64]
          epilogue %layers.0.attn_out = add %embed, %layers.0.o : f32[T, 64]
        group 4 moe_gate_up (%layers.0.attn_out) -> %layers.0.topk, %layers.0.h.q8
          prologue %layers.0.mlp_norm = rms_norm(eps=1e-5) %layers.0.attn_out, @layers.0.mlp_norm.weight : f32[T, 64]
          prologue %layers.0.router = linear %layers.0.mlp_norm, @layers.0.router.weight, @layers.0.router.bias : f32[T, 4]
          prologue %layers.0.topk = router_topk(k=2) %layers.0.router : routing[T, 2]
          prologue %layers.0.mlp_norm.q8 = quantize_q8 %layers.0.mlp_norm : q8[T, 64]
          root     %layers.0.gate = quant_expert_linear %layers.0.mlp_norm.q8, %layers.0.topk, @layers.0.gate.weight, @layers.0.gate.bias : f32[T*2, 32]
          root     %layers.0.up = quant_expert_linear %layers.0.mlp_norm.q8, %layers.0.topk, @layers.0.up.weight, @layers.0.up.bias : f32[T*2, 32]
          epilogue %layers.0.h = elementwise("((min(max(x1, -7.0), 7.0) + 1.0) * (min(x0, 7.0) * sigmoid((1.702 * min(x0, 7.0)))))") %layers.0.gate, %layers.0.up : f32[T*2, 32]
          epilogue %layers.0.h.q8 = quantize_q8 %layers.0.h : q8[T*2, 32]
        group 5 moe_down (%layers.0.attn_out, %layers.0.topk, %layers.0.h.q8) -> %layers.0.mlp_out
          root     %layers.0.down = quant_expert_linear %layers.0.h.q8, %layers.0.topk, @layers.0.down.weight, @layers.0.down.bias : f32[T*2, 64]
          epilogue %layers.0.experts = expert_sum %layers.0.down, %layers.0.topk : f32[T, 64]
          epilogue %layers.0.mlp_out = add %layers.0.attn_out, %layers.0.experts : f32[T, 64]
        group 6 logits (%layers.0.mlp_out) -> %logits
          prologue %last = select_rows %layers.0.mlp_out : f32[R, 64]
          prologue %norm = rms_norm(eps=1e-5) %last, @norm.weight : f32[R, 64]
          prologue %norm.q8 = quantize_q8 %norm : q8[R, 64]
          root     %logits = quant_linear %norm.q8, @unembed : f32[R, 96]
        output %logits
    "#]].assert_eq(&fused.to_string());
}

#[test]
fn exact_mini_llama() {
    let shape = ModelShape { layers: 1, ..ModelShape::mini_llama() };
    let (fused, report) = mini(&shape, Preset::Exact);
    assert_eq!(report.near_misses, []);
    expect![[r#"
        group 0 embed (%tokens) -> %embed
          root     %embed = embed %tokens, @embed : f32[T, 64]
        group 1 qkv (%embed) -> %layers.0.v, %layers.0.q_rope, %layers.0.k_rope
          prologue %layers.0.attn_norm = rms_norm(eps=1e-5) %embed, @layers.0.attn_norm.weight : f32[T, 64]
          root     %layers.0.q = linear %layers.0.attn_norm, @layers.0.q.weight : f32[T, 128]
          root     %layers.0.k = linear %layers.0.attn_norm, @layers.0.k.weight : f32[T, 64]
          root     %layers.0.v = linear %layers.0.attn_norm, @layers.0.v.weight : f32[T, 64]
          epilogue %layers.0.q_rope = rope(rope=0, head_dim=32) %layers.0.q : f32[T, 128]
          epilogue %layers.0.k_rope = rope(rope=0, head_dim=32) %layers.0.k : f32[T, 64]
        group 2 attention (%layers.0.v, %layers.0.q_rope, %layers.0.k_rope) -> %layers.0.attn
          root     %layers.0.attn = attention(layer=0, heads=4, kv_heads=2, head_dim=32, scale=0.17677669, kv=f32) %layers.0.q_rope, %layers.0.k_rope, %layers.0.v : f32[T, 128]
        group 3 linear_residual (%embed, %layers.0.attn) -> %layers.0.attn_out
          root     %layers.0.o = linear %layers.0.attn, @layers.0.o.weight : f32[T, 64]
          epilogue %layers.0.attn_out = add %embed, %layers.0.o : f32[T, 64]
        group 4 mlp_gate_up (%layers.0.attn_out) -> %layers.0.h
          prologue %layers.0.mlp_norm = rms_norm(eps=1e-5) %layers.0.attn_out, @layers.0.mlp_norm.weight : f32[T, 64]
          root     %layers.0.gate = linear %layers.0.mlp_norm, @layers.0.gate.weight : f32[T, 96]
          root     %layers.0.up = linear %layers.0.mlp_norm, @layers.0.up.weight : f32[T, 96]
          epilogue %layers.0.h = elementwise("(silu(x0) * x1)") %layers.0.gate, %layers.0.up : f32[T, 96]
        group 5 linear_residual (%layers.0.attn_out, %layers.0.h) -> %layers.0.mlp_out
          root     %layers.0.down = linear %layers.0.h, @layers.0.down.weight : f32[T, 64]
          epilogue %layers.0.mlp_out = add %layers.0.attn_out, %layers.0.down : f32[T, 64]
        group 6 logits (%layers.0.mlp_out) -> %logits
          prologue %last = select_rows %layers.0.mlp_out : f32[R, 64]
          prologue %norm = rms_norm(eps=1e-5) %last, @norm.weight : f32[R, 64]
          root     %logits = linear %norm, @unembed : f32[R, 96]
        output %logits
    "#]].assert_eq(&fused.to_string());
}

#[test]
fn explains_by_layers() {
    let (fused, report) = mini(&ModelShape { layers: 4, ..ModelShape::mini_gpt_oss() }, Preset::Faithful);
    expect![[r#"
        random: 101 nodes in 22 groups
          barriers per run: 101 unfused, 22 fused, 79 saved
          intermediate values per token: 24464 bytes unfused, 6784 fused, 17680 not written
        fused:
          %embed                    embed            (by itself)
          %layers.*.q_rope          qkv              [rms_norm quantize_q8] [quant_linear quant_linear quant_linear] [rope rope kv_cast kv_cast]  layers 0..4
          %layers.*.attn.q8         attention        [] [attention] [quantize_q8]  layers 0..4
          %layers.*.attn_out        linear_residual  [] [quant_linear] [add]  layers 0..4
          %layers.*.topk            moe_gate_up      [rms_norm linear router_topk quantize_q8] [quant_expert_linear quant_expert_linear] [elementwise quantize_q8]  layers 0..4
          %layers.*.mlp_out         moe_down         [] [quant_expert_linear] [expert_sum add]  layers 0..4
          %logits                   logits           [select_rows rms_norm quantize_q8] [quant_linear] []
        saved:
          qkv                       4 groups, 32 barriers, 6464 bytes per token
          attention                 4 groups, 4 barriers, 2048 bytes per token
          linear_residual           4 groups, 4 barriers, 1024 bytes per token
          moe_gate_up               4 groups, 28 barriers, 4480 bytes per token
          moe_down                  4 groups, 8 barriers, 3072 bytes per token
          logits                    1 group, 3 barriers, 592 bytes per token
        nearly fused:
          %layers.*.router          moe_router       not applied: columns of %layers.*.router = 4 is less than 256 (scores of fewer experts cost less than a step of their own, if every worker computes them)  layers 0..4
    "#]].assert_eq(&explain(&fused, &report));
}

#[test]
fn explains_what_adapters_add() {
    let graph = build(&ModelShape { layers: 2, ..ModelShape::mini_gpt_oss() }).unwrap();
    let graph = with_adapters(&quantised(&graph, Preset::Faithful), WeightFormat::Bf16).unwrap();
    let (fused, report) = fuse(&graph, FusedSet::builtin().rules(), LEVEL);
    expect![[r#"
        random: 77 nodes in 22 groups
          barriers per run: 53 unfused, 12 fused, 41 saved
          intermediate values per token: 12848 bytes unfused, 5248 fused, 7600 not written
          more where a sequence has an adapter, at most:
            barriers per run: 24 unfused, 10 fused, 14 saved
            intermediate values per token: 20032 bytes unfused, 18432 fused, 1600 not written
        fused:
          %embed                    embed            (by itself)
          %layers.*.q.shrink        shrink           [rms_norm] [lora_shrink lora_shrink lora_shrink] []  layers 0..2
          %layers.*.q_rope          qkv              [rms_norm quantize_q8] [quant_linear quant_linear quant_linear] [rope rope kv_cast kv_cast]  layers 0..2
          %layers.*.attn            attention        [] [attention] [quantize_q8]  layers 0..2
          %layers.*.o.shrink        lora_shrink      (by itself)  layers 0..2
          %layers.*.attn_out        linear_residual  [] [quant_linear] [add]  layers 0..2
          %layers.*.router.shrink   shrink           [rms_norm] [lora_shrink] []  layers 0..2
          %layers.*.gate.shrink     routed_shrink    [rms_norm linear router_topk] [lora_shrink] []  layers 0..2
          %layers.*.topk            moe_gate_up      [rms_norm linear router_topk quantize_q8] [quant_expert_linear quant_expert_linear] [elementwise quantize_q8]  layers 0..2
          %layers.*.down.shrink     lora_shrink      (by itself)  layers 0..2
          %layers.*.mlp_out         moe_down         [] [quant_expert_linear] [expert_sum add]  layers 0..2
          %logits                   logits           [select_rows rms_norm quantize_q8] [quant_linear] []
        saved:
          shrink                    4 groups, 8 barriers, 1024 bytes per token, with an adapter
          qkv                       2 groups, 16 barriers, 3232 bytes per token
          attention                 2 groups, 2 barriers, 0 bytes per token
          linear_residual           2 groups, 2 barriers, 512 bytes per token
          routed_shrink             2 groups, 6 barriers, 576 bytes per token, with an adapter
          moe_gate_up               2 groups, 14 barriers, 1728 bytes per token
          moe_down                  2 groups, 4 barriers, 1536 bytes per token
          logits                    1 group, 3 barriers, 592 bytes per token
        nearly fused:
          %layers.*.router          moe_router       not applied: columns of %layers.*.router = 4 is less than 256 (scores of fewer experts cost less than a step of their own, if every worker computes them)  layers 0..2
          %layers.*.router.lora     moe_router       not applied: columns of %layers.*.router.lora = 4 is less than 256 (scores of fewer experts cost less than a step of their own, if every worker computes them)  layers 0..2
    "#]].assert_eq(&explain(&fused, &report));
}

#[test]
fn explains_near_misses() {
    let twist = Twist { norm_used_twice: true, gated_attention: true, ..Twist::default() };
    let (fused, report) = mini(&ModelShape { twist, ..ModelShape::mini_llama() }, Preset::Faithful);
    expect![[r#"
        random: 51 nodes in 18 groups
          barriers per run: 51 unfused, 18 fused, 33 saved
          intermediate values per token: 14144 bytes unfused, 7200 fused, 6944 not written
        fused:
          %embed                    embed            (by itself)
          %layers.*.attn_norm       norm_quant       [] [rms_norm] [quantize_q8]  layers 0..2
          %layers.*.q_rope          qkv_alone        [] [quant_linear quant_linear quant_linear] [rope rope kv_cast kv_cast]  layers 0..2
          %layers.*.attn            attention        [] [attention] []  layers 0..2
          %layers.*.gated           elementwise      (by itself)  layers 0..2
          %layers.*.attn_out        linear_residual  [quantize_q8] [quant_linear] [add]  layers 0..2
          %layers.*.attn_out.1      add              (by itself)  layers 0..2
          %layers.*.h               mlp_gate_up      [rms_norm quantize_q8] [quant_linear quant_linear] [elementwise]  layers 0..2
          %layers.*.mlp_out         linear_residual  [quantize_q8] [quant_linear] [add]  layers 0..2
          %logits                   logits           [select_rows rms_norm quantize_q8] [quant_linear] []
        saved:
          norm_quant                2 groups, 2 barriers, 0 bytes per token
          qkv_alone                 2 groups, 12 barriers, 2560 bytes per token
          attention                 2 groups, 0 barriers, 0 bytes per token
          linear_residual           4 groups, 8 barriers, 1584 bytes per token
          mlp_gate_up               2 groups, 8 barriers, 2208 bytes per token
          logits                    1 group, 3 barriers, 592 bytes per token
        nearly fused:
          %layers.*.q               qkv              not applied: value %layers.*.attn_norm is also used by %layers.*.attn_out.1 (the rule does not name it in `outputs`)  layers 0..2
          %layers.*.gate            post_mlp_gate_up not applied: value %layers.*.attn_norm is also used by %layers.*.attn_norm.q8 (the rule does not name it in `outputs`)  layers 0..2
          %layers.*.attn_norm       post_norm_add    not applied: value %layers.*.attn_norm is also used by %layers.*.attn_norm.q8 (the rule does not name it in `outputs`)  layers 0..2
    "#]].assert_eq(&explain(&fused, &report));
}

#[test]
fn attention_of_odd_head_groups_does_not_quantise() {
    let shape = ModelShape { head_dim: 16, v_head_dim: 16, kv_heads: 4, ..ModelShape::mini_gpt_oss() };
    let (fused, report) = mini(&shape, Preset::Faithful);
    let miss = &report.near_misses[0];
    assert_eq!(
        (miss.rule.as_str(), miss.without.as_slice()),
        ("attention", ["quant".to_string()].as_slice())
    );
    assert!(
        miss.reason.starts_with("heads / kv_heads * v_head_dim = 16 is not a multiple of 32"),
        "{}",
        miss.reason
    );
    // The projection takes the quantisation instead.
    let projection = fused.groups.iter().find(|group| group.name() == "linear_residual").unwrap();
    assert!(projection.capture("quant").is_some());
}

#[test]
fn fused_and_unfused_agree_bit_for_bit() {
    for seed in 0..40 {
        let graph = build(&ModelShape::random(seed)).unwrap();
        let weights = random_weights(&graph, seed);
        for preset in Preset::ALL {
            let graph = quantised(&graph, preset);
            let (fused, _) = fuse(&graph, FusedSet::builtin().rules(), LEVEL);
            fused.verify().unwrap();
            FusedGraph::unfused(&graph).verify().unwrap();
            let data = weights.for_graph(&graph);
            let tokens: Vec<u32> = (0..9).map(|i| (seed as u32 * 7 + i * 5) % graph.vocab as u32).collect();
            let plain = Interpreter::new(&graph, &data).unwrap().extend(0, &tokens).unwrap();
            let together = Interpreter::fused(&fused, &data).unwrap().extend(0, &tokens).unwrap();
            assert_eq!(bits(&plain), bits(&together), "seed {seed} {preset:?}");
        }
    }
}

/// Any subset of the rules in any order gives a legal graph.
#[test]
fn any_rules_in_any_order_are_legal() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let preset = rng.pick(&Preset::ALL);
        let graph = quantised(&build(&ModelShape::random(seed)).unwrap(), preset);
        let mut rules: Vec<FusionRule> = FusedSet::builtin().rules().cloned().collect();
        for i in (1..rules.len()).rev() {
            rules.swap(i, rng.below(i + 1));
        }
        rules.truncate(rng.below(rules.len() + 1));
        let (fused, report) = fuse(&graph, &rules, LEVEL);
        fused.verify().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        explain(&fused, &report);
    }
}

/// A graph without packed weights.
struct Unpacked<'g>(&'g Graph);

impl Packed for Unpacked<'_> {
    fn graph(&self) -> &Graph {
        self.0
    }

    fn mat(&self, node: &Node) -> GraphMat {
        unreachable!("{node:?} is no matrix product")
    }

    fn row_bytes(&self, table: TensorId) -> usize {
        unreachable!("{table:?} is no table")
    }
}

/// Elementwise nodes that nobody else reads are one step; what others read is not taken in.
#[test]
fn elementwise_chains_become_one_expression() {
    let text = "model \"m\" vocab 4 context 8\n\
        tensor @e table f32[4, 32] from \"e\"\n\
        tensor @u matrix f32[4, 32] from \"u\"\n\
        input %tokens : ids[T]\n\
        %x = embed %tokens, @e : f32[T, 32]\n\
        %a = elementwise(\"silu(x0)\") %x : f32[T, 32]\n\
        %b = mul %a, %x : f32[T, 32]\n\
        %c = add %b, %b : f32[T, 32]\n\
        %d = add %c, %x : f32[T, 32]\n\
        %f = mul %c, %d : f32[T, 32]\n\
        %last = select_rows %f : f32[R, 32]\n\
        %logits = linear %last, @u : f32[R, 4]\n\
        output %logits\n";
    let graph: Graph = text.parse().unwrap();
    let uses = crate::ir::Uses::new(&graph);
    let nodes: Vec<NodeId> = (1..6).map(NodeId).collect();
    let steps = row_steps(&Unpacked(&graph), &uses, &nodes, &[graph.nodes[5].output]).unwrap();
    let shown: Vec<String> = steps
        .iter()
        .map(|step| match step {
            RowOp::Elementwise(op) => {
                let out = step.facts().out.unwrap();
                let names: Vec<&str> =
                    op.inputs.iter().map(|value| graph.value(*value).name.as_str()).collect();
                format!("{} = {}", graph.value(*out).name, op.expr.text(&names))
            }
            _ => "node".to_owned(),
        })
        .collect();
    assert_eq!(shown, ["c = ((silu(x) * x) + (silu(x) * x))", "f = (c * (c + x))"]);
}

#[test]
fn verifier_refuses() {
    let (good, _) = mini(&ModelShape { layers: 1, ..ModelShape::mini_llama() }, Preset::Faithful);
    let mut errors = String::new();
    let cases: [&dyn Fn(&mut FusedGraph); 13] = [
        &|f| f.groups.swap(1, 2),
        &|f| drop(f.groups.remove(3)),
        &|f| f.groups.push(f.groups[0].clone()),
        &|f| f.groups[1].epilogue.truncate(3),
        &|f| f.groups[1].outputs.truncate(2),
        &|f| f.groups[2].captures.extend([("q".to_string(), NodeId(0))]),
        &|f| f.groups[2].kind = GroupKind::Single(OpKind::from_name("attention").unwrap()),
        &|f| f.groups[1].kind = GroupKind::Fused(KernelTemplate::Rows),
        &|f| f.groups[0].roots.clear(),
        &|f| f.groups[1].inputs.clear(),
        &|f| f.groups[1].kv_write = Some(NodeId(0)),
        &|f| f.groups[1].composition = f.groups[2].composition.clone(),
        &|f| f.groups[0].composition = Composition::Rows(vec![NodeId(1)]),
    ];
    for damage in cases {
        let mut fused = good.clone();
        damage(&mut fused);
        errors.push_str(&format!("{}\n", fused.verify().unwrap_err()));
    }
    expect![[r#"
        group 1 (attention): reads %layers.0.q_rope, which a later group writes
        %layers.0.o: is in no group
        group 7 (embed): %embed is also in group 0
        group 1 (qkv): capture `cast_v` is %layers.0.attn.v_cast, which is no member
        group 1 (qkv): its outputs are not the values that are used outside
        group 2 (attention): capture `q` is %embed, which is no member
        group 2 (attention): expected one attention without a rule
        group 1 (qkv): %layers.0.attn_norm: `rms_norm` cannot be in the prologue of a `rows` kernel
        group 0 (embed): it has no root
        group 1 (qkv): its inputs are not the values its members read from outside
        group 1 (qkv): keys and values that it writes to the cache are read elsewhere too
        group 1 (qkv): its composition is not what its members make
        group 0 (embed): its composition is not what its members make
    "#]]
    .assert_eq(&errors);
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}
