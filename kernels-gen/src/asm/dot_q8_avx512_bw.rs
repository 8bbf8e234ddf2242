//! `DotQ8` in 512 bits for CPUs without VNNI. Needs AVX-512 F and BW.
//!
//! Tile: 16 rows (the lanes) x up to 8 tokens, one int32 and one f32 accumulator per token. Products are
//! added in pairs to 16 bits (`vpmaddubsw`), the pairs to 32 bits (`vpmaddwd` by ones):
//! - mxfp4, int4: unsigned weights are at most 24, activations at least -128, so four results of `vpmaddubsw`
//!   add up to 4 * 2 * 24 * 128 = 24576 at most: they are added in 16 bits first.
//! - int8: unsigned weights times activations would saturate. The weight's sign bit is flipped back (q in
//!   [-127, 127]) and the activation's sign moved to it by a choice between the weight and its negative.
//!   A pair of these products is at most 2 * 128 * 127 = 32512. These are products of signed weights: no
//!   correction.
//!
//! With up to four tokens it prefetches into L2. Clobbers: caller-saved registers and flags; callee-saved
//! ones are pushed and popped.

use super::AsmKernel;
use super::dot_q8_avx512::PREFETCH_DISTANCE;
use super::regs::{PARAMS, Regs, SCRATCH};
use super::stored::{has_nibbles, has_table};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::MXFP4_TABLE;
use crate::ukernel::block::{bias, data_lines, scale_bytes};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, byte_ptr, dword_bcst, dword_ptr, eax, k1,
    qword_ptr, xmmword_ptr, ymmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "dot_q8_avx512bw",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8 { tokens: 1..=8, .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotQ8 { format, k, tokens } => DotQ8Avx512Bw::new(a, format, k, tokens).emit(a),
        _ => Ok(()),
    },
};

/// Up to this many tokens a micro-kernel prefetches: more rows leave no register for it.
const PREFETCH_TOKENS: usize = 4;

struct DotQ8Avx512Bw {
    format: WeightFormat,
    k: usize,
    regs: Regs,
    /// Scale plane, then advancing block by block.
    scales: AsmRegister64,
    /// Data plane, advancing.
    data: AsmRegister64,
    /// Four times the block's number.
    block: AsmRegister64,
    rows: Vec<AsmRegister64>,
    /// Runs ahead of the tile's bytes, scales and data alike; only where the memory is the limit.
    ahead: Option<AsmRegister64>,
    table: AsmRegisterZmm,
    /// The low nibbles; for int8 the sign bits.
    bits: AsmRegisterZmm,
    /// Thirty-two 1, as int16.
    ones: AsmRegisterZmm,
    half: AsmRegisterZmm,
    smallest: AsmRegisterZmm,
    /// Two lines' low and high nibbles; for int8 a line and its negative.
    weights: Vec<AsmRegisterZmm>,
    temporary: [AsmRegisterZmm; 2],
    ints: Vec<AsmRegisterZmm>,
    sums: Vec<AsmRegisterZmm>,
    constants: CodeLabel,
}

impl DotQ8Avx512Bw {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize) -> DotQ8Avx512Bw {
        let mut regs = Regs::with_params(4);
        let (data, block) = (regs.general(), regs.general());
        let rows = (0..tokens).map(|_| regs.general()).collect();
        let ahead = (tokens <= PREFETCH_TOKENS).then(|| regs.general());
        let [table, bits, ones, half, smallest] = [(); 5].map(|()| regs.vector());
        let weights = regs.vectors(if !has_nibbles(format) { 2 } else { 4 });
        let temporary = [regs.vector(), regs.vector()];
        let (ints, sums) = (regs.vectors(tokens), regs.vectors(tokens));
        let constants = a.create_label();
        DotQ8Avx512Bw {
            format,
            k,
            regs,
            scales: PARAMS[0],
            data,
            block,
            rows,
            ahead,
            table,
            bits,
            ones,
            half,
            smallest,
            weights,
            temporary,
            ints,
            sums,
            constants,
        }
    }

    fn nibbles(&self) -> bool {
        has_nibbles(self.format)
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let [list, out, stride] = [PARAMS[1], PARAMS[2], PARAMS[3]];
        self.regs.save(a)?;
        for (t, row) in self.rows.iter().enumerate() {
            a.mov(*row, qword_ptr(list + 8 * t))?;
        }
        a.lea(self.data, qword_ptr(self.scales + self.format.tile(self.k).scale_bytes))?;
        if let Some(ahead) = self.ahead {
            a.lea(ahead, qword_ptr(self.scales + PREFETCH_DISTANCE))?;
        }
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        a.vpbroadcastd(self.bits, dword_ptr(SCRATCH))?;
        a.vpbroadcastd(self.ones, dword_ptr(SCRATCH + 4))?;
        if has_table(self.format) {
            a.vpbroadcastd(self.half, dword_ptr(SCRATCH + 8))?;
            a.vpbroadcastd(self.smallest, dword_ptr(SCRATCH + 12))?;
            a.vbroadcasti32x4(self.table, xmmword_ptr(SCRATCH + 16))?;
        }
        for sum in &self.sums {
            a.vpxord(*sum, *sum, *sum)?;
        }
        a.xor(self.block, self.block)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        self.one_block(a)?;
        a.add(self.block, 4)?;
        a.cmp(self.block, (self.k / BLOCK * 4) as i32)?;
        a.jne(again)?;
        for sum in &self.sums {
            a.vmovups(zmmword_ptr(out), *sum)?;
            a.add(out, stride)?;
        }
        self.regs.restore_and_return(a)?;
        let bits = if self.nibbles() { 0x0f0f_0f0f } else { 0x8080_8080 };
        a.set_label(&mut self.constants)?;
        a.dd(&[bits, 0x0001_0001, 0.5f32.to_bits(), 0x0040_0000])?;
        a.db(&MXFP4_TABLE)
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let layout = Q8Row { k: self.k };
        let lines = data_lines(self.format);
        for (row, int) in self.rows.iter().zip(&self.ints) {
            if self.nibbles() {
                // eax is SCRATCH's low half.
                a.imul_3(eax, dword_ptr(*row + self.block + layout.sums()), -bias(self.format))?;
                a.vpbroadcastd(*int, eax)?;
            } else {
                a.vpxord(*int, *int, *int)?;
            }
        }
        if let Some(ahead) = self.ahead {
            // A block's share of the tile: its data lines and its scales, so that the pointer keeps its
            // distance from tile to tile.
            for line in 0..=lines {
                a.prefetcht1(byte_ptr(ahead + line * LINE))?;
            }
            a.add(ahead, (lines * LINE + scale_bytes(self.format)) as i32)?;
        }
        let lines_per_group = if self.nibbles() { 2 } else { 1 };
        for line in (0..lines).step_by(lines_per_group) {
            self.load_weights(a, line)?;
            // Dwords of activations so far.
            let dwords = if self.nibbles() { 2 * line } else { line };
            for (row, int) in self.rows.iter().zip(&self.ints) {
                self.multiply(a, *int, *row, 4 * dwords)?;
            }
        }
        let w_scale = self.weights[0];
        self.load_row_scale(a, w_scale)?;
        for ((row, int), sum) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
            a.vcvtdq2ps(*int, *int)?;
            a.vmulps(*int, *int, w_scale)?;
            a.vfmadd231ps(*sum, *int, dword_bcst(*row + self.block + layout.scales()))?;
        }
        a.add(self.scales, scale_bytes(self.format) as i32)?;
        a.add(self.data, (lines * LINE) as i32)
    }

    /// A line's signed bytes and their negatives, or two lines' nibbles: low, high, low, high.
    fn load_weights(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        for (i, pair) in self.weights.chunks(2).enumerate() {
            let [low, high] = [pair[0], pair[1]];
            a.vmovdqu64(low, zmmword_ptr(self.data + (line + i) * LINE))?;
            if !self.nibbles() {
                a.vpxord(low, low, self.bits)?;
                a.vpxord(high, high, high)?;
                a.vpsubb(high, high, low)?;
                continue;
            }
            a.vpsrlw(high, low, 4)?;
            a.vpandd(low, low, self.bits)?;
            a.vpandd(high, high, self.bits)?;
            if has_table(self.format) {
                a.vpshufb(low, self.table, low)?;
                a.vpshufb(high, self.table, high)?;
            }
        }
        Ok(())
    }

    /// Adds the products of the loaded weights and a token's activations, `offset` bytes into the block.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        int: AsmRegisterZmm,
        row: AsmRegister64,
        offset: usize,
    ) -> Result<(), IcedError> {
        let [x, y] = self.temporary;
        let activations = |i: usize| dword_ptr(row + self.block * 8 + (offset + 4 * i));
        a.vpbroadcastd(x, activations(0))?;
        if self.nibbles() {
            a.vpmaddubsw(x, self.weights[0], x)?;
            for (i, weights) in self.weights.iter().enumerate().skip(1) {
                a.vpbroadcastd(y, activations(i))?;
                a.vpmaddubsw(y, *weights, y)?;
                a.vpaddw(x, x, y)?;
            }
        } else {
            a.vpmovb2m(k1, x)?;
            a.vpblendmb(y.k1(), self.weights[0], self.weights[1])?;
            a.vpabsb(x, x)?;
            a.vpmaddubsw(x, x, y)?;
        }
        a.vpmaddwd(x, x, self.ones)?;
        a.vpaddd(int, int, x)
    }

    /// The block's 16 weight scales as f32, halved for mxfp4.
    fn load_row_scale(&self, a: &mut CodeAssembler, to: AsmRegisterZmm) -> Result<(), IcedError> {
        if !has_table(self.format) {
            return a.vcvtph2ps(to, ymmword_ptr(self.scales));
        }
        a.vpmovzxbd(to, xmmword_ptr(self.scales))?;
        a.vpslld(to, to, 23)?;
        // 2^(s-127), whose smallest, for s = 0, is a denormal and above no other's bits.
        a.vpmaxud(to, to, self.smallest)?;
        a.vmulps(to, to, self.half)
    }
}
