//! Adapters in memory: packed once, then shared by the slots that use them.
//!
//! [`AdapterLoader`] reads PEFT directories; [`AdapterTable`] is what kernels read.

mod combine;
mod error;
mod factors;
mod load;
mod merge;
mod norms;
mod packed;
mod room;
mod store;
mod table;
mod tally;
#[cfg(test)]
mod tests;

pub use error::AdapterError;
pub use load::{AdapterLoader, Loading};
pub use packed::{Adapter, AdapterPackError, PackTarget, PackedAdapter};
pub use store::{AdapterStore, AdapterUse, DEFAULT_BUDGET};
pub use table::AdapterTable;
pub(crate) use table::LoraTargetSet;
