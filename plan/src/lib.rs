//! What a compiled plan *is*, for both sides: the kernel ABI, the steps, the packed weight formats, the KV geometry, the
//! CPU feature levels. The compiler and the kernel generator write these things, the runtime reads them; whatever both
//! must agree on is defined here once.

pub mod abi;
pub mod adapter;
pub mod bounded;
pub mod bus;
pub mod check;
pub mod contract;
pub mod end_tokens;
pub mod file;
pub mod float_env;
pub mod format;
pub mod input;
pub mod kv;
pub mod memory;
pub mod numeric;
pub mod output;
pub mod pack;
pub mod probe;
pub mod proc;
pub mod program;
pub mod region;
pub mod signals;
pub mod target;
pub mod tensor_file;
pub mod threads;
pub mod tiles;
