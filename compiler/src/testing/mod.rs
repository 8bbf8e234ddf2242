//! Random weights and adapters for small models: the same case runs on the interpreter, on fused graphs and
//! on compiled plans. The small models of tests are in `compiler/tests/support/`.

mod adapter;
#[cfg(test)]
#[path = "../../tests/support/small_model.rs"]
mod small_model;
mod weights;

pub use crate::random::Rng;
pub use adapter::{pack_adapter, random_adapter};
#[cfg(test)]
pub use small_model::{Mlp, ModelShape, Twist, build};
pub use weights::{RandomWeights, random_blocks, random_weights};
