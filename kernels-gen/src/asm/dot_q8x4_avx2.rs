//! `DotQ8x4` in 256 bits, for one token or two. Needs AVX2, FMA and F16C; the faster of the two versions
//! AVX-VNNI too.
//!
//! Tile: 16 rows (the lanes, eight to a vector) of 4 tiles x up to 2 tokens, an int32 accumulator for each
//! token and vector of rows. As many tiles are multiplied at a time as have room for these, and without VNNI
//! for nibbles' sums in 16 bits besides: four or two. Activations are broadcast once for these tiles. The f32
//! sums are on the stack, since only one fma in a block needs each. Products without VNNI are as in
//! `dot_q8_avx2.rs`: nibbles' are added in 16 bits first, four of MXFP4 (24576 at most) or eight of int4 (2 *
//! 15 * 128 each, 30720 at most); bytes are multiplied as signed ones. The two vectors of a line of nibbles
//! go through it in turns where there are registers for both.
//!
//! MXFP4's sums become floats by means of anchors (`block.rs`).
//!
//! Made for streaming weights: see `loop_shape.rs` for its way through the tiles. Clobbers: caller-saved
//! registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::loop_shape::{LoopShape, Walk};
use super::regs::{PARAMS, Regs, SCRATCH};
use super::stored::{has_nibbles, has_table};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{ANCHOR, MXFP4_TABLE, bias, data_lines, scale_bytes};
use crate::ukernel::dot_q8::{TILES_PER_CALL, TileOrder};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr, rsp,
    xmmword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Features;

/// With `vpdpbusd`, VEX-encoded.
pub const VNNI: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx2vnni",
    needs: Features::FLOOR.and(Features::AVX_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8x4 { tokens: 1..=2, .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotQ8x4 { format, k, tokens, order } => {
            DotQ8x4Avx2::new(a, format, k, tokens, true).emit(a, order)
        }
        _ => Ok(()),
    },
};

/// Without. Two tokens only of bytes: nibbles' sums would leave room for one tile at a time, which is slower
/// than a micro-kernel of one tile (`benches/runs/2026-11-22-zen3.md`).
pub const PLAIN: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves: |ukernel| {
        let two = matches!(ukernel, MicroKernel::DotQ8x4 { format: WeightFormat::Int8, tokens: 2, .. });
        two || matches!(ukernel, MicroKernel::DotQ8x4 { tokens: 1, .. })
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotQ8x4 { format, k, tokens, order } => {
            DotQ8x4Avx2::new(a, format, k, tokens, false).emit(a, order)
        }
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;
/// Vectors of a tile's rows.
const HALVES: usize = 2;
/// Mask of low nibbles.
const NIBBLES: u32 = 0x0f0f_0f0f;
/// Sign bits of four bytes.
const SIGNS: u32 = 0x8080_8080;
/// Two int16 ones.
const ONES: u32 = 0x0001_0001;

/// Double words behind the code, in order, and behind them the table.
fn constants(format: WeightFormat) -> [u32; 5] {
    [NIBBLES, SIGNS, ONES, ANCHOR, -bias(format) as u32]
}

struct DotQ8x4Avx2 {
    format: WeightFormat,
    k: usize,
    vnni: bool,
    regs: Regs,
    walk: Walk,
    /// By token.
    rows: Vec<AsmRegister64>,
    /// Where the constants are.
    base: AsmRegister64,
    constants: CodeLabel,
    /// For nibbles; of bytes, the signs.
    mask: AsmRegisterYmm,
    /// The values of MXFP4; of bytes, int16 ones.
    table: AsmRegisterYmm,
    /// By token: of low and high nibbles' partners; of bytes, and their magnitudes.
    activations: Vec<TileHalves>,
    /// Low and high nibbles; of bytes, and a token's products. Of as many vectors as go through a line in
    /// turns.
    weights: Vec<TileHalves>,
    /// By tile of those that are multiplied together, then token.
    ints: Vec<Vec<TileHalves>>,
    /// Sums of nibbles' products in 16 bits, by tile; none with VNNI.
    words: Vec<TileHalves>,
    /// Constants that are memory operands, on the stack.
    on_stack: Vec<u32>,
}

/// Two registers: of the vectors of a tile's rows, or of low and high nibbles.
type TileHalves = [AsmRegisterYmm; HALVES];

/// One of the vectors of a line that are multiplied in turns.
struct LineVector {
    half: usize,
    weights: TileHalves,
}

impl DotQ8x4Avx2 {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize, vnni: bool) -> DotQ8x4Avx2 {
        // Tiles and row list are read at once; out and stride wait on the stack, so that their registers are
        // free.
        let mut regs = Regs::with_params(1);
        // On a Zen 3 bytes arrive some percent faster with 512 than with 1024, nibbles a percent or two
        // slower (benches/runs/2026-11-22-zen3.md).
        let ahead = if !has_nibbles(format) { 512 } else { 1024 };
        let walk = Walk::new(&mut regs, format, k, LoopShape { short: true, ahead, linear: false });
        let rows = (0..tokens).map(|_| regs.general()).collect();
        let base = regs.general();
        let in_words = has_nibbles(format) && !vnni;
        let mut pairs =
            |count: usize| -> Vec<TileHalves> { (0..count).map(|_| [regs.half(), regs.half()]).collect() };
        let [mask, table] = pairs(1)[0];
        let weights = pairs(if has_table(format) && tokens == 1 { HALVES } else { 1 });
        let together = TILES_PER_CALL / tokens / if in_words { 2 } else { 1 };
        let activations = pairs(tokens);
        let ints = (0..together).map(|_| pairs(tokens)).collect();
        let words = pairs(if in_words { together } else { 0 });
        let on_stack = [(in_words, ONES), (has_table(format), ANCHOR)];
        let on_stack = on_stack.into_iter().filter_map(|(is, value)| is.then_some(value)).collect();
        let constants = a.create_label();
        DotQ8x4Avx2 {
            format,
            k,
            vnni,
            regs,
            walk,
            rows,
            base,
            constants,
            mask,
            table,
            activations,
            weights,
            ints,
            words,
            on_stack,
        }
    }

    fn nibbles(&self) -> bool {
        has_nibbles(self.format)
    }

    /// Whether weights are unsigned, which makes a block's sum too large.
    fn is_corrected(&self) -> bool {
        self.vnni || self.nibbles()
    }

    fn emit(mut self, a: &mut CodeAssembler, order: TileOrder) -> Result<(), IcedError> {
        self.regs.save(a)?;
        let (list, out, stride) = (PARAMS[1], PARAMS[2], PARAMS[3]);
        a.push(stride)?;
        a.push(out)?;
        // The list's register may be one of the rows'.
        a.mov(SCRATCH, list)?;
        for (token, row) in self.rows.iter().enumerate() {
            a.mov(*row, qword_ptr(SCRATCH + 8 * token))?;
        }
        a.lea(self.base, qword_ptr(self.constants))?;
        self.constant(a, self.mask, if self.nibbles() { NIBBLES } else { SIGNS })?;
        if has_table(self.format) {
            let at = constants(self.format).len() * 4;
            a.vbroadcasti128(self.table, xmmword_ptr(self.base + at))?;
        } else if !self.nibbles() {
            self.constant(a, self.table, ONES)?;
        }
        let frame = ((self.places().count() + self.rows.len() + self.on_stack.len()) * BYTES) as i32;
        a.sub(rsp, frame)?;
        let [value, zero] = self.ints[0][0];
        for constant in &self.on_stack {
            self.constant(a, value, *constant)?;
            a.vmovdqu(self.on_stack(*constant), value)?;
        }
        a.vpxor(zero, zero, zero)?;
        for (tile, token, half) in self.places() {
            a.vmovups(self.sum(tile, token, half), zero)?;
        }
        self.walk.all_blocks(a, |a, _| self.one_block(a))?;
        // Tiles and rows are done with.
        let (out, stride) = (self.walk.data, self.walk.block);
        a.mov(out, qword_ptr(rsp + frame))?;
        a.mov(stride, qword_ptr(rsp + (frame + 8)))?;
        for token in 0..self.rows.len() {
            if token > 0 {
                a.add(out, stride)?;
            }
            let halves = order.tiles().flat_map(|tile| (0..HALVES).map(move |half| (tile, half)));
            for (at, (tile, half)) in halves.enumerate() {
                a.vmovups(value, self.sum(tile, token, half))?;
                a.vmovups(ymmword_ptr(out + at * BYTES), value)?;
            }
        }
        a.add(rsp, frame + 16)?;
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.constants)?;
        a.dd(&constants(self.format))?;
        if has_table(self.format) { a.db(&MXFP4_TABLE) } else { Ok(()) }
    }

    /// Tiles, tokens and halves, in the order of the sums.
    fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let tokens = self.rows.len();
        let rows =
            move |tile| (0..tokens).flat_map(move |token| (0..HALVES).map(move |half| (tile, token, half)));
        (0..TILES_PER_CALL).flat_map(rows)
    }

    /// Where the sums of half of a tile's rows with a token are.
    fn sum(&self, tile: usize, token: usize, half: usize) -> AsmMemoryOperand {
        ymmword_ptr(rsp + ((tile * self.rows.len() + token) * HALVES + half) * BYTES)
    }

    /// Where what unsigned weights make too much of a token's sums is.
    fn correction(&self, token: usize) -> AsmMemoryOperand {
        ymmword_ptr(rsp + (self.places().count() + token) * BYTES)
    }

    /// Where a constant is, in every lane.
    fn on_stack(&self, value: u32) -> AsmMemoryOperand {
        let index = self.on_stack.iter().position(|constant| *constant == value).expect("one of them");
        ymmword_ptr(rsp + (self.places().count() + self.rows.len() + index) * BYTES)
    }

    /// A constant in every lane. They are double words because of whole vectors, whose place depends on the
    /// code before them, some would straddle two lines of the cache.
    fn constant(&self, a: &mut CodeAssembler, to: AsmRegisterYmm, value: u32) -> Result<(), IcedError> {
        let all = constants(self.format);
        let index = all.iter().position(|constant| *constant == value).expect("one of them");
        a.vpbroadcastd(to, dword_ptr(self.base + 4 * index))
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        if self.is_corrected() {
            let [sum, factor] = self.weights[0];
            self.constant(a, factor, -bias(self.format) as u32)?;
            for (token, row) in self.rows.iter().enumerate() {
                a.vpbroadcastd(sum, dword_ptr(*row + self.walk.block + Q8Row { k: self.k }.sums()))?;
                a.vpmulld(sum, sum, factor)?;
                a.vmovdqu(self.correction(token), sum)?;
            }
        }
        let together = self.ints.len();
        for first in (0..TILES_PER_CALL).step_by(together) {
            for line in 0..data_lines(self.format) {
                self.load_activations(a, line)?;
                for i in 0..together {
                    let at = (first + i) * self.walk.tile() + line * LINE;
                    self.fetch(a, (first / together * data_lines(self.format) + line) * together + i)?;
                    for first in (0..HALVES).step_by(self.weights.len()) {
                        let vectors: Vec<LineVector> = (first..HALVES)
                            .zip(&self.weights)
                            .map(|(half, weights)| LineVector { half, weights: *weights })
                            .collect();
                        self.load_weights(a, &vectors, at)?;
                        for token in 0..self.rows.len() {
                            if self.vnni {
                                self.multiply_vnni(a, &vectors, line, i, token)?;
                            } else if self.nibbles() {
                                self.multiply_nibbles(a, &vectors, line, i)?;
                            } else {
                                self.multiply_bytes(a, &vectors[0], line, i, token)?;
                            }
                        }
                    }
                }
            }
            for (row, activations) in self.rows.iter().zip(&self.activations) {
                let scale = dword_ptr(*row + self.walk.block + Q8Row { k: self.k }.scales());
                a.vbroadcastss(activations[0], scale)?;
            }
            for (i, half) in (0..together).flat_map(|i| (0..HALVES).map(move |half| (i, half))) {
                self.scale(a, first + i, half, self.ints[i].iter().map(|ints| ints[half]))?;
            }
        }
        Ok(())
    }

    /// Asks for a line: number `number` of the block's, in which all tiles take turns, whichever are
    /// multiplied together.
    fn fetch(&self, a: &mut CodeAssembler, number: usize) -> Result<(), IcedError> {
        self.walk.fetch(a, number % TILES_PER_CALL * self.walk.tile() + number / TILES_PER_CALL * LINE)
    }

    /// The block's activations that meet a line.
    fn load_activations(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        for (row, [first, second]) in self.rows.iter().zip(&self.activations) {
            let dword = |number: usize| dword_ptr(*row + self.walk.block * 8 + 4 * number);
            if self.nibbles() {
                a.vpbroadcastd(*first, dword(2 * line))?;
                a.vpbroadcastd(*second, dword(2 * line + 1))?;
                continue;
            }
            a.vpbroadcastd(*first, dword(line))?;
            if !self.vnni {
                a.vpabsb(*second, *first)?;
            }
        }
        Ok(())
    }

    /// Loads the vectors of a line at `at`: of each 32 bytes, without VNNI as signed ones; or low and high
    /// nibbles of as many, as unsigned weights.
    fn load_weights(
        &self,
        a: &mut CodeAssembler,
        vectors: &[LineVector],
        at: usize,
    ) -> Result<(), IcedError> {
        let source = |half: usize| ymmword_ptr(self.walk.at(at + half * BYTES));
        for LineVector { half, weights: [low, _] } in vectors {
            if self.nibbles() || self.vnni {
                a.vmovdqu(*low, source(*half))?;
            } else {
                a.vpxor(*low, self.mask, source(*half))?;
            }
        }
        if !self.nibbles() {
            return Ok(());
        }
        let mut each = |step: &dyn Fn(&mut CodeAssembler, TileHalves) -> Result<(), IcedError>| {
            vectors.iter().try_for_each(|vector| step(a, vector.weights))
        };
        each(&|a, [low, high]| a.vpsrlw(high, low, 4))?;
        each(&|a, [low, _]| a.vpand(low, low, self.mask))?;
        each(&|a, [_, high]| a.vpand(high, high, self.mask))?;
        if has_table(self.format) {
            each(&|a, [low, _]| a.vpshufb(low, self.table, low))?;
            each(&|a, [_, high]| a.vpshufb(high, self.table, high))?;
        }
        Ok(())
    }

    /// Adds to a token's ints of tile `i` the products of the loaded vectors, or starts them with those of
    /// the first line.
    fn multiply_vnni(
        &self,
        a: &mut CodeAssembler,
        vectors: &[LineVector],
        line: usize,
        i: usize,
        token: usize,
    ) -> Result<(), IcedError> {
        let ints = &self.ints[i][token];
        if line == 0 {
            vectors.iter().try_for_each(|vector| a.vmovdqu(ints[vector.half], self.correction(token)))?;
        }
        let count = if self.nibbles() { 2 } else { 1 };
        (0..count).try_for_each(|n| {
            vectors.iter().try_for_each(|LineVector { half, weights }| {
                a.vpdpbusd(ints[*half], weights[n], self.activations[token][n])
            })
        })
    }

    /// Multiplies as `multiply_vnni` does, with the only token and in 16 bits as long as these surely fit.
    /// Clobbers the weights.
    fn multiply_nibbles(
        &self,
        a: &mut CodeAssembler,
        vectors: &[LineVector],
        line: usize,
        i: usize,
    ) -> Result<(), IcedError> {
        let (ints, words, [first, second]) = (&self.ints[i][0], &self.words[i], self.activations[0]);
        let most = if has_table(self.format) { 2 } else { 4 };
        let opens = line.is_multiple_of(most);
        let mut each = |step: &dyn Fn(&mut CodeAssembler, TileHalves, usize) -> Result<(), IcedError>| {
            vectors.iter().try_for_each(|vector| step(a, vector.weights, vector.half))
        };
        each(&|a, [low, _], half| a.vpmaddubsw(if opens { words[half] } else { low }, low, first))?;
        each(&|a, [_, high], _| a.vpmaddubsw(high, high, second))?;
        if !opens {
            each(&|a, [low, _], half| a.vpaddw(words[half], words[half], low))?;
        }
        each(&|a, [_, high], half| a.vpaddw(words[half], words[half], high))?;
        if line % most < most - 1 {
            return Ok(());
        }
        if line < most {
            each(&|a, _, half| a.vpmaddwd(ints[half], words[half], self.on_stack(ONES)))?;
            return each(&|a, _, half| a.vpaddd(ints[half], ints[half], self.correction(0)));
        }
        each(&|a, _, half| a.vpmaddwd(words[half], words[half], self.on_stack(ONES)))?;
        each(&|a, _, half| a.vpaddd(ints[half], ints[half], words[half]))
    }

    /// Multiplies as `multiply_vnni` does, one vector, as signed bytes.
    fn multiply_bytes(
        &self,
        a: &mut CodeAssembler,
        vector: &LineVector,
        line: usize,
        i: usize,
        token: usize,
    ) -> Result<(), IcedError> {
        let ([activations, magnitudes], ones) = (self.activations[token], self.table);
        let ([weights, product], int) = (vector.weights, self.ints[i][token][vector.half]);
        a.vpsignb(product, weights, activations)?;
        a.vpmaddubsw(product, magnitudes, product)?;
        if line == 0 {
            return a.vpmaddwd(int, product, ones);
        }
        a.vpmaddwd(product, product, ones)?;
        a.vpaddd(int, int, product)
    }

    /// Adds a block's products of half of a tile's rows to their sums; `ints` by token, whose scales are
    /// where their activations were.
    fn scale(
        &self,
        a: &mut CodeAssembler,
        tile: usize,
        half: usize,
        ints: impl Iterator<Item = AsmRegisterYmm>,
    ) -> Result<(), IcedError> {
        let row_scale = self.weights[0][0];
        let at = tile * self.walk.tile() + half * scale_bytes(self.format) / HALVES;
        let mxfp4 = has_table(self.format);
        if mxfp4 {
            a.vpmovzxbd(row_scale, qword_ptr(self.walk.scales + at))?;
            a.vpslld(row_scale, row_scale, 23)?;
            a.vpaddd(row_scale, row_scale, self.on_stack(ANCHOR))?;
        } else {
            a.vcvtph2ps(row_scale, xmmword_ptr(self.walk.scales + at))?;
        }
        for (token, int) in ints.enumerate() {
            if mxfp4 {
                a.vpaddd(int, int, row_scale)?;
                a.vsubps(int, int, row_scale)?;
            } else {
                a.vcvtdq2ps(int, int)?;
                a.vmulps(int, int, row_scale)?;
            }
            a.vfmadd213ps(int, self.activations[token][0], self.sum(tile, token, half))?;
            a.vmovups(self.sum(tile, token, half), int)?;
        }
        Ok(())
    }
}
