//! `DotQ8x4` in 256 bits. Needs AVX2, FMA and F16C; the faster of the two versions AVX-VNNI too.
//!
//! Tile: 16 rows in two vectors (the lanes) of 4 tiles x up to 2 tokens. An int32 accumulator for each tile,
//! vector and token that are multiplied together, which is as many as fit the registers; the f32 sums are on
//! the stack. Products are added as `dot_q8_avx2.rs` says; MXFP4's sums become floats at anchors
//! (`block.rs`).
//!
//! Made for streaming weights: see `loop_shape.rs` for the way through the tiles. Clobbers: caller-saved
//! registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress};
use super::dot_q8_avx2::{Products, number, vectors};
use super::loop_shape::{LoopShape, Walk};
use super::narrow::Packed;
use super::regs::{PARAMS, Regs, SCRATCH, constants_here};
use super::vector::{Address, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{ANCHOR, bias, data_lines};
use crate::ukernel::dot_q8::{TILES_PER_CALL, TileOrder};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, eax, qword_ptr,
    rsp, ymmword_ptr,
};
use kernmill_plan::format::{CodeMap, LINE, Q8Row, Scale, WeightFormat};
use kernmill_plan::target::Features;

/// With `vpdpbusd`, VEX-encoded.
pub const VNNI: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx2vnni",
    needs: Features::FLOOR.and(Features::AVX_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8x4 { format, tokens: 1..=2, .. } if has_room(format)),
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
    serves: |ukernel| match ukernel {
        MicroKernel::DotQ8x4 { format, tokens: 1, .. } => has_room(format),
        MicroKernel::DotQ8x4 { format, tokens: 2, .. } => format.parts().codes.low == 8,
        _ => false,
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotQ8x4 { format, k, tokens, order } => {
            DotQ8x4Avx2::new(a, format, k, tokens, false).emit(a, order)
        }
        _ => Ok(()),
    },
};

/// Whether a line's weights fit the registers: four chunks of it do not.
fn has_room(format: WeightFormat) -> bool {
    format.parts().codes.low > 2
}

/// Bytes of a vector.
const BYTES: usize = 32;
/// Vectors of a tile's rows.
const HALVES: usize = 2;

struct DotQ8x4Avx2 {
    format: WeightFormat,
    k: usize,
    by: Products,
    regs: Regs,
    walk: Walk,
    decoder: BlockDecoder,
    /// By token.
    rows: Vec<AsmRegister64>,
    /// Where the constants are.
    base: AsmRegister64,
    constants: CodeLabel,
    /// By token: partners of a line's chunks; of bytes, and their magnitudes.
    activations: Vec<TileHalves>,
    /// A line's chunks; of bytes, and a token's products. Of as many vectors as go through a line in turns.
    weights: Vec<TileHalves>,
    /// By tile of those that are multiplied together, then token.
    ints: Vec<Vec<TileHalves>>,
    /// Sums of products in 16 bits, by tile, where they are added so.
    words: Vec<TileHalves>,
    /// Magnitudes of activations, for signed weights of which a line has two chunks.
    magnitudes: Option<AsmRegisterYmm>,
}

/// Two registers: of the vectors of a tile's rows, or of the chunks of a line.
type TileHalves = [AsmRegisterYmm; HALVES];

impl DotQ8x4Avx2 {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize, vnni: bool) -> DotQ8x4Avx2 {
        // Tiles and row list are read at once; out and stride wait on the stack, so that their registers are
        // free.
        let mut regs = Regs::with_params(1);
        let by = Products::of(format, vnni);
        // On a Zen 3 bytes arrive some percent faster with 512 than with 1024, nibbles a percent or two
        // slower (benches/runs/2026-11-22-zen3.md).
        let ahead = if format.parts().codes.low == 8 { 512 } else { 1024 };
        let walk = Walk::new(&mut regs, format, k, LoopShape { short: true, ahead, linear: false });
        let rows = (0..tokens).map(|_| regs.general()).collect();
        let base = regs.general();
        let decoder = BlockDecoder::new(&mut regs, format, Width::Half, base, false);
        let decoder = if by == Products::Signed { decoder.of_integers(&mut regs) } else { decoder };
        let in_words = matches!(by, Products::Words(_));
        let together = TILES_PER_CALL / tokens / if in_words { 2 } else { 1 };
        let mut pairs =
            |count: usize| -> Vec<TileHalves> { (0..count).map(|_| [regs.half(), regs.half()]).collect() };
        let has_table = matches!(format.parts().map, CodeMap::Table { .. });
        let in_turns = has_table && tokens == 1 && by != Products::Signed;
        let (weights, activations) = (pairs(if in_turns { HALVES } else { 1 }), pairs(tokens));
        let ints = (0..together).map(|_| pairs(tokens)).collect();
        let words = pairs(if in_words { together } else { 0 });
        let magnitudes = (by == Products::Signed && decoder.chunks() > 1).then(|| regs.half());
        let constants = a.create_label();
        DotQ8x4Avx2 {
            format,
            k,
            by,
            regs,
            walk,
            decoder,
            rows,
            base,
            constants,
            activations,
            weights,
            ints,
            words,
            magnitudes,
        }
    }

    /// Whether sums become floats without conversion.
    fn is_anchored(&self) -> bool {
        self.format.parts().scale == Scale::E8M0
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
        self.decoder.prepare(a)?;
        let frame = ((self.sums().count() + 2 * self.rows.len() + 1) * BYTES) as i32;
        a.sub(rsp, frame)?;
        let [value, zero] = self.ints[0][0];
        if self.is_anchored() {
            a.mov(eax, ANCHOR)?;
            vectors(a).spread(number(value), SCRATCH)?;
            a.vmovdqu(self.anchor(), value)?;
        }
        a.vpxor(zero, zero, zero)?;
        for (tile, token, half) in self.sums() {
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
        constants_here(a, &mut self.constants)?;
        self.decoder.emit_constants(a)
    }

    /// Tiles, tokens and halves, in the order of the sums.
    fn sums(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let tokens = self.rows.len();
        let rows =
            move |tile| (0..tokens).flat_map(move |token| (0..HALVES).map(move |half| (tile, token, half)));
        (0..TILES_PER_CALL).flat_map(rows)
    }

    /// Where the sums of half of a tile's rows with a token are.
    fn sum(&self, tile: usize, token: usize, half: usize) -> AsmMemoryOperand {
        ymmword_ptr(rsp + ((tile * self.rows.len() + token) * HALVES + half) * BYTES)
    }

    /// Places behind the sums.
    fn behind(&self, index: usize) -> AsmMemoryOperand {
        ymmword_ptr(rsp + (self.sums().count() + index) * BYTES)
    }

    /// The excess of a token's sums of unsigned weights, negated.
    fn correction(&self, token: usize) -> AsmMemoryOperand {
        self.behind(token)
    }

    /// The sum of a part's activations of a token times their scale, for minima.
    fn scaled(&self, token: usize) -> AsmMemoryOperand {
        self.behind(self.rows.len() + token)
    }

    fn anchor(&self) -> AsmMemoryOperand {
        self.behind(2 * self.rows.len())
    }

    /// The dword that a token's row has for the block, `offset` behind.
    fn dword(&self, token: usize, offset: usize) -> AsmMemoryOperand {
        dword_ptr(self.rows[token] + self.walk.block + offset)
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.walk.block_units(a)?;
        (0..self.format.parts().parts()).try_for_each(|part| self.one_part(a, part))
    }

    fn one_part(&self, a: &mut CodeAssembler, part: usize) -> Result<(), IcedError> {
        self.prepare_part(a, part)?;
        let (together, lines) = (self.ints.len(), self.decoder.lines(part));
        // Lines of upper bits are asked for beside those of lower ones.
        let (low, all) = (self.format.parts().codes.low, data_lines(self.format));
        for first in (0..TILES_PER_CALL).step_by(together) {
            for line in lines.clone() {
                self.load_activations(a, line)?;
                for i in 0..together {
                    let asked = (first / together * low + line) * together + i;
                    for more in asked * all / low..(asked + 1) * all / low {
                        self.fetch(a, more)?;
                    }
                    for half in (0..HALVES).step_by(self.weights.len()) {
                        let halves = || (half..HALVES).zip(&self.weights);
                        halves()
                            .try_for_each(|(half, to)| self.load_weights(a, *to, (first + i, half), line))?;
                        for ((half, weights), token) in
                            halves().flat_map(|half| (0..self.rows.len()).map(move |token| (half, token)))
                        {
                            self.multiply(a, *weights, (i, half, token), line - lines.start)?;
                        }
                    }
                }
            }
            for (token, [scale, _]) in self.activations.iter().enumerate() {
                a.vbroadcastss(*scale, self.dword(token, Q8Row { k: self.k }.scales()))?;
            }
            for (i, half) in (0..together).flat_map(|i| (0..HALVES).map(move |half| (i, half))) {
                self.scale(a, first + i, half, part, self.ints[i].iter().map(|ints| ints[half]))?;
            }
        }
        Ok(())
    }

    /// Corrections and scaled sums of a part's activations.
    fn prepare_part(&self, a: &mut CodeAssembler, part: usize) -> Result<(), IcedError> {
        let [sum, scale] = self.weights[0];
        let (layout, corrected) = (Q8Row { k: self.k }, self.by != Products::Signed && bias(self.format) > 0);
        for token in 0..self.rows.len() {
            if corrected {
                a.vpbroadcastd(sum, self.dword(token, layout.sums()))?;
                let factors = self.decoder.bias_factors(part);
                vectors(a).packed(Packed::WordPairs, number(sum), number(sum), factors)?;
                a.vmovdqu(self.correction(token), sum)?;
            }
            if self.format.parts().has_minimum() {
                a.vpbroadcastd(sum, self.dword(token, layout.sums()))?;
                a.vbroadcastss(scale, self.dword(token, layout.scales()))?;
                let factors = self.decoder.sum_factors(part);
                vectors(a).packed(Packed::WordPairs, number(sum), number(sum), factors)?;
                a.vcvtdq2ps(sum, sum)?;
                a.vmulps(sum, sum, scale)?;
                a.vmovups(self.scaled(token), sum)?;
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
        for (row, activations) in self.rows.iter().zip(&self.activations) {
            for (i, activation) in activations.iter().take(self.decoder.chunks()).enumerate() {
                let chunk = line * self.decoder.chunks() + i;
                a.vpbroadcastd(*activation, dword_ptr(*row + self.walk.block * 8 + 4 * chunk))?;
            }
            if self.by == Products::Signed && self.magnitudes.is_none() {
                a.vpabsb(activations[1], activations[0])?;
            }
        }
        Ok(())
    }

    /// Loads the chunks of a line of half of a tile's rows.
    fn load_weights(
        &self,
        a: &mut CodeAssembler,
        to: TileHalves,
        (tile, half): (usize, usize),
        line: usize,
    ) -> Result<(), IcedError> {
        let data = Address::at(self.walk.data) + (tile * self.walk.tile() + half * BYTES);
        let to = to.map(number);
        match self.decoder.chunks() {
            1 => self.decoder.chunk(a, to[0], data, line),
            _ => self.decoder.weights(a, &to, data, line),
        }
    }

    /// Adds the products of the loaded chunks and a token's activations to the token's ints of half of tile
    /// `i`, or starts these; `line` is counted from the part's first. Clobbers the weights.
    fn multiply(
        &self,
        a: &mut CodeAssembler,
        weights: TileHalves,
        (i, half, token): (usize, usize, usize),
        line: usize,
    ) -> Result<(), IcedError> {
        let (int, chunks) = (self.ints[i][token][half], self.decoder.chunks());
        let [first, second] = weights;
        let activations = self.activations[token];
        let starts = bias(self.format) > 0;
        match self.by {
            Products::Vnni => {
                match (line, starts) {
                    (0, true) => a.vmovdqu(int, self.correction(token))?,
                    (0, false) => a.vpxor(int, int, int)?,
                    _ => {}
                }
                let mut pairs = weights.into_iter().zip(activations).take(chunks);
                pairs.try_for_each(|(weights, activation)| a.vpdpbusd(int, weights, activation))
            }
            Products::Words(together) => {
                let (words, most) = (self.words[i][half], together / chunks);
                let (opens, closes) = (line.is_multiple_of(most), line % most == most - 1);
                a.vpmaddubsw(if opens { words } else { first }, first, activations[0])?;
                a.vpmaddubsw(second, second, activations[1])?;
                if !opens {
                    a.vpaddw(words, words, first)?;
                }
                a.vpaddw(words, words, second)?;
                if !closes {
                    return Ok(());
                }
                let begins = line < most;
                let to = if begins { int } else { words };
                vectors(a).packed(Packed::WordPairs, number(to), number(words), self.decoder.ones())?;
                match (begins, starts) {
                    (true, true) => a.vpaddd(int, int, self.correction(token)),
                    (true, false) => Ok(()),
                    (false, _) => a.vpaddd(int, int, words),
                }
            }
            Products::Signed => {
                let Some(magnitudes) = self.magnitudes else {
                    let [values, magnitudes] = activations;
                    a.vpsignb(second, first, values)?;
                    return self.add_signed(a, int, (magnitudes, second), line == 0);
                };
                for (n, (weights, values)) in weights.into_iter().zip(activations).enumerate() {
                    a.vpabsb(magnitudes, values)?;
                    a.vpsignb(weights, weights, values)?;
                    self.add_signed(a, int, (magnitudes, weights), line == 0 && n == 0)?;
                }
                Ok(())
            }
        }
    }

    /// Adds products of magnitudes and signed weights.
    fn add_signed(
        &self,
        a: &mut CodeAssembler,
        int: AsmRegisterYmm,
        (magnitudes, product): (AsmRegisterYmm, AsmRegisterYmm),
        begins: bool,
    ) -> Result<(), IcedError> {
        a.vpmaddubsw(product, magnitudes, product)?;
        let to = if begins { int } else { product };
        vectors(a).packed(Packed::WordPairs, number(to), number(product), self.decoder.ones())?;
        if begins { Ok(()) } else { a.vpaddd(int, int, product) }
    }

    /// Adds a part's products of half of a tile's rows to their sums; `ints` by token, whose scales are where
    /// their activations were.
    fn scale(
        &self,
        a: &mut CodeAssembler,
        tile: usize,
        half: usize,
        part: usize,
        ints: impl Iterator<Item = AsmRegisterYmm>,
    ) -> Result<(), IcedError> {
        let [row_scale, minima] = self.weights[0];
        let offset = tile * self.walk.tile();
        let scales = Address::at(self.walk.scales) + offset;
        let places = ScaleAddress { scales, units: self.walk.units(offset).unwrap_or(scales) };
        if self.is_anchored() {
            let v = &mut vectors(a);
            v.load_bytes(number(row_scale), scales + half * 8)?;
            v.shift_left(number(row_scale), number(row_scale), 23)?;
            a.vpaddd(row_scale, row_scale, self.anchor())?;
        } else {
            self.decoder.scales(a, number(row_scale), places, part, half)?;
        }
        if self.format.parts().has_minimum() {
            self.decoder.minima(a, number(minima), places, part, half)?;
        }
        for (token, int) in ints.enumerate() {
            if self.is_anchored() {
                a.vpaddd(int, int, row_scale)?;
                a.vsubps(int, int, row_scale)?;
            } else {
                a.vcvtdq2ps(int, int)?;
                a.vmulps(int, int, row_scale)?;
            }
            a.vfmadd213ps(int, self.activations[token][0], self.sum(tile, token, half))?;
            if self.format.parts().has_minimum() {
                a.vfmadd231ps(int, minima, self.scaled(token))?;
            }
            a.vmovups(self.sum(tile, token, half), int)?;
        }
        Ok(())
    }
}
