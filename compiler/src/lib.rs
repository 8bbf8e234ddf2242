//! kernmill's compiler: from a TOML model spec and a checkpoint to a plan.

pub mod adapt;
pub mod assemble;
pub mod build;
pub mod choose;
pub mod fingerprint;
pub mod fuse;
pub mod graph;
pub mod import;
pub mod interp;
pub mod memory;
pub mod merge;
pub mod pack;
pub mod pipeline;
pub mod plan_file;
pub mod quant;
pub mod schedule;
pub mod select;
pub mod spec;
pub mod synth;
#[doc(hidden)]
pub mod testing;
pub mod weights;
mod work;
