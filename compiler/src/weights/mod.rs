//! A checkpoint's tensors as a graph wants them: which of them it needs, and their rows, however they are
//! stored.

mod bind;
mod converted;
mod error;
mod grown;
mod rows;
mod source;
#[cfg(test)]
mod tests;

pub use bind::{EMBEDDING, UNEMBEDDING, bind, checkpoint_tensors, row_shape, stored_shape};
pub use converted::converted;
pub use error::PackWeightsError;
pub(crate) use error::locate;
pub use grown::grown;
pub use rows::CheckpointWeights;
pub use source::WeightSource;
