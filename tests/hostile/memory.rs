//! Counts the heap bytes of each thread of the test binary, so that tests can bound what an input takes.
//! Allocations past a limit fail.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted.
pub struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Bytes that this thread has allocated less those it has freed; freeing others' memory makes it
    /// negative.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    /// Largest value of `LIVE` since the last call of [`peak_of`].
    static PEAK: Cell<i64> = const { Cell::new(0) };
    /// Value of `LIVE` past which allocations fail.
    static LIMIT: Cell<i64> = const { Cell::new(i64::MAX) };
}

/// Lets this thread have so many more bytes than it has now. An allocation past that fails, which ends the
/// process unless the code asked whether there is room.
pub fn limit(bytes: i64) {
    LIMIT.set(LIVE.get().saturating_add(bytes));
}

fn has_room(bytes: usize) -> bool {
    i64::try_from(bytes).is_ok_and(|bytes| LIVE.get().saturating_add(bytes) <= LIMIT.get())
}

fn add(bytes: i64) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

// SAFETY: every call is passed on to the system's allocator as it is, or fails as an allocator may; the
// counters are plain thread-local cells that neither allocate nor have destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !has_room(layout.size()) {
            return std::ptr::null_mut();
        }
        add(layout.size() as i64);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !has_room(layout.size()) {
            return std::ptr::null_mut();
        }
        add(layout.size() as i64);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !has_room(new_size.saturating_sub(layout.size())) {
            return std::ptr::null_mut();
        }
        add(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Runs `work`; the most heap bytes that this thread had at once on top of what it had before.
pub fn peak_of(work: impl FnOnce()) -> u64 {
    let before = LIVE.get();
    PEAK.set(before);
    work();
    (PEAK.get() - before).max(0) as u64
}
