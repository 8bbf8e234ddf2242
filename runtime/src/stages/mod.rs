//! Pipeline stages: the layers of one model in several processes, for models that one machine does not hold.
//!
//! All processes have the same model. The first one has the sequences, the block tables and the sampling; it
//! runs the first layers of a batch, and what follows the last layer. A [`StageServer`] runs the layers
//! between, with the KV cache of these. A batch goes from stage to stage over TCP, as rows of the residual
//! stream, and comes back along the same way. While it is away, the first stage runs another batch.
//!
//! No sum is split, so that the bits are those of one process. `docs/dev/stages.md` describes the protocol.

mod hello;
mod key;
mod link;
mod server;
mod tables;
mod upstream;
mod wire;

#[cfg(test)]
mod tests;

pub use key::{KeyError, StageKey};
pub use link::{StageHealth, StageLost};
pub use server::{StageError, StageServer, StageServerConfig};
pub(crate) use upstream::{StagesChange, Upstream};

use crate::executor::{CutError, Cuts, MemoryNeed};
use crate::kv::KvShape;
use kernmill_plan::program::Program;

/// Where the other stages are, for the first one; and where the next one is, for those between.
#[derive(Clone, Debug)]
pub struct StagesConfig {
    /// Number of stages, at least 2.
    pub stages: u32,
    /// Address of the next stage, `HOST:PORT`.
    pub peer: String,
    /// The key that both sides must know.
    pub key: StageKey,
}

/// The part of a program that a stage holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StageShare {
    /// The first of its attention layers, and the one behind the last, counted from 0.
    pub layers: std::ops::Range<usize>,
    /// The part of all weights that it reads for a token, from 0 to 1.
    pub weights: f64,
}

impl StageShare {
    /// The part that stage `number` of `stages` holds, counted from 1, where the program is cut evenly.
    ///
    /// # Errors
    /// When the program cannot be cut so.
    pub fn of(program: &Program, number: u32, stages: u32) -> Result<StageShare, CutError> {
        let cuts = Cuts::even(program, stages)?;
        Ok(StageShare { layers: cuts.layers(number), weights: cuts.share(program, number) })
    }

    /// The memory that the stage needs besides weights.
    pub fn memory(&self, program: &Program, shape: KvShape, threads: usize) -> MemoryNeed {
        MemoryNeed::of_layers(program, shape, threads, self.layers.clone())
    }
}
