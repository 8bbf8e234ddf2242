//! What a model compiles to, and why: on one screen, in full, and as JSON.

mod everything;
mod explained;
mod facts;
mod json;
mod kinds;
mod screen;
mod subject;

pub use everything::times;
pub use explained::{Explained, How};
pub use kinds::{Batch, Kind, Limit};
pub use subject::Subject;
