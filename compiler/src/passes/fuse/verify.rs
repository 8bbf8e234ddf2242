//! Checks a fused graph, whoever made it.

use super::compose::compose;
use super::composition::Composition;
use super::group::{FusedGraph, Group, GroupKind, edges};
use crate::ir::{GraphError, NodeId, Uses};

impl FusedGraph {
    /// Checks that the graph is legal, that every node is in exactly one group, that groups come after those
    /// they read from, and that each group's kind, captures, inputs, outputs and composition are what its
    /// members make them.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify(&self) -> Result<(), GraphError> {
        self.graph.verify()?;
        let uses = Uses::new(&self.graph);
        let mut group_of: Vec<Option<usize>> = vec![None; self.graph.nodes.len()];
        for (i, group) in self.groups.iter().enumerate() {
            let members = group.members();
            let at = || format!("group {i} ({})", group.name());
            for &id in &members {
                match group_of.get_mut(id.0 as usize) {
                    None => return Err(GraphError::new(at(), format!("node {} does not exist", id.0))),
                    Some(Some(other)) => {
                        let message = format!("{} is also in group {other}", self.member(id));
                        return Err(GraphError::new(at(), message));
                    }
                    Some(free) => *free = Some(i),
                }
            }
            self.verify_group(&uses, group, &members).map_err(|message| GraphError::new(at(), message))?;
        }
        if let Some(left) = group_of.iter().position(Option::is_none) {
            return Err(GraphError::new(self.member(NodeId(left as u32)), "is in no group"));
        }
        for (i, group) in self.groups.iter().enumerate() {
            for &value in &group.inputs {
                let from = uses.producer(value).and_then(|id| group_of[id.0 as usize]);
                if from.is_some_and(|from| from >= i) {
                    let message =
                        format!("reads %{}, which a later group writes", self.graph.value(value).name);
                    return Err(GraphError::new(format!("group {i} ({})", group.name()), message));
                }
            }
        }
        Ok(())
    }

    fn verify_group(&self, uses: &Uses, group: &Group, members: &[NodeId]) -> Result<(), String> {
        if group.roots.is_empty() {
            return Err("it has no root".into());
        }
        if let GroupKind::Single(op) = group.kind
            && (members.len() != 1 || self.graph.node(members[0]).kind() != op || group.rule.is_some())
        {
            return Err(format!("expected one {op} without a rule"));
        }
        if let Some((name, id)) = group.captures.iter().find(|(_, id)| !members.contains(id)) {
            return Err(format!("capture `{name}` is {}, which is no member", self.member(*id)));
        }
        let (inputs, outputs) = edges(&self.graph, uses, members);
        if inputs != group.inputs {
            return Err("its inputs are not the values its members read from outside".into());
        }
        if outputs != group.outputs {
            return Err("its outputs are not the values that are used outside".into());
        }
        let attends = |id: NodeId| self.graph.node(id).op.attention().is_some_and(|a| !a.shared);
        if let Some(attention) = group.kv_write
            && !(attends(attention) && self.only_reader(uses, group, attention))
        {
            return Err("keys and values that it writes to the cache are read elsewhere too".into());
        }
        let composition = match group.kind {
            GroupKind::Single(_) => Composition::single(&self.graph, group.roots[0]),
            GroupKind::Fused(template) => compose(&self.graph, uses, group, template)?,
        };
        match composition == group.composition {
            true => Ok(()),
            false => Err("its composition is not what its members make".into()),
        }
    }

    /// Whether `attention`, and those that share its cache, alone read the keys and values of a group.
    fn only_reader(&self, uses: &Uses, group: &Group, attention: NodeId) -> bool {
        let inputs = &self.graph.node(attention).inputs;
        inputs[1..].iter().all(|value| {
            let mut users = uses.users(*value).iter();
            group.outputs.contains(value) && users.all(|user| self.graph.read_one_cache(attention, *user))
        })
    }

    fn member(&self, id: NodeId) -> String {
        let name = self.graph.nodes.get(id.0 as usize).map(|node| &self.graph.value(node.output).name);
        name.map_or_else(|| format!("node {}", id.0), |name| format!("%{name}"))
    }
}
