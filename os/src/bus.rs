//! Files that lose bytes while they are mapped: the process ends with a message instead of a bus error.
//!
//! Reading a page that a mapped file no longer has, or that its disk cannot deliver, raises SIGBUS in the
//! reading thread, in the midst of generated code: nothing can be saved. The handler looks whose page it was,
//! writes one message and ends the process. It does nothing but load atomics, `write` and `_exit`, which are
//! allowed in a handler. Faults of other memory go to the handler that was there before.
//!
//! Mappings are entered here by a [`BusGuard`] each, whether or not the handler is there:
//! [`crate::signals::install`] installs it.

use crate::text::{shortened, visible};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering, fence};

/// Bytes of a message, which names a file by at most [`crate::text::SHOWN_CHARS`] characters.
const MESSAGE_BYTES: usize = 1024;

/// A guarded mapping. Slots live for ever, so that the handler never reads memory that is something else by
/// then.
struct GuardedMapping {
    /// The number of the slot's user times [`STATES`], plus one of the states below. A handler that finds
    /// another value than it began with has read two users' fields.
    state: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    message: [AtomicU8; MESSAGE_BYTES],
    message_len: AtomicUsize,
}

const FREE: usize = 0;
const TAKEN: usize = 1;
const GUARDED: usize = 2;
const STATES: usize = 4;

/// Exit status: failed at work.
const STATUS: i32 = 1;

/// Slots per block: a checkpoint has a mapping for each of its shards.
const BLOCK_SLOTS: usize = 32;

/// Slots, and where there are more.
struct MappingList {
    slots: [GuardedMapping; BLOCK_SLOTS],
    next: AtomicPtr<MappingList>,
}

impl MappingList {
    const fn new() -> MappingList {
        MappingList {
            slots: [const {
                GuardedMapping {
                    state: AtomicUsize::new(FREE),
                    start: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                    message: [const { AtomicU8::new(0) }; MESSAGE_BYTES],
                    message_len: AtomicUsize::new(0),
                }
            }; BLOCK_SLOTS],
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The block after this one, if there is one.
    fn next(&self) -> Option<&'static MappingList> {
        // SAFETY: a block that is entered here is never freed.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The block after this one, made if need be.
    fn next_or_new(&self) -> &'static MappingList {
        if let Some(next) = self.next() {
            return next;
        }
        let new: *mut MappingList = Box::into_raw(Box::new(MappingList::new()));
        let null = std::ptr::null_mut();
        match self.next.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it was made above and is never freed.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: nobody else has seen `new`; `other` was entered by another thread, and is never
                // freed.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }
}

static FIRST: MappingList = MappingList::new();

fn blocks() -> impl Iterator<Item = &'static MappingList> {
    std::iter::successors(Some(&FIRST), |block| block.next())
}

/// The handler that the signal had before; `None` if this one could not be installed.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// Guards a mapping as long as it lives, once [`crate::signals::install`] was called.
#[derive(Debug)]
pub struct BusGuard {
    slot: &'static GuardedMapping,
    /// The slot's state when it is not used any more.
    free: usize,
}

impl std::fmt::Debug for GuardedMapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("start", &self.start).field("end", &self.end).finish_non_exhaustive()
    }
}

impl BusGuard {
    /// Guards `bytes` bytes from address `start` on, the mapping of the file called `name`; `advice` ends the
    /// message and says what to do.
    pub fn new(start: usize, bytes: usize, name: &str, advice: &str) -> BusGuard {
        let (slot, state) = claim();
        let name = visible(name);
        let text = format!(
            "\nerror: {}: part of the file cannot be read any more: it was shortened while in use, or its \
             disk failed: {advice}\n",
            shortened(&name)
        );
        let text = &text.as_bytes()[..text.len().min(MESSAGE_BYTES)];
        slot.message.iter().zip(text).for_each(|(to, byte)| to.store(*byte, Ordering::Relaxed));
        slot.message_len.store(text.len(), Ordering::Relaxed);
        slot.start.store(start, Ordering::Relaxed);
        slot.end.store(start.saturating_add(bytes), Ordering::Relaxed);
        slot.state.store(state + GUARDED, Ordering::Release);
        BusGuard { slot, free: state + STATES + FREE }
    }
}

impl Drop for BusGuard {
    fn drop(&mut self) {
        self.slot.state.store(self.free, Ordering::Release);
    }
}

/// A slot that is [`TAKEN`], and its user's number times [`STATES`].
fn claim() -> (&'static GuardedMapping, usize) {
    let mut block = &FIRST;
    loop {
        for slot in &block.slots {
            let state = slot.state.load(Ordering::Relaxed);
            let user = state - state % STATES;
            let claim = |free| {
                slot.state.compare_exchange(free, user + TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
            };
            if claim(user + FREE) {
                // A handler that reads a field written from here on also finds the state changed.
                fence(Ordering::Release);
                return (slot, user);
            }
        }
        block = block.next_or_new();
    }
}

/// Installs the handler, once.
pub(crate) fn install() {
    BEFORE.get_or_init(|| {
        // SAFETY: sigaction is plain data, for which all zeros is a value; both live through the call. The
        // handler has the type that SA_SIGINFO asks for.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut before: libc::sigaction = std::mem::zeroed();
            (libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before) == 0).then_some(before)
        }
    });
}

/// Copies the message for a guarded address into `to`; its length, or `None` if nothing guards the address.
fn message_at(address: usize, to: &mut [u8; MESSAGE_BYTES]) -> Option<usize> {
    for slot in blocks().flat_map(|block| &block.slots) {
        let state = slot.state.load(Ordering::Acquire);
        let range = slot.start.load(Ordering::Relaxed)..slot.end.load(Ordering::Relaxed);
        if state % STATES != GUARDED || !range.contains(&address) {
            continue;
        }
        let length = slot.message_len.load(Ordering::Relaxed).min(MESSAGE_BYTES);
        to.iter_mut().zip(&slot.message).for_each(|(to, byte)| *to = byte.load(Ordering::Relaxed));
        // The values read above belong to one user if the slot still has that user.
        fence(Ordering::Acquire);
        if slot.state.load(Ordering::Relaxed) == state {
            return Some(length);
        }
    }
    None
}

extern "C" fn handler(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system gives a valid `info` to a handler installed with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let mut message = [0; MESSAGE_BYTES];
    if let Some(length) = message_at(address, &mut message) {
        // SAFETY: `length` bytes of the message are there; both calls are allowed in a handler.
        unsafe {
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), length);
            libc::_exit(STATUS);
        }
    }
    // Not ours: with the handler from before in place, the access is tried again and faults there.
    if let Some(Some(before)) = BEFORE.get() {
        // SAFETY: `before` came from the system and lives for ever.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message for an address, as the handler finds it.
    fn message(address: usize) -> Option<String> {
        let mut bytes = [0; MESSAGE_BYTES];
        let length = message_at(address, &mut bytes)?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    #[test]
    fn any_number_of_mappings_is_guarded_each_by_its_own_name() {
        // Addresses that no mapping has.
        let start = |n: usize| (1 << 60) + n * 4096;
        let mut guards: Vec<BusGuard> =
            (0..1000).map(|n| BusGuard::new(start(n), 4096, &format!("file {n}"), "wait")).collect();
        for n in [0, 31, 32, 255, 256, 299, 999] {
            let text = message(start(n) + 4095).expect("it is guarded");
            assert!(text.starts_with(&format!("\nerror: file {n}: ")) && text.ends_with("wait\n"), "{text}");
        }
        assert_eq!(message(start(1000)), None);
        drop(guards.remove(299));
        assert_eq!(message(start(299)), None);
        let again = BusGuard::new(start(2000), 10, "another", "wait");
        assert!(message(start(2000)).expect("it is guarded").contains("another"));
        assert_eq!(message(start(2000) + 10), None, "what follows a mapping is not part of it");
        drop(again);
        drop(guards);
        assert_eq!(message(start(0)), None);
        assert!(blocks().count() >= 1000 / BLOCK_SLOTS);
    }

    #[test]
    fn long_names_and_those_with_control_characters_make_whole_messages() {
        let start = 1 << 61;
        let guard = BusGuard::new(start, 1, &"\u{1b}[31m\u{20ac}".repeat(300), "wait");
        let text = message(start).expect("it is guarded");
        assert!(text.len() < MESSAGE_BYTES && text.ends_with("wait\n"), "{text}");
        assert!(text.contains("\\u{1b}[31m") && !text.contains('\u{1b}'), "{text}");
        drop(guard);
    }
}
