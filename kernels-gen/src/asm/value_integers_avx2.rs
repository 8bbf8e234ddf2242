//! `Weights` and `IntegerValue` in 256 bits. Needs AVX2.
//!
//! Weights: two vectors are a block's weights of one query head. One pass over the blocks multiplies a head's
//! with the scales and finds the largest, a second makes integers of them. Value tile: 16 columns of a value
//! row (two vectors) x up to 4 query heads, kept in registers over all blocks of the call; each 32 bits of a
//! vector have the values of two tokens, which one product takes. Every pass over a block prefetches its
//! share of a later one. Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::predicates::{NOT_EQUAL, NOT_LESS};
use super::prefetch;
use super::regs::{PARAMS, Regs, constants_here, low_half};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE, WEIGHTS};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr,
    ymmword_ptr,
};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::numeric::{LEAST_WEIGHT, WEIGHT_MAX};
use kernmill_plan::target::Features;

/// Columns, or weights, per vector.
const LANES: usize = 8;
/// Bytes of a vector.
const BYTES: usize = 32;
/// Query heads of a value tile.
const HEADS: usize = 4;
/// Vectors of columns of a value tile.
const VECTORS: usize = 2;
/// `vpblendw`: the upper 16 of each 32 bits from the second source.
const UPPER_WORDS: i32 = 0xaa;
/// `vpermq`: 64 bits in the order 0, 2, 1, 3.
const MIDDLE_SWAPPED: i32 = 0b11_01_10_00;

/// The version that rounds weights.
pub const WEIGH: AsmKernel = AsmKernel {
    name: "weights_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::Weights { .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Weights { group } => weights(a, group),
        _ => Ok(()),
    },
};

/// The version that adds weighted values.
pub const WIDE: AsmKernel = AsmKernel {
    name: "value_integers_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::IntegerValue { head_dim, .. } if head_dim % LANES == 0),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::IntegerValue { elem, head_dim, group } => value(a, elem, head_dim, group),
        _ => Ok(()),
    },
};

fn weights(a: &mut CodeAssembler, group: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, p, blocks, factors] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let (block, place, out, plane) = (regs.general(), regs.general(), regs.general(), regs.general());
    let (weight, other, mask, zero) = (regs.half(), regs.half(), regs.half(), regs.half());
    let (magnitude, most, inverse) = (regs.half(), regs.half(), regs.half());
    let (least, least_integer, largest) = (regs.half(), regs.half(), regs.half());
    let mut constants = a.create_label();
    let mut done = a.create_label();
    regs.save(a)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    a.vpxor(zero, zero, zero)?;
    a.lea(place, qword_ptr(constants))?;
    for (n, register) in [magnitude, most, least_integer, least].into_iter().enumerate() {
        a.vmovups(register, ymmword_ptr(place + n * BYTES))?;
    }
    for head in 0..group {
        a.vpxor(largest, largest, largest)?;
        a.xor(block, block)?;
        a.lea(place, qword_ptr(p + head * SCORE_STRIDE))?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.mov(plane, qword_ptr(list + block * 8))?;
        for vector in [0, BYTES] {
            a.vmovups(weight, ymmword_ptr(place + vector))?;
            a.vcmpps(mask, weight, zero, NOT_EQUAL)?;
            a.vmulps(weight, weight, ymmword_ptr(plane + vector))?;
            a.vpand(weight, weight, mask)?;
            a.vmovups(ymmword_ptr(place + vector), weight)?;
            a.vpand(weight, weight, magnitude)?;
            a.vpmaxsd(largest, largest, weight)?;
        }
        a.add(place, (BLOCK_TOKENS * 4) as i32)?;
        a.inc(block)?;
        a.cmp(block, blocks)?;
        a.jl(again)?;
        a.vperm2i128(other, largest, largest, 1)?;
        a.vpmaxsd(largest, largest, other)?;
        for order in [0b01_00_11_10, 0b10_11_00_01] {
            a.vpshufd(other, largest, order)?;
            a.vpmaxsd(largest, largest, other)?;
        }
        a.vdivps(other, largest, most)?;
        a.vmovss(dword_ptr(factors + head * 4), low_half(other))?;
        a.vcmpps(mask, largest, least, NOT_LESS)?;
        a.vdivps(inverse, most, largest)?;
        a.vpand(inverse, inverse, mask)?;
        // Integers are written where weights have been read.
        a.xor(block, block)?;
        a.lea(place, qword_ptr(p + head * SCORE_STRIDE))?;
        a.mov(out, place)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        for (vector, register) in [(0, weight), (BYTES, other)] {
            a.vmulps(register, inverse, ymmword_ptr(place + vector))?;
            a.vcvtps2dq(register, register)?;
            a.vpmaxsd(register, register, least_integer)?;
        }
        a.vpackssdw(weight, weight, other)?;
        a.vpermq(weight, weight, MIDDLE_SWAPPED)?;
        a.vmovups(ymmword_ptr(out), weight)?;
        a.add(place, (BLOCK_TOKENS * 4) as i32)?;
        a.add(out, WEIGHTS as i32)?;
        a.inc(block)?;
        a.cmp(block, blocks)?;
        a.jl(again)?;
    }
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    let least = (-(WEIGHT_MAX as i32)).cast_unsigned();
    for constant in [0x7fff_ffff, WEIGHT_MAX.to_bits(), least, LEAST_WEIGHT.to_bits()] {
        a.dd(&[constant; LANES])?;
    }
    Ok(())
}

/// A value micro-kernel's registers and shape.
struct ValueTileAvx2 {
    elem: KvFormat,
    head_dim: usize,
    /// The row of the first of two tokens.
    row: AsmRegister64,
    /// Columns, each with the values of two tokens; and what they are made of.
    columns: Vec<AsmRegisterYmm>,
    other: AsmRegisterYmm,
    /// Constants that take halves out of bytes, and 8 in every 16 bits.
    constants: [CodeLabel; 2],
}

fn value(a: &mut CodeAssembler, elem: KvFormat, head_dim: usize, group: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, p, o, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let (row, ahead, block) = (regs.general(), regs.general(), regs.general());
    let (weights, stop) = (regs.general(), regs.general());
    let (columns, other) = (regs.halves(VECTORS), regs.half());
    let mut tile = ValueTileAvx2 {
        elem,
        head_dim,
        row,
        columns,
        other,
        constants: [a.create_label(), a.create_label()],
    };
    let (weight, product, sums) = (regs.half(), regs.half(), regs.halves(VECTORS * HEADS));
    let mut done = a.create_label();
    regs.save(a)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    let head_tiles = group.div_ceil(HEADS);
    let passes = head_dim.div_ceil(VECTORS * LANES) * head_tiles;
    for (number, start) in (0..head_dim).step_by(VECTORS * LANES).enumerate() {
        let vectors = ((head_dim - start) / LANES).min(VECTORS);
        for first in (0..group).step_by(HEADS) {
            let heads = (group - first).min(HEADS);
            let pass = number * head_tiles + first / HEADS;
            let place = |head: usize, vector: usize| {
                let column = tile.column(start, vector);
                ymmword_ptr(o + ((first + head) * head_dim + column) * 4)
            };
            let each = || (0..heads).flat_map(|head| (0..vectors).map(move |vector| (head, vector)));
            for (head, vector) in each() {
                a.vmovups(sums[head * VECTORS + vector], place(head, vector))?;
            }
            a.xor(block, block)?;
            a.mov(weights, p)?;
            let (mut next, mut again) = (a.create_label(), a.create_label());
            a.set_label(&mut next)?;
            a.mov(row, qword_ptr(list + block * 8))?;
            a.mov(ahead, qword_ptr(list + block * 8 + BLOCKS_AHEAD * 8))?;
            prefetch::share(a, ahead, elem.plane_bytes(head_dim), (pass, passes))?;
            a.lea(stop, qword_ptr(weights + WEIGHTS))?;
            a.set_label(&mut again)?;
            tile.load(a, start, vectors)?;
            for head in 0..heads {
                a.vpbroadcastd(weight, dword_ptr(weights + (first + head) * SCORE_STRIDE))?;
                for (vector, column) in tile.columns[..vectors].iter().enumerate() {
                    let sum = sums[head * VECTORS + vector];
                    a.vpmaddwd(product, *column, weight)?;
                    a.vpaddd(sum, sum, product)?;
                }
            }
            a.add(row, (2 * elem.elements_bytes(head_dim)) as i32)?;
            a.add(weights, 4)?;
            a.cmp(weights, stop)?;
            a.jl(again)?;
            a.inc(block)?;
            a.cmp(block, blocks)?;
            a.jl(next)?;
            for (head, vector) in each() {
                a.vmovups(place(head, vector), sums[head * VECTORS + vector])?;
            }
        }
    }
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    if elem == KvFormat::Int4 {
        constants_here(a, &mut tile.constants[0])?;
        a.dd(&[0x000f_000f; LANES])?;
        a.set_label(&mut tile.constants[1])?;
        a.dd(&[0x0008_0008; LANES])?;
    }
    Ok(())
}

impl ValueTileAvx2 {
    /// The first column of a vector of a tile: int4 has its second vector in the high halves of the bytes of
    /// the first.
    fn column(&self, start: usize, vector: usize) -> usize {
        match self.elem {
            // Two tiles to 32 columns.
            KvFormat::Int4 => start / 32 * 32 + start % 32 / 2 + vector * 16,
            _ => start + vector * LANES,
        }
    }

    /// Loads columns of two tokens from number `start` on.
    fn load(&self, a: &mut CodeAssembler, start: usize, vectors: usize) -> Result<(), IcedError> {
        let row = |token: usize, bytes: usize| -> AsmMemoryOperand {
            let bytes = token * self.elem.elements_bytes(self.head_dim) + bytes;
            qword_ptr(self.row + (self.elem.scales_bytes() + bytes))
        };
        if self.elem == KvFormat::Int4 {
            let (low, high) = (self.columns[0], self.columns[1]);
            let bytes = start / 2;
            a.vpmovzxbd(low, row(0, bytes))?;
            a.vpmovzxbd(high, row(1, bytes))?;
            a.vpslld(high, high, 16)?;
            a.vpor(low, low, high)?;
            a.vpsrlw(high, low, 4)?;
            for column in [low, high] {
                a.vpand(column, column, ymmword_ptr(self.constants[0]))?;
                a.vpsubw(column, column, ymmword_ptr(self.constants[1]))?;
            }
            return Ok(());
        }
        for (vector, column) in self.columns[..vectors].iter().enumerate() {
            a.vpmovsxbd(self.other, row(0, start + vector * LANES))?;
            a.vpmovsxbd(*column, row(1, start + vector * LANES))?;
            a.vpslld(*column, *column, 16)?;
            a.vpblendw(*column, self.other, *column, UPPER_WORDS)?;
        }
        Ok(())
    }
}
