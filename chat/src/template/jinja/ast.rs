//! A template as a tree. Chains of operators are lists, so that only brackets and blocks make it deeper.

use std::sync::Arc;

/// A name in a template.
pub(super) type Name = Arc<str>;

#[derive(Clone, Debug)]
pub(super) enum Literal {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
}

#[derive(Clone, Debug)]
pub(super) enum TemplateExpr {
    Literal(Literal),
    Name(Name),
    List(Vec<TemplateExpr>),
    Tuple(Vec<TemplateExpr>),
    Dict(Vec<(TemplateExpr, TemplateExpr)>),
    /// Operators, the innermost first, and their operand.
    Unary(Vec<UnaryOperator>, Box<TemplateExpr>),
    /// Operators of one rank, from the left.
    Binary(Box<TemplateExpr>, Vec<(BinaryOperator, TemplateExpr)>),
    Compare(Box<TemplateExpr>, Vec<(Comparison, TemplateExpr)>),
    And(Vec<TemplateExpr>),
    Or(Vec<TemplateExpr>),
    Concat(Vec<TemplateExpr>),
    /// Condition, value if it holds, and value otherwise.
    If(Box<[TemplateExpr; 2]>, Option<Box<TemplateExpr>>),
    /// An operand, and what is done with it from the left.
    Steps(Box<TemplateExpr>, Vec<Postfix>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnaryOperator {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
}

/// An operation behind an operand.
#[derive(Clone, Debug)]
pub(super) enum Postfix {
    Attribute(Name),
    Item(TemplateExpr),
    /// Start, stop and step.
    Slice(Box<[Option<TemplateExpr>; 3]>),
    Call(Arguments),
    Filter(Name, Arguments),
    /// Name of the test, its arguments, and whether it shall not hold.
    Test(Name, Arguments, bool),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    pub positional: Vec<TemplateExpr>,
    pub named: Vec<(Name, TemplateExpr)>,
    /// A list of further arguments (`*rest`).
    pub more: Option<Box<TemplateExpr>>,
    /// A dictionary of further named arguments (`**rest`).
    pub more_named: Option<Box<TemplateExpr>>,
}

/// The place that a value is assigned to.
#[derive(Clone, Debug)]
pub(super) enum AssignTarget {
    Name(Name),
    Tuple(Vec<AssignTarget>),
    /// An attribute of a namespace.
    Attribute(Name, Name),
}

/// A statement and its line, from 1.
pub(super) type StatementLine = (Statement, u32);

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Data(Arc<str>),
    Output(TemplateExpr),
    Set(AssignTarget, TemplateExpr),
    /// A block as a value, behind filters.
    SetBlock(AssignTarget, Vec<Postfix>, Vec<StatementLine>),
    /// Conditions with their blocks, and the block otherwise.
    If(Vec<(TemplateExpr, Vec<StatementLine>)>, Vec<StatementLine>),
    For(Arc<ForLoop>),
    Macro(Arc<Macro>),
    /// A call, with a block as the macro `caller`.
    Call(TemplateExpr, Arc<Macro>),
    Filter(Vec<Postfix>, Vec<StatementLine>),
    With(Vec<(AssignTarget, TemplateExpr)>, Vec<StatementLine>),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct ForLoop {
    pub target: AssignTarget,
    pub items: TemplateExpr,
    /// Which items count.
    pub condition: Option<TemplateExpr>,
    pub is_recursive: bool,
    pub body: Vec<StatementLine>,
    /// The statements that run without items.
    pub otherwise: Vec<StatementLine>,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub name: Name,
    /// Parameters with their defaults.
    pub parameters: Vec<(Name, Option<TemplateExpr>)>,
    pub body: Vec<StatementLine>,
    /// Whether the body uses `varargs`, which takes further arguments.
    pub takes_more: bool,
    /// Whether the body uses `kwargs`, which takes further named arguments.
    pub takes_more_named: bool,
    /// Whether the body uses `caller`.
    pub takes_caller: bool,
}
