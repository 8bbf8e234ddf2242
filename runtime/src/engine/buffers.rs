//! Memory in which a step puts its run together.

use super::tiles::LogitTiles;
use crate::executor::Batch;

/// The buffers in which a run is put together; reused, so that a step allocates nothing.
pub(super) struct RunBuffers {
    pub batch: Batch,
    /// Batch rows whose logits are wanted, and whose they are: entry and token.
    pub wanted: Vec<u32>,
    pub origins: Vec<(usize, usize)>,
    /// The logits that are wanted of these rows.
    pub tiles: LogitTiles,
    /// Number of the sequence and count of tokens of each entry.
    pub sequences: Vec<(u32, u32)>,
    /// By number of the sequence: number of the last batch that it was in.
    pub last_seen: Vec<u64>,
    /// Number of the present batch.
    pub number: u64,
}

impl RunBuffers {
    pub(super) fn new(tokens: usize, sequences: usize, vocab: u32) -> RunBuffers {
        RunBuffers {
            batch: Batch::with_capacity(tokens),
            wanted: Vec::with_capacity(tokens),
            origins: Vec::with_capacity(tokens),
            tiles: LogitTiles::new(vocab),
            sequences: Vec::with_capacity(tokens.min(sequences)),
            last_seen: vec![0; sequences],
            number: 0,
        }
    }
}
