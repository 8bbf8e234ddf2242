//! Measuring the speed of prompts and decoding, beside what the machine allows.

mod case;
mod machine;
mod report;
mod stats;

pub use case::{Case, Fill, How, Kind, Outcome};
pub use machine::{Caches, Machine, buffer, caches, limits};
pub use report::Report;
pub use stats::{Quartiles, best};
