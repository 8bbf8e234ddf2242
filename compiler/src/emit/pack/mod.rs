//! The weight region of a plan: a checkpoint packed into memory (`write`) or piece by piece (`stream`).

pub mod merge_lora;
mod source;
mod stream;
mod write;

pub use source::{MemorySource, MemorySourceError};
pub use stream::{RegionPiece, piece_sizes, stream_weights};
pub use write::pack_weights;

#[cfg(test)]
mod tests;
