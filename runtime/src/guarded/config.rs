//! How a program is run, and the memory that it gets.

use super::fence::{Fenced, Flush};
use kernmill_plan::format::LINE;
use kernmill_plan::program::{Operand, Program, RopeTable, TokenClass};
use std::collections::BTreeMap;

/// How a program is run.
#[derive(Clone, Copy, Debug)]
pub struct GuardedConfig {
    /// Positions of a sequence at most, a multiple of 16.
    pub context: u32,
    /// Sequences.
    pub sequences: u32,
    /// Workers that share each step.
    pub workers: u32,
    /// Which end of every memory lies against an inaccessible page.
    pub flush: Flush,
}

/// The bytes of memory that nobody has written: as floats NaNs, as indices absurd.
pub(super) const PATTERN: u8 = 0xff;

impl GuardedConfig {
    /// Memory that nobody has written, on lines.
    pub(super) fn filled(&self, bytes: usize) -> Fenced {
        let mut memory = Fenced::aligned(bytes, LINE, self.flush);
        memory.fill(PATTERN);
        memory
    }

    /// Memory that holds these bytes and cannot be written.
    pub(super) fn holding(&self, bytes: &[u8], align: usize) -> Fenced {
        let mut memory = Fenced::aligned(bytes.len(), align, self.flush);
        memory.fill(PATTERN);
        memory.bytes_mut().copy_from_slice(bytes);
        memory.read_only();
        memory
    }

    /// Every operand of weights by itself; those that share bytes, because their tiles alternate, together.
    pub(super) fn weights(&self, program: &Program, weights: &[u8]) -> Result<BTreeMap<u64, Fenced>, String> {
        let steps = |class: &'_ TokenClass| -> Vec<Operand> {
            let steps = class.steps.iter().chain(&class.logit_steps);
            steps.flat_map(|step| step.operands.iter().copied()).collect()
        };
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for operand in program.classes.iter().flat_map(steps) {
            if let Operand::Weights { offset, bytes } = operand {
                ranges.push((offset, offset.saturating_add(bytes)));
            }
        }
        ranges.sort_unstable();
        ranges.dedup_by(|next, kept| {
            let shares = next.0 < kept.1;
            kept.1 = if shares { kept.1.max(next.1) } else { kept.1 };
            shares
        });
        let part = |(start, end): (u64, u64)| {
            let part = weights.get(start as usize..end as usize);
            let part = part.ok_or_else(|| format!("{} bytes of weights, expected {end}", weights.len()))?;
            Ok((start, self.holding(part, LINE)))
        };
        ranges.into_iter().map(part).collect()
    }

    /// A rotary table.
    pub(super) fn rope(&self, table: &RopeTable) -> Fenced {
        let mut rows = vec![0.0f32; self.context as usize * crate::executor::rope_row(table)];
        crate::executor::fill_rope(table, &mut rows);
        let bytes: Vec<u8> = rows.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.holding(&bytes, LINE)
    }
}
