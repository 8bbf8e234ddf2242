//! A fused-op spec as it stands in its file.

use super::rule::FusionRule;
use crate::front::spec::{ExpandedOp, Spanned, SpecText};
use crate::ir::expr::ExprFunction;

/// A fused-op spec as read from its file.
#[derive(Clone, Debug)]
pub struct FusedSpec {
    /// The text.
    pub source: SpecText,
    /// Name of the spec, unique in a set.
    pub name: Spanned<String>,
    /// The purpose of the spec, in words.
    pub doc: String,
    /// Place of the spec in the order; `None` is that of the spec it replaces, or else
    /// [`super::USER_PRIORITY`].
    pub place: Option<RuleOrder>,
    /// The rule of fusion, if the spec has one.
    pub rule: Option<FusionRule>,
    /// Functions that it adds to expressions.
    pub functions: Vec<ExprFunction>,
    /// Ops that it adds to model specs.
    pub ops: Vec<ExpandedOp>,
}

/// A place in the order in which rules are tried.
#[derive(Clone, Debug)]
pub enum RuleOrder {
    /// Behind all of higher or equal priority.
    Priority(i64),
    /// Directly before the spec of that name.
    Before(Spanned<String>),
    /// Directly behind the spec of that name.
    After(Spanned<String>),
}
