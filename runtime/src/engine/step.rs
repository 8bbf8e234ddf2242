//! One step: exactly one run of the program over a batch of tokens.

use super::buffers::RunBuffers;
use super::rows::{LogitRow, RowSink, SequenceTokens, StepStats};
use super::shelf::apply;
use super::{Engine, EngineError};
use crate::executor::{Portion, RowsIn, RowsOut};
use crate::kv::{BlockChange, KvError};
use crate::stages::Upstream;
use crate::vtune;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

impl Engine {
    /// Checks a batch that is to be one run, and makes a part of each entry.
    pub(super) fn one_run(&mut self, batch: &[SequenceTokens<'_>]) -> Result<(), EngineError> {
        self.check_batch(batch)?;
        let given = batch.iter().map(|entry| entry.tokens.len()).sum();
        if given > self.shape.chunk as usize {
            return Err(EngineError::TooManyTokens { given, most: self.shape.chunk });
        }
        Ok(())
    }

    pub(super) fn check_batch(&mut self, batch: &[SequenceTokens<'_>]) -> Result<(), EngineError> {
        if !self.executor.is_here() {
            return Err(EngineError::Forked);
        }
        if batch.is_empty() {
            return Err(EngineError::EmptyEntry);
        }
        self.run.number += 1;
        for (n, entry) in batch.iter().enumerate() {
            self.check_entry(entry).map_err(|error| of_entry(error, n, batch.len()))?;
        }
        Ok(())
    }

    fn check_entry(&mut self, entry: &SequenceTokens<'_>) -> Result<(), EngineError> {
        let sequence = self.number_of(entry.sequence)?;
        let seen = std::mem::replace(&mut self.run.last_seen[sequence as usize], self.run.number);
        if seen == self.run.number {
            return Err(EngineError::Repeated);
        }
        if entry.tokens.is_empty() {
            return Err(EngineError::EmptyEntry);
        }
        self.check_tokens(entry.tokens)?;
        let (length, context) = (self.tables.length(sequence), self.shape.context);
        if self.model.whole_texts && length > 0 {
            return Err(EngineError::GoesOn);
        }
        match entry.tokens.len() > (context - length) as usize {
            true => Err(KvError::Context { length, more: entry.tokens.len(), context }.into()),
            false => Ok(()),
        }
    }

    /// Checks token ids against the vocabulary.
    ///
    /// # Errors
    /// [`EngineError::Token`] with the first id that is past it.
    pub fn check_tokens(&self, tokens: &[u32]) -> Result<(), EngineError> {
        let vocab = self.model.vocab;
        match tokens.iter().position(|token| *token >= vocab) {
            Some(index) => Err(EngineError::Token { index, token: tokens[index], vocab }),
            None => Ok(()),
        }
    }

    /// Makes room for a checked batch, and puts the run together.
    pub(super) fn prepare(&mut self, batch: &[SequenceTokens<'_>]) -> Result<(), EngineError> {
        let run = &mut self.run;
        run.sequences.clear();
        let of = |entry: &SequenceTokens<'_>| (entry.sequence.number, entry.tokens.len() as u32);
        run.sequences.extend(batch.iter().map(of));
        let (executor, disk, upstream) = (&mut self.executor, &mut self.disk, &mut self.upstream);
        let on_change = &mut |change: BlockChange<'_>| {
            if let (BlockChange::Copy { kind, from, to }, Some(upstream)) = (change, upstream.as_mut()) {
                upstream.copy(kind, from, to);
            }
            apply(change, executor, disk.as_mut());
        };
        self.tables
            .reserve(&run.sequences, on_change)
            .map_err(|(entry, error)| of_entry(error.into(), entry, batch.len()))?;
        self.gather(batch);
        Ok(())
    }

    /// Where there are other stages: runs the first one's layers, and sends on what comes of them.
    pub(super) fn send(&mut self) -> Result<(), EngineError> {
        let Some(upstream) = &mut self.upstream else { return Ok(()) };
        let RunBuffers { batch, wanted, .. } = &mut self.run;
        upstream.rows.clear();
        self.executor.run_portion(
            Portion { from: None, to: Some(1) },
            batch,
            wanted,
            self.tables.view(),
            &self.adapters,
            RowsIn::Batch,
            RowsOut::All(&mut upstream.rows),
        )?;
        Ok(upstream.send(batch, wanted, self.tables.view())?)
    }

    /// Fills the batch.
    fn gather(&mut self, batch: &[SequenceTokens<'_>]) {
        let run = &mut self.run;
        run.batch.clear();
        run.wanted.clear();
        run.origins.clear();
        let wanting = || batch.iter().filter(|entry| entry.wants_logits()).map(|entry| entry.allowed);
        run.tiles.take(wanting, self.model.vocab);
        for (entry, SequenceTokens { sequence, tokens, logits, .. }) in batch.iter().enumerate() {
            let start = self.tables.length(sequence.number);
            let adapter = self.sequence_adapters[sequence.number as usize];
            for (position, (at, token)) in (start..).zip(tokens.iter().enumerate()) {
                if logits.wants(at, tokens.len()) {
                    run.wanted.push(run.batch.len() as u32);
                    run.origins.push((entry, at));
                }
                run.batch.push(*token, position, sequence.number, adapter);
            }
        }
    }

    /// Runs the batch, counts its tokens as stored, and passes on a panic of what took the rows.
    pub(super) fn execute(&mut self, sink: &dyn RowSink) -> Result<(), EngineError> {
        let back = self.upstream.as_mut().map(Upstream::receive).transpose()?;
        let (portion, rows_in) = match (&back, &self.upstream) {
            (Some(rows), Some(upstream)) => {
                (Portion { from: Some(upstream.stages()), to: None }, RowsIn::Wanted(rows))
            }
            _ => (Portion::default(), RowsIn::Batch),
        };
        let panicked = Panicked::default();
        let _told = vtune::VtuneStep::begin(self.run.batch.len());
        let RunBuffers { batch, wanted, origins, tiles, sequences, .. } = &mut self.run;
        let (tables, adapters) = (self.tables.view(), &self.adapters);
        let take = |worker: usize, at: usize, logits: &[f32]| {
            panicked.catch(|| sink.row(worker, row_of(origins[at], logits)));
        };
        let out = RowsOut::Logits { to: &take, tiles: tiles.list() };
        self.executor.run_portion(portion, batch, wanted, tables, adapters, rows_in, out)?;
        let mut from = 0;
        for (sequence, count) in sequences {
            let to = from + *count as usize;
            self.tables.advance(*sequence, &batch.token_ids[from..to]);
            from = to;
        }
        panicked.pass_on();
        Ok(())
    }
}

/// The counts of a run: rows, logits and sequences.
pub(super) fn stats(run: &RunBuffers) -> StepStats {
    StepStats { tokens: run.batch.len() as u32, rows: run.wanted.len() as u32 }
}

fn row_of((entry, token): (usize, usize), logits: &[f32]) -> LogitRow<'_> {
    LogitRow { entry, token, logits }
}

/// The first panic of what takes rows. It may not unwind through a run: the other workers would wait for
/// ever.
#[derive(Default)]
struct Panicked(Mutex<Option<Box<dyn Any + Send>>>);

impl Panicked {
    /// Calls `take`, unless there was a panic already.
    fn catch(&self, take: impl FnOnce()) {
        if self.first().is_some() {
            return;
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(take)) {
            self.first().get_or_insert(panic);
        }
    }

    fn first(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(self) {
        if let Some(panic) = self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }
}

/// An error with the entry that it belongs to, where there are several.
pub(super) fn of_entry(error: EngineError, entry: usize, entries: usize) -> EngineError {
    match entries {
        1 => error,
        _ => EngineError::Entry { entry, source: Box::new(error) },
    }
}
