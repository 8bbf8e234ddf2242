//! Fusion: groups of graph nodes that one kernel computes, found by an ordered list of fused-op specs
//! (`docs/user/fused-ops.md`).

mod allow;
mod compose;
mod define;
mod engine;
mod explain;
mod group;
pub mod guard;
mod matcher;
mod missed;
mod order;
mod read;
mod read_guard;
#[cfg(test)]
mod reason_tests;
mod repeat;
#[cfg(test)]
mod repeat_tests;
mod row_steps;
pub mod rule;
mod sample;
mod schema;
mod set;
mod spec;
#[cfg(test)]
mod spec_tests;
#[cfg(test)]
mod tests;
mod text;
mod verify;

pub use crate::ops::legal as legal_ops;
pub use compose::{ComposedPart, Composition};
pub use engine::{FusionReport, NearMiss, fuse};
pub use explain::{explain, value_bytes};
pub use group::{FusedGraph, Group, GroupKind, edges};
pub use missed::{Missed, missed};
pub use row_steps::row_steps;
pub use rule::{FusionRule, KernelTemplate};
pub use sample::{sample, sample_function};
pub use schema::schema;
pub use set::{FusedSet, USER_PRIORITY};
pub use spec::{FusedSpec, RuleOrder};
