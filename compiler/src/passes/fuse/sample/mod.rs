//! Small random models that a rule has something to do in: what `kernmill fuse check` runs.
//!
//! The pattern itself is the model's middle: each of its nodes becomes a node, its outside values come from
//! the embedding, and what it gives out flows into the logits. Roundings are left to the quantiser, which
//! puts them where the presets want them.

mod facts;
mod pattern;

use super::guard::{GuardCheck, Quantity};
use super::rule::{FusionRule, PatternNode};
use crate::ir::RowKind;
use crate::ir::expr::ExprFunction;
use crate::ir::ops::sample::{Sizes, TOP_K, expression};
use crate::ir::{
    Attention, Elementwise, Embed, ExpertSum, Graph, GraphBuilder, GraphError, MatMul, Norm, Normed, OpKind,
    Role, Rope, RopeParameters, RopeScaling, RouterTopk, RowSelect, Rows, SelectRows, TensorId, TensorSource,
    Type, ValueId,
};
use crate::random::Rng;
use facts::PatternValues;
use kernmill_kernels_gen::expr::{Binary, Expr};
use kernmill_kernels_gen::row_op::{RopePairs, RouterScores};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::{KvFormat, KvPair};
use pattern::{HIDDEN, SamplePattern, WIDTHS};
use std::collections::BTreeMap;

/// Experts of a sample at most.
const MOST_EXPERTS: usize = 256;

/// A random model around the rule's pattern.
///
/// # Errors
/// When the pattern cannot be built, with the reason.
pub fn sample(rule: &FusionRule, seed: u64) -> Result<Graph, GraphError> {
    let mut rng = Rng::new(seed);
    let head_dim = rng.pick(&[16, 32, 32, 64, 64, 96, 128, 256]);
    let sizes = Sizes {
        experts: rng.pick(&[2, 3, 5, 8]).max(least_columns(rule)),
        kv_heads: rng.pick(&[1, 2]),
        group: rng.pick(&[1, 2, 3]),
        head_dim,
        v_head_dim: head_dim,
        vocab: 48 + rng.below(40),
    };
    let pattern = SamplePattern::new(rule, &mut rng);
    let facts = PatternValues::of(rule, &pattern, &sizes, seed, &mut rng);
    let mut b = GraphBuilder::new(&rule.name, sizes.vocab, 4096);
    let format = rng.pick(&[WeightFormat::Bf16, WeightFormat::F32]);
    let experts_format = rng.pick(&[WeightFormat::Mxfp4, WeightFormat::Bf16]);
    let table = b.tensor("embed", Role::Table, &[sizes.vocab, HIDDEN], format, source("embed"));
    let x = b.node("embed", Embed::default(), &[ValueId(0)], &[table])?;
    let mut make =
        Make { b, x, sizes, format, experts_format, values: BTreeMap::new(), routing: None, facts, rng };
    make.pattern(&pattern)?;
    make.finish(rule, &pattern)
}

/// Columns that the rule's guards ask for, which are those of a router's scores in models with experts.
fn least_columns(rule: &FusionRule) -> usize {
    let least = rule.guards.iter().filter_map(|guard| match guard.check {
        GuardCheck::Between { quantity: Quantity::Cols(_), min, .. } => Some(min),
        _ => None,
    });
    least.max().unwrap_or(0).min(MOST_EXPERTS)
}

/// A random model whose one activation is a function.
///
/// # Errors
/// When the function has more parameters than an op has inputs.
pub fn sample_function(function: &ExprFunction, seed: u64) -> Result<Graph, GraphError> {
    let mut rng = Rng::new(seed);
    let width = rng.pick(&WIDTHS[..5]);
    let mut b = GraphBuilder::new(&function.name, 64, 4096);
    let table = b.tensor("embed", Role::Table, &[64, HIDDEN], WeightFormat::Bf16, source("embed"));
    let x = b.node("embed", Embed::default(), &[ValueId(0)], &[table])?;
    let linear = |b: &mut GraphBuilder, name: &str, x: ValueId, n: usize| {
        let k = b.graph().value(x).ty.cols();
        let from = format!("{name}.weight");
        let matrix = b.tensor(&from, Role::Matrix, &[n, k], WeightFormat::Bf16, source(&from));
        b.node(name, MatMul::LINEAR, &[x], &[matrix])
    };
    let params = (0..function.params.len()).map(|i| linear(&mut b, &format!("x{i}"), x, width));
    let params = params.collect::<Result<Vec<_>, _>>()?;
    // Beyond the usual range as well.
    let scale = Expr::Const(rng.pick(&[1.0, 4.0, 40.0]));
    let scaled = |i| Expr::Binary(Binary::Mul, Box::new(scale.clone()), Box::new(Expr::Var(i)));
    let expr = function.body.substitute(&(0..params.len()).map(scaled).collect::<Vec<_>>());
    let y = b.node("y", Elementwise::of(expr), &params, &[])?;
    let last = b.node("last", SelectRows, &[y], &[])?;
    let logits = linear(&mut b, "logits", last, 64)?;
    b.finish(logits)
}

struct Make {
    b: GraphBuilder,
    /// The embedding.
    x: ValueId,
    sizes: Sizes,
    format: WeightFormat,
    experts_format: WeightFormat,
    values: BTreeMap<String, ValueId>,
    routing: Option<ValueId>,
    facts: PatternValues,
    rng: Rng,
}

impl Make {
    fn ty(&self, value: ValueId) -> Type {
        self.b.graph().value(value).ty
    }

    fn pattern(&mut self, pattern: &SamplePattern<'_>) -> Result<(), GraphError> {
        for (node, op, inputs) in &pattern.nodes {
            let inputs = inputs.iter().map(|name| self.value(name)).collect::<Result<Vec<_>, _>>()?;
            let value = self.node(node, *op, &inputs)?;
            self.values.insert(node.capture.clone(), value);
        }
        Ok(())
    }

    /// The value of that name: of a node above, or one from outside, made here.
    fn value(&mut self, name: &str) -> Result<ValueId, GraphError> {
        if let Some(value) = self.values.get(name) {
            return Ok(*value);
        }
        let value = if self.facts.ids.iter().any(|other| other == name) {
            ValueId(0)
        } else if self.facts.routing.iter().any(|other| other == name) {
            self.routing()?
        } else {
            let cols = self.facts.cols(name);
            match self.facts.rows.get(name) {
                Some(RowKind::Slots) => {
                    let routing = self.routing()?;
                    self.expert_linear(name, self.x, routing, cols)?
                }
                Some(RowKind::LogitRows) => {
                    let x = self.linear(name, self.x, cols)?;
                    self.b.node(&format!("{name}.last"), SelectRows, &[x], &[])?
                }
                _ => {
                    // Not a projection itself, which another fusion might take together with the pattern's
                    // own nodes.
                    let x = self.linear(name, self.x, cols)?;
                    self.b.node(&format!("{name}.silu"), Elementwise::of(expression(1)), &[x], &[])?
                }
            }
        };
        self.values.insert(name.to_owned(), value);
        Ok(value)
    }

    fn routing(&mut self) -> Result<ValueId, GraphError> {
        if let Some(routing) = self.routing {
            return Ok(routing);
        }
        let scores = self.linear("scores", self.x, self.sizes.experts)?;
        let routing = self.router("routes", scores)?;
        self.routing = Some(routing);
        Ok(routing)
    }

    fn router(&mut self, name: &str, scores: ValueId) -> Result<ValueId, GraphError> {
        let mut op = RouterTopk::new(TOP_K);
        let mut bias = Vec::new();
        if self.rng.one_in(2) {
            op.scores = self.rng.pick(&[RouterScores::Softmax, RouterScores::Sigmoid]);
            op.normalise = self.rng.one_in(2);
            op.scale = self.rng.pick(&[None, Some(2.5)]);
            if self.rng.one_in(2) {
                bias.push(self.vector(&format!("{name}.bias"), self.sizes.experts));
            }
        }
        self.b.node(name, op, &[scores], &bias)
    }

    fn node(&mut self, node: &PatternNode, op: OpKind, inputs: &[ValueId]) -> Result<ValueId, GraphError> {
        let name = node.capture.as_str();
        match op.name {
            "linear" => self.linear(name, inputs[0], self.facts.cols(name)),
            "expert_linear" => self.expert_linear(name, inputs[0], inputs[1], self.facts.cols(name)),
            "rms_norm" => {
                let weight = self.vector(&format!("{name}.norm.weight"), self.ty(inputs[0]).cols());
                self.b.node(name, Norm { eps: 1e-5, of: Normed::Row }, inputs, &[weight])
            }
            "layer_norm" => {
                let cols = self.ty(inputs[0]).cols();
                let vectors = ["norm.weight", "norm.bias"];
                let vectors = vectors.iter().take(self.rng.below(3));
                let tensors: Vec<TensorId> =
                    vectors.map(|what| self.vector(&format!("{name}.{what}"), cols)).collect();
                self.b.node(name, Norm { eps: 1e-5, of: Normed::Centred }, inputs, &tensors)
            }
            "head_norm" => {
                let head_dim = self.sizes.head_dim;
                let weight = self.vector(&format!("{name}.norm.weight"), head_dim);
                self.b.node(name, Norm { eps: 1e-5, of: Normed::Head(head_dim) }, inputs, &[weight])
            }
            "embed" => {
                let shape = [self.sizes.vocab, self.facts.cols(name)];
                let table = self.b.tensor(name, Role::Table, &shape, self.format, source(name));
                self.b.node(name, Embed::default(), inputs, &[table])
            }
            "router_topk" => self.router(name, inputs[0]),
            "rope" => {
                let head_dim = self.sizes.head_dim;
                let mut parameters = RopeParameters::new(head_dim, 10000.0, RopeScaling::Plain);
                if self.rng.one_in(2) {
                    parameters.head.rotary_dim = head_dim / self.rng.pick(&[1, 2]);
                    parameters.head.pairs = self.rng.pick(&RopePairs::NAMED).1;
                }
                let head = parameters.head;
                let rope = self.b.rope(parameters);
                self.b.node(name, Rope { rope, head }, inputs, &[])
            }
            "attention" => {
                let Sizes { kv_heads, group, head_dim, .. } = self.sizes;
                let attention = Attention {
                    layer: self.b.next_layer(),
                    shared: false,
                    heads: kv_heads * group,
                    kv_heads,
                    head_dim,
                    v_head_dim: self.sizes.v_head_dim,
                    scale: 1.0 / (head_dim as f32).sqrt(),
                    softcap: self.rng.one_in(4).then_some(5.0),
                    causal: true,
                    window: self.rng.one_in(2).then_some(5),
                    kv: KvPair::both(KvFormat::F32),
                };
                self.b.node(name, attention, inputs, &[])
            }
            _ => match (op.sample)(node.expr.as_ref(), inputs.len()) {
                Some(op) => self.b.node(name, op, inputs, &[]),
                None => Err(GraphError::new(name, format!("no sample has a `{op}` of its own"))),
            },
        }
    }

    /// Everything that the pattern gives out, into the logits.
    fn finish(mut self, rule: &FusionRule, pattern: &SamplePattern<'_>) -> Result<Graph, GraphError> {
        let is_output = |guard: &super::guard::Guard| match &guard.check {
            GuardCheck::IsOutput { value } => Some(pattern.resolve(value).to_owned()),
            _ => None,
        };
        if let Some(name) = rule.guards.iter().find_map(is_output) {
            let output = self.values[&name];
            return self.b.finish(output);
        }
        let read = |make: &Make, value: ValueId| {
            make.b.graph().nodes.iter().any(|node| node.inputs.contains(&value))
        };
        let (mut stream, mut late) = (self.x, Vec::new());
        for name in pattern.nodes.iter().map(|(node, ..)| node.capture.as_str()) {
            let value = self.values[name];
            let out = rule.outputs.iter().any(|output| pattern.resolve(output) == name);
            let cached = rule.kv_write.iter().any(|written| pattern.resolve(written) == name);
            if read(&self, value) && !(out && !cached && self.rng.one_in(3)) {
                continue;
            }
            let value = match self.ty(value) {
                Type::Routing(_) => {
                    let y = self.expert_linear("sink", self.x, value, HIDDEN)?;
                    self.b.node("sink.sum", ExpertSum, &[y, value], &[])?
                }
                Type::F32(Rows::Slots(_), _) => {
                    let routing = self.slots_routing(value)?;
                    self.b.node("sink.sum", ExpertSum, &[value, routing], &[])?
                }
                Type::F32(Rows::LogitRows, _) => {
                    late.push(value);
                    continue;
                }
                _ => value,
            };
            // Two readers, so that none of them takes the value's rounding into its own kernel.
            for _ in 0..2 {
                let sink = self.linear("sink", value, HIDDEN)?;
                stream = self.b.node("stream", Elementwise::add(), &[stream, sink], &[])?;
            }
        }
        let last = self.b.node("last", SelectRows, &[stream], &[])?;
        let mut logits = self.linear("logits", last, self.sizes.vocab)?;
        for value in late {
            let more = self.linear("logits.more", value, self.sizes.vocab)?;
            logits = self.b.node("logits.sum", Elementwise::add(), &[logits, more], &[])?;
        }
        self.b.finish(logits)
    }

    /// The routing by which a value's rows are slots.
    fn slots_routing(&mut self, value: ValueId) -> Result<ValueId, GraphError> {
        let (mut value, graph) = (value, self.b.graph());
        while let Some(node) = graph.nodes.iter().find(|node| node.output == value) {
            match node.inputs.get(1) {
                Some(routing) if node.op.matmul() == Some(MatMul::EXPERT_LINEAR) => return Ok(*routing),
                _ => value = node.inputs[0],
            }
        }
        self.routing()
    }

    fn linear(&mut self, name: &str, x: ValueId, n: usize) -> Result<ValueId, GraphError> {
        let k = self.ty(x).cols();
        let from = format!("{name}.weight");
        let matrix = self.b.tensor(&from, Role::Matrix, &[n, k], self.format, source(&from));
        let mut tensors = vec![matrix];
        if self.rng.one_in(2) {
            tensors.push(self.vector(&format!("{name}.bias"), n));
        }
        self.b.node(name, MatMul::LINEAR, &[x], &tensors)
    }

    fn expert_linear(
        &mut self,
        name: &str,
        x: ValueId,
        routing: ValueId,
        n: usize,
    ) -> Result<ValueId, GraphError> {
        let shape = [self.sizes.experts, n, self.ty(x).cols()];
        let (from, packed) = (format!("{name}.weight"), self.experts_format == WeightFormat::Mxfp4);
        let scales = packed.then(|| format!("{name}.scales"));
        let data = TensorSource { name: from.clone(), scales, rows: RowSelect::ALL, transposed: false };
        let matrix = self.b.tensor(&from, Role::ExpertMatrix, &shape, self.experts_format, data);
        let mut tensors = vec![matrix];
        if self.rng.one_in(2) {
            let bias = format!("{name}.bias");
            tensors.push(self.b.tensor(&bias, Role::ExpertVector, &shape[..2], self.format, source(&bias)));
        }
        self.b.node(name, MatMul::EXPERT_LINEAR, &[x, routing], &tensors)
    }

    fn vector(&mut self, name: &str, n: usize) -> TensorId {
        self.b.tensor(name, Role::Vector, &[n], self.format, source(name))
    }
}

fn source(name: &str) -> TensorSource {
    TensorSource { name: name.into(), scales: None, rows: RowSelect::ALL, transposed: false }
}
