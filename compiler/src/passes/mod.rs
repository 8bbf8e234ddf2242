//! The passes from a graph to steps with kernels; each returns a structure of its own.

pub mod fuse;
pub mod layout;
pub mod memory;
pub mod quant;
pub mod schedule;
pub mod select;
