//! The kernels of each kind of group.

use super::builder::{Builder, domain, is_stage};
use super::candidate::Prologue;
use super::{KernelUse, OperandRef, SelectError, Selector, layer_kind, max_rows};
use crate::fuse::{Group, GroupKind};
use crate::graph::{Attention, Node, NodeId, Op, OpKind, Type, ValueId};
use kernmill_kernels::expr::Expr;
use kernmill_kernels::kernel::{
    ATTENTION_TILE, AttentionBody, Body, Domain, Epilogue, KvPlane, Mat, PROLOGUE_TOKENS, Part, ShrinkSite,
    Stage, ValId,
};
use kernmill_plan::format::{BLOCK, TILE_ROWS};
use kernmill_plan::numeric::ATTENTION_SEGMENT;

impl Selector<'_> {
    /// Kernel uses of group `index`, in order.
    pub(super) fn group(&self, index: usize) -> Result<Vec<KernelUse>, SelectError> {
        let group = &self.fused.groups[index];
        match group.kind {
            GroupKind::Single(OpKind::Attention) | GroupKind::Attention => self.attention(index),
            GroupKind::Single(_) => self.single(group),
            GroupKind::NormQuant => self.rows(group, "norm_quant", &group.members()).map(|one| vec![one]),
            GroupKind::Qkv => self.qkv(group),
            GroupKind::LinearResidual => self.linear_residual(group),
            GroupKind::MlpGateUp => self.mlp_gate_up(group),
            GroupKind::Logits => self.logits(group),
            GroupKind::MoeGateUp => self.moe_gate_up(group),
            GroupKind::MoeDown => self.moe_down(group),
            GroupKind::Shrink => self.shrink(group),
        }
    }

    /// The captured node, which the rule's pattern guarantees.
    fn captured(&self, group: &Group, name: &str) -> Result<&Node, SelectError> {
        let id = group.capture(name).ok_or_else(|| {
            let first = group.members()[0];
            self.bug(self.graph.node(first), &format!("its group lacks the capture `{name}`"))
        })?;
        Ok(self.graph.node(id))
    }

    fn optional(&self, group: &Group, name: &str) -> Option<&Node> {
        group.capture(name).map(|id| self.graph.node(id))
    }

    /// A label such as `layers.3.qkv`: the layer from the group's last value, the kind from `what`.
    fn label(&self, group: &Group, what: &str) -> String {
        let last = group.members().last().map(|id| self.graph.node(*id).output);
        let name = last.map_or("", |value| self.graph.value(value).name.as_str());
        let mut parts = name.split('.');
        match (parts.next(), parts.next()) {
            (Some(prefix), Some(layer)) if layer.parse::<u32>().is_ok() => format!("{prefix}.{layer}.{what}"),
            _ => what.to_owned(),
        }
    }

    /// Nodes as one kernel over rows.
    fn rows(&self, group: &Group, stem: &'static str, nodes: &[NodeId]) -> Result<KernelUse, SelectError> {
        let mut b = Builder::new(self);
        let mut stages = Vec::with_capacity(nodes.len());
        for id in nodes {
            let node = self.graph.node(*id);
            let out = b.output(node.output);
            stages.push(self.stage(&mut b, node, out)?);
        }
        let last = self.graph.node(nodes[nodes.len() - 1]);
        let ty = self.graph.value(last.output).ty;
        let domain = match last.op {
            // Expert sums turn slots into tokens: they walk over tokens.
            Op::ExpertSum => Domain::Tokens,
            _ => domain(ty),
        };
        let body = Body::Rows { domain, stages };
        Ok(b.finish(self.label(group, stem), stem, body, 1))
    }

    fn single(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let id = group.roots[0];
        let node = self.graph.node(id);
        let stem = node.op.kind().name();
        if matches!(node.op, Op::LoraShrink { .. }) {
            return self.shrink(group);
        }
        if is_stage(&node.op) {
            return Ok(vec![self.rows(group, stem, &[id])?]);
        }
        let mut b = Builder::new(self);
        let input = b.input(node.inputs[0]);
        let mat = b.mat(node);
        let experts = matches!(node.op, Op::ExpertLinear | Op::QuantExpertLinear | Op::Bf16ExpertLinear);
        let routing = experts.then(|| b.input(node.inputs[1]));
        let out = b.output(node.output);
        let part = Part { unit: b.unit(&mat), mats: vec![mat], epilogue: vec![Epilogue::Store { out }] };
        let ty = self.graph.value(node.output).ty;
        let rows = max_rows(ty, self.max_tokens);
        let body = match routing {
            Some(routing) => self.experts_body(node, input, routing, part),
            None => Body::Matmul { domain: domain(ty), input, parts: vec![part] },
        };
        Ok(vec![b.finish(self.label(group, stem), stem, body, rows)])
    }

    fn experts_body(&self, node: &Node, input: ValId, routing: ValId, part: Part) -> Body {
        let input_slots = matches!(self.graph.value(node.inputs[0]).ty.rows(), crate::graph::Rows::Slots(_));
        let top_k = self.graph.value(node.inputs[1]).ty.cols();
        let experts = self.graph.tensor(node.tensors[0]).shape[0];
        Body::Experts { input, input_slots, routing, experts, top_k, part }
    }

    /// Starts a kernel with a prologue: local to every worker or a step before it, as the candidate has it.
    fn with_prologue<'b>(
        &'b self,
        group: &Group,
        stem: &'static str,
        nodes: &[NodeId],
        always_local: bool,
    ) -> Result<(Vec<KernelUse>, Builder<'b>), SelectError> {
        let mut b = Builder::new(self);
        if nodes.is_empty() {
            return Ok((Vec::new(), b));
        }
        if always_local || self.trial.prologue == Prologue::Workers {
            let stages = self.local_stages(&mut b, nodes, &group.outputs)?;
            stages.into_iter().for_each(|stage| b.prologue(stage));
            return Ok((Vec::new(), b));
        }
        Ok((vec![self.rows(group, stem, nodes)?], b))
    }

    fn qkv(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let (mut uses, mut b) = self.with_prologue(group, "qkv_prologue", &group.prologue, false)?;
        let attention = self.attention_of(group)?;
        let (attention_node, a) = attention;
        let kind = layer_kind(a.window);
        let pool = OperandRef::Kv(a.layer, kind);
        let geometry = self.geometry.ok_or_else(|| self.bug(attention_node, "the graph has no attention"))?;
        let q = self.captured(group, "q")?;
        let input = b.input(q.inputs[0]);
        let mut parts = Vec::new();
        for (name, rope, plane) in
            [("q", "rope_q", None), ("k", "rope_k", Some(KvPlane::K)), ("v", "rope_v", Some(KvPlane::V))]
        {
            let node = self.captured(group, name)?;
            let rope = self.optional(group, rope);
            let mat = b.mat(node);
            let mut epilogue = Vec::new();
            if let Some(Node { op: Op::Rope { rope, .. }, .. }) = rope {
                epilogue.push(Epilogue::Rope { table: b.operand(OperandRef::Rope(*rope)) });
            }
            epilogue.push(match plane {
                Some(plane) => Epilogue::KvWrite { pool: b.operand(pool), plane, kind, geometry },
                None => Epilogue::Store { out: b.output(rope.map_or(node.output, |rope| rope.output)) },
            });
            parts.push(Part { mats: vec![mat], unit: a.head_dim, epilogue });
        }
        let body = Body::Matmul { domain: Domain::Tokens, input, parts };
        uses.push(b.finish(self.label(group, "qkv"), "qkv", body, self.max_tokens));
        Ok(uses)
    }

    /// The attention that reads this group's keys.
    fn attention_of(&self, group: &Group) -> Result<(&Node, &Attention), SelectError> {
        let found = self.graph.nodes.iter().find_map(|node| match &node.op {
            Op::Attention(a) if group.outputs.contains(&node.inputs[1]) => Some((node, a)),
            _ => None,
        });
        found.ok_or_else(|| {
            let first = self.graph.node(group.members()[0]);
            self.bug(first, "no attention reads its group's keys")
        })
    }

    fn attention(&self, index: usize) -> Result<Vec<KernelUse>, SelectError> {
        let group = &self.fused.groups[index];
        let node = self.graph.node(group.roots[0]);
        let Op::Attention(a) = &node.op else { return Err(self.bug(node, "is not an attention")) };
        let geometry = self.geometry.ok_or_else(|| self.bug(node, "the graph has no attention"))?;
        let kind = layer_kind(a.window);
        let mut uses = Vec::new();
        if self.fused.kv_writer(group.roots[0]) == index {
            uses.push(self.kv_store(group, node, a));
        }
        let mut b = Builder::new(self);
        let q = b.input(node.inputs[0]);
        let pool = b.operand(OperandRef::Kv(a.layer, kind));
        let sinks = node.tensors.first().map(|sinks| b.tensor(*sinks));
        let quant = self.optional(group, "quant");
        let out = b.output(quant.map_or(node.output, |quant| quant.output));
        let kept = quant.and_then(|_| b.kept(group, node.output));
        let tile_tokens = if self.max_tokens > PROLOGUE_TOKENS { ATTENTION_TILE } else { 1 };
        let max_segments = match a.window {
            // As many positions are in the windows of a tile's tokens, and touch at most this many segments.
            Some(w) => self.max_segments.min((w as usize + tile_tokens - 1).div_ceil(ATTENTION_SEGMENT) + 1),
            None => self.max_segments,
        };
        let body = Body::Attention(AttentionBody {
            q,
            pool,
            kind,
            geometry,
            heads: a.heads,
            scale: a.scale,
            window: a.window,
            tile_tokens,
            max_segments,
            sinks,
            out,
            kept,
        });
        uses.push(b.finish(self.label(group, "attention"), "attention", body, 1));
        Ok(uses)
    }

    /// Writes rows of keys and values into the cache, for attentions whose inputs come from elsewhere than a `qkv` group.
    fn kv_store(&self, group: &Group, node: &Node, a: &Attention) -> KernelUse {
        let mut b = Builder::new(self);
        let kind = layer_kind(a.window);
        let pool = b.operand(OperandRef::Kv(a.layer, kind));
        let geometry = self.geometry.expect("attention() has it");
        let stages = [(1, KvPlane::K), (2, KvPlane::V)].map(|(i, plane)| {
            let x = b.input(node.inputs[i]);
            Stage::KvStore { x, pool, plane, kind, geometry }
        });
        let body = Body::Rows { domain: Domain::Tokens, stages: stages.to_vec() };
        b.finish(self.label(group, "kv_store"), "kv_store", body, 1)
    }

    fn linear_residual(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let (mut uses, mut b) = self.with_prologue(group, "quantize", &group.prologue, false)?;
        let (linear, add) = (self.captured(group, "linear")?, self.captured(group, "add")?);
        let input = b.input(linear.inputs[0]);
        let mat = b.mat(linear);
        let x = b.input(residual(add, linear.output));
        let out = b.output(add.output);
        let epilogue = vec![Epilogue::Add { x }, Epilogue::Store { out }];
        let ty = self.graph.value(add.output).ty;
        let parts = vec![Part { unit: b.unit(&mat), mats: vec![mat], epilogue }];
        let body = Body::Matmul { domain: domain(ty), input, parts };
        let rows = max_rows(ty, self.max_tokens);
        uses.push(b.finish(self.label(group, "linear_residual"), "linear_residual", body, rows));
        Ok(uses)
    }

    /// The A of adapters, with what comes before it.
    fn shrink(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let mut b = Builder::new(self);
        let by_rows = self.max_tokens > PROLOGUE_TOKENS;
        let stages = self.local_stages(&mut b, &group.prologue, &group.outputs)?;
        let first = self.graph.node(group.roots[0]);
        let input = b.input(first.inputs[0]);
        let input_slots = matches!(self.graph.value(first.inputs[0]).ty.rows(), crate::graph::Rows::Slots(_));
        let mut sites = Vec::with_capacity(group.roots.len());
        let mut experts = 0;
        for node in group.roots.iter().map(|id| self.graph.node(*id)) {
            let Op::LoraShrink { site, format } = node.op else {
                return Err(self.bug(node, "is not a shrink"));
            };
            experts = self.graph.tensor(self.sites[site as usize].tensors[0]).shape[0];
            let out = b.output(node.output);
            sites.push(ShrinkSite { site: b.operand(OperandRef::Site(site)), format, out });
        }
        let routed = first.inputs.get(1).map(|routing| {
            let top_k = self.graph.value(*routing).ty.cols();
            (b.input(*routing), experts, top_k)
        });
        let stages = if by_rows {
            stages
        } else {
            stages.into_iter().for_each(|stage| b.prologue(stage));
            Vec::new()
        };
        let body = Body::Shrink { input, routed, input_slots, sites, stages, by_rows };
        Ok(vec![b.finish(self.label(group, "shrink"), "shrink", body, 1)])
    }

    /// The gate and up matrices as one part that ends in the activation.
    fn glu_part(&self, b: &mut Builder, group: &Group) -> Result<Part, SelectError> {
        let (gate, up) = (self.captured(group, "gate")?, self.captured(group, "up")?);
        let glu = self.captured(group, "glu")?;
        let Op::Glu { expr } = &glu.op else { return Err(self.bug(glu, "is not a glu")) };
        // The rule's gate and up are the activation's inputs in that order.
        let expr = if glu.inputs[0] == gate.output { expr.clone() } else { swap_vars(expr) };
        let mats: Vec<Mat> = vec![b.mat(gate), b.mat(up)];
        let mut epilogue = vec![Epilogue::Combine { expr }];
        let unit = match self.optional(group, "quant_out") {
            Some(quant) => {
                epilogue.extend(b.kept(group, glu.output).map(Epilogue::Keep));
                let out = b.output(quant.output);
                epilogue.push(match quant.op {
                    Op::Bf16Cast => Epilogue::Bf16Cast { out },
                    _ => Epilogue::Quantize { out },
                });
                BLOCK
            }
            None => {
                epilogue.push(Epilogue::Store { out: b.output(glu.output) });
                TILE_ROWS
            }
        };
        Ok(Part { mats, unit, epilogue })
    }

    fn mlp_gate_up(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let (mut uses, mut b) = self.with_prologue(group, "mlp_prologue", &group.prologue, false)?;
        let gate = self.captured(group, "gate")?;
        let input = b.input(gate.inputs[0]);
        let part = self.glu_part(&mut b, group)?;
        let body = Body::Matmul { domain: Domain::Tokens, input, parts: vec![part] };
        uses.push(b.finish(self.label(group, "mlp_gate_up"), "mlp_gate_up", body, self.max_tokens));
        Ok(uses)
    }

    fn moe_gate_up(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let (mut uses, mut b) = self.with_prologue(group, "moe_prologue", &group.prologue, false)?;
        let gate = self.captured(group, "gate")?;
        let input = b.input(gate.inputs[0]);
        let routing = b.input(gate.inputs[1]);
        let part = self.glu_part(&mut b, group)?;
        let top_k = self.graph.value(gate.inputs[1]).ty.cols();
        let body = self.experts_body(gate, input, routing, part);
        uses.push(b.finish(self.label(group, "moe_gate_up"), "moe_gate_up", body, self.max_tokens * top_k));
        Ok(uses)
    }

    fn moe_down(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let down = self.captured(group, "down")?;
        let (sum, add) = (self.captured(group, "sum")?, self.captured(group, "add")?);
        let mut b = Builder::new(self);
        let input = b.input(down.inputs[0]);
        let routing = b.input(down.inputs[1]);
        let mat = b.mat(down);
        let residual = Some(b.input(residual(add, sum.output)));
        let out = b.output(add.output);
        let Type::Routing(top_k) = self.graph.value(down.inputs[1]).ty else {
            return Err(self.bug(down, "its second input is not a routing"));
        };
        let experts = self.graph.tensor(down.tensors[0]).shape[0];
        let top_k = top_k as usize;
        let unit = b.unit(&mat);
        let body = Body::ExpertDown { input, routing, experts, top_k, mat, unit, residual, out };
        Ok(vec![b.finish(self.label(group, "moe_down"), "moe_down", body, self.max_tokens * top_k)])
    }

    fn logits(&self, group: &Group) -> Result<Vec<KernelUse>, SelectError> {
        let (mut uses, mut b) = self.with_prologue(group, "logits_prologue", &group.prologue, true)?;
        let linear = self.captured(group, "linear")?;
        let input = b.input(linear.inputs[0]);
        let mat = b.mat(linear);
        let out = b.output(linear.output);
        let unit = b.unit(&mat);
        let parts = vec![Part { mats: vec![mat], unit, epilogue: vec![Epilogue::Store { out }] }];
        let body = Body::Matmul { domain: Domain::Wanted, input, parts };
        let rows = kernmill_plan::program::LOGIT_SLAB;
        uses.push(b.finish(self.label(group, "logits"), "logits", body, rows));
        Ok(uses)
    }
}

/// The input of `add` that is not `other`.
fn residual(add: &Node, other: ValueId) -> ValueId {
    if add.inputs[0] == other { add.inputs[1] } else { add.inputs[0] }
}

/// The expression with variables 0 and 1 exchanged.
fn swap_vars(expr: &Expr) -> Expr {
    match expr {
        Expr::Var(i) => Expr::Var(1 - i),
        Expr::Const(c) => Expr::Const(*c),
        Expr::Unary(op, a) => Expr::Unary(*op, Box::new(swap_vars(a))),
        Expr::Binary(op, a, b) => Expr::Binary(*op, Box::new(swap_vars(a)), Box::new(swap_vars(b))),
    }
}
