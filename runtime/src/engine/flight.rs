//! Steps that are begun and ended apart, so that stages in other processes work at the same time.

use super::buffers::RunBuffers;
use super::rows::{RowSink, SequenceTokens, StepStats};
use super::step::stats;
use super::{Engine, EngineError};
use crate::kv::KvTables;
use crate::stages::{StageHealth, StageLost, StagesChange};
use std::time::Duration;

impl Engine {
    /// Steps that may be on their way at once: as many as there are stages, and 1 where all is in this
    /// process.
    pub fn most_in_flight(&self) -> u32 {
        self.upstream.as_ref().map_or(1, |upstream| upstream.stages())
    }

    /// Steps that were begun and have not ended.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Begins a step: exactly one run of the program, which appends tokens to sequences. A batch may hold
    /// parts of prompts, single tokens and drafts to check; what a sequence gets does not depend on the
    /// others. [`Engine::end_step`] ends it. Steps end in the order in which they began. Until a step has
    /// ended, its sequences may be neither in another one, nor cut, copied or dropped.
    ///
    /// # Errors
    /// When the batch has no tokens or more than [`Engine::chunk`], an entry is wrong, there are not enough
    /// KV blocks, a sequence is on its way in another step, or as many steps are as may be. Nothing has
    /// changed then. Where there are several entries, [`EngineError::Entry`] says which one is at fault.
    pub fn begin_step(&mut self, batch: &[SequenceTokens<'_>]) -> Result<(), EngineError> {
        let is_away = |number: u32| {
            self.flights.iter().any(|flight| flight.sequences.iter().any(|(sequence, _)| *sequence == number))
        };
        let is_taken = batch.iter().any(|entry| is_away(entry.sequence.number));
        if is_taken || self.flights.len() >= self.most_in_flight() as usize {
            return Err(EngineError::InFlight);
        }
        self.one_run(batch)?;
        self.prepare(batch)?;
        let sent = self.send();
        self.note_lost(sent)?;
        let (tokens, sequences) = (self.shape.chunk as usize, self.shape.sequences as usize);
        let next = self.spare.pop().unwrap_or_else(|| RunBuffers::new(tokens, sequences, self.model.vocab));
        self.flights.push_back(std::mem::replace(&mut self.run, next));
        Ok(())
    }

    /// Ends the oldest step that was begun, and hands its logits to `rows`, on the workers, side by side.
    ///
    /// # Errors
    /// When none was begun, or another stage is lost: then all sequences are.
    ///
    /// # Panics
    /// When `rows` does. The step is done then.
    pub fn end_step(&mut self, rows: &dyn RowSink) -> Result<StepStats, EngineError> {
        let Some(flight) = self.flights.pop_front() else { return Err(EngineError::NoFlight) };
        let other = std::mem::replace(&mut self.run, flight);
        let ended = self.execute(rows);
        // The step's buffers stay, to be looked at.
        self.spare.push(other);
        let stats = stats(&self.run);
        self.note_lost(ended).map(|()| stats)
    }

    /// Whether the other stages have lost what they held, and no step has failed for that. If so, no sequence
    /// is left, nothing is cached, and no step is on its way: new sequences begin from nothing. A step that
    /// fails with [`EngineError::Stage`] leaves the same behind.
    pub fn take_lost_stage(&mut self) -> Option<StageLost> {
        let StagesChange::Lost(lost) = self.upstream.as_mut()?.look() else { return None };
        self.forget_all();
        Some(lost)
    }

    /// Forgets all sequences and what is cached, if a step has failed because a stage is lost.
    pub(super) fn note_lost<T>(&mut self, outcome: Result<T, EngineError>) -> Result<T, EngineError> {
        if let (Err(EngineError::Stage(_)), Some(upstream)) = (&outcome, &mut self.upstream) {
            upstream.forget();
            self.forget_all();
        }
        outcome
    }

    fn forget_all(&mut self) {
        self.spare.extend(self.flights.drain(..));
        self.generations.fill(None);
        self.tables = KvTables::new(&self.model.kv, self.shape, self.eviction);
    }

    /// Tells from any thread whether the next stage can be reached; `None` where all is in this process.
    pub fn stage_health(&self) -> Option<StageHealth> {
        self.upstream.as_ref().map(|upstream| upstream.health())
    }

    /// Waits until the next stage is there, for so long at most.
    ///
    /// # Errors
    /// When it is not.
    pub fn wait_for_stages(&self, patience: Duration) -> Result<(), StageLost> {
        self.upstream.as_ref().map_or(Ok(()), |upstream| upstream.wait(patience))
    }
}
