//! `DotF32` for int8 weights in 512 bits. Needs AVX-512 F.
//!
//! Tile: 16 rows (the lanes) x up to 2 tokens, four accumulators per token for the "dot4" order; a line has
//! four columns. A code c, which is q + 128, is put into the mantissa of 256, where it makes 256 + c = q +
//! 384, and the element is `fma(q + 384, scale, -384 * scale)`. That is q times scale exactly, because a
//! scale has 11 significant bits: neither product rounds, and an element fits into f32. Clobbers:
//! caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::dot_f32_avx512::store_sums;
use super::dot_q8_avx512::PREFETCH_DISTANCE;
use super::regs::{PARAMS, Regs, constants_here};
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{data_lines, scale_bytes};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, byte_ptr, dword_bcst, dword_ptr, qword_ptr, ymmword_ptr,
    zmmword_ptr,
};
use kernmill_plan::format::{BLOCK, LINE, WeightFormat};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "dot_int8_f32_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| {
        matches!(ukernel, MicroKernel::DotF32 { format: WeightFormat::Int8, tokens: 1 | 2, .. })
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotF32 { k, tokens, .. } => emit(a, k, tokens),
        _ => Ok(()),
    },
};

/// Where a code lies in the mantissa of 256: bits 15 to 22.
const PLACE: i32 = 15;
const MASK: u32 = 0xff << PLACE;
const BASE: f32 = 256.0;
/// The excess of q from the base and the codes' bias.
const EXCESS: f32 = BASE + 128.0;
/// `first & second | third` as a truth table.
const AND_OR: u32 = 0xea;

/// Blocks per turn: so many that they fill whole lines, and no line is asked for twice.
const TURN_BLOCKS: usize = 2;

struct DotInt8F32Avx512 {
    /// Scale plane, advancing.
    scales: AsmRegister64,
    /// Data plane, advancing.
    data: AsmRegister64,
    /// The distance of the prefetch, in front of the tile's bytes, scales and data alike.
    ahead: AsmRegister64,
    rows: Vec<AsmRegister64>,
    /// Byte offset in the rows.
    index: AsmRegister64,
    line: AsmRegisterZmm,
    elements: Vec<AsmRegisterZmm>,
    mask: AsmRegisterZmm,
    base: AsmRegisterZmm,
    scale: AsmRegisterZmm,
    /// The excess to be taken off, and that times the scale.
    excess: AsmRegisterZmm,
    offset: AsmRegisterZmm,
    /// `[token][k mod 4]`.
    sums: Vec<AsmRegisterZmm>,
}

fn emit(a: &mut CodeAssembler, k: usize, tokens: usize) -> Result<(), IcedError> {
    let format = WeightFormat::Int8;
    let mut regs = Regs::with_params(4);
    let [tile, list, out, stride] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let mut constants = a.create_label();
    let dot = DotInt8F32Avx512 {
        scales: tile,
        data: regs.general(),
        ahead: regs.general(),
        rows: (0..tokens).map(|_| regs.general()).collect(),
        index: regs.general(),
        line: regs.vector(),
        elements: regs.vectors(4),
        mask: regs.vector(),
        base: regs.vector(),
        scale: regs.vector(),
        excess: regs.vector(),
        offset: regs.vector(),
        sums: regs.vectors(4 * tokens),
    };
    regs.save(a)?;
    for (t, row) in dot.rows.iter().enumerate() {
        a.mov(*row, qword_ptr(list + 8 * t))?;
    }
    a.lea(dot.data, qword_ptr(constants))?;
    for (place, vector) in [dot.mask, dot.base, dot.excess].into_iter().enumerate() {
        a.vpbroadcastd(vector, dword_ptr(dot.data + 4 * place))?;
    }
    a.lea(dot.data, qword_ptr(tile + format.tile(k).scale_bytes))?;
    a.lea(dot.ahead, qword_ptr(tile + PREFETCH_DISTANCE))?;
    for sum in &dot.sums {
        a.vpxord(*sum, *sum, *sum)?;
    }
    a.xor(dot.index, dot.index)?;
    let blocks = k / BLOCK;
    if blocks >= TURN_BLOCKS {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        dot.blocks(a, TURN_BLOCKS)?;
        a.cmp(dot.index, (blocks / TURN_BLOCKS * TURN_BLOCKS * 4 * BLOCK) as i32)?;
        a.jne(again)?;
    }
    dot.blocks(a, blocks % TURN_BLOCKS)?;
    store_sums(a, &dot.sums, out, stride)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    a.dd(&[MASK, BASE.to_bits(), (-EXCESS).to_bits()])
}

impl DotInt8F32Avx512 {
    /// Several blocks. Beside each line another one is prefetched.
    fn blocks(&self, a: &mut CodeAssembler, count: usize) -> Result<(), IcedError> {
        let lines = data_lines(WeightFormat::Int8);
        for block in 0..count {
            let scale = scale_bytes(WeightFormat::Int8);
            a.vcvtph2ps(self.scale, ymmword_ptr(self.scales + block * scale))?;
            a.vmulps(self.offset, self.scale, self.excess)?;
            for line in block * lines..(block + 1) * lines {
                a.prefetcht0(byte_ptr(self.ahead + line * LINE))?;
                self.columns(a, line)?;
            }
        }
        if count > 0 {
            let (scales, data) = (count * scale_bytes(WeightFormat::Int8), count * lines * LINE);
            a.prefetcht0(byte_ptr(self.ahead + data))?;
            a.add(self.ahead, (scales + data) as i32)?;
            a.add(self.scales, scales as i32)?;
            a.add(self.data, data as i32)?;
            a.add(self.index, (count * 4 * BLOCK) as i32)?;
        }
        Ok(())
    }

    /// The four columns of a line.
    fn columns(&self, a: &mut CodeAssembler, line: usize) -> Result<(), IcedError> {
        a.vmovdqu32(self.line, zmmword_ptr(self.data + line * LINE))?;
        for (j, element) in self.elements.iter().copied().enumerate() {
            // Lane = row; byte j of the lane goes to its place.
            match PLACE - 8 * j as i32 {
                left if left > 0 => a.vpslld(element, self.line, left)?,
                right => a.vpsrld(element, self.line, -right)?,
            }
            a.vpternlogd(element, self.mask, self.base, AND_OR)?;
            a.vfmadd213ps(element, self.scale, self.offset)?;
            for (row, sums) in self.rows.iter().zip(self.sums.chunks(4)) {
                let activation = dword_bcst(*row + self.index + 4 * (4 * line + j));
                a.vfmadd231ps(sums[j], element, activation)?;
            }
        }
        Ok(())
    }
}
