//! Why an adapter is refused: what, where, what was expected.

use crate::error_kind::ErrorKind;
use kernmill_checkpoint::peft::PeftError;
use kernmill_os::region::RegionError;

/// Why an adapter cannot be read, packed or used.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    /// The adapter's files cannot be read, or do not fit the model.
    #[error(transparent)]
    Read(#[from] PeftError),
    /// The plan's kernels have no place for adapters.
    #[error("the plan takes no adapters: compile it anew, without --no-adapters")]
    NoLoraTargets,
    /// No adapter of that name is loaded.
    #[error("there is no adapter `{name}`")]
    Unknown {
        /// The name. Those there are belong to others perhaps; [`super::AdapterStore::names`] has them.
        name: String,
    },
    /// An element that cannot be used.
    #[error("{0}")]
    Element(String),
    /// There is not enough memory.
    #[error("the adapter takes {needed} bytes of memory, {available} are available")]
    Memory {
        /// Bytes that the adapter takes.
        needed: u64,
        /// Bytes that the system and its control groups leave.
        available: u64,
    },
    /// Several adapters that cannot be one.
    #[error("{0}")]
    Combination(String),
    /// The store is full of adapters in use.
    #[error(
        "{what} takes {needed} bytes, expected at most {}: the budget is {budget}, of which adapters in \
         use{} take {in_use}; raise it or end some of their sequences",
        budget.saturating_sub(*in_use),
        if *loading { " or being loaded" } else { "" }
    )]
    Budget {
        /// The thing for which there is no room.
        what: String,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that all adapters may take.
        budget: u64,
        /// Bytes of those that sequences use, that are placed, or that are being loaded, which cannot be
        /// given up.
        in_use: u64,
        /// Whether some are being loaded.
        loading: bool,
    },
    /// The store has as many adapters as it may.
    #[error(
        "{what} would be one more than the {most} adapters that may be in use or being loaded at once; end \
         some of their sequences"
    )]
    Count {
        /// The thing for which there is no room.
        what: String,
        /// Adapters that there may be.
        most: usize,
    },
    /// The system refused the memory.
    #[error(transparent)]
    Region(#[from] RegionError),
}

impl AdapterError {
    /// The kind of fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            AdapterError::Region(_) => ErrorKind::Unsupported,
            _ => ErrorKind::BadInput,
        }
    }
}
