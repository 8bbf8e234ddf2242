//! Random weights and adapters for small models: the same case runs on the interpreter, on fused graphs and
//! on compiled plans. The small models of tests are in `compiler/tests/support/`.

mod adapter;
mod rng;
#[cfg(test)]
#[path = "../../tests/support/small_model.rs"]
mod small_model;
mod weights;

pub use adapter::{pack_adapter, random_adapter};
pub use rng::Rng;
#[cfg(test)]
pub use small_model::{Mlp, ModelShape, Twist, build};
pub use weights::{RandomWeights, random_blocks, random_weights};
