//! `IntegerScore` in 512 bits. Needs AVX-512 VNNI.
//!
//! Tile: the 16 keys (the lanes) of two blocks x up to 8 query heads, a word of each at a time, so that a
//! query's word serves two products. A last odd block is a separate tile. Every pass over a block
//! prefetches its share of a later one. Clobbers: caller-saved registers and flags; callee-saved ones are
//! pushed and popped.

use super::AsmKernel;
use super::prefetch;
use super::regs::{PARAMS, Regs};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, QueryLayout, SCORE_STRIDE};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, dword_bcst, dword_ptr, qword_ptr, zmmword_ptr,
};
use kernmill_plan::format::LINE;
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::target::Features;

/// Query heads of a tile.
const HEADS: usize = 8;
/// Blocks of a tile.
const BLOCKS: usize = 2;

/// The version.
pub const VNNI: AsmKernel = AsmKernel {
    name: "score_integers_avx512_vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::IntegerScore { .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::IntegerScore { elem, head_dim, group } => score(a, elem, head_dim, group),
        _ => Ok(()),
    },
};

struct ScoreTileAvx512 {
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    /// Pointer to the blocks' pointers.
    list: AsmRegister64,
    q: AsmRegister64,
    out: AsmRegister64,
    /// Keys of the blocks, and of those to prefetch meanwhile.
    keys: [AsmRegister64; BLOCKS],
    ahead: [AsmRegister64; BLOCKS],
    /// Bytes into the queries, and into the keys.
    element: AsmRegister64,
    line: AsmRegister64,
    key: Vec<AsmRegisterZmm>,
    /// The low halves of keys' bytes, and what takes halves out of bytes.
    low: Vec<AsmRegisterZmm>,
    halves: AsmRegisterZmm,
    query: AsmRegisterZmm,
    sums: Vec<AsmRegisterZmm>,
}

fn score(a: &mut CodeAssembler, elem: KvFormat, head_dim: usize, group: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, q, out, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let tile = ScoreTileAvx512 {
        elem,
        head_dim,
        group,
        list,
        q,
        out,
        keys: [regs.general(), regs.general()],
        ahead: [regs.general(), regs.general()],
        element: regs.general(),
        line: regs.general(),
        key: regs.vectors(BLOCKS),
        low: regs.vectors(BLOCKS),
        halves: regs.vector(),
        query: regs.vector(),
        sums: regs.vectors(BLOCKS * HEADS),
    };
    let (mut pairs, mut odd, mut done) = (a.create_label(), a.create_label(), a.create_label());
    let mut constants = a.create_label();
    regs.save(a)?;
    if tile.has_halves() {
        a.vpbroadcastd(tile.halves, dword_ptr(constants))?;
    }
    a.set_label(&mut pairs)?;
    a.cmp(blocks, BLOCKS as i32)?;
    a.jl(odd)?;
    tile.blocks(a, BLOCKS)?;
    a.sub(blocks, BLOCKS as i32)?;
    a.jmp(pairs)?;
    a.set_label(&mut odd)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    tile.blocks(a, 1)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    if tile.has_halves() {
        a.set_label(&mut constants)?;
        a.dd(&[0x0f0f_0f0f])?;
    }
    Ok(())
}

impl ScoreTileAvx512 {
    /// Whether bytes of keys hold two integers.
    fn has_halves(&self) -> bool {
        self.elem.words().is_some_and(|words| words.elements == 8)
    }

    /// The next `count` blocks against all heads; goes on to the blocks behind them.
    fn blocks(&self, a: &mut CodeAssembler, count: usize) -> Result<(), IcedError> {
        for block in 0..count {
            a.mov(self.keys[block], qword_ptr(self.list + block * 8))?;
            a.mov(self.ahead[block], qword_ptr(self.list + (block + BLOCKS_AHEAD) * 8))?;
        }
        for first in (0..self.group).step_by(HEADS) {
            self.heads(a, count, first)?;
        }
        a.add(self.list, (count * 8) as i32)?;
        a.add(self.out, (count * BLOCK_TOKENS * 4) as i32)
    }

    fn heads(&self, a: &mut CodeAssembler, count: usize, first: usize) -> Result<(), IcedError> {
        let heads = (self.group - first).min(HEADS);
        let layout = QueryLayout::new(self.head_dim, self.group);
        let pass = (first / HEADS, self.group.div_ceil(HEADS));
        for ahead in &self.ahead[..count] {
            prefetch::share(a, *ahead, self.elem.plane_bytes(self.head_dim), pass)?;
        }
        let sum = |head: usize, block: usize| self.sums[head * count + block];
        for head in 0..heads {
            for block in 0..count {
                let start = self.q + (layout.sums + (first + head) * 4);
                a.vpbroadcastd(sum(head, block), dword_ptr(start))?;
            }
        }
        self.products(a, count, first, heads)?;
        for block in 0..count {
            a.vmovups(self.key[block], zmmword_ptr(self.keys[block]))?;
        }
        for head in 0..heads {
            for block in 0..count {
                let sum = sum(head, block);
                a.vcvtdq2ps(sum, sum)?;
                a.vmulps(sum, sum, self.key[block])?;
                a.vmulps(sum, sum, dword_bcst(self.q + (layout.factors + (first + head) * 4)))?;
                let place = (first + head) * SCORE_STRIDE + block * BLOCK_TOKENS * 4;
                a.vmovups(zmmword_ptr(self.out + place), sum)?;
            }
        }
        Ok(())
    }

    fn products(
        &self,
        a: &mut CodeAssembler,
        count: usize,
        first: usize,
        heads: usize,
    ) -> Result<(), IcedError> {
        a.xor(self.element, self.element)?;
        a.xor(self.line, self.line)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        for block in 0..count {
            a.vmovups(self.key[block], zmmword_ptr(self.keys[block] + self.line + self.elem.scales_bytes()))?;
            if self.has_halves() {
                a.vpandd(self.low[block], self.key[block], self.halves)?;
                a.vpsrld(self.key[block], self.key[block], 4)?;
                a.vpandd(self.key[block], self.key[block], self.halves)?;
            }
        }
        // Queries' words in the order of the keys that they are multiplied with.
        let keys = if self.has_halves() { vec![&self.low, &self.key] } else { vec![&self.key] };
        for head in 0..heads {
            for (word, keys) in keys.iter().enumerate() {
                let query = self.q + self.element + ((first + head) * self.head_dim + word * 4);
                a.vpbroadcastd(self.query, dword_ptr(query))?;
                for block in 0..count {
                    a.vpdpbusd(self.sums[head * count + block], keys[block], self.query)?;
                }
            }
        }
        a.add(self.line, LINE as i32)?;
        a.add(self.element, 4 * keys.len() as i32)?;
        a.cmp(self.element, self.head_dim as i32)?;
        a.jne(again)
    }
}
