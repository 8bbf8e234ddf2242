//! The schedule of a step over many workers, in virtual time: how long each takes, and who waits for whom.
//!
//! A step's items, their bytes and their arithmetic are those of the compiled program
//! (`items.rs`); they are handed out as the executor does it ([`kernmill_plan::hand_out`]); the machine is
//! described by few numbers ([`SimulatedMachine`]). Nothing is measured and nothing is random: the same input
//! gives the same times.
//!
//! Workers that read share the memory. A worker's item takes what the cost model says of it, with the bytes
//! per ns that there are for the worker when it begins the item. A step begins on all workers at once, and
//! ends with the last of them and a barrier; so steps do not depend on each other, and equal ones take
//! equally long.

mod batch;
mod items;
mod machine;
mod schedule;
#[cfg(test)]
mod tests;

pub use batch::{SimulatedStep, simulate};
pub use items::StepRows;
pub use machine::{Arrival, MemoryRates, SimulatedMachine};
pub use schedule::StepTimes;
