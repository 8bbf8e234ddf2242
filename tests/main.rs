//! The one test binary: what spans crates.

#![allow(clippy::print_stderr, clippy::print_stdout)]

mod adapters;
mod cache;
mod cli;
mod docs;
mod equality;
mod fused;
mod gemma3;
mod gguf;
mod golden;
mod harness;
mod hostile;
mod kernels;
mod nano;
mod oracle;
mod plan;
mod pull;
mod requests;
mod serve;
mod smollm2;
mod streams;
mod tree;
