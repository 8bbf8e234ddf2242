//! `DotF32` for bf16 and f32 weights in 512 bits. Needs AVX-512 F.
//!
//! Tile: 16 rows (the lanes) x up to 2 tokens, four accumulators per token for the "dot4" order. Clobbers:
//! caller-saved registers and flags.

use super::AsmKernel;
use super::regs::{PARAMS, Regs};
use super::stored::is_bf16;
use crate::ukernel::MicroKernel;
use crate::ukernel::add_dot::per_line;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterZmm, CodeAssembler, dword_bcst, dword_ptr, qword_ptr, zmmword_ptr,
};
use kernmill_plan::format::{LINE, WeightFormat};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "dot_f32_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| match ukernel {
        MicroKernel::DotF32 { format, tokens, .. } => !format.is_blocked() && matches!(tokens, 1 | 2),
        _ => false,
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotF32 { format, k, tokens } => emit(a, format, k, tokens),
        _ => Ok(()),
    },
};

/// Adds up each token's four accumulators in the "dot4" order, and stores the tokens' sums `stride` bytes
/// apart.
pub(super) fn store_sums(
    a: &mut CodeAssembler,
    sums: &[AsmRegisterZmm],
    out: AsmRegister64,
    stride: AsmRegister64,
) -> Result<(), IcedError> {
    for acc in sums.chunks(4) {
        a.vaddps(acc[0], acc[0], acc[1])?;
        a.vaddps(acc[2], acc[2], acc[3])?;
        a.vaddps(acc[0], acc[0], acc[2])?;
        a.vmovups(zmmword_ptr(out), acc[0])?;
        a.add(out, stride)?;
    }
    Ok(())
}

fn emit(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(4);
    let [tile, list, out, stride] = [PARAMS[0], PARAMS[1], PARAMS[2], PARAMS[3]];
    let rows: Vec<AsmRegister64> = (0..tokens).map(|_| regs.general()).collect();
    let index = regs.general();
    let mut constants = a.create_label();
    let mut dot = DotF32Avx512 {
        format,
        tile,
        rows,
        index,
        weights: regs.vectors(4),
        mask: regs.vector(),
        sums: regs.vectors(4 * tokens),
    };
    regs.save(a)?;
    for (t, row) in dot.rows.iter().enumerate() {
        a.mov(*row, qword_ptr(list + 8 * t))?;
    }
    if is_bf16(format) {
        a.vpbroadcastd(dot.mask, dword_ptr(constants))?;
    }
    for sum in &dot.sums {
        a.vpxord(*sum, *sum, *sum)?;
    }
    a.xor(index, index)?;
    if k >= 4 {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        dot.columns(a, 4)?;
        a.add(dot.tile, (4 / dot.per_line() * LINE) as i32)?;
        a.add(index, 16)?;
        a.cmp(index, (k / 4 * 16) as i32)?;
        a.jne(again)?;
    }
    dot.columns(a, k % 4)?;
    store_sums(a, &dot.sums, out, stride)?;
    dot.sums.clear();
    regs.restore_and_return(a)?;
    if is_bf16(format) {
        a.set_label(&mut constants)?;
        a.dd(&[0xffff_0000])?;
    }
    Ok(())
}

struct DotF32Avx512 {
    format: WeightFormat,
    /// Data, advancing.
    tile: AsmRegister64,
    rows: Vec<AsmRegister64>,
    /// Byte offset in the rows.
    index: AsmRegister64,
    weights: Vec<AsmRegisterZmm>,
    mask: AsmRegisterZmm,
    /// `[token][k mod 4]`.
    sums: Vec<AsmRegisterZmm>,
}

impl DotF32Avx512 {
    /// Columns in a line.
    fn per_line(&self) -> usize {
        per_line(self.format)
    }

    /// The next `count` columns, at most 4.
    fn columns(&self, a: &mut CodeAssembler, count: usize) -> Result<(), IcedError> {
        for column in 0..count {
            let weight = self.weights[column];
            let line = zmmword_ptr(self.tile + column / self.per_line() * LINE);
            match (is_bf16(self.format), column % 2) {
                (true, 0) => {
                    a.vmovdqu32(weight, line)?;
                    a.vpslld(weight, weight, 16)?;
                }
                (true, _) => a.vpandd(weight, self.mask, line)?,
                _ => a.vmovups(weight, line)?,
            }
            for (t, row) in self.rows.iter().enumerate() {
                a.vfmadd231ps(self.sums[t * 4 + column], weight, dword_bcst(*row + self.index + 4 * column))?;
            }
        }
        Ok(())
    }
}
