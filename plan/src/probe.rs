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

/// Micro-kernels that multiply decoded weights by rows in cache, on AMX tiles and in vectors: what tiles
/// gain. The kernels' generator makes them, and the runtime runs them.
#[derive(Clone, Debug)]
pub struct TileProbe {
    /// Features that the code uses.
    pub level: Level,
    /// The functions.
    pub code: CodeBlob,
    /// Blocks of 32 k that a call of `vectors` is for.
    pub blocks: u64,
    /// Element kinds that tiles multiply, one entry for each.
    pub elements: Vec<TileElementProbe>,
}

/// Functions of a [`TileProbe`] for one kind of element. Operands and results take at most 128 KiB each.
#[derive(Clone, Copy, Debug)]
pub struct TileElementProbe {
    /// Offset of `extern "C" fn()`, which configures tiles.
    pub on: u64,
    /// Offset of `extern "C" fn()`, which releases them.
    pub off: u64,
    /// Offset of `extern "C" fn(weights: *const u8, panels: *const u8, sums: *mut f32, rows: u64, blocks:
    /// u64, products: *mut u8, scales: *const u8, data: *const u8, out: *mut u8, count: u64, apart: u64,
    /// ahead: u64)`, which multiplies on tiles, and meanwhile decodes `count` blocks.
    pub tiles: u64,
    /// Rows that a call of `tiles` is for.
    pub tiles_rows: u64,
    /// Blocks that it is for.
    pub tiles_blocks: u64,
    /// Rows of the panels times blocks of weights that it multiplies.
    pub tiles_work: usize,
    /// Offset of `extern "C" fn(weights: *const u8, panel: *const u8, sums: *mut f32, blocks: u64, stride:
    /// u64, gap: u64)`, which multiplies in vectors. `stride` is 128 and `gap` 64.
    pub vectors: u64,
    /// Rows of the panel times blocks of weights that a call of `vectors` multiplies.
    pub vectors_work: usize,
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
