//! The meaning of ops in plain loops: values, weights, adapters and the state that ops are evaluated in, and
//! the order of every sum (docs/dev/numerics.md).

pub mod expr;
pub mod lora;
pub mod num;
pub mod state;
pub mod weights;
