//! `AddDot` in 256 bits (AVX2, FMA) and in 512 bits (AVX-512 F).
//!
//! Tile: the lanes of a vector are rows, with four accumulators per vector and token for the "dot4" order.
//! 512 bits: 16 rows by 1 or 6 tokens. 256 bits: one token by both halves of the rows in one pass over the
//! tile, more of them two by two by one half a pass. Clobbers: caller-saved registers and flags;
//! callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use super::stored::is_bf16;
use super::vector::{Address, Fma, Lanes, Vector, Vectors, Width};
use crate::ukernel::MicroKernel;
use crate::ukernel::add_dot::{TOKENS, per_line};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, byte_ptr, qword_ptr};
use kernmill_plan::format::{LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Features;

/// 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "add_dot_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| assemble(a, ukernel, Width::Half),
};

/// 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "add_dot_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| assemble(a, ukernel, Width::Full),
};

/// Bytes behind a line that is read that are fetched ahead into L2, as other micro-kernels do: some tiles of
/// a B, which lie one behind the other.
const AHEAD: usize = 8192;

struct AddDot {
    format: WeightFormat,
    /// Data, advancing.
    data: AsmRegister64,
    /// Byte offset in the rows.
    index: AsmRegister64,
    /// The high halves' bits.
    above: Vector,
    weights: Vec<Vector>,
    activation: Vector,
    /// `[token][vector of the pass][k mod 4]`.
    sums: Vec<Vector>,
}

fn serves(ukernel: MicroKernel) -> bool {
    match ukernel {
        MicroKernel::AddDot { format, tokens } => !format.is_blocked() && TOKENS.contains(&tokens),
        _ => false,
    }
}

fn assemble(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::AddDot { format, tokens } = ukernel else { return Ok(()) };
    let mut regs = Regs::with_params(6);
    let [_, x, x_stride, out, out_stride, k] = PARAMS;
    let mut rows = vec![x];
    rows.extend((1..tokens).map(|_| regs.general()));
    let vectors = TILE_ROWS / width.lanes();
    // Vectors of results of a pass.
    let room = match width {
        Width::Half => 2,
        Width::Full => 6,
    };
    let dot = AddDot {
        format,
        data: regs.general(),
        index: regs.general(),
        above: regs.numbered(width),
        weights: regs.several_numbered(width, vectors),
        activation: regs.numbered(width),
        sums: regs.several_numbered(width, 4 * room),
    };
    let mut constants = a.create_label();
    regs.save(a)?;
    for pair in rows.windows(2) {
        a.mov(pair[1], pair[0])?;
        a.add(pair[1], x_stride)?;
    }
    a.shl(k, 2)?;
    let v = &mut Vectors { a, width };
    if is_bf16(format) {
        v.a.lea(SCRATCH, qword_ptr(constants))?;
        v.broadcast(dot.above, Address::at(SCRATCH))?;
    }
    let all: Vec<usize> = (0..vectors).collect();
    let together = if tokens * vectors <= room { vectors } else { 1 };
    for (turn, rows) in rows.chunks(room / together).enumerate() {
        if turn > 0 {
            v.a.lea(out, byte_ptr(out + out_stride * room as i32))?;
        }
        all.chunks(together).try_for_each(|vectors| dot.pass(v, rows, vectors))?;
    }
    regs.restore_and_return(v.a)?;
    if is_bf16(format) {
        v.a.set_label(&mut constants)?;
        v.a.dd(&[0xffff_0000])?;
    }
    Ok(())
}

impl AddDot {
    /// Rows by the given vectors of the tile's rows, over the whole of k.
    fn pass(&self, v: &mut Vectors<'_>, rows: &[AsmRegister64], vectors: &[usize]) -> Result<(), IcedError> {
        let [tile, _, _, out, out_stride, k] = PARAMS;
        let (mut again, mut done) = (v.a.create_label(), v.a.create_label());
        let per_line = per_line(self.format);
        let bytes = v.width.bytes();
        let sums = &self.sums[..4 * vectors.len() * rows.len()];
        sums.iter().try_for_each(|sum| v.zero(*sum))?;
        v.a.mov(self.data, tile)?;
        v.a.xor(self.index, self.index)?;
        v.a.test(k, k)?;
        v.a.je(done)?;
        v.a.set_label(&mut again)?;
        for line in 0..4 / per_line {
            v.a.prefetcht1(byte_ptr(self.data + (line * LINE + AHEAD)))?;
        }
        for column in 0..4 {
            for (vector, weight) in vectors.iter().zip(&self.weights) {
                let place = Address::at(self.data) + (column / per_line * LINE + vector * bytes);
                match (is_bf16(self.format), column % 2) {
                    (true, 0) => {
                        v.load(*weight, place)?;
                        v.shift_left(*weight, *weight, 16)?;
                    }
                    (true, _) => v.lanes(Lanes::And, *weight, self.above, place)?,
                    _ => v.load(*weight, place)?,
                }
            }
            for (row, sums) in rows.iter().zip(sums.chunks(4 * vectors.len())) {
                let place = Address::at(*row) + self.index + 4 * column;
                let activation = v.repeated(place, self.activation)?;
                for (sums, weight) in sums.chunks(4).zip(&self.weights) {
                    v.fma(Fma::F231, sums[column], *weight, activation)?;
                }
            }
        }
        v.a.add(self.data, (4 / per_line * LINE) as i32)?;
        v.a.add(self.index, 16)?;
        v.a.cmp(self.index, k)?;
        v.a.jne(again)?;
        v.a.set_label(&mut done)?;
        v.a.mov(SCRATCH, out)?;
        for sums in sums.chunks(4 * vectors.len()) {
            for (vector, acc) in vectors.iter().zip(sums.chunks(4)) {
                let place = Address::at(SCRATCH) + vector * bytes;
                v.lanes(Lanes::Add, acc[0], acc[0], acc[1])?;
                v.lanes(Lanes::Add, acc[2], acc[2], acc[3])?;
                v.lanes(Lanes::Add, acc[0], acc[0], acc[2])?;
                v.lanes(Lanes::Add, acc[0], acc[0], place)?;
                v.store(place, acc[0])?;
            }
            v.a.add(SCRATCH, out_stride)?;
        }
        Ok(())
    }
}
