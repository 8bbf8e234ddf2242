//! Fusion: groups of graph nodes that one kernel computes, found by an ordered list of fused-op specs (`docs/fused-ops.md`).

mod compose;
mod engine;
mod explain;
mod group;
pub mod guard;
mod legal;
mod matcher;
mod read;
pub mod rule;
mod spec;
#[cfg(test)]
mod tests;
mod text;
mod verify;

pub use compose::{Composition, Part, Step, compose, is_stage};
pub use engine::{NearMiss, Report, fuse};
pub use explain::explain;
pub use group::{FusedGraph, Group, GroupKind};
pub use rule::{FusionRule, Template};
pub use spec::{FusedSet, FusedSpec, Place, USER_PRIORITY};
