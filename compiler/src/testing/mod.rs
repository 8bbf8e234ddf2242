//! Small random models for tests: the same case runs on the interpreter, on fused graphs and on compiled
//! plans.

mod adapter;
mod model;
mod pair;
mod rng;
mod weights;

pub use adapter::{pack_adapter, random_adapter};
pub use model::{Mlp, ModelShape, Twist, build};
pub use pair::{Pair, RULE, random_pair};
pub use rng::Rng;
pub use weights::{RandomWeights, random_weights};
