//! `fn(tile: *const u8, rows: *const *const u8, out: *mut f32, out_stride: u64)`: 16 weight rows by `tokens`
//! rows of f32 activations.
//!
//! As `dot_q8`, for every weight format, with f32 activation rows and the "dot4" order of
//! docs/dev/numerics.md. Four rows at a time.

use crate::emit::{Emit, LANES, MEM};
use crate::ukernel::block::data_lines;
use crate::ukernel::decode::{CHUNKS, Decoder, ScalePlaces};
use crate::ukernel::dot_q8::{DotOut, QUADS};
use cranelift_codegen::ir::types::{F32X4, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, Decode, LINE, PlainDecode, WeightFormat};

pub fn emit(e: &mut Emit, params: &[Value], format: WeightFormat, k: usize, tokens: usize) {
    let (tile, list, out) = (params[0], params[1], DotOut { ptr: params[2], stride: params[3] });
    let rows: Vec<Value> = (0..tokens).map(|t| e.load(I64, list, t * 8)).collect();
    e.for_count(QUADS, |e, quad| {
        let sums = match format.decode() {
            Decode::Plain(PlainDecode::Bf16) => bf16(e, tile, quad, k, &rows),
            Decode::Plain(PlainDecode::F32) => f32(e, tile, quad, k, &rows),
            Decode::Block(_) => blocked(e, tile, quad, format, k, &rows),
        };
        let out = DotOut { ptr: e.at(out.ptr, quad, LANES * 4), ..out };
        for (t, acc) in sums.chunks(4).enumerate() {
            let (a, b) = (e.fadd(acc[0], acc[1]), e.fadd(acc[2], acc[3]));
            let total = e.fadd(a, b);
            let ptr = out.row(e, t);
            e.store(total, ptr, 0);
        }
    });
}

/// `acc[token * 4 + k mod 4]`, one multiply-add per token for column `k` of four rows.
fn add_product(
    e: &mut Emit,
    acc: &mut [Value],
    w: Value,
    activations: &[Value],
    offset: usize,
    k_mod_4: usize,
) {
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
                add_product(e, &mut acc, w, &activations, (2 * line + j) * 4, 2 * line + j);
            }
        }
        acc
    });
    for i in k / 4 * 4..k {
        let w = pair(e, base, i / 2 * LINE)[i % 2];
        add_product(e, &mut acc, w, rows, i * 4, i % 4);
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
            add_product(e, &mut acc, w, &activations, j * 4, j);
        }
        acc
    });
    for i in k / 4 * 4..k {
        let w = e.load(F32X4, base, i * LINE);
        add_product(e, &mut acc, w, rows, i * 4, i % 4);
    }
    acc
}

/// A format with blocks: decoded to f32 (one rounding), a block of 32 per turn.
fn blocked(
    e: &mut Emit,
    tile: Value,
    quad: Value,
    format: WeightFormat,
    k: usize,
    rows: &[Value],
) -> Vec<Value> {
    let (decoder, parts) = (Decoder::new(format), format.parts());
    let places = ScalePlaces::of_tile(e, format, k, tile).quad(e, format, quad);
    let data_base = e.at(tile, quad, LANES * 4);
    let data_base = e.add_imm(data_base, format.tile(k).scale_bytes as i64);
    let init = zeros(e, rows.len());
    let (start, end) = (e.i64(0), e.i64((k / BLOCK) as i64));
    e.for_carry(start, end, 1, &init, |e, block, acc| {
        let mut acc = acc.to_vec();
        let places = places.block(e, format, block);
        let data = e.at(data_base, block, data_lines(format) * LINE);
        let activations: Vec<Value> = rows.iter().map(|r| e.at(*r, block, BLOCK * 4)).collect();
        let chunks = CHUNKS / parts.parts();
        for part in 0..parts.parts() {
            let scale = decoder.row_scales(e, places, 0, part);
            let minimum = parts.has_minimum().then(|| decoder.row_minima(e, places, 0, part));
            for chunk in part * chunks..(part + 1) * chunks {
                let signed = decoder.signed(e, data, chunk);
                for (j, w) in decoder.elements(e, signed, scale, minimum).into_iter().enumerate() {
                    add_product(e, &mut acc, w, &activations, (4 * chunk + j) * 4, j);
                }
            }
        }
        acc
    })
}
