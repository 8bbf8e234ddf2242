//! Memory in which a step puts its run together.

use crate::executor::Batch;

/// What a run is put together in; reused, so that a step allocates nothing.
pub(super) struct RunBuffers {
    pub batch: Batch,
    /// Batch rows whose logits are wanted, and whose they are: entry and token.
    pub wanted: Vec<u32>,
    pub origins: Vec<(usize, usize)>,
    /// Which tokens of which entries are in the batch.
    pub parts: Vec<Part>,
    /// Number of the sequence and count of tokens of each part.
    pub sequences: Vec<(u32, u32)>,
    /// By number of the sequence: number of the last batch that it was in.
    pub last_seen: Vec<u64>,
    /// Number of the present batch.
    pub number: u64,
}

/// Tokens `from..to` of an entry.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub entry: usize,
    pub from: usize,
    pub to: usize,
}

impl RunBuffers {
    pub(super) fn new(tokens: usize, sequences: usize) -> RunBuffers {
        let parts = tokens.min(sequences);
        RunBuffers {
            batch: Batch::with_capacity(tokens),
            wanted: Vec::with_capacity(tokens),
            origins: Vec::with_capacity(tokens),
            parts: Vec::with_capacity(parts),
            sequences: Vec::with_capacity(parts),
            last_seen: vec![0; sequences],
            number: 0,
        }
    }
}
