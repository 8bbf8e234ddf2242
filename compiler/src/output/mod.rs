//! Where a compiled model goes: into memory, into a plan file, into a fingerprint of all that it is made of.

pub mod fingerprint;
pub mod plan_file;
pub mod region;
