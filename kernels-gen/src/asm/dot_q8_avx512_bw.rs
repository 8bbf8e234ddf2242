//! `DotQ8` in 512 bits for CPUs without VNNI. Needs AVX-512 F and BW.
//!
//! Tile: 16 rows (the lanes) x up to 8 tokens, one int32 and one f32 accumulator per token. Products are
//! added as `dot_q8_avx2.rs` says, in 16 bits those of up to four chunks. Where weights are signed, the sign
//! of an activation moves to them by a choice between the weight and its negative.
//!
//! With up to four tokens it prefetches into L2. Clobbers: caller-saved registers and flags; callee-saved
//! ones are pushed and popped.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress, unit_offset};
use super::dot_q8_avx2::Products;
use super::dot_q8_avx512::PREFETCH_DISTANCE;
use super::loop_shape::prefetch_distance;
use super::regs::{PARAMS, Regs, SCRATCH, ZMM};
use super::vector::{Address, Vector, Vectors, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{bias, data_lines, scale_bytes};
use crate::ukernel::decode::CHUNKS;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, byte_ptr, dword_bcst, dword_ptr, k1, qword_ptr,
    zmmword_ptr,
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
/// Chunks whose products are added in 16 bits at most: as many as are decoded at once.
const CHUNKS_IN_WORDS: usize = 4;

struct DotQ8Avx512Bw {
    format: WeightFormat,
    k: usize,
    regs: Regs,
    by: Products,
    decoder: BlockDecoder,
    /// Scales of the first block, then advancing block by block.
    scales: AsmRegister64,
    /// Units of the first block's scales, and how far behind those of the block are.
    units: [AsmRegister64; 2],
    /// Data plane, advancing.
    data: AsmRegister64,
    /// Four times the block's number.
    block: AsmRegister64,
    rows: Vec<AsmRegister64>,
    /// Runs ahead of the tile's bytes, scales and data alike; only where the memory is the limit.
    ahead: Option<AsmRegister64>,
    /// Thirty-two 1, as int16.
    ones: Vector,
    /// The factors of the sums of a block's halves: of the bias, by part.
    bias: Vec<Vector>,
    /// Factors of the same sums that give them by part, for minima.
    sum: Vec<Vector>,
    /// Chunks whose products are added in 16 bits; of signed weights one and its negative. Then scales.
    weights: Vec<Vector>,
    temporary: [AsmRegisterZmm; 2],
    ints: Vec<AsmRegisterZmm>,
    sums: Vec<AsmRegisterZmm>,
    constants: CodeLabel,
}

impl DotQ8Avx512Bw {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize) -> DotQ8Avx512Bw {
        // Row list, out and stride are read at once or wait on the stack, so that their registers are free.
        let mut regs = Regs::with_params(4);
        let parts = format.parts();
        let (data, block) = (regs.general(), regs.general());
        let rows = (0..tokens).map(|_| regs.general()).collect();
        let ahead = (tokens <= PREFETCH_TOKENS).then(|| regs.general());
        let by = Products::of(format, false);
        let decoder = BlockDecoder::new(&mut regs, format, Width::Full, SCRATCH, false);
        let decoder = if by == Products::Signed { decoder.of_integers(&mut regs) } else { decoder };
        let mut numbers = |count: usize| regs.several_numbered(Width::Full, count);
        let is_biased = by != Products::Signed && bias(format) > 0;
        let bias = numbers(if is_biased { parts.parts() } else { 0 });
        let sum = numbers(if parts.has_minimum() { parts.parts() } else { 0 });
        let weights = numbers(match by {
            Products::Words(chunks) => chunks.min(CHUNKS_IN_WORDS),
            Products::Signed | Products::Vnni => 2,
        });
        let ones = numbers(1)[0];
        let temporary = [regs.vector(), regs.vector()];
        let (ints, sums) = (regs.vectors(tokens), regs.vectors(tokens));
        let constants = a.create_label();
        DotQ8Avx512Bw {
            format,
            k,
            regs,
            by,
            decoder,
            scales: PARAMS[0],
            units: [PARAMS[2], PARAMS[1]],
            data,
            block,
            rows,
            ahead,
            ones,
            bias,
            sum,
            weights,
            temporary,
            ints,
            sums,
            constants,
        }
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let [list, out, stride] = [PARAMS[1], PARAMS[2], PARAMS[3]];
        let layout = self.format.tile(self.k);
        self.regs.save(a)?;
        for (t, row) in self.rows.iter().enumerate() {
            a.mov(*row, qword_ptr(list + 8 * t))?;
        }
        a.push(out)?;
        a.lea(self.data, qword_ptr(self.scales + layout.scale_bytes))?;
        if let Some(ahead) = self.ahead {
            a.lea(ahead, qword_ptr(self.scales + prefetch_distance(PREFETCH_DISTANCE, layout)))?;
            for line in 0..layout.unit_bytes / LINE {
                a.prefetcht1(byte_ptr(ahead + line * LINE))?;
            }
            if layout.unit_bytes > 0 {
                a.add(ahead, layout.unit_bytes as i32)?;
            }
        }
        if layout.unit_bytes > 0 {
            a.mov(self.units[0], self.scales)?;
            a.add(self.scales, layout.unit_bytes as i32)?;
        }
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        self.decoder.prepare(a)?;
        let v = &mut Vectors { a, width: Width::Full };
        v.load(self.ones, self.decoder.ones())?;
        for (part, factors) in self.bias.iter().enumerate() {
            v.load(*factors, self.decoder.bias_factors(part))?;
        }
        for (part, factors) in self.sum.iter().enumerate() {
            v.load(*factors, self.decoder.sum_factors(part))?;
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
        a.pop(out)?;
        for sum in &self.sums {
            a.vmovups(zmmword_ptr(out), *sum)?;
            a.add(out, stride)?;
        }
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.constants)?;
        self.decoder.emit_constants(a)
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let (layout, parts) = (Q8Row { k: self.k }, self.format.parts());
        let lines = data_lines(self.format);
        if let Some(ahead) = self.ahead {
            // A block's share of the tile: its data lines and its scales, so that the pointer keeps its
            // distance from tile to tile.
            for line in 0..=lines {
                a.prefetcht1(byte_ptr(ahead + line * LINE))?;
            }
            a.add(ahead, (lines * LINE + scale_bytes(self.format)) as i32)?;
        }
        let scales = Address::at(self.scales);
        let mut places = ScaleAddress { scales, units: scales };
        if parts.is_super() {
            let [units, offset] = self.units;
            unit_offset(a, self.format, offset, self.block)?;
            places.units = Address::at(units) + offset;
        }
        for part in 0..parts.parts() {
            for (row, int) in self.rows.iter().zip(&self.ints) {
                match self.bias.get(part) {
                    Some(factors) => {
                        a.vpbroadcastd(*int, dword_ptr(*row + self.block + layout.sums()))?;
                        a.vpmaddwd(*int, *int, ZMM[*factors])?;
                    }
                    None => a.vpxord(*int, *int, *int)?,
                }
            }
            let (chunks, together) = (CHUNKS / parts.parts(), self.together());
            for first in (part * chunks..(part + 1) * chunks).step_by(together) {
                self.load_weights(a, first)?;
                for (row, int) in self.rows.iter().zip(&self.ints) {
                    self.multiply(a, *int, *row, 4 * first)?;
                }
            }
            let w = self.weights[0];
            self.decoder.scales(a, w, places, part, 0)?;
            for ((row, int), sum) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
                a.vcvtdq2ps(*int, *int)?;
                a.vmulps(*int, *int, ZMM[w])?;
                a.vfmadd231ps(*sum, *int, dword_bcst(*row + self.block + layout.scales()))?;
            }
            let Some(factors) = self.sum.get(part) else { continue };
            self.decoder.minima(a, w, places, part, 0)?;
            for ((row, int), sum) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
                a.vpbroadcastd(*int, dword_ptr(*row + self.block + layout.sums()))?;
                a.vpmaddwd(*int, *int, ZMM[*factors])?;
                a.vcvtdq2ps(*int, *int)?;
                a.vmulps(*int, *int, dword_bcst(*row + self.block + layout.scales()))?;
                a.vfmadd231ps(*sum, *int, ZMM[w])?;
            }
        }
        a.add(self.scales, scale_bytes(self.format) as i32)?;
        a.add(self.data, (lines * LINE) as i32)
    }

    /// Chunks that are loaded at once.
    fn together(&self) -> usize {
        if self.by == Products::Signed { 1 } else { self.weights.len() }
    }

    /// The chunks from number `first` on; of signed weights one and its negative.
    fn load_weights(&self, a: &mut CodeAssembler, first: usize) -> Result<(), IcedError> {
        let (data, per_line) = (Address::at(self.data), self.decoder.chunks());
        if self.by == Products::Signed {
            let [weights, negative] = [0, 1].map(|i| ZMM[self.weights[i]]);
            self.decoder.chunk(a, self.weights[0], data, first)?;
            a.vpxord(negative, negative, negative)?;
            return a.vpsubb(negative, negative, weights);
        }
        for (i, to) in self.weights.chunks(per_line).enumerate() {
            match to {
                _ if to.len() == per_line => self.decoder.weights(a, to, data, first / per_line + i)?,
                _ => to
                    .iter()
                    .enumerate()
                    .try_for_each(|(j, to)| self.decoder.chunk(a, *to, data, first + i * per_line + j))?,
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
        if self.by == Products::Signed {
            a.vpmovb2m(k1, x)?;
            a.vpblendmb(y.k1(), ZMM[self.weights[0]], ZMM[self.weights[1]])?;
            a.vpabsb(x, x)?;
            a.vpmaddubsw(x, x, y)?;
        } else {
            a.vpmaddubsw(x, ZMM[self.weights[0]], x)?;
            for (i, weights) in self.weights.iter().enumerate().skip(1) {
                a.vpbroadcastd(y, activations(i))?;
                a.vpmaddubsw(y, ZMM[*weights], y)?;
                a.vpaddw(x, x, y)?;
            }
        }
        a.vpmaddwd(x, x, ZMM[self.ones])?;
        a.vpaddd(int, int, x)
    }
}
