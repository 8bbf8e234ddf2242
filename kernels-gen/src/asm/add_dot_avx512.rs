//! `AddDot` in 512 bits. Needs AVX-512 F.
//!
//! Tile: 16 rows (the lanes) x 1 or 6 tokens, four accumulators per token for the "dot4" order. Clobbers:
//! caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::regs::{PARAMS, Regs};
use super::stored::is_bf16;
use crate::ukernel::MicroKernel;
use crate::ukernel::add_dot::{TOKENS, per_line};
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, byte_ptr, dword_bcst, dword_ptr, zmmword_ptr};
use kernmill_plan::format::{LINE, WeightFormat};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "add_dot_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| match ukernel {
        MicroKernel::AddDot { format, tokens } => !format.is_blocked() && TOKENS.contains(&tokens),
        _ => false,
    },
    assemble: |a, ukernel| match ukernel {
        MicroKernel::AddDot { format, tokens } => emit(a, format, tokens),
        _ => Ok(()),
    },
};

/// Bytes behind a line that is read that are fetched ahead into L2, as other micro-kernels do: some tiles of
/// a B, which lie one behind the other.
const AHEAD: usize = 8192;

fn emit(a: &mut CodeAssembler, format: WeightFormat, tokens: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [tile, x, x_stride, out, out_stride, k] = PARAMS;
    let mut rows = vec![x];
    rows.extend((1..tokens).map(|_| regs.general()));
    let index = regs.general();
    let (weights, mask, sums) = (regs.vectors(4), regs.vector(), regs.vectors(4 * tokens));
    let (mut constants, mut again, mut done) = (a.create_label(), a.create_label(), a.create_label());
    regs.save(a)?;
    for pair in rows.windows(2) {
        a.mov(pair[1], pair[0])?;
        a.add(pair[1], x_stride)?;
    }
    if is_bf16(format) {
        a.vpbroadcastd(mask, dword_ptr(constants))?;
    }
    for sum in &sums {
        a.vpxord(*sum, *sum, *sum)?;
    }
    a.shl(k, 2)?;
    a.xor(index, index)?;
    a.test(k, k)?;
    a.je(done)?;
    a.set_label(&mut again)?;
    for line in 0..4 / per_line(format) {
        a.prefetcht1(byte_ptr(tile + (line * LINE + AHEAD)))?;
    }
    for column in 0..4 {
        let weight = weights[column];
        let line = zmmword_ptr(tile + column / per_line(format) * LINE);
        match (is_bf16(format), column % 2) {
            (true, 0) => {
                a.vmovdqu32(weight, line)?;
                a.vpslld(weight, weight, 16)?;
            }
            (true, _) => a.vpandd(weight, mask, line)?,
            _ => a.vmovups(weight, line)?,
        }
        for (t, row) in rows.iter().enumerate() {
            a.vfmadd231ps(sums[t * 4 + column], weight, dword_bcst(*row + index + 4 * column))?;
        }
    }
    a.add(tile, (4 / per_line(format) * LINE) as i32)?;
    a.add(index, 16)?;
    a.cmp(index, k)?;
    a.jne(again)?;
    a.set_label(&mut done)?;
    for acc in sums.chunks(4) {
        a.vaddps(acc[0], acc[0], acc[1])?;
        a.vaddps(acc[2], acc[2], acc[3])?;
        a.vaddps(acc[0], acc[0], acc[2])?;
        a.vaddps(acc[0], acc[0], zmmword_ptr(out))?;
        a.vmovups(zmmword_ptr(out), acc[0])?;
        a.add(out, out_stride)?;
    }
    regs.restore_and_return(a)?;
    if is_bf16(format) {
        a.set_label(&mut constants)?;
        a.dd(&[0xffff_0000])?;
    }
    Ok(())
}
