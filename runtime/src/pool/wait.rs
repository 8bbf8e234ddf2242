//! Waiting for a word to change: a short spin, then sleep on a futex.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A spin never lasts longer. Being woken takes tens of microseconds, in which the next step's memory stands idle; two workers that
/// share a decode step of a millisecond evenly still finish up to hundreds of microseconds apart when the machine is not theirs alone.
const MAX_SPIN: Duration = Duration::from_micros(1000);
/// A spin shrinks to no less.
const MIN_SPIN: Duration = Duration::from_nanos(500);

/// A counter that threads wait on. It has its cache line to itself.
#[repr(align(64))]
pub(super) struct Signal {
    value: AtomicU32,
    /// Threads that sleep or are about to.
    sleepers: AtomicU32,
    /// Nanoseconds to spin before sleeping ([`next_budget`]); 0 never spins.
    spin: AtomicU32,
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
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex_wake_all(&self.value);
        }
    }

    /// Returns the new value once it is no longer `old`. Calls `work` while it spins, as long as that says there is more.
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
            for _ in 0..16 {
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
/// A wait that outlasts every spin halves it: whoever is waited for is slow or has no CPU, and may want this one. Any other restores
/// it, also one that slept: sleeping would otherwise make the other threads wait for this one to wake, longer than their budgets, until
/// all sleep at every change.
fn next_budget(budget: Duration, waited: Duration) -> Duration {
    if waited < MAX_SPIN { MAX_SPIN } else { (budget / 2).max(MIN_SPIN) }
}

/// Sleeps while `word` holds `expected`; may return early.
fn futex_wait(word: &AtomicU32, expected: u32) {
    let no_timeout = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call; without a timeout the kernel reads nothing else.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            no_timeout,
        )
    };
}

fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: the kernel only uses the word's address.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            libc::c_int::MAX,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_that_outlast_every_spin_shrink_the_budget() {
        assert_eq!(next_budget(MAX_SPIN, MAX_SPIN), MAX_SPIN / 2);
        assert_eq!(next_budget(MIN_SPIN, 10 * MAX_SPIN), MIN_SPIN);
        assert_eq!(next_budget(MIN_SPIN, MAX_SPIN / 2), MAX_SPIN);
    }

    #[test]
    fn a_wait_that_slept_adapts_the_budget() {
        let signal = Signal::new(true);
        signal.spin.store((4 * MIN_SPIN).as_nanos() as u32, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while signal.sleepers.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                std::thread::sleep(2 * MAX_SPIN);
                signal.change();
            });
            assert_eq!(signal.wait_change(0, || false), 1);
        });
        assert_eq!(signal.spin.load(Ordering::Relaxed), (2 * MIN_SPIN).as_nanos() as u32);
    }
}
