//! Reference-counted block ids of one layer kind.

/// Hands out block ids `0..count`.
#[derive(Debug)]
pub(super) struct BlockPool {
    /// Users of each block; 0 is free.
    refs: Vec<u32>,
    /// Free ids, last one next.
    free: Vec<u32>,
}

impl BlockPool {
    pub(super) fn new(count: u32) -> BlockPool {
        BlockPool { refs: vec![0; count as usize], free: (0..count).rev().collect() }
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
}
