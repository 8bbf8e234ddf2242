//! Where graphs come from: specs in TOML, and the published models that specs are written for.

pub mod import;
pub mod spec;
