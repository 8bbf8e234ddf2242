//! `fn(tile: *const u8, rows: *const *const u8, out: *mut f32, out_stride: u64)`: 16 weight rows by `tokens` rows of f32
//! activations.
//!
//! As `dot_q8`, for every weight format, with f32 activation rows and the "dot4" order of docs/dev/numerics.md. Four rows at a time.

use crate::emit::{Emit, LANES, MEM};
use crate::ukernel::dot_q8::{Out, e8m0_to_f32};
use cranelift_codegen::ir::types::{F32X4, I8X16, I16X8, I32, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};

/// Twice the E2M1 values as int8, by code.
const MXFP4_TABLE: [u8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, 255, 254, 253, 252, 250, 248, 244];

pub fn emit(e: &mut Emit, params: &[Value], format: WeightFormat, k: usize, tokens: usize) {
    let (tile, list, out) = (params[0], params[1], Out { ptr: params[2], stride: params[3] });
    let rows: Vec<Value> = (0..tokens).map(|t| e.load(I64, list, t * 8)).collect();
    e.for_count(TILE_ROWS / LANES, |e, quad| {
        let sums = match format {
            WeightFormat::Bf16 => bf16(e, tile, quad, k, &rows),
            WeightFormat::F32 => f32(e, tile, quad, k, &rows),
            _ => blocked(e, tile, quad, format, k, &rows),
        };
        let out = Out { ptr: e.at(out.ptr, quad, LANES * 4), ..out };
        for (t, acc) in sums.chunks(4).enumerate() {
            let (a, b) = (e.fadd(acc[0], acc[1]), e.fadd(acc[2], acc[3]));
            let total = e.fadd(a, b);
            let ptr = out.row(e, t);
            e.store(total, ptr, 0);
        }
    });
}

/// `acc[token * 4 + k mod 4]`, one multiply-add per token for column `k` of four rows.
fn step(e: &mut Emit, acc: &mut [Value], w: Value, activations: &[Value], offset: usize, k_mod_4: usize) {
    for (t, row) in activations.iter().enumerate() {
        let a = e.load_splat(*row, offset);
        acc[t * 4 + k_mod_4] = e.fma(w, a, acc[t * 4 + k_mod_4]);
    }
}

fn zeros(e: &mut Emit, tokens: usize) -> Vec<Value> {
    vec![e.splat_f32(0.0); 4 * tokens]
}

fn bf16(e: &mut Emit, tile: Value, quad: Value, k: usize, rows: &[Value]) -> Vec<Value> {
    let base = e.at(tile, quad, LANES * 4);
    let pair = |e: &mut Emit, ptr: Value, offset: usize| {
        let both = e.b.ins().load(I32X4, MEM, ptr, offset as i32);
        let low = e.b.ins().ishl_imm_u(both, 16);
        let mask = e.splat_i32(0xffff_0000_u32 as i32);
        let high = e.b.ins().band(both, mask);
        [e.cast(F32X4, low), e.cast(F32X4, high)]
    };
    let init = zeros(e, rows.len());
    let (start, end) = (e.i64(0), e.i64((k / 4) as i64));
    let mut acc = e.for_carry(start, end, 1, &init, |e, four, acc| {
        let mut acc = acc.to_vec();
        let data = e.at(base, four, 2 * LINE);
        let activations: Vec<Value> = rows.iter().map(|r| e.at(*r, four, 16)).collect();
        for line in 0..2 {
            for (j, w) in pair(e, data, line * LINE).into_iter().enumerate() {
                step(e, &mut acc, w, &activations, (2 * line + j) * 4, 2 * line + j);
            }
        }
        acc
    });
    for i in k / 4 * 4..k {
        let w = pair(e, base, i / 2 * LINE)[i % 2];
        step(e, &mut acc, w, rows, i * 4, i % 4);
    }
    acc
}

fn f32(e: &mut Emit, tile: Value, quad: Value, k: usize, rows: &[Value]) -> Vec<Value> {
    let base = e.at(tile, quad, LANES * 4);
    let init = zeros(e, rows.len());
    let (start, end) = (e.i64(0), e.i64((k / 4) as i64));
    let mut acc = e.for_carry(start, end, 1, &init, |e, four, acc| {
        let mut acc = acc.to_vec();
        let data = e.at(base, four, 4 * LINE);
        let activations: Vec<Value> = rows.iter().map(|r| e.at(*r, four, 16)).collect();
        for j in 0..4 {
            let w = e.load(F32X4, data, j * LINE);
            step(e, &mut acc, w, &activations, j * 4, j);
        }
        acc
    });
    for i in k / 4 * 4..k {
        let w = e.load(F32X4, base, i * LINE);
        step(e, &mut acc, w, rows, i * 4, i % 4);
    }
    acc
}

/// MXFP4, int8, int4: decoded to f32 (value times scale, one rounding), a block of 32 per turn.
fn blocked(
    e: &mut Emit,
    tile: Value,
    quad: Value,
    format: WeightFormat,
    k: usize,
    rows: &[Value],
) -> Vec<Value> {
    let scale_bytes = if format == WeightFormat::Mxfp4 { 1 } else { 2 };
    let lines = if format == WeightFormat::Int8 { 8 } else { 4 };
    let scale_base = e.at(tile, quad, LANES * scale_bytes);
    let data_base = e.at(tile, quad, LANES * 4);
    let data_base = e.add_imm(data_base, format.tile(k).scale_bytes as i64);
    let init = zeros(e, rows.len());
    let (start, end) = (e.i64(0), e.i64((k / BLOCK) as i64));
    e.for_carry(start, end, 1, &init, |e, block, acc| {
        let mut acc = acc.to_vec();
        let scales = e.at(scale_base, block, TILE_ROWS * scale_bytes);
        let data = e.at(data_base, block, lines * LINE);
        let activations: Vec<Value> = rows.iter().map(|r| e.at(*r, block, BLOCK * 4)).collect();
        let scale = if format == WeightFormat::Mxfp4 {
            let four = e.load(I32, scales, 0);
            let scale = e8m0_to_f32(e, four);
            let half = e.splat_f32(0.5);
            e.fmul(scale, half)
        } else {
            e.load_f16x4(scales, 0)
        };
        for line in 0..lines {
            let bytes = e.load(I8X16, data, line * LINE);
            for (half, signed) in signed_bytes(e, format, bytes).into_iter().enumerate() {
                let words = e.cast(I32X4, signed);
                for j in 0..4 {
                    // Lane = row; byte j of the lane, sign-extended.
                    let up = e.b.ins().ishl_imm_u(words, (24 - 8 * j) as i64);
                    let value = e.b.ins().sshr_imm_u(up, 24);
                    let value = e.b.ins().fcvt_from_sint(F32X4, value);
                    let w = e.fmul(value, scale);
                    let per_line = if format == WeightFormat::Int8 { 4 } else { 8 };
                    step(e, &mut acc, w, &activations, (line * per_line + half * 4 + j) * 4, j);
                }
            }
        }
        acc
    })
}

/// The signed integer values of a line's bytes: one vector for int8, low and high nibbles' for the 4-bit formats.
pub fn signed_bytes(e: &mut Emit, format: WeightFormat, bytes: Value) -> Vec<Value> {
    if format == WeightFormat::Int8 {
        let flip = e.bytes([0x80; 16]);
        return vec![e.b.ins().bxor(bytes, flip)];
    }
    let mask = e.bytes([0x0f; 16]);
    let words = e.cast(I16X8, bytes);
    let high = e.b.ins().ushr_imm_u(words, 4);
    let high = e.cast(I8X16, high);
    [bytes, high]
        .into_iter()
        .map(|nibbles| {
            let codes = e.b.ins().band(nibbles, mask);
            if format == WeightFormat::Mxfp4 {
                let table = e.bytes(MXFP4_TABLE);
                e.b.ins().x86_pshufb(table, codes)
            } else {
                let eight = e.bytes([8; 16]);
                e.b.ins().isub(codes, eight)
            }
        })
        .collect()
}
