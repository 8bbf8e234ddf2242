//! The weight region of a plan: where each tensor lies (`layout`), packing a checkpoint into memory (`write`)
//! or into a file (`stream`).

mod layout;
pub mod merge_lora;
pub mod region;
mod source;
mod stream;
mod write;

pub use crate::weights::WeightSource;
pub use layout::{LayoutError, Placement, REGION_ALIGN, WeightLayout, plan_weights, table_row_stride};
pub use source::{MemorySource, MemorySourceError};
pub use stream::{RegionPiece, piece_sizes, stream_weights};
pub(crate) use write::locate;
pub use write::{PackWeightsError, pack_weights};

#[cfg(test)]
mod tests;
