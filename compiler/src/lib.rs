//! kernmill's compiler: from a TOML model spec and a checkpoint to a plan.

pub mod checkpoint;
pub mod fuse;
pub mod graph;
pub mod memory;
pub mod pack;
pub mod schedule;
pub mod select;
pub mod spec;
