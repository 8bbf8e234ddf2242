//! The pass that makes a preset's quantisation explicit in the graph, and the checker of its result.

use crate::graph::{Builder, Graph, GraphError, Node, NodeId, Op, OpKind, Role, TensorId, Uses, ValueId};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::KvElem;
use std::collections::HashMap;

/// How far weights, activations and the KV cache are quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Weights as stored, f32 activations and KV: the accuracy reference.
    Exact,
    /// MXFP4 experts bit for bit, other matrices but the router int8, int8 activations, f16 KV.
    Faithful,
    /// 4-bit attention and unembedding.
    Fast,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Preset; 3] = [Preset::Exact, Preset::Faithful, Preset::Fast];

    /// The name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Exact => "exact",
            Preset::Faithful => "faithful",
            Preset::Fast => "fast",
        }
    }

    /// The preset of that name.
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

/// Why a graph cannot be quantised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantError {
    /// Not offered yet.
    #[error("preset `{}` is not supported yet; supported are exact and faithful", .0.name())]
    Unsupported(Preset),
    /// The graph does not allow it, or has quantised ops already.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// The graph with the preset's quantisation made explicit; its meaning changes by the roundings that the new ops do.
///
/// # Errors
/// When the preset is not supported or a matrix product's columns are not whole blocks.
pub fn quantise(graph: &Graph, preset: Preset) -> Result<Graph, QuantError> {
    let quantised = match preset {
        Preset::Exact => exact(graph)?,
        Preset::Faithful => Faithful::new(graph).run()?,
        Preset::Fast => return Err(QuantError::Unsupported(preset)),
    };
    verify(&quantised, preset)?;
    Ok(quantised)
}

/// Checks that a graph is in the preset's form.
///
/// # Errors
/// The first node or tensor that is not.
pub fn verify(graph: &Graph, preset: Preset) -> Result<(), GraphError> {
    graph.verify()?;
    let uses = Uses::new(graph);
    for (id, node) in graph.nodes() {
        let kind = node.op.kind();
        let legal = match preset {
            Preset::Exact => !matches!(
                kind,
                OpKind::QuantLinear | OpKind::QuantizeQ8 | OpKind::QuantExpertLinear | OpKind::KvCast
            ),
            Preset::Faithful | Preset::Fast => match kind {
                OpKind::Linear => is_router(graph, &uses, id),
                OpKind::ExpertLinear => false,
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
            verify_format(graph, node, matrix, preset)?;
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
    if tensor.format == expected || preset == Preset::Fast {
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

struct Faithful<'g> {
    graph: &'g Graph,
    uses: Uses,
    builder: Builder,
    /// New value of each old one.
    values: Vec<ValueId>,
    /// The one `q8` of each new f32 value.
    quantised: HashMap<ValueId, ValueId>,
}

impl Faithful<'_> {
    fn new(graph: &Graph) -> Faithful<'_> {
        let mut builder = Builder::new(&graph.name, graph.vocab, graph.max_context);
        for rope in &graph.ropes {
            builder.add_rope(rope.clone());
        }
        for tensor in &graph.tensors {
            builder.add_tensor(tensor.clone());
        }
        let uses = Uses::new(graph);
        Faithful { graph, uses, builder, values: vec![ValueId(0)], quantised: HashMap::new() }
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
        if matches!(op, Op::QuantLinear | Op::QuantExpertLinear) {
            inputs[0] = self.quantise(inputs[0])?;
            let matrix = node.tensors[0];
            self.builder.set_format(matrix, faithful_format(&op, self.graph.tensor(matrix).stored));
        }
        self.builder.node(name, op, &inputs, &node.tensors)
    }

    fn quantise(&mut self, value: ValueId) -> Result<ValueId, GraphError> {
        if let Some(&known) = self.quantised.get(&value) {
            return Ok(known);
        }
        let name = format!("{}.q8", self.builder.graph().value(value).name);
        let q8 = self.builder.node(&name, Op::QuantizeQ8, &[value], &[])?;
        self.quantised.insert(value, q8);
        Ok(q8)
    }
}
