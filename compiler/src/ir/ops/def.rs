//! Definitions of ops, for the passes. Each op of a graph has one, in a separate file;
//! `compiler/src/ir/ops/mod.rs` lists them.

use super::form::{OpForm, Operands};
use super::keys::OpInfo;
use super::places::KernelPosition;
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Graph, GraphEpilogue, GraphMat, GraphRowOp, Node, Op, TensorId, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::Expr;
use kernmill_kernels_gen::kernel::{RowOp, ValId};

/// An op's definition: everything that differs from op to op. Methods that are given an [`Op`], or a [`Node`]
/// with one, are given one of the definition's own kind.
pub trait OpDef: Sync {
    /// The properties that every op of the kind shares.
    fn outline(&self) -> &Outline;

    /// The output's type, for operands of the op's form.
    ///
    /// # Errors
    /// What does not fit and what was expected.
    fn infer(&self, op: &Op, on: &Operands<'_>) -> Result<Type, String>;

    /// Attributes in graph text, with their parentheses.
    fn attributes(&self, _: &Op) -> String {
        String::new()
    }

    /// Reads the attributes back. `written` says whether there are any; their parentheses are the caller's.
    ///
    /// # Errors
    /// What was expected.
    fn parse(&self, at: &mut LineCursor<'_>, written: bool) -> Result<Op, String>;

    /// The op's meaning, in plain loops in the order of docs/dev/numerics.md: its value for the batch at
    /// hand.
    fn eval(&self, state: &mut OpState, node: &Node) -> Data;

    /// Whether the order of the inputs does not matter.
    fn commutes(&self) -> bool {
        false
    }

    /// The expression of an elementwise op; variable i is input i. Its row operation, its step in an
    /// epilogue, its micro-kernel and its cost follow from it.
    fn expr(&self, _: &Op) -> Option<Expr> {
        None
    }

    /// The row operation, for ops that may be in kernels over rows.
    fn row_op(&self, node: &Node, _kernels: &dyn Packed) -> Option<GraphRowOp> {
        let expr = self.expr(&node.op)?;
        Some(RowOp::Elementwise { expr, inputs: node.inputs.clone(), out: node.output })
    }

    /// The effect of an op that is not elementwise on results in an epilogue.
    fn in_epilogue(&self, _: &Node) -> Option<InEpilogue> {
        None
    }

    /// The time of one of the op's row operations for one row, in ns. Rows have as many elements as `len`
    /// says.
    fn row_cost(&self, row_op: &RowOp, len: &dyn Fn(ValId) -> usize, of: &RowCosts) -> f64 {
        row_op.out().map_or(0.0, |out| of.element * len(*out) as f64)
    }

    /// Sizes that kernels have only multiples of: what is measured, its value, the multiple. `width` is the
    /// output's.
    fn multiples(&self, _: &Op, _width: usize) -> Vec<(&'static str, usize, usize)> {
        Vec::new()
    }

    /// The op's demands on the values around it, for samples of fused ops. Elementwise ops keep rows and
    /// columns.
    fn facts(&self, known: &mut KnownValues<'_>, inputs: &[&str], out: &str) {
        for input in inputs {
            known.same_cols(input, out);
            known.same_rows(input, out);
        }
    }

    /// The op with attributes for a sample, of `inputs` inputs and with the expression that a pattern asks
    /// for. None of ops that have tensors or look at sizes: the sample makes those itself.
    fn sample(&self, _expr: Option<&Expr>, _inputs: usize) -> Option<Op> {
        None
    }
}

/// The properties of an op that its definition states without an op at hand.
pub struct Outline {
    /// The name in graph text, specs and listings.
    pub name: &'static str,
    /// Types of the inputs, roles and formats of the tensors.
    pub form: OpForm,
    /// The ops of the spec language that become this one.
    pub spec: &'static [SpecOp],
    /// Where in kernels the op may be.
    pub places: &'static [KernelPosition],
}

/// An op of the spec language.
pub struct SpecOp {
    /// Name and keys.
    pub info: OpInfo,
    /// Adds its graph nodes; returns the value that they compute.
    pub lower: fn(&mut dyn SpecNode) -> SpecResult<ValueId>,
}

/// The effect of an op on the results that an epilogue has at hand.
#[derive(Clone, Debug, PartialEq)]
pub enum InEpilogue {
    /// Changes them in place.
    Changes(GraphEpilogue),
    /// Rounds and stores them: nothing comes behind it.
    Ends(GraphEpilogue),
}

/// The interface of the pass that makes kernels, for row operations.
pub trait Packed {
    /// The graph.
    fn graph(&self) -> &Graph;
    /// The packed matrix of a product, with its bias and its adapter branch.
    fn mat(&self, node: &Node) -> GraphMat;
    /// Bytes from one row of a packed table to the next; of a table with blocks, from one tile of 16 rows to
    /// the next.
    fn row_bytes(&self, table: TensorId) -> usize;
}

/// The cost model's numbers for row operations, in ns.
#[derive(Clone, Copy, Debug)]
pub struct RowCosts {
    /// An element of a row through a cheap operation (norm, quantisation, an expression).
    pub element: f64,
    /// A weight of a small matrix (the router).
    pub weight: f64,
}
