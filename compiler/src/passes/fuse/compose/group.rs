//! A group whose kernel is looked for, and the graph around it.

use crate::ir::{Graph, Uses, ValueId};
use crate::passes::fuse::group::Group;

/// The group in which the parts of a composition are looked for.
pub(super) struct Compose<'a> {
    pub graph: &'a Graph,
    pub uses: &'a Uses,
    pub group: &'a Group,
}

impl Compose<'_> {
    /// A value as reasons show it.
    pub fn name(&self, value: ValueId) -> String {
        crate::passes::fuse::allow::name(self.graph, value)
    }
}
