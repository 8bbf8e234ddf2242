//! The steps of an epilogue: what the results of matrices go through, one after the other, before they leave
//! the kernel.

use super::group::Compose;
use crate::ir::{GraphRowOp, MatMul, Node, NodeId, OperandRef, Round, ValueId};
use crate::passes::fuse::composition::sum_of_units;
use crate::passes::fuse::row_steps::MAX_OPERATORS;
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::kernel::KvPlane;
use kernmill_kernels_gen::row_op::{ElementwiseRow, KvStoreRow, RoundRow, RoundTo, RowPlace, StoreRow};

/// The steps of an epilogue in the making.
pub(super) struct EpilogueSteps<'c, 'a> {
    of: &'c Compose<'a>,
    /// Units of results.
    units: usize,
    /// Values at hand, as expressions of the units and `inputs`.
    live: Vec<(ValueId, Expr)>,
    /// Other values that the expressions read.
    inputs: Vec<ValueId>,
    steps: Vec<GraphRowOp>,
    /// Nodes to come.
    left: &'c [NodeId],
}

impl<'c, 'a> EpilogueSteps<'c, 'a> {
    /// At hand are the results of products, one unit of each term; `left` is the epilogue.
    pub(super) fn new(of: &'c Compose<'a>, roots: &[NodeId], left: &'c [NodeId]) -> EpilogueSteps<'c, 'a> {
        let (mut units, mut live) = (0, Vec::new());
        for node in roots.iter().map(|id| of.graph.node(*id)) {
            let terms = node.op.matmul().map_or(1, MatMul::terms);
            live.push((node.output, sum_of_units(units, terms)));
            units += terms;
        }
        EpilogueSteps { of, units, live, inputs: Vec::new(), steps: Vec::new(), left }
    }

    pub(super) fn done(self) -> Vec<GraphRowOp> {
        self.steps
    }

    /// Does a node; `left` come after it.
    pub(super) fn node(&mut self, node: &Node, left: &'c [NodeId]) -> Result<(), String> {
        self.left = left;
        let out = node.output;
        let def = node.op.def();
        if let Some(expr) = def.expr() {
            self.map(node, &expr)?;
            return self.hand_out(out);
        }
        let step = def.in_epilogue(node);
        match step.unwrap_or_else(|| unreachable!("no {} is legal in an epilogue", node.kind())) {
            // It changes the results in place.
            step if step.facts().out.is_none() => {
                self.settle(node.inputs[0])?;
                self.steps.push(step);
                self.live = vec![(out, Expr::Var(0))];
            }
            // The cache's own rounding is the same.
            _ if matches!(node.op.rounding(), Some(Round::Kv(_))) && self.cache_write(out).is_some() => {
                self.settle(node.inputs[0])?;
                self.live = vec![(out, Expr::Var(0))];
            }
            GraphRowOp::Round(RoundRow { to: RoundTo::Kv(to), .. }) if to.format.is_scaled() => {
                let name = self.of.name(out);
                return Err(format!(
                    "{name} is rounded to {to} by heads, and only the write to the KV cache does that"
                ));
            }
            step => return self.last(node, step),
        }
        self.hand_out(out)
    }

    fn map(&mut self, node: &Node, expr: &Expr) -> Result<(), String> {
        let mut arguments = Vec::with_capacity(node.inputs.len());
        for value in &node.inputs {
            let known = self.live.iter().find(|(live, _)| live == value).map(|(_, expr)| expr.clone());
            arguments.push(match known {
                Some(expr) => expr,
                None if self.in_epilogue(*value) => return Err(self.gone(*value)),
                None => {
                    let known = self.inputs.iter().position(|input| input == value);
                    let index = known.unwrap_or_else(|| {
                        self.inputs.push(*value);
                        self.inputs.len() - 1
                    });
                    Expr::Var(self.units + index)
                }
            });
        }
        let expr = expr.substitute(&arguments);
        if expr.operators() > MAX_OPERATORS {
            return Err(format!(
                "the expression of {} has {} operators, expected at most {MAX_OPERATORS}",
                self.of.name(node.output),
                expr.operators()
            ));
        }
        self.live.push((node.output, expr));
        Ok(())
    }

    /// A rounding, behind which nothing comes: no op of an epilogue reads a rounded value.
    fn last(&mut self, node: &Node, step: GraphRowOp) -> Result<(), String> {
        self.settle(node.inputs[0])?;
        self.steps.push(step);
        self.live.clear();
        Ok(())
    }

    /// Stores the value if it is one that leaves the group.
    pub(super) fn hand_out(&mut self, value: ValueId) -> Result<(), String> {
        if !self.of.group.outputs.contains(&value) {
            return Ok(());
        }
        self.settle(value)?;
        self.steps.push(self.cache_write(value).unwrap_or_else(|| StoreRow::results(value).into()));
        Ok(())
    }

    /// Makes `value` the one unit of results; no other value at hand may be needed later.
    fn settle(&mut self, value: ValueId) -> Result<(), String> {
        let Some((_, expr)) = self.live.iter().find(|(live, _)| *live == value).cloned() else {
            return Err(self.gone(value));
        };
        if self.units == 1 && self.live.len() == 1 && expr == Expr::Var(0) {
            return Ok(());
        }
        let needed = |other: ValueId| {
            let users = self.of.uses.users(other);
            other != value && self.left.iter().any(|id| users.contains(id))
        };
        if let Some((other, _)) = self.live.iter().find(|(live, _)| needed(*live)) {
            let (a, b) = (self.of.name(*other), self.of.name(value));
            return Err(format!("{a} is needed after {b} has been stored, rotated or rounded"));
        }
        if self.units > 1 || expr != Expr::Var(0) {
            let inputs = std::mem::take(&mut self.inputs);
            self.steps.push(ElementwiseRow { expr, inputs, vectors: vec![], out: RowPlace::Results }.into());
        }
        self.units = 1;
        self.live = vec![(value, Expr::Var(0))];
        Ok(())
    }

    /// How a value goes to the cache, if it does.
    fn cache_write(&self, value: ValueId) -> Option<GraphRowOp> {
        let attention = self.of.graph.node(self.of.group.kv_write?);
        let plane = match attention.inputs.iter().position(|input| *input == value) {
            Some(1) => KvPlane::K,
            Some(2) => KvPlane::V,
            _ => return None,
        };
        let a = attention.op.attention()?;
        let kind = a.layer_kind();
        let pool = OperandRef::Kv(a.layer, kind);
        Some(KvStoreRow { x: RowPlace::Results, pool, plane, kind, geometry: a.geometry() }.into())
    }

    fn in_epilogue(&self, value: ValueId) -> bool {
        let group = self.of.group;
        let producer = self.of.uses.producer(value);
        producer.is_some_and(|id| group.roots.contains(&id) || group.epilogue.contains(&id))
    }

    /// Rotations and roundings leave nothing of what they are given.
    fn gone(&self, value: ValueId) -> String {
        format!("{} is needed after it has been rotated or rounded", self.of.name(value))
    }
}
