//! The definition of a compiled plan, for both sides: the kernel ABI, the steps, the packed weight formats,
//! the KV geometry, the CPU feature levels. The compiler and the kernel generator write these things, the
//! runtime reads them; whatever both must agree on is defined here once.

pub mod abi;
pub mod adapter;
pub mod bounded;
pub mod chat;
pub mod check;
pub mod contract;
pub mod file;
pub mod format;
pub mod hand_out;
pub mod kv;
pub mod limit;
pub mod numeric;
pub mod probe;
pub mod program;
pub mod target;
pub mod vectors;
