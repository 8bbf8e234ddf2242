//! Reference-counted block ids of one layer kind.

/// Hands out block ids `0..count`.
#[derive(Debug)]
pub(super) struct BlockPool {
    /// Users of each block; 0 is free.
    refs: Vec<u32>,
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
            free: (0..count).rev().collect(),
            leaving: vec![0; count_of_all],
            left: Vec::with_capacity(count_of_all),
        }
    }

    /// Blocks there are.
    pub(super) fn count(&self) -> usize {
        self.refs.len()
    }

    /// Blocks nobody uses.
    pub(super) fn available(&self) -> usize {
        self.free.len()
    }

    /// A free block, with one user.
    pub(super) fn take(&mut self) -> Option<u32> {
        let id = self.free.pop()?;
        self.refs[id as usize] = 1;
        Some(id)
    }

    /// One more user.
    pub(super) fn share(&mut self, id: u32) {
        debug_assert!(self.refs[id as usize] > 0, "only blocks in use are shared");
        self.refs[id as usize] += 1;
    }

    /// One user less; the last one frees it.
    pub(super) fn give_back(&mut self, id: u32) {
        let refs = &mut self.refs[id as usize];
        debug_assert!(*refs > 0, "only blocks in use are given back");
        *refs -= 1;
        if *refs == 0 {
            // The list had all ids at first: no growth.
            self.free.push(id);
        }
    }

    /// Whether more than one sequence uses it.
    pub(super) fn is_shared(&self, id: u32) -> bool {
        self.refs[id as usize] > 1
    }

    /// Tries out that a block has one user less: whether it would be free then.
    pub(super) fn try_give_back(&mut self, id: u32) -> bool {
        let leaving = &mut self.leaving[id as usize];
        if *leaving == 0 {
            // Each block is there once at most: no growth.
            self.left.push(id);
        }
        *leaving += 1;
        *leaving == self.refs[id as usize]
    }

    /// Whether more than one sequence would use it after what was tried out.
    pub(super) fn is_still_shared(&self, id: u32) -> bool {
        self.refs[id as usize] - self.leaving[id as usize] > 1
    }

    /// Ends the trial: the counts are as they were.
    pub(super) fn end_of_trial(&mut self) {
        for id in self.left.drain(..) {
            self.leaving[id as usize] = 0;
        }
    }
}
