//! Reference-counted block ids of one layer kind.

/// No node of the prefix cache.
const NO_NODE: u32 = u32::MAX;

/// Hands out block ids `0..count`.
///
/// A block has users: sequences, and at most once the prefix cache. A block whose only user is the cache can
/// be had back at any time.
#[derive(Debug)]
pub(super) struct BlockPool {
    /// Users of each block; 0 is free.
    refs: Vec<u32>,
    /// The prefix cache's node that is one of them, or [`NO_NODE`].
    nodes: Vec<u32>,
    /// Blocks that the prefix cache alone uses.
    idle: usize,
    /// Free ids, last one next.
    free: Vec<u32>,
    /// While changes are tried out: users that each block would lose.
    leaving: Vec<u32>,
    /// Blocks that would lose some.
    left: Vec<u32>,
}

impl BlockPool {
    pub(super) fn new(count: u32) -> BlockPool {
        let count_of_all = count as usize;
        BlockPool {
            refs: vec![0; count_of_all],
            nodes: vec![NO_NODE; count_of_all],
            idle: 0,
            free: (0..count).rev().collect(),
            leaving: vec![0; count_of_all],
            left: Vec::with_capacity(count_of_all),
        }
    }

    /// Blocks there are.
    pub(super) fn count(&self) -> usize {
        self.refs.len()
    }

    /// Blocks that a sequence can have: free ones, and those that the prefix cache alone uses.
    pub(super) fn available(&self) -> usize {
        self.free.len() + self.idle
    }

    /// Blocks that nobody uses.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Blocks that the prefix cache alone uses.
    pub(super) fn idle(&self) -> usize {
        self.idle
    }

    /// A free block, with one user.
    pub(super) fn take(&mut self) -> Option<u32> {
        let id = self.free.pop()?;
        self.refs[id as usize] = 1;
        Some(id)
    }

    /// Adds a user to a block in use.
    pub(super) fn share(&mut self, id: u32) {
        let at = id as usize;
        debug_assert!(self.refs[at] > 0, "only blocks in use are shared");
        self.idle -= usize::from(self.nodes[at] != NO_NODE && self.refs[at] == 1);
        self.refs[at] += 1;
    }

    /// Makes a node of the prefix cache a user of a block that a sequence uses.
    pub(super) fn cache(&mut self, id: u32, node: u32) {
        debug_assert!(!self.is_cached(id), "the cache uses a block once");
        self.share(id);
        self.nodes[id as usize] = node;
    }

    /// Whether the prefix cache uses it.
    pub(super) fn is_cached(&self, id: u32) -> bool {
        self.nodes[id as usize] != NO_NODE
    }

    /// The prefix cache's node that uses a block.
    pub(super) fn node(&self, id: u32) -> Option<u32> {
        Some(self.nodes[id as usize]).filter(|node| *node != NO_NODE)
    }

    /// Ends the prefix cache's use of a block; whether the block is free now.
    pub(super) fn uncache(&mut self, id: u32) -> bool {
        let at = id as usize;
        debug_assert!(self.is_cached(id), "the cache gives back what it uses");
        self.nodes[at] = NO_NODE;
        self.idle -= usize::from(self.refs[at] == 1);
        self.give_back(id)
    }

    /// Removes a user of a block; whether the block is free now. The last user frees it.
    pub(super) fn give_back(&mut self, id: u32) -> bool {
        let at = id as usize;
        debug_assert!(self.refs[at] > 0, "only blocks in use are given back");
        self.refs[at] -= 1;
        self.idle += usize::from(self.nodes[at] != NO_NODE && self.refs[at] == 1);
        if self.refs[at] > 0 {
            return false;
        }
        // The list had all ids at first: no growth.
        self.free.push(id);
        true
    }

    /// Whether it has more than one user.
    pub(super) fn is_shared(&self, id: u32) -> bool {
        self.refs[id as usize] > 1
    }

    /// Tries out that a block has one user less: whether a sequence could have it then.
    pub(super) fn try_give_back(&mut self, id: u32) -> bool {
        let at = id as usize;
        if self.leaving[at] == 0 {
            // Each block is there once at most: no growth.
            self.left.push(id);
        }
        self.leaving[at] += 1;
        self.leaving[at] + u32::from(self.is_cached(id)) == self.refs[at]
    }

    /// Whether it would have more than one user after what was tried out.
    pub(super) fn is_still_shared(&self, id: u32) -> bool {
        self.refs[id as usize] - self.leaving[id as usize] > 1
    }

    /// Whether a sequence could have it if one of its users went.
    pub(super) fn has_one_sequence(&self, id: u32) -> bool {
        self.refs[id as usize] == 1 + u32::from(self.is_cached(id))
    }

    /// Ends the trial: the counts are as they were.
    pub(super) fn end_of_trial(&mut self) {
        for id in self.left.drain(..) {
            self.leaving[id as usize] = 0;
        }
    }
}
