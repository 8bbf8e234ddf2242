//! `GemmQ8` in 256 bits without VNNI. Needs AVX2 and FMA.
//!
//! Tile of a pass: 16 rows (the lanes, eight to a vector) x up to 6 tokens, whose integer sums take twelve
//! registers; the f32 sums stay in memory, since a block adds to them once. An activation is broadcast once
//! for both vectors. One multiplication and one addition for as many products as it has:
//! - pairs: `vpmaddubsw` makes 16 bits of two products, and all sixteen of a lane fit 16 bits in the end
//!   (ukernel/gemm_q8.rs). They are widened once a block.
//! - words: bytes would not fit, so that they are int16, and `vpmaddwd` makes 32 bits of two products.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_q8::{Decoded, DecodedNumber, DotStep, GROUP, PanelLayout};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr,
    ymmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "gemm_q8_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| ukernel.is_gemm(DotStep::K2),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmQ8 { weights, tiles, tokens } => {
            GemmQ8Avx2Plain::new(a, weights, tokens).emit(a, tiles)
        }
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Two int16 ones.
const ONES: u32 = 0x0001_0001;
/// Tokens whose sums one pointer reaches.
const TOKENS_PER_BASE: usize = 3;

/// Two registers, one for each vector of rows.
type RegisterPair = [AsmRegisterYmm; 2];

struct GemmQ8Avx2Plain {
    weights: Decoded,
    layout: PanelLayout,
    regs: Regs,
    /// Weights of one tile, advancing, as are the next two.
    decoded: AsmRegister64,
    panel: AsmRegister64,
    blocks: AsmRegister64,
    /// Where the tile's sums of the first token and of the fourth are.
    sums: [AsmRegister64; 2],
    line: RegisterPair,
    /// The second is that of the activations too.
    products: RegisterPair,
    /// By token.
    ints: Vec<RegisterPair>,
    ones: CodeLabel,
}

impl GemmQ8Avx2Plain {
    fn new(a: &mut CodeAssembler, weights: Decoded, tokens: usize) -> GemmQ8Avx2Plain {
        let mut regs = Regs::with_params(6);
        let [decoded, panel, blocks, first, fourth] = [(); 5].map(|()| regs.general());
        let mut pair = || [regs.half(), regs.half()];
        let (line, products) = (pair(), pair());
        let ints = (0..tokens).map(|_| pair()).collect();
        let (sums, ones) = ([first, fourth], a.create_label());
        GemmQ8Avx2Plain {
            weights,
            layout: weights.panel(),
            regs,
            decoded,
            panel,
            blocks,
            sums,
            line,
            products,
            ints,
            ones,
        }
    }

    fn emit(mut self, a: &mut CodeAssembler, tiles: usize) -> Result<(), IcedError> {
        let [weights, panel, sums, blocks, stride, gap] = PARAMS;
        self.regs.save(a)?;
        let mut done = a.create_label();
        a.test(blocks, blocks)?;
        a.je(done)?;
        a.lea(SCRATCH, qword_ptr(self.ones))?;
        a.mov(self.sums[0], sums)?;
        for tile in 0..tiles {
            if tile > 0 {
                a.add(self.sums[0], gap)?;
            }
            if self.ints.len() > TOKENS_PER_BASE {
                a.lea(self.sums[1], qword_ptr(self.sums[0] + stride * 2))?;
                a.add(self.sums[1], stride)?;
            }
            a.lea(self.decoded, qword_ptr(weights + tile * self.weights.tile_bytes()))?;
            a.mov(self.panel, panel)?;
            a.mov(self.blocks, blocks)?;
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            self.one_block(a)?;
            a.add(self.decoded, self.weights.block_bytes() as i32)?;
            a.add(self.panel, self.layout.block as i32)?;
            a.dec(self.blocks)?;
            a.jne(again)?;
        }
        a.set_label(&mut done)?;
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.ones)?;
        a.dd(&[ONES])
    }

    fn in_pairs(&self) -> bool {
        self.weights.number == DecodedNumber::U8Pairwise
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        (0..self.weights.parts).try_for_each(|part| self.one_part(a, part))
    }

    fn one_part(&self, a: &mut CodeAssembler, part: usize) -> Result<(), IcedError> {
        let quads = BLOCK / 4 / self.weights.parts;
        let quads = part * quads..(part + 1) * quads;
        let mut lines: Vec<usize> = quads.clone().collect();
        if self.in_pairs() {
            for (token, int) in self.ints.iter().enumerate() {
                let start = dword_ptr(self.panel + (self.layout.starts + token * 4));
                int.iter().try_for_each(|int| a.vpbroadcastd(*int, start))?;
            }
        } else {
            lines.extend(quads.map(|quad| BLOCK / 4 + quad));
        }
        for (i, line) in lines.into_iter().enumerate() {
            for (vector, to) in self.line.into_iter().enumerate() {
                let at = self.weights.data() + line * LINE + vector * BYTES;
                a.vmovdqu(to, ymmword_ptr(self.decoded + at))?;
            }
            for token in 0..self.ints.len() {
                self.multiply(a, token, line, i == 0)?;
            }
        }
        for (vector, w) in self.line.into_iter().enumerate() {
            a.vmovups(w, ymmword_ptr(self.decoded + (self.weights.scales(part) + vector * BYTES)))?;
        }
        if self.in_pairs() {
            a.vpbroadcastd(self.products[0], dword_ptr(SCRATCH))?;
        }
        (0..self.ints.len()).try_for_each(|token| self.scale(a, token, part))
    }

    /// Adds the products of a loaded line and a token's activations to the token's sums, or starts these with
    /// them.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        token: usize,
        line: usize,
        first: bool,
    ) -> Result<(), IcedError> {
        let ([low, high], [product, activations], [x, y]) = (self.line, self.products, self.ints[token]);
        a.vpbroadcastd(activations, dword_ptr(self.panel + (token * self.layout.row + line * 4)))?;
        // Both multiplications before both additions: a Zen divides these among its units better than one
        // after the other.
        if self.in_pairs() {
            a.vpmaddubsw(product, low, activations)?;
            a.vpmaddubsw(activations, high, activations)?;
            a.vpaddw(x, x, product)?;
            return a.vpaddw(y, y, activations);
        }
        if first {
            a.vpmaddwd(x, low, activations)?;
            return a.vpmaddwd(y, high, activations);
        }
        a.vpmaddwd(product, low, activations)?;
        a.vpmaddwd(activations, high, activations)?;
        a.vpaddd(x, x, product)?;
        a.vpaddd(y, y, activations)
    }

    /// Adds a part of a block to a token's f32 sums.
    fn scale(&self, a: &mut CodeAssembler, token: usize, part: usize) -> Result<(), IcedError> {
        let [ones, scale] = self.products;
        a.vbroadcastss(scale, dword_ptr(self.panel + (self.layout.scales + token * 4)))?;
        for (vector, (int, w)) in self.ints[token].into_iter().zip(self.line).enumerate() {
            if self.in_pairs() {
                a.vpmaddwd(int, int, ones)?;
            }
            a.vcvtdq2ps(int, int)?;
            a.vmulps(int, int, w)?;
            a.vfmadd213ps(int, scale, self.place(token, vector))?;
            if !self.weights.minima {
                a.vmovups(self.place(token, vector), int)?;
            }
        }
        if !self.weights.minima {
            return Ok(());
        }
        let sum = self.layout.sums + 4 * (part * GROUP + token);
        a.vbroadcastss(scale, dword_ptr(self.panel + sum))?;
        for (vector, int) in self.ints[token].into_iter().enumerate() {
            let minima = self.weights.minima(part) + vector * BYTES;
            a.vfmadd231ps(int, scale, ymmword_ptr(self.decoded + minima))?;
            a.vmovups(self.place(token, vector), int)?;
        }
        Ok(())
    }

    /// The tile's sums of a token and a vector of rows.
    fn place(&self, token: usize, vector: usize) -> AsmMemoryOperand {
        let (base, stride) = (self.sums[token / TOKENS_PER_BASE], PARAMS[4]);
        match token % TOKENS_PER_BASE {
            0 => ymmword_ptr(base + vector * BYTES),
            1 => ymmword_ptr(base + stride + vector * BYTES),
            _ => ymmword_ptr(base + stride * 2 + vector * BYTES),
        }
    }
}
