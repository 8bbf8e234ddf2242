//! `IntegerScore` in 256 bits, with AVX-VNNI and without.
//!
//! Tile: the 16 keys of a block (two vectors of words) x up to 4 query heads. Without VNNI keys are made
//! signed again, and the signs of keys go to the queries: products of 127 at most, whose pairs fit in 16
//! bits; halves of bytes are small enough as they are. Their sums are exact either way. Every pass over a
//! block prefetches its share of a later one. Clobbers: caller-saved registers and flags; callee-saved ones
//! are pushed and popped.

use super::AsmKernel;
use super::prefetch;
use super::regs::{PARAMS, Regs};
use crate::ukernel::{BLOCKS_AHEAD, MicroKernel, QueryLayout, SCORE_STRIDE};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr, ymmword_ptr,
};
use kernmill_plan::format::LINE;
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};
use kernmill_plan::target::Features;

/// Query heads of a tile.
const HEADS: usize = 4;
/// Vectors of a block's keys.
const VECTORS: usize = 2;
/// Keys of a vector.
const LANES: usize = BLOCK_TOKENS / VECTORS;

/// The version with `vpdpbusd`.
pub const VNNI: AsmKernel = AsmKernel {
    name: "score_integers_avx_vnni",
    needs: Features::FLOOR.and(Features::AVX_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::IntegerScore { .. }),
    assemble: |a, ukernel| assemble(a, &ukernel, true),
};

/// The version for every level.
pub const PLAIN: AsmKernel = AsmKernel {
    name: "score_integers_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::IntegerScore { .. }),
    assemble: |a, ukernel| assemble(a, &ukernel, false),
};

fn assemble(a: &mut CodeAssembler, ukernel: &MicroKernel, vnni: bool) -> Result<(), IcedError> {
    match *ukernel {
        MicroKernel::IntegerScore { elem, head_dim, group } => score(a, elem, head_dim, group, vnni),
        _ => Ok(()),
    }
}

struct ScoreTileAvx2 {
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    vnni: bool,
    q: AsmRegister64,
    out: AsmRegister64,
    keys: AsmRegister64,
    ahead: AsmRegister64,
    /// Bytes into the queries, and into the keys.
    element: AsmRegister64,
    line: AsmRegister64,
    key: Vec<AsmRegisterYmm>,
    /// Magnitudes of keys, or the low halves of their bytes.
    sizes: Vec<AsmRegisterYmm>,
    query: AsmRegisterYmm,
    product: AsmRegisterYmm,
    /// The top bit of every byte, or its low half, and words of 1.
    bits: AsmRegisterYmm,
    ones: AsmRegisterYmm,
    sums: Vec<AsmRegisterYmm>,
    constants: [CodeLabel; 2],
}

fn score(
    a: &mut CodeAssembler,
    elem: KvFormat,
    head_dim: usize,
    group: usize,
    vnni: bool,
) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [list, q, out, blocks] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let mut tile = ScoreTileAvx2 {
        elem,
        head_dim,
        group,
        vnni,
        q,
        out,
        keys: regs.general(),
        ahead: regs.general(),
        element: regs.general(),
        line: regs.general(),
        key: regs.halves(VECTORS),
        sizes: regs.halves(VECTORS),
        query: regs.half(),
        product: regs.half(),
        bits: regs.half(),
        ones: regs.half(),
        sums: regs.halves(VECTORS * HEADS),
        constants: [a.create_label(), a.create_label()],
    };
    let (mut next, mut done) = (a.create_label(), a.create_label());
    regs.save(a)?;
    if tile.has_halves() || !vnni {
        a.vpbroadcastd(tile.bits, dword_ptr(tile.constants[0]))?;
        a.vpbroadcastd(tile.ones, dword_ptr(tile.constants[1]))?;
    }
    a.set_label(&mut next)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    a.mov(tile.keys, qword_ptr(list))?;
    a.mov(tile.ahead, qword_ptr(list + BLOCKS_AHEAD * 8))?;
    for first in (0..group).step_by(HEADS) {
        tile.heads(a, first)?;
    }
    a.add(list, 8)?;
    a.add(out, (BLOCK_TOKENS * 4) as i32)?;
    a.dec(blocks)?;
    a.jmp(next)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    if tile.has_halves() || !vnni {
        a.set_label(&mut tile.constants[0])?;
        a.dd(&[if tile.has_halves() { 0x0f0f_0f0f } else { 0x8080_8080 }])?;
        a.set_label(&mut tile.constants[1])?;
        a.dd(&[0x0001_0001])?;
    }
    Ok(())
}

impl ScoreTileAvx2 {
    /// Whether bytes of keys hold two integers.
    fn has_halves(&self) -> bool {
        self.elem.words().is_some_and(|words| words.elements == 8)
    }

    fn heads(&self, a: &mut CodeAssembler, first: usize) -> Result<(), IcedError> {
        let heads = (self.group - first).min(HEADS);
        let layout = QueryLayout::new(self.head_dim, self.group);
        let pass = (first / HEADS, self.group.div_ceil(HEADS));
        prefetch::share(a, self.ahead, self.elem.plane_bytes(self.head_dim), pass)?;
        for head in 0..heads {
            for sum in &self.sums[head * VECTORS..][..VECTORS] {
                match self.vnni || self.has_halves() {
                    true => a.vpbroadcastd(*sum, dword_ptr(self.q + (layout.sums + (first + head) * 4)))?,
                    false => a.vpxor(*sum, *sum, *sum)?,
                }
            }
        }
        self.products(a, first, heads)?;
        for (vector, key) in self.key.iter().enumerate() {
            a.vmovups(*key, ymmword_ptr(self.keys + vector * LANES * 4))?;
        }
        for head in 0..heads {
            a.vbroadcastss(self.query, dword_ptr(self.q + (layout.factors + (first + head) * 4)))?;
            for (vector, sum) in self.sums[head * VECTORS..][..VECTORS].iter().enumerate() {
                a.vcvtdq2ps(*sum, *sum)?;
                a.vmulps(*sum, *sum, self.key[vector])?;
                a.vmulps(*sum, *sum, self.query)?;
                let place = (first + head) * SCORE_STRIDE + vector * LANES * 4;
                a.vmovups(ymmword_ptr(self.out + place), *sum)?;
            }
        }
        Ok(())
    }

    fn products(&self, a: &mut CodeAssembler, first: usize, heads: usize) -> Result<(), IcedError> {
        a.xor(self.element, self.element)?;
        a.xor(self.line, self.line)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        for (vector, key) in self.key.iter().enumerate() {
            let words = self.keys + self.line + (self.elem.scales_bytes() + vector * LANES * 4);
            if self.has_halves() {
                a.vmovdqu(*key, ymmword_ptr(words))?;
                a.vpand(self.sizes[vector], *key, self.bits)?;
                a.vpsrld(*key, *key, 4)?;
                a.vpand(*key, *key, self.bits)?;
            } else if self.vnni {
                a.vmovdqu(*key, ymmword_ptr(words))?;
            } else {
                a.vpxor(*key, self.bits, ymmword_ptr(words))?;
                a.vpabsb(self.sizes[vector], *key)?;
            }
        }
        // Queries' words in the order of the keys that they are multiplied with.
        let keys = if self.has_halves() { vec![&self.sizes, &self.key] } else { vec![&self.key] };
        for head in 0..heads {
            for (word, keys) in keys.iter().enumerate() {
                let query = self.q + self.element + ((first + head) * self.head_dim + word * 4);
                a.vpbroadcastd(self.query, dword_ptr(query))?;
                for (vector, sum) in self.sums[head * VECTORS..][..VECTORS].iter().enumerate() {
                    if self.vnni {
                        a.vpdpbusd(*sum, keys[vector], self.query)?;
                        continue;
                    }
                    if self.has_halves() {
                        a.vpmaddubsw(self.product, keys[vector], self.query)?;
                    } else {
                        a.vpsignb(self.product, self.query, keys[vector])?;
                        a.vpmaddubsw(self.product, self.sizes[vector], self.product)?;
                    }
                    a.vpmaddwd(self.product, self.product, self.ones)?;
                    a.vpaddd(*sum, *sum, self.product)?;
                }
            }
        }
        a.add(self.line, LINE as i32)?;
        a.add(self.element, 4 * keys.len() as i32)?;
        a.cmp(self.element, self.head_dim as i32)?;
        a.jne(again)
    }
}
