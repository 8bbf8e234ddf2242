//! Primitives of the pool's waiting. `runtime/pool-model` has the same names over loom, whose scheduler tries
//! every interleaving.

pub(super) use std::process::abort;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(super) use std::time::Instant;

use std::cell::UnsafeCell;

/// Looks at a value between two looks at the clock.
pub(super) const LOOKS: u32 = 16;
/// Looks at a value before a thread does what another one is late for. They take some microseconds, as a turn
/// of a small model does. Fewer looks take parts from workers that are on their way.
pub(super) const GRACE: u32 = 512;

/// A value that threads hand over to each other by other means.
pub(super) struct Handed<T>(UnsafeCell<T>);

// SAFETY: the methods' callers keep accesses apart.
unsafe impl<T: Send> Sync for Handed<T> {}

impl<T: Copy> Handed<T> {
    pub(super) fn new(value: T) -> Handed<T> {
        Handed(UnsafeCell::new(value))
    }

    /// # Safety
    /// No other access happens at the same time.
    pub(super) unsafe fn set(&self, value: T) {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() = value };
    }

    /// # Safety
    /// No [`Handed::set`] happens at the same time.
    pub(super) unsafe fn get(&self) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() }
    }
}

/// Where a sequentially consistent store to one word must not pass a load of another: the accesses themselves
/// see to that here, and need no fence.
pub(super) fn store_before_load() {}

/// Sleeps while the low half of `word` is that of `expected`; may return early.
pub(super) fn futex_wait(word: &AtomicU64, expected: u64) {
    let no_timeout = std::ptr::null::<libc::timespec>();
    // The low half comes first on x86-64: the kernel compares 32 bits.
    // SAFETY: the word outlives the call; without a timeout the kernel reads nothing else.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected as u32,
            no_timeout,
        )
    };
}

/// Wakes everybody who sleeps on `word`.
pub(super) fn futex_wake_all(word: &AtomicU64) {
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
