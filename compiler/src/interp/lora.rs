//! Adapters, made from their data independently of the packer.

use super::num::dot4;
use super::{BatchToken, Interpreter};
use crate::graph::{Node, Role, RowSelect, Rows};
use kernmill_plan::adapter::{MAX_RANK, RANK_STEP};
use kernmill_plan::format::PlainDecode;

/// An adapter's data at one LoRA target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoraTargetAdapter {
    /// Rank.
    pub rank: usize,
    /// `[experts][rank][k]`.
    pub a: Vec<f32>,
    /// `[experts][rows][rank]`, rows as in the checkpoint's tensor.
    pub b: Vec<f32>,
    /// `[rank]` factor of every rank.
    pub scales: Vec<f32>,
    /// `[rows]` factor of every row, for DoRA.
    pub factors: Option<Vec<f32>>,
}

impl Interpreter {
    /// Sets the adapters: by slot from 1 on, by LoRA target. Their elements are rounded to the graph's format.
    pub fn set_adapters(&mut self, slots: &[Vec<Option<LoraTargetAdapter>>]) {
        let decode = self.graph.adapter_format().and_then(|format| format.decode().plain());
        let round = |x: &mut f32| match decode {
            Some(PlainDecode::Bf16) => {
                let bits = x.to_bits();
                let even = bits >> 16 & 1;
                *x = f32::from_bits((bits + 0x7fff + even) & 0xffff_0000);
            }
            Some(PlainDecode::F32) | None => {}
        };
        let mut slots = slots.to_vec();
        for adapter in slots.iter_mut().flatten().flatten() {
            adapter.a.iter_mut().chain(&mut adapter.b).for_each(round);
        }
        self.adapters = vec![Vec::new()];
        self.adapters.extend(slots);
    }

    /// Tokens of a sequence use that slot's adapter from now on; 0 is none.
    pub fn use_adapter(&mut self, sequence: usize, slot: usize) {
        self.slots.insert(sequence, slot);
    }

    fn adapter(&self, token: &BatchToken, lora_target: u32) -> Option<&LoraTargetAdapter> {
        let slot = self.slots.get(&token.sequence).copied().unwrap_or(0);
        self.adapters.get(slot)?.get(lora_target as usize)?.as_ref()
    }

    /// `[rows, MAX_RANK]`; zero where there is no adapter.
    pub(super) fn shrink(&self, node: &Node, lora_target: u32, batch: &[BatchToken]) -> Vec<f32> {
        let (x, k) = (self.f32s(node.inputs[0]), self.cols(node.inputs[0]));
        let routing = node.inputs.get(1).map(|routing| self.routing(*routing));
        let Some(per_token) = x.len().checked_div(batch.len() * k) else { return Vec::new() };
        let slots = match self.graph.value(node.output).ty.rows() {
            Rows::Slots(slots) => slots as usize,
            _ => 1,
        };
        let mut out = vec![0.0; batch.len() * slots * MAX_RANK];
        for (slot, out) in out.chunks_mut(MAX_RANK).enumerate() {
            let token = &batch[slot / slots];
            let Some(adapter) = self.adapter(token, lora_target) else { continue };
            let expert = routing.map_or(0, |routing| routing[slot].expert as usize);
            let row = if per_token == slots { slot } else { slot / slots };
            let a = &adapter.a[expert * adapter.rank * k..][..adapter.rank * k];
            for ((out, a), scale) in out.iter_mut().zip(a.chunks(k)).zip(&adapter.scales) {
                *out = (0.0 + dot4(a, &x[row * k..][..k])) * scale;
            }
        }
        out
    }

    /// Adds the adapter's part of row `row` (token or slot) to a product's result, whose expert is `expert` (0 for a plain matrix).
    pub(super) fn expand(&self, node: &Node, token: &BatchToken, row: usize, expert: usize, y: &mut [f32]) {
        let Some(branch) = self.graph.branch_among(node, &self.lora_targets) else { return };
        let Some(adapter) = self.adapter(token, branch.lora_target) else { return };
        let shrunk = &self.f32s(branch.shrunk)[row * MAX_RANK..][..MAX_RANK];
        let tensor = self.graph.tensor(node.tensors[0]);
        let n = y.len();
        let rows = match tensor.source.rows {
            RowSelect::All => n,
            RowSelect::Even | RowSelect::Odd => 2 * n,
        };
        let experts = if tensor.role == Role::ExpertMatrix { tensor.shape[0] } else { 1 };
        assert_eq!(adapter.b.len(), experts * rows * adapter.rank, "B of LoRA target {}", branch.lora_target);
        // The padding of the rank takes part.
        let mut b = vec![0.0; adapter.rank.next_multiple_of(RANK_STEP)];
        for (i, y) in y.iter_mut().enumerate() {
            let source = match tensor.source.rows {
                RowSelect::All => i,
                RowSelect::Even => 2 * i,
                RowSelect::Odd => 2 * i + 1,
            };
            b[..adapter.rank]
                .copy_from_slice(&adapter.b[(expert * rows + source) * adapter.rank..][..adapter.rank]);
            *y += dot4(&b, &shrunk[..b.len()]);
            if let Some(factors) = &adapter.factors {
                *y *= factors[source];
            }
        }
    }
}
