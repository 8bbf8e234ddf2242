//! A kernel in terms of the graph.

use crate::ir::ops;
use crate::ir::{Graph, GraphRowOp, MatMul, NodeId, ValueId};
use kernmill_kernels_gen::expr::{Binary, Expr};
use kernmill_kernels_gen::row_op::{ElementwiseRow, RowPlace, StoreRow};

/// A kernel in terms of the graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Composition {
    /// Row-wise nodes, in order, over the same rows.
    Rows(Vec<NodeId>),
    /// Dense matrices that read `input`.
    Matmul {
        /// The value that they read.
        input: ValueId,
        /// Matrices whose results meet, and what becomes of them.
        parts: Vec<ComposedPart>,
    },
    /// Matrices of the experts that `routing` chose.
    Experts {
        /// The value that they read.
        input: ValueId,
        /// Chosen experts.
        routing: ValueId,
        /// The matrices, and what becomes of their results.
        part: ComposedPart,
    },
    /// Matrix of the chosen experts, weighted sum, residual.
    ExpertDown {
        /// The matrix product.
        root: NodeId,
        /// Added to the sum.
        residual: Option<ValueId>,
        /// Where the result goes.
        out: ValueId,
    },
    /// Attention.
    Attention {
        /// The attention.
        root: NodeId,
        /// Where the result goes: q8 or f32.
        out: ValueId,
        /// Where it goes in f32 besides.
        lora_input: Option<ValueId>,
    },
    /// The A of adapters at matrices that read `input`.
    Shrink {
        /// The value that they read.
        input: ValueId,
        /// Chosen experts, whose matrices they are.
        routing: Option<ValueId>,
    },
}

impl Composition {
    /// The kernel of a node by itself.
    pub fn single(graph: &Graph, id: NodeId) -> Composition {
        let node = graph.node(id);
        match &node.op {
            op if op.attention().is_some() => {
                Composition::Attention { root: id, out: node.output, lora_input: None }
            }
            op if op.shrink().is_some() => {
                Composition::Shrink { input: node.inputs[0], routing: node.inputs.get(1).copied() }
            }
            _ if ops::is_row_op(node) => Composition::Rows(vec![id]),
            _ => {
                let store = StoreRow::results(node.output).into();
                let terms = node.op.matmul().map_or(1, MatMul::terms);
                let sum = || ElementwiseRow {
                    expr: sum_of_units(0, terms),
                    inputs: Vec::new(),
                    vectors: Vec::new(),
                    out: RowPlace::Results,
                };
                let steps = if terms == 1 { vec![store] } else { vec![sum().into(), store] };
                let part = ComposedPart { roots: vec![id], steps };
                match node.base_inputs().get(1) {
                    Some(&routing) => Composition::Experts { input: node.inputs[0], routing, part },
                    None => Composition::Matmul { input: node.inputs[0], parts: vec![part] },
                }
            }
        }
    }
}

/// The sum of so many units of results from number `first` on: a product's terms in turn.
pub fn sum_of_units(first: usize, units: usize) -> Expr {
    let add = |sum, unit| Expr::Binary(Binary::Add, Box::new(sum), Box::new(Expr::Var(unit)));
    (first + 1..first + units).fold(Expr::Var(first), add)
}

/// Matrices whose results meet in an epilogue.
#[derive(Clone, Debug, PartialEq)]
pub struct ComposedPart {
    /// The matrix products, in the rule's order.
    pub roots: Vec<NodeId>,
    /// The steps that their results go through, in order.
    pub steps: Vec<GraphRowOp>,
}
