//! Files that lose bytes while they are mapped: the process ends with a message instead of a bus error.
//!
//! Reading a page that a mapped file no longer has, or that its disk cannot deliver, raises SIGBUS in the reading thread, in the midst of
//! generated code: nothing can be saved. The handler looks whose page it was, writes one message and ends the process. It does nothing but
//! load atomics, `write` and `_exit`, which are allowed in a handler. Faults of other memory go to whoever handled them before.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A guarded mapping; free when `state` is [`FREE`].
struct Slot {
    state: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    message: AtomicPtr<u8>,
    message_len: AtomicUsize,
}

const FREE: usize = 0;
const TAKEN: usize = 1;
const GUARDED: usize = 2;

/// Exit status: failed at work.
const STATUS: i32 = 1;

/// Mappings that can be guarded at once: a checkpoint has one for each of its shards.
pub const MAX_MAPPINGS: usize = 256;

static SLOTS: [Slot; MAX_MAPPINGS] = [const {
    Slot {
        state: AtomicUsize::new(FREE),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        message: AtomicPtr::new(std::ptr::null_mut()),
        message_len: AtomicUsize::new(0),
    }
}; MAX_MAPPINGS];

/// Who handled the signal before; none if the handler could not be installed.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// Guards a mapping as long as it lives.
#[derive(Debug)]
pub struct BusGuard {
    slot: usize,
    /// What the slot points to.
    _message: Box<[u8]>,
}

impl BusGuard {
    /// Guards `bytes` bytes from address `start` on, the mapping of the file called `name`; `advice` ends the message and says what to do.
    /// Past [`MAX_MAPPINGS`] at once there is no guard.
    pub fn new(start: usize, bytes: usize, name: &str, advice: &str) -> Option<BusGuard> {
        BEFORE.get_or_init(install).as_ref()?;
        let claim = |slot: &Slot| {
            slot.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let index = SLOTS.iter().position(claim)?;
        let text = format!(
            "\nerror: {name}: part of the file cannot be read any more: it was shortened while in use, or its disk failed: {advice}\n"
        );
        let mut message = text.into_bytes().into_boxed_slice();
        let slot = &SLOTS[index];
        slot.message.store(message.as_mut_ptr(), Ordering::Relaxed);
        slot.message_len.store(message.len(), Ordering::Relaxed);
        slot.start.store(start, Ordering::Relaxed);
        slot.end.store(start.saturating_add(bytes), Ordering::Relaxed);
        slot.state.store(GUARDED, Ordering::Release);
        Some(BusGuard { slot: index, _message: message })
    }
}

impl Drop for BusGuard {
    fn drop(&mut self) {
        SLOTS[self.slot].state.store(FREE, Ordering::Release);
    }
}

fn install() -> Option<libc::sigaction> {
    // SAFETY: sigaction is plain data, for which all zeros is a value; both live through the call. The handler has the type that
    // SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut before: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before) == 0).then_some(before)
    }
}

extern "C" fn handler(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system gives a valid `info` to a handler installed with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    for slot in &SLOTS {
        let guarded = slot.state.load(Ordering::Acquire) == GUARDED;
        let range = slot.start.load(Ordering::Relaxed)..slot.end.load(Ordering::Relaxed);
        if guarded && range.contains(&address) {
            let message = slot.message.load(Ordering::Relaxed);
            let length = slot.message_len.load(Ordering::Relaxed);
            // SAFETY: the message lives as long as the slot is guarded, which is as long as the mapping that is being read.
            unsafe {
                libc::write(libc::STDERR_FILENO, message.cast(), length);
                libc::_exit(STATUS);
            }
        }
    }
    // Not ours: with the handler from before in place, the access is tried again and faults there.
    if let Some(Some(before)) = BEFORE.get() {
        // SAFETY: `before` came from the system and lives for ever.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}
