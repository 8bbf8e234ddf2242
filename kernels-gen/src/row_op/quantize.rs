//! f32 to q8 blocks.

use crate::cx::Cx;
use crate::emit::Emit;
use crate::ukernel::MicroKernel;
use cranelift_codegen::ir::types::{F32X4, I8X16};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, Q8Row};

/// Addresses of consecutive blocks within a q8 row.
#[derive(Clone, Copy)]
pub struct Q8Ptr {
    /// int8 values.
    pub values: Value,
    /// f32 scales.
    pub scales: Value,
    /// i32 sums.
    pub sums: Value,
}

impl Q8Ptr {
    /// A whole row of `k` at `row`.
    pub fn of_row(e: &mut Emit, row: Value, k: usize) -> Q8Ptr {
        let layout = Q8Row { k };
        Q8Ptr {
            values: row,
            scales: e.add_imm(row, layout.scales() as i64),
            sums: e.add_imm(row, layout.sums() as i64),
        }
    }

    /// Blocks that lie `bytes` behind these.
    pub fn behind(self, e: &mut Emit, bytes: usize) -> Q8Ptr {
        let [values, scales, sums] =
            [self.values, self.scales, self.sums].map(|at| e.add_imm(at, bytes as i64));
        Q8Ptr { values, scales, sums }
    }

    /// The blocks from number `block` on.
    pub fn skip(self, e: &mut Emit, block: Value) -> Q8Ptr {
        Q8Ptr {
            values: e.at(self.values, block, BLOCK),
            scales: e.at(self.scales, block, 4),
            sums: e.at(self.sums, block, 4),
        }
    }
}

/// Quantises `n` f32 (a multiple of 32) at `x`.
pub fn emit(e: &mut Emit, cx: &Cx, x: Value, out: Q8Ptr, n: usize) {
    let blocks = e.i64((n / BLOCK) as i64);
    e.call(cx.ukernel(MicroKernel::Quantize), &[x, out.values, out.scales, out.sums, blocks]);
}

/// Quantises to `second` what `first` leaves of `n` f32 at `x`, a block at a time: an element less its
/// integer times the scale, rounded once. The kernel's work area holds a block.
pub fn emit_rest(e: &mut Emit, cx: &Cx, x: Value, (first, second): (Q8Ptr, Q8Ptr), n: usize) {
    let (rest, one) = (cx.work_scratch(e), e.i64(1));
    e.for_count(n / BLOCK, |e, block| {
        let (x, first, second) = (e.at(x, block, BLOCK * 4), first.skip(e, block), second.skip(e, block));
        let scale = e.load_splat(first.scales, 0);
        for half in 0..2 {
            let bytes = e.load(I8X16, first.values, half * 16);
            let words = [e.b.ins().swiden_low(bytes), e.b.ins().swiden_high(bytes)];
            let quads = words.map(|words| [e.b.ins().swiden_low(words), e.b.ins().swiden_high(words)]);
            for (i, quad) in quads.into_iter().flatten().enumerate() {
                let at = half * 64 + i * 16;
                let integers = e.b.ins().fcvt_from_sint(F32X4, quad);
                let integers = e.b.ins().fneg(integers);
                let x = e.load(F32X4, x, at);
                let left = e.fma(integers, scale, x);
                e.store(left, rest, at);
            }
        }
        e.call(cx.ukernel(MicroKernel::Quantize), &[rest, second.values, second.scales, second.sums, one]);
    });
}
