//! The one test binary: what spans crates.

mod cli;
mod docs;
mod equality;
mod golden;
mod kernels;
mod oracle;
