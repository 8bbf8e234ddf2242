//! Checks of fused-op specs: compiled kernels against the interpreter, in processes of their own, and what
//! the specs save.

mod check;
mod child;
mod costs;
mod differ;
mod measure;
mod report;
mod trial;

pub use check::{Checker, levels};
pub use costs::{Cost, Costs};
pub use differ::{At, Outcome};
pub use report::{CrashReport, Report, SpecReport};
pub use trial::{Crash, Reply, Request, run, serve};
