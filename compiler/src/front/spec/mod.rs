//! The spec language: a model as TOML. `docs/user/spec-language.md` is its reference.
//!
//! [`Spec::parse`] reads and checks everything that needs no shapes; [`lower`] makes the graph and checks the
//! rest. Every error shows the place in the file.

pub mod number;

mod at;
#[cfg(test)]
mod block_tests;
mod expand;
mod lower;
mod lower_layers;
mod lower_tensors;
mod lowering;
mod read;
mod read_layers;
mod read_nodes;
mod read_tensors;
mod scope;
pub(crate) mod section;
#[cfg(test)]
mod tests;
mod vectors;

pub use expand::ExpandedOp;
pub use lower::lower;
pub(crate) use read_nodes::nodes;
pub(crate) use scope::inner_span;

pub use crate::spec_text::{Result, Spanned, SpecError, SpecText};

use crate::ir::expr::ExprFunction;
use crate::ir::ops::keys::OpInfo;
use kernmill_kernels_gen::row_op::RopePairs;
use kernmill_plan::format::WeightFormat;
use number::Number;
use std::collections::BTreeMap;
use std::ops::Range;

/// A spec as written: names resolved to nothing yet, dims evaluated.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The text.
    pub source: SpecText,
    /// `[model]`.
    pub model: ModelSection,
    /// `[dims]`, evaluated.
    pub dims: BTreeMap<String, Number>,
    /// `[rope.NAME]`, in order of appearance.
    pub ropes: Vec<RopeDef>,
    /// `[tensors]`.
    pub tensors: Vec<TensorDef>,
    /// Nodes before the layers.
    pub before: Vec<NodeDef>,
    /// `[block.NAME]`, in order of appearance.
    pub blocks: Vec<BlockDef>,
    /// `[layer]`, if there is one.
    pub layer: Option<LayerDef>,
    /// Nodes after the layers.
    pub after: Vec<NodeDef>,
    /// Functions that expressions may call besides the built-in ones.
    pub functions: Vec<ExprFunction>,
}

/// `[model]`.
#[derive(Clone, Debug)]
pub struct ModelSection {
    /// Name of the model.
    pub name: Spanned<String>,
    /// Vocabulary size.
    pub vocab: Scalar,
    /// Longest context in tokens.
    pub max_context: Scalar,
    /// How the names begin of tensors of the checkpoint that are not the model's.
    pub left_out: Vec<String>,
}

/// A number as written.
pub type Scalar = Spanned<ScalarText>;

/// A literal, or an expression over dims and per-layer values.
#[derive(Clone, Debug)]
pub enum ScalarText {
    /// A literal.
    Number(Number),
    /// An expression.
    Expr(String),
}

/// `[rope.NAME]`.
#[derive(Clone, Debug)]
pub struct RopeDef {
    /// Name of the rope.
    pub name: Spanned<String>,
    /// Elements per head.
    pub head_dim: Scalar,
    /// The first elements of a head that rotate, if not all do.
    pub rotary_dim: Option<Scalar>,
    /// Elements that rotate together.
    pub pairs: RopePairs,
    /// Base.
    pub theta: Scalar,
    /// Divisors of each frequency.
    pub factors: Option<Spanned<Vec<Scalar>>>,
    /// Factor on cos and sin, instead of that of the scaling.
    pub attention_factor: Option<Scalar>,
    /// Name of the scaling, if any.
    pub scaling: Option<RopeScalingDef>,
}

/// `scaling = { ... }` of a rope.
#[derive(Clone, Debug)]
pub struct RopeScalingDef {
    /// Kind of the scaling.
    pub kind: RopeKind,
    /// Bytes of the whole scaling in the file.
    pub span: Range<usize>,
    /// Numbers of the scaling by key.
    pub numbers: BTreeMap<&'static str, Scalar>,
    /// YaRN's `truncate`.
    pub truncate: bool,
}

/// Kinds of long-context scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RopeKind {
    Linear,
    Dynamic,
    Yarn,
    Llama3,
}

/// A tensor: `name = { from = "...", shape = [...], format = "..." }`.
#[derive(Clone, Debug)]
pub struct TensorDef {
    /// Logical name.
    pub name: Spanned<String>,
    /// Checkpoint tensor; `{layer}` stands for the layer's number, `{expert}` for an expert's, where each has
    /// a tensor.
    pub from: Spanned<String>,
    /// Checkpoint tensor of MXFP4 scales, if they are not with the codes.
    pub scales: Option<Spanned<String>>,
    /// Shape after row selection.
    pub shape: Spanned<Vec<Scalar>>,
    /// Format in the checkpoint.
    pub format: TensorFormat,
    /// Rows taken, where not all are.
    pub rows: Option<RowsDef>,
    /// Where it says that the checkpoint stores the matrix the other way round, if it does.
    pub transposed: Option<Range<usize>>,
    /// Added to the elements of a vector.
    pub plus: Option<Scalar>,
}

/// `rows = { of = 512, take = "0..256" }`: which rows of every so many a tensor takes.
#[derive(Clone, Debug)]
pub struct RowsDef {
    /// Rows of a period.
    pub of: Scalar,
    /// The first one taken.
    pub first: Scalar,
    /// The first one behind those taken.
    pub end: Scalar,
}

/// How a checkpoint stores a tensor.
#[derive(Clone, Debug)]
pub enum TensorFormat {
    /// In one format, in every layer if it is a tensor of layers.
    One(Spanned<WeightFormat>),
    /// In one format for each layer, which stand in a list.
    ByLayer(Spanned<Vec<Spanned<WeightFormat>>>),
}

impl TensorFormat {
    /// The formats as written.
    pub fn all(&self) -> &[Spanned<WeightFormat>] {
        match self {
            TensorFormat::One(format) => std::slice::from_ref(format),
            TensorFormat::ByLayer(list) => &list.value,
        }
    }
}

/// `[layer]`: a template that is repeated.
#[derive(Clone, Debug)]
pub struct LayerDef {
    /// How often.
    pub count: Scalar,
    /// Values handed on: name on entry -> name of the layer's value that has it on exit.
    pub carry: Vec<(Spanned<String>, Spanned<String>)>,
    /// Per-layer values.
    pub values: Vec<LayerValueDef>,
    /// `[layer.tensors]`.
    pub tensors: Vec<TensorDef>,
    /// Nodes of a layer.
    pub nodes: Vec<LayerNode>,
}

/// A node of a layer.
#[derive(Clone, Debug)]
pub enum LayerNode {
    /// An operation.
    Op(NodeDef),
    /// A block in its place.
    Block(BlockUse),
}

impl LayerNode {
    /// Name of the value it computes.
    pub fn out(&self) -> &Spanned<String> {
        match self {
            LayerNode::Op(node) => &node.out,
            LayerNode::Block(used) => &used.out,
        }
    }
}

/// `{ out = "y", block = "mlp", x = "mlp_in" }`: a block, its inputs bound to values of the layer.
#[derive(Clone, Debug)]
pub struct BlockUse {
    /// Name of the value, which the block's last node computes.
    pub out: Spanned<String>,
    /// A block, or a per-layer value that names one.
    pub block: Spanned<String>,
    /// Inputs of the block and the values that they are.
    pub inputs: Vec<(Spanned<String>, Spanned<String>)>,
}

/// `[block.NAME]`: nodes that layers may have.
#[derive(Clone, Debug)]
pub struct BlockDef {
    /// Name of the block.
    pub name: Spanned<String>,
    /// The values that its nodes read, by the names they have there.
    pub inputs: Vec<Spanned<String>>,
    /// `[block.NAME.tensors]`.
    pub tensors: Vec<TensorDef>,
    /// Nodes of the block. The last one computes its result.
    pub nodes: Vec<NodeDef>,
}

/// A per-layer value.
#[derive(Clone, Debug)]
pub struct LayerValueDef {
    /// Name of the value.
    pub name: Spanned<String>,
    /// Whether `items` repeat; else there is one per layer.
    pub cycle: bool,
    /// Numbers, names of blocks and ropes, `"full"` or `"none"`.
    pub items: Spanned<Vec<Scalar>>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeDef {
    /// Operation.
    pub op: &'static OpInfo,
    /// Bytes of the operation's name.
    pub op_span: Range<usize>,
    /// Name of the value it computes.
    pub out: Spanned<String>,
    /// Other keys of the node, with what they hold.
    pub args: BTreeMap<&'static str, Spanned<NodeArg>>,
}

/// Additions of fused-op specs to the language.
#[derive(Clone, Debug, Default)]
pub struct Language {
    /// Functions of elementwise expressions.
    pub functions: Vec<ExprFunction>,
    /// Ops that stand for nodes.
    pub ops: Vec<ExpandedOp>,
}

/// The value of a node's key.
#[derive(Clone, Debug)]
pub enum NodeArg {
    /// A name (of a value, tensor or rope), or an elementwise expression.
    Text(String),
    /// Names.
    Texts(Vec<Spanned<String>>),
    /// A number.
    Scalar(ScalarText),
}

impl Spec {
    /// Reads a spec; `name` is its file's, for errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Spec> {
        Spec::parse_with(name, text, &Language::default())
    }

    /// The block of that name.
    pub(crate) fn block(&self, name: &str) -> Option<&BlockDef> {
        self.blocks.iter().find(|block| block.name.value == name)
    }

    /// Whether there is a rope of that name.
    pub(crate) fn has_rope(&self, name: &str) -> bool {
        self.ropes.iter().any(|rope| rope.name.value == name)
    }

    /// Parses a spec as [`Spec::parse`] does, in a language with more functions and ops.
    ///
    /// # Errors
    /// As [`Spec::parse`].
    pub fn parse_with(name: &str, text: &str, language: &Language) -> Result<Spec> {
        read::spec(&SpecText::new(name, text), language)
    }
}
