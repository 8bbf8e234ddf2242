//! `Weights` and `IntegerValue` in 512 bits. Needs AVX-512 F and BW; versions with VNNI besides.
//!
//! Weights: a vector is a block's weights of one query head. One pass over the blocks multiplies those of up
//! to 8 heads with the scales, and finds each head's largest; a second makes integers of a head's. Value
//! tile: 32 columns of a value row (two vectors) x up to 8 query heads, kept in registers over all blocks of
//! the call; each 32 bits of a vector have the values of two tokens, which one product takes. Every pass over
//! a block prefetches its share of a later one. Clobbers: caller-saved registers and flags; callee-saved ones
//! are pushed and popped.

use super::AsmKernel;
use super::predicates::{NOT_EQUAL, NOT_LESS};
use super::prefetch;
use super::regs::{PARAMS, Regs, low};
use super::vector::{Vectors, Width};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE, WEIGHTS};
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterZmm, CodeAssembler, dword_ptr, k1, qword_ptr, xmmword_ptr,
    ymmword_ptr, zmmword_ptr,
};
use iced_x86::{IcedError, Register};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::numeric::{LEAST_WEIGHT, WEIGHT_MAX};
use kernmill_plan::target::Features;

/// Columns per vector.
const LANES: usize = 16;
/// Query heads of a tile.
const HEADS: usize = 8;
/// Vectors of columns of a value tile.
const VECTORS: usize = 2;
/// `vpternlogd`: the first, with what the second and the third have in common.
const FIRST_OR_BOTH: i32 = 0xf8;

/// The version that rounds weights.
pub const WEIGH: AsmKernel = AsmKernel {
    name: "weights_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::Weights { .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Weights { group } => weights(a, group),
        _ => Ok(()),
    },
};

/// The version with `vpdpwssd`.
pub const VNNI: AsmKernel = AsmKernel {
    name: "value_integers_avx512_vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| assemble(a, &ukernel, true),
};

/// The version without.
pub const PLAIN: AsmKernel = AsmKernel {
    name: "value_integers_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| assemble(a, &ukernel, false),
};

fn serves(ukernel: MicroKernel) -> bool {
    matches!(ukernel, MicroKernel::IntegerValue { head_dim, .. } if head_dim % LANES == 0)
}

fn assemble(a: &mut CodeAssembler, ukernel: &MicroKernel, vnni: bool) -> Result<(), IcedError> {
    match *ukernel {
        MicroKernel::IntegerValue { elem, head_dim, group } => value(a, elem, head_dim, group, vnni),
        _ => Ok(()),
    }
}

fn weights(a: &mut CodeAssembler, group: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, p, blocks, factors] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let (block, place, out, plane) = (regs.general(), regs.general(), regs.general(), regs.general());
    let (scales, weight, other, zero) = (regs.vector(), regs.vector(), regs.vector(), regs.vector());
    let (magnitude, least, most, inverse) = (regs.vector(), regs.vector(), regs.vector(), regs.vector());
    let (least_integer, largest) = (regs.vector(), regs.vectors(HEADS));
    let mut constants = a.create_label();
    let mut done = a.create_label();
    regs.save(a)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    a.vpxord(zero, zero, zero)?;
    a.lea(place, qword_ptr(constants))?;
    for (n, register) in [magnitude, least, most, least_integer].into_iter().enumerate() {
        a.vpbroadcastd(register, dword_ptr(place + n * 4))?;
    }
    for first in (0..group).step_by(HEADS) {
        let heads = first..(first + HEADS).min(group);
        let largest = &largest[..heads.len()];
        for largest in largest {
            a.vpxord(*largest, *largest, *largest)?;
        }
        a.xor(block, block)?;
        a.xor(place, place)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.mov(plane, qword_ptr(list + block * 8))?;
        a.vmovups(scales, zmmword_ptr(plane))?;
        for (head, largest) in heads.clone().zip(largest) {
            let own = zmmword_ptr(p + place + head * SCORE_STRIDE);
            a.vmovups(weight, own)?;
            a.vcmpps(k1, weight, zero, NOT_EQUAL)?;
            a.vmulps(weight.k1().z(), weight, scales)?;
            a.vmovups(own, weight)?;
            a.vpandd(weight, weight, magnitude)?;
            a.vpmaxsd(*largest, *largest, weight)?;
        }
        a.add(place, (BLOCK_TOKENS * 4) as i32)?;
        a.inc(block)?;
        a.cmp(block, blocks)?;
        a.jl(again)?;
        for (head, largest) in heads.zip(largest) {
            let [to, with] = [*largest, other].map(|register| Register::from(register).number());
            Vectors { a: &mut *a, width: Width::Full }.across(to, with, |v| v.max_int(to, to, with))?;
            a.vdivps(other, *largest, most)?;
            a.vmovss(dword_ptr(factors + head * 4), low(other))?;
            a.vcmpps(k1, *largest, least, NOT_LESS)?;
            a.vdivps(inverse.k1().z(), most, *largest)?;
            // Integers are written where weights have been read.
            a.lea(out, qword_ptr(p + head * SCORE_STRIDE))?;
            a.xor(block, block)?;
            a.mov(place, out)?;
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            a.vmulps(weight, inverse, zmmword_ptr(place))?;
            a.vcvtps2dq(weight, weight)?;
            a.vpmaxsd(weight, weight, least_integer)?;
            a.vpmovdw(ymmword_ptr(out), weight)?;
            a.add(place, (BLOCK_TOKENS * 4) as i32)?;
            a.add(out, WEIGHTS as i32)?;
            a.inc(block)?;
            a.cmp(block, blocks)?;
            a.jl(again)?;
        }
    }
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dd(&[0x7fff_ffff, LEAST_WEIGHT.to_bits(), WEIGHT_MAX.to_bits(), (-(WEIGHT_MAX as i32)).cast_unsigned()])
}

/// A value micro-kernel's registers and shape.
struct ValueTileAvx512 {
    elem: KvFormat,
    head_dim: usize,
    vnni: bool,
    /// The row of the first of two tokens.
    row: AsmRegister64,
    /// Columns, each with the values of two tokens; and what they are made of.
    columns: Vec<AsmRegisterZmm>,
    other: AsmRegisterZmm,
    /// The mask that takes the first token's value out of 32 bits, or halves out of bytes.
    bits: AsmRegisterZmm,
    /// 8 in every 16 bits.
    zero: AsmRegisterZmm,
    weight: AsmRegisterZmm,
    product: AsmRegisterZmm,
    sums: Vec<AsmRegisterZmm>,
}

fn value(
    a: &mut CodeAssembler,
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    vnni: bool,
) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, p, o, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let (row, ahead, block) = (regs.general(), regs.general(), regs.general());
    let (weights, stop) = (regs.general(), regs.general());
    let tile = ValueTileAvx512 {
        elem,
        head_dim,
        vnni,
        row,
        columns: regs.vectors(VECTORS),
        other: regs.vector(),
        bits: regs.vector(),
        zero: regs.vector(),
        weight: regs.vector(),
        product: regs.vector(),
        sums: regs.vectors(VECTORS * HEADS),
    };
    let mut constants = a.create_label();
    let mut done = a.create_label();
    regs.save(a)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    a.lea(row, qword_ptr(constants))?;
    a.vpbroadcastd(tile.bits, dword_ptr(row))?;
    a.vpbroadcastd(tile.zero, dword_ptr(row + 4))?;
    let head_tiles = group.div_ceil(HEADS);
    let passes = head_dim.div_ceil(VECTORS * LANES) * head_tiles;
    for (number, start) in (0..head_dim).step_by(VECTORS * LANES).enumerate() {
        let vectors = ((head_dim - start) / LANES).min(VECTORS);
        for first in (0..group).step_by(HEADS) {
            let heads = (group - first).min(HEADS);
            let pass = number * head_tiles + first / HEADS;
            let place = |head: usize, vector: usize| {
                zmmword_ptr(o + ((first + head) * head_dim + start + vector * LANES) * 4)
            };
            let each = || (0..heads).flat_map(|head| (0..vectors).map(move |vector| (head, vector)));
            for (head, vector) in each() {
                a.vmovdqu32(tile.sums[head * VECTORS + vector], place(head, vector))?;
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
                a.vpbroadcastd(tile.weight, dword_ptr(weights + (first + head) * SCORE_STRIDE))?;
                for vector in 0..vectors {
                    tile.add(a, tile.sums[head * VECTORS + vector], tile.columns[vector])?;
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
                a.vmovdqu32(place(head, vector), tile.sums[head * VECTORS + vector])?;
            }
        }
    }
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    match elem {
        KvFormat::Int4 => a.dd(&[0x000f_000f, 0x0008_0008]),
        _ => a.dd(&[0x0000_ffff, 0]),
    }
}

impl ValueTileAvx512 {
    /// Loads columns of two tokens from number `start` on.
    fn load(&self, a: &mut CodeAssembler, start: usize, vectors: usize) -> Result<(), IcedError> {
        let row = |token: usize, column: usize| -> AsmMemoryOperand {
            let bytes = self.elem.elements_bytes(token * self.head_dim + column);
            xmmword_ptr(self.row + (self.elem.scales_bytes() + bytes))
        };
        if self.elem == KvFormat::Int4 {
            // 32 columns lie in 16 bytes: the first 16 in the low halves.
            let (low, high) = (self.columns[0], self.columns[1]);
            a.vpmovzxbd(low, row(0, start))?;
            a.vpmovzxbd(high, row(1, start))?;
            a.vpslld(high, high, 16)?;
            a.vpord(low, low, high)?;
            a.vpsrlw(high, low, 4)?;
            for column in [low, high] {
                a.vpandd(column, column, self.bits)?;
                a.vpsubw(column, column, self.zero)?;
            }
            return Ok(());
        }
        for (vector, column) in self.columns[..vectors].iter().enumerate() {
            a.vpmovsxbd(self.other, row(0, start + vector * LANES))?;
            a.vpmovsxbd(*column, row(1, start + vector * LANES))?;
            a.vpslld(*column, *column, 16)?;
            a.vpternlogd(*column, self.other, self.bits, FIRST_OR_BOTH)?;
        }
        Ok(())
    }

    /// Adds a column's values of two tokens times their weights.
    fn add(
        &self,
        a: &mut CodeAssembler,
        sum: AsmRegisterZmm,
        column: AsmRegisterZmm,
    ) -> Result<(), IcedError> {
        if self.vnni {
            return a.vpdpwssd(sum, column, self.weight);
        }
        a.vpmaddwd(self.product, column, self.weight)?;
        a.vpaddd(sum, sum, self.product)
    }
}
