//! `DotQ8` in 256 bits. Needs AVX2, FMA and F16C; the faster of the two versions AVX-VNNI too.
//!
//! Tile: a packed line is two operands, rows 0-7 and 8-15 (the lanes). Up to two tokens take both halves of the rows in one pass over
//! the tile; more take one half of the rows and up to four tokens a pass, one int32 and one f32 accumulator each. Activations are
//! broadcast dwords. What comes later is prefetched into L2: with several passes the next tile, each pass its share, so that neither the passes wait for
//! memory nor memory for them. With eight tokens of bytes that is 14 % faster on a Zen 3 than 8 KiB ahead (`benches/runs/2026-11-22-zen3.md`).
//!
//! Without VNNI, products are added in pairs to 16 bits (`vpmaddubsw`), the pairs to 32 bits (`vpmaddwd` by ones):
//! - mxfp4, int4: unsigned weights are at most 24, activations at least -128, so four results of `vpmaddubsw` add up to
//!   4 * 2 * 24 * 128 = 24576 at most: they are added in 16 bits first.
//! - int8: unsigned weights times activations would saturate. The weight's sign bit is flipped back (q in [-127, 127]) and the activation's
//!   sign moved to it: |a| * ±q, at most 2 * 128 * 127 = 32512 per pair. These are products of signed weights: no correction.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::Wide;
use super::dot_q8_avx512::PREFETCH_DISTANCE;
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::leaf::Leaf;
use crate::leaf::block::MXFP4_TABLE;
use crate::leaf::block::{bias, data_lines, scale_bytes};
use crate::leaf::gemm_q8::MAGIC;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, byte_ptr, dword_ptr,
    qword_ptr, xmmword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Level;

/// With `vpdpbusd`, VEX-encoded.
pub const VNNI: Wide = Wide {
    name: "dot_q8_avx2vnni",
    levels: |level| level == Level::V3Vnni,
    serves: |leaf| matches!(leaf, Leaf::DotQ8 { tokens: 1..=8, .. }),
    assemble: |a, leaf| match leaf {
        Leaf::DotQ8 { format, k, tokens } => Dot::new(a, format, k, tokens, true).emit(a),
        _ => Ok(()),
    },
};

/// Without.
pub const PLAIN: Wide = Wide {
    name: "dot_q8_avx2",
    levels: |_| true,
    serves: |leaf| matches!(leaf, Leaf::DotQ8 { tokens: 1..=8, .. }),
    assemble: |a, leaf| match leaf {
        Leaf::DotQ8 { format, k, tokens } => Dot::new(a, format, k, tokens, false).emit(a),
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Tokens of a pass.
const TOKENS_PER_PASS: usize = 4;
/// Up to this many tokens a pass takes both halves of the rows.
const BOTH_HALVES: usize = 2;

struct Dot {
    format: WeightFormat,
    k: usize,
    tokens: usize,
    vnni: bool,
    regs: Regs,
    /// Scale plane, advancing block by block.
    scales: AsmRegister64,
    /// Data plane, advancing.
    data: AsmRegister64,
    /// Four times the block's number.
    block: AsmRegister64,
    constants: Constants,
    /// Of one pass.
    rows: Vec<AsmRegister64>,
    /// Runs ahead of the tile's bytes, scales and data alike.
    ahead: AsmRegister64,
    table: AsmRegisterYmm,
    weights: Vec<AsmRegisterYmm>,
    temporary: [AsmRegisterYmm; 2],
    /// `[token][half]`, of one pass.
    ints: Vec<AsmRegisterYmm>,
    /// As `ints`.
    sums: Vec<AsmRegisterYmm>,
}

impl Dot {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize, vnni: bool) -> Dot {
        let mut regs = Regs::with_params(4);
        let (scales, data, block) = (regs.general(), regs.general(), regs.general());
        let constants = Constants { base: regs.general(), label: a.create_label() };
        let rows: Vec<AsmRegister64> = (0..tokens.min(TOKENS_PER_PASS)).map(|_| regs.general()).collect();
        let ahead = regs.general();
        let table = regs.half();
        let weights = regs.halves(if format == WeightFormat::Int8 { 1 } else { 4 });
        let temporary = [regs.half(), regs.half()];
        let accumulators = if tokens <= BOTH_HALVES { 2 * tokens } else { rows.len() };
        let (ints, sums) = (regs.halves(accumulators), regs.halves(accumulators));
        Dot {
            format,
            k,
            tokens,
            vnni,
            regs,
            scales,
            data,
            block,
            constants,
            rows,
            ahead,
            table,
            weights,
            temporary,
            ints,
            sums,
        }
    }

    fn nibbles(&self) -> bool {
        self.format != WeightFormat::Int8
    }

    /// Times that the leaf goes through the tile.
    fn passes(&self) -> usize {
        if self.tokens <= BOTH_HALVES { 1 } else { 2 * self.tokens.div_ceil(TOKENS_PER_PASS) }
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.regs.save(a)?;
        a.lea(self.constants.base, qword_ptr(self.constants.label))?;
        if self.format == WeightFormat::Mxfp4 {
            a.vmovdqu(self.table, self.constants.table())?;
        }
        let one_pass = self.passes() == 1;
        let distance = if one_pass { PREFETCH_DISTANCE } else { self.format.tile(self.k).bytes() };
        a.lea(self.ahead, qword_ptr(PARAMS[0] + distance))?;
        for first in (0..self.tokens).step_by(TOKENS_PER_PASS) {
            let count = (self.tokens - first).min(TOKENS_PER_PASS);
            if self.tokens <= BOTH_HALVES {
                self.pass(a, first, count, &[0, 1])?;
            } else {
                self.pass(a, first, count, &[0])?;
                self.pass(a, first, count, &[1])?;
            }
        }
        self.regs.restore_and_return(a)?;
        self.constants.emit(a, self.format)
    }

    /// `count` tokens from `first` by the given halves of the rows, over the whole of k.
    fn pass(
        &self,
        a: &mut CodeAssembler,
        first: usize,
        count: usize,
        halves: &[usize],
    ) -> Result<(), IcedError> {
        let [tile, list, out, stride] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
        let rows = &self.rows[..count];
        let accumulators = count * halves.len();
        for (t, row) in rows.iter().enumerate() {
            a.mov(*row, qword_ptr(list + 8 * (first + t)))?;
        }
        a.mov(self.scales, tile)?;
        a.lea(self.data, qword_ptr(tile + self.format.tile(self.k).scale_bytes))?;
        for sum in &self.sums[..accumulators] {
            a.vpxor(*sum, *sum, *sum)?;
        }
        a.xor(self.block, self.block)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        self.one_block(a, rows, halves)?;
        a.add(self.block, 4)?;
        a.cmp(self.block, (self.k / BLOCK * 4) as i32)?;
        a.jne(again)?;
        a.mov(SCRATCH, out)?;
        for sums in self.sums[..accumulators].chunks(halves.len()) {
            for (half, sum) in halves.iter().zip(sums) {
                a.vmovups(ymmword_ptr(SCRATCH + half * BYTES), *sum)?;
            }
            a.add(SCRATCH, stride)?;
        }
        if halves.contains(&1) {
            // The last pass of these tokens.
            a.mov(out, SCRATCH)?;
        }
        Ok(())
    }

    fn one_block(
        &self,
        a: &mut CodeAssembler,
        rows: &[AsmRegister64],
        halves: &[usize],
    ) -> Result<(), IcedError> {
        let layout = Q8Row { k: self.k };
        let lines = data_lines(self.format);
        for (row, ints) in rows.iter().zip(self.ints.chunks(halves.len())) {
            self.start(a, *row, ints)?;
        }
        // A block's data lines and its scales, so that the pointer keeps its distance from tile to tile.
        let share = (lines * LINE + scale_bytes(self.format)) / self.passes();
        for line in 0..share.div_ceil(LINE) {
            a.prefetcht1(byte_ptr(self.ahead + line * LINE))?;
        }
        a.add(self.ahead, share as i32)?;
        let lines_per_group = if self.nibbles() { 2 } else { 1 };
        for line in (0..lines).step_by(lines_per_group) {
            for (index, half) in halves.iter().enumerate() {
                self.load_weights(a, line, *half)?;
                // Dwords of activations so far.
                let dwords = if self.nibbles() { 2 * line } else { line };
                for (row, ints) in rows.iter().zip(self.ints.chunks(halves.len())) {
                    self.multiply(a, ints[index], *row, 4 * dwords)?;
                }
            }
        }
        let [w_scale, a_scale] = [self.weights[0], self.temporary[0]];
        for (index, half) in halves.iter().enumerate() {
            load_row_scale(a, self.format, w_scale, self.scales, *half, &self.constants)?;
            for (t, row) in rows.iter().enumerate() {
                let i = t * halves.len() + index;
                let (int, sum) = (self.ints[i], self.sums[i]);
                a.vbroadcastss(a_scale, dword_ptr(*row + self.block + layout.scales()))?;
                a.vcvtdq2ps(int, int)?;
                a.vmulps(int, int, w_scale)?;
                a.vfmadd231ps(sum, int, a_scale)?;
            }
        }
        a.add(self.scales, scale_bytes(self.format) as i32)?;
        a.add(self.data, (lines * LINE) as i32)
    }

    /// The integers a block starts from: the correction for unsigned weights.
    fn start(
        &self,
        a: &mut CodeAssembler,
        row: AsmRegister64,
        ints: &[AsmRegisterYmm],
    ) -> Result<(), IcedError> {
        if !self.vnni && self.format == WeightFormat::Int8 {
            return ints.iter().try_for_each(|int| a.vpxor(*int, *int, *int));
        }
        let sum = dword_ptr(row + self.block + Q8Row { k: self.k }.sums());
        a.vpbroadcastd(ints[0], sum)?;
        a.vpmulld(ints[0], ints[0], self.constants.correction())?;
        ints[1..].iter().try_for_each(|int| a.vmovdqa(*int, ints[0]))
    }

    /// Half of a line's bytes (int8: signed ones without VNNI), or of two lines' nibbles: low, high, low, high.
    fn load_weights(&self, a: &mut CodeAssembler, line: usize, half: usize) -> Result<(), IcedError> {
        if !self.nibbles() {
            let weights = self.weights[0];
            a.vmovdqu(weights, ymmword_ptr(self.data + line * LINE + half * BYTES))?;
            return if self.vnni { Ok(()) } else { a.vpxor(weights, weights, self.constants.sign_bits()) };
        }
        for (i, pair) in self.weights.chunks(2).enumerate() {
            let source = ymmword_ptr(self.data + (line + i) * LINE + half * BYTES);
            load_nibbles(a, self.format, [pair[0], pair[1]], source, self.table, &self.constants)?;
        }
        Ok(())
    }

    /// Adds the products of the loaded weights and a token's activations, `offset` bytes into the block.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        int: AsmRegisterYmm,
        row: AsmRegister64,
        offset: usize,
    ) -> Result<(), IcedError> {
        let [x, y] = self.temporary;
        let activations = |i: usize| dword_ptr(row + self.block * 8 + (offset + 4 * i));
        if self.vnni {
            for (i, weights) in self.weights.iter().enumerate() {
                let x = self.temporary[i % 2];
                a.vpbroadcastd(x, activations(i))?;
                a.vpdpbusd(int, *weights, x)?;
            }
            return Ok(());
        }
        a.vpbroadcastd(x, activations(0))?;
        if self.nibbles() {
            a.vpmaddubsw(x, self.weights[0], x)?;
            for (i, weights) in self.weights.iter().enumerate().skip(1) {
                a.vpbroadcastd(y, activations(i))?;
                a.vpmaddubsw(y, *weights, y)?;
                a.vpaddw(x, x, y)?;
            }
        } else {
            multiply_signed(a, self.weights[0], x, y)?;
        }
        a.vpmaddwd(x, x, self.constants.ones())?;
        a.vpaddd(int, int, x)
    }
}

/// The pairs of `activations * weights`, both signed, in `activations`. Clobbers `temporary`.
pub fn multiply_signed(
    a: &mut CodeAssembler,
    weights: AsmRegisterYmm,
    activations: AsmRegisterYmm,
    temporary: AsmRegisterYmm,
) -> Result<(), IcedError> {
    a.vpsignb(temporary, weights, activations)?;
    a.vpabsb(activations, activations)?;
    a.vpmaddubsw(activations, activations, temporary)
}

/// A vector's unsigned bytes, low and high nibbles apart.
pub fn load_nibbles(
    a: &mut CodeAssembler,
    format: WeightFormat,
    to: [AsmRegisterYmm; 2],
    source: AsmMemoryOperand,
    table: AsmRegisterYmm,
    constants: &Constants,
) -> Result<(), IcedError> {
    let [low, high] = to;
    a.vmovdqu(low, source)?;
    a.vpsrlw(high, low, 4)?;
    a.vpand(low, low, constants.nibble_mask())?;
    a.vpand(high, high, constants.nibble_mask())?;
    if format == WeightFormat::Mxfp4 {
        a.vpshufb(low, table, low)?;
        a.vpshufb(high, table, high)?;
    }
    Ok(())
}

/// A block's weight scales of half of the rows as f32, halved for mxfp4. `scales` is where the block's are.
pub fn load_row_scale(
    a: &mut CodeAssembler,
    format: WeightFormat,
    to: AsmRegisterYmm,
    scales: AsmRegister64,
    half: usize,
    constants: &Constants,
) -> Result<(), IcedError> {
    if format != WeightFormat::Mxfp4 {
        return a.vcvtph2ps(to, xmmword_ptr(scales + half * 16));
    }
    a.vpmovzxbd(to, qword_ptr(scales + half * 8))?;
    a.vpslld(to, to, 23)?;
    // 2^(s-127), whose smallest, for s = 0, is a denormal and above no other's bits.
    a.vpmaxud(to, to, constants.smallest())?;
    a.vmulps(to, to, constants.one_half())
}

/// Whole vectors of constants, behind the code.
pub struct Constants {
    pub base: AsmRegister64,
    pub label: CodeLabel,
}

impl Constants {
    fn vector(&self, index: usize) -> AsmMemoryOperand {
        ymmword_ptr(self.base + index * BYTES)
    }

    fn nibble_mask(&self) -> AsmMemoryOperand {
        self.vector(0)
    }

    pub fn table(&self) -> AsmMemoryOperand {
        self.vector(1)
    }

    pub fn ones(&self) -> AsmMemoryOperand {
        self.vector(2)
    }

    pub fn sign_bits(&self) -> AsmMemoryOperand {
        self.vector(3)
    }

    fn smallest(&self) -> AsmMemoryOperand {
        self.vector(4)
    }

    fn one_half(&self) -> AsmMemoryOperand {
        self.vector(5)
    }

    fn correction(&self) -> AsmMemoryOperand {
        self.vector(6)
    }

    pub fn minus_magic(&self) -> AsmMemoryOperand {
        self.vector(7)
    }

    /// Puts them here.
    pub fn emit(&mut self, a: &mut CodeAssembler, format: WeightFormat) -> Result<(), IcedError> {
        let table = u128::from_le_bytes(MXFP4_TABLE);
        let table = [table as u32, (table >> 32) as u32, (table >> 64) as u32, (table >> 96) as u32];
        a.set_label(&mut self.label)?;
        a.dd(&[0x0f0f_0f0f; 8])?;
        a.dd(&table)?;
        a.dd(&table)?;
        let smallest = 0x0040_0000;
        let correction = -bias(format) as u32;
        for value in [0x0001_0001, 0x8080_8080, smallest, 0.5f32.to_bits(), correction, (-MAGIC).to_bits()] {
            a.dd(&[value; 8])?;
        }
        Ok(())
    }
}
