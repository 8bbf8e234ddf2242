//! Replays of what the last step read, for measuring what memory allows.

use super::{Engine, EngineError};
use crate::executor::{Replay, Replayed};
use crate::measure::MemoryReader;

impl Engine {
    /// By layer with experts, those that the last step chose, ascending.
    pub fn last_experts(&self) -> Vec<Vec<u32>> {
        self.executor.last_experts()
    }

    /// Reads what the last step read, by the same workers in the same order with the same barriers, and
    /// computes nothing. `experts` says by layer which experts' weights are read. Returns how many bytes of
    /// weights and cache were read.
    ///
    /// # Errors
    /// When this process was forked from the engine's, or a sequence of the last step is gone.
    pub fn replay(
        &mut self,
        replay: &Replay,
        reader: &MemoryReader,
        experts: &[Vec<u32>],
    ) -> Result<u64, EngineError> {
        if !self.executor.is_here() {
            return Err(EngineError::Forked);
        }
        let batch = &self.run.batch;
        let is_mapped = |row: usize| self.tables.length(batch.sequences[row]) > batch.positions[row];
        if !(0..batch.len()).all(is_mapped) {
            return Err(EngineError::NoSequence);
        }
        let run = Replayed { batch, wanted: self.run.wanted.len(), tiles: self.run.tiles.list(), experts };
        Ok(self.executor.replay(replay, reader, &run, &self.tables))
    }

    /// Reads `bytes` bytes of the weights from byte `from` on (behind their end, from their start on), each
    /// worker one stretch of them, and computes nothing.
    ///
    /// # Errors
    /// When this process was forked from the engine's.
    pub fn read_weights(
        &mut self,
        replay: &Replay,
        reader: &MemoryReader,
        from: u64,
        bytes: u64,
    ) -> Result<(), EngineError> {
        if !self.executor.is_here() {
            return Err(EngineError::Forked);
        }
        self.executor.read_weights(replay, reader, from, bytes);
        Ok(())
    }
}
