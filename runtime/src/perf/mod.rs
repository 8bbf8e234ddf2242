//! Files by which Linux's `perf` knows code that no file holds: a map of names, and a dump of the code.

mod jit;
mod map;

pub use jit::write_dump;
pub use map::write_map;
