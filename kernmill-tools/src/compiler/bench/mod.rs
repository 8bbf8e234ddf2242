//! Measuring the speed of prompts and decoding, beside what the machine allows.

mod case;
mod machine;
mod paired;
mod replays;
mod report;
mod timeline;

pub use crate::stats::{Quartiles, best};
pub use case::{Case, CaseKind, CaseOutcome, Cases, Fill, Setup};
pub use machine::{Caches, MachineLimits, buffer, caches, limits};
pub use paired::{Paired, PairedOutcome, PairedReport, UNITS};
pub use report::Report;
