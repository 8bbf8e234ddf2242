//! Making room: cached blocks that give way.

use super::super::UNMAPPED;
use super::super::blocks::BlockPool;
use super::PrefixCache;
use super::node::NONE;
use kernmill_plan::kv::LayerKind;

impl PrefixCache {
    /// Frees a block of a kind that the cache alone uses; whether there was one.
    pub(in crate::kv) fn evict(&mut self, kind: usize, pools: &mut [BlockPool; 2]) -> bool {
        let before = pools[kind].free();
        while pools[kind].free() == before {
            let went = match kind {
                0 => self.evict_leaf(pools),
                _ => self.evict_checkpoint(pools),
            };
            if !went {
                return false;
            }
        }
        true
    }

    /// Drops the least worthy leaf whose block no sequence uses; whether there was one.
    pub(super) fn evict_leaf(&mut self, pools: &mut [BlockPool; 2]) -> bool {
        let nodes = &self.nodes;
        let is_idle = |id: u32| {
            let full = nodes[id].blocks[0];
            full == UNMAPPED || !pools[0].is_shared(full)
        };
        let Some(id) = self.leaves.first(is_idle) else { return false };
        self.leaf_policy.evicted(self.leaves.worth(id));
        self.remove_leaf(id, pools);
        self.stats.evicted_blocks += 1;
        true
    }

    /// Drops the least worthy checkpoint that frees a block; whether there was one.
    fn evict_checkpoint(&mut self, pools: &mut [BlockPool; 2]) -> bool {
        let Some(id) = self.checkpoints.least(&self.nodes, &pools[1]) else { return false };
        self.checkpoints.drop_one(id, &mut self.nodes, &mut pools[1], &mut self.leaving);
        self.stats.evicted_checkpoints += 1;
        true
    }

    /// Gives up a block of a kind that the cache has together with one sequence, and nothing behind it.
    pub(in crate::kv) fn give_up(&mut self, kind: usize, block: u32, pools: &mut [BlockPool; 2]) {
        let Some(node) = pools[kind].node(block) else { return };
        match kind {
            0 => self.remove_leaf(node, pools),
            // The block may belong to the windows of later checkpoints too.
            _ => self.checkpoints.drop_covering(node, &mut self.nodes, &mut pools[1], &mut self.leaving),
        }
    }

    /// Takes a leaf out of the tree.
    pub(in crate::kv) fn remove_leaf(&mut self, id: u32, pools: &mut [BlockPool; 2]) {
        let node = &self.nodes[id];
        debug_assert!(node.is_leaf() && !node.is_root(), "only leaves go");
        let (key, parent, full, checkpoint) = (node.key, node.parent, node.blocks[0], node.checkpoint);
        if checkpoint != NONE {
            self.checkpoints.drop_one(checkpoint, &mut self.nodes, &mut pools[1], &mut self.leaving);
        }
        if full != UNMAPPED {
            self.leaving.note(&self.nodes, id, LayerKind::Full);
            pools[0].uncache(full);
        }
        self.leaves.remove(id);
        self.by_key.remove(&key);
        self.nodes.unlink(id);
        self.nodes.remove(id);
        self.settle(parent);
    }
}
