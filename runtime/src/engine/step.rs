//! One step: exactly one run of the program over a batch of tokens.

use super::buffers::{Part, RunBuffers};
use super::rows::{Entry, LogitRow, RowSink, StepStats};
use super::shelf::apply;
use super::{Engine, EngineError, SeqId};
use crate::executor::{Portion, RowsIn, RowsOut, RowsTo};
use crate::kv::{BlockChange, KvError};
use crate::stages::Upstream;
use crate::vtune;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Receiver of the rows of logits.
pub(super) enum Out<'a> {
    Workers(&'a dyn RowSink),
    Caller(&'a mut dyn FnMut(LogitRow<'_>)),
}

impl Engine {
    /// Appends tokens to sequences by exactly one run of the program, and hands the wanted logits to `rows`,
    /// on the workers, side by side. A batch may hold parts of prompts, single tokens and drafts to check;
    /// what a sequence gets does not depend on the others.
    ///
    /// # Errors
    /// When the batch has no tokens or more than [`Engine::chunk`], an entry is wrong, or there are not
    /// enough KV blocks. Nothing has changed then, and no row was handed out. Where there are several
    /// entries, [`EngineError::Entry`] says which one is at fault.
    ///
    /// # Panics
    /// When `rows` does. The step is done then.
    pub fn step(&mut self, batch: &[Entry<'_>], rows: &dyn RowSink) -> Result<StepStats, EngineError> {
        self.one_run(batch)?;
        self.run_parts(batch, &mut Out::Workers(rows))
    }

    /// Checks a batch that is to be one run, and makes a part of each entry.
    pub(super) fn one_run(&mut self, batch: &[Entry<'_>]) -> Result<(), EngineError> {
        self.check_batch(batch)?;
        let given = batch.iter().map(|entry| entry.tokens.len()).sum();
        if given > self.shape.chunk as usize {
            return Err(EngineError::TooManyTokens { given, most: self.shape.chunk });
        }
        self.run.parts.clear();
        let whole = batch.iter().enumerate();
        self.run.parts.extend(whole.map(|(entry, of)| Part { entry, from: 0, to: of.tokens.len() }));
        Ok(())
    }

    /// Appends any count of tokens to sequences, by as many steps as it takes, and hands the wanted logits to
    /// `rows` on the workers.
    ///
    /// # Errors
    /// As those of [`Engine::step`], but for the count of tokens. When KV blocks run out, the steps before
    /// have been done.
    ///
    /// # Panics
    /// When `rows` does. The step that made the row is done then, and none after it.
    pub fn extend(&mut self, batch: &[Entry<'_>], rows: &dyn RowSink) -> Result<StepStats, EngineError> {
        self.run_all(batch, &mut Out::Workers(rows))
    }

    /// Does as [`Engine::extend`], but the rows go to the calling thread, in the order of the entries and
    /// their tokens.
    ///
    /// # Errors
    /// As those of [`Engine::extend`].
    pub fn extend_in_order(
        &mut self,
        batch: &[Entry<'_>],
        rows: &mut dyn FnMut(LogitRow<'_>),
    ) -> Result<StepStats, EngineError> {
        self.run_all(batch, &mut Out::Caller(rows))
    }

    /// The logits after the last of `tokens`, any count of which are appended to one sequence.
    ///
    /// # Errors
    /// As those of [`Engine::extend`].
    pub fn append(&mut self, id: SeqId, tokens: &[u32], logits: &mut Vec<f32>) -> Result<(), EngineError> {
        self.extend_in_order(&[Entry::last(id, tokens)], &mut |row| {
            logits.clear();
            logits.extend_from_slice(row.logits);
        })?;
        Ok(())
    }

    /// Runs all tokens, as many at a time as a run takes.
    fn run_all(&mut self, batch: &[Entry<'_>], out: &mut Out<'_>) -> Result<StepStats, EngineError> {
        self.check_batch(batch)?;
        let mut done = StepStats::default();
        let (mut entry, mut from) = (0, 0);
        while entry < batch.len() {
            self.run.parts.clear();
            let mut room = self.shape.chunk as usize;
            while entry < batch.len() && room > 0 {
                let count = batch[entry].tokens.len();
                let to = count.min(from + room);
                self.run.parts.push(Part { entry, from, to });
                room -= to - from;
                (entry, from) = if to == count { (entry + 1, 0) } else { (entry, to) };
            }
            let stats = self.run_parts(batch, out)?;
            done.tokens += stats.tokens;
            done.rows += stats.rows;
        }
        Ok(done)
    }

    pub(super) fn check_batch(&mut self, batch: &[Entry<'_>]) -> Result<(), EngineError> {
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

    fn check_entry(&mut self, entry: &Entry<'_>) -> Result<(), EngineError> {
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

    /// Runs the parts of a checked batch.
    fn run_parts(&mut self, batch: &[Entry<'_>], out: &mut Out<'_>) -> Result<StepStats, EngineError> {
        if !self.flights.is_empty() {
            return Err(EngineError::InFlight);
        }
        self.prepare(batch)?;
        let ran = self.send().and_then(|()| self.execute(out));
        self.note_lost(ran)?;
        Ok(stats(&self.run))
    }

    /// Makes room for the parts of a checked batch, and puts the run together.
    pub(super) fn prepare(&mut self, batch: &[Entry<'_>]) -> Result<(), EngineError> {
        let run = &mut self.run;
        run.sequences.clear();
        let of = |part: &Part| (batch[part.entry].sequence.number, (part.to - part.from) as u32);
        run.sequences.extend(run.parts.iter().map(of));
        let (executor, disk, upstream) = (&mut self.executor, &mut self.disk, &mut self.upstream);
        let on_change = &mut |change: BlockChange<'_>| {
            if let (BlockChange::Copy { kind, from, to }, Some(upstream)) = (change, upstream.as_mut()) {
                upstream.copy(kind, from, to);
            }
            apply(change, executor, disk.as_mut());
        };
        self.tables
            .reserve(&run.sequences, on_change)
            .map_err(|(part, error)| of_entry(error.into(), run.parts[part].entry, batch.len()))?;
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
    fn gather(&mut self, batch: &[Entry<'_>]) {
        let run = &mut self.run;
        run.batch.clear();
        run.wanted.clear();
        run.origins.clear();
        for part in &run.parts {
            let Entry { sequence, tokens, logits } = batch[part.entry];
            let start = self.tables.length(sequence.number);
            let adapter = self.sequence_adapters[sequence.number as usize];
            for (position, at) in (start..).zip(part.from..part.to) {
                if logits.wants(at, tokens.len()) {
                    run.wanted.push(run.batch.len() as u32);
                    run.origins.push((part.entry, at));
                }
                run.batch.push(tokens[at], position, sequence.number, adapter);
            }
        }
    }

    /// Runs the batch, counts its tokens as stored, and passes on a panic of what took the rows.
    pub(super) fn execute(&mut self, out: &mut Out<'_>) -> Result<(), EngineError> {
        let back = self.upstream.as_mut().map(Upstream::receive).transpose()?;
        let (portion, rows_in) = match (&back, &self.upstream) {
            (Some(rows), Some(upstream)) => {
                (Portion { from: Some(upstream.stages()), to: None }, RowsIn::Wanted(rows))
            }
            _ => (Portion::default(), RowsIn::Batch),
        };
        let panicked = Panicked::default();
        let _told = vtune::Step::begin(self.run.batch.len());
        let RunBuffers { batch, wanted, origins, sequences, .. } = &mut self.run;
        let (tables, adapters) = (self.tables.view(), &self.adapters);
        match out {
            Out::Workers(sink) => {
                let sink: &dyn RowSink = *sink;
                let take = |worker: usize, at: usize, logits: &[f32]| {
                    panicked.catch(|| sink.row(worker, row_of(origins[at], logits)));
                };
                let out = RowsOut::Logits(RowsTo::Workers(&take));
                self.executor.run_portion(portion, batch, wanted, tables, adapters, rows_in, out)?;
            }
            Out::Caller(out) => {
                let mut take =
                    |at: usize, logits: &[f32]| panicked.catch(|| out(row_of(origins[at], logits)));
                let out = RowsOut::Logits(RowsTo::Caller(&mut take));
                self.executor.run_portion(portion, batch, wanted, tables, adapters, rows_in, out)?;
            }
        }
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

/// What a run is about.
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
fn of_entry(error: EngineError, entry: usize, entries: usize) -> EngineError {
    match entries {
        1 => error,
        _ => EngineError::Entry { entry, source: Box::new(error) },
    }
}
