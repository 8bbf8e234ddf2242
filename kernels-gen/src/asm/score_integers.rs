//! `IntegerScore` in 256 bits, with AVX-VNNI and without, and in 512 bits with AVX-512 VNNI.
//!
//! Tile: two vectors of keys x up to 4 query heads in 256 bits, 8 in 512, a word of each at a time. Without
//! VNNI keys are made signed again, and the signs of keys go to the queries: products of 127 at most, whose
//! pairs fit in 16 bits; halves of bytes are small enough as they are. Their sums are exact either way. Every
//! pass over a block prefetches its share of a later one. Clobbers: caller-saved registers and flags;
//! callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::constants::Constants;
use super::key_blocks::{KEY_VECTORS, KeyBlocks, KeyVector};
use super::narrow::Packed;
use super::regs::{PARAMS, Regs};
use super::vector::{Address, Lanes, Vector, Vectors, Width};
use crate::ukernel::{MicroKernel, QueryLayout, SCORE_STRIDE};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler};
use kernmill_plan::format::LINE;
use kernmill_plan::kv::KvFormat;
use kernmill_plan::target::Features;

/// 512 bits.
pub const AVX512_VNNI: AsmKernel = AsmKernel {
    name: "score_integers_avx512_vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| score(a, ukernel, Width::Full, true),
};

/// 256 bits, with `vpdpbusd`.
pub const AVX_VNNI: AsmKernel = AsmKernel {
    name: "score_integers_avx_vnni",
    needs: Features::FLOOR.and(Features::AVX_VNNI),
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| score(a, ukernel, Width::Half, true),
};

/// 256 bits, for every level.
pub const AVX2: AsmKernel = AsmKernel {
    name: "score_integers_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| score(a, ukernel, Width::Half, false),
};

fn serves(ukernel: MicroKernel) -> bool {
    matches!(ukernel, MicroKernel::IntegerScore { .. })
}

struct IntegerScoreTile {
    elem: KvFormat,
    /// Whether bytes of keys hold two integers.
    has_halves: bool,
    head_dim: usize,
    group: usize,
    /// Query heads.
    heads: usize,
    vnni: bool,
    blocks: KeyBlocks,
    /// Bytes into the queries, and into the keys.
    element: AsmRegister64,
    line: AsmRegister64,
    key: Vec<Vector>,
    /// Magnitudes of keys, or the low halves of their bytes.
    sizes: Vec<Vector>,
    query: Vector,
    product: Vector,
    /// The top bit of every byte, or its low half, and words of 1.
    bits: Vector,
    ones: Vector,
    sums: Vec<Vector>,
}

fn score(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width, vnni: bool) -> Result<(), IcedError> {
    let MicroKernel::IntegerScore { elem, head_dim, group } = ukernel else { return Ok(()) };
    let heads = match width {
        Width::Half => 4,
        Width::Full => 8,
    };
    let v = &mut Vectors { a, width };
    let mut regs = Regs::with_params(4);
    let has_halves = elem.words().is_some_and(|words| words.elements == 8);
    let tile = IntegerScoreTile {
        elem,
        has_halves,
        head_dim,
        group,
        heads,
        vnni,
        blocks: KeyBlocks::new(&mut regs, width),
        element: regs.general(),
        line: regs.general(),
        key: regs.several_numbered(width, KEY_VECTORS),
        sizes: regs.several_numbered(width, KEY_VECTORS),
        query: regs.numbered(width),
        product: regs.numbered(width),
        bits: regs.numbered(width),
        ones: regs.numbered(width),
        sums: regs.several_numbered(width, KEY_VECTORS * heads),
    };
    let bits = if has_halves { 0x0f0f_0f0f } else { 0x8080_8080 };
    let constants: &[_] = &[(tile.bits, bits), (tile.ones, 0x0001_0001)];
    let used = if has_halves || !vnni { constants } else { &[] };
    let mut constants = Constants::in_registers(v, used);
    regs.save(v.a)?;
    constants.load(v)?;
    tile.blocks.walk(v, |v, keys, blocks| {
        (0..group).step_by(heads).try_for_each(|first| tile.heads(v, keys, blocks, first))
    })?;
    regs.restore_and_return(v.a)?;
    constants.finish(v)
}

impl IntegerScoreTile {
    /// The heads of a tile from one on.
    fn heads(
        &self,
        v: &mut Vectors<'_>,
        keys: &[KeyVector],
        blocks: usize,
        first: usize,
    ) -> Result<(), IcedError> {
        let [_, q, out, ..] = PARAMS;
        let layout = QueryLayout::new(self.head_dim, self.group);
        let pass = (first / self.heads, self.group.div_ceil(self.heads));
        self.blocks.prefetch(v.a, blocks, self.elem.plane_bytes(self.head_dim), pass)?;
        let heads = (self.group - first).min(self.heads);
        let sums = &self.sums[..heads * keys.len()];
        for (head, sums) in (first..).zip(sums.chunks(keys.len())) {
            for sum in sums {
                match self.vnni || self.has_halves {
                    true => v.broadcast(*sum, Address::at(q) + layout.sums + head * 4)?,
                    false => v.zero(*sum)?,
                }
            }
        }
        self.products(v, keys, sums, first)?;
        for (key, scales) in keys.iter().zip(&self.key) {
            v.load(*scales, Address::at(key.keys) + key.first * 4)?;
        }
        for (head, sums) in (first..).zip(sums.chunks(keys.len())) {
            let factor = v.repeated(Address::at(q) + layout.factors + head * 4, self.query)?;
            for ((sum, scales), key) in sums.iter().zip(&self.key).zip(keys) {
                v.convert_to_f32(*sum, *sum)?;
                v.lanes(Lanes::Mul, *sum, *sum, *scales)?;
                v.lanes(Lanes::Mul, *sum, *sum, factor)?;
                v.store(Address::at(out) + head * SCORE_STRIDE + key.out, *sum)?;
            }
        }
        Ok(())
    }

    fn products(
        &self,
        v: &mut Vectors<'_>,
        keys: &[KeyVector],
        sums: &[Vector],
        first: usize,
    ) -> Result<(), IcedError> {
        v.a.xor(self.element, self.element)?;
        v.a.xor(self.line, self.line)?;
        let mut again = v.a.create_label();
        v.a.set_label(&mut again)?;
        for (from, (key, sizes)) in keys.iter().zip(self.key.iter().zip(&self.sizes)) {
            let words = Address::at(from.keys) + self.line + self.elem.scales_bytes() + from.first * 4;
            if self.has_halves {
                v.load(*key, words)?;
                v.lanes(Lanes::And, *sizes, *key, self.bits)?;
                v.shift_right(*key, *key, 4)?;
                v.lanes(Lanes::And, *key, *key, self.bits)?;
            } else if self.vnni {
                v.load(*key, words)?;
            } else {
                v.lanes(Lanes::Xor, *key, self.bits, words)?;
                v.abs_bytes(*sizes, *key)?;
            }
        }
        // Queries' words in the order of the keys that they are multiplied with.
        let parts = if self.has_halves { vec![&self.sizes, &self.key] } else { vec![&self.key] };
        for (head, sums) in (first..).zip(sums.chunks(keys.len())) {
            for (word, part) in parts.iter().enumerate() {
                let query = Address::at(PARAMS[1]) + self.element;
                v.broadcast(self.query, query + head * self.head_dim + word * 4)?;
                for ((sum, key), sizes) in sums.iter().zip(*part).zip(&self.sizes) {
                    if self.vnni {
                        v.packed(Packed::AddBytes, *sum, *key, self.query)?;
                        continue;
                    }
                    if self.has_halves {
                        v.packed(Packed::BytePairs, self.product, *key, self.query)?;
                    } else {
                        v.packed(Packed::Sign, self.product, self.query, *key)?;
                        v.packed(Packed::BytePairs, self.product, *sizes, self.product)?;
                    }
                    v.packed(Packed::WordPairs, self.product, self.product, self.ones)?;
                    v.lanes(Lanes::AddInt, *sum, *sum, self.product)?;
                }
            }
        }
        v.a.add(self.line, LINE as i32)?;
        v.a.add(self.element, 4 * parts.len() as i32)?;
        v.a.cmp(self.element, self.head_dim as i32)?;
        v.a.jne(again)
    }
}
