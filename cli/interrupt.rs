//! Ctrl-C while a text is written: the first one ends the text, a second one the program.

use kernmill_os::proc;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a program that Ctrl-C ended: 128 and the signal's number.
pub const STATUS: u8 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    is_watched: bool,
}

impl Interrupt {
    /// From now on Ctrl-C sets the flag; before, it ends the program. Where it cannot be watched, that stays
    /// so.
    pub fn watch(&mut self) {
        if self.is_watched {
            return;
        }
        self.is_watched = true;
        if is_ignored() {
            return;
        }
        // The order is that of the actions: a second Ctrl-C finds the flag set.
        let ends = flag::register_conditional_shutdown(SIGINT, i32::from(STATUS), Arc::clone(&self.flag));
        if ends.is_ok() {
            let _ = flag::register(SIGINT, Arc::clone(&self.flag));
        }
    }

    /// Whether it was pressed since.
    pub fn came(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// Whether who started this program has it ignore Ctrl-C, as shells do for programs in the background.
fn is_ignored() -> bool {
    proc::text("self/status").is_some_and(|status| ignores_interrupt(&status))
}

fn ignores_interrupt(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGINT - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_is_ignored_only_where_the_system_says_so() {
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
            assert_eq!(ignores_interrupt(status), ignored, "{status:?}");
        }
    }
}
