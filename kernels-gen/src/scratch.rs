//! Layout of a worker's scratch for one kernel: a bump allocation known at generation time.

/// Hands out offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scratch {
    used: usize,
}

impl Scratch {
    /// `bytes`, 64-byte aligned; the offset.
    pub fn take(&mut self, bytes: usize) -> usize {
        let offset = self.used;
        self.used = (offset + bytes).next_multiple_of(64);
        offset
    }

    /// Bytes taken so far.
    pub fn used(self) -> usize {
        self.used
    }
}
