//! Waiting for a word to change: a short spin, then sleep on a futex.

use super::sync::{AtomicU32, Instant, LOOKS, Ordering, futex_wait, futex_wake_all, store_before_load};
use std::time::Duration;

/// A spin never lasts longer. Being woken takes tens of microseconds, in which the next step's memory stands
/// idle; two workers that share a decode step of a millisecond evenly still finish up to hundreds of
/// microseconds apart when the machine is not theirs alone.
pub(super) const MAX_SPIN: Duration = Duration::from_micros(1000);
/// A spin shrinks to no less.
pub(super) const MIN_SPIN: Duration = Duration::from_nanos(500);

/// A counter that threads wait on. It has its cache line to itself.
#[repr(align(64))]
pub(super) struct Signal {
    value: AtomicU32,
    /// Threads that sleep or are about to.
    pub(super) sleepers: AtomicU32,
    /// Nanoseconds to spin before sleeping ([`next_budget`]); 0 never spins.
    pub(super) spin: AtomicU32,
}

impl Signal {
    pub(super) fn new(may_spin: bool) -> Signal {
        let spin = if may_spin { MAX_SPIN.as_nanos() as u32 } else { 0 };
        Signal { value: AtomicU32::new(0), sleepers: AtomicU32::new(0), spin: AtomicU32::new(spin) }
    }

    /// The present value.
    pub(super) fn value(&self) -> u32 {
        self.value.load(Ordering::Acquire)
    }

    /// Moves to the next value and wakes everybody who sleeps. One thread at a time calls this.
    pub(super) fn change(&self) {
        // Sequentially consistent with `sleep`: either we see the sleeper or it sees the new value.
        self.value.fetch_add(1, Ordering::SeqCst);
        store_before_load();
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex_wake_all(&self.value);
        }
    }

    /// Returns the new value once it is no longer `old`. Calls `work` while it spins, as long as that says
    /// there is more.
    pub(super) fn wait_change(&self, old: u32, work: impl FnMut() -> bool) -> u32 {
        let budget = self.spin.load(Ordering::Relaxed);
        if budget == 0 {
            return self.sleep(old);
        }
        let start = Instant::now();
        let limit = Duration::from_nanos(budget.into());
        let value = self.spin(old, start, limit, work).unwrap_or_else(|| self.sleep(old));
        self.spin.store(next_budget(limit, start.elapsed()).as_nanos() as u32, Ordering::Relaxed);
        value
    }

    fn spin(&self, old: u32, start: Instant, limit: Duration, mut work: impl FnMut() -> bool) -> Option<u32> {
        let mut more = true;
        loop {
            for _ in 0..LOOKS {
                let value = self.value();
                if value != old {
                    return Some(value);
                }
                more = more && work();
                if !more {
                    std::hint::spin_loop();
                }
            }
            if start.elapsed() >= limit {
                return None;
            }
        }
    }

    fn sleep(&self, old: u32) -> u32 {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        store_before_load();
        let value = loop {
            let value = self.value.load(Ordering::SeqCst);
            if value != old {
                break value;
            }
            futex_wait(&self.value, old);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        value
    }
}

/// How long to spin next time, after a wait that spun for `budget` at most and took `waited` in all.
///
/// A wait that outlasts every spin halves it: whoever is waited for is slow or has no CPU, and may want this
/// one. Any other restores it, also one that slept: sleeping would otherwise make the other threads wait for
/// this one to wake, longer than their budgets, until all sleep at every change.
pub(super) fn next_budget(budget: Duration, waited: Duration) -> Duration {
    if waited < MAX_SPIN { MAX_SPIN } else { (budget / 2).max(MIN_SPIN) }
}
