//! Fusion: groups of graph nodes that one kernel computes, found by an ordered list of rules that are plain data.

mod engine;
mod group;
mod matcher;
pub mod rule;
mod rules;

pub use engine::{NearMiss, Report, fuse};
pub use group::{FusedGraph, Group, GroupKind};
pub use rule::{FusionRule, RuleError};
pub use rules::builtin;
