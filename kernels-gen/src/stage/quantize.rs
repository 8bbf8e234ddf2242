//! f32 to q8 blocks.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F32X4, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, Q8Row};
use kernmill_plan::numeric::ROUND_MAGIC;

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
pub fn emit(e: &mut Emit, x: Value, out: Q8Ptr, n: usize) {
    e.for_count(n / BLOCK, |e, block| {
        let x = e.at(x, block, BLOCK * 4);
        let out = out.skip(e, block);
        one_block(e, x, out);
    });
}

fn one_block(e: &mut Emit, x: Value, out: Q8Ptr) {
    let values: Vec<Value> = (0..BLOCK / LANES).map(|i| e.load(F32X4, x, i * 16)).collect();
    // The bits of |x| order like |x|, and a NaN above everything.
    let magnitude = e.splat_i32(0x7fff_ffff);
    let bits: Vec<Value> = values
        .iter()
        .map(|v| {
            let bits = e.cast(I32X4, *v);
            e.b.ins().band(bits, magnitude)
        })
        .collect();
    let largest = bits.into_iter().reduce(|a, b| e.b.ins().smax(a, b)).expect("eight vectors");
    let swapped = e.swap_halves(largest);
    let largest = e.b.ins().smax(largest, swapped);
    let swapped = e.swap_pairs(largest);
    let largest = e.b.ins().smax(largest, swapped);
    let largest = e.cast(F32X4, largest);
    let amax = e.b.ins().extractlane(largest, 0);
    let limit = e.b.ins().f32const(127.0);
    let scale = e.fdiv(amax, limit);
    let inverse = e.fdiv(limit, amax);
    let zero = e.b.ins().f32const(0.0);
    let is_zero = e.b.ins().fcmp(FloatCC::Equal, amax, zero);
    let inverse = e.select(is_zero, zero, inverse);
    debug_assert_eq!(e.b.func.dfg.value_type(scale), F32);
    e.store(scale, out.scales, 0);

    let inverse = e.splat(inverse);
    let magic = e.splat_f32(ROUND_MAGIC);
    let magic_bits = e.splat_i32(ROUND_MAGIC.to_bits() as i32);
    let ints: Vec<Value> = values
        .iter()
        .map(|v| {
            let scaled = e.fmul(*v, inverse);
            let shifted = e.fadd(scaled, magic);
            let bits = e.cast(I32X4, shifted);
            e.b.ins().isub(bits, magic_bits)
        })
        .collect();
    let words: Vec<Value> = ints.chunks(2).map(|p| e.b.ins().snarrow(p[0], p[1])).collect();
    let bytes: Vec<Value> = words.chunks(2).map(|p| e.b.ins().snarrow(p[0], p[1])).collect();
    for (i, b) in bytes.iter().enumerate() {
        e.store(*b, out.values, i * 16);
    }
    let sum = ints.into_iter().reduce(|a, b| e.b.ins().iadd(a, b)).expect("eight vectors");
    let swapped = e.swap_halves(sum);
    let sum = e.b.ins().iadd(sum, swapped);
    let swapped = e.swap_pairs(sum);
    let sum = e.b.ins().iadd(sum, swapped);
    let sum = e.b.ins().extractlane(sum, 0);
    e.store(sum, out.sums, 0);
}
