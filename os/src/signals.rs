//! Handlers of signals that a process's files raise. For programs to call at their start; no other part of
//! the library changes what a process does at a signal, and all of it works without.

use crate::bus;
use crate::proc;
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

/// Whether who started this program has it ignore a signal, as shells do with SIGINT for programs in the
/// background.
pub fn is_ignored(signal: i32) -> bool {
    proc::text("self/status").is_some_and(|status| ignores(&status, signal))
}

fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_ignored_only_where_the_system_says_so() {
        for (status, ignored) in [
            ("SigBlk:\t0000000000000002\nSigIgn:\t0000000000000002\n", true),
            ("SigIgn:\tffffffffffffffff\n", true),
            ("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000002\n", false),
            ("", false),
            ("SigIgn:", false),
            ("SigIgn:\tall of them\n", false),
            ("SigIgn:\t-2\n", false),
            ("SigIgn:\t2ffffffffffffffff\n", false),
            ("\u{fffd}", false),
        ] {
            assert_eq!(ignores(status, libc::SIGINT), ignored, "{status:?}");
        }
    }
}
