//! Steps one after another, for those who do nothing else meanwhile: small models, checks, tools, tests.

use super::rows::{LogitRow, LogitRows, RowSink, SequenceTokens, StepStats};
use super::step::of_entry;
use super::{Engine, EngineError, SeqId};
use std::sync::{Mutex, PoisonError};

/// Whole steps, and several of them, by [`Engine::begin_step`] and [`Engine::end_step`].
pub trait Steps {
    /// Begins a step and ends it.
    ///
    /// # Errors
    /// As those of [`Engine::begin_step`] and [`Engine::end_step`]; when another step is on its way.
    ///
    /// # Panics
    /// When `rows` does. The step is done then.
    fn step(&mut self, batch: &[SequenceTokens<'_>], rows: &dyn RowSink) -> Result<StepStats, EngineError>;

    /// Appends any count of tokens to sequences, by as many steps as it takes.
    ///
    /// # Errors
    /// As those of [`Steps::step`], but for the count of tokens. When KV blocks run out, the steps before
    /// have been done.
    ///
    /// # Panics
    /// When `rows` does. The step that made the row is done then, and none after it.
    fn extend(&mut self, batch: &[SequenceTokens<'_>], rows: &dyn RowSink) -> Result<StepStats, EngineError>;

    /// Does as [`Steps::extend`], but copies of the rows go to the calling thread, in the order of the
    /// entries and their tokens.
    ///
    /// # Errors
    /// As those of [`Steps::extend`].
    fn extend_in_order(
        &mut self,
        batch: &[SequenceTokens<'_>],
        rows: &mut dyn FnMut(LogitRow<'_>),
    ) -> Result<StepStats, EngineError>;

    /// Appends `tokens` to one sequence, in as many steps as that takes, and writes the logits after the last
    /// of them to `logits`.
    ///
    /// # Errors
    /// As those of [`Steps::extend`].
    fn append(&mut self, id: SeqId, tokens: &[u32], logits: &mut Vec<f32>) -> Result<(), EngineError>;
}

/// Runs one step, and takes its rows.
type RunsStep<'a> =
    dyn FnMut(&mut Engine, &[SequenceTokens<'_>], &Origins) -> Result<StepStats, EngineError> + 'a;

/// Entries of a step: by each, the entry of the whole batch and its first token there.
type Origins = Vec<(usize, usize)>;

/// Entries as steps of at most `chunk` tokens take them: each whole, if `whole`, or in pieces.
fn steps<'a>(
    batch: &[SequenceTokens<'a>],
    chunk: usize,
    whole: bool,
) -> Vec<(Vec<SequenceTokens<'a>>, Origins)> {
    let (mut steps, mut room) = (Vec::<(Vec<SequenceTokens<'a>>, Origins)>::new(), 0);
    for (at, SequenceTokens { sequence, tokens, logits, allowed }) in batch.iter().enumerate() {
        let mut from = 0;
        while from < tokens.len() {
            if room == 0 || whole && room < tokens.len() {
                steps.push((Vec::new(), Vec::new()));
                room = chunk;
            }
            let to = tokens.len().min(from + room);
            let wanted = (from..to).filter(|token| logits.wants(*token, tokens.len())).count();
            let entry = SequenceTokens {
                sequence: *sequence,
                tokens: &tokens[from..to],
                logits: match logits {
                    LogitRows::First if wanted > 0 => LogitRows::First,
                    _ => LogitRows::LastN(wanted as u32),
                },
                allowed,
            };
            if let Some((entries, origins)) = steps.last_mut() {
                entries.push(entry);
                origins.push((at, from));
            }
            room -= to - from;
            from = to;
        }
    }
    steps
}

impl Engine {
    fn each_step(
        &mut self,
        batch: &[SequenceTokens<'_>],
        take: &mut RunsStep<'_>,
    ) -> Result<StepStats, EngineError> {
        self.check_batch(batch)?;
        let mut done = StepStats::default();
        for (entries, origins) in steps(batch, self.chunk() as usize, self.model.whole_texts) {
            let stats = take(self, &entries, &origins).map_err(|error| match error {
                EngineError::Entry { entry, source } => of_entry(*source, origins[entry].0, batch.len()),
                EngineError::Kv(_) if origins.len() == 1 => of_entry(error, origins[0].0, batch.len()),
                other => other,
            })?;
            done.tokens += stats.tokens;
            done.rows += stats.rows;
        }
        Ok(done)
    }
}

/// A row of a step as one of the whole batch.
fn whole<'a>(row: LogitRow<'a>, origins: &Origins) -> LogitRow<'a> {
    let (entry, from) = origins[row.entry];
    LogitRow { entry, token: from + row.token, logits: row.logits }
}

impl Steps for Engine {
    fn step(&mut self, batch: &[SequenceTokens<'_>], rows: &dyn RowSink) -> Result<StepStats, EngineError> {
        if self.in_flight() > 0 {
            return Err(EngineError::InFlight);
        }
        self.begin_step(batch)?;
        self.end_step(rows)
    }

    fn extend(&mut self, batch: &[SequenceTokens<'_>], rows: &dyn RowSink) -> Result<StepStats, EngineError> {
        self.each_step(batch, &mut |engine, entries, origins| {
            let take = |worker: usize, row: LogitRow<'_>| rows.row(worker, whole(row, origins));
            engine.step(entries, &take)
        })
    }

    fn extend_in_order(
        &mut self,
        batch: &[SequenceTokens<'_>],
        rows: &mut dyn FnMut(LogitRow<'_>),
    ) -> Result<StepStats, EngineError> {
        self.each_step(batch, &mut |engine, entries, origins| {
            let taken = Mutex::new(Vec::new());
            let take = |_: usize, row: LogitRow<'_>| {
                let copy = (row.entry, row.token, row.logits.to_vec());
                taken.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
            };
            let stats = engine.step(entries, &take)?;
            let mut taken = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
            taken.sort_unstable_by_key(|(entry, token, _)| (*entry, *token));
            for (entry, token, logits) in &taken {
                rows(whole(LogitRow { entry: *entry, token: *token, logits }, origins));
            }
            Ok(stats)
        })
    }

    fn append(&mut self, id: SeqId, tokens: &[u32], logits: &mut Vec<f32>) -> Result<(), EngineError> {
        self.extend_in_order(&[SequenceTokens::last(id, tokens)], &mut |row| {
            logits.clear();
            logits.extend_from_slice(row.logits);
        })?;
        Ok(())
    }
}
