//! `DotQ8x4` in 512 bits. Needs AVX-512 F, BW, VL and VNNI; the faster of the two versions for mxfp4 VBMI
//! too.
//!
//! Tile: 16 rows (the lanes) of 4 tiles x up to 2 tokens, one f32 accumulator for each tile and token, one
//! int32 for those at work; weights become operands of `vpdpbusd` as in `dot_q8_avx512.rs`, activations are
//! broadcast once for the tiles that go together. MXFP4's sums start at anchors (`block.rs`).
//!
//! Made for streaming weights: see `loop_shape.rs` for the ways through the tiles. Clobbers: caller-saved
//! registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::dot_q8_avx512::Lookup;
use super::loop_shape::{LoopShape, Walk};
use super::regs::{PARAMS, Regs, SCRATCH};
use super::stored::{has_nibbles, has_table};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{ANCHOR, MXFP4_TABLE, bias, data_lines};
use crate::ukernel::dot_q8::{TILES_PER_CALL, TileOrder};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, CodeLabel, dword_bcst, dword_ptr, qword_ptr, xmmword_ptr,
    ymmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::{LINE, Q8Row, WeightFormat};
use kernmill_plan::target::Features;

/// With `vpermb`.
pub const VBMI: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vbmi",
    needs: Features::AVX512.and(Features::AVX512_VNNI).and(Features::AVX512_VBMI),
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(ukernel, MicroKernel::DotQ8x4 { format: WeightFormat::Mxfp4, tokens: 1..=2, .. })
    },
    assemble: |a, ukernel| assemble(a, ukernel, |_| Lookup::Vbmi, TOGETHER),
};

/// With `vpermb`, one tile after the other.
pub const VBMI_LINEAR: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vbmi_linear",
    assemble: |a, ukernel| assemble(a, ukernel, |_| Lookup::Vbmi, LINEAR),
    ..VBMI
};

/// Without.
pub const PLAIN: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vnni",
    needs: Features::AVX512.and(Features::AVX512_VNNI),
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotQ8x4 { tokens: 1..=2, .. }),
    assemble: |a, ukernel| assemble(a, ukernel, Lookup::of, TOGETHER),
};

/// Without, one tile after the other.
pub const PLAIN_LINEAR: AsmKernel = AsmKernel {
    name: "dot_adjacent_avx512vnni_linear",
    assemble: |a, ukernel| assemble(a, ukernel, Lookup::of, LINEAR),
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
    lookup: impl Fn(WeightFormat) -> Lookup,
    pace: LoopShape,
) -> Result<(), IcedError> {
    match ukernel {
        MicroKernel::DotQ8x4 { format, k, tokens, order } => {
            DotQ8x4Avx512::new(a, format, lookup(format), k, tokens, pace).emit(a, order)
        }
        _ => Ok(()),
    }
}

struct DotQ8x4Avx512 {
    format: WeightFormat,
    lookup: Lookup,
    k: usize,
    regs: Regs,
    walk: Walk,
    rows: Vec<AsmRegister64>,
    table: AsmRegisterZmm,
    nibble_mask: AsmRegisterZmm,
    /// In every lane.
    anchor: AsmRegisterZmm,
    /// The factor of a block's sum of activations, as the low int16 of every lane.
    correction: AsmRegisterZmm,
    /// By tile at work; of mxfp4 the anchors.
    row_scales: Vec<AsmRegisterZmm>,
    weights: [AsmRegisterZmm; 2],
    /// By token; low and high nibbles' partners.
    activations: Vec<[AsmRegisterZmm; 2]>,
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
        lookup: Lookup,
        k: usize,
        tokens: usize,
        pace: LoopShape,
    ) -> DotQ8x4Avx512 {
        // Tiles and row list are read at once; out and stride wait on the stack, so that their registers are
        // free.
        let mut regs = Regs::with_params(1);
        let walk = Walk::new(&mut regs, format, k, pace);
        let rows = (0..tokens).map(|_| regs.general()).collect();
        let [table, nibble_mask, anchor, correction] = [(); 4].map(|()| regs.vector());
        let row_scales = regs.vectors(walk.together());
        let weights = [regs.vector(), regs.vector()];
        let activations = (0..tokens).map(|_| [regs.vector(), regs.vector()]).collect();
        let ints = (0..tokens).map(|_| regs.vectors(walk.together())).collect();
        let sums = (0..tokens).map(|_| regs.vectors(TILES_PER_CALL)).collect();
        let constants = a.create_label();
        DotQ8x4Avx512 {
            format,
            lookup,
            k,
            regs,
            walk,
            rows,
            table,
            nibble_mask,
            anchor,
            correction,
            row_scales,
            weights,
            activations,
            ints,
            sums,
            constants,
        }
    }

    fn is_nibbles(&self) -> bool {
        has_nibbles(self.format)
    }

    /// Whether sums become floats without conversion.
    fn is_anchored(&self) -> bool {
        has_table(self.format)
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
        self.load_constants(a)?;
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
        self.emit_constants(a)
    }

    fn load_constants(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        a.lea(SCRATCH, qword_ptr(self.constants))?;
        a.vpbroadcastd(self.correction, dword_ptr(SCRATCH))?;
        if self.lookup == Lookup::Masked {
            a.vpbroadcastd(self.nibble_mask, dword_ptr(SCRATCH + 4))?;
        }
        if self.is_anchored() {
            a.vpbroadcastd(self.anchor, dword_ptr(SCRATCH + 8))?;
            a.vmovdqu64(self.table, zmmword_ptr(SCRATCH + 16))?;
        }
        Ok(())
    }

    fn emit_constants(&mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        a.set_label(&mut self.constants)?;
        let correction = -bias(self.format) as u32 & 0xffff;
        a.dd(&[correction, 0x0f0f_0f0f, ANCHOR, 0])?;
        if self.is_anchored() {
            a.db(&MXFP4_TABLE.repeat(4))?;
        }
        Ok(())
    }

    fn one_block(&self, a: &mut CodeAssembler, first: usize) -> Result<(), IcedError> {
        let layout = Q8Row { k: self.k };
        for (tile, row_scale) in self.row_scales.iter().enumerate() {
            self.load_row_scale(a, *row_scale, tile * self.walk.tile())?;
        }
        // A sum of 32 int8 fits into 16 bits, and the other half of the factor is 0.
        for (row, ints) in self.rows.iter().zip(&self.ints) {
            a.vpxord(ints[0], ints[0], ints[0])?;
            a.vpdpwssd(ints[0], self.correction, dword_bcst(*row + self.walk.block + layout.sums()))?;
            for (int, anchor) in ints.iter().zip(&self.row_scales).rev() {
                if self.is_anchored() {
                    a.vpaddd(*int, ints[0], *anchor)?;
                } else if *int != ints[0] {
                    a.vmovdqa64(*int, ints[0])?;
                }
            }
        }
        let halves = if self.is_nibbles() { 2 } else { 1 };
        for line in 0..data_lines(self.format) {
            for (row, activations) in self.rows.iter().zip(&self.activations) {
                for (half, activation) in activations[..halves].iter().enumerate() {
                    let at = (line * halves + half) * 4;
                    a.vpbroadcastd(*activation, dword_ptr(*row + self.walk.block * 8 + at))?;
                }
            }
            for tile in 0..self.walk.together() {
                let at = tile * self.walk.tile() + line * LINE;
                self.walk.fetch(a, at)?;
                self.load_weights(a, at)?;
                for (activations, ints) in self.activations.iter().zip(&self.ints) {
                    for (weights, activation) in self.weights.iter().zip(activations).take(halves) {
                        a.vpdpbusd(ints[tile], *weights, *activation)?;
                    }
                }
            }
        }
        for (tile, row_scale) in self.row_scales.iter().enumerate() {
            for ((row, ints), sums) in self.rows.iter().zip(&self.ints).zip(&self.sums) {
                let int = ints[tile];
                if self.is_anchored() {
                    a.vsubps(int, int, *row_scale)?;
                } else {
                    a.vcvtdq2ps(int, int)?;
                    a.vmulps(int, int, *row_scale)?;
                }
                a.vfmadd231ps(sums[first + tile], int, dword_bcst(*row + self.walk.block + layout.scales()))?;
            }
        }
        Ok(())
    }

    /// A line's unsigned bytes, low and high nibbles apart.
    fn load_weights(&self, a: &mut CodeAssembler, at: usize) -> Result<(), IcedError> {
        let [low, high] = self.weights;
        a.vmovdqu64(low, zmmword_ptr(self.walk.data + at))?;
        if !self.is_nibbles() {
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

    /// The block's 16 weight scales of a tile as f32; of mxfp4 the anchors.
    fn load_row_scale(&self, a: &mut CodeAssembler, to: AsmRegisterZmm, at: usize) -> Result<(), IcedError> {
        if !self.is_anchored() {
            return a.vcvtph2ps(to, ymmword_ptr(self.walk.scales + at));
        }
        a.vpmovzxbd(to, xmmword_ptr(self.walk.scales + at))?;
        a.vpslld(to, to, 23)?;
        a.vpaddd(to, to, self.anchor)
    }
}
