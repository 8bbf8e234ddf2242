//! `DotQ8` in 256 bits. Needs AVX2, FMA and F16C; the faster of the two versions AVX-VNNI too.
//!
//! Tile: a packed line is two operands, rows 0-7 and 8-15 (the lanes), by up to four tokens; an integer
//! accumulator for each token and vector of rows. Both vectors go through a line together, so that an
//! activation is broadcast, and made positive, once for both. The f32 sums of more than two tokens are on the
//! stack, since only one fma in a block needs each. More than four tokens go through the tile again, which
//! the cache has by then.
//!
//! What comes later is prefetched into L2, a line beside every line of data: with several passes the next
//! tile, each pass its share, so that neither the passes wait for memory nor memory for them.
//!
//! Without VNNI, products are added in pairs to 16 bits (`vpmaddubsw`), the pairs to 32 bits (`vpmaddwd` by
//! ones):
//! - mxfp4, int4: unsigned weights are at most 24 and 15, activations at least -128. Four results of
//!   `vpmaddubsw` of mxfp4 add up to 4 * 2 * 24 * 128 = 24576 at most, eight of int4 to 8 * 2 * 15 * 128 =
//!   30720: so many are added in 16 bits first.
//! - int8: unsigned weights times activations would saturate. The weight's sign bit is flipped back (q in
//!   [-127, 127]) and the activation's sign moved to it: |a| * ±q, at most 2 * 128 * 127 = 32512 per pair.
//!   These are products of signed weights: no correction.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::dot_q8_avx512::PREFETCH_DISTANCE;
use super::regs::{PARAMS, Regs, constants_here};
use super::stored::{has_nibbles, has_table};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::MXFP4_TABLE;
use crate::ukernel::block::{bias, data_lines, scale_bytes};
use crate::ukernel::gemm_q8::MAGIC;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, byte_ptr, dword_ptr,
    qword_ptr, rsp, xmmword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Features;

/// With `vpdpbusd`, VEX-encoded.
pub const VNNI: AsmKernel = AsmKernel {
    name: "dot_q8_avx2vnni",
    needs: Features::FLOOR.and(Features::AVX_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8 { tokens: 1..=8, .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotQ8 { format, k, tokens } => DotQ8Avx2::new(a, format, k, tokens, true).emit(a),
        _ => Ok(()),
    },
};

/// Without.
pub const PLAIN: AsmKernel = AsmKernel {
    name: "dot_q8_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8 { tokens: 1..=8, .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotQ8 { format, k, tokens } => DotQ8Avx2::new(a, format, k, tokens, false).emit(a),
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Vectors of a tile's rows.
const HALVES: usize = 2;
/// Tokens of a pass.
const TOKENS_PER_PASS: usize = 4;
/// Up to so many tokens have their sums in registers.
const SUMS_IN_REGISTERS: usize = 2;

/// Two registers, one for each vector of rows.
type Halves = [AsmRegisterYmm; HALVES];

struct DotQ8Avx2 {
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
    /// Runs ahead of the tile's bytes, scales and data alike.
    ahead: AsmRegister64,
    /// Addresses of the rows of one pass.
    rows: Vec<AsmRegister64>,
    /// The values of MXFP4, or of bytes the sign bits.
    held: AsmRegisterYmm,
    /// A line's bytes; or its low nibbles, and its high ones.
    weights: Vec<Halves>,
    /// Activations of a token.
    activations: AsmRegisterYmm,
    /// Activations without their signs, for bytes without VNNI.
    magnitudes: AsmRegisterYmm,
    /// Products that are not yet added up.
    products: Halves,
    /// By token of one pass: int32, but of nibbles without VNNI int16 as long as these surely fit.
    ints: Vec<Halves>,
    /// In f32, unless they are on the stack.
    sums: Vec<Halves>,
}

impl DotQ8Avx2 {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize, vnni: bool) -> DotQ8Avx2 {
        let mut regs = Regs::with_params(4);
        let [scales, data, block, base, ahead] = [(); 5].map(|()| regs.general());
        let constants = Constants { base, label: a.create_label() };
        let rows: Vec<AsmRegister64> = (0..tokens.min(TOKENS_PER_PASS)).map(|_| regs.general()).collect();
        let (held, activations) = (regs.half(), regs.half());
        let mut pair = || [regs.half(), regs.half()];
        let products = pair();
        let (weights, magnitudes) =
            if has_nibbles(format) { (vec![pair(), pair()], activations) } else { (vec![pair()], pair()[0]) };
        let ints = rows.iter().map(|_| pair()).collect();
        let sums = rows.iter().filter(|_| tokens <= SUMS_IN_REGISTERS).map(|_| pair()).collect();
        DotQ8Avx2 {
            format,
            k,
            tokens,
            vnni,
            regs,
            scales,
            data,
            block,
            constants,
            ahead,
            rows,
            held,
            weights,
            activations,
            magnitudes,
            products,
            ints,
            sums,
        }
    }

    fn nibbles(&self) -> bool {
        has_nibbles(self.format)
    }

    /// Whether nibbles' products add up in 16 bits: of how many lines.
    fn lines_in_words(&self) -> Option<usize> {
        let lines = if has_table(self.format) { 2 } else { 4 };
        (self.nibbles() && !self.vnni).then_some(lines)
    }

    /// Whether a block's products do not all fit int16, where they add up in these.
    fn is_in_parts(&self) -> bool {
        self.lines_in_words().is_some_and(|lines| lines < data_lines(self.format))
    }

    fn passes(&self) -> usize {
        self.tokens.div_ceil(TOKENS_PER_PASS)
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.regs.save(a)?;
        a.lea(self.constants.base, qword_ptr(self.constants.label))?;
        if has_table(self.format) {
            a.vmovdqu(self.held, self.constants.table())?;
        } else if !self.nibbles() && !self.vnni {
            a.vmovdqu(self.held, self.constants.sign_bits())?;
        }
        let distance = if self.passes() == 1 { PREFETCH_DISTANCE } else { self.format.tile(self.k).bytes() };
        a.lea(self.ahead, qword_ptr(PARAMS[0] + distance))?;
        let places = usize::from(self.sums.is_empty()) + usize::from(self.is_in_parts());
        let frame = (places * self.rows.len() * HALVES * BYTES) as i32;
        if frame > 0 {
            a.sub(rsp, frame)?;
        }
        for first in (0..self.tokens).step_by(TOKENS_PER_PASS) {
            self.pass(a, first, (self.tokens - first).min(TOKENS_PER_PASS))?;
        }
        if frame > 0 {
            a.add(rsp, frame)?;
        }
        self.regs.restore_and_return(a)?;
        self.constants.emit(a, self.format)
    }

    /// Where a token's ints of the lines before are, if the block is in parts.
    fn part(&self, token: usize, half: usize) -> AsmMemoryOperand {
        let sums = if self.sums.is_empty() { self.rows.len() } else { 0 };
        ymmword_ptr(rsp + ((sums + token) * HALVES + half) * BYTES)
    }

    /// Where the f32 sums of a token of the pass are, if not in registers.
    fn sum(&self, token: usize, half: usize) -> AsmMemoryOperand {
        ymmword_ptr(rsp + (token * HALVES + half) * BYTES)
    }

    /// `count` tokens from `first` on, over the whole of k.
    fn pass(&self, a: &mut CodeAssembler, first: usize, count: usize) -> Result<(), IcedError> {
        let [tile, list, out, stride] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
        let zero = self.products[0];
        a.vpxor(zero, zero, zero)?;
        for (token, row) in self.rows[..count].iter().enumerate() {
            a.mov(*row, qword_ptr(list + 8 * (first + token)))?;
            match self.sums.get(token) {
                Some(sums) => sums.iter().try_for_each(|sum| a.vpxor(*sum, *sum, *sum))?,
                None => (0..HALVES).try_for_each(|half| a.vmovups(self.sum(token, half), zero))?,
            }
        }
        a.mov(self.scales, tile)?;
        a.lea(self.data, qword_ptr(tile + self.format.tile(self.k).scale_bytes))?;
        a.xor(self.block, self.block)?;
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        self.one_block(a, count)?;
        a.add(self.scales, scale_bytes(self.format) as i32)?;
        a.add(self.data, (data_lines(self.format) * LINE) as i32)?;
        a.add(self.block, 4)?;
        a.cmp(self.block, (self.k / BLOCK * 4) as i32)?;
        a.jne(again)?;
        let value = self.products[0];
        for token in 0..count {
            for half in 0..HALVES {
                let to = ymmword_ptr(out + half * BYTES);
                if let Some(sums) = self.sums.get(token) {
                    a.vmovups(to, sums[half])?;
                    continue;
                }
                a.vmovups(value, self.sum(token, half))?;
                a.vmovups(to, value)?;
            }
            a.add(out, stride)?;
        }
        Ok(())
    }

    fn one_block(&self, a: &mut CodeAssembler, count: usize) -> Result<(), IcedError> {
        if self.vnni {
            for (token, [first, second]) in self.ints[..count].iter().enumerate() {
                self.correction(a, *first, token)?;
                a.vmovdqa(*second, *first)?;
            }
        }
        let lines = data_lines(self.format);
        // Of a block's data and scales, so that the pointer keeps its distance from tile to tile.
        let share = (lines * LINE + scale_bytes(self.format)) / self.passes();
        let (mut asked, all) = (0, share.div_ceil(LINE));
        for line in 0..lines {
            while asked * lines < all * (line + 1) {
                a.prefetcht1(byte_ptr(self.ahead + asked * LINE))?;
                asked += 1;
            }
            self.load_weights(a, line)?;
            (0..count).try_for_each(|token| self.multiply(a, token, line))?;
            if self.lines_in_words().is_some_and(|most| (line + 1).is_multiple_of(most)) {
                (0..count).try_for_each(|token| self.widen(a, token, line))?;
            }
        }
        a.add(self.ahead, share as i32)?;
        let row_scales = self.weights[0];
        for (half, scale) in row_scales.into_iter().enumerate() {
            load_row_scale(a, self.format, scale, self.scales, half, &self.constants)?;
        }
        (0..count).try_for_each(|token| self.scale(a, token, row_scales))
    }

    /// The start of a block's sum of unsigned weights for a token.
    fn correction(&self, a: &mut CodeAssembler, to: AsmRegisterYmm, token: usize) -> Result<(), IcedError> {
        a.vpbroadcastd(to, dword_ptr(self.rows[token] + self.block + Q8Row { k: self.k }.sums()))?;
        a.vpmulld(to, to, self.constants.correction())
    }

    /// A line's bytes, without VNNI as signed ones; or its low and high nibbles, as unsigned weights.
    fn load_weights(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        let source = |half: usize| ymmword_ptr(self.data + line * LINE + half * BYTES);
        let low = self.weights[0];
        for (half, low) in low.into_iter().enumerate() {
            if self.nibbles() || self.vnni {
                a.vmovdqu(low, source(half))?;
            } else {
                a.vpxor(low, self.held, source(half))?;
            }
        }
        if !self.nibbles() {
            return Ok(());
        }
        let high = self.weights[1];
        (0..HALVES).try_for_each(|half| a.vpsrlw(high[half], low[half], 4))?;
        for weights in low.into_iter().chain(high) {
            a.vpand(weights, weights, self.constants.nibble_mask())?;
        }
        if has_table(self.format) {
            for weights in low.into_iter().chain(high) {
                a.vpshufb(weights, self.held, weights)?;
            }
        }
        Ok(())
    }

    /// Adds the products of a loaded line and a token's activations to the token's ints, or starts these with
    /// them.
    fn multiply(&self, a: &mut CodeAssembler, token: usize, line: usize) -> Result<(), IcedError> {
        let (ints, products, activations) = (self.ints[token], self.products, self.activations);
        for (n, weights) in self.weights.iter().enumerate() {
            let at = (line * self.weights.len() + n) * 4;
            a.vpbroadcastd(activations, dword_ptr(self.rows[token] + self.block * 8 + at))?;
            if self.vnni {
                let mut halves = ints.iter().zip(weights);
                halves.try_for_each(|(int, weights)| a.vpdpbusd(*int, *weights, activations))?;
            } else if let Some(most) = self.lines_in_words() {
                let opens = line.is_multiple_of(most) && n == 0;
                let to = if opens { ints } else { products };
                (0..HALVES).try_for_each(|half| a.vpmaddubsw(to[half], weights[half], activations))?;
                if !opens {
                    (0..HALVES).try_for_each(|half| a.vpaddw(ints[half], ints[half], to[half]))?;
                }
            } else {
                a.vpabsb(self.magnitudes, activations)?;
                (0..HALVES).try_for_each(|half| a.vpsignb(products[half], weights[half], activations))?;
                (0..HALVES)
                    .try_for_each(|half| a.vpmaddubsw(products[half], self.magnitudes, products[half]))?;
                let to = if line == 0 { ints } else { products };
                (0..HALVES)
                    .try_for_each(|half| a.vpmaddwd(to[half], products[half], self.constants.ones()))?;
                if line > 0 {
                    (0..HALVES).try_for_each(|half| a.vpaddd(ints[half], ints[half], to[half]))?;
                }
            }
        }
        Ok(())
    }

    /// Makes int32 of a token's ints, which have got to this line of the block.
    fn widen(&self, a: &mut CodeAssembler, token: usize, line: usize) -> Result<(), IcedError> {
        let ints = self.ints[token];
        ints.iter().try_for_each(|int| a.vpmaddwd(*int, *int, self.constants.ones()))?;
        if line + 1 < data_lines(self.format) {
            return (0..HALVES).try_for_each(|half| a.vmovdqu(self.part(token, half), ints[half]));
        }
        let correction = self.products[0];
        self.correction(a, correction, token)?;
        for (half, int) in ints.into_iter().enumerate() {
            a.vpaddd(int, int, correction)?;
            if self.is_in_parts() {
                a.vpaddd(int, int, self.part(token, half))?;
            }
        }
        Ok(())
    }

    /// Adds a block to a token's f32 sums.
    fn scale(&self, a: &mut CodeAssembler, token: usize, row_scales: Halves) -> Result<(), IcedError> {
        let scale = dword_ptr(self.rows[token] + self.block + Q8Row { k: self.k }.scales());
        a.vbroadcastss(self.activations, scale)?;
        for (half, int) in self.ints[token].into_iter().enumerate() {
            a.vcvtdq2ps(int, int)?;
            a.vmulps(int, int, row_scales[half])?;
            if let Some(sums) = self.sums.get(token) {
                a.vfmadd231ps(sums[half], int, self.activations)?;
                continue;
            }
            a.vfmadd213ps(int, self.activations, self.sum(token, half))?;
            a.vmovups(self.sum(token, half), int)?;
        }
        Ok(())
    }
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
    if has_table(format) {
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
    if !has_table(format) {
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
        constants_here(a, &mut self.label)?;
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
