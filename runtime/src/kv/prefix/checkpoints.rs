//! Checkpoints: positions at which a sequence can go on, because the window of sliding layers is kept.

use super::super::UNMAPPED;
use super::super::blocks::BlockPool;
use super::heap::Queue;
use super::leaving::Leaving;
use super::node::{NONE, Nodes};
use super::policy::{Eviction, Policy};
use kernmill_plan::kv::LayerKind;

/// A position whose window is kept. It ends in a node, and needs the sliding blocks of `blocks` nodes from
/// there up.
#[derive(Clone, Copy, Debug)]
struct WindowCheckpoint {
    node: u32,
    blocks: u32,
    uses: u32,
    /// Tokens to compute if it were gone: those since the checkpoint before.
    cost: u64,
}

#[derive(Debug)]
pub(super) struct Checkpoints {
    slab: Vec<WindowCheckpoint>,
    free: Vec<u32>,
    /// Checkpoints that there may be.
    most: usize,
    queue: Queue,
    policy: Policy,
}

impl Checkpoints {
    pub(super) fn new(capacity: usize, eviction: Eviction) -> Checkpoints {
        Checkpoints {
            slab: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            most: capacity,
            queue: Queue::new(capacity),
            policy: Policy::new(eviction),
        }
    }

    /// Keeps the window of sliding layers that ends in `node`: the sliding blocks from index `first` on,
    /// which `block_of` tells. Nodes that hold one already keep theirs.
    pub(super) fn add(
        &mut self,
        nodes: &mut Nodes,
        node: u32,
        first: u32,
        pool: &mut BlockPool,
        block_of: impl Fn(u32) -> u32,
    ) {
        let blocks = nodes[node].index - first + 1;
        let path = std::iter::successors(Some(node), |at| Some(nodes[*at].parent)).take(blocks as usize);
        let lacks = path.map(|at| &nodes[at]).filter(|of| of.blocks[1] == UNMAPPED);
        let mut missing = lacks.map(|of| block_of(of.index));
        // A block serves one node: a sequence that has not written since it began in the middle of a block
        // has nothing new.
        if missing.any(|block| block == UNMAPPED || pool.is_cached(block)) {
            return;
        }
        let mut id = nodes[node].checkpoint;
        if id != NONE && self.slab[id as usize].blocks >= blocks {
            self.touch(nodes, node);
            return;
        }
        if id == NONE {
            let cost = u64::from(tokens_since_checkpoint(nodes, node));
            let new = WindowCheckpoint { node, blocks: 0, uses: 0, cost };
            id = match self.free.pop() {
                Some(id) => {
                    self.slab[id as usize] = new;
                    id
                }
                None if self.slab.len() < self.most => {
                    self.slab.push(new);
                    self.slab.len() as u32 - 1
                }
                None => return,
            };
            nodes[node].checkpoint = id;
        }
        let had = std::mem::replace(&mut self.slab[id as usize].blocks, blocks);
        let mut at = node;
        for n in 0..blocks {
            if n >= had {
                let of = &mut nodes[at];
                of.covered += 1;
                if of.blocks[1] == UNMAPPED {
                    of.blocks[1] = block_of(of.index);
                    pool.cache(of.blocks[1], at);
                }
            }
            at = nodes[at].parent;
        }
        self.touch(nodes, node);
    }

    /// Counts a use of the checkpoint that ends in a node, if there is one.
    pub(super) fn touch(&mut self, nodes: &Nodes, node: u32) {
        let id = nodes[node].checkpoint;
        if id == NONE {
            return;
        }
        let checkpoint = &mut self.slab[id as usize];
        checkpoint.uses = checkpoint.uses.saturating_add(1);
        let worth = self.policy.used(checkpoint.uses, checkpoint.cost);
        self.queue.set(id, worth);
    }

    /// The least worthy checkpoint without which a block would be free.
    pub(super) fn least(&mut self, nodes: &Nodes, pool: &BlockPool) -> Option<u32> {
        let slab = &self.slab;
        let frees = |id: u32| {
            let WindowCheckpoint { node, blocks, .. } = slab[id as usize];
            let path = std::iter::successors(Some(node), |at| Some(nodes[*at].parent));
            path.take(blocks as usize)
                .any(|at| nodes[at].covered == 1 && !pool.is_shared(nodes[at].blocks[1]))
        };
        // Where windows overlap so that none frees a block alone, the least worthy one makes a start.
        let least = self.queue.first(frees).or_else(|| {
            let idle = pool.idle() > 0;
            self.queue.first(|_| idle)
        })?;
        self.policy.evicted(self.queue.worth(least));
        Some(least)
    }

    /// Drops a checkpoint, and the blocks that no other one needs.
    pub(super) fn drop_one(
        &mut self,
        id: u32,
        nodes: &mut Nodes,
        pool: &mut BlockPool,
        leaving: &mut Leaving,
    ) {
        let WindowCheckpoint { node, blocks, .. } = self.slab[id as usize];
        nodes[node].checkpoint = NONE;
        let mut at = node;
        for _ in 0..blocks {
            nodes[at].covered -= 1;
            if nodes[at].covered == 0 {
                leaving.note(nodes, at, LayerKind::Sliding);
                pool.uncache(std::mem::replace(&mut nodes[at].blocks[1], UNMAPPED));
            }
            at = nodes[at].parent;
        }
        self.queue.remove(id);
        self.free.push(id);
    }

    /// Drops all checkpoints whose windows hold the block of a node.
    pub(super) fn drop_covering(
        &mut self,
        node: u32,
        nodes: &mut Nodes,
        pool: &mut BlockPool,
        leaving: &mut Leaving,
    ) {
        for id in 0..self.slab.len() as u32 {
            let WindowCheckpoint { node: end, blocks, .. } = self.slab[id as usize];
            let is_there = nodes[end].checkpoint == id;
            let mut window =
                std::iter::successors(Some(end), |at| Some(nodes[*at].parent)).take(blocks as usize);
            if is_there && window.any(|at| at == node) {
                self.drop_one(id, nodes, pool, leaving);
            }
        }
    }
}

/// Tokens from the last checkpoint before a node, or the start, to its end.
fn tokens_since_checkpoint(nodes: &Nodes, node: u32) -> u32 {
    let mut at = nodes[node].parent;
    while at != NONE && !nodes[at].is_root() && nodes[at].checkpoint == NONE {
        at = nodes[at].parent;
    }
    let before = if at == NONE { 0 } else { nodes[at].end() };
    nodes[node].end() - before
}
