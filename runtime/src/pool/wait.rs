//! Waiting for a word to change: a short spin, then sleep on a futex.

use super::sync::{
    AtomicU32, AtomicU64, GRACE, Instant, LOOKS, Ordering, futex_wait, futex_wake_all, store_before_load,
};
use std::time::Duration;

/// A spin never lasts longer. Being woken takes tens of microseconds, in which the next step's memory stands
/// idle; two workers that share a decode step of a millisecond evenly still finish up to hundreds of
/// microseconds apart when the machine is not theirs alone.
pub(super) const MAX_SPIN: Duration = Duration::from_micros(1000);
/// A spin shrinks to no less.
pub(super) const MIN_SPIN: Duration = Duration::from_nanos(500);

/// The event that a thread waits for. Each kind has a separate spin: one tells nothing of the other.
#[derive(Clone, Copy)]
pub(super) enum Wait {
    /// Others end what they do now.
    Turn,
    /// There is something to do.
    Round,
}

/// A value that threads wait on. It has its cache line to itself.
#[repr(align(64))]
pub(super) struct Signal {
    value: AtomicU64,
    /// Threads that sleep or are about to.
    pub(super) sleepers: AtomicU32,
    /// By kind of wait, nanoseconds to spin before sleeping ([`next_budget`]); 0 never spins.
    pub(super) spin: [AtomicU32; 2],
}

impl Signal {
    pub(super) fn new(value: u64, may_spin: bool) -> Signal {
        let spin = || AtomicU32::new(if may_spin { MAX_SPIN.as_nanos() as u32 } else { 0 });
        Signal { value: AtomicU64::new(value), sleepers: AtomicU32::new(0), spin: [spin(), spin()] }
    }

    /// The present value.
    pub(super) fn value(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    /// Moves to a value whose low half is another one, and wakes everybody who sleeps. One thread at a time
    /// does so.
    pub(super) fn change_to(&self, value: u64) {
        // Sequentially consistent with `sleep`: either we see the sleeper or it sees the new value.
        self.value.store(value, Ordering::SeqCst);
        store_before_load();
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex_wake_all(&self.value);
        }
    }

    /// Whether the value is no longer `old`, as far as a few looks tell. Calls `work` between them.
    pub(super) fn changes_soon(&self, old: u64, mut work: impl FnMut() -> bool) -> bool {
        (0..GRACE).any(|_| {
            let changed = self.value() != old;
            if !changed && !work() {
                std::hint::spin_loop();
            }
            changed
        })
    }

    /// Returns once the value is no longer `old`: how long that took. Calls `work` while it spins, as long as
    /// that says there is more.
    pub(super) fn wait_change(&self, old: u64, wait: Wait, work: impl FnMut() -> bool) -> Duration {
        let spin = &self.spin[wait as usize];
        let start = Instant::now();
        let limit = Duration::from_nanos(spin.load(Ordering::Relaxed).into());
        if limit.is_zero() {
            self.sleep(old);
            return start.elapsed();
        }
        if !self.spin(old, start, limit, work) {
            self.sleep(old);
        }
        let waited = start.elapsed();
        let next = next_budget(limit, waited);
        // A store takes the line from those who look at the value.
        if next != limit {
            spin.store(next.as_nanos() as u32, Ordering::Relaxed);
        }
        waited
    }

    fn spin(&self, old: u64, start: Instant, limit: Duration, mut work: impl FnMut() -> bool) -> bool {
        let mut more = true;
        loop {
            for _ in 0..LOOKS {
                if self.value() != old {
                    return true;
                }
                more = more && work();
                if !more {
                    std::hint::spin_loop();
                }
            }
            if start.elapsed() >= limit {
                return false;
            }
        }
    }

    fn sleep(&self, old: u64) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        store_before_load();
        while self.value.load(Ordering::SeqCst) == old {
            futex_wait(&self.value, old);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
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
