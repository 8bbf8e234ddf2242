//! What a process does at signals that its files raise. For programs to call at their start; no other part of
//! the library changes what a process does at a signal, and all of it works without.

use crate::bus;
use std::sync::Once;

/// Makes two faults of files errors with a message, for the whole process:
///
/// - a file that grows past the process's limit (`ulimit -f`): the write fails, where SIGXFSZ would end the
///   process without a word;
/// - a mapped file that loses bytes: a message that names it and exit status 1, where SIGBUS would
///   ([`crate::bus`]).
///
/// Calls after the first do nothing.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: ignoring a signal runs no handler.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        bus::install();
    });
}
