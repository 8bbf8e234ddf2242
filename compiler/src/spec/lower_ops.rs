//! Hands each node of a spec to its op.

use super::at::LoweredNode;
use super::lower::GraphLowering;
use super::scope::NameScope;
use super::{NodeDef, Result};
use crate::graph::ValueId;
use crate::ops;

impl<'a> GraphLowering<'a> {
    /// Lowers `node`, one of `nodes`; returns the value that it computes.
    pub(super) fn node(
        &mut self,
        scope: &NameScope<'a>,
        node: &'a NodeDef,
        nodes: &'a [NodeDef],
    ) -> Result<ValueId> {
        ops::lower(&mut LoweredNode { l: self, scope, node, nodes })
    }
}
