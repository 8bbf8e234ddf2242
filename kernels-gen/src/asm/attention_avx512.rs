//! `Score` and `Value` in 512 bits. Needs AVX-512 F.
//!
//! Score tile: 16 keys (the lanes) of two blocks x up to 4 query heads. Of the four accumulators of each
//! pair, two at a time are in registers, so that a broadcast query serves two fmas; a last odd block has all
//! four. Value tile: up to 64 columns of a value row (four vectors) x up to 4 query heads, kept in registers
//! over all blocks of the call. Every pass over a block prefetches its share of a later one. Clobbers:
//! caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::kv_elements::Wide;
use super::prefetch;
use super::regs::{PARAMS, Regs};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, SCORE_STRIDE};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, AsmRegisterZmm, CodeAssembler, dword_ptr, qword_ptr, zmmword_ptr};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::target::Features;

/// Columns per vector.
const LANES: usize = 16;
/// Query heads of a tile.
const HEADS: usize = 4;
/// Vectors of columns of a value tile.
const VECTORS: usize = 4;

/// The score version.
pub const SCORE: AsmKernel = AsmKernel {
    name: "score_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(ukernel, MicroKernel::Score { elem, head_dim,
        .. } if !elem.is_scaled() && head_dim % 4 == 0)
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Score { elem, head_dim, group, scale } => score(a, elem, head_dim, group, scale),
        _ => Ok(()),
    },
};

/// The value version.
pub const VALUE: AsmKernel = AsmKernel {
    name: "value_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(ukernel, MicroKernel::Value { elem, head_dim,
        .. } if !elem.is_scaled() && head_dim % LANES == 0)
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Value { elem, head_dim, group } => value(a, elem, head_dim, group),
        _ => Ok(()),
    },
};

/// A score micro-kernel's registers and shape.
struct Score {
    elem: KvFormat,
    elements: Wide,
    head_dim: usize,
    /// Pointer to the blocks' pointers.
    list: AsmRegister64,
    q: AsmRegister64,
    out: AsmRegister64,
    /// Keys of up to two blocks.
    keys: [AsmRegister64; 2],
    /// Keys to prefetch while those are worked on.
    ahead: [AsmRegister64; 2],
    /// Bytes into the keys, and into the queries.
    place: AsmRegister64,
    element: AsmRegister64,
    key: Vec<AsmRegisterZmm>,
    query: AsmRegisterZmm,
    factor: AsmRegisterZmm,
    sums: Vec<AsmRegisterZmm>,
    held: Vec<AsmRegisterZmm>,
}

fn score(
    a: &mut CodeAssembler,
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    scale: u32,
) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, q, out, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let elements = Wide::new(a, &mut regs, elem);
    let mut tile = Score {
        elem,
        elements,
        head_dim,
        list,
        q,
        out,
        keys: [regs.general(), regs.general()],
        ahead: [regs.general(), regs.general()],
        place: regs.general(),
        element: regs.general(),
        key: regs.vectors(2),
        query: regs.vector(),
        factor: regs.vector(),
        sums: regs.vectors(4 * HEADS),
        held: regs.vectors(2 * HEADS),
    };
    let mut constants = a.create_label();
    let (mut pairs, mut odd, mut done) = (a.create_label(), a.create_label(), a.create_label());
    regs.save(a)?;
    a.vpbroadcastd(tile.factor, dword_ptr(constants))?;
    tile.elements.setup(a)?;
    a.set_label(&mut pairs)?;
    a.cmp(blocks, 2)?;
    a.jl(odd)?;
    tile.blocks(a, 2, group)?;
    a.sub(blocks, 2)?;
    a.jmp(pairs)?;
    a.set_label(&mut odd)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    tile.blocks(a, 1, group)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dd(&[scale])?;
    tile.elements.finish(a)
}

impl Score {
    /// The next `count` blocks against all heads; goes on to the blocks behind them.
    fn blocks(&self, a: &mut CodeAssembler, count: usize, group: usize) -> Result<(), IcedError> {
        for block in 0..count {
            a.mov(self.keys[block], qword_ptr(self.list + block * 8))?;
            a.mov(self.ahead[block], qword_ptr(self.list + (block + BLOCKS_AHEAD) * 8))?;
        }
        for first in (0..group).step_by(HEADS) {
            self.heads(a, count, first, group)?;
        }
        a.add(self.list, (count * 8) as i32)?;
        a.add(self.out, (count * BLOCK_TOKENS * 4) as i32)
    }

    fn heads(
        &self,
        a: &mut CodeAssembler,
        count: usize,
        first: usize,
        group: usize,
    ) -> Result<(), IcedError> {
        let heads = (group - first).min(HEADS);
        let passes = count * group.div_ceil(HEADS);
        // Accumulators of a block and a head that are in registers at once.
        let together = 4 / count;
        let sum = |head: usize, block: usize, d: usize| self.sums[(head * count + block) * together + d];
        for phase in 0..count {
            for ahead in &self.ahead[..count] {
                let bytes = self.elem.plane_bytes(self.head_dim);
                prefetch::share(a, *ahead, bytes, (first / HEADS * count + phase, passes))?;
            }
            for sum in &self.sums[..heads * 4] {
                a.vpxord(*sum, *sum, *sum)?;
            }
            self.products(a, count, first, heads, phase)?;
            for head in 0..heads {
                for block in 0..count {
                    let (left, right) = (sum(head, block, 0), sum(head, block, 1));
                    let held = self.held[head * 2 + block];
                    a.vaddps(left, left, right)?;
                    if count == 1 {
                        let (left_2, right_2) = (sum(head, block, 2), sum(head, block, 3));
                        a.vaddps(left_2, left_2, right_2)?;
                        a.vaddps(left, left, left_2)?;
                    } else if phase == 0 {
                        a.vmovaps(held, left)?;
                        continue;
                    } else {
                        a.vaddps(left, held, left)?;
                    }
                    a.vmulps(left, left, self.factor)?;
                    let place = (first + head) * SCORE_STRIDE + block * BLOCK_TOKENS * 4;
                    a.vmovups(zmmword_ptr(self.out + place), left)?;
                }
            }
        }
        Ok(())
    }

    /// Adds up products of one phase, of each four elements those that are its own: all of them of one block,
    /// or two of two blocks.
    fn products(
        &self,
        a: &mut CodeAssembler,
        count: usize,
        first: usize,
        heads: usize,
        phase: usize,
    ) -> Result<(), IcedError> {
        let together = 4 / count;
        let row = self.elem.elements_bytes(BLOCK_TOKENS);
        a.xor(self.place, self.place)?;
        a.xor(self.element, self.element)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        for d in 0..together {
            let element = phase * together + d;
            for block in 0..count {
                self.elements.load(a, self.key[block], self.keys[block] + self.place + element * row)?;
            }
            for head in 0..heads {
                let query = self.q + self.element + (first + head) * self.head_dim * 4 + element * 4;
                a.vpbroadcastd(self.query, dword_ptr(query))?;
                for block in 0..count {
                    let sum = self.sums[(head * count + block) * together + d];
                    a.vfmadd231ps(sum, self.key[block], self.query)?;
                }
            }
        }
        a.add(self.place, (4 * row) as i32)?;
        a.add(self.element, 16)?;
        a.cmp(self.element, (self.head_dim * 4) as i32)?;
        a.jne(again)
    }
}

fn value(a: &mut CodeAssembler, elem: KvFormat, head_dim: usize, group: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [list, p, o, blocks, first, end] = PARAMS;
    let (row, ahead, token, stop) = (regs.general(), regs.general(), regs.general(), regs.general());
    let (block, skip) = (regs.general(), regs.general());
    let (columns, weight) = (regs.vectors(VECTORS), regs.vector());
    let sums = regs.vectors(VECTORS * HEADS);
    let mut elements = Wide::new(a, &mut regs, elem);
    regs.save(a)?;
    elements.setup(a)?;
    let mut done = a.create_label();
    a.cmp(first, end)?;
    a.jge(done)?;
    let row_bytes = elem.elements_bytes(head_dim);
    let head_tiles = group.div_ceil(HEADS);
    let passes = head_dim.div_ceil(VECTORS * LANES) * head_tiles;
    for (number, start) in (0..head_dim).step_by(VECTORS * LANES).enumerate() {
        let vectors = ((head_dim - start) / LANES).min(VECTORS);
        for first_head in (0..group).step_by(HEADS) {
            let heads = (group - first_head).min(HEADS);
            let pass = number * head_tiles + first_head / HEADS;
            let place = |head: usize, vector: usize| {
                zmmword_ptr(o + ((first_head + head) * head_dim + start + vector * LANES) * 4)
            };
            for head in 0..heads {
                for vector in 0..vectors {
                    a.vmovups(sums[head * VECTORS + vector], place(head, vector))?;
                }
            }
            a.imul_3(skip, first, row_bytes as i32)?;
            a.mov(token, first)?;
            a.xor(block, block)?;
            a.xor(stop, stop)?;
            let (mut next, mut again) = (a.create_label(), a.create_label());
            a.set_label(&mut next)?;
            a.mov(row, qword_ptr(list + block * 8))?;
            // The first row in view.
            a.add(row, skip)?;
            a.xor(skip, skip)?;
            a.mov(ahead, qword_ptr(list + block * 8 + BLOCKS_AHEAD * 8))?;
            prefetch::share(a, ahead, elem.plane_bytes(head_dim), (pass, passes))?;
            a.add(stop, BLOCK_TOKENS as i32)?;
            a.cmp(stop, end)?;
            a.cmovg(stop, end)?;
            a.set_label(&mut again)?;
            for (vector, column) in columns[..vectors].iter().enumerate() {
                elements.load(a, *column, row + elem.elements_bytes(start + vector * LANES))?;
            }
            for head in 0..heads {
                a.vpbroadcastd(weight, dword_ptr(p + token * 4 + (first_head + head) * SCORE_STRIDE))?;
                for (vector, column) in columns[..vectors].iter().enumerate() {
                    a.vfmadd231ps(sums[head * VECTORS + vector], *column, weight)?;
                }
            }
            a.add(row, row_bytes as i32)?;
            a.inc(token)?;
            a.cmp(token, stop)?;
            a.jl(again)?;
            a.inc(block)?;
            a.cmp(block, blocks)?;
            a.jl(next)?;
            for head in 0..heads {
                for vector in 0..vectors {
                    a.vmovups(place(head, vector), sums[head * VECTORS + vector])?;
                }
            }
        }
    }
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    elements.finish(a)
}
