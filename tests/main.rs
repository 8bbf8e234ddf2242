//! The one test binary: what spans crates.

mod equality;
mod golden;
mod kernels;
