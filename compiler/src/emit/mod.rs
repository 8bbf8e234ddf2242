//! From the results of the passes to a program and its packed weights.

pub mod assemble;
pub mod pack;
mod step_costs;
