//! The budget of a template's run, and its failures.

use kernmill_os::foreign::{Watch, WorkStopped};
use std::cell::Cell;

/// Work of evaluating one expression or statement, or of one item of a list, in bytes of text.
pub(super) const STEP: usize = 64;

/// Deepest nesting of values, in lists and dictionaries.
pub(super) const VALUE_DEPTH: u32 = 160;

/// Deepest nesting of what is being evaluated: expressions, blocks, loops and macros in each other.
const RUN_DEPTH: u32 = 200;

/// Why a run of a template has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::template) enum TemplateFault {
    /// The template calls `raise_exception`.
    Refused(String),
    /// The template does what cannot be done, or too much. With the line, from 1, once it is known.
    Failed(String, Option<u32>),
}

pub(in crate::template) type Result<T> = std::result::Result<T, Box<TemplateFault>>;

/// A failure with its message.
pub(super) fn failed<T>(message: impl Into<String>) -> Result<T> {
    Err(Box::new(TemplateFault::Failed(message.into(), None)))
}

/// Why a template was stopped from outside.
pub(in crate::template) fn stopped(why: &WorkStopped) -> String {
    match why {
        WorkStopped::Time(_) => "it takes longer than a template may".to_owned(),
        other => other.to_string(),
    }
}

/// Work and time that are left to a run. Every byte that is made or looked at counts, and every step.
pub(in crate::template) struct Budget {
    left: Cell<usize>,
    /// Work until the next look at whether somebody still waits.
    until_look: Cell<usize>,
    watch: Watch,
    depth: Cell<u32>,
}

/// Work between two looks at whether somebody still waits.
const LOOK: usize = 1 << 16;

impl Budget {
    pub fn new(work: usize, watch: Watch) -> Budget {
        Budget { left: work.into(), until_look: LOOK.into(), watch, depth: 0.into() }
    }

    /// Uses up the work of looking at or making so many bytes.
    pub fn spend(&self, bytes: usize) -> Result<()> {
        let Some(left) = self.left.get().checked_sub(bytes) else {
            self.left.set(0);
            return failed("it does more than a template may, and might never end");
        };
        self.left.set(left);
        match self.until_look.get().checked_sub(bytes) {
            Some(until) => self.until_look.set(until),
            None => {
                self.until_look.set(LOOK);
                if let Err(why) = self.watch.check() {
                    return failed(stopped(&why));
                }
            }
        }
        Ok(())
    }

    /// Uses up the work of so many steps.
    pub fn steps(&self, count: usize) -> Result<()> {
        self.spend(count.saturating_mul(STEP))
    }

    /// Runs what is one level deeper.
    pub fn deeper<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.depth.get() >= RUN_DEPTH {
            return failed("its macros, blocks and expressions nest too deeply");
        }
        self.steps(1)?;
        self.depth.set(self.depth.get() + 1);
        let result = run();
        self.depth.set(self.depth.get() - 1);
        result
    }
}
