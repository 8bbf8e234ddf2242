//! `DotQ8` in 256 bits. Needs AVX2, FMA and F16C; the faster of the two versions AVX-VNNI too.
//!
//! Tile: a packed line is two operands, rows 0-7 and 8-15 (the lanes), by up to four tokens; an integer
//! accumulator for each token and vector of rows. Both vectors go through a chunk of four columns together,
//! so that an activation is broadcast, and made positive, once for both. The f32 sums of more than two tokens
//! are on the stack, since only one or two fmas in a block need each. More than four tokens go through the
//! tile again, which the cache has by then.
//!
//! What comes later is prefetched into L2, a line beside every line of data: with several passes the next
//! tile, each pass its share, so that neither the passes wait for memory nor memory for them.
//!
//! Without VNNI, products are added in pairs to 16 bits (`vpmaddubsw`), the pairs to 32 bits (`vpmaddwd` by
//! ones):
//! - Unsigned weights of at most 63, activations at least -128: as many results of `vpmaddubsw` are added in
//!   16 bits first as surely fit, each of at most `2 * 128 * largest`.
//! - Larger ones times activations would saturate. Weights are signed (q in [-127, 127]) and the activation's
//!   sign moves to them: |a| * ±q, at most 2 * 128 * 127 = 32512 per pair. These are products of signed
//!   weights: no correction.
//!
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress, unit_offset};
use super::dot_q8_avx512::PREFETCH_DISTANCE;
use super::loop_shape::prefetch_distance;
use super::narrow::Packed;
use super::regs::{PARAMS, Regs, SCRATCH, YMM, constants_here};
use super::vector::{Address, Vector, Vectors, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{bias, data_lines, scale_bytes};
use crate::ukernel::decode::CHUNKS;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, byte_ptr, dword_ptr,
    qword_ptr, rsp, ymmword_ptr,
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

/// How a chunk's products are added up.
#[derive(Clone, Copy, PartialEq)]
pub enum Products {
    /// By `vpdpbusd`.
    Vnni,
    /// In 16 bits, those of so many chunks before they are widened.
    Words(usize),
    /// Each widened, of signed weights.
    Signed,
}

impl Products {
    /// The way of a format.
    pub fn of(format: WeightFormat, vnni: bool) -> Products {
        let parts = format.parts();
        match usize::from(parts.largest()) {
            _ if vnni => Products::Vnni,
            largest @ ..64 => {
                let fit = i16::MAX as usize / (2 * 128 * largest);
                // Groups of chunks are of one size.
                let chunks = CHUNKS / parts.parts();
                Products::Words((1..=fit.min(chunks)).rev().find(|n| chunks.is_multiple_of(*n)).unwrap_or(1))
            }
            _ => Products::Signed,
        }
    }
}

struct DotQ8Avx2 {
    format: WeightFormat,
    k: usize,
    tokens: usize,
    by: Products,
    regs: Regs,
    decoder: BlockDecoder,
    /// Scales, advancing block by block.
    scales: AsmRegister64,
    /// Data plane, advancing.
    data: AsmRegister64,
    /// Four times the block's number.
    block: AsmRegister64,
    /// Where the constants are.
    base: AsmRegister64,
    constants: CodeLabel,
    /// Runs ahead of the tile's bytes, scales and data alike.
    ahead: AsmRegister64,
    /// Addresses of the rows of one pass.
    rows: Vec<AsmRegister64>,
    /// Bytes of the chunks that are decoded at once; then scales in the first.
    weights: Vec<Halves>,
    /// Activations of a token.
    activations: AsmRegisterYmm,
    /// Activations without their signs, for signed weights; the scale of activations, for minima.
    extra: AsmRegisterYmm,
    /// Products that are not yet added up; then minima.
    products: Halves,
    /// By token of one pass: int32, or int16 as long as these surely fit.
    ints: Vec<Halves>,
    /// In f32, unless they are on the stack.
    sums: Vec<Halves>,
}

impl DotQ8Avx2 {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize, vnni: bool) -> DotQ8Avx2 {
        let mut regs = Regs::with_params(4);
        let [scales, data, block, base, ahead] = [(); 5].map(|()| regs.general());
        let rows: Vec<AsmRegister64> = (0..tokens.min(TOKENS_PER_PASS)).map(|_| regs.general()).collect();
        let by = Products::of(format, vnni);
        let decoder = BlockDecoder::new(&mut regs, format, Width::Half, base, false);
        let decoder = if by == Products::Signed { decoder.of_integers(&mut regs) } else { decoder };
        let activations = regs.half();
        let needs_extra = by == Products::Signed || format.parts().has_minimum();
        let extra = if needs_extra { regs.half() } else { activations };
        let mut pair = || [regs.half(), regs.half()];
        // One token leaves room for all nibbles of a line.
        let together = if tokens == 1 && decoder.chunks() == 2 { 2 } else { 1 };
        let weights = (0..together).map(|_| pair()).collect();
        let products = pair();
        let ints = rows.iter().map(|_| pair()).collect();
        let sums = rows.iter().filter(|_| tokens <= SUMS_IN_REGISTERS).map(|_| pair()).collect();
        let constants = a.create_label();
        DotQ8Avx2 {
            format,
            k,
            tokens,
            by,
            regs,
            decoder,
            scales,
            data,
            block,
            base,
            constants,
            ahead,
            rows,
            weights,
            activations,
            extra,
            products,
            ints,
            sums,
        }
    }

    /// Groups of chunks whose products add up in 16 bits, in a part of a block.
    fn groups(&self) -> usize {
        match self.by {
            Products::Words(chunks) => CHUNKS / self.format.parts().parts() / chunks,
            Products::Vnni | Products::Signed => 1,
        }
    }

    fn passes(&self) -> usize {
        self.tokens.div_ceil(TOKENS_PER_PASS)
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.regs.save(a)?;
        a.lea(self.base, qword_ptr(self.constants))?;
        self.decoder.prepare(a)?;
        let tile = self.format.tile(self.k);
        let once = self.passes() == 1;
        let distance = if once { prefetch_distance(PREFETCH_DISTANCE, tile) } else { tile.bytes() };
        a.lea(self.ahead, qword_ptr(PARAMS[0] + distance))?;
        let places = usize::from(self.sums.is_empty()) + usize::from(self.groups() > 1);
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
        constants_here(a, &mut self.constants)?;
        self.decoder.emit_constants(a)
    }

    /// Where a token's ints of the groups before are.
    fn group(&self, token: usize, half: usize) -> AsmMemoryOperand {
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
        let (layout, zero) = (self.format.tile(self.k), self.products[0]);
        a.vpxor(zero, zero, zero)?;
        for (token, row) in self.rows[..count].iter().enumerate() {
            a.mov(*row, qword_ptr(list + 8 * (first + token)))?;
            match self.sums.get(token) {
                Some(sums) => sums.iter().try_for_each(|sum| a.vpxor(*sum, *sum, *sum))?,
                None => (0..HALVES).try_for_each(|half| a.vmovups(self.sum(token, half), zero))?,
            }
        }
        a.lea(self.scales, qword_ptr(tile + layout.unit_bytes))?;
        a.lea(self.data, qword_ptr(tile + layout.scale_bytes))?;
        a.xor(self.block, self.block)?;
        let units = layout.unit_bytes / self.passes();
        for line in 0..units.div_ceil(LINE) {
            a.prefetcht1(byte_ptr(self.ahead + line * LINE))?;
        }
        if units > 0 {
            a.add(self.ahead, units as i32)?;
        }
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
        let parts = self.format.parts();
        let lines = data_lines(self.format);
        // Of a block's data and scales, so that the pointer keeps its distance from tile to tile.
        let share = (lines * LINE + scale_bytes(self.format)) / self.passes();
        let (mut asked, all) = (0, share.div_ceil(LINE));
        let scales = Address { base: self.scales, index: None, offset: 0 };
        let mut places = ScaleAddress { scales, units: scales };
        if parts.is_super() {
            unit_offset(a, self.format, SCRATCH, self.block)?;
            places.units = Address { base: PARAMS[0], index: Some(SCRATCH), offset: 0 };
        }
        for part in 0..parts.parts() {
            if self.by == Products::Vnni {
                (0..count).try_for_each(|token| self.start(a, token, part))?;
            }
            let chunks = CHUNKS / parts.parts();
            for i in 0..chunks {
                let chunk = part * chunks + i;
                while asked * CHUNKS < all * (chunk + 1) {
                    a.prefetcht1(byte_ptr(self.ahead + asked * LINE))?;
                    asked += 1;
                }
                if i.is_multiple_of(self.weights.len()) {
                    self.load_weights(a, chunk)?;
                }
                (0..count).try_for_each(|token| self.multiply(a, token, chunk, i))?;
                if let Products::Words(together) = self.by
                    && (i + 1).is_multiple_of(together)
                {
                    (0..count).try_for_each(|token| self.widen(a, token, part, i / together))?;
                }
            }
            for half in 0..HALVES {
                self.decoder.scales(a, number(self.weights[0][half]), places, part, half)?;
                if parts.has_minimum() {
                    self.decoder.minima(a, number(self.products[half]), places, part, half)?;
                }
            }
            (0..count).try_for_each(|token| self.scale(a, token, part))?;
        }
        a.add(self.ahead, share as i32)
    }

    /// Loads the bytes of chunk `chunk` and those that are decoded with it.
    fn load_weights(&self, a: &mut CodeAssembler, chunk: usize) -> Result<(), IcedError> {
        for half in 0..HALVES {
            let data = Address { base: self.data, index: None, offset: half * BYTES };
            let to: Vec<Vector> = self.weights.iter().map(|weights| number(weights[half])).collect();
            match &to[..] {
                [to] => self.decoder.chunk(a, *to, data, chunk)?,
                to => self.decoder.weights(a, to, data, chunk / to.len())?,
            }
        }
        Ok(())
    }

    /// The dword that a token's row has for the block, `offset` behind.
    fn dword(&self, token: usize, offset: usize) -> AsmMemoryOperand {
        dword_ptr(self.rows[token] + self.block + offset)
    }

    /// The excess of a part's sum of unsigned weights for a token, negated.
    fn correction(
        &self,
        a: &mut CodeAssembler,
        to: AsmRegisterYmm,
        token: usize,
        part: usize,
    ) -> Result<(), IcedError> {
        a.vpbroadcastd(to, self.dword(token, Q8Row { k: self.k }.sums()))?;
        vectors(a).packed(Packed::WordPairs, number(to), number(to), self.decoder.bias_factors(part))
    }

    /// Starts a token's ints.
    fn start(&self, a: &mut CodeAssembler, token: usize, part: usize) -> Result<(), IcedError> {
        let [first, second] = self.ints[token];
        if bias(self.format) == 0 {
            a.vpxor(first, first, first)?;
            return a.vpxor(second, second, second);
        }
        self.correction(a, first, token, part)?;
        a.vmovdqa(second, first)
    }

    /// Adds the products of a loaded chunk, number `i` of its part, and a token's activations to the token's
    /// ints, or starts these with them.
    fn multiply(&self, a: &mut CodeAssembler, token: usize, chunk: usize, i: usize) -> Result<(), IcedError> {
        let (ints, products, activations) = (self.ints[token], self.products, self.activations);
        a.vpbroadcastd(activations, dword_ptr(self.rows[token] + self.block * 8 + chunk * 4))?;
        let weights = self.weights[i % self.weights.len()];
        match self.by {
            Products::Vnni => {
                (0..HALVES).try_for_each(|half| a.vpdpbusd(ints[half], weights[half], activations))
            }
            Products::Words(together) => {
                let to = if i.is_multiple_of(together) { ints } else { products };
                (0..HALVES).try_for_each(|half| a.vpmaddubsw(to[half], weights[half], activations))?;
                if i.is_multiple_of(together) {
                    return Ok(());
                }
                (0..HALVES).try_for_each(|half| a.vpaddw(ints[half], ints[half], products[half]))
            }
            Products::Signed => {
                a.vpabsb(self.extra, activations)?;
                (0..HALVES).try_for_each(|half| a.vpsignb(products[half], weights[half], activations))?;
                (0..HALVES).try_for_each(|half| a.vpmaddubsw(products[half], self.extra, products[half]))?;
                let to = if i == 0 { ints } else { products };
                for (to, product) in to.into_iter().zip(products) {
                    vectors(a).packed(Packed::WordPairs, number(to), number(product), self.decoder.ones())?;
                }
                if i == 0 {
                    return Ok(());
                }
                (0..HALVES).try_for_each(|half| a.vpaddd(ints[half], ints[half], to[half]))
            }
        }
    }

    /// Makes int32 of a token's ints of a group of chunks.
    fn widen(&self, a: &mut CodeAssembler, token: usize, part: usize, group: usize) -> Result<(), IcedError> {
        let ints = self.ints[token];
        for int in ints {
            vectors(a).packed(Packed::WordPairs, number(int), number(int), self.decoder.ones())?;
        }
        if group > 0 {
            (0..HALVES).try_for_each(|half| a.vpaddd(ints[half], ints[half], self.group(token, half)))?;
        }
        if group + 1 < self.groups() {
            return (0..HALVES).try_for_each(|half| a.vmovdqu(self.group(token, half), ints[half]));
        }
        if bias(self.format) == 0 {
            return Ok(());
        }
        let correction = self.products[0];
        self.correction(a, correction, token, part)?;
        ints.into_iter().try_for_each(|int| a.vpaddd(int, int, correction))
    }

    /// Adds a part of a block to a token's f32 sums.
    fn scale(&self, a: &mut CodeAssembler, token: usize, part: usize) -> Result<(), IcedError> {
        let (layout, minima) = (Q8Row { k: self.k }, self.format.parts().has_minimum());
        let (scale, sum) = (self.activations, self.extra);
        a.vbroadcastss(scale, self.dword(token, layout.scales()))?;
        if minima {
            a.vpbroadcastd(sum, self.dword(token, layout.sums()))?;
            vectors(a).packed(Packed::WordPairs, number(sum), number(sum), self.decoder.sum_factors(part))?;
            a.vcvtdq2ps(sum, sum)?;
            a.vmulps(sum, sum, scale)?;
        }
        for (half, int) in self.ints[token].into_iter().enumerate() {
            a.vcvtdq2ps(int, int)?;
            a.vmulps(int, int, self.weights[0][half])?;
            if let Some(sums) = self.sums.get(token) {
                a.vfmadd231ps(sums[half], int, scale)?;
                if minima {
                    a.vfmadd231ps(sums[half], sum, self.products[half])?;
                }
                continue;
            }
            a.vfmadd213ps(int, scale, self.sum(token, half))?;
            if minima {
                a.vfmadd231ps(int, sum, self.products[half])?;
            }
            a.vmovups(self.sum(token, half), int)?;
        }
        Ok(())
    }
}

/// The number of a register.
pub fn number(register: AsmRegisterYmm) -> Vector {
    YMM.iter().position(|known| *known == register).expect("one of sixteen")
}

/// A writer of 256-bit instructions.
pub fn vectors(a: &mut CodeAssembler) -> Vectors<'_> {
    Vectors { a, width: Width::Half }
}
