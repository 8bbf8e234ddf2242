//! Roots that a match may have several of: `repeat = N` in a pattern.
//!
//! The rule has a copy of the node for each time: `a`, `a.2`, `a.3` and so on, which follow each other. A
//! match has the first copies, as many as fit; what is said of the node in the rest of the spec is said of
//! every copy.

use super::guard::{Guard, GuardCheck, Quantity};
use super::rule::PatternNode;

/// Copies of a node at most.
pub(super) const MAX_REPEAT: i64 = 16;

/// The node `times` times, the first under its own name.
pub(super) fn copies(node: PatternNode, times: usize) -> Vec<PatternNode> {
    let name = |copy: usize| match copy {
        0 => node.capture.clone(),
        copy => format!("{}.{}", node.capture, copy + 1),
    };
    (0..times).map(|copy| PatternNode { capture: name(copy), copy, ..node.clone() }).collect()
}

/// The names of a node's copies; of a node that is there once, its own.
pub(super) fn names_of(pattern: &[PatternNode], name: &str) -> Vec<String> {
    let nodes = pattern.iter().skip_while(|node| node.capture != name);
    nodes.take_while(|node| node.capture == name || node.copy > 0).map(|node| node.capture.clone()).collect()
}

/// Whether a match may have several nodes of that name.
pub(super) fn is_repeated(pattern: &[PatternNode], name: &str) -> bool {
    names_of(pattern, name).len() > 1
}

/// The guards that one is, where nodes are repeated: a condition on a node is one on each of its copies.
pub(super) fn spread(pattern: &[PatternNode], guard: Guard) -> Vec<Guard> {
    let names = |name: &str| names_of(pattern, name);
    match &guard.check {
        GuardCheck::SameCols { of } => {
            let of = of.iter().flat_map(|name| names(name)).collect();
            vec![Guard { check: GuardCheck::SameCols { of }, ..guard }]
        }
        GuardCheck::Features { .. } => vec![guard],
        check => {
            let checks = names(guard.captures()[0]).into_iter().map(|name| about(check, name));
            checks.map(|check| Guard { check, ..guard.clone() }).collect()
        }
    }
}

/// The check, but on the node of that name.
fn about(check: &GuardCheck, name: String) -> GuardCheck {
    let quantity = |quantity: &Quantity, name: String| match quantity {
        Quantity::Cols(_) => Quantity::Cols(name),
        Quantity::GroupCols(_) => Quantity::GroupCols(name),
        Quantity::Inner(_) => Quantity::Inner(name),
    };
    match check {
        GuardCheck::UsedOnlyBy { user, .. } => GuardCheck::UsedOnlyBy { value: name, user: user.clone() },
        GuardCheck::IsOutput { .. } => GuardCheck::IsOutput { value: name },
        GuardCheck::MultipleOf { quantity: of, divisor } => {
            GuardCheck::MultipleOf { quantity: quantity(of, name), divisor: *divisor }
        }
        GuardCheck::Between { quantity: of, min, max } => {
            GuardCheck::Between { quantity: quantity(of, name), min: *min, max: *max }
        }
        GuardCheck::Format { formats, .. } => GuardCheck::Format { of: name, formats: formats.clone() },
        GuardCheck::RowsOf { rows, .. } => GuardCheck::RowsOf { of: name, rows: *rows },
        GuardCheck::SameCols { .. } | GuardCheck::Features { .. } => check.clone(),
    }
}
