//! Checks of fused-op specs: compiled kernels against the interpreter, in separate processes, and what
//! the specs save.

mod check;
mod costs;
mod differ;
mod report;
mod trial;

pub use check::{SpecChecker, levels};
pub use costs::{Cost, SpecCosts};
pub use differ::{CurrentTrial, DiffOutcome};
pub use report::{CheckReport, CrashReport, SpecReport};
pub use trial::{Crash, TrialReply, TrialRequest, run, serve};
