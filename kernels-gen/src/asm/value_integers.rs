//! `IntegerValue` in 256 bits (AVX2) and in 512 bits (AVX-512 F and BW; a version with VNNI besides).
//!
//! Tile: two vectors of columns of a value row x up to 4 query heads in 256 bits,
//! 8 in 512, kept in registers over all blocks of the call; each 32 bits of a vector have the values of two
//! tokens, which one product takes. Every pass over a block prefetches its share of a later one. Clobbers:
//! caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::constants::Constants;
use super::narrow::Packed;
use super::prefetch;
use super::regs::{PARAMS, Regs};
use super::vector::{Address, Lanes, Vector, VectorOperand, Vectors, Width};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE, WEIGHTS};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, qword_ptr};
use kernmill_plan::kv::KvFormat;
use kernmill_plan::target::Features;

/// Vectors of columns of a value tile.
const VECTORS: usize = 2;

/// Weighted values in 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "value_integers_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| serves(ukernel, Width::Half),
    assemble: |a, ukernel| value(a, ukernel, Width::Half, false),
};

/// Weighted values in 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "value_integers_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| serves(ukernel, Width::Full),
    assemble: |a, ukernel| value(a, ukernel, Width::Full, false),
};

/// Weighted values in 512 bits, with `vpdpwssd`.
pub const AVX512_VNNI: AsmKernel = AsmKernel {
    name: "value_integers_avx512_vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| serves(ukernel, Width::Full),
    assemble: |a, ukernel| value(a, ukernel, Width::Full, true),
};

fn serves(ukernel: MicroKernel, width: Width) -> bool {
    matches!(ukernel, MicroKernel::IntegerValue { head_dim, .. } if head_dim % width.lanes() == 0)
}

/// A value micro-kernel's registers and shape.
struct IntegerValueTile<'c> {
    elem: KvFormat,
    head_dim: usize,
    /// The row of the first of two tokens.
    row: AsmRegister64,
    /// Columns, each with the values of two tokens; and what they are made of.
    columns: Vec<Vector>,
    other: Vector,
    /// int4: masks that take halves out of bytes, and 8 in every 16 bits. int8: a mask of the first token's
    /// value in 32 bits.
    constants: &'c [VectorOperand],
}

fn value(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width, vnni: bool) -> Result<(), IcedError> {
    let MicroKernel::IntegerValue { elem, head_dim, group, stride } = ukernel else { return Ok(()) };
    // Query heads of a tile.
    let tile_heads = match width {
        Width::Half => 4,
        Width::Full => 8,
    };
    let v = &mut Vectors { a, width };
    let mut regs = Regs::with_params(5);
    let [list, p, o, blocks, tokens, ..] = PARAMS;
    let (row, ahead, block) = (regs.general(), regs.general(), regs.general());
    let (weights, stop) = (regs.general(), regs.general());
    let (columns, other) = (regs.several_numbered(width, VECTORS), regs.numbered(width));
    let (weight, product) = (regs.numbered(width), regs.numbered(width));
    let sums = regs.several_numbered(width, VECTORS * tile_heads);
    let bits: &[u32] = if elem == KvFormat::Int4 { &[0x000f_000f, 0x0008_0008] } else { &[0x0000_ffff] };
    let mut constants = Constants::new(v, &mut regs, bits.iter().copied());
    let tile = IntegerValueTile { elem, head_dim, row, columns, other, constants: &constants.operands };
    let mut done = v.a.create_label();
    regs.save(v.a)?;
    v.a.cmp(blocks, 1)?;
    v.a.jl(done)?;
    constants.load(v)?;
    let mut next_token = v.a.create_label();
    v.a.set_label(&mut next_token)?;
    v.a.cmp(tokens, 1)?;
    v.a.jl(done)?;
    let head_tiles = group.div_ceil(tile_heads);
    let passes = head_dim.div_ceil(VECTORS * width.lanes()) * head_tiles;
    for (number, start) in (0..head_dim).step_by(VECTORS * width.lanes()).enumerate() {
        let vectors = ((head_dim - start) / width.lanes()).min(VECTORS);
        for first in (0..group).step_by(tile_heads) {
            let heads = (group - first).min(tile_heads);
            let pass = number * head_tiles + first / tile_heads;
            let sums = &sums[..heads * vectors];
            let place = |sum: usize| {
                let column = tile.column(width, start, sum % vectors);
                Address::at(o) + ((first + sum / vectors) * head_dim + column) * 4
            };
            for (number, sum) in sums.iter().enumerate() {
                v.load(*sum, place(number))?;
            }
            v.a.xor(block, block)?;
            v.a.mov(weights, p)?;
            let (mut next, mut again) = (v.a.create_label(), v.a.create_label());
            v.a.set_label(&mut next)?;
            v.a.mov(row, qword_ptr(list + block * 8))?;
            v.a.mov(ahead, qword_ptr(list + block * 8 + BLOCKS_AHEAD * 8))?;
            prefetch::share(v.a, ahead, elem.plane_bytes(head_dim), (pass, passes))?;
            v.a.lea(stop, qword_ptr(weights + WEIGHTS))?;
            v.a.set_label(&mut again)?;
            tile.load(v, start, vectors)?;
            for (head, sums) in (first..).zip(sums.chunks(vectors)) {
                v.broadcast(weight, Address::at(weights) + head * SCORE_STRIDE)?;
                for (sum, column) in sums.iter().zip(&tile.columns) {
                    if vnni {
                        v.packed(Packed::AddWords, *sum, *column, weight)?;
                        continue;
                    }
                    v.packed(Packed::WordPairs, product, *column, weight)?;
                    v.lanes(Lanes::AddInt, *sum, *sum, product)?;
                }
            }
            v.a.add(row, (2 * elem.elements_bytes(head_dim)) as i32)?;
            v.a.add(weights, 4)?;
            v.a.cmp(weights, stop)?;
            v.a.jl(again)?;
            v.a.inc(block)?;
            v.a.cmp(block, blocks)?;
            v.a.jl(next)?;
            for (number, sum) in sums.iter().enumerate() {
                v.store(place(number), *sum)?;
            }
        }
    }
    v.a.add(p, (group * SCORE_STRIDE) as i32)?;
    v.a.add(o, stride as i32)?;
    v.a.dec(tokens)?;
    v.a.jmp(next_token)?;
    v.a.set_label(&mut done)?;
    regs.restore_and_return(v.a)?;
    constants.finish(v)
}

impl IntegerValueTile<'_> {
    /// The first column of a vector of a tile: int4 has its second vector in the high halves of the bytes of
    /// the first.
    fn column(&self, width: Width, start: usize, vector: usize) -> usize {
        match self.elem {
            // In 256 bits, two tiles to 32 columns.
            KvFormat::Int4 => start / 32 * 32 + start % 32 / 2 + vector * 16,
            _ => start + vector * width.lanes(),
        }
    }

    /// Loads columns of two tokens from number `start` on.
    fn load(&self, v: &mut Vectors<'_>, start: usize, vectors: usize) -> Result<(), IcedError> {
        let row = |token: usize, column: usize| {
            let bytes = self.elem.elements_bytes(token * self.head_dim + column);
            Address::at(self.row) + self.elem.scales_bytes() + bytes
        };
        if self.elem == KvFormat::Int4 {
            let (low, high) = (self.columns[0], self.columns[1]);
            v.load_bytes(low, row(0, start))?;
            v.load_bytes(high, row(1, start))?;
            v.shift_left(high, high, 16)?;
            v.lanes(Lanes::Or, low, low, high)?;
            v.shift_words_right(high, low, 4)?;
            for column in [low, high] {
                v.lanes(Lanes::And, column, column, self.constants[0])?;
                v.packed(Packed::SubWords, column, column, self.constants[1])?;
            }
            return Ok(());
        }
        for (vector, column) in self.columns[..vectors].iter().enumerate() {
            let start = start + vector * v.width.lanes();
            v.load_signed_bytes(self.other, row(0, start))?;
            v.load_signed_bytes(*column, row(1, start))?;
            v.shift_left(*column, *column, 16)?;
            v.put_low_words(*column, self.other, self.constants[0])?;
        }
        Ok(())
    }
}
