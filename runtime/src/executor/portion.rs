//! Running a batch: the whole program, or the steps between two cuts of it.

use super::batch::{self, BatchLimits};
use super::cut::Cut;
use super::dispatch::{DispatchStage, TimedRun, dispatch};
use super::meter::StepSample;
use super::record::Recorder;
use super::rows::Slab;
use super::vocab_tiles::with_tiles;
use super::{Batch, BatchError, Executor, WorkersTake, arguments};
use crate::adapter::AdapterTable;
use crate::kv::BlockTables;
use kernmill_plan::abi::{Args, LOGIT_SLAB};

/// Which steps of the program run, by the numbers of stages behind which cuts lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Portion {
    /// The cut at which they begin; `None` is the program's first step.
    pub from: Option<u32>,
    /// The cut at which they end; `None` is the end, with the logits.
    pub to: Option<u32>,
}

/// The rows that a portion begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowsIn<'a> {
    /// The batch alone: the portion is the program's first.
    Batch,
    /// Rows of all tokens, buffer by buffer.
    All(&'a [u8]),
    /// Rows of the wanted tokens, buffer by buffer: the portion is behind the last layer.
    Wanted(&'a [u8]),
}

/// Where a portion's results go.
pub(crate) enum RowsOut<'a> {
    /// Logits of the wanted rows, to the workers that have them.
    Logits {
        to: &'a WorkersTake<'a>,
        /// Tiles of 16 tokens whose logits are wanted, ascending; `None` is all.
        tiles: Option<&'a [u32]>,
    },
    /// Rows of all tokens at the cut, appended buffer by buffer.
    All(&'a mut Vec<u8>),
    /// Rows of the wanted tokens at the cut, which is behind the last layer.
    Wanted(&'a mut Vec<u8>),
}

impl Executor {
    /// Runs a portion of the program over the batch. The whole program hands out the logits of the batch rows
    /// `wanted`, which ascend.
    ///
    /// Where not every row is wanted, the last layer and what follows it compute only the wanted ones.
    /// Rows that stages hand over are those of all tokens up to the last layer, and of the wanted ones behind
    /// it, wherever this program begins to leave rows out.
    #[expect(clippy::too_many_arguments, reason = "a run is all of it: where, over what, from what, to what")]
    pub(crate) fn run_portion(
        &mut self,
        portion: Portion,
        batch: &mut Batch,
        wanted: &[u32],
        tables: BlockTables<'_>,
        adapters: &AdapterTable,
        rows_in: RowsIn<'_>,
        out: RowsOut<'_>,
    ) -> Result<(), BatchError> {
        batch.count_runs();
        batch.find_ends();
        let batch = &*batch;
        batch.check(&self.limits(tables, adapters), wanted)?;
        let tokens = batch.len() as u32;
        // `check` has compared with the last class's maximum.
        let Some(at) = self.classes.iter().position(|class| class.max_tokens >= tokens) else {
            return Ok(());
        };
        let cut = |stage: u32| self.cuts.as_ref().map(|cuts| cuts.behind(at, stage));
        let (first_cut, last_cut) = (portion.from.and_then(cut).cloned(), portion.to.and_then(cut).cloned());
        let class = &self.classes[at];
        let has_logits = matches!(out, RowsOut::Logits { .. });
        let tiles = match (&out, &class.tiles) {
            (RowsOut::Logits { tiles: Some(listed), .. }, Some(tiles)) if !self.all_logits => {
                batch::below("tile of logits", listed, tiles.count)?;
                Some(*listed)
            }
            _ => None,
        };
        let (from, to) = (
            first_cut.as_ref().map_or(0, |cut| cut.step),
            last_cut.as_ref().map_or(class.steps.len(), |cut| cut.step),
        );
        let arrives_narrow = matches!(rows_in, RowsIn::Wanted(_)) && wanted.len() < batch.len();
        let is_narrow = wanted.len() < batch.len() && !self.all_rows;
        let narrow = class.wanted_only.as_ref().filter(|_| is_narrow && !arrives_narrow);
        let has_wanted_alone = arrives_narrow || narrow.is_some();
        // From here on there are the wanted rows alone.
        let split = if arrives_narrow { from } else { narrow.map_or(to, |only| only.step.clamp(from, to)) };
        let gather = narrow.filter(|only| (from..to).contains(&only.step));
        match rows_in {
            RowsIn::Batch => {}
            RowsIn::All(rows) => {
                put(self.memory.arena.as_mut_slice(), first_cut.as_ref(), rows, batch.len())?
            }
            RowsIn::Wanted(rows) => {
                put(self.memory.arena.as_mut_slice(), first_cut.as_ref(), rows, wanted.len())?;
            }
        }
        self.runs += 1;
        let in_use = adapters.in_use(batch.adapter_slots(), &mut self.lora_targets_in_use);
        let in_use = in_use.map(|tiles| (adapters, tiles));
        self.narrowed.take(batch, if has_wanted_alone { wanted } else { &[] });
        let whole = arguments(batch, tables, in_use);
        let mut tail =
            if has_wanted_alone { arguments(self.narrowed.batch(), tables, in_use) } else { whole };
        // Rows that have been moved together are numbered anew.
        let rows = if has_wanted_alone { self.narrowed.numbers() } else { wanted };
        let slab_rows = LOGIT_SLAB.min(class.max_tokens as usize);
        let first_slab = &rows[..rows.len().min(slab_rows)];
        (tail.logit_rows, tail.logit_index) = (first_slab.len() as u32, first_slab.as_ptr());
        let clocks = self.meter.as_ref().map_or(&[][..], |meter| meter.clocks(at));
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(at, class, tokens, rows.len().div_ceil(slab_rows));
        }
        let lanes = self.recorder.as_ref().map_or(&[][..], Recorder::lanes);
        let timed =
            TimedRun { routings: &class.routings, chosen: &self.chosen, run: self.runs, clocks, lanes };
        let behind = if rows.is_empty() { &[][..] } else { &class.steps[split..to] };
        let logits = if rows.is_empty() || !has_logits { &[][..] } else { &class.logit_steps[..] };
        // The last step alone may get a list of tiles.
        let (logits, last) = logits.split_at(logits.len().saturating_sub(1));
        let last_of_all = class.steps.len() + logits.len();
        let listed = with_tiles(&tail, tiles);
        let stages = [
            DispatchStage { steps: &class.steps[from..split], first: from, args: &whole, gather: None },
            DispatchStage {
                steps: behind,
                first: split,
                args: &tail,
                gather: gather.map(|only| (only, wanted)),
            },
            DispatchStage { steps: logits, first: class.steps.len(), args: &tail, gather: None },
            DispatchStage { steps: last, first: last_of_all, args: &listed, gather: None },
        ];
        let lora_targets = &self.lora_targets_in_use;
        let width = self.limits.row_width;
        let rows_at = self.memory.arena.as_mut_ptr().cast_const().wrapping_add(class.logits as usize);
        let (pool, memory, state) = (&mut self.pool, &mut self.memory, &mut self.dispatching);
        let mut hand_out = |stages: &[DispatchStage<'_>], slab: Slab, out: &RowsOut<'_>| {
            let to_workers = match out {
                RowsOut::Logits { to, .. } => Some((slab, *to)),
                _ => None,
            };
            dispatch(pool, memory, state, stages, lora_targets, &timed, to_workers);
        };
        let slab = Slab::new(rows_at, width, 0, first_slab.len());
        if stages.iter().any(|stage| !stage.steps.is_empty()) {
            hand_out(&stages, slab, &out);
        }
        for (slab, rows) in rows.chunks(slab_rows).enumerate().skip(1).filter(|_| has_logits) {
            let args = Args { logit_rows: rows.len() as u32, logit_index: rows.as_ptr(), ..tail };
            let listed = with_tiles(&args, tiles);
            let stages = [
                DispatchStage { steps: logits, first: class.steps.len(), args: &args, gather: None },
                DispatchStage { steps: last, first: last_of_all, args: &listed, gather: None },
            ];
            let slab = Slab::new(rows_at, width, slab * slab_rows, rows.len());
            hand_out(&stages, slab, &out);
        }
        let arena = self.memory.arena.as_slice();
        let has_moved = narrow.is_some_and(|only| only.step < to);
        match out {
            RowsOut::Logits { .. } => {}
            RowsOut::All(out) => take(arena, last_cut.as_ref(), 0..batch.len(), out),
            RowsOut::Wanted(out) if has_moved => take(arena, last_cut.as_ref(), 0..wanted.len(), out),
            RowsOut::Wanted(out) => {
                take(arena, last_cut.as_ref(), wanted.iter().map(|row| *row as usize), out);
            }
        }
        if portion == Portion::default() && (self.meter.is_some() || self.recorder.is_some()) {
            let ran = StepSample {
                class: at,
                batch,
                narrowed: narrow.map(|from| (from.step, self.narrowed.batch())),
                slabs: rows.chunks(slab_rows),
                tiles: tiles.map(<[u32]>::len),
                layers: &self.limits.layers,
                lora_targets,
                chosen: &self.chosen,
            };
            if let Some(meter) = &mut self.meter {
                meter.add(&ran, class);
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.end(&ran, class);
            }
        }
        Ok(())
    }

    fn limits<'a>(&'a self, tables: BlockTables<'a>, adapters: &AdapterTable) -> BatchLimits<'a> {
        BatchLimits {
            max_tokens: self.classes.last().map_or(0, |class| class.max_tokens),
            vocab: self.limits.vocab,
            context: self.limits.shape.context,
            sequences: self.limits.shape.sequences,
            adapters: adapters.len() as u32,
            layers: &self.limits.layers,
            tables,
        }
    }
}

/// Puts rows of `count` tokens where a cut has them.
fn put(arena: &mut [u8], cut: Option<&Cut>, rows: &[u8], count: usize) -> Result<(), BatchError> {
    let buffers = cut.map_or(&[][..], |cut| &cut.rows);
    let expected = buffers.iter().map(|(_, bytes)| bytes * count).sum();
    if rows.len() != expected {
        return Err(BatchError::Rows { found: rows.len(), expected });
    }
    let mut rows = rows;
    for (offset, bytes) in buffers {
        let (own, others) = rows.split_at(bytes * count);
        arena[*offset..][..own.len()].copy_from_slice(own);
        rows = others;
    }
    Ok(())
}

/// Appends the rows of some tokens at a cut.
fn take(arena: &[u8], cut: Option<&Cut>, rows: impl Iterator<Item = usize> + Clone, out: &mut Vec<u8>) {
    for (offset, bytes) in cut.map_or(&[][..], |cut| &cut.rows) {
        for row in rows.clone() {
            out.extend_from_slice(&arena[offset + row * bytes..][..*bytes]);
        }
    }
}
