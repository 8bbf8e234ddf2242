//! Generates kernels: Cranelift bodies, leaf micro-kernels, and the linker that makes one code blob of them.

pub mod expr;
