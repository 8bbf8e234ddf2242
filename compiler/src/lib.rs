//! kernmill's compiler: from a TOML model spec and a checkpoint to a plan.

// The small models of tests name this crate as other crates do.
#[cfg(test)]
extern crate self as kernmill_compiler;

pub mod assemble;
pub mod expr;
pub mod fingerprint;
pub mod fuse;
pub mod graph;
pub mod import;
pub mod interp;
pub mod machine;
pub mod memory;
mod ops;
pub mod pack;
pub mod pipeline;
pub mod plan_file;
pub mod quant;
pub mod schedule;
pub mod select;
pub mod simulate;
pub mod spec;
mod step_costs;
pub mod synth;
#[doc(hidden)]
pub mod testing;
pub mod weights;
