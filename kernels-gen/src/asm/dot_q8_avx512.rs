//! `DotQ8` in 512 bits. Needs AVX-512 F, BW, VL and VNNI; the faster of the two versions for formats with a
//! table of nibbles VBMI too.
//!
//! Tile: 16 rows (the lanes) x up to 8 tokens, one int32 and one f32 accumulator per token. The packed line
//! is the operand of `vpdpbusd` as `block_decoder.rs` makes it; activations come as broadcast dwords from
//! memory. Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress, unit_offset};
use super::loop_shape::prefetch_distance;
use super::regs::{PARAMS, Regs, SCRATCH, ZMM};
use super::vector::{Address, Vector, Vectors, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{bias, data_lines, scale_bytes};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, byte_ptr, dword_bcst, dword_ptr, qword_ptr,
    zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, CodeMap, LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Features;

/// With `vpermb`.
pub const VBMI: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vbmi",
    needs: Features::AVX512.and(Features::AVX512_VNNI).and(Features::AVX512_VBMI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8 { format, tokens: 1..=8, .. } if is_looked_up(format)),
    assemble: |a, ukernel| assemble(a, ukernel, true, PrefetchMethod::Bursts),
};

/// With `vpermb`, fetching line by line.
pub const VBMI_LINEAR: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vbmi_linear",
    assemble: |a, ukernel| assemble(a, ukernel, true, PrefetchMethod::Linear),
    ..VBMI
};

/// Without.
pub const PLAIN: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8 { tokens: 1..=8, .. }),
    assemble: |a, ukernel| assemble(a, ukernel, false, PrefetchMethod::Bursts),
};

/// Without, fetching line by line.
pub const PLAIN_LINEAR: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vnni_linear",
    assemble: |a, ukernel| assemble(a, ukernel, false, PrefetchMethod::Linear),
    ..PLAIN
};

/// Whether the nibbles of a format are looked up: with `vpermb` in two instructions less a line. On a Zen 4
/// one token of mxfp4 takes 4.8 ns a block this way and 5.6 the other, its weights in cache; 8 tokens 24.7
/// and 25.2.
pub fn is_looked_up(format: WeightFormat) -> bool {
    matches!(format.parts().map, CodeMap::Table { .. })
}

fn assemble(
    a: &mut CodeAssembler,
    ukernel: MicroKernel,
    vbmi: bool,
    fetch: PrefetchMethod,
) -> Result<(), IcedError> {
    match ukernel {
        MicroKernel::DotQ8 { format, k, tokens } => {
            DotQ8Avx512::new(a, format, vbmi, k, tokens, fetch).emit(a)
        }
        _ => Ok(()),
    }
}

/// How a micro-kernel fetches what comes later.
#[derive(Clone, Copy, PartialEq)]
enum PrefetchMethod {
    /// The lines of several blocks at once, into L2.
    Bursts,
    /// Each beside the line of data that is multiplied, into L1. On a Zen 5 eight tokens of int8 go at 0.90
    /// of a read's rate this way and at 0.37 the other (`benches/runs/2026-11-23-zen5.md`).
    Linear,
}

/// Bytes that prefetching is ahead of the tile's bytes, but for long tiles ([`prefetch_distance`]). Measured
/// with `benches/ukernels.rs`: in bursts, on a Zen 4 and a Xeon, distances from 8 to 16 KiB are alike,
/// shorter ones and prefetching into L1 slower; line by line, on a Zen 5, distances from 8 to 12 KiB are
/// alike and 6 KiB slower with 4 and 8 tokens. A prefetch past the last tile does not fault.
pub const PREFETCH_DISTANCE: usize = 8192;

/// Blocks per turn of a loop that prefetches: so many that they fill whole lines, and no line is asked for
/// twice.
const PREFETCH_BLOCKS: usize = 4;

struct DotQ8Avx512 {
    format: WeightFormat,
    k: usize,
    regs: Regs,
    decoder: BlockDecoder,
    /// Scales of the first block, then advancing block by block.
    scales: AsmRegister64,
    /// Units of the scales, the first block's, and how far behind those of the block are.
    units: Option<[AsmRegister64; 2]>,
    /// Data plane, advancing.
    data: AsmRegister64,
    /// Four times the block's number.
    block: AsmRegister64,
    rows: Vec<AsmRegister64>,
    /// The factors of the sums of a block's halves: of the bias, by part.
    bias: Vec<Vector>,
    /// Factors of the same sums that give them by part, for minima.
    sum: Vec<Vector>,
    row_scale: Vector,
    weights: Vec<Vector>,
    ints: Vec<AsmRegisterZmm>,
    sums: Vec<AsmRegisterZmm>,
    constants: CodeLabel,
    fetch: PrefetchMethod,
    /// Runs ahead of the tile's bytes, scales and data alike.
    ahead: AsmRegister64,
}

impl DotQ8Avx512 {
    fn new(
        a: &mut CodeAssembler,
        format: WeightFormat,
        vbmi: bool,
        k: usize,
        tokens: usize,
        fetch: PrefetchMethod,
    ) -> DotQ8Avx512 {
        // Tile and row list are read at once; out and stride wait on the stack, so that their registers are
        // free.
        let mut regs = Regs::with_params(1);
        let (scales, parts) = (PARAMS[0], format.parts());
        let (data, block) = (regs.general(), regs.general());
        let rows: Vec<AsmRegister64> = (0..tokens).map(|_| regs.general()).collect();
        let ahead = regs.general();
        let units = parts.is_super().then(|| [regs.general(), regs.general()]);
        let decoder = BlockDecoder::new(&mut regs, format, Width::Full, SCRATCH, vbmi);
        let mut numbers = |count: usize| regs.several_numbered(Width::Full, count);
        let bias = numbers(if bias(format) == 0 { 0 } else { parts.parts() });
        let sum = numbers(if parts.has_minimum() { parts.parts() } else { 0 });
        let (row_scale, weights) = (numbers(1)[0], numbers(decoder.chunks()));
        let (ints, sums) = (regs.vectors(tokens), regs.vectors(tokens));
        let constants = a.create_label();
        DotQ8Avx512 {
            format,
            k,
            regs,
            decoder,
            scales,
            units,
            data,
            block,
            rows,
            bias,
            sum,
            row_scale,
            weights,
            ints,
            sums,
            constants,
            fetch,
            ahead,
        }
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.regs.save(a)?;
        let (list, out, stride) = (PARAMS[1], PARAMS[2], PARAMS[3]);
        a.push(stride)?;
        a.push(out)?;
        // The list's register may be one of the rows'.
        a.mov(SCRATCH, list)?;
        for (t, row) in self.rows.iter().enumerate() {
            a.mov(*row, qword_ptr(SCRATCH + 8 * t))?;
        }
        let layout = self.format.tile(self.k);
        a.lea(self.data, qword_ptr(self.scales + layout.scale_bytes))?;
        a.lea(self.ahead, qword_ptr(self.scales + prefetch_distance(PREFETCH_DISTANCE, layout)))?;
        if let Some([units, _]) = self.units {
            a.mov(units, self.scales)?;
            a.add(self.scales, layout.unit_bytes as i32)?;
            for line in 0..layout.unit_bytes / LINE {
                self.prefetch(a, line)?;
            }
            a.add(self.ahead, layout.unit_bytes as i32)?;
        }
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        self.decoder.prepare(a)?;
        for (part, factors) in self.bias.iter().enumerate() {
            vectors(a).load(*factors, self.decoder.bias_factors(part))?;
        }
        for (part, factors) in self.sum.iter().enumerate() {
            vectors(a).load(*factors, self.decoder.sum_factors(part))?;
        }
        for sum in &self.sums {
            a.vpxord(*sum, *sum, *sum)?;
        }
        let block = self.block;
        a.xor(block, block)?;
        let blocks = self.k / BLOCK;
        if blocks >= PREFETCH_BLOCKS {
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            self.blocks(a, PREFETCH_BLOCKS)?;
            a.cmp(block, (blocks / PREFETCH_BLOCKS * PREFETCH_BLOCKS * 4) as i32)?;
            a.jne(again)?;
        }
        self.blocks(a, blocks % PREFETCH_BLOCKS)?;
        // rows are done with: two of their like take out and stride back.
        let (out, stride) = (self.data, self.block);
        a.pop(out)?;
        a.pop(stride)?;
        for (t, sum) in self.sums.iter().enumerate() {
            a.vmovups(zmmword_ptr(out), *sum)?;
            if t + 1 < self.sums.len() {
                a.add(out, stride)?;
            }
        }
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.constants)?;
        self.decoder.emit_constants(a)
    }

    fn prefetch(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        let place = byte_ptr(self.ahead + line * LINE);
        if self.fetch == PrefetchMethod::Linear { a.prefetcht0(place) } else { a.prefetcht1(place) }
    }

    /// Several blocks, and their share of prefetching: data and scales alike, so that the pointer keeps its
    /// distance from tile to tile.
    fn blocks(&self, a: &mut CodeAssembler, count: usize) -> Result<(), IcedError> {
        let (data, scales) = (count * data_lines(self.format) * LINE, count * scale_bytes(self.format));
        match self.fetch {
            PrefetchMethod::Bursts if count > 0 => {
                for line in 0..(data + scales).div_ceil(LINE) {
                    self.prefetch(a, line)?;
                }
                a.add(self.ahead, (data + scales) as i32)?;
            }
            PrefetchMethod::Linear if count > 0 => {
                let scales = scales.next_multiple_of(LINE);
                for line in 0..scales / LINE {
                    self.prefetch(a, line)?;
                }
                a.add(self.ahead, scales as i32)?;
            }
            _ => {}
        }
        (0..count).try_for_each(|_| self.one_block(a))
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let (layout, parts) = (Q8Row { k: self.k }, self.format.parts());
        let places = self.places(a)?;
        let lines = data_lines(self.format);
        let fetched = |line: usize| line * lines / parts.codes.low;
        for part in 0..parts.parts() {
            for (row, int) in self.rows.iter().zip(&self.ints) {
                a.vpxord(*int, *int, *int)?;
                if let Some(factors) = self.bias.get(part) {
                    let sums = dword_bcst(*row + self.block + layout.sums());
                    a.vpdpwssd(*int, ZMM[*factors], sums)?;
                }
            }
            for line in self.decoder.lines(part) {
                if self.fetch == PrefetchMethod::Linear {
                    (fetched(line)..fetched(line + 1)).try_for_each(|line| self.prefetch(a, line))?;
                }
                let data = Address { base: self.data, index: None, offset: 0 };
                self.decoder.weights(a, &self.weights, data, line)?;
                for (i, weights) in self.weights.iter().enumerate() {
                    let activation = (line * self.weights.len() + i) * 4;
                    for (row, int) in self.rows.iter().zip(&self.ints) {
                        a.vpdpbusd(*int, ZMM[*weights], dword_bcst(*row + self.block * 8 + activation))?;
                    }
                }
            }
            self.decoder.scales(a, self.row_scale, places, part, 0)?;
            for ((row, int), sum) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
                a.vcvtdq2ps(*int, *int)?;
                a.vmulps(*int, *int, ZMM[self.row_scale])?;
                a.vfmadd231ps(*sum, *int, dword_bcst(*row + self.block + layout.scales()))?;
            }
            let Some(factors) = self.sum.get(part) else { continue };
            self.decoder.minima(a, self.row_scale, places, part, 0)?;
            for ((row, int), sum) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
                a.vpbroadcastd(*int, dword_ptr(*row + self.block + layout.sums()))?;
                a.vpmaddwd(*int, *int, ZMM[*factors])?;
                a.vcvtdq2ps(*int, *int)?;
                a.vmulps(*int, *int, dword_bcst(*row + self.block + layout.scales()))?;
                a.vfmadd231ps(*sum, *int, ZMM[self.row_scale])?;
            }
        }
        a.add(self.scales, scale_bytes(self.format) as i32)?;
        a.add(self.data, (lines * LINE) as i32)?;
        if self.fetch == PrefetchMethod::Linear {
            a.add(self.ahead, (lines * LINE) as i32)?;
        }
        a.add(self.block, 4)
    }

    /// Where the block's scales are, and their units.
    fn places(&self, a: &mut CodeAssembler) -> Result<ScaleAddress, IcedError> {
        let scales = Address { base: self.scales, index: None, offset: 0 };
        let Some([units, offset]) = self.units else {
            return Ok(ScaleAddress { scales, units: scales });
        };
        unit_offset(a, self.format, offset, self.block)?;
        Ok(ScaleAddress { scales, units: Address { base: units, index: Some(offset), offset: 0 } })
    }
}

/// A writer of 512-bit instructions.
fn vectors(a: &mut CodeAssembler) -> Vectors<'_> {
    Vectors { a, width: Width::Full }
}
