//! Why there is no executor.

use crate::code::CodeError;
use kernmill_os::region::RegionError;
use kernmill_plan::check::CheckError;

/// Why a program cannot be executed here.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The program refers to memory it does not have.
    #[error("the plan's program is not sound: {0}")]
    Check(#[from] CheckError),
    /// The CPU cannot run it.
    #[error("the plan is for {level}; this CPU lacks {}", missing.join(", "))]
    Cpu {
        /// Level of the code.
        level: &'static str,
        /// Missing features, by their `/proc/cpuinfo` names.
        missing: Vec<&'static str>,
    },
    /// The system does not let the process use AMX tiles.
    #[error("this program is for target amx, and the system does not permit AMX tiles: {0}")]
    Tiles(#[source] std::io::Error),
    /// The weights are not all there.
    #[error("the plan's program reads {expected} bytes of weights, the region has {found}")]
    Weights {
        /// Bytes that operands may refer to.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// Code could not be made executable.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// Memory could not be mapped.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// There is not enough memory.
    #[error(
        "{needed} bytes of memory are needed ({kv} of them for the KV cache), {available} are available: \
         lower the context or the number of sequences"
    )]
    Memory {
        /// Everything the engine will allocate.
        needed: u64,
        /// The KV cache's part.
        kv: u64,
        /// Bytes that the system and its control groups leave.
        available: u64,
    },
}
