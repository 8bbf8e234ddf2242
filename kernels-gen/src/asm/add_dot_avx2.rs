//! `AddDot` in 256 bits. Needs AVX2 and FMA.
//!
//! Tile: 8 rows (the lanes) a vector, four accumulators per vector and token for the "dot4" order: one token
//! by both halves of the rows in one pass over the tile, more of them two by two by one half a pass.
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH, constants_here};
use super::stored::is_bf16;
use crate::ukernel::MicroKernel;
use crate::ukernel::add_dot::{TOKENS, per_line};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, byte_ptr, dword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{LINE, WeightFormat};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "add_dot_avx2",
    needs: Features::FLOOR,
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

/// Bytes of a vector.
const BYTES: usize = 32;
/// Bytes behind a line that is read that are fetched ahead into L2, as other micro-kernels do: some tiles of
/// a B, which lie one behind the other.
const AHEAD: usize = 8192;

struct AddDotAvx2 {
    format: WeightFormat,
    /// Data, advancing.
    data: AsmRegister64,
    /// Byte offset in the rows.
    index: AsmRegister64,
    /// The high halves' bits.
    above: CodeLabel,
    weights: [AsmRegisterYmm; 2],
    activation: AsmRegisterYmm,
    /// `[token][half of the pass][k mod 4]`.
    sums: Vec<AsmRegisterYmm>,
}

fn emit(a: &mut CodeAssembler, format: WeightFormat, tokens: usize) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [_, x, x_stride, out, out_stride, k] = PARAMS;
    let mut rows = vec![x];
    rows.extend((1..tokens).map(|_| regs.general()));
    let mut dot = AddDotAvx2 {
        format,
        data: regs.general(),
        index: regs.general(),
        above: a.create_label(),
        weights: [regs.half(), regs.half()],
        activation: regs.half(),
        sums: regs.halves(8),
    };
    regs.save(a)?;
    for pair in rows.windows(2) {
        a.mov(pair[1], pair[0])?;
        a.add(pair[1], x_stride)?;
    }
    a.shl(k, 2)?;
    if tokens == 1 {
        dot.pass(a, &rows, &[0, 1])?;
    } else {
        for (turn, pair) in rows.chunks(2).enumerate() {
            if turn > 0 {
                a.lea(out, byte_ptr(out + out_stride * 2))?;
            }
            dot.pass(a, pair, &[0])?;
            dot.pass(a, pair, &[1])?;
        }
    }
    regs.restore_and_return(a)?;
    if is_bf16(format) {
        constants_here(a, &mut dot.above)?;
        a.dd(&[0xffff_0000; 8])?;
    }
    Ok(())
}

impl AddDotAvx2 {
    /// One or two rows by the given halves of the tile's rows, over the whole of k.
    fn pass(&self, a: &mut CodeAssembler, rows: &[AsmRegister64], halves: &[usize]) -> Result<(), IcedError> {
        let [tile, _, _, out, out_stride, k] = PARAMS;
        let (mut again, mut done) = (a.create_label(), a.create_label());
        let per_line = per_line(self.format);
        for sum in &self.sums {
            a.vpxor(*sum, *sum, *sum)?;
        }
        a.mov(self.data, tile)?;
        a.xor(self.index, self.index)?;
        a.test(k, k)?;
        a.je(done)?;
        a.set_label(&mut again)?;
        for line in 0..4 / per_line {
            a.prefetcht1(byte_ptr(self.data + (line * LINE + AHEAD)))?;
        }
        for column in 0..4 {
            for (half, weight) in halves.iter().zip(self.weights) {
                a.vmovups(weight, ymmword_ptr(self.data + (column / per_line * LINE + half * BYTES)))?;
                match (is_bf16(self.format), column % 2) {
                    (true, 0) => a.vpslld(weight, weight, 16)?,
                    (true, _) => a.vpand(weight, weight, ymmword_ptr(self.above))?,
                    _ => {}
                }
            }
            for (row, sums) in rows.iter().zip(self.sums.chunks(4 * halves.len())) {
                a.vbroadcastss(self.activation, dword_ptr(*row + self.index + 4 * column))?;
                for (sums, weight) in sums.chunks(4).zip(self.weights) {
                    a.vfmadd231ps(sums[column], weight, self.activation)?;
                }
            }
        }
        a.add(self.data, (4 / per_line * LINE) as i32)?;
        a.add(self.index, 16)?;
        a.cmp(self.index, k)?;
        a.jne(again)?;
        a.set_label(&mut done)?;
        a.mov(SCRATCH, out)?;
        for sums in self.sums.chunks(4 * halves.len()).take(rows.len()) {
            for (half, acc) in halves.iter().zip(sums.chunks(4)) {
                let place = ymmword_ptr(SCRATCH + half * BYTES);
                a.vaddps(acc[0], acc[0], acc[1])?;
                a.vaddps(acc[2], acc[2], acc[3])?;
                a.vaddps(acc[0], acc[0], acc[2])?;
                a.vaddps(acc[0], acc[0], place)?;
                a.vmovups(place, acc[0])?;
            }
            a.add(SCRATCH, out_stride)?;
        }
        Ok(())
    }
}
