//! The pass that makes a preset's quantisation explicit in the graph, and the checker of its result.

use crate::ir::{
    Activations, Attention, Factor, Graph, GraphBuilder, GraphError, Hadamard, MatMul, MatrixRows, Node,
    NodeId, Op, Role, Round, TensorId, Uses, ValueId,
};
use choose::{FormatChoices, candidates};
use kernmill_plan::format::{BLOCK, Decode, WeightFormat};
use kernmill_plan::kv::{KvFormat, KvFormats, KvPlane, KvRow, hadamard_block};
use std::collections::{BTreeMap, HashMap};

/// How far weights, activations and the KV cache are quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Weights as stored, f32 activations and KV: the accuracy reference.
    Exact,
    /// Matrices in blocks bit for bit, others but the router int8, int8 activations, f16 KV.
    Faithful,
    /// Weights as of `Faithful`, but MXFP4 experts take bf16 activations.
    Bf16,
    /// Weights as of `Faithful`, but for attention and unembedding, if not stored in blocks, in int4 where
    /// that loses little (`crate::passes::quant::choose`).
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

    /// Whether the preset is for AMX tiles, so that it takes them wherever they are. Presets with q8
    /// activations use them where the target is named.
    pub fn has_tiles(self) -> bool {
        self == Preset::Bf16
    }

    /// The format that adapters' elements are rounded to.
    pub fn adapter_format(self) -> WeightFormat {
        if self == Preset::Exact { WeightFormat::F32 } else { WeightFormat::Bf16 }
    }

    /// The formats of its keys and values, if no others are asked for.
    pub fn kv_formats(self) -> KvFormats {
        match self {
            Preset::Exact => KvFormats::uniform(KvFormat::F32),
            Preset::Faithful | Preset::Bf16 | Preset::Fast => KvFormats::uniform(KvFormat::F16),
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
    /// The preset's formats depend on the weights.
    #[error("preset `{}` decides tensor by tensor from the weights, but no choices were given", .0.name())]
    NeedsChoices(Preset),
    /// The graph does not allow it, or has quantised ops already.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// How a graph is quantised.
#[derive(Clone, Copy, Debug)]
pub struct Quantisation<'c> {
    /// The preset.
    pub preset: Preset,
    /// Which matrices have 4 bits: for [`Preset::Fast`]; the others do without.
    pub choices: Option<&'c FormatChoices>,
    /// Formats of keys and values.
    pub kv: KvFormats,
}

impl Quantisation<'_> {
    /// The graph with the quantisation made explicit; its meaning changes by the roundings that the new ops
    /// do.
    ///
    /// # Errors
    /// When a matrix product's columns are not whole blocks, or choices are needed and not given.
    pub fn quantise(&self, graph: &Graph) -> Result<Graph, QuantError> {
        if self.preset == Preset::Fast && self.choices.is_none() {
            return Err(QuantError::NeedsChoices(self.preset));
        }
        let choices = self.choices.filter(|_| self.preset == Preset::Fast);
        let quantised = Quantiser::new(graph, Quantisation { choices, ..*self }).run()?;
        verify_with(&quantised, self.preset, &self.kv)?;
        Ok(quantised)
    }
}

/// The graph with the preset's quantisation made explicit, keys and values as the preset has them. `choices`
/// is for [`Preset::Fast`]; the others do without.
///
/// # Errors
/// As for [`Quantisation::quantise`].
pub fn quantise_chosen(
    graph: &Graph,
    preset: Preset,
    choices: Option<&FormatChoices>,
) -> Result<Graph, QuantError> {
    Quantisation { preset, choices, kv: preset.kv_formats() }.quantise(graph)
}

/// [`quantise_chosen`] for presets that do without choices.
///
/// # Errors
/// As for [`quantise_chosen`].
pub fn quantise(graph: &Graph, preset: Preset) -> Result<Graph, QuantError> {
    quantise_chosen(graph, preset, None)
}

/// Checks that a graph is in the preset's form, keys and values as the preset has them.
///
/// # Errors
/// The first node or tensor that is not.
pub fn verify(graph: &Graph, preset: Preset) -> Result<(), GraphError> {
    verify_with(graph, preset, &preset.kv_formats())
}

/// Checks that a graph is in the preset's form, with keys and values in these formats.
///
/// # Errors
/// The first node or tensor that is not.
pub fn verify_with(graph: &Graph, preset: Preset, kv: &KvFormats) -> Result<(), GraphError> {
    graph.verify()?;
    let uses = Uses::new(graph);
    let chosen = if preset == Preset::Fast { candidates(graph) } else { BTreeMap::new() };
    for (id, node) in graph.nodes() {
        let kind = node.kind();
        let legal = match preset {
            Preset::Exact => match &node.op {
                Op::MatMul(product) => matches!(product.x, Factor::F32(_)),
                Op::Round(round) => matches!(round, Round::Kv(_)),
                _ => true,
            },
            Preset::Faithful | Preset::Bf16 | Preset::Fast => match &node.op {
                Op::MatMul(MatMul { rows: MatrixRows::All, x: Factor::F32(activations) }) => {
                    *activations == Activations::F32 || is_router(graph, &uses, id)
                }
                Op::MatMul(MatMul { rows: MatrixRows::Expert, x: Factor::F32(_) }) => false,
                Op::MatMul(MatMul { rows: MatrixRows::Expert, x: Factor::Q8 }) => {
                    !takes_bf16(preset, graph.tensor(node.tensors[0]).stored)
                }
                Op::MatMul(MatMul { x: Factor::Bf16, .. }) | Op::Round(Round::Bf16) => preset == Preset::Bf16,
                _ => true,
            },
        };
        let at = || format!("%{} ({kind})", graph.value(node.output).name);
        if !legal {
            return Err(GraphError::new(at(), format!("not an op of preset {}", preset.name())));
        }
        // An attention reads values of the formats that it has: `Graph::verify` holds it to that.
        if let Some(attention) = node.op.attention()
            && attention.kv != kv.of(attention.layer_kind())
        {
            let (found, wanted) = (attention.kv, kv.of(attention.layer_kind()));
            return Err(GraphError::new(at(), format!("keys and values are {found}, expected {wanted}")));
        }
        if let Some(&matrix) = node.tensors.first() {
            let chosen = graph.tensor(matrix).format.is_quantised() && chosen.contains_key(&matrix);
            if !chosen {
                verify_format(graph, node, matrix, preset, is_router(graph, &uses, id))?;
            }
        }
    }
    Ok(())
}

fn verify_format(
    graph: &Graph,
    node: &Node,
    matrix: TensorId,
    preset: Preset,
    routes: bool,
) -> Result<(), GraphError> {
    let tensor = graph.tensor(matrix);
    let expected = match (tensor.role, preset) {
        (Role::Vector | Role::ExpertVector, _) => WeightFormat::F32,
        (Role::Table, _) => tensor.stored,
        (_, Preset::Exact) => tensor.stored,
        (_, _) if routes => tensor.stored,
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
    !users.is_empty() && users.iter().all(|&user| graph.node(user).op.router().is_some())
}

/// Whether the preset gives bf16 activations to expert matrices that are stored so.
fn takes_bf16(preset: Preset, stored: WeightFormat) -> bool {
    preset == Preset::Bf16 && stored == WeightFormat::Mxfp4
}

/// Format in `faithful` of the matrix that a (quantised) op multiplies with, unless it routes: blocks stay as
/// they are stored.
fn faithful_format(op: &Op, stored: WeightFormat) -> WeightFormat {
    let rounds = |op: MatMul| matches!(op.x, Factor::Q8 | Factor::Q8x2) || op.rows == MatrixRows::All;
    match stored.decode() {
        Decode::Plain(_) if op.matmul().is_some_and(rounds) => WeightFormat::Int8,
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

/// Makes all presets.
struct Quantiser<'g> {
    graph: &'g Graph,
    as_asked: Quantisation<'g>,
    uses: Uses,
    builder: GraphBuilder,
    /// New value of each old one.
    values: Vec<ValueId>,
    /// The one `q8`, and the one bf16, of each new f32 value.
    rounded: HashMap<(ValueId, &'static str), ValueId>,
    /// New keys and values of each attention that has a cache.
    caches: Vec<[ValueId; 2]>,
}

impl<'g> Quantiser<'g> {
    fn new(graph: &'g Graph, as_asked: Quantisation<'g>) -> Quantiser<'g> {
        let mut builder =
            GraphBuilder::new(&graph.name, graph.vocab, graph.max_context).with_vectors(graph.vectors);
        for rope in &graph.ropes {
            builder.add_rope(rope.clone());
        }
        for tensor in &graph.tensors {
            let mut tensor = tensor.clone();
            if as_asked.preset == Preset::Exact {
                tensor.format = tensor.stored;
            }
            builder.add_tensor(tensor);
        }
        let uses = Uses::new(graph);
        Quantiser {
            graph,
            as_asked,
            uses,
            builder,
            values: vec![ValueId(0)],
            rounded: HashMap::new(),
            caches: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Graph, GraphError> {
        for (id, node) in self.graph.nodes() {
            let output = self.node(id, node)?;
            self.values.push(output);
        }
        let output = self.values[self.graph.output.0 as usize];
        let mut graph = self.builder.finish(output)?;
        vectors_in_f32(&mut graph);
        Ok(graph)
    }

    fn node(&mut self, id: NodeId, node: &Node) -> Result<ValueId, GraphError> {
        let name = &self.graph.value(node.output).name;
        let mut inputs: Vec<ValueId> =
            node.inputs.iter().map(|value| self.values[value.0 as usize]).collect();
        let op = match &node.op {
            Op::Attention(attention) => {
                let mut attention = attention.clone();
                attention.kv = self.as_asked.kv.of(attention.layer_kind());
                if attention.kv.k.descriptor().rotated {
                    let head_dim = attention.head_dim;
                    attention.scale /= hadamard_block(head_dim) as f32;
                    let made = if attention.shared { 1 } else { 2 };
                    for (input, what) in inputs.iter_mut().zip(["q", "k"]).take(made) {
                        let name = format!("{name}.{what}_hadamard");
                        *input = self.builder.node(&name, Hadamard { head_dim }, &[*input], &[])?;
                    }
                }
                if attention.kv.v.descriptor().rotated && !attention.shared {
                    let (name, op) =
                        (format!("{name}.v_hadamard"), Hadamard { head_dim: attention.v_head_dim });
                    inputs[2] = self.builder.node(&name, op, &[inputs[2]], &[])?;
                }
                if attention.shared {
                    inputs[1..].copy_from_slice(&self.caches[attention.layer as usize]);
                } else {
                    for (plane, input) in [KvPlane::K, KvPlane::V].into_iter().zip(&mut inputs[1..]) {
                        *input = self.cached(name, plane, &attention, *input)?;
                    }
                    self.caches.push([inputs[1], inputs[2]]);
                }
                Op::Attention(attention)
            }
            other if self.as_asked.preset == Preset::Exact => other.clone(),
            Op::MatMul(MatMul { rows: MatrixRows::All, .. }) if is_router(self.graph, &self.uses, id) => {
                node.op.clone()
            }
            Op::MatMul(MatMul { rows: MatrixRows::All, x: Factor::F32(Activations::F32) })
                if self.keeps_more(node) =>
            {
                let matrix = node.tensors[0];
                let faithful = faithful_format(&node.op, self.graph.tensor(matrix).stored);
                self.builder.set_format(matrix, faithful);
                node.op.clone()
            }
            Op::MatMul(MatMul { rows: MatrixRows::Expert, .. })
                if takes_bf16(self.as_asked.preset, self.graph.tensor(node.tensors[0]).stored) =>
            {
                MatMul::BF16_EXPERT_LINEAR.into()
            }
            Op::MatMul(MatMul { rows, .. }) if self.has_two_terms(node) => {
                MatMul { rows: *rows, x: Factor::Q8x2 }.into()
            }
            Op::MatMul(MatMul { rows, .. }) => MatMul { rows: *rows, x: Factor::Q8 }.into(),
            other => other.clone(),
        };
        let factor = op.matmul().map(|op| op.x);
        if factor == Some(Factor::Bf16) {
            inputs[0] = self.round(inputs[0], Round::Bf16, "bf16")?;
        }
        if matches!(factor, Some(Factor::Q8 | Factor::Q8x2)) {
            // Plain matrices that read one value share its rows. A product of one term reads the first.
            let users = self.uses.users(node.inputs[0]).iter().map(|user| self.graph.node(*user));
            let shares = op.matmul().is_some_and(|op| op.rows == MatrixRows::All);
            inputs[0] = match shares && users.into_iter().any(|user| self.has_two_terms(user)) {
                true => self.round(inputs[0], Round::Q8x2, "q8x2")?,
                false => self.round(inputs[0], Round::Q8, "q8")?,
            };
            let matrix = node.tensors[0];
            let chosen = self.chosen(matrix);
            let faithful = faithful_format(&op, self.graph.tensor(matrix).stored);
            self.builder.set_format(matrix, chosen.unwrap_or(faithful));
        }
        self.builder.node(name, op, &inputs, &node.tensors)
    }

    /// Keys or values as they enter the cache.
    fn cached(
        &mut self,
        attention_name: &str,
        plane: KvPlane,
        attention: &Attention,
        input: ValueId,
    ) -> Result<ValueId, GraphError> {
        let format = attention.kv.of(plane);
        if format == KvFormat::F32 {
            return Ok(input);
        }
        let what = match plane {
            KvPlane::K => "k",
            KvPlane::V => "v",
        };
        let cast = Round::Kv(KvRow::new(format, attention.geometry().head_dim(plane)));
        self.builder.node(&format!("{attention_name}.{what}_cast"), cast, &[input], &[])
    }

    /// The choice for a matrix.
    fn chosen(&self, matrix: TensorId) -> Option<WeightFormat> {
        self.as_asked.choices.and_then(|choices| choices.of(matrix)).map(|choice| choice.format)
    }

    /// Whether the input of a product is rounded to q8 in two terms.
    fn has_two_terms(&self, node: &Node) -> bool {
        let asked = MatMul { x: Factor::F32(Activations::Q8x2), ..MatMul::LINEAR };
        node.op.matmul() == Some(asked) && self.keeps_more(node)
    }

    /// Whether the input of a product that is to keep more than q8 does: a matrix rounded to fewer than 8
    /// bits loses far more than q8 does, and one that has no blocks cannot be int8, which is found where its
    /// input is rounded.
    fn keeps_more(&self, node: &Node) -> bool {
        let matrix = node.tensors[0];
        let blocks = self.graph.tensor(matrix).shape.last().is_some_and(|k| k.is_multiple_of(BLOCK));
        blocks && self.chosen(matrix).is_none_or(|format| format.descriptor().bits() >= 8)
    }

    /// The value rounded by `op`, whose name gets `suffix`.
    fn round(&mut self, value: ValueId, op: Round, suffix: &'static str) -> Result<ValueId, GraphError> {
        let key = (value, suffix);
        if let Some(&known) = self.rounded.get(&key) {
            return Ok(known);
        }
        let rows = self.builder.graph().value(value);
        let (name, cols) = (format!("{}.{suffix}", rows.name), rows.ty.cols());
        if !cols.is_multiple_of(BLOCK) {
            let message = format!(
                "it has {cols} columns, and preset {} rounds it in blocks of {BLOCK}, expected a multiple of \
                 {BLOCK} (preset exact rounds nothing)",
                self.as_asked.preset.name()
            );
            return Err(GraphError::new(format!("%{}", rows.name), message));
        }
        let rounded = self.builder.node(&name, op, &[value], &[])?;
        self.rounded.insert(key, rounded);
        Ok(rounded)
    }
}

pub mod choose;
#[cfg(test)]
mod tests;
