//! `fn(tile: *const u8, x: *const f32, x_stride: u64, out: *mut f32, out_stride: u64, k: u64)`: 16 rows of an
//! adapter's A or B by `tokens` f32 rows of `k`, a multiple of 4: `out[t][row] += dot4(tile[row], x[t])`
//! ("dot4" of docs/dev/numerics.md).
//!
//! The tile is bf16 or f32. Rows of x are `x_stride` bytes apart, those of the results `out_stride`. Unlike
//! dot leaves it does not know k: B's is the adapter's rank. Versions may prefetch behind the tile: the next
//! tile of a B is there.

use super::param::{Amount, Param, Region};
use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::types::{F32X4, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{LINE, PlainDecode, TILE_ROWS, WeightFormat};

/// Rows that the micro-kernel comes in, descending; the last is 1.
pub const TOKENS: [usize; 2] = [6, 1];

/// Columns in a line of a tile.
///
/// # Panics
/// For a format with blocks, which adapters do not have.
pub fn per_line(format: WeightFormat) -> usize {
    plain(format).per_line()
}

/// How elements of an adapter's tile are read.
fn plain(format: WeightFormat) -> PlainDecode {
    format.decode().plain().unwrap_or_else(|| panic!("adapters in {}", format.name()))
}

pub fn contract(format: WeightFormat, tokens: usize) -> Vec<Param> {
    vec![
        Param::Read(Region::new(Amount::times(5, LINE / per_line(format)))),
        Param::Read(Region::new(Amount::times(5, 4)).times(tokens, Amount::param(2))),
        Param::Number,
        Param::Update(Region::new(TILE_ROWS * 4).times(tokens, Amount::param(4))),
        Param::Number,
        Param::Number,
    ]
}

pub fn emit(e: &mut Emit, params: &[Value], format: WeightFormat, tokens: usize) {
    let (tile, x, x_stride, out, out_stride, k) =
        (params[0], params[1], params[2], params[3], params[4], params[5]);
    let four = 4 / per_line(format);
    let turns = e.b.ins().ushr_imm_u(k, 2);
    e.for_count(TILE_ROWS / LANES, |e, quad| {
        let (tile, out) = (e.at(tile, quad, LANES * 4), e.at(out, quad, LANES * 4));
        let (mut x, mut out) = (x, out);
        for _ in 0..tokens {
            let sums = vec![e.splat_f32(0.0); 4];
            let zero = e.i64(0);
            let sums = e.for_carry(zero, turns, 1, &sums, |e, turn, sums| {
                let (tile, x) = (e.at(tile, turn, four * LINE), e.at(x, turn, 16));
                let weights: Vec<Value> = match plain(format) {
                    PlainDecode::Bf16 => (0..2).flat_map(|line| pair(e, tile, line * LINE)).collect(),
                    PlainDecode::F32 => (0..4).map(|line| e.load(F32X4, tile, line * LINE)).collect(),
                };
                weights
                    .into_iter()
                    .zip(sums)
                    .enumerate()
                    .map(|(j, (weight, sum))| {
                        let x = e.load_splat(x, j * 4);
                        e.fma(weight, x, *sum)
                    })
                    .collect()
            });
            let (a, b) = (e.fadd(sums[0], sums[1]), e.fadd(sums[2], sums[3]));
            let dot = e.fadd(a, b);
            let old = e.load(F32X4, out, 0);
            let new = e.fadd(old, dot);
            e.store(new, out, 0);
            (x, out) = (e.add(x, x_stride), e.add(out, out_stride));
        }
    });
}

/// The lower and the upper bf16 of each lane.
fn pair(e: &mut Emit, tile: Value, offset: usize) -> [Value; 2] {
    let both = e.load(I32X4, tile, offset);
    let low = e.b.ins().ishl_imm_u(both, 16);
    let mask = e.splat_i32(0xffff_0000_u32 as i32);
    let high = e.b.ins().band(both, mask);
    [e.cast(F32X4, low), e.cast(F32X4, high)]
}
