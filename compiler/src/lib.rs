//! kernmill's compiler: from a TOML model spec and a checkpoint to a plan.

pub mod graph;
