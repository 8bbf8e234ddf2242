//! Rounding that makes up for its own errors (GPTQ), layer by layer: the inputs of a layer are those that the
//! layers before it make with their new weights.
//!
//! Inputs and factors of one layer are in memory at a time. Matrices that few tokens meet are fitted one
//! weight at a time.

mod factor;
mod moments;
mod piece;
mod rounding;
mod sweep;
#[cfg(test)]
pub(crate) mod sweep_tests;
#[cfg(test)]
mod tests;

pub(crate) use piece::SweptTensor;
pub(crate) use sweep::LayerSweep;
