//! `DotQ8x4` in 512 bits. Needs AVX-512 F, BW, VL and VNNI; the faster of the two versions for formats with a
//! table of nibbles VBMI too.
//!
//! Tile: 16 rows (the lanes) of 4 tiles x up to 2 tokens, one f32 accumulator for each tile and token, one
//! int32 for those at work; weights become operands of `vpdpbusd` as in `dot_q8_avx512.rs`, activations are
//! broadcast once for the tiles that go together. MXFP4's sums start at anchors (`block.rs`).
//!
//! Made for streaming weights: see `loop_shape.rs` for the ways through the tiles. Clobbers: caller-saved
//! registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::block_decoder::{BlockDecoder, ScaleAddress};
use super::dot_q8_avx512::is_looked_up;
use super::loop_shape::{LoopShape, Walk};
use super::regs::{PARAMS, Regs, SCRATCH, ZMM};
use super::vector::{Address, Vector, Vectors, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{ANCHOR, bias, data_lines};
use crate::ukernel::dot_q8::{TILES_PER_CALL, TileOrder};
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, dword_bcst, dword_ptr, eax, qword_ptr,
    xmmword_ptr, zmmword_ptr,
};
use iced_x86::{IcedError, Register};
use kernmill_plan::format::{LINE, Q8Row, Scale, WeightFormat};
use kernmill_plan::target::Features;

/// With `vpermb`.
pub const VBMI: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vbmi",
    needs: Features::AVX512.and(Features::AVX512_VNNI).and(Features::AVX512_VBMI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8x4 { format, tokens: 1..=2, .. } if is_looked_up(format)),
    assemble: |a, ukernel| assemble(a, ukernel, true, TOGETHER),
};

/// With `vpermb`, one tile after the other.
pub const VBMI_LINEAR: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vbmi_linear",
    assemble: |a, ukernel| assemble(a, ukernel, true, LINEAR),
    ..VBMI
};

/// Without.
pub const PLAIN: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8x4 { tokens: 1..=2, .. }),
    assemble: |a, ukernel| assemble(a, ukernel, false, TOGETHER),
};

/// Without, one tile after the other.
pub const PLAIN_LINEAR: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vnni_linear",
    assemble: |a, ukernel| assemble(a, ukernel, false, LINEAR),
    ..PLAIN
};

/// On a Zen 4 twice as far is 1 to 5 percent slower, the more the faster memory is just then; half as far no
/// better (`benches/runs/2026-11-23-zen4.md`).
const TOGETHER: LoopShape = LoopShape { short: false, ahead: 1024, linear: false };
/// On a Zen 5 distances from 4 to 8 KiB are alike (`benches/runs/2026-11-23-zen5.md`).
const LINEAR: LoopShape = LoopShape { short: false, ahead: 6144, linear: true };

fn assemble(
    a: &mut CodeAssembler,
    ukernel: MicroKernel,
    vbmi: bool,
    pace: LoopShape,
) -> Result<(), IcedError> {
    match ukernel {
        MicroKernel::DotQ8x4 { format, k, tokens, order } => {
            DotQ8x4Avx512::new(a, format, vbmi, k, tokens, pace).emit(a, order)
        }
        _ => Ok(()),
    }
}

struct DotQ8x4Avx512 {
    format: WeightFormat,
    k: usize,
    regs: Regs,
    walk: Walk,
    decoder: BlockDecoder,
    rows: Vec<AsmRegister64>,
    /// In every lane, of formats whose scales are powers of two.
    anchor: Option<AsmRegisterZmm>,
    /// The factors of the sums of a block's halves: of the bias, by part.
    bias: Vec<Vector>,
    /// Factors of the same sums that give them by part, for minima.
    sum: Vec<Vector>,
    /// By token: the sum of the activations of a part, scaled.
    scaled: Vec<AsmRegisterZmm>,
    /// By tile at work; the anchors, where sums start there.
    row_scales: Vec<AsmRegisterZmm>,
    weights: Vec<Vector>,
    /// By token, the partners of the weights; none where a line has more weights than there is room for, and
    /// activations come from memory.
    activations: Vec<Vec<AsmRegisterZmm>>,
    /// By token, then tile at work.
    ints: Vec<Vec<AsmRegisterZmm>>,
    /// By token, then tile.
    sums: Vec<Vec<AsmRegisterZmm>>,
    constants: CodeLabel,
}

impl DotQ8x4Avx512 {
    fn new(
        a: &mut CodeAssembler,
        format: WeightFormat,
        vbmi: bool,
        k: usize,
        tokens: usize,
        pace: LoopShape,
    ) -> DotQ8x4Avx512 {
        // Tiles and row list are read at once; out and stride wait on the stack, so that their registers are
        // free.
        let mut regs = Regs::with_params(1);
        let parts = format.parts();
        let walk = Walk::new(&mut regs, format, k, pace);
        let rows = (0..tokens).map(|_| regs.general()).collect();
        let decoder = BlockDecoder::new(&mut regs, format, Width::Full, SCRATCH, vbmi);
        let anchor = (parts.scale == Scale::E8M0).then(|| regs.vector());
        let mut numbers = |count: usize| regs.several_numbered(Width::Full, count);
        let bias = numbers(if bias(format) == 0 { 0 } else { parts.parts() });
        let sum = numbers(if parts.has_minimum() { parts.parts() } else { 0 });
        let weights = numbers(decoder.chunks());
        let scaled = regs.vectors(if parts.has_minimum() { tokens } else { 0 });
        let row_scales = regs.vectors(if parts.scale == Scale::E8M0 { walk.together() } else { 1 });
        let held = if decoder.chunks() > 2 { 0 } else { decoder.chunks() };
        let activations = (0..tokens).map(|_| regs.vectors(held)).collect();
        let ints = (0..tokens).map(|_| regs.vectors(walk.together())).collect();
        let sums = (0..tokens).map(|_| regs.vectors(TILES_PER_CALL)).collect();
        let constants = a.create_label();
        DotQ8x4Avx512 {
            format,
            k,
            regs,
            walk,
            decoder,
            rows,
            anchor,
            bias,
            sum,
            scaled,
            row_scales,
            weights,
            activations,
            ints,
            sums,
            constants,
        }
    }

    fn emit(mut self, a: &mut CodeAssembler, order: TileOrder) -> Result<(), IcedError> {
        self.regs.save(a)?;
        let (list, out, stride) = (PARAMS[1], PARAMS[2], PARAMS[3]);
        a.push(stride)?;
        a.push(out)?;
        // The list's register may be one of the rows'.
        a.mov(SCRATCH, list)?;
        for (t, row) in self.rows.iter().enumerate() {
            a.mov(*row, qword_ptr(SCRATCH + 8 * t))?;
        }
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        self.decoder.prepare(a)?;
        for (part, factors) in self.bias.iter().enumerate() {
            vectors(a).load(*factors, self.decoder.bias_factors(part))?;
        }
        for (part, factors) in self.sum.iter().enumerate() {
            vectors(a).load(*factors, self.decoder.sum_factors(part))?;
        }
        if let Some(anchor) = self.anchor {
            a.mov(eax, ANCHOR)?;
            a.vpbroadcastd(anchor, eax)?;
            a.lea(SCRATCH, qword_ptr(self.constants))?;
        }
        for sum in self.sums.iter().flatten() {
            a.vpxord(*sum, *sum, *sum)?;
        }
        self.walk.all_blocks(a, |a, first| self.one_block(a, first))?;
        // rows are done with: two of their like take out and stride back.
        let (out, stride) = (self.walk.data, self.walk.block);
        a.pop(out)?;
        a.pop(stride)?;
        for (token, sums) in self.sums.iter().enumerate() {
            if token > 0 {
                a.add(out, stride)?;
            }
            for (at, tile) in order.tiles().enumerate() {
                a.vmovups(zmmword_ptr(out + at * LINE), sums[tile])?;
            }
        }
        self.regs.restore_and_return(a)?;
        a.set_label(&mut self.constants)?;
        self.decoder.emit_constants(a)
    }

    fn one_block(&self, a: &mut CodeAssembler, first: usize) -> Result<(), IcedError> {
        self.walk.block_units(a)?;
        (0..self.format.parts().parts()).try_for_each(|part| self.one_part(a, first, part))
    }

    fn one_part(&self, a: &mut CodeAssembler, first: usize, part: usize) -> Result<(), IcedError> {
        let layout = Q8Row { k: self.k };
        if let Some(anchor) = self.anchor {
            for (tile, row_scale) in self.row_scales.iter().enumerate() {
                a.vpmovzxbd(*row_scale, xmmword_ptr(self.walk.scales + tile * self.walk.tile()))?;
                a.vpslld(*row_scale, *row_scale, 23)?;
                a.vpaddd(*row_scale, *row_scale, anchor)?;
            }
        }
        for (row, ints) in self.rows.iter().zip(&self.ints) {
            a.vpxord(ints[0], ints[0], ints[0])?;
            if let Some(factors) = self.bias.get(part) {
                a.vpdpwssd(ints[0], ZMM[*factors], dword_bcst(*row + self.walk.block + layout.sums()))?;
            }
            for (tile, int) in ints.iter().enumerate().rev() {
                if self.anchor.is_some() {
                    a.vpaddd(*int, ints[0], self.row_scales[tile])?;
                } else if tile > 0 {
                    a.vmovdqa64(*int, ints[0])?;
                }
            }
        }
        let chunks = self.weights.len();
        let lines = data_lines(self.format);
        let low = self.format.parts().codes.low;
        for line in self.decoder.lines(part) {
            for (row, activations) in self.rows.iter().zip(&self.activations) {
                for (i, activation) in activations.iter().enumerate() {
                    let at = (line * chunks + i) * 4;
                    a.vpbroadcastd(*activation, dword_ptr(*row + self.walk.block * 8 + at))?;
                }
            }
            for tile in 0..self.walk.together() {
                let at = tile * self.walk.tile();
                for line in line * lines / low..(line + 1) * lines / low {
                    self.walk.fetch(a, at + line * LINE)?;
                }
                let data = Address { base: self.walk.data, index: None, offset: at };
                self.decoder.weights(a, &self.weights, data, line)?;
                for ((row, activations), ints) in self.rows.iter().zip(&self.activations).zip(&self.ints) {
                    for (i, weights) in self.weights.iter().enumerate() {
                        let at = (line * chunks + i) * 4;
                        match activations.get(i) {
                            Some(activation) => a.vpdpbusd(ints[tile], ZMM[*weights], *activation)?,
                            None => {
                                let four = dword_bcst(*row + self.walk.block * 8 + at);
                                a.vpdpbusd(ints[tile], ZMM[*weights], four)?;
                            }
                        }
                    }
                }
            }
        }
        if let Some(factors) = self.sum.get(part) {
            for (row, scaled) in self.rows.iter().zip(&self.scaled) {
                a.vpbroadcastd(*scaled, dword_ptr(*row + self.walk.block + layout.sums()))?;
                a.vpmaddwd(*scaled, *scaled, ZMM[*factors])?;
                a.vcvtdq2ps(*scaled, *scaled)?;
                a.vmulps(*scaled, *scaled, dword_bcst(*row + self.walk.block + layout.scales()))?;
            }
        }
        for tile in 0..self.walk.together() {
            let places = self.places(tile);
            let row_scale = *self.row_scales.get(tile).unwrap_or(&self.row_scales[0]);
            if self.anchor.is_none() {
                self.decoder.scales(a, number(row_scale), places, part, 0)?;
            }
            for ((row, ints), sums) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
                let int = ints[tile];
                if self.anchor.is_some() {
                    a.vsubps(int, int, row_scale)?;
                } else {
                    a.vcvtdq2ps(int, int)?;
                    a.vmulps(int, int, row_scale)?;
                }
                a.vfmadd231ps(sums[first + tile], int, dword_bcst(*row + self.walk.block + layout.scales()))?;
            }
            if self.sum.is_empty() {
                continue;
            }
            self.decoder.minima(a, number(row_scale), places, part, 0)?;
            for (scaled, sums) in self.scaled.iter().zip(&self.sums) {
                a.vfmadd231ps(sums[first + tile], row_scale, *scaled)?;
            }
        }
        Ok(())
    }

    /// Where a tile's scales of the block are, and their units.
    fn places(&self, tile: usize) -> ScaleAddress {
        let offset = tile * self.walk.tile();
        let scales = Address { base: self.walk.scales, index: None, offset };
        ScaleAddress { scales, units: self.walk.units(offset).unwrap_or(scales) }
    }
}

/// The number of a register.
fn number(register: AsmRegisterZmm) -> Vector {
    Register::from(register).number()
}

/// A writer of 512-bit instructions.
fn vectors(a: &mut CodeAssembler) -> Vectors<'_> {
    Vectors { a, width: Width::Full }
}
