//! The weight region of a plan: where each tensor lies (`layout`), and streaming a checkpoint into it (`write`).

mod layout;
mod source;
mod write;

pub use layout::{LayoutError, Placement, REGION_ALIGN, WeightLayout, plan_weights, table_row_stride};
pub use source::{MemorySource, MemorySourceError, WeightSource};
pub(crate) use write::locate;
pub use write::{PackWeightsError, pack_weights};

#[cfg(test)]
mod tests;
