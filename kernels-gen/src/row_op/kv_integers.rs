//! Keys and values of formats with scales: integers, and a scale for each token and head.

use super::kv_plane::HeadPlane;
use crate::emit::{Emit, LANES};
use crate::integers::{Rounding, bytes};
use crate::kernel::KvPlane;
use cranelift_codegen::ir::types::{F32, F32X4, I32};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat, KvRow};

/// A row of f32 `[n]`, whole heads, to a byte for each integer and the heads' scales behind them.
pub fn cast(e: &mut Emit, x: Value, out: Value, n: usize, to: KvRow) {
    let scales = e.add_imm(out, to.scales(n) as i64);
    e.for_count(n / to.head_dim, |e, head| {
        let (x, out) = (e.at(x, head, to.head_dim * 4), e.at(out, head, to.head_dim));
        let rounding = Rounding::of_head(e, x, to.head_dim, to.format.descriptor().bits);
        let scale = e.at(scales, head, 4);
        e.store(rounding.scale, scale, 0);
        e.for_count(to.head_dim / LANES, |e, i| {
            let four = four_of(e, &rounding, x, i);
            let out = e.at(out, i, LANES);
            e.store(four, out, 0);
        });
    });
}

/// Copies a head of a row that [`cast`] has made.
pub fn store_head(e: &mut Emit, row: Value, head: Value, to: &HeadPlane, heads: usize) {
    let layout = KvRow::new(to.format, to.head_dim);
    let scale = e.add_imm(row, layout.scales(heads * to.head_dim) as i64);
    let scale = e.at(scale, head, 4);
    let scale = e.load(F32, scale, 0);
    let x = e.at(row, head, to.head_dim);
    put_head(e, to, scale, |e, i| {
        let x = e.at(x, i, LANES);
        e.load(I32, x, 0)
    });
}

/// Rounds a head of f32 and writes it.
pub fn write_head(e: &mut Emit, x: Value, to: &HeadPlane) {
    let rounding = Rounding::of_head(e, x, to.head_dim, to.format.descriptor().bits);
    put_head(e, to, rounding.scale, |e, i| four_of(e, &rounding, x, i));
}

/// Elements `4 * i..` of a head, as the bytes of an i32.
fn four_of(e: &mut Emit, rounding: &Rounding, x: Value, i: Value) -> Value {
    let x = e.at(x, i, LANES * 4);
    let elements = e.load(F32X4, x, 0);
    let integers = rounding.integers(e, elements);
    bytes(e, integers)
}

/// Writes a head, whose integers `4 * i..` are the bytes of `four(i)`.
fn put_head(e: &mut Emit, to: &HeadPlane, scale: Value, four: impl Fn(&mut Emit, Value) -> Value) {
    let own = e.at(to.start, to.token, 4);
    e.store(scale, own, 0);
    let elements = e.add_imm(to.start, to.format.scales_bytes() as i64);
    match (to.plane, to.format.words()) {
        (KvPlane::K, Some(words)) => {
            let own = e.at(elements, to.token, 4);
            e.for_count(to.head_dim / words.elements, |e, line| {
                let word = match words.elements {
                    8 => {
                        let first = e.mul_imm(line, 2);
                        let second = e.add_imm(first, 1);
                        let (low, high) = (four(e, first), four(e, second));
                        halves(e, low, high)
                    }
                    _ => {
                        let integers = four(e, line);
                        // Adding 128 to a byte turns its top bit.
                        let tops = e.i32(0x8080_8080_u32 as i32);
                        e.b.ins().bxor(integers, tops)
                    }
                };
                let own = e.at(own, line, 4 * BLOCK_TOKENS);
                e.store(word, own, 0);
            });
        }
        _ if to.format == KvFormat::Int4 => {
            let own = e.at(elements, to.token, to.format.elements_bytes(to.head_dim));
            // Bytes of 32 neighbours: the low halves have the first 16.
            e.for_count(to.head_dim / 32, |e, group| {
                let own = e.at(own, group, 16);
                let first = e.mul_imm(group, 8);
                for i in 0..4 {
                    let (low, high) = (e.add_imm(first, i), e.add_imm(first, i + 4));
                    let (low, high) = (four(e, low), four(e, high));
                    let pairs = halves(e, low, high);
                    e.store(pairs, own, i as usize * 4);
                }
            });
        }
        _ => {
            let own = e.at(elements, to.token, to.format.elements_bytes(to.head_dim));
            e.for_count(to.head_dim / LANES, |e, i| {
                let integers = four(e, i);
                let own = e.at(own, i, LANES);
                e.store(integers, own, 0);
            });
        }
    }
}

/// Two times four integers of 4 bits, 8 added to each, in the low and the high halves of four bytes.
fn halves(e: &mut Emit, low: Value, high: Value) -> Value {
    let bits = e.i32(0x0f0f_0f0f);
    let (low, high) = (e.b.ins().band(low, bits), e.b.ins().band(high, bits));
    let high = e.b.ins().ishl_imm_u(high, 4);
    let both = e.b.ins().bor(low, high);
    // Adding 8 to a half turns its top bit.
    let tops = e.i32(0x8888_8888_u32 as i32);
    e.b.ins().bxor(both, tops)
}
