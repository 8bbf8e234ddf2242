//! f32 to q8 blocks.

use crate::cx::Cx;
use crate::emit::Emit;
use crate::ukernel::MicroKernel;
use cranelift_codegen::ir::Value;
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
