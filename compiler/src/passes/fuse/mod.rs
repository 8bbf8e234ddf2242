//! Fusion: groups of graph nodes that one kernel computes, found by an ordered list of fused-op specs
//! (`docs/user/fused-ops.md`).
//!
//! A fused graph has a text form for people. The quantised graph in it has its own text.

mod allow;
mod compose;
mod composition;
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
mod verify;

pub use crate::ir::ops::legal as legal_ops;
pub use crate::ir::ops::places::{KernelTemplate, MemberRole};
use crate::ir::{NodeId, ValueId};
pub use composition::{ComposedPart, Composition};
pub use engine::{FusionReport, NearMiss, fuse};
pub use explain::{explain, value_bytes};
pub use group::{FusedGraph, Group, GroupKind, edges};
pub use missed::{Missed, missed};
pub use row_steps::row_steps;
pub use rule::FusionRule;
pub use sample::{sample, sample_function};
pub use schema::schema;
pub use set::{FusedSet, USER_PRIORITY};
pub use spec::{FusedSpec, RuleOrder};
use std::fmt::{self, Display};

impl Display for FusedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.groups.iter().enumerate() {
            writeln!(
                f,
                "group {i} {} ({}) -> {}",
                group.name(),
                self.names(&group.inputs),
                self.names(&group.outputs)
            )?;
            self.members(f, "prologue", &group.prologue)?;
            self.members(f, "root", &group.roots)?;
            self.members(f, "epilogue", &group.epilogue)?;
        }
        writeln!(f, "output %{}", self.graph.value(self.graph.output).name)
    }
}

impl FusedGraph {
    fn members(&self, f: &mut fmt::Formatter<'_>, part: &str, nodes: &[NodeId]) -> fmt::Result {
        nodes
            .iter()
            .try_for_each(|&id| writeln!(f, "  {part:8} {}", self.graph.node_text(self.graph.node(id))))
    }

    fn names(&self, values: &[ValueId]) -> String {
        let names: Vec<String> = values.iter().map(|&v| format!("%{}", self.graph.value(v).name)).collect();
        names.join(", ")
    }
}
