//! Where all workers wait for each other.

use super::sync::{AtomicU32, Ordering};
use super::wait::{Signal, Wait};

/// A meeting point of all workers; reusable at once.
pub(crate) struct Barrier {
    count: u32,
    arrived: AtomicU32,
    generation: Signal,
}

impl Barrier {
    pub(super) fn new(count: u32, may_spin: bool) -> Barrier {
        Barrier { count, arrived: AtomicU32::new(0), generation: Signal::new(0, may_spin) }
    }

    /// Returns when every worker has called it as often as this one. Writes before the call are visible to
    /// all workers after it.
    pub(crate) fn wait(&self) {
        self.wait_busy(|| false);
    }

    /// Waits as [`Barrier::wait`] does, and calls `work` again and again while it spins, until that says that
    /// there is nothing left to do.
    pub(crate) fn wait_busy(&self, work: impl FnMut() -> bool) {
        let generation = self.generation.value();
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.change_to(generation + 1);
        } else {
            self.generation.wait_change(generation, Wait::Turn, work);
        }
    }
}
