//! A fusion as plain data: what it matches, when it is allowed, and how its kernel is composed. Rules come
//! from fused-op specs (`docs/user/fused-ops.md`); their reader (`read`) has checked that the parts fit each
//! other.

use super::guard::Guard;
use crate::ir::OpKind;
use crate::ir::ops::places::{KernelTemplate, MemberRole};
use kernmill_kernels_gen::expr::Expr;

/// A fusion rule. Names in it ("captures") are local to the rule.
#[derive(Clone, Debug, PartialEq)]
pub struct FusionRule {
    /// Unique name; kernels and listings have it.
    pub name: String,
    /// One line on what the fused kernel does.
    pub doc: String,
    /// The kind of kernel that a match becomes.
    pub template: KernelTemplate,
    /// The ops to match, any order; connected through [`PatternNode::inputs`].
    pub pattern: Vec<PatternNode>,
    /// Captures whose value may be read outside the group. An absent optional capture stands for its input.
    pub outputs: Vec<String>,
    /// Captures that go to the KV cache of the attention that reads them, and nowhere else.
    pub kv_write: Vec<String>,
    /// Conditions on a structural match.
    pub guards: Vec<Guard>,
    /// Hints of the author, who may know better than the cost model.
    pub hints: Hints,
}

/// One op of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternNode {
    /// Name of the matched node, unique in the rule.
    pub capture: String,
    /// Ops that fit.
    pub ops: Vec<OpKind>,
    /// Expression that elementwise ops must have; variable i is input i.
    pub expr: Option<Expr>,
    /// Names of the inputs in order: a capture is that node's output; any other name is a value from outside,
    /// the same value wherever the name recurs.
    pub inputs: Vec<String>,
    /// Whether inputs match in any order.
    pub commutative: bool,
    /// Whether the node may be absent; then its first input stands for its value.
    pub optional: bool,
    /// Which of a repeated node's copies it is: 0 for the first, and for a node that is there once. The
    /// copies follow each other. A later one may be absent with all behind it; then nothing stands for its
    /// value.
    pub copy: usize,
    /// The member's role in the kernel.
    pub part: MemberRole,
}

/// Schedule hints: of a group's candidates only those that agree are looked at, as long as there are any.
/// They change speed, never bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Whether every worker computes the prologue for itself (small batches only), or a step before the
    /// kernel does.
    pub prologue_by_workers: Option<bool>,
    /// Whether matrices are multiplied by panels, or by dots.
    pub panels: Option<bool>,
    /// Output rows per work item, where nothing else decides: 16 or 32.
    pub rows_per_item: Option<usize>,
}

impl FusionRule {
    /// The pattern node of that name.
    pub fn find(&self, capture: &str) -> Option<&PatternNode> {
        self.pattern.iter().find(|node| node.capture == capture)
    }
}
