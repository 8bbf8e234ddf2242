//! Where all workers wait for each other.

use super::arrival::Arrivals;
use super::wait::{Signal, Wait};

/// A meeting point of all workers; reusable at once.
pub(crate) struct Barrier {
    arrivals: Arrivals,
    generation: Signal,
}

impl Barrier {
    pub(super) fn new(arrivals: Arrivals, may_spin: bool) -> Barrier {
        Barrier { arrivals, generation: Signal::new(0, may_spin) }
    }

    /// Returns when the worker of every seat has called it as often as this seat's. Writes before the call
    /// are visible to all workers after it.
    pub(crate) fn wait(&self, seat: u32) {
        self.wait_busy(seat, || false);
    }

    /// Waits as [`Barrier::wait`] does, and calls `work` again and again while it spins, until that says that
    /// there is nothing left to do.
    pub(crate) fn wait_busy(&self, seat: u32, work: impl FnMut() -> bool) {
        let generation = self.generation.value();
        if self.arrivals.arrive(seat) {
            self.generation.change_to(generation + 1);
        } else {
            self.generation.wait_change(generation, Wait::Turn, work);
        }
    }
}
