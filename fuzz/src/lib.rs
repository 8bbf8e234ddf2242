//! The targets that the test suite runs too.

#[path = "../../tests/hostile/targets/mod.rs"]
pub mod targets;
