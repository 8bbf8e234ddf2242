//! The scheduler in virtual time, with a scripted engine and KV cache that check every plan.
//!
//! The engine's costs are not those that the scheduler starts with, are noisy, and drift.

mod facts;
mod fairness;
mod figures;
mod pool;
mod random;
mod ratio;
mod traffic;
mod world;
