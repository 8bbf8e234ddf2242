//! A batch of tokens, and the buffers of its class, each in separate memory.

use super::config::{GuardedConfig, PATTERN};
use super::fence::{Fenced, PageAccess};
use kernmill_plan::format::f32_row_stride;
use kernmill_plan::program::TokenClass;

/// Buffers of a token class.
pub(super) struct ClassBuffers {
    /// In the class's order.
    pub buffers: Vec<Fenced>,
}

/// A batch of tokens as kernels read it.
pub(super) struct GuardedBatch {
    pub(super) tokens: u32,
    pub(super) ids: Fenced,
    pub(super) positions: Fenced,
    pub(super) sequences: Fenced,
    pub(super) adapters: Fenced,
    pub(super) runs: Fenced,
    pub(super) last_positions: Fenced,
    pub(super) config: GuardedConfig,
}

impl ClassBuffers {
    pub fn new(class: &TokenClass, config: &GuardedConfig) -> ClassBuffers {
        ClassBuffers {
            buffers: class.buffers.iter().map(|buffer| config.filled(buffer.bytes as usize)).collect(),
        }
    }

    /// Forgets what the buffers hold: the pattern is in them again.
    pub fn forget(&mut self) {
        for buffer in &mut self.buffers {
            buffer.allow(PageAccess::Write);
            buffer.fill(PATTERN);
        }
    }

    /// The slab of logits.
    fn slab(&mut self, class: &TokenClass) -> &mut Fenced {
        let last = class.logit_steps.last().into_iter().flat_map(|step| &step.writes);
        let of_slab = |id: &&u32| class.buffers[**id as usize].offset == class.logits;
        let id = *last.into_iter().find(of_slab).expect("the last step writes the logits");
        &mut self.buffers[id as usize]
    }

    /// Forgets the slab of logits.
    pub fn forget_logits(&mut self, class: &TokenClass) {
        let buffer = self.slab(class);
        buffer.allow(PageAccess::Write);
        buffer.fill(PATTERN);
    }

    /// Adds rows of the slab of logits to `out`.
    pub fn logits(&mut self, class: &TokenClass, rows: usize, width: usize, out: &mut Vec<f32>) {
        let buffer = self.slab(class);
        buffer.allow(PageAccess::Read);
        for row in 0..rows {
            let row = &buffer.bytes()[row * f32_row_stride(width)..][..width * 4];
            out.extend(row.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])));
        }
    }
}

impl GuardedBatch {
    /// Rows are a token, its position and its sequence each.
    pub fn new(rows: &[(u32, u32, u32)], adapted: bool, config: &GuardedConfig) -> GuardedBatch {
        let array = |values: Vec<u32>| {
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            config.holding(&bytes, 4)
        };
        let tokens = rows.len() as u32;
        let last = |sequence: u32| rows.iter().filter(|row| row.2 == sequence).map(|row| row.1).max();
        GuardedBatch {
            tokens,
            ids: array(rows.iter().map(|row| row.0).collect()),
            positions: array(rows.iter().map(|row| row.1).collect()),
            sequences: array(rows.iter().map(|row| row.2).collect()),
            adapters: array(vec![u32::from(adapted); rows.len()]),
            runs: array((1..=tokens).rev().collect()),
            last_positions: array(rows.iter().filter_map(|row| last(row.2)).collect()),
            config: *config,
        }
    }
}
