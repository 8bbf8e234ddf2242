//! `DotQ8` in 512 bits. Needs AVX-512 F, BW, VL and VNNI; the faster of the two versions for mxfp4 VBMI too.
//!
//! Tile: 16 rows (the lanes) x up to 8 tokens, one int32 and one f32 accumulator per token. The packed line
//! is the operand of `vpdpbusd` as it lies (int8), with its nibbles apart (int4), or looked up as well
//! (mxfp4); activations come as broadcast dwords from memory. Clobbers: caller-saved registers and flags;
//! callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use super::stored::{has_nibbles, has_table};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{MXFP4_TABLE, bias, data_lines, scale_bytes};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, byte_ptr, dword_bcst, dword_ptr, qword_ptr,
    xmmword_ptr, ymmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Features;

/// With `vpermb`.
pub const VBMI: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vbmi",
    needs: Features::AVX512.and(Features::AVX512_VNNI).and(Features::AVX512_VBMI),
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(ukernel, MicroKernel::DotQ8 { format: WeightFormat::Mxfp4, tokens: 1..=8, .. })
    },
    assemble: |a, ukernel| assemble(a, ukernel, |_| Lookup::Vbmi, PrefetchMethod::Bursts),
};

/// With `vpermb`, fetching line by line.
pub const VBMI_LINEAR: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vbmi_linear",
    assemble: |a, ukernel| assemble(a, ukernel, |_| Lookup::Vbmi, PrefetchMethod::Linear),
    ..VBMI
};

/// Without.
pub const PLAIN: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8 { tokens: 1..=8, .. }),
    assemble: |a, ukernel| assemble(a, ukernel, Lookup::of, PrefetchMethod::Bursts),
};

/// Without, fetching line by line.
pub const PLAIN_LINEAR: AsmKernel = AsmKernel {
    name: "dot_q8_avx512vnni_linear",
    assemble: |a, ukernel| assemble(a, ukernel, Lookup::of, PrefetchMethod::Linear),
    ..PLAIN
};

fn assemble(
    a: &mut CodeAssembler,
    ukernel: MicroKernel,
    lookup: impl Fn(WeightFormat) -> Lookup,
    fetch: PrefetchMethod,
) -> Result<(), IcedError> {
    match ukernel {
        MicroKernel::DotQ8 { format, k, tokens } => {
            DotQ8Avx512::new(a, format, lookup(format), k, tokens, fetch).emit(a)
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

/// How a line's nibbles become bytes.
#[derive(Clone, Copy, PartialEq)]
pub enum Lookup {
    /// No lookup: the format has bytes.
    Bytes,
    /// Masked, then looked up if they are mxfp4: an index of `vpshufb` must not have its highest bit set.
    Masked,
    /// Looked up as they are: `vpermb` minds only the low six bits of an index, and the table repeats every
    /// 16 bytes. On a Zen 4 one token takes 4.8 ns a block this way and 5.6 the other, its weights in cache;
    /// 8 tokens 24.7 and 25.2.
    Vbmi,
}

impl Lookup {
    /// Without VBMI.
    pub fn of(format: WeightFormat) -> Lookup {
        if !has_nibbles(format) { Lookup::Bytes } else { Lookup::Masked }
    }
}

/// Bytes that prefetching is ahead of the tile's bytes. Measured with `benches/ukernels.rs`: in bursts, on a
/// Zen 4 and a Xeon, distances from 8 to 16 KiB are alike, shorter ones and prefetching into L1 slower; line
/// by line, on a Zen 5, distances from 8 to 12 KiB are alike and 6 KiB slower with 4 and 8 tokens. A prefetch
/// past the last tile does not fault.
pub const PREFETCH_DISTANCE: usize = 8192;

/// Blocks per turn of a loop that prefetches: so many that they fill whole lines, and no line is asked for
/// twice.
const PREFETCH_BLOCKS: usize = 4;

struct DotQ8Avx512 {
    format: WeightFormat,
    lookup: Lookup,
    k: usize,
    regs: Regs,
    /// Scale plane, then advancing block by block.
    scales: AsmRegister64,
    /// Data plane, advancing.
    data: AsmRegister64,
    /// Four times the block's number.
    block: AsmRegister64,
    rows: Vec<AsmRegister64>,
    table: AsmRegisterZmm,
    nibble_mask: AsmRegisterZmm,
    half: AsmRegisterZmm,
    smallest: AsmRegisterZmm,
    /// The factor of a block's sum of activations, as the low int16 of every lane.
    correction: AsmRegisterZmm,
    row_scale: AsmRegisterZmm,
    weights: [AsmRegisterZmm; 2],
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
        lookup: Lookup,
        k: usize,
        tokens: usize,
        fetch: PrefetchMethod,
    ) -> DotQ8Avx512 {
        // Tile and row list are read at once; out and stride wait on the stack, so that their registers are
        // free.
        let mut regs = Regs::with_params(1);
        let scales = PARAMS[0];
        let (data, block) = (regs.general(), regs.general());
        let rows: Vec<AsmRegister64> = (0..tokens).map(|_| regs.general()).collect();
        let ahead = regs.general();
        let [table, nibble_mask, half, smallest, correction, row_scale] = [(); 6].map(|()| regs.vector());
        let weights = [regs.vector(), regs.vector()];
        let (ints, sums) = (regs.vectors(tokens), regs.vectors(tokens));
        let constants = a.create_label();
        DotQ8Avx512 {
            format,
            lookup,
            k,
            regs,
            scales,
            data,
            block,
            rows,
            table,
            nibble_mask,
            half,
            smallest,
            correction,
            row_scale,
            weights,
            ints,
            sums,
            constants,
            fetch,
            ahead,
        }
    }

    fn nibbles(&self) -> bool {
        has_nibbles(self.format)
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
        a.lea(self.data, qword_ptr(self.scales + self.format.tile(self.k).scale_bytes))?;
        a.lea(self.ahead, qword_ptr(self.scales + PREFETCH_DISTANCE))?;
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        a.vpbroadcastd(self.correction, dword_ptr(SCRATCH + 12))?;
        if self.lookup == Lookup::Masked {
            a.vpbroadcastd(self.nibble_mask, dword_ptr(SCRATCH))?;
        }
        if has_table(self.format) {
            a.vpbroadcastd(self.half, dword_ptr(SCRATCH + 4))?;
            a.vpbroadcastd(self.smallest, dword_ptr(SCRATCH + 8))?;
            a.vmovdqu64(self.table, zmmword_ptr(SCRATCH + 16))?;
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
        self.emit_constants(a)
    }

    fn emit_constants(&mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        a.set_label(&mut self.constants)?;
        let correction = -bias(self.format) as u32 & 0xffff;
        a.dd(&[0x0f0f_0f0f, 0.5f32.to_bits(), 0x0040_0000, correction])?;
        if has_table(self.format) {
            a.db(&MXFP4_TABLE.repeat(4))?;
        }
        Ok(())
    }

    /// Several blocks, and their share of prefetching: data and scales alike, so that the pointer keeps its
    /// distance from tile to tile.
    fn blocks(&self, a: &mut CodeAssembler, count: usize) -> Result<(), IcedError> {
        let (data, scales) = (count * data_lines(self.format) * LINE, count * scale_bytes(self.format));
        match self.fetch {
            PrefetchMethod::Bursts if count > 0 => {
                for line in 0..(data + scales).div_ceil(LINE) {
                    a.prefetcht1(byte_ptr(self.ahead + line * LINE))?;
                }
                a.add(self.ahead, (data + scales) as i32)?;
            }
            PrefetchMethod::Linear if count > 0 => {
                let scales = scales.next_multiple_of(LINE);
                for line in 0..scales / LINE {
                    a.prefetcht0(byte_ptr(self.ahead + line * LINE))?;
                }
                a.add(self.ahead, scales as i32)?;
            }
            _ => {}
        }
        (0..count).try_for_each(|_| self.one_block(a))
    }

    fn one_block(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let layout = Q8Row { k: self.k };
        // A sum of 32 int8 fits into 16 bits, and the other half of the factor is 0.
        for (row, int) in self.rows.iter().zip(&self.ints) {
            a.vpxord(*int, *int, *int)?;
            a.vpdpwssd(*int, self.correction, dword_bcst(*row + self.block + layout.sums()))?;
        }
        let lines = data_lines(self.format);
        for line in 0..lines {
            if self.fetch == PrefetchMethod::Linear {
                a.prefetcht0(byte_ptr(self.ahead + line * LINE))?;
            }
            self.load_weights(a, line)?;
            let halves = if self.nibbles() { 2 } else { 1 };
            for half in 0..halves {
                let activation = (line * halves + half) * 4;
                for (row, int) in self.rows.iter().zip(&self.ints) {
                    a.vpdpbusd(*int, self.weights[half], dword_bcst(*row + self.block * 8 + activation))?;
                }
            }
        }
        self.load_row_scale(a)?;
        for ((row, int), sum) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
            a.vcvtdq2ps(*int, *int)?;
            a.vmulps(*int, *int, self.row_scale)?;
            a.vfmadd231ps(*sum, *int, dword_bcst(*row + self.block + layout.scales()))?;
        }
        a.add(self.data, (lines * LINE) as i32)?;
        if self.fetch == PrefetchMethod::Linear {
            a.add(self.ahead, (lines * LINE) as i32)?;
        }
        a.add(self.block, 4)
    }

    /// A line's unsigned bytes, low and high nibbles apart.
    fn load_weights(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        let [low, high] = self.weights;
        a.vmovdqu64(low, zmmword_ptr(self.data + line * LINE))?;
        if !self.nibbles() {
            return Ok(());
        }
        a.vpsrlw(high, low, 4)?;
        if self.lookup == Lookup::Vbmi {
            a.vpermb(low, low, self.table)?;
            return a.vpermb(high, high, self.table);
        }
        a.vpandd(low, low, self.nibble_mask)?;
        a.vpandd(high, high, self.nibble_mask)?;
        if has_table(self.format) {
            a.vpshufb(low, self.table, low)?;
            a.vpshufb(high, self.table, high)?;
        }
        Ok(())
    }

    /// The block's 16 weight scales as f32, halved for mxfp4; advances.
    fn load_row_scale(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        if has_table(self.format) {
            a.vpmovzxbd(self.row_scale, xmmword_ptr(self.scales))?;
            a.vpslld(self.row_scale, self.row_scale, 23)?;
            // A scale byte of 0 stands for 2^-127, whose bits are below those of every other.
            a.vpmaxud(self.row_scale, self.row_scale, self.smallest)?;
            a.vmulps(self.row_scale, self.row_scale, self.half)?;
            a.add(self.scales, 16)
        } else {
            a.vcvtph2ps(self.row_scale, ymmword_ptr(self.scales))?;
            a.add(self.scales, 32)
        }
    }
}
