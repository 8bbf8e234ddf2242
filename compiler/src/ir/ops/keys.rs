//! Keys of the operations of the spec language. The reader checks nodes against it. Each operation is in the
//! file of the graph op that it becomes, and `compiler/src/ir/ops/mod.rs` lists them.

use kernmill_plan::vectors::Pooling;

/// The kind of value that a node's key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Name of a value.
    Value,
    /// Array of names of values.
    Values,
    /// Name of a tensor.
    Tensor,
    /// Array of names of tensors.
    Tensors,
    /// A number or expression over dims.
    Number,
    /// A number, an expression, or `"full"`.
    Window,
    /// Name of a `[rope.NAME]`.
    Rope,
    /// The rounding of a product's input ([`Activations`]), or a per-layer value that says one.
    Rounding,
    /// An elementwise expression.
    Expr,
    /// One of a few words.
    OneOf(&'static KeyWords),
    /// `true` or `false`.
    Flag,
}

/// The words that a key may have.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyWords {
    /// Name of such a word in errors.
    pub what: &'static str,
    /// The words.
    pub words: &'static [&'static str],
    /// The words as advice to a reader.
    pub expected: &'static str,
}

/// The roundings that a preset may apply to the input of a matrix product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activations {
    /// The preset rounds the input as it rounds all.
    #[default]
    AsPreset,
    /// The preset leaves the input in f32, unless the matrix has 4 bits.
    F32,
    /// A preset that rounds to q8 rounds the input twice, unless the matrix has 4 bits: what q8 leaves is
    /// rounded to q8 too.
    Q8x2,
}

impl Activations {
    /// The word for it in specs and graphs.
    pub fn name(self) -> &'static str {
        match self {
            Activations::AsPreset => "preset",
            Activations::F32 => "f32",
            Activations::Q8x2 => "q8x2",
        }
    }

    /// All of them.
    pub const ALL: [Activations; 3] = [Activations::AsPreset, Activations::F32, Activations::Q8x2];

    /// The treatment of that name.
    pub fn of(name: &str) -> Option<Activations> {
        Activations::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// The words for roundings as advice to a reader.
const ROUNDINGS_EXPECTED: &str =
    "\"preset\", \"f32\", \"f32_in_last_layer\", \"q8x2\", or a per-layer value that says one";

/// The rows of a text that make its vector.
pub static POOLINGS: KeyWords =
    KeyWords { what: "pool", words: &Pooling::NAMES, expected: "\"last\", \"mean\" or \"first\"" };

impl ParamKind {
    /// The advice to a reader on what to write.
    pub fn expected(self) -> &'static str {
        match self {
            Value => "the name of a value",
            Values => "an array of names of values",
            Tensor => "the name of a tensor",
            Tensors => "an array of names of tensors",
            Number => "a number or an expression over dims",
            Window => "a number, an expression over dims, or \"full\"",
            Rope => "the name of a [rope.NAME] section",
            Rounding => ROUNDINGS_EXPECTED,
            Expr => "an elementwise expression",
            OneOf(words) => words.expected,
            Flag => "true or false",
        }
    }
}

/// A key of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeKey {
    /// Name of the key.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ParamKind,
    /// Whether it must be there.
    pub required: bool,
}

/// An operation's name and keys; every node also has `op` and `out`.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Name in specs.
    pub name: &'static str,
    /// Keys of the op.
    pub params: &'static [NodeKey],
    /// The graph ops that it is in a fused-op spec's pattern, the first of which tells how; none if it has no
    /// place there.
    pub pattern: &'static [&'static str],
}

impl OpInfo {
    /// Whether the key holds names or an expression, which have a meaning where they stand.
    pub fn names(&self, key: &str) -> bool {
        let kind = self.params.iter().find(|param| param.name == key).map(|param| param.kind);
        !matches!(kind, Some(OneOf(_) | Rounding | Flag))
    }
}

/// A key that must be there.
pub const fn required(name: &'static str, kind: ParamKind) -> NodeKey {
    NodeKey { name, kind, required: true }
}

/// A key that may be there.
pub const fn optional(name: &'static str, kind: ParamKind) -> NodeKey {
    NodeKey { name, kind, required: false }
}

use ParamKind::{Expr, Flag, Number, OneOf, Rope, Rounding, Tensor, Tensors, Value, Values, Window};

/// The one input of most operations.
pub const INPUT: NodeKey = required("input", Value);
/// Keys of an operation on two or more values.
pub const INPUTS: &[NodeKey] = &[required("inputs", Values)];
/// Keys of a matrix product.
pub const LINEAR: &[NodeKey] =
    &[INPUT, required("weight", Tensor), optional("bias", Tensor), optional("activations", Rounding)];
