//! `IntegerValue` with `vpdpbusd`, in 512 bits (AVX-512 F and BW, VNNI): of heads of whole 64 columns.
//!
//! A weight of 15 bits is 128 times a byte plus a byte of 7 bits, whose products with bytes are exact: as
//! many products as of words, but values stay bytes. For each four positions of a column side by side, values
//! are rearranged once for all tokens; every head's weights are taken apart once. The upper byte has 128
//! more, to be unsigned: sums start at minus 128 times the sum of a column's values. Tile: 64 columns x up to
//! 4 query heads, kept in registers over all blocks, first with the upper bytes, then with the lower ones.
//! Every pass over a block prefetches its share of a later one. Clobbers: caller-saved registers and flags;
//! callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::narrow::Packed;
use super::prefetch;
use super::regs::{PARAMS, Regs, SCRATCH, constants_here};
use super::vector::{Address, Lanes, Vector, VectorOperand, Vectors, Width};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE, VALUE_BLOCKS, ValueScratch, WEIGHTS};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, CodeLabel, qword_ptr};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::target::Features;

/// The version.
pub const AVX512_VNNI: AsmKernel = AsmKernel {
    name: "value_bytes_avx512_vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::IntegerValue { head_dim, .. } if head_dim % COLUMNS == 0),
    assemble: value,
};

const COLUMNS: usize = ValueScratch::COLUMNS;
/// Positions whose values of a column lie side by side.
const POSITIONS: usize = 4;
/// Vectors of 64 columns' sums.
const VECTORS: usize = 4;
/// Query heads of a tile.
const HEADS: usize = 4;
/// Bytes of a block's values, rearranged.
const BLOCK_VALUES: usize = BLOCK_TOKENS * COLUMNS;
/// Bits of the lower byte of a weight.
const LOWER: u32 = 7;

/// A half of every weight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WeightPart {
    Lower,
    Upper,
}

/// The micro-kernel's registers and shape.
struct ByteValueTile {
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    scratch: ValueScratch,
    /// A pointer into the list, and what lies there.
    entry: AsmRegister64,
    row: AsmRegister64,
    /// Pointers to values and weights in scratch, and a number of blocks.
    values: AsmRegister64,
    halves: AsmRegister64,
    left: AsmRegister64,
    /// Rows of weights, sums, and a number of tokens.
    weights: AsmRegister64,
    sums: AsmRegister64,
    tokens: AsmRegister64,
    /// Registers of tiles. Other steps take what they need from them.
    vectors: Vec<Vector>,
}

fn value(a: &mut CodeAssembler, ukernel: MicroKernel) -> Result<(), IcedError> {
    let MicroKernel::IntegerValue { elem, head_dim, group, stride } = ukernel else { return Ok(()) };
    let width = Width::Full;
    let v = &mut Vectors { a, width };
    let mut regs = Regs::with_params(6);
    let [_, p, o, blocks, tokens, _] = PARAMS;
    let tile = ByteValueTile {
        elem,
        head_dim,
        group,
        scratch: ValueScratch::new(group),
        entry: regs.general(),
        row: regs.general(),
        values: regs.general(),
        halves: regs.general(),
        left: regs.general(),
        weights: regs.general(),
        sums: regs.general(),
        tokens: regs.general(),
        vectors: regs.several_numbered(width, width.registers()),
    };
    let (mut done, mut constants) = (v.a.create_label(), v.a.create_label());
    regs.save(v.a)?;
    v.a.cmp(blocks, 1)?;
    v.a.jl(done)?;
    v.a.cmp(tokens, 1)?;
    v.a.jl(done)?;
    v.a.lea(SCRATCH, qword_ptr(constants))?;
    for start in (0..head_dim).step_by(COLUMNS) {
        tile.rearrange(v, start)?;
        v.a.mov(tile.tokens, tokens)?;
        v.a.mov(tile.weights, p)?;
        v.a.lea(tile.sums, qword_ptr(o + start * 4))?;
        let mut next = v.a.create_label();
        v.a.set_label(&mut next)?;
        tile.take_apart(v)?;
        for first in (0..group).step_by(HEADS) {
            tile.add(v, start, first)?;
        }
        v.a.add(tile.weights, (group * SCORE_STRIDE) as i32)?;
        v.a.add(tile.sums, stride as i32)?;
        v.a.dec(tile.tokens)?;
        v.a.jne(next)?;
    }
    v.a.set_label(&mut done)?;
    regs.restore_and_return(v.a)?;
    set_constants(v, &mut constants, elem)
}

/// Numbers in every lane, in the order of their vectors.
const LANES: [u32; 5] = [0x4000_4000, 0x007f_007f, 0x8080_8080, 0x0f0f_0f0f, 0x0808_0808];

/// Behind all code: for each 4 bytes where in a row they come from, and for int4 how many bits these are
/// shifted; then [`LANES`].
fn set_constants(v: &mut Vectors<'_>, label: &mut CodeLabel, elem: KvFormat) -> Result<(), IcedError> {
    constants_here(v.a, label)?;
    // Vector j of four columns in every 128 bits has columns 16 * j and following in their order.
    let place = |lane: u32| lane % 4 * 4 + lane / 4;
    match elem {
        KvFormat::Int4 => {
            // 32 columns are 16 bytes; their high halves are the second 16 columns.
            v.a.dd(&std::array::from_fn::<u32, 16, _>(|lane| place(lane as u32) / 8 * 4 + lane as u32 / 4))?;
            v.a.dd(&std::array::from_fn::<u32, 16, _>(|lane| place(lane as u32) / 4 % 2 * 4))?;
        }
        _ => {
            v.a.dd(&std::array::from_fn::<u32, 16, _>(|lane| place(lane as u32)))?;
            v.a.dd(&[0; 16])?;
        }
    }
    v.a.dd(&LANES)
}

/// One of [`LANES`].
fn constant(number: usize) -> VectorOperand {
    VectorOperand::Constant(Address::at(SCRATCH) + (128 + number * 4))
}

impl ByteValueTile {
    /// Rearranges 64 columns of all blocks: of each 4 positions four vectors of 16 columns; and sums up
    /// columns.
    fn rearrange(&self, v: &mut Vectors<'_>, start: usize) -> Result<(), IcedError> {
        let [list, _, _, blocks, _, scratch] = PARAMS;
        let (rows, pairs) = (&self.vectors[..POSITIONS], &self.vectors[POSITIONS..2 * POSITIONS]);
        let [sums, constants] = [8, 12].map(|first| &self.vectors[first..first + 4]);
        let &[order, shifts, ones, _] = constants else { unreachable!("four") };
        v.load(order, Address::at(SCRATCH))?;
        v.load(shifts, Address::at(SCRATCH) + 64)?;
        v.load(ones, constant(2))?;
        sums.iter().try_for_each(|sum| v.zero(*sum))?;
        v.a.mov(self.entry, list)?;
        v.a.mov(self.values, scratch)?;
        v.a.mov(self.left, blocks)?;
        let mut again = v.a.create_label();
        v.a.set_label(&mut again)?;
        v.a.mov(self.row, qword_ptr(self.entry))?;
        for four in (0..BLOCK_TOKENS).step_by(POSITIONS) {
            for (position, to) in (four..).zip(rows) {
                let place =
                    self.elem.scales_bytes() + self.elem.elements_bytes(position * self.head_dim + start);
                self.load_row(v, *to, Address::at(self.row) + place, [order, shifts])?;
            }
            for (from, to) in [(0, 0), (2, 2)] {
                v.packed(Packed::LowBytes, pairs[to], rows[from], rows[from + 1])?;
                v.packed(Packed::HighBytes, pairs[to + 1], rows[from], rows[from + 1])?;
            }
            for half in 0..2 {
                v.packed(Packed::LowWords, rows[2 * half], pairs[half], pairs[half + 2])?;
                v.packed(Packed::HighWords, rows[2 * half + 1], pairs[half], pairs[half + 2])?;
            }
            for (number, (vector, sum)) in rows.iter().zip(sums).enumerate() {
                v.store(Address::at(self.values) + (four * COLUMNS + number * 64), *vector)?;
                v.packed(Packed::AddBytes, *sum, ones, *vector)?;
            }
        }
        v.a.add(self.entry, 8)?;
        v.a.add(self.values, BLOCK_VALUES as i32)?;
        v.a.dec(self.left)?;
        v.a.jne(again)?;
        // `ones` are 128.
        for (number, sum) in sums.iter().enumerate() {
            v.zero(rows[0])?;
            v.packed(Packed::SubInts, rows[0], rows[0], *sum)?;
            v.store(Address::at(scratch) + (self.scratch.sums + number * 64), rows[0])?;
        }
        Ok(())
    }

    /// Loads 64 columns of a position as bytes.
    fn load_row(
        &self,
        v: &mut Vectors<'_>,
        to: Vector,
        from: Address,
        [order, shifts]: [Vector; 2],
    ) -> Result<(), IcedError> {
        if self.elem != KvFormat::Int4 {
            return v.pick_lanes(to, order, from.into());
        }
        v.load_half(to, from)?;
        v.pick_lanes(to, order, to.into())?;
        v.shift_right_by(to, to, shifts)?;
        v.lanes(Lanes::And, to, to, constant(3))?;
        let eight = self.vectors[15];
        v.load(eight, constant(4))?;
        v.packed(Packed::SubBytes, to, to, eight)
    }

    /// Takes the weights of a token's heads apart, in all blocks: of each 8 positions the lower bytes, then
    /// the upper ones with 128 more.
    fn take_apart(&self, v: &mut Vectors<'_>) -> Result<(), IcedError> {
        let [_, _, _, blocks, _, scratch] = PARAMS;
        let &[more, mask, lower, upper, ..] = &self.vectors[..] else { unreachable!("32 registers") };
        v.load(more, constant(0))?;
        v.load(mask, constant(1))?;
        v.a.mov(self.row, self.weights)?;
        v.a.lea(self.halves, qword_ptr(scratch + self.scratch.weights))?;
        v.a.mov(self.left, blocks)?;
        let (mut again, mut rest, mut done) = (v.a.create_label(), v.a.create_label(), v.a.create_label());
        let part = |v: &mut Vectors<'_>| {
            for head in 0..self.group {
                v.packed(Packed::SumWords, upper, more, Address::at(self.row) + head * SCORE_STRIDE)?;
                v.lanes(Lanes::And, lower, upper, mask)?;
                v.shift_words_right(upper, upper, LOWER)?;
                v.packed(Packed::PackWords, lower, lower, upper)?;
                v.store(Address::at(self.halves) + head * VALUE_BLOCKS * WEIGHTS, lower)?;
            }
            Ok(())
        };
        v.a.set_label(&mut again)?;
        v.a.sub(self.left, 2)?;
        v.a.jl(rest)?;
        part(v)?;
        v.a.add(self.row, 2 * WEIGHTS as i32)?;
        v.a.add(self.halves, 2 * WEIGHTS as i32)?;
        v.a.jmp(again)?;
        v.a.set_label(&mut rest)?;
        // -1 where a block is left, -2 where none is.
        v.a.cmp(self.left, -1)?;
        v.a.jl(done)?;
        part(&mut Vectors { a: v.a, width: Width::Half })?;
        v.a.set_label(&mut done)
    }

    /// Adds the weighted values of 64 columns to the sums of up to four heads from one on.
    fn add(&self, v: &mut Vectors<'_>, start: usize, first: usize) -> Result<(), IcedError> {
        let [list, _, _, blocks, _, scratch] = PARAMS;
        let heads = (self.group - first).min(HEADS);
        let (sums, rest) = self.vectors.split_at(HEADS * VECTORS);
        let (columns, weights) = rest.split_at(VECTORS);
        let sums = &sums[..heads * VECTORS];
        let place = |number: usize| {
            Address::at(self.sums) + ((first + number / VECTORS) * self.head_dim * 4 + number % VECTORS * 64)
        };
        for (number, sum) in sums.iter().enumerate() {
            v.load(*sum, Address::at(scratch) + (self.scratch.sums + number % VECTORS * 64))?;
        }
        let tiles = self.group.div_ceil(HEADS);
        let passes = self.head_dim / COLUMNS * tiles * 2;
        let pass = (start / COLUMNS * tiles + first / HEADS) * 2;
        for part in [WeightPart::Upper, WeightPart::Lower] {
            v.a.mov(self.entry, list)?;
            v.a.mov(self.values, scratch)?;
            v.a.lea(
                self.halves,
                qword_ptr(scratch + (self.scratch.weights + first * VALUE_BLOCKS * WEIGHTS)),
            )?;
            v.a.mov(self.left, blocks)?;
            let mut again = v.a.create_label();
            v.a.set_label(&mut again)?;
            v.a.mov(self.row, qword_ptr(self.entry + BLOCKS_AHEAD * 8))?;
            let number = pass + usize::from(part == WeightPart::Lower);
            prefetch::share(v.a, self.row, self.elem.plane_bytes(self.head_dim), (number, passes))?;
            for four in 0..BLOCK_TOKENS / POSITIONS {
                for (number, column) in columns.iter().enumerate() {
                    v.load(*column, Address::at(self.values) + (four * POSITIONS * COLUMNS + number * 64))?;
                }
                let bytes = four / 2 * 16 + four % 2 * 4 + if part == WeightPart::Upper { 8 } else { 0 };
                for (head, sums) in sums.chunks(VECTORS).enumerate() {
                    let weight = weights[head];
                    v.broadcast(weight, Address::at(self.halves) + (head * VALUE_BLOCKS * WEIGHTS + bytes))?;
                    for (sum, column) in sums.iter().zip(columns) {
                        v.packed(Packed::AddBytes, *sum, weight, *column)?;
                    }
                }
            }
            v.a.add(self.entry, 8)?;
            v.a.add(self.values, BLOCK_VALUES as i32)?;
            v.a.add(self.halves, WEIGHTS as i32)?;
            v.a.dec(self.left)?;
            v.a.jne(again)?;
            for (number, sum) in sums.iter().enumerate() {
                match part {
                    WeightPart::Upper => {
                        v.shift_left(*sum, *sum, LOWER)?;
                        v.lanes(Lanes::AddInt, *sum, *sum, place(number))?;
                    }
                    WeightPart::Lower => v.store(place(number), *sum)?,
                }
            }
        }
        Ok(())
    }
}
