//! `DotAdjacent` in 256 bits, for one token. Needs AVX2, FMA and F16C; the faster of the two versions AVX-VNNI too.
//!
//! Tile: 16 rows (the lanes, eight to a vector) of 4 tiles x 1 token, an int32 accumulator for each vector of rows; of nibbles without VNNI two tiles at a
//! time, so that there is room for their sums in 16 bits. Activations are broadcast once for these tiles: a Zen 3 takes four instructions of vectors in a
//! cycle, and a load by itself is one. The f32 sums are on the stack, since only one fma in a block needs each. Products without VNNI are as in
//! `dot_q8_avx2.rs`: nibbles' are added in 16 bits first, four of MXFP4 (24576 at most) or eight of int4 (2 * 15 * 128 each, 30720 at most); bytes are
//! multiplied as signed ones.
//!
//! Made for streaming weights: see `adjacent.rs` for its way through the tiles. Clobbers: caller-saved registers and flags; callee-saved ones are
//! pushed and popped.

use super::Wide;
use super::adjacent::{Pace, Walk};
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::leaf::Leaf;
use crate::leaf::block::{MXFP4_TABLE, bias, data_lines, scale_bytes};
use crate::leaf::dot_q8::{ADJACENT, place};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr, rsp,
    xmmword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Level;

/// With `vpdpbusd`, VEX-encoded.
pub const VNNI: Wide = Wide {
    name: "dot_adjacent_avx2vnni",
    levels: |level| level == Level::V3Vnni,
    serves: |leaf| matches!(leaf, Leaf::DotAdjacent { tokens: 1, .. }),
    assemble: |a, leaf| match leaf {
        Leaf::DotAdjacent { format, k, pairs, .. } => Dot::new(a, format, k, true).emit(a, pairs),
        _ => Ok(()),
    },
};

/// Without.
pub const PLAIN: Wide = Wide {
    name: "dot_adjacent_avx2",
    levels: |level| level < Level::V4,
    serves: |leaf| matches!(leaf, Leaf::DotAdjacent { tokens: 1, .. }),
    assemble: |a, leaf| match leaf {
        Leaf::DotAdjacent { format, k, pairs, .. } => Dot::new(a, format, k, false).emit(a, pairs),
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Vectors of a tile's rows.
const HALVES: usize = 2;
/// Constants that are memory operands.
const ON_STACK: [u32; 3] = [ONES, SMALLEST, HALF];
/// Of sums and constants on the stack.
const FRAME: i32 = ((ADJACENT * HALVES + ON_STACK.len()) * BYTES) as i32;
/// For nibbles.
const NIBBLES: u32 = 0x0f0f_0f0f;
/// Of bytes.
const SIGNS: u32 = 0x8080_8080;
/// Of int16.
const ONES: u32 = 0x0001_0001;
/// 2^-127: the E8M0 scale of 0 stands for it, whose bits are below those of every other.
const SMALLEST: u32 = 0x0040_0000;

/// 0.5, as f32.
const HALF: u32 = 0x3f00_0000;

/// Double words behind the code, in order, and behind them the table.
fn constants(format: WeightFormat) -> [u32; 6] {
    [NIBBLES, SIGNS, ONES, SMALLEST, HALF, -bias(format) as u32]
}

struct Dot {
    format: WeightFormat,
    k: usize,
    vnni: bool,
    regs: Regs,
    walk: Walk,
    row: AsmRegister64,
    /// Where the constants are.
    base: AsmRegister64,
    constants: CodeLabel,
    /// For nibbles; of bytes, the signs.
    mask: AsmRegisterYmm,
    /// The values of MXFP4; of bytes, int16 ones.
    table: AsmRegisterYmm,
    /// What unsigned weights make too much of a block's sum.
    correction: AsmRegisterYmm,
    /// Of low and high nibbles' partners; of bytes, and their magnitudes.
    activations: Halves,
    /// Low and high nibbles; of bytes the first.
    weights: Halves,
    /// By tile of those that are multiplied together.
    ints: Vec<Halves>,
    /// Sums of nibbles' products in 16 bits, as `ints`.
    words: Vec<Halves>,
}

/// Two registers: of the vectors of a tile's rows, or of low and high nibbles.
type Halves = [AsmRegisterYmm; HALVES];

impl Dot {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, vnni: bool) -> Dot {
        // Tiles and row list are read at once; out waits on the stack, so that its register is free. There is one row: no stride.
        let mut regs = Regs::with_params(1);
        // On a Zen 3 bytes arrive some percent faster with 512 than with 1024, nibbles a percent or two slower (benches/runs/2026-11-22-zen3.md).
        let ahead = if format == WeightFormat::Int8 { 512 } else { 1024 };
        let walk = Walk::new(&mut regs, format, k, Pace { short: true, ahead });
        let (row, base) = (regs.general(), regs.general());
        let mut pair = || [regs.half(), regs.half()];
        let ([mask, table], activations, weights) = (pair(), pair(), pair());
        let in_words = format != WeightFormat::Int8 && !vnni;
        let together = if in_words { ADJACENT / 2 } else { ADJACENT };
        let ints = (0..together).map(|_| pair()).collect();
        let words = (0..if in_words { together } else { 0 }).map(|_| pair()).collect();
        let correction = regs.half();
        let constants = a.create_label();
        Dot {
            format,
            k,
            vnni,
            regs,
            walk,
            row,
            base,
            constants,
            mask,
            table,
            correction,
            activations,
            weights,
            ints,
            words,
        }
    }

    fn nibbles(&self) -> bool {
        self.format != WeightFormat::Int8
    }

    fn emit(mut self, a: &mut CodeAssembler, pairs: bool) -> Result<(), IcedError> {
        self.regs.save(a)?;
        let (list, out) = (PARAMS[1], PARAMS[2]);
        a.push(out)?;
        a.mov(self.row, qword_ptr(list))?;
        a.lea(self.base, qword_ptr(self.constants))?;
        self.constant(a, self.mask, if self.nibbles() { NIBBLES } else { SIGNS })?;
        match self.format {
            WeightFormat::Mxfp4 => {
                let at = constants(self.format).len() * 4;
                a.vbroadcasti128(self.table, xmmword_ptr(self.base + at))?;
            }
            WeightFormat::Int8 => self.constant(a, self.table, ONES)?,
            _ => {}
        }
        let zero = self.correction;
        a.vpxor(zero, zero, zero)?;
        a.sub(rsp, FRAME)?;
        for value in ON_STACK {
            self.constant(a, self.weights[0], value)?;
            a.vmovdqu(on_stack(value), self.weights[0])?;
        }
        for (tile, half) in rows() {
            a.vmovups(sum(tile, half), zero)?;
        }
        self.walk.all_blocks(a, |a| self.one_block(a))?;
        let sums = [self.ints.as_flattened(), self.words.as_flattened()].concat();
        for ((tile, half), register) in rows().zip(&sums) {
            a.vmovups(*register, sum(tile, half))?;
        }
        a.add(rsp, FRAME)?;
        a.pop(SCRATCH)?;
        for ((tile, half), register) in rows().zip(sums) {
            a.vmovups(ymmword_ptr(SCRATCH + (place(tile, pairs) * LINE + half * BYTES)), register)?;
        }
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.constants)?;
        a.dd(&constants(self.format))?;
        if self.format == WeightFormat::Mxfp4 { a.db(&MXFP4_TABLE) } else { Ok(()) }
    }

    /// A constant in every lane. They are double words because of whole vectors, whose place depends on the code before them, some would straddle two
    /// lines of the cache.
    fn constant(&self, a: &mut CodeAssembler, to: AsmRegisterYmm, value: u32) -> Result<(), IcedError> {
        let all = constants(self.format);
        let index = all.iter().position(|constant| *constant == value).expect("one of them");
        a.vpbroadcastd(to, dword_ptr(self.base + 4 * index))
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        if self.vnni || self.nibbles() {
            let sum = dword_ptr(self.row + self.walk.block + Q8Row { k: self.k }.sums());
            let factor = self.weights[0];
            a.vpbroadcastd(self.correction, sum)?;
            self.constant(a, factor, -bias(self.format) as u32)?;
            a.vpmulld(self.correction, self.correction, factor)?;
        }
        let together = self.ints.len();
        for first in (0..ADJACENT).step_by(together) {
            for line in 0..data_lines(self.format) {
                self.load_activations(a, line)?;
                for (i, ints) in self.ints.iter().enumerate() {
                    let at = (first + i) * self.walk.tile() + line * LINE;
                    self.fetch(a, (first / together * data_lines(self.format) + line) * together + i)?;
                    for (half, int) in ints.iter().enumerate() {
                        let source = self.walk.at(at + half * BYTES);
                        if self.vnni {
                            self.multiply_vnni(a, line, source, *int)?;
                        } else if self.nibbles() {
                            self.multiply_nibbles(a, line, source, *int, self.words[i][half])?;
                        } else {
                            self.multiply_bytes(a, line, source, *int)?;
                        }
                    }
                }
            }
            let scale = self.activations[0];
            a.vbroadcastss(scale, dword_ptr(self.row + self.walk.block + Q8Row { k: self.k }.scales()))?;
            for (i, ints) in self.ints.iter().enumerate() {
                for (half, int) in ints.iter().enumerate() {
                    self.scale(a, first + i, half, *int)?;
                }
            }
        }
        Ok(())
    }

    /// Asks for a line: number `number` of the block's, in which all tiles take turns, whichever are multiplied together.
    fn fetch(&self, a: &mut CodeAssembler, number: usize) -> Result<(), IcedError> {
        self.walk.fetch(a, number % ADJACENT * self.walk.tile() + number / ADJACENT * LINE)
    }

    /// The block's activations that meet a line.
    fn load_activations(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        let [first, second] = self.activations;
        let dword = |number: usize| dword_ptr(self.row + self.walk.block * 8 + 4 * number);
        if self.nibbles() {
            a.vpbroadcastd(first, dword(2 * line))?;
            return a.vpbroadcastd(second, dword(2 * line + 1));
        }
        a.vpbroadcastd(first, dword(line))?;
        if self.vnni { Ok(()) } else { a.vpabsb(second, first) }
    }

    /// Low and high nibbles of 32 bytes, as unsigned weights.
    fn load_nibbles(&self, a: &mut CodeAssembler, source: AsmMemoryOperand) -> Result<(), IcedError> {
        let [low, high] = self.weights;
        a.vmovdqu(low, ymmword_ptr(source))?;
        a.vpsrlw(high, low, 4)?;
        self.weights.into_iter().try_for_each(|nibbles| a.vpand(nibbles, nibbles, self.mask))?;
        if self.format == WeightFormat::Mxfp4 {
            a.vpshufb(low, self.table, low)?;
            a.vpshufb(high, self.table, high)?;
        }
        Ok(())
    }

    /// Adds to `int` the products of half of a line, or starts it with those of the first.
    fn multiply_vnni(
        &self,
        a: &mut CodeAssembler,
        line: usize,
        source: AsmMemoryOperand,
        int: AsmRegisterYmm,
    ) -> Result<(), IcedError> {
        if line == 0 {
            a.vmovdqa(int, self.correction)?;
        }
        if self.nibbles() {
            self.load_nibbles(a, source)?;
        } else {
            a.vmovdqu(self.weights[0], ymmword_ptr(source))?;
        }
        let count = if self.nibbles() { 2 } else { 1 };
        let mut pairs = self.weights.iter().zip(&self.activations).take(count);
        pairs.try_for_each(|(weights, activations)| a.vpdpbusd(int, *weights, *activations))
    }

    /// As `multiply_vnni`, in 16 bits as long as these surely fit.
    fn multiply_nibbles(
        &self,
        a: &mut CodeAssembler,
        line: usize,
        source: AsmMemoryOperand,
        int: AsmRegisterYmm,
        word: AsmRegisterYmm,
    ) -> Result<(), IcedError> {
        self.load_nibbles(a, source)?;
        let most = if self.format == WeightFormat::Mxfp4 { 2 } else { 4 };
        let ([low, high], [first, second]) = (self.weights, self.activations);
        let opens = line.is_multiple_of(most);
        a.vpmaddubsw(if opens { word } else { low }, low, first)?;
        a.vpmaddubsw(high, high, second)?;
        if !opens {
            a.vpaddw(word, word, low)?;
        }
        a.vpaddw(word, word, high)?;
        if line % most < most - 1 {
            return Ok(());
        }
        let starts = line < most;
        a.vpmaddwd(if starts { int } else { word }, word, on_stack(ONES))?;
        a.vpaddd(int, int, if starts { self.correction } else { word })
    }

    /// As `multiply_vnni`, as signed bytes.
    fn multiply_bytes(
        &self,
        a: &mut CodeAssembler,
        line: usize,
        source: AsmMemoryOperand,
        int: AsmRegisterYmm,
    ) -> Result<(), IcedError> {
        let ([weights, _], [activations, magnitudes], ones) = (self.weights, self.activations, self.table);
        a.vpxor(weights, self.mask, ymmword_ptr(source))?;
        a.vpsignb(weights, weights, activations)?;
        a.vpmaddubsw(weights, magnitudes, weights)?;
        if line == 0 {
            return a.vpmaddwd(int, weights, ones);
        }
        a.vpmaddwd(weights, weights, ones)?;
        a.vpaddd(int, int, weights)
    }

    /// Adds a block's products of half of a tile's rows to their sum.
    fn scale(
        &self,
        a: &mut CodeAssembler,
        tile: usize,
        half: usize,
        int: AsmRegisterYmm,
    ) -> Result<(), IcedError> {
        let (row_scale, scale) = (self.weights[0], self.activations[0]);
        let at = tile * self.walk.tile() + half * scale_bytes(self.format) / HALVES;
        if self.format == WeightFormat::Mxfp4 {
            a.vpmovzxbd(row_scale, qword_ptr(self.walk.scales + at))?;
            a.vpslld(row_scale, row_scale, 23)?;
            a.vpmaxud(row_scale, row_scale, on_stack(SMALLEST))?;
            a.vmulps(row_scale, row_scale, on_stack(HALF))?;
        } else {
            a.vcvtph2ps(row_scale, xmmword_ptr(self.walk.scales + at))?;
        }
        a.vcvtdq2ps(int, int)?;
        a.vmulps(int, int, row_scale)?;
        a.vfmadd213ps(int, scale, sum(tile, half))?;
        a.vmovups(sum(tile, half), int)
    }
}

/// Tiles and halves, in order.
fn rows() -> impl Iterator<Item = (usize, usize)> {
    (0..ADJACENT).flat_map(|tile| (0..HALVES).map(move |half| (tile, half)))
}

/// Where the sums of half of a tile's rows are.
fn sum(tile: usize, half: usize) -> AsmMemoryOperand {
    ymmword_ptr(rsp + (tile * HALVES + half) * BYTES)
}

/// Where a constant is, in every lane.
fn on_stack(value: u32) -> AsmMemoryOperand {
    let index = ON_STACK.iter().position(|constant| *constant == value).expect("one of them");
    ymmword_ptr(rsp + (ADJACENT * HALVES + index) * BYTES)
}
