//! Primitives of the pool's waiting, under loom; `runtime/src/pool/sync.rs` has the real ones.

pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

/// One look shows what many do.
pub(super) const LOOKS: u32 = 1;
/// Whether a thread looks again or goes on at once is the scheduler's choice.
pub(super) const GRACE: u32 = 0;

/// A value that threads hand over to each other by other means; loom fails when they do not.
pub(super) struct Handed<T>(UnsafeCell<T>);

// SAFETY: loom watches the accesses.
unsafe impl<T: Send> Sync for Handed<T> {}

impl<T: Copy> Handed<T> {
    pub(super) fn new(value: T) -> Handed<T> {
        Handed(UnsafeCell::new(value))
    }

    pub(super) unsafe fn set(&self, value: T) {
        // SAFETY: the pointer is good; loom fails the test if the access is not alone.
        self.0.with_mut(|place| unsafe { *place = value });
    }

    pub(super) unsafe fn get(&self) -> T {
        // SAFETY: as above.
        self.0.with(|place| unsafe { *place })
    }
}

/// A clock by which every spin has lasted long enough.
#[derive(Clone, Copy)]
pub(super) struct Instant;

impl Instant {
    pub(super) fn now() -> Instant {
        Instant
    }

    pub(super) fn elapsed(self) -> Duration {
        Duration::from_secs(1)
    }
}

/// A panic is loom's report here, and ends the test by itself.
pub(super) fn abort() {}

/// loom takes a sequentially consistent access for one that acquires and releases, and lets loads pass it.
/// Its fences do what the accesses themselves do in the language's memory model and on the machine.
pub(super) fn store_before_load() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

loom::lazy_static! {
    /// The kernel's lock of its table of sleepers, and where they sleep.
    static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Waits as the kernel does: compares and goes to sleep in one step, as seen by those who wake. Sleepers on
/// other words may be woken too, which a futex allows.
pub(super) fn futex_wait(word: &AtomicU64, expected: u64) {
    let table = SLEEPERS.0.lock().expect("no panic holds it");
    if word.load(Ordering::SeqCst) == expected {
        drop(SLEEPERS.1.wait(table).expect("no panic holds it"));
    }
}

pub(super) fn futex_wake_all(_word: &AtomicU64) {
    let table = SLEEPERS.0.lock().expect("no panic holds it");
    SLEEPERS.1.notify_all();
    drop(table);
}
