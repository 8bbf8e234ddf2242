//! Generates kernels: Cranelift bodies, micro-kernels, and the linker that makes one code blob
//! of them.
//!
//! [`kernel`] says what a kernel is, as data; [`generate::generate`] turns a list of them into a
//! [`kernmill_plan::program::CodeBlob`]. Bodies (`body/`) hold the loops and the work hand-out, operations on
//! rows (`row_op/`) are what comes before and behind them, micro-kernels (`ukernel/`) are the innermost
//! register tiles.

mod adapter;
pub mod asm;
mod body;
pub mod check;
mod cx;
pub mod disasm;
pub mod elf;
mod emit;
pub mod expr;
mod floats;
pub mod generate;
pub mod hand_out;
mod integers;
pub mod isa;
pub mod kernel;
pub mod link;
mod math;
pub mod names;
pub mod panel_kind;
pub mod panel_runs;
pub mod peak;
pub mod row_op;
mod run;
mod scratch;
pub mod tile_probe;
pub mod ukernel;
mod values;
pub mod weight_reads;
