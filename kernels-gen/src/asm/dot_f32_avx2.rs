//! `DotF32` in 256 bits. Needs AVX2, FMA and F16C.
//!
//! Tile: 8 rows (the lanes) a vector, four accumulators per vector and token for the "dot4" order: one token
//! by both halves of the rows in one pass over the tile, two tokens by one half a pass. bf16 and f32 weights
//! go four columns a turn; mxfp4, int8 and int4 a block of 32, every element decoded to f32 (integer times
//! scale, one rounding). Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::dot_q8_avx2::{Constants, load_nibbles, load_row_scale};
use super::regs::{PARAMS, Regs, SCRATCH, constants_here};
use super::stored::{has_nibbles, has_table, is_bf16};
use crate::ukernel::MicroKernel;
use crate::ukernel::add_dot::per_line;
use crate::ukernel::block::{bias, data_lines, scale_bytes};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, AsmRegisterYmm, CodeAssembler, CodeLabel, dword_ptr, qword_ptr, ymmword_ptr,
};
use kernmill_plan::format::{BLOCK, Decode, LINE, PlainDecode, WeightFormat};
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "dot_f32_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::DotF32 { tokens: 1 | 2, .. }),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::DotF32 { format, k, tokens } => DotF32Avx2::new(a, format, k, tokens).emit(a),
        _ => Ok(()),
    },
};

/// Bytes of a vector.
const BYTES: usize = 32;

struct DotF32Avx2 {
    format: WeightFormat,
    k: usize,
    regs: Regs,
    /// Block formats: the scale plane, advancing.
    scales: AsmRegister64,
    /// Data, advancing.
    data: AsmRegister64,
    rows: Vec<AsmRegister64>,
    /// Byte offset in the rows.
    index: AsmRegister64,
    constants: Constants,
    /// bf16: the high halves' bits; block formats: what is above the signed value in every byte.
    above: CodeLabel,
    table: AsmRegisterYmm,
    /// A column of each half; block formats: a vector's low and high nibbles.
    weights: [AsmRegisterYmm; 2],
    value: AsmRegisterYmm,
    activation: AsmRegisterYmm,
    row_scales: [AsmRegisterYmm; 2],
    /// `[token][half of the pass][k mod 4]`.
    sums: Vec<AsmRegisterYmm>,
}

impl DotF32Avx2 {
    fn new(a: &mut CodeAssembler, format: WeightFormat, k: usize, tokens: usize) -> DotF32Avx2 {
        let mut regs = Regs::with_params(4);
        let (scales, data, index) = (regs.general(), regs.general(), regs.general());
        let constants = Constants { base: regs.general(), label: a.create_label() };
        DotF32Avx2 {
            format,
            k,
            scales,
            data,
            rows: (0..tokens).map(|_| regs.general()).collect(),
            index,
            constants,
            above: a.create_label(),
            table: regs.half(),
            weights: [regs.half(), regs.half()],
            value: regs.half(),
            activation: regs.half(),
            row_scales: [regs.half(), regs.half()],
            sums: regs.halves(8),
            regs,
        }
    }

    fn emit(mut self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        let list = PARAMS[1];
        self.regs.save(a)?;
        for (t, row) in self.rows.iter().enumerate() {
            a.mov(*row, qword_ptr(list + 8 * t))?;
        }
        if self.format.is_blocked() {
            a.lea(self.constants.base, qword_ptr(self.constants.label))?;
        }
        if has_table(self.format) {
            a.vmovdqu(self.table, self.constants.table())?;
        }
        if self.rows.len() == 1 {
            self.pass(a, &[0, 1])?;
        } else {
            self.pass(a, &[0])?;
            self.pass(a, &[1])?;
        }
        self.regs.restore_and_return(a)?;
        match self.format.decode() {
            Decode::Plain(PlainDecode::F32) => return Ok(()),
            Decode::Plain(PlainDecode::Bf16) => {
                constants_here(a, &mut self.above)?;
                return a.dd(&[0xffff_0000; 8]);
            }
            Decode::Block(_) => {}
        }
        let format = self.format;
        self.constants.emit(a, format)?;
        constants_here(a, &mut self.above)?;
        a.db(&[bias(format) as u8; BYTES])
    }

    /// All tokens by the given halves of the rows, over the whole of k.
    fn pass(&self, a: &mut CodeAssembler, halves: &[usize]) -> Result<(), IcedError> {
        let [tile, out, stride] = [PARAMS[0], PARAMS[2], PARAMS[3]];
        for sum in &self.sums {
            a.vpxor(*sum, *sum, *sum)?;
        }
        a.mov(self.scales, tile)?;
        a.lea(self.data, qword_ptr(tile + self.format.tile(self.k).scale_bytes))?;
        a.xor(self.index, self.index)?;
        let turn = if self.format.is_blocked() { BLOCK } else { 4 };
        if self.k >= turn {
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            if self.format.is_blocked() {
                self.block(a, halves)?;
            } else {
                self.columns(a, halves, 4)?;
                a.add(self.data, (4 / self.per_line() * LINE) as i32)?;
            }
            a.add(self.index, (turn * 4) as i32)?;
            a.cmp(self.index, (self.k / turn * turn * 4) as i32)?;
            a.jne(again)?;
        }
        self.columns(a, halves, self.k % turn)?;
        a.mov(SCRATCH, out)?;
        for sums in self.sums.chunks(4 * halves.len()) {
            for (half, acc) in halves.iter().zip(sums.chunks(4)) {
                a.vaddps(acc[0], acc[0], acc[1])?;
                a.vaddps(acc[2], acc[2], acc[3])?;
                a.vaddps(acc[0], acc[0], acc[2])?;
                a.vmovups(ymmword_ptr(SCRATCH + half * BYTES), acc[0])?;
            }
            a.add(SCRATCH, stride)?;
        }
        Ok(())
    }

    /// Columns in a line.
    fn per_line(&self) -> usize {
        per_line(self.format)
    }

    /// The next `count` columns of bf16 or f32, at most 4.
    fn columns(&self, a: &mut CodeAssembler, halves: &[usize], count: usize) -> Result<(), IcedError> {
        for column in 0..count {
            for (half, weight) in halves.iter().zip(self.weights) {
                let line = ymmword_ptr(self.data + (column / self.per_line() * LINE + half * BYTES));
                a.vmovups(weight, line)?;
                match (is_bf16(self.format), column % 2) {
                    (true, 0) => a.vpslld(weight, weight, 16)?,
                    (true, _) => a.vpand(weight, weight, ymmword_ptr(self.above))?,
                    _ => {}
                }
            }
            for (row, sums) in self.rows.iter().zip(self.sums.chunks(4 * halves.len())) {
                a.vbroadcastss(self.activation, dword_ptr(*row + self.index + 4 * column))?;
                for (sums, weight) in sums.chunks(4).zip(self.weights) {
                    a.vfmadd231ps(sums[column], weight, self.activation)?;
                }
            }
        }
        Ok(())
    }

    /// The next block of 32 of a block format.
    fn block(&self, a: &mut CodeAssembler, halves: &[usize]) -> Result<(), IcedError> {
        let lines = data_lines(self.format);
        for (half, scale) in halves.iter().zip(self.row_scales) {
            load_row_scale(a, self.format, scale, self.scales, *half, &self.constants)?;
        }
        let groups = if !has_nibbles(self.format) { 1 } else { 2 };
        for line in 0..lines {
            for (number, half) in halves.iter().enumerate() {
                self.load_signed(a, line, *half)?;
                for (group, bytes) in self.weights[..groups].iter().enumerate() {
                    for j in 0..4 {
                        // Lane = row; byte j of the lane, sign-extended.
                        let up = 24 - 8 * j as i32;
                        if up == 0 {
                            a.vpsrad(self.value, *bytes, 24)?;
                        } else {
                            a.vpslld(self.value, *bytes, up)?;
                            a.vpsrad(self.value, self.value, 24)?;
                        }
                        a.vcvtdq2ps(self.value, self.value)?;
                        a.vmulps(self.value, self.value, self.row_scales[number])?;
                        let column = (line * groups + group) * 4 + j;
                        for (row, sums) in self.rows.iter().zip(self.sums.chunks(4 * halves.len())) {
                            a.vbroadcastss(self.activation, dword_ptr(*row + self.index + 4 * column))?;
                            a.vfmadd231ps(sums[4 * number + j], self.value, self.activation)?;
                        }
                    }
                }
            }
        }
        a.add(self.scales, scale_bytes(self.format) as i32)?;
        a.add(self.data, (lines * LINE) as i32)
    }

    /// Half a line's signed bytes: low and high nibbles', or int8's in the first register.
    fn load_signed(&self, a: &mut CodeAssembler, line: usize, half: usize) -> Result<(), IcedError> {
        let source = ymmword_ptr(self.data + (line * LINE + half * BYTES));
        let above = ymmword_ptr(self.above);
        let [low, high] = self.weights;
        if !has_nibbles(self.format) {
            a.vmovdqu(low, source)?;
            return a.vpsubb(low, low, above);
        }
        load_nibbles(a, self.format, self.weights, source, self.table, &self.constants)?;
        a.vpsubb(low, low, above)?;
        a.vpsubb(high, high, above)
    }
}
