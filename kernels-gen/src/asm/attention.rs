//! `Score` and `Value` in 256 bits (AVX2, FMA, F16C) and in 512 bits (AVX-512 F, BW, VL).
//!
//! Score tile: two vectors of keys x up to 2 query heads in 256 bits, 4 in 512; of the four accumulators of
//! each pair, two at a time are in registers; a last odd block of 512 bits has all four. Value tile: columns
//! of a value row (two vectors of 256 bits, four of 512) x up to 4 query heads, kept in registers over all
//! blocks of the call. Every pass over a block prefetches its share of a later one. Clobbers: caller-saved
//! registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::constants::Constants;
use super::key_blocks::{KEY_VECTORS, KeyBlocks, KeyVector};
use super::kv_elements;
use super::prefetch;
use super::regs::{PARAMS, Regs};
use super::vector::{Address, Fma, Lanes, Vector, VectorOperand, Vectors, Width};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, QueryHeads, SCORE_STRIDE};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, qword_ptr};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::target::Features;

/// Query heads of a value tile.
const VALUE_HEADS: usize = 4;

/// Scores in 256 bits.
pub const SCORE_AVX2: AsmKernel = AsmKernel {
    name: "score_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: scores,
    assemble: |a, ukernel| score(a, ukernel, Width::Half),
};

/// Scores in 512 bits.
pub const SCORE_AVX512: AsmKernel = AsmKernel {
    name: "score_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: scores,
    assemble: |a, ukernel| score(a, ukernel, Width::Full),
};

/// Values in 256 bits.
pub const VALUE_AVX2: AsmKernel = AsmKernel {
    name: "value_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| adds_values(ukernel, Width::Half),
    assemble: |a, ukernel| value(a, ukernel, Width::Half),
};

/// Values in 512 bits.
pub const VALUE_AVX512: AsmKernel = AsmKernel {
    name: "value_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| adds_values(ukernel, Width::Full),
    assemble: |a, ukernel| value(a, ukernel, Width::Full),
};

fn scores(ukernel: MicroKernel) -> bool {
    matches!(ukernel, MicroKernel::Score { elem, head_dim, .. } if !elem.is_scaled() && head_dim % 4 == 0)
}

fn adds_values(ukernel: MicroKernel, width: Width) -> bool {
    matches!(ukernel, MicroKernel::Value { elem, head_dim, .. }
        if !elem.is_scaled() && head_dim % width.lanes() == 0)
}

/// A score micro-kernel's registers and shape.
struct ScoreTile<'c> {
    elem: KvFormat,
    head_dim: usize,
    queries: QueryHeads,
    /// Query heads of a tile.
    heads: usize,
    blocks: KeyBlocks,
    /// Bytes into the keys, and into the queries.
    place: AsmRegister64,
    element: AsmRegister64,
    key: Vec<Vector>,
    query: Vector,
    sums: Vec<Vector>,
    held: Vec<Vector>,
    /// The factor of scores, then those of the elements.
    constants: &'c [VectorOperand],
}

fn score(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::Score { elem, head_dim, queries, scale } = ukernel else { return Ok(()) };
    let heads = match width {
        Width::Half => 2,
        Width::Full => 4,
    };
    let v = &mut Vectors { a, width };
    let mut regs = Regs::with_params(4);
    let (key, query) = (regs.several_numbered(width, KEY_VECTORS), regs.numbered(width));
    let constants = [scale].into_iter().chain(kv_elements::constants(elem));
    let mut constants = Constants::new(v, &mut regs, constants);
    let tile = ScoreTile {
        elem,
        head_dim,
        queries,
        heads,
        blocks: KeyBlocks::new(&mut regs, width),
        place: regs.general(),
        element: regs.general(),
        key,
        query,
        sums: regs.several_numbered(width, 4 * heads),
        held: regs.several_numbered(width, KEY_VECTORS * heads),
        constants: &constants.operands,
    };
    regs.save(v.a)?;
    constants.load(v)?;
    tile.blocks.walk(v, |v, keys, blocks| {
        (0..queries.rows()).step_by(heads).try_for_each(|first| tile.heads(v, keys, blocks, first))
    })?;
    regs.restore_and_return(v.a)?;
    constants.finish(v)
}

impl ScoreTile<'_> {
    /// The heads of a tile from one on.
    fn heads(
        &self,
        v: &mut Vectors<'_>,
        keys: &[KeyVector],
        blocks: usize,
        first: usize,
    ) -> Result<(), IcedError> {
        let rows = self.queries.rows();
        let heads = (rows - first).min(self.heads);
        let phases = keys.len();
        // Accumulators of a vector of keys and a head that are in registers at once.
        let sums: Vec<_> = self.sums.chunks(4 / phases).take(heads * phases).collect();
        for phase in 0..phases {
            let pass = (first / self.heads * phases + phase, phases * rows.div_ceil(self.heads));
            self.blocks.prefetch(v.a, blocks, self.elem.plane_bytes(self.head_dim), pass)?;
            sums.concat().iter().try_for_each(|sum| v.zero(*sum))?;
            self.products(v, keys, &sums, first, phase)?;
            for (number, (sums, held)) in sums.iter().zip(&self.held).enumerate() {
                let (head, key) = (first + number / phases, keys[number % phases]);
                let (left, right) = (sums[0], sums[1]);
                if phase + 1 < phases {
                    v.lanes(Lanes::Add, *held, left, right)?;
                    continue;
                }
                v.lanes(Lanes::Add, left, left, right)?;
                match **sums {
                    [_, _, left_2, right_2] => {
                        v.lanes(Lanes::Add, left_2, left_2, right_2)?;
                        v.lanes(Lanes::Add, left, left, left_2)?;
                    }
                    _ => v.lanes(Lanes::Add, left, *held, left)?,
                }
                v.lanes(Lanes::Mul, left, left, self.constants[0])?;
                v.store(Address::at(PARAMS[2]) + head * SCORE_STRIDE + key.out, left)?;
            }
        }
        Ok(())
    }

    /// Adds up products of one phase, of each four elements those that are its own: all of them of one vector
    /// of keys, or two of two.
    fn products(
        &self,
        v: &mut Vectors<'_>,
        keys: &[KeyVector],
        sums: &[&[Vector]],
        first: usize,
        phase: usize,
    ) -> Result<(), IcedError> {
        let together = sums[0].len();
        let row = self.elem.elements_bytes(BLOCK_TOKENS);
        v.a.xor(self.place, self.place)?;
        v.a.xor(self.element, self.element)?;
        let mut again = v.a.create_label();
        v.a.set_label(&mut again)?;
        for d in 0..together {
            let element = phase * together + d;
            for (key, to) in keys.iter().zip(&self.key) {
                let offset = element * row + self.elem.elements_bytes(key.first);
                let from = Address::at(key.keys) + self.place + offset;
                kv_elements::load(v, self.elem, &self.constants[1..], *to, from)?;
            }
            for (head, sums) in sums.chunks(keys.len()).enumerate() {
                let query = Address::at(PARAMS[1]) + self.element;
                let place = self.queries.place(first + head, self.head_dim);
                v.broadcast(self.query, query + (place + element * 4))?;
                for (sums, key) in sums.iter().zip(&self.key) {
                    v.fma(Fma::F231, sums[d], *key, self.query)?;
                }
            }
        }
        v.a.add(self.place, (4 * row) as i32)?;
        v.a.add(self.element, 16)?;
        v.a.cmp(self.element, (self.head_dim * 4) as i32)?;
        v.a.jne(again)
    }
}

fn value(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::Value { elem, head_dim, queries } = ukernel else { return Ok(()) };
    // Vectors of columns.
    let tile_vectors = match width {
        Width::Half => 2,
        Width::Full => 4,
    };
    let v = &mut Vectors { a, width };
    let mut regs = Regs::with_params(6);
    let [list, p, o, blocks, first, end] = PARAMS;
    let (row, ahead, token, stop) = (regs.general(), regs.general(), regs.general(), regs.general());
    let (block, skip) = (regs.general(), regs.general());
    let (columns, weight) = (regs.several_numbered(width, tile_vectors), regs.numbered(width));
    let mut constants = Constants::new(v, &mut regs, kv_elements::constants(elem));
    let sums = regs.several_numbered(width, tile_vectors * VALUE_HEADS);
    regs.save(v.a)?;
    constants.load(v)?;
    let mut done = v.a.create_label();
    v.a.cmp(first, end)?;
    v.a.jge(done)?;
    // Tokens are counted in bytes of their weights.
    v.a.imul_3(first, first, 4)?;
    v.a.imul_3(end, end, 4)?;
    let row_bytes = elem.elements_bytes(head_dim);
    let head_tiles = queries.rows().div_ceil(VALUE_HEADS);
    let passes = head_dim.div_ceil(tile_vectors * width.lanes()) * head_tiles;
    for (number, start) in (0..head_dim).step_by(tile_vectors * width.lanes()).enumerate() {
        let vectors = ((head_dim - start) / width.lanes()).min(tile_vectors);
        let columns = &columns[..vectors];
        for first_head in (0..queries.rows()).step_by(VALUE_HEADS) {
            let heads = (queries.rows() - first_head).min(VALUE_HEADS);
            let pass = number * head_tiles + first_head / VALUE_HEADS;
            let sums = &sums[..heads * vectors];
            let place = |sum: usize| {
                let column = start + sum % vectors * width.lanes();
                Address::at(o) + (queries.place(first_head + sum / vectors, head_dim) + column * 4)
            };
            for (number, sum) in sums.iter().enumerate() {
                v.load(*sum, place(number))?;
            }
            v.a.imul_3(skip, first, (row_bytes / 4) as i32)?;
            v.a.mov(token, first)?;
            v.a.xor(block, block)?;
            v.a.xor(stop, stop)?;
            let (mut next, mut again) = (v.a.create_label(), v.a.create_label());
            v.a.set_label(&mut next)?;
            v.a.mov(row, qword_ptr(list + block * 8))?;
            // The first row in view.
            v.a.add(row, skip)?;
            v.a.xor(skip, skip)?;
            v.a.mov(ahead, qword_ptr(list + block * 8 + BLOCKS_AHEAD * 8))?;
            prefetch::share(v.a, ahead, elem.plane_bytes(head_dim), (pass, passes))?;
            v.a.add(stop, (BLOCK_TOKENS * 4) as i32)?;
            v.a.cmp(stop, end)?;
            v.a.cmovg(stop, end)?;
            v.a.set_label(&mut again)?;
            for (vector, column) in columns.iter().enumerate() {
                let from = Address::at(row) + elem.elements_bytes(start + vector * width.lanes());
                kv_elements::load(v, elem, &constants.operands, *column, from)?;
            }
            for (head, sums) in sums.chunks(vectors).enumerate() {
                v.broadcast(weight, Address::at(p) + token + (first_head + head) * SCORE_STRIDE)?;
                for (sum, column) in sums.iter().zip(columns) {
                    v.fma(Fma::F231, *sum, *column, weight)?;
                }
            }
            v.a.add(row, row_bytes as i32)?;
            v.a.add(token, 4)?;
            v.a.cmp(token, stop)?;
            v.a.jl(again)?;
            v.a.inc(block)?;
            v.a.cmp(block, blocks)?;
            v.a.jl(next)?;
            for (number, sum) in sums.iter().enumerate() {
                v.store(place(number), *sum)?;
            }
        }
    }
    v.a.set_label(&mut done)?;
    regs.restore_and_return(v.a)?;
    constants.finish(v)
}
