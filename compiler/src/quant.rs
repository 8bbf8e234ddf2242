//! The pass that makes a preset's quantisation explicit in the graph, and the checker of its result.

use crate::choose::{Choices, candidates};
use crate::graph::{Builder, Graph, GraphError, Node, NodeId, Op, OpKind, Role, TensorId, Uses, ValueId};
use kernmill_plan::format::{BLOCK, WeightFormat};
use kernmill_plan::kv::KvElem;
use std::collections::{BTreeMap, HashMap};

/// How far weights, activations and the KV cache are quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Weights as stored, f32 activations and KV: the accuracy reference.
    Exact,
    /// MXFP4 experts bit for bit, other matrices but the router int8, int8 activations, f16 KV.
    Faithful,
    /// As faithful, but MXFP4 experts take bf16 activations.
    Bf16,
    /// As faithful, but for attention and unembedding in int4 where that loses little (`crate::choose`).
    Fast,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Preset; 4] = [Preset::Exact, Preset::Faithful, Preset::Bf16, Preset::Fast];

    /// The name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Exact => "exact",
            Preset::Faithful => "faithful",
            Preset::Bf16 => "bf16",
            Preset::Fast => "fast",
        }
    }

    /// Whether its products can be made of AMX tiles.
    pub fn has_tiles(self) -> bool {
        self == Preset::Bf16
    }

    /// What adapters' elements are rounded to.
    pub fn adapter_format(self) -> WeightFormat {
        if self == Preset::Exact { WeightFormat::F32 } else { WeightFormat::Bf16 }
    }

    /// The preset of that name.
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

/// Why a graph cannot be quantised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantError {
    /// The preset's formats depend on the weights.
    #[error("preset `{}` decides tensor by tensor from the weights, but no choices were given", .0.name())]
    NeedsChoices(Preset),
    /// The graph does not allow it, or has quantised ops already.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// The graph with the preset's quantisation made explicit; its meaning changes by the roundings that the new ops do. `choices` is
/// for [`Preset::Fast`]; the others do without.
///
/// # Errors
/// When a matrix product's columns are not whole blocks, or choices are needed and not given.
pub fn quantise_chosen(
    graph: &Graph,
    preset: Preset,
    choices: Option<&Choices>,
) -> Result<Graph, QuantError> {
    let quantised = match (preset, choices) {
        (Preset::Exact, _) => exact(graph)?,
        (Preset::Faithful | Preset::Bf16, _) => Quantiser::new(graph, preset, None).run()?,
        (Preset::Fast, Some(choices)) => Quantiser::new(graph, preset, Some(choices)).run()?,
        (Preset::Fast, None) => return Err(QuantError::NeedsChoices(preset)),
    };
    verify(&quantised, preset)?;
    Ok(quantised)
}

/// [`quantise_chosen`] for presets that do without choices.
///
/// # Errors
/// As for [`quantise_chosen`].
pub fn quantise(graph: &Graph, preset: Preset) -> Result<Graph, QuantError> {
    quantise_chosen(graph, preset, None)
}

/// Checks that a graph is in the preset's form.
///
/// # Errors
/// The first node or tensor that is not.
pub fn verify(graph: &Graph, preset: Preset) -> Result<(), GraphError> {
    graph.verify()?;
    let uses = Uses::new(graph);
    let four_bits = if preset == Preset::Fast { candidates(graph) } else { BTreeMap::new() };
    for (id, node) in graph.nodes() {
        let kind = node.op.kind();
        let legal = match preset {
            Preset::Exact => !matches!(
                kind,
                OpKind::QuantLinear
                    | OpKind::QuantizeQ8
                    | OpKind::QuantExpertLinear
                    | OpKind::Bf16Cast
                    | OpKind::Bf16ExpertLinear
                    | OpKind::KvCast
            ),
            Preset::Faithful | Preset::Bf16 | Preset::Fast => match kind {
                OpKind::Linear => is_router(graph, &uses, id),
                OpKind::ExpertLinear => false,
                OpKind::QuantExpertLinear => !takes_bf16(preset, graph.tensor(node.tensors[0]).stored),
                OpKind::Bf16Cast | OpKind::Bf16ExpertLinear => preset == Preset::Bf16,
                _ => true,
            },
        };
        let at = || format!("%{} ({kind})", graph.value(node.output).name);
        if !legal {
            return Err(GraphError::new(at(), format!("not an op of preset {}", preset.name())));
        }
        let kv = if preset == Preset::Exact { KvElem::F32 } else { KvElem::F16 };
        if matches!(&node.op, Op::Attention(attention) if attention.kv != kv) {
            return Err(GraphError::new(
                at(),
                format!("preset {} has {kv:?} keys and values", preset.name()),
            ));
        }
        if let Some(&matrix) = node.tensors.first() {
            let int4 = graph.tensor(matrix).format == WeightFormat::Int4;
            if !(int4 && four_bits.contains_key(&matrix)) {
                verify_format(graph, node, matrix, preset)?;
            }
        }
    }
    Ok(())
}

fn verify_format(graph: &Graph, node: &Node, matrix: TensorId, preset: Preset) -> Result<(), GraphError> {
    let tensor = graph.tensor(matrix);
    let expected = match (tensor.role, preset) {
        (Role::Vector | Role::ExpertVector, _) => WeightFormat::F32,
        (Role::Table, _) => tensor.stored,
        (_, Preset::Exact) => tensor.stored,
        (_, _) => faithful_format(&node.op, tensor.stored),
    };
    if tensor.format == expected {
        return Ok(());
    }
    let message = format!("is {}, preset {} has {}", tensor.format.name(), preset.name(), expected.name());
    Err(GraphError::new(format!("@{}", tensor.name), message))
}

/// Whether a linear's only use is to route.
fn is_router(graph: &Graph, uses: &Uses, linear: NodeId) -> bool {
    let users = uses.users(graph.node(linear).output);
    !users.is_empty() && users.iter().all(|&user| graph.node(user).op.kind() == OpKind::RouterTopk)
}

/// Whether the preset gives bf16 activations to expert matrices that are stored so.
fn takes_bf16(preset: Preset, stored: WeightFormat) -> bool {
    preset == Preset::Bf16 && stored == WeightFormat::Mxfp4
}

/// Format in `faithful` of the matrix that a (quantised) op multiplies with.
fn faithful_format(op: &Op, stored: WeightFormat) -> WeightFormat {
    match (op.kind(), stored) {
        (OpKind::QuantLinear | OpKind::QuantExpertLinear, WeightFormat::Bf16 | WeightFormat::F32) => {
            WeightFormat::Int8
        }
        _ => stored,
    }
}

/// Vectors are f32 in every plan.
fn vectors_in_f32(graph: &mut Graph) {
    for tensor in &mut graph.tensors {
        if matches!(tensor.role, Role::Vector | Role::ExpertVector) {
            tensor.format = WeightFormat::F32;
        }
    }
}

fn exact(graph: &Graph) -> Result<Graph, GraphError> {
    let mut graph = graph.clone();
    for tensor in &mut graph.tensors {
        tensor.format = tensor.stored;
    }
    vectors_in_f32(&mut graph);
    for node in &mut graph.nodes {
        if let Op::Attention(attention) = &mut node.op {
            attention.kv = KvElem::F32;
        }
    }
    graph.verify()?;
    Ok(graph)
}

/// Makes `faithful`, `bf16`, and with choices `fast`.
struct Quantiser<'g> {
    graph: &'g Graph,
    preset: Preset,
    choices: Option<&'g Choices>,
    uses: Uses,
    builder: Builder,
    /// New value of each old one.
    values: Vec<ValueId>,
    /// The one `q8`, and the one bf16, of each new f32 value.
    rounded: HashMap<(ValueId, OpKind), ValueId>,
}

impl<'g> Quantiser<'g> {
    fn new(graph: &'g Graph, preset: Preset, choices: Option<&'g Choices>) -> Quantiser<'g> {
        let mut builder = Builder::new(&graph.name, graph.vocab, graph.max_context);
        for rope in &graph.ropes {
            builder.add_rope(rope.clone());
        }
        for tensor in &graph.tensors {
            builder.add_tensor(tensor.clone());
        }
        let uses = Uses::new(graph);
        Quantiser { graph, preset, choices, uses, builder, values: vec![ValueId(0)], rounded: HashMap::new() }
    }

    fn run(mut self) -> Result<Graph, GraphError> {
        for (id, node) in self.graph.nodes() {
            let output = self.node(id, node)?;
            self.values.push(output);
        }
        let output = self.values[self.graph.output.0 as usize];
        let mut graph = self.builder.finish(output)?;
        vectors_in_f32(&mut graph);
        graph.verify()?;
        Ok(graph)
    }

    fn node(&mut self, id: NodeId, node: &Node) -> Result<ValueId, GraphError> {
        let name = &self.graph.value(node.output).name;
        let mut inputs: Vec<ValueId> =
            node.inputs.iter().map(|value| self.values[value.0 as usize]).collect();
        let op = match &node.op {
            Op::Linear if !is_router(self.graph, &self.uses, id) => Op::QuantLinear,
            Op::ExpertLinear if takes_bf16(self.preset, self.graph.tensor(node.tensors[0]).stored) => {
                Op::Bf16ExpertLinear
            }
            Op::ExpertLinear => Op::QuantExpertLinear,
            Op::Attention(attention) => {
                for (input, what) in inputs[1..].iter_mut().zip(["k", "v"]) {
                    *input = self.builder.node(&format!("{name}.{what}_cast"), Op::KvCast, &[*input], &[])?;
                }
                let mut attention = attention.clone();
                attention.kv = KvElem::F16;
                Op::Attention(attention)
            }
            other => other.clone(),
        };
        if op == Op::Bf16ExpertLinear {
            inputs[0] = self.round(inputs[0], Op::Bf16Cast, "bf16")?;
        }
        if matches!(op, Op::QuantLinear | Op::QuantExpertLinear) {
            inputs[0] = self.round(inputs[0], Op::QuantizeQ8, "q8")?;
            let matrix = node.tensors[0];
            let chosen = self.choices.and_then(|choices| choices.of(matrix)).map(|choice| choice.format);
            let faithful = faithful_format(&op, self.graph.tensor(matrix).stored);
            self.builder.set_format(matrix, chosen.unwrap_or(faithful));
        }
        self.builder.node(name, op, &inputs, &node.tensors)
    }

    /// The value rounded by `op`, whose name gets `suffix`.
    fn round(&mut self, value: ValueId, op: Op, suffix: &str) -> Result<ValueId, GraphError> {
        let key = (value, op.kind());
        if let Some(&known) = self.rounded.get(&key) {
            return Ok(known);
        }
        let rows = self.builder.graph().value(value);
        let (name, cols) = (format!("{}.{suffix}", rows.name), rows.ty.cols());
        if !cols.is_multiple_of(BLOCK) {
            let message = format!(
                "it has {cols} columns, and preset {} rounds it in blocks of {BLOCK}, expected a multiple of {BLOCK} (preset exact rounds nothing)",
                self.preset.name()
            );
            return Err(GraphError::new(format!("%{}", rows.name), message));
        }
        let rounded = self.builder.node(&name, op, &[value], &[])?;
        self.rounded.insert(key, rounded);
        Ok(rounded)
    }
}

#[cfg(test)]
mod tests {
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
            %layers.0.h = glu("((min(max(up, -7.0), 7.0) + 1.0) * (min(gate, 7.0) * sigmoid((1.702 * min(gate, 7.0)))))") %layers.0.gate, %layers.0.up : f32[T*2, 32]
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
                    let quants = quants.filter(|&&user| faithful.node(user).op == Op::QuantizeQ8).count();
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
        let mut choices = Choices::assumed(&graph);
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
        let mut fast = quantise_chosen(&graph, Preset::Fast, Some(&Choices::assumed(&graph))).unwrap();
        verify(&fast, Preset::Fast).unwrap();
        let gate = fast.find_tensor("layers.0.gate.weight").unwrap();
        fast.tensors[gate.0 as usize].format = WeightFormat::Int4;
        let error = verify(&fast, Preset::Fast).unwrap_err();
        assert_eq!(error.to_string(), "@layers.0.gate.weight: is int4, preset fast has int8");
    }
}
