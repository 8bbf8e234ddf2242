//! Generates kernels: Cranelift bodies, leaf micro-kernels, and the linker that makes one code blob of them.
//!
//! [`kernel`] says what a kernel is, as data; [`generate::generate`] turns a list of them into a [`kernmill_plan::program::CodeBlob`].
//! Bodies (`body/`) hold the loops and the work hand-out, stages (`stage/`) compute rows, leaves (`leaf/`) are the innermost
//! register tiles.

mod adapter;
pub mod ahead;
mod body;
pub mod check;
mod cx;
pub mod disasm;
pub mod elf;
mod emit;
pub mod expr;
pub mod generate;
pub mod isa;
pub mod kernel;
pub mod leaf;
pub mod link;
mod math;
pub mod near;
pub mod peak;
mod run;
mod scratch;
mod stage;
pub mod wide;
