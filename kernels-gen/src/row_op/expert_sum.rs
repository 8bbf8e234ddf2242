//! Weighted sum of a token's expert rows, in ascending expert id.

use crate::emit::{Emit, MEM};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::F32X4;
use cranelift_codegen::ir::{InstBuilder, Value};

/// `out[i] = sum over slots by ascending expert of weight * rows[slot][i]`. `work` has room for `top_k` u64.
#[allow(clippy::too_many_arguments)]
pub fn emit(
    e: &mut Emit,
    rows: Value,
    row_stride: usize,
    routes: Value,
    work: Value,
    out: Value,
    top_k: usize,
    n: usize,
) {
    // The rank of a slot is the number of slots before it in (expert, slot) order.
    let experts: Vec<Value> = (0..top_k).map(|slot| e.load_u32(routes, slot * 8)).collect();
    for (slot, expert) in experts.iter().enumerate() {
        let mut rank = e.i64(0);
        for (other, other_expert) in experts.iter().enumerate() {
            if other != slot {
                let cc = if other < slot { IntCC::UnsignedLessThanOrEqual } else { IntCC::UnsignedLessThan };
                let before = e.icmp(cc, *other_expert, *expert);
                let before = e.b.ins().uextend(cranelift_codegen::ir::types::I64, before);
                rank = e.add(rank, before);
            }
        }
        let place = e.at(work, rank, 8);
        let index = e.i64(slot as i64);
        e.b.ins().store(MEM, index, place, 0);
    }
    super::elementwise::zero(e, out, n);
    e.for_count(top_k, |e, rank| {
        let place = e.at(work, rank, 8);
        let slot = e.load(cranelift_codegen::ir::types::I64, place, 0);
        let route = e.at(routes, slot, 8);
        let weight = e.load_splat(route, 4);
        let row = e.at(rows, slot, row_stride);
        super::elementwise::vectors(e, n, |e, offset| {
            let (x, out) = (e.add(row, offset), e.add(out, offset));
            let (value, sum) = (e.load(F32X4, x, 0), e.load(F32X4, out, 0));
            let sum = e.fma(weight, value, sum);
            e.store(sum, out, 0);
        });
    });
}
