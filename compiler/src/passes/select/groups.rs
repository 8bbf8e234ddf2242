//! The kernels of each kind of group.

use super::builder::{KernelBuilder, domain};
use super::candidate::Prologue;
use super::{KernelUse, SelectError, Selector, max_rows};
use crate::ir::{GraphRowOp, Node, NodeId, OperandRef, PanelBuffer, Rows, Type, ValueId};
use crate::passes::fuse::{self, Composition, Group};
use kernmill_kernels_gen::kernel::{
    ATTENTION_TILE, AttentionBody, Body, Domain, Home, Mat, MatrixPart, PROLOGUE_TOKENS, ShrinkLoraTarget,
};
use kernmill_plan::format::{BLOCK, TILE_ROWS};
use kernmill_plan::numeric::ATTENTION_SEGMENT;

impl Selector<'_> {
    /// Kernel uses of group `index`, in order.
    pub(super) fn group(&self, index: usize) -> Result<Vec<KernelUse>, SelectError> {
        let group = &self.fused.groups[index];
        match &group.composition {
            Composition::Rows(nodes) => self.rows(group, group.name(), nodes).map(|one| vec![one]),
            Composition::Matmul { input, parts } => self.matmul(index, *input, parts),
            Composition::Experts { input, routing, part } => self.experts(index, *input, *routing, part),
            Composition::ExpertDown { root, residual, out } => {
                self.expert_down(index, *root, *residual, *out)
            }
            Composition::Attention { root, out, lora_input } => {
                self.attention(index, *root, *out, *lora_input)
            }
            Composition::Shrink { input, routing } => self.shrink(group, *input, *routing),
        }
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
    fn rows(&self, group: &Group, stem: &str, nodes: &[NodeId]) -> Result<KernelUse, SelectError> {
        let mut b = KernelBuilder::new(self);
        let steps = self.row_steps(nodes, &group.outputs)?;
        let row_ops = steps.iter().map(|step| step.numbered(&mut b)).collect();
        let last = self.graph.node(nodes[nodes.len() - 1]);
        let body = Body::Rows { domain: domain(self.graph.value(last.output).ty), row_ops };
        Ok(b.finish(self.label(group, stem), stem, body, 1))
    }

    /// Starts a kernel with the group's prologue: local to every worker or a step before it, as the candidate
    /// has it. `rows` are the input's.
    fn with_prologue<'b>(
        &'b self,
        group: &Group,
        rows: Rows,
    ) -> Result<(Vec<KernelUse>, KernelBuilder<'b>), SelectError> {
        let mut b = KernelBuilder::new(self);
        if group.prologue.is_empty() {
            return Ok((Vec::new(), b));
        }
        let by_workers = match rows {
            Rows::LogitRows => true,
            Rows::Tokens => self.trial.prologue == Prologue::Workers,
            // The workers' scratch has no room for a row per expert.
            Rows::Slots(_) => false,
        };
        if by_workers {
            let row_ops = self.local_row_ops(&mut b, &group.prologue, &group.outputs)?;
            row_ops.into_iter().for_each(|row_op| b.prologue(row_op));
            return Ok((Vec::new(), b));
        }
        let stem = format!("{}_prologue", group.name());
        Ok((vec![self.rows(group, &stem, &group.prologue)?], b))
    }

    fn matmul(
        &self,
        index: usize,
        input: ValueId,
        parts: &[fuse::ComposedPart],
    ) -> Result<Vec<KernelUse>, SelectError> {
        let group = &self.fused.groups[index];
        let ty = self.graph.value(input).ty;
        let (mut uses, first) = self.with_prologue(group, ty.rows())?;
        // In the last layer every token needs keys and values, but only the wanted ones need queries. A
        // prologue that every worker computes is not worth computing twice.
        let writes_cache =
            |part: &&fuse::ComposedPart| part.steps.iter().any(|step| step.facts().cached.is_some());
        let (cached, others): (Vec<_>, Vec<_>) = parts.iter().partition(writes_cache);
        let is_split = self.last_writer == Some(index) && !first.has_prologue() && !others.is_empty();
        let lists = if is_split { vec![cached, others] } else { vec![parts.iter().collect()] };
        let mut builders = vec![first];
        builders.resize_with(lists.len(), || KernelBuilder::new(self));
        let mut before = 0;
        for (mut b, parts) in builders.into_iter().zip(lists) {
            let count = parts.len();
            let input = b.input(input);
            let parts = parts.into_iter().map(|part| self.part(&mut b, group, part));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            let body = Body::Matmul { domain: domain(ty), input, parts };
            let rows = max_rows(ty, self.max_tokens);
            let one = b.finish(self.label(group, group.name()), group.name(), body, rows);
            uses.extend(self.with_panels((index, before), one));
            before += count;
        }
        Ok(uses)
    }

    /// A use behind the step that fills its panels, if it has any. In small batches, and where its rows are
    /// in the workers' scratch, every worker fills its own. `place` is the group's index and the number of
    /// the use's first part in it.
    fn with_panels(&self, place: (usize, usize), mut one: KernelUse) -> Vec<KernelUse> {
        let (domain, input, routed) = match &one.kernel.body {
            Body::Matmul { domain, input, .. } => (*domain, *input, None),
            Body::Experts { input, input_slots, routing, experts, top_k, .. } => {
                let domain = if *input_slots { Domain::Slots(*top_k) } else { Domain::Tokens };
                (domain, *input, Some((*routing, *experts, *top_k)))
            }
            Body::ExpertDown { input, routing, experts, top_k, .. } => {
                (Domain::Slots(*top_k), *input, Some((*routing, *experts, *top_k)))
            }
            _ => return vec![one],
        };
        let buffer_of = |val: usize| match one.kernel.vals[val].home {
            Home::Operand(operand) => match one.operands[operand] {
                OperandRef::Value(value) => Some(value),
                _ => None,
            },
            _ => None,
        };
        let (rows, runs) = (buffer_of(input), one.kernel.panel_runs());
        let Some(rows) = rows.filter(|_| !runs.is_empty() && self.max_tokens > PROLOGUE_TOKENS) else {
            return vec![one];
        };
        let mut b = KernelBuilder::new(self);
        let input = b.input(rows);
        let routed = match routed {
            Some((routing, experts, top_k)) => {
                let Some(routing) = buffer_of(routing) else { return vec![one] };
                Some((b.input(routing), experts, top_k))
            }
            None => None,
        };
        let (group, mut part) = place;
        let mut panels = Vec::with_capacity(runs.len());
        for run in runs {
            let buffer = PanelBuffer { group: group as u32, part: part as u32, bytes: run.bytes as u64 };
            panels.push((b.panels(buffer), run.kind, run.terms));
            one.kernel.panels.push(one.operands.len());
            one.operands.push(OperandRef::Panels(buffer));
            one.reads.push(OperandRef::Panels(buffer));
            part += run.parts;
        }
        let body = Body::Panels { domain, input, routed, panels };
        let mut filling = b.finish(format!("{}_panels", one.label), "panels", body, one.kernel.max_rows);
        filling.kernel.tiling = one.kernel.tiling;
        vec![filling, one]
    }

    fn experts(
        &self,
        index: usize,
        input: ValueId,
        routing: ValueId,
        part: &fuse::ComposedPart,
    ) -> Result<Vec<KernelUse>, SelectError> {
        let group = &self.fused.groups[index];
        let rows = self.graph.value(input).ty.rows();
        let (mut uses, mut b) = self.with_prologue(group, rows)?;
        let experts = self.graph.tensor(self.graph.node(part.roots[0]).tensors[0]).shape[0];
        let top_k = self.graph.value(routing).ty.cols();
        let (input, routing) = (b.input(input), b.input(routing));
        let part = self.part(&mut b, group, part)?;
        let input_slots = matches!(rows, Rows::Slots(_));
        let body = Body::Experts { input, input_slots, routing, experts, top_k, part, even_rows: 1 };
        let mut one = b.finish(self.label(group, group.name()), group.name(), body, self.max_tokens * top_k);
        let rows = self.trial.model.even_rows(&one.kernel);
        if let Body::Experts { even_rows, .. } = &mut one.kernel.body {
            *even_rows = rows;
        }
        uses.extend(self.with_panels((index, 0), one));
        Ok(uses)
    }

    /// Matrices and their epilogue. Work items are heads where the epilogue rotates them or writes them to
    /// the cache; other parts of the same kernel have rows of their own, which heads need not divide.
    fn part(
        &self,
        b: &mut KernelBuilder,
        group: &Group,
        part: &fuse::ComposedPart,
    ) -> Result<MatrixPart, SelectError> {
        let mats: Vec<Mat> = part.roots.iter().flat_map(|id| b.mats(self.graph.node(*id))).collect();
        let head = part.steps.iter().find_map(|step| step.facts().head_dim);
        let blocks = part.steps.iter().any(|step| step.facts().is_by_blocks);
        let rows_per_item = match head {
            Some(head) => head,
            None if blocks => BLOCK,
            None if part.roots.len() > 1 => TILE_ROWS,
            None => b.rows_per_item(&mats[0]),
        };
        let mut epilogue = Vec::with_capacity(part.steps.len());
        for step in &part.steps {
            epilogue.push(match step {
                GraphRowOp::Store(store) => b.store(group, store.out).into(),
                other => other.numbered(b),
            });
        }
        // A matrix with several terms is read tile by tile, each tile once for every term.
        let in_turn = mats.len() > part.roots.len();
        let interleaved = !in_turn && b.are_interleaved(part.roots.iter().map(|id| self.graph.node(*id)));
        Ok(MatrixPart { mats, interleaved, rows_per_item, epilogue })
    }

    fn expert_down(
        &self,
        index: usize,
        root: NodeId,
        residual: Option<ValueId>,
        out: ValueId,
    ) -> Result<Vec<KernelUse>, SelectError> {
        let group = &self.fused.groups[index];
        let down = self.graph.node(root);
        let mut b = KernelBuilder::new(self);
        let (input, routing) = (b.input(down.inputs[0]), b.input(down.inputs[1]));
        let mat = b.mat(down);
        let residual = residual.map(|value| b.input(value));
        let out = b.output(out);
        let Type::Routing(top_k) = self.graph.value(down.inputs[1]).ty else {
            return Err(self.bug(down, "its second input is not a routing"));
        };
        let experts = self.graph.tensor(down.tensors[0]).shape[0];
        let top_k = top_k as usize;
        let rows_per_item = b.rows_per_item(&mat);
        let body = Body::ExpertDown { input, routing, experts, top_k, mat, rows_per_item, residual, out };
        let one = b.finish(self.label(group, group.name()), group.name(), body, self.max_tokens * top_k);
        Ok(self.with_panels((index, 0), one))
    }

    /// The A of adapters, with what comes before it.
    fn shrink(
        &self,
        group: &Group,
        input: ValueId,
        routing: Option<ValueId>,
    ) -> Result<Vec<KernelUse>, SelectError> {
        let mut b = KernelBuilder::new(self);
        let by_rows = self.max_tokens > PROLOGUE_TOKENS;
        let mut row_ops = self.local_row_ops(&mut b, &group.prologue, &group.outputs)?;
        if !by_rows {
            row_ops.drain(..).for_each(|row_op| b.prologue(row_op));
        }
        let input_slots = matches!(self.graph.value(input).ty.rows(), Rows::Slots(_));
        let input = b.input(input);
        let mut lora_targets = Vec::with_capacity(group.roots.len());
        let mut experts = 0;
        for node in group.roots.iter().map(|id| self.graph.node(*id)) {
            let shrink = node.op.shrink().ok_or_else(|| self.bug(node, "is not a shrink"))?;
            let lora_target = shrink.lora_target;
            experts = self.graph.tensor(self.lora_targets[lora_target as usize].tensors[0]).shape[0];
            let out = b.output(node.output);
            lora_targets.push(ShrinkLoraTarget {
                lora_target: b.operand(OperandRef::LoraTarget(lora_target)),
                format: shrink.format,
                out,
            });
        }
        let routed = routing.map(|routing| (b.input(routing), experts, self.graph.value(routing).ty.cols()));
        let body = Body::Shrink { input, routed, input_slots, lora_targets, row_ops, by_rows };
        Ok(vec![b.finish(self.label(group, "shrink"), "shrink", body, 1)])
    }

    fn attention(
        &self,
        index: usize,
        root: NodeId,
        out: ValueId,
        lora_input: Option<ValueId>,
    ) -> Result<Vec<KernelUse>, SelectError> {
        let group = &self.fused.groups[index];
        let node = self.graph.node(root);
        let a = node.op.attention().ok_or_else(|| self.bug(node, "is not an attention"))?;
        let kind = a.layer_kind();
        let mut uses = Vec::new();
        if self.fused.kv_writer(root) == index {
            uses.push(self.kv_store(group, node));
        }
        let mut b = KernelBuilder::new(self);
        let q = b.input(node.inputs[0]);
        let pool = b.operand(OperandRef::Kv(a.layer, kind));
        let sinks = node.tensors.first().map(|sinks| b.operand(OperandRef::Tensor(*sinks)));
        let out = b.output(out);
        let lora_input = lora_input.map(|value| b.store(group, value));
        // A small batch has a run of each sequence, which reads the cache once.
        let tile_tokens = match self.max_tokens {
            few @ ..=PROLOGUE_TOKENS => few,
            _ => ATTENTION_TILE,
        };
        let max_segments = match a.window {
            // As many positions are in the windows of a tile's tokens, and touch at most this many segments.
            Some(window) => {
                let seen = if a.causal { window as usize } else { 2 * window as usize - 1 };
                self.max_segments.min((seen + tile_tokens - 1).div_ceil(ATTENTION_SEGMENT) + 1)
            }
            None => self.max_segments,
        };
        let body = Body::Attention(AttentionBody {
            q,
            pool,
            kind,
            geometry: a.geometry(),
            heads: a.heads,
            scale: a.scale.into(),
            softcap: a.softcap.map(Into::into),
            causal: a.causal,
            window: a.window,
            tile_tokens,
            by_runs: (2..=PROLOGUE_TOKENS).contains(&self.max_tokens),
            max_segments,
            sinks,
            out,
            lora_input,
        });
        uses.push(b.finish(self.label(group, group.name()), group.name(), body, 1));
        Ok(uses)
    }

    /// Writes rows of keys and values into the cache, for attentions whose inputs come from buffers.
    fn kv_store(&self, group: &Group, node: &Node) -> KernelUse {
        let mut b = KernelBuilder::new(self);
        let attention = node.op.attention().expect("keys and values are an attention's");
        let row_ops = attention.cache_writes(node).map(|write| write.numbered(&mut b));
        let body = Body::Rows { domain: Domain::Tokens, row_ops: row_ops.to_vec() };
        b.finish(self.label(group, "kv_store"), "kv_store", body, 1)
    }
}
