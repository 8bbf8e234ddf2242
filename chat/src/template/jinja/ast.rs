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
pub(super) enum Expr {
    Literal(Literal),
    Name(Name),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    /// Operators, the innermost first, and their operand.
    Unary(Vec<Unary>, Box<Expr>),
    /// Operators of one rank, from the left.
    Binary(Box<Expr>, Vec<(Binary, Expr)>),
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Concat(Vec<Expr>),
    /// Condition, value if it holds, and value otherwise.
    If(Box<[Expr; 2]>, Option<Box<Expr>>),
    /// An operand, and what is done with it from the left.
    Steps(Box<Expr>, Vec<Step>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
}

/// What is done with an operand.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Attribute(Name),
    Item(Expr),
    /// Start, stop and step.
    Slice(Box<[Option<Expr>; 3]>),
    Call(Arguments),
    Filter(Name, Arguments),
    /// Name of the test, its arguments, and whether it shall not hold.
    Test(Name, Arguments, bool),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    pub positional: Vec<Expr>,
    pub named: Vec<(Name, Expr)>,
    /// A list of further arguments (`*rest`).
    pub more: Option<Box<Expr>>,
    /// A dictionary of further named arguments (`**rest`).
    pub more_named: Option<Box<Expr>>,
}

/// What a value is assigned to.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Name(Name),
    Tuple(Vec<Target>),
    /// An attribute of a namespace.
    Attribute(Name, Name),
}

/// A statement and its line, from 1.
pub(super) type Line = (Statement, u32);

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Data(Arc<str>),
    Output(Expr),
    Set(Target, Expr),
    /// A block as a value, behind filters.
    SetBlock(Target, Vec<Step>, Vec<Line>),
    /// Conditions with their blocks, and the block otherwise.
    If(Vec<(Expr, Vec<Line>)>, Vec<Line>),
    For(Arc<Loop>),
    Macro(Arc<Macro>),
    /// A call, with a block as the macro `caller`.
    Call(Expr, Arc<Macro>),
    Filter(Vec<Step>, Vec<Line>),
    With(Vec<(Target, Expr)>, Vec<Line>),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct Loop {
    pub target: Target,
    pub items: Expr,
    /// Which items count.
    pub condition: Option<Expr>,
    pub is_recursive: bool,
    pub body: Vec<Line>,
    /// What there is without items.
    pub otherwise: Vec<Line>,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub name: Name,
    /// Parameters with their defaults.
    pub parameters: Vec<(Name, Option<Expr>)>,
    pub body: Vec<Line>,
    /// Whether the body uses `varargs`, which takes further arguments.
    pub takes_more: bool,
    /// Whether the body uses `kwargs`, which takes further named arguments.
    pub takes_more_named: bool,
    /// Whether the body uses `caller`.
    pub takes_caller: bool,
}
