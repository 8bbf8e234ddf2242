//! Ctrl-C while a text is written: the first one ends the text, a second one the program.

use kernmill_os::signals::is_ignored;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a program that Ctrl-C ended: 128 and the signal's number.
pub const STATUS: u8 = 130;

/// Whether Ctrl-C was pressed. Clones share that.
///
/// ```
/// let mut interrupt = kernmill_tools::interrupt::Interrupt::default();
/// interrupt.watch();
/// assert!(!interrupt.came());
/// ```
#[derive(Clone, Debug, Default)]
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
        if is_ignored(SIGINT) {
            return;
        }
        // The order is that of the actions: a second Ctrl-C finds the flag set.
        let ends = flag::register_conditional_shutdown(SIGINT, i32::from(STATUS), Arc::clone(&self.flag));
        if ends.is_ok() {
            let _ = flag::register(SIGINT, Arc::clone(&self.flag));
        }
    }

    /// The flag that Ctrl-C sets.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Whether it was pressed since.
    pub fn came(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Forgets that Ctrl-C was pressed: the next one is the first again.
    pub fn clear(&self) {
        self.flag.store(false, Ordering::Relaxed);
    }
}
