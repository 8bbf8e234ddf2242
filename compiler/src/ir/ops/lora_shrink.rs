//! `lora_shrink`: the scaled A of each token's adapter times a row. Matrix products alone read it, as their
//! last input.

use super::def::{OpDef, OpKind, Outline};
use super::form::{Input, OpForm, Operands, PLAIN, ensure};
use super::places::{KernelPosition, KernelTemplate};
use crate::ir::eval::num::dot4;
use crate::ir::eval::state::{Data, OpState};
use crate::ir::{Node, Rows, Type};
use kernmill_plan::adapter::{MAX_RANK, RANK_STEP};
use kernmill_plan::format::WeightFormat;

/// `x f32, [routing] -> f32 [rows, MAX_RANK]`: the scaled A of each token's adapter (and slot's expert) times
/// x. Columns past the adapter's rank, and rows without one, are undefined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoraShrink {
    /// Index into the graph's LoRA targets.
    pub lora_target: u32,
    /// The format that the elements of A and B are rounded to: bf16, or f32.
    pub format: WeightFormat,
}

pub static KINDS: [Outline; 1] = [Outline {
    places: &[KernelPosition::Root(KernelTemplate::Shrink)],
    ..Outline::new("lora_shrink", OpForm::branched(&[Input::F32, Input::Routing], &[]), |at, _| {
        let lora_target = at.attribute("site")?;
        at.expect(",")?;
        at.expect("format")?;
        at.expect("=")?;
        Ok(LoraShrink { lora_target, format: at.format()? }.into())
    })
}];

impl OpDef for LoraShrink {
    fn kind(&self, _: usize) -> OpKind {
        OpKind(&KINDS[0])
    }

    fn infer(&self, on: &Operands<'_>) -> Result<Type, String> {
        let (format, x) = (self.format, on.x());
        let (rows, cols) = (x.rows(), x.cols());
        ensure(PLAIN(format), || format!("format = {}, expected bf16, f32", format.name()))?;
        ensure(cols.is_multiple_of(RANK_STEP), || {
            format!("{cols} columns are not a multiple of {RANK_STEP}")
        })?;
        ensure(rows != Rows::LogitRows, || "wanted rows have no adapters".into())?;
        let rows = if on.inputs.len() > 1 { Rows::Slots(on.rows_of_routing()?) } else { rows };
        Ok(Type::F32(rows, MAX_RANK))
    }

    fn attributes(&self, _: usize) -> String {
        let LoraShrink { lora_target, format } = self;
        format!("(site={lora_target}, format={})", format.name())
    }

    /// Zero where there is no adapter.
    fn eval(&self, state: &mut OpState, node: &Node) -> Data {
        let (x, k) = (state.f32s(node.inputs[0]), state.cols(node.inputs[0]));
        let routing = node.inputs.get(1).map(|routing| state.routing(*routing));
        let batch = &state.batch;
        let Some(per_token) = x.len().checked_div(batch.len() * k) else { return Data::F32(Vec::new()) };
        let slots = match state.graph.value(node.output).ty.rows() {
            Rows::Slots(slots) => slots as usize,
            _ => 1,
        };
        let mut out = vec![0.0; batch.len() * slots * MAX_RANK];
        for (slot, out) in out.chunks_mut(MAX_RANK).enumerate() {
            let token = &batch[slot / slots];
            let Some(adapter) = state.adapter(token, self.lora_target) else { continue };
            let expert = routing.map_or(0, |routing| routing[slot].expert as usize);
            let row = if per_token == slots { slot } else { slot / slots };
            let a = &adapter.a[expert * adapter.rank * k..][..adapter.rank * k];
            for ((out, a), scale) in out.iter_mut().zip(a.chunks(k)).zip(&adapter.scales) {
                *out = (0.0 + dot4(a, &x[row * k..][..k])) * scale;
            }
        }
        Data::F32(out)
    }
}
