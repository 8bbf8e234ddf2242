//! The targets that the test suite replays too.

#[path = "../../tests/hostile/targets.rs"]
pub mod targets;
