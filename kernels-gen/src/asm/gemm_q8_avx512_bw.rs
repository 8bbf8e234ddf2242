//! `GemmQ8` in 512 bits for CPUs without VNNI. Needs AVX-512 F and BW.
//!
//! Rows are lanes, 16 to a vector; an int32 and a f32 accumulator per vector and token, up to 6 tokens a
//! pass.
//! - small weights (at most 63): one tile a pass. Pairs of products (`vpmaddubsw`) are at least -2 * 63 *
//!   128, so two of them add up in 16 bits before `vpmaddwd` by ones widens them.
//! - bytes: both tiles in a pass. Unsigned weights times activations would saturate: the weight's sign bit is
//!   flipped back (q in [-127, 127]) and the activation's sign moves to it by a choice between the weight and
//!   its negative. The products are those of signed weights, so a block starts from `MAGIC` itself,
//!   uncorrected.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_q8::{Decoded, DotStep, GROUP, MAGIC};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, dword_bcst, dword_ptr, k1, qword_ptr,
    zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "gemm_q8_avx512bw",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| ukernel.is_gemm(DotStep::K4),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::GemmQ8 { weights, tiles, tokens } => {
            GemmQ8Avx512Bw::new(a, weights, tiles, tokens).emit(a)
        }
        _ => Ok(()),
    },
};

struct GemmQ8Avx512Bw {
    decoded: Decoded,
    small: bool,
    tiles: usize,
    regs: Regs,
    /// Weights of one pass, advancing, as are the next two.
    weights: AsmRegister64,
    panel: AsmRegister64,
    blocks: AsmRegister64,
    /// Lines of weights: one of each tile, or two of one tile for small weights.
    lines: [AsmRegisterZmm; 2],
    /// For bytes: the negatives of `lines`.
    negatives: [AsmRegisterZmm; 2],
    temporary: [AsmRegisterZmm; 2],
    /// Thirty-two 1, as int16.
    ones: AsmRegisterZmm,
    /// `[token][tile of the pass]`.
    ints: Vec<AsmRegisterZmm>,
    /// Sums in f32, laid out as `ints`.
    floats: Vec<AsmRegisterZmm>,
    constants: CodeLabel,
}

impl GemmQ8Avx512Bw {
    fn new(a: &mut CodeAssembler, decoded: Decoded, tiles: usize, tokens: usize) -> GemmQ8Avx512Bw {
        let mut regs = Regs::with_params(6);
        let small = decoded.is_small();
        let accumulators = if small { tokens } else { tiles * tokens };
        GemmQ8Avx512Bw {
            decoded,
            small,
            tiles,
            weights: regs.general(),
            panel: regs.general(),
            blocks: regs.general(),
            lines: [regs.vector(), regs.vector()],
            negatives: [regs.vector(), regs.vector()],
            temporary: [regs.vector(), regs.vector()],
            ones: regs.vector(),
            ints: regs.vectors(accumulators),
            floats: regs.vectors(accumulators),
            regs,
            constants: a.create_label(),
        }
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let blocks = PARAMS[3];
        self.regs.save(a)?;
        let mut done = a.create_label();
        a.test(blocks, blocks)?;
        a.je(done)?;
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        a.vpbroadcastd(self.ones, dword_ptr(SCRATCH))?;
        if self.small {
            (0..self.tiles).try_for_each(|tile| self.pass(a, &[tile]))?;
        } else {
            self.pass(a, &[0, 1][..self.tiles])?;
        }
        a.set_label(&mut done)?;
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.constants)?;
        a.dd(&[0x0001_0001, 0x8080_8080, MAGIC.to_bits()])
    }

    /// All blocks and tokens of the given tiles.
    fn pass(&self, a: &mut CodeAssembler, tiles: &[usize]) -> Result<(), IcedError> {
        let [weights, panel, sums, blocks, stride, gap] = PARAMS;
        let to_sums = |a: &mut CodeAssembler| {
            a.mov(SCRATCH, sums)?;
            (0..tiles[0]).try_for_each(|_| a.add(SCRATCH, gap))
        };
        to_sums(a)?;
        for token in self.floats.chunks(tiles.len()) {
            a.vmovups(token[0], zmmword_ptr(SCRATCH))?;
            if let Some(second) = token.get(1) {
                a.vmovups(*second, zmmword_ptr(SCRATCH + gap))?;
            }
            a.add(SCRATCH, stride)?;
        }
        a.lea(self.weights, qword_ptr(weights + tiles[0] * self.decoded.tile_bytes()))?;
        a.mov(self.panel, panel)?;
        a.mov(self.blocks, blocks)?;
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        self.one_block(a, tiles.len())?;
        a.add(self.weights, self.decoded.block_bytes() as i32)?;
        a.add(self.panel, self.decoded.panel().block as i32)?;
        a.dec(self.blocks)?;
        a.jne(again)?;
        to_sums(a)?;
        for token in self.floats.chunks(tiles.len()) {
            a.vmovups(zmmword_ptr(SCRATCH), token[0])?;
            if let Some(second) = token.get(1) {
                a.vmovups(zmmword_ptr(SCRATCH + gap), *second)?;
            }
            a.add(SCRATCH, stride)?;
        }
        Ok(())
    }

    /// One block of a pass; the scratch register points to the constants.
    fn one_block(&self, a: &mut CodeAssembler, tiles: usize) -> Result<(), IcedError> {
        (0..self.decoded.parts).try_for_each(|part| self.one_part(a, tiles, part))
    }

    fn one_part(&self, a: &mut CodeAssembler, tiles: usize, part: usize) -> Result<(), IcedError> {
        let (decoded, layout) = (self.decoded, self.decoded.panel());
        let place = |token: usize| 4 * (part * GROUP + token);
        let at =
            |tile: usize, offset: usize| zmmword_ptr(self.weights + (tile * decoded.tile_bytes() + offset));
        for (token, ints) in self.ints.chunks(tiles).enumerate() {
            for int in ints {
                if self.small {
                    a.vpbroadcastd(*int, dword_ptr(self.panel + (layout.starts + place(token))))?;
                } else {
                    a.vpbroadcastd(*int, dword_ptr(SCRATCH + 8))?;
                }
            }
        }
        let (step, loaded) = if self.small { (2, 2) } else { (1, tiles) };
        let quads = BLOCK / 4 / decoded.parts;
        for quad in (part * quads..(part + 1) * quads).step_by(step) {
            for (i, line) in self.lines[..loaded].iter().enumerate() {
                let (tile, quad) = if self.small { (0, quad + i) } else { (i, quad) };
                a.vmovdqu64(*line, at(tile, decoded.data() + quad * LINE))?;
                if !self.small {
                    let negative = self.negatives[i];
                    a.vpxord(*line, *line, dword_bcst(SCRATCH + 4))?;
                    a.vpxord(negative, negative, negative)?;
                    a.vpsubb(negative, negative, *line)?;
                }
            }
            for (token, ints) in self.ints.chunks(tiles).enumerate() {
                self.multiply(a, ints, token * layout.row + quad * 4)?;
            }
        }
        for (tile, w) in self.lines[..tiles].iter().enumerate() {
            a.vmovups(*w, at(tile, decoded.scales(part)))?;
        }
        for (token, (ints, floats)) in self.ints.chunks(tiles).zip(self.floats.chunks(tiles)).enumerate() {
            for (tile, ((int, float), w)) in ints.iter().zip(floats).zip(&self.lines).enumerate() {
                a.vfmadd213ps(*int, *w, at(tile, decoded.negatives(part)))?;
                a.vfmadd231ps(*float, *int, dword_bcst(self.panel + (layout.scales + token * 4)))?;
            }
        }
        if !decoded.minima {
            return Ok(());
        }
        for (tile, minima) in self.lines[..tiles].iter().enumerate() {
            a.vmovups(*minima, at(tile, decoded.minima(part)))?;
        }
        for (token, floats) in self.floats.chunks(tiles).enumerate() {
            for (float, minima) in floats.iter().zip(&self.lines) {
                let sum = dword_bcst(self.panel + (layout.sums + place(token)));
                a.vfmadd231ps(*float, *minima, sum)?;
            }
        }
        Ok(())
    }

    /// Adds the products of the loaded lines and a token's activations, `offset` bytes into the panel's
    /// block.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        ints: &[AsmRegisterZmm],
        offset: usize,
    ) -> Result<(), IcedError> {
        let [x, y] = self.temporary;
        a.vpbroadcastd(x, dword_ptr(self.panel + offset))?;
        if self.small {
            a.vpmaddubsw(x, self.lines[0], x)?;
            a.vpbroadcastd(y, dword_ptr(self.panel + (offset + 4)))?;
            a.vpmaddubsw(y, self.lines[1], y)?;
            a.vpaddw(x, x, y)?;
            a.vpmaddwd(x, x, self.ones)?;
            return a.vpaddd(ints[0], ints[0], x);
        }
        a.vpmovb2m(k1, x)?;
        a.vpabsb(x, x)?;
        for ((int, line), negative) in ints.iter().zip(&self.lines).zip(&self.negatives) {
            a.vpblendmb(y.k1(), *line, *negative)?;
            a.vpmaddubsw(y, x, y)?;
            a.vpmaddwd(y, y, self.ones)?;
            a.vpaddd(*int, *int, y)?;
        }
        Ok(())
    }
}
