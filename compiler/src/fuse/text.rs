//! The text form of a fused graph (for people; the graph in it is the quantised one, which has its own text).

use super::group::FusedGraph;
use crate::graph::{NodeId, ValueId};
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
