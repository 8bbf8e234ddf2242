//! Hands each node of a spec to its op.

use super::at::At;
use super::lower::Lowering;
use super::scope::Scope;
use super::{NodeDef, Result};
use crate::graph::ValueId;
use crate::ops;

impl<'a> Lowering<'a> {
    /// Lowers `node`, one of `nodes`; returns the value that it computes.
    pub(super) fn node(
        &mut self,
        scope: &Scope<'a>,
        node: &'a NodeDef,
        nodes: &'a [NodeDef],
    ) -> Result<ValueId> {
        ops::lower(&mut At { l: self, scope, node, nodes })
    }
}
