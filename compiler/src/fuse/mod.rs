//! Fusion: groups of graph nodes that one kernel computes, found by an ordered list of rules that are plain data.

mod engine;
mod explain;
mod group;
mod matcher;
pub mod rule;
mod rules;
#[cfg(test)]
mod tests;
mod text;
mod verify;

pub use engine::{NearMiss, Report, fuse};
pub use explain::explain;
pub use group::{FusedGraph, Group, GroupKind};
pub use rule::{FusionRule, RuleError};
pub use rules::builtin;
