//! The one test binary: what spans crates.

mod cli;
mod equality;
mod golden;
mod kernels;
