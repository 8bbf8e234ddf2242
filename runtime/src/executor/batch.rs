//! One batch of tokens, and the proof that the kernels may run over it.

use crate::kv::{BlockTables, UNMAPPED};
use kernmill_plan::kv::{BLOCK_TOKENS, KvLayers, LayerKind};
use std::ops::Range;

/// Tokens of one run, as parallel arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub token_ids: Vec<u32>,
    pub positions: Vec<u32>,
    /// Slot of each token's sequence.
    pub sequences: Vec<u32>,
    /// Adapter slot, 0 is no adapter.
    pub adapters: Vec<u32>,
    /// How many tokens from each on have its adapter.
    pub adapter_runs: Vec<u32>,
    /// Last position of each token's sequence in the batch.
    pub last_positions: Vec<u32>,
}

/// Why a batch is refused. The engine never makes such a batch: each is a bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The count of tokens is out of range.
    #[error("{found} tokens in a batch, expected 1 to {max} (bug: please report it)")]
    Tokens {
        /// Tokens given.
        found: usize,
        /// The largest class's maximum.
        max: u32,
    },
    /// The arrays differ in length.
    #[error("a batch's arrays differ in length (bug: please report it)")]
    Ragged,
    /// An entry of some array is out of range.
    #[error("{what} {found} of batch row {row}, expected less than {limit} (bug: please report it)")]
    Range {
        /// Which array.
        what: &'static str,
        /// Row.
        row: usize,
        /// Value of the entry.
        found: u32,
        /// Exclusive bound.
        limit: u32,
    },
    /// Rows that another stage hands over have another length.
    #[error("{found} bytes of rows at a cut, expected {expected} (bug: please report it)")]
    Rows {
        /// Bytes given.
        found: usize,
        /// Bytes of the batch's rows.
        expected: usize,
    },
    /// A block that kernels will touch is not mapped.
    #[error(
        "batch row {row}: block {index} of its sequence is not mapped for {kind:?} layers (bug: please report it)"
    )]
    Unmapped {
        /// Row.
        row: usize,
        /// Position / 16.
        index: u32,
        /// Which layers.
        kind: LayerKind,
    },
}

impl Batch {
    pub(crate) fn with_capacity(tokens: usize) -> Batch {
        let array = || Vec::with_capacity(tokens);
        Batch {
            token_ids: array(),
            positions: array(),
            sequences: array(),
            adapters: array(),
            adapter_runs: array(),
            last_positions: array(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.token_ids.clear();
        self.positions.clear();
        self.sequences.clear();
        self.adapters.clear();
        self.adapter_runs.clear();
        self.last_positions.clear();
    }

    pub(crate) fn push(&mut self, token: u32, position: u32, sequence: u32, adapter: u32) {
        self.token_ids.push(token);
        self.positions.push(position);
        self.sequences.push(sequence);
        self.adapters.push(adapter);
    }

    pub(crate) fn len(&self) -> usize {
        self.token_ids.len()
    }

    /// Finds the last position of each token's sequence; to be called when the batch is complete.
    pub(super) fn find_ends(&mut self) {
        self.last_positions.clear();
        self.last_positions.extend_from_slice(&self.positions);
        for row in (1..self.len()).rev() {
            if self.sequences[row - 1] == self.sequences[row] {
                let last = self.last_positions[row - 1].max(self.last_positions[row]);
                self.last_positions[row - 1] = last;
            }
        }
    }

    /// Counts the runs of one adapter; to be called when the batch is complete.
    pub(super) fn count_runs(&mut self) {
        self.adapter_runs.clear();
        self.adapter_runs.resize(self.len(), 1);
        for row in (1..self.len()).rev() {
            if self.adapters[row - 1] == self.adapters[row] {
                self.adapter_runs[row - 1] = self.adapter_runs[row] + 1;
            }
        }
    }

    /// The first row of each run of one adapter.
    pub(super) fn adapter_slots(&self) -> impl Iterator<Item = u32> + '_ {
        let changes = self.adapters.windows(2).filter(|pair| pair[0] != pair[1]).map(|pair| pair[1]);
        self.adapters.first().copied().into_iter().chain(changes)
    }

    /// Keys that any token sees, those that tokens of one sequence share once.
    pub(super) fn keys_in_view(&self, window: Option<u32>) -> u64 {
        let runs = self.sequence_runs().map(|(_, low, high)| u64::from(high - first_key(low, window)) + 1);
        runs.sum()
    }

    /// First row, lowest and highest position of each run of rows of one sequence.
    pub(super) fn sequence_runs(&self) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
        let mut row = 0;
        std::iter::from_fn(move || {
            let first = row;
            let sequence = *self.sequences.get(first)?;
            row += self.sequences[first..].iter().take_while(|s| **s == sequence).count();
            let positions = &self.positions[first..row];
            let bounds = positions.iter().fold((u32::MAX, 0), |(low, high), p| (low.min(*p), high.max(*p)));
            Some((first, bounds.0, bounds.1))
        })
    }

    /// Checks everything that kernels trust.
    pub(super) fn check(&self, limits: &BatchLimits<'_>, wanted: &[u32]) -> Result<(), BatchError> {
        let tokens = self.len();
        if tokens == 0 || tokens > limits.max_tokens as usize {
            return Err(BatchError::Tokens { found: tokens, max: limits.max_tokens });
        }
        if [&self.positions, &self.sequences, &self.adapters, &self.adapter_runs, &self.last_positions]
            .iter()
            .any(|array| array.len() != tokens)
        {
            return Err(BatchError::Ragged);
        }
        below("token id", &self.token_ids, limits.vocab)?;
        below("position", &self.positions, limits.context)?;
        below("sequence", &self.sequences, limits.sequences)?;
        below("adapter", &self.adapters, limits.adapters)?;
        below("wanted row", wanted, tokens as u32)?;
        for layer_kind in [LayerKind::Full, LayerKind::Sliding] {
            let of_kind = || limits.layers.layers.iter().filter(|layer| layer.kind == layer_kind);
            if of_kind().next().is_some() {
                let window = of_kind().filter_map(|layer| layer.window).max();
                self.check_blocks(limits.tables, layer_kind, window)?;
            }
        }
        Ok(())
    }

    /// First row of each run of rows of one sequence, and the blocks that these tokens see.
    pub(crate) fn blocks_in_view(
        &self,
        window: Option<u32>,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        self.sequence_runs().map(move |(row, low, high)| {
            let first = first_key(low, window) as usize / BLOCK_TOKENS;
            (row, first..high as usize / BLOCK_TOKENS + 1)
        })
    }

    /// Every block from a token's first key in view to itself is mapped. Runs of one sequence are checked at
    /// once.
    fn check_blocks(
        &self,
        tables: BlockTables<'_>,
        kind: LayerKind,
        window: Option<u32>,
    ) -> Result<(), BatchError> {
        let (table, stride) = tables.table(kind);
        for (row, blocks) in self.blocks_in_view(window) {
            let first = blocks.start;
            let base = self.sequences[row] as usize * stride as usize;
            let mapped = &table[base + first..base + blocks.end];
            if let Some(hole) = mapped.iter().position(|id| *id == UNMAPPED) {
                return Err(BatchError::Unmapped { row, index: (first + hole) as u32, kind });
            }
        }
        Ok(())
    }
}

/// First key that a query at `position` sees.
pub(super) fn first_key(position: u32, window: Option<u32>) -> u32 {
    window.map_or(0, |window| (position + 1).saturating_sub(window))
}

/// The limits of a batch's entries.
pub(super) struct BatchLimits<'a> {
    pub max_tokens: u32,
    pub vocab: u32,
    pub context: u32,
    pub sequences: u32,
    pub adapters: u32,
    pub layers: &'a KvLayers,
    pub tables: BlockTables<'a>,
}

/// Checks that all values are below a limit.
pub(super) fn below(what: &'static str, values: &[u32], limit: u32) -> Result<(), BatchError> {
    match values.iter().position(|value| *value >= limit) {
        Some(row) => Err(BatchError::Range { what, row, found: values[row], limit }),
        None => Ok(()),
    }
}
