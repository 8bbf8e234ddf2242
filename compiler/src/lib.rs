//! kernmill's compiler: from a TOML model spec and a checkpoint to a plan.

// The small models of tests name this crate as other crates do.
#[cfg(test)]
extern crate self as kernmill_compiler;

pub mod emit;
pub mod front;
pub mod interp;
pub mod ir;
pub mod machine;
pub mod output;
pub mod passes;
pub mod pipeline;
mod random;
pub mod simulate;
mod spec_text;
pub mod synth;
#[doc(hidden)]
pub mod testing;
pub mod weights;
