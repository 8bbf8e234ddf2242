//! Definitions of ops, for the passes. Each op of a graph is a struct with its attributes, in a file of its
//! own, that answers here; `compiler/src/ir/ops/mod.rs` lists them.

use super::form::{OpForm, Operands};
use super::keys::OpInfo;
use super::places::KernelPosition;
use super::sample::KnownValues;
use super::spec_node::SpecNode;
use crate::ir::cursor::LineCursor;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Graph, GraphMat, GraphRowOp, Node, Op, TensorId, Type, ValueId};
use crate::spec_text::Result as SpecResult;
use kernmill_kernels_gen::expr::Expr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// The answers of an op with its attributes. A [`Node`] that a method is given is one with this op.
pub trait OpDef {
    /// The kind of the op in a node of `inputs` inputs.
    fn kind(&self, inputs: usize) -> OpKind;

    /// The output's type, for operands of the kind's form.
    ///
    /// # Errors
    /// What does not fit and what was expected.
    fn infer(&self, on: &Operands<'_>) -> Result<Type, String>;

    /// Attributes in graph text, with their parentheses, in a node of `inputs` inputs.
    fn attributes(&self, _inputs: usize) -> String {
        String::new()
    }

    /// The op's meaning, in plain loops in the order of docs/dev/numerics.md: its value for the batch at
    /// hand.
    fn eval(&self, state: &mut OpState, node: &Node) -> Data;

    /// The expression of an op that is elementwise in inputs of equal rows and columns; variable i is input
    /// i. Its step in an epilogue follows from it.
    fn expr(&self) -> Option<Expr> {
        None
    }

    /// The row operation, for ops that may be in kernels over rows.
    fn row_op(&self, _: &Node, _kernels: &dyn Packed) -> Option<GraphRowOp> {
        None
    }

    /// The row operation on the results of an epilogue, for an op that is not elementwise. One that writes a
    /// value rounds and stores them, and nothing comes behind it; others change them in place.
    fn in_epilogue(&self, _: &Node) -> Option<GraphRowOp> {
        None
    }

    /// Sizes that kernels have only multiples of: what is measured, its value, the multiple. `width` is the
    /// output's.
    fn multiples(&self, _width: usize) -> Vec<(&'static str, usize, usize)> {
        Vec::new()
    }
}

/// A kind of op: what holds whatever its attributes are. Graph text, specs and patterns know ops by their
/// kinds. An op has one kind, or a few, which differ in the types of their operands.
pub struct Outline {
    /// The name in graph text, specs and listings.
    pub name: &'static str,
    /// Types of the inputs, roles and formats of the tensors.
    pub form: OpForm,
    /// Reads the attributes of graph text back. The flag says whether there are any; their parentheses are
    /// the caller's.
    pub parse: fn(&mut LineCursor<'_>, bool) -> Result<Op, String>,
    /// The ops of the spec language that become this one.
    pub spec: &'static [SpecOp],
    /// Where in kernels the op may be.
    pub places: &'static [KernelPosition],
    /// Whether the order of the inputs does not matter.
    pub commutes: bool,
    /// Whether the op may be between a projection and the attention or the logits that it is made for. The
    /// residual stream, where additions are, is between neither.
    pub passes: bool,
    /// Whether presets put the op into graphs, so that models have none before and samples leave it out.
    pub by_presets: bool,
    /// The op's demands on the values around it, for samples of fused ops: names of inputs, and of the
    /// output.
    pub facts: fn(&mut KnownValues<'_>, &[&str], &str),
    /// The op with attributes for a sample, of that many inputs and with the expression that a pattern asks
    /// for. `None` of ops that have tensors or look at sizes: the sample makes those itself.
    pub sample: fn(Option<&Expr>, usize) -> Option<Op>,
}

impl Outline {
    /// A kind with no more than a name, a form and a way to be read: its values have the same rows and
    /// columns, and no spec or kernel has it.
    pub const fn new(
        name: &'static str,
        form: OpForm,
        parse: fn(&mut LineCursor<'_>, bool) -> Result<Op, String>,
    ) -> Outline {
        let facts: fn(&mut KnownValues<'_>, &[&str], &str) = |known, inputs, out| {
            for input in inputs {
                known.same_cols(input, out);
                known.same_rows(input, out);
            }
        };
        Outline {
            name,
            form,
            parse,
            spec: &[],
            places: &[],
            commutes: false,
            passes: false,
            by_presets: false,
            facts,
            sample: |_, _| None,
        }
    }
}

/// The outline of a kind of op, as a value that is compared and listed by its name.
#[derive(Clone, Copy)]
pub struct OpKind(pub(super) &'static Outline);

impl Deref for OpKind {
    type Target = Outline;

    fn deref(&self) -> &Outline {
        self.0
    }
}

impl PartialEq for OpKind {
    fn eq(&self, other: &OpKind) -> bool {
        self.name == other.name
    }
}

impl Eq for OpKind {}

impl Hash for OpKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An op of the spec language.
pub struct SpecOp {
    /// Name and keys.
    pub info: OpInfo,
    /// Adds its graph nodes; returns the value that they compute.
    pub lower: fn(&mut dyn SpecNode) -> SpecResult<ValueId>,
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
