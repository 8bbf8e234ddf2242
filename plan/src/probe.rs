//! Code that finds the machine's limits: functions that do nothing but read memory, or nothing but multiply.

use crate::program::CodeBlob;
use crate::target::Level;

/// Symbol of `extern "C" fn(start: *const u8, steps: u64)`, which reads `steps * read_step` bytes from
/// `start` on.
pub const READ: &str = "read";
/// Symbol of `extern "C" fn(iterations: u64)`, which multiplies and adds int8 values in registers.
pub const MULTIPLY: &str = "multiply";

/// Probes for one level, made by the kernels' generator and run by the runtime.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Features that the code uses.
    pub level: Level,
    /// The functions [`READ`] and [`MULTIPLY`].
    pub code: CodeBlob,
    /// Bytes that one step of [`READ`] reads.
    pub read_step: usize,
    /// Functions as [`READ`] that read in other ways.
    pub reads: Vec<ReadWay>,
    /// Operations of one iteration of [`MULTIPLY`]: a multiply-add is two.
    pub iteration_ops: u64,
}

/// One way to read memory. All read the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadWay {
    /// Symbol of the function.
    pub symbol: String,
    /// Bytes that one step of it reads.
    pub step: usize,
    /// Places that are read in turn.
    pub places: usize,
    /// Bytes that prefetching is ahead in each place; 0 for none.
    pub ahead: usize,
}
