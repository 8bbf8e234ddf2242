//! The operations of the spec language: what each takes. The reader checks nodes against this table, the lowering asks
//! it for nothing more, and the documentation lists it.

/// What kind of thing a node's key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Name of a value.
    Value,
    /// Array of names of values.
    Values,
    /// Name of a tensor.
    Tensor,
    /// A number or expression over dims.
    Number,
    /// A number, an expression, or `"full"`.
    Window,
    /// Name of a `[rope.NAME]`.
    Rope,
    /// An elementwise expression.
    Expr,
    /// What presets may round a product's input to: one of [`ACTIVATIONS`].
    Activations,
}

/// What a product's input may be said to be: rounded as the preset rounds all, f32, or f32 in the last layer alone.
pub const ACTIVATIONS: [&str; 3] = ["preset", "f32", "f32_in_last_layer"];

impl ParamKind {
    /// What a reader is told to write.
    pub fn expected(self) -> &'static str {
        match self {
            Value => "the name of a value",
            Values => "an array of names of values",
            Tensor => "the name of a tensor",
            Number => "a number or an expression over dims",
            Window => "a number, an expression over dims, or \"full\"",
            Rope => "the name of a [rope.NAME] section",
            Expr => "an elementwise expression",
            Activations => "\"preset\", \"f32\" or \"f32_in_last_layer\"",
        }
    }
}

/// A key of a node.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ParamKind,
    /// Whether it must be there.
    pub required: bool,
}

/// An operation of the spec language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SpecOp {
    Embed,
    RmsNorm,
    Linear,
    Rope,
    Attention,
    RouterTopk,
    Moe,
    Glu,
    Elementwise,
    Add,
    Mul,
    SelectRows,
    Logits,
}

/// An operation's name and keys; every node also has `op` and `out`.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Name in specs.
    pub name: &'static str,
    /// Operation.
    pub op: SpecOp,
    /// Its keys.
    pub params: &'static [Param],
}

const fn required(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind, required: true }
}

const fn optional(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind, required: false }
}

use ParamKind::{Activations, Expr, Number, Rope, Tensor, Value, Values, Window};

const INPUT: Param = required("input", Value);
const PAIR: &[Param] = &[required("inputs", Values)];
const LINEAR: &[Param] =
    &[INPUT, required("weight", Tensor), optional("bias", Tensor), optional("activations", Activations)];

/// Every operation.
pub const OPS: [OpInfo; 13] = [
    OpInfo { name: "embed", op: SpecOp::Embed, params: &[required("table", Tensor)] },
    OpInfo {
        name: "rms_norm",
        op: SpecOp::RmsNorm,
        params: &[INPUT, required("weight", Tensor), required("eps", Number)],
    },
    OpInfo { name: "linear", op: SpecOp::Linear, params: LINEAR },
    OpInfo { name: "rope", op: SpecOp::Rope, params: &[INPUT, required("rope", Rope)] },
    OpInfo {
        name: "attention",
        op: SpecOp::Attention,
        params: &[
            required("q", Value),
            required("k", Value),
            required("v", Value),
            required("heads", Number),
            required("kv_heads", Number),
            optional("scale", Number),
            optional("window", Window),
            optional("sinks", Tensor),
        ],
    },
    OpInfo { name: "router_topk", op: SpecOp::RouterTopk, params: &[INPUT, required("k", Number)] },
    OpInfo {
        name: "moe",
        op: SpecOp::Moe,
        params: &[
            INPUT,
            required("routing", Value),
            required("gate", Tensor),
            required("up", Tensor),
            required("down", Tensor),
            optional("gate_bias", Tensor),
            optional("up_bias", Tensor),
            optional("down_bias", Tensor),
            required("activation", Expr),
        ],
    },
    OpInfo {
        name: "glu",
        op: SpecOp::Glu,
        params: &[required("gate", Value), required("up", Value), required("expr", Expr)],
    },
    OpInfo {
        name: "elementwise",
        op: SpecOp::Elementwise,
        params: &[required("inputs", Values), required("expr", Expr)],
    },
    OpInfo { name: "add", op: SpecOp::Add, params: PAIR },
    OpInfo { name: "mul", op: SpecOp::Mul, params: PAIR },
    OpInfo { name: "select_rows", op: SpecOp::SelectRows, params: &[INPUT] },
    OpInfo { name: "logits", op: SpecOp::Logits, params: LINEAR },
];
