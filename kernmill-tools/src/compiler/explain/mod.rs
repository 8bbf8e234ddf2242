//! Explanations of a compiled model: on one screen, in full, as JSON, and as a page.

mod code;
mod everything;
mod explained;
mod facts;
mod json;
mod kinds;
mod layers;
mod page;
mod screen;
mod subject;

pub use everything::times;
pub use explained::{ExplainOptions, Explained};
pub use kinds::{BatchShape, Limit, StepKind};
pub use page::page;
pub use subject::Subject;

/// Name and number of the JSON report. The number grows when a field changes its meaning or goes.
pub const SCHEMA: &str = "kernmill.explain/2";
