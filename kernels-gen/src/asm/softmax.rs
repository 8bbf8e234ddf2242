//! `Softmax` and `Combine` in 256 bits (AVX2, FMA) and in 512 bits (AVX-512 F).
//!
//! Softmax: a block of 16 scores is two vectors or one, whose lanes are those of the lane sum. Combine: one
//! query head at a time, up to eight vectors of columns in registers over all segments; a factor is computed
//! in all lanes. Clobbers: caller-saved registers, mask register 1, flags; callee-saved ones are pushed and
//! popped.

use super::AsmKernel;
use super::constants::Constants;
use super::exp::{self, CONSTANTS, Exp};
use super::regs::{PARAMS, Regs};
use super::vector::{Address, Fma, LESS, Lanes, NOT_LESS, Vector, VectorOperand, Vectors, Width};
use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, dword_ptr};
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_plan::target::Features;

/// Vectors of columns that a pass of `Combine` has in registers.
const VECTORS: usize = 8;
/// Number of the constant that is -infinity, behind those of exp.
const HIDDEN: usize = CONSTANTS;

/// Softmax in 256 bits.
pub const SOFTMAX_AVX2: AsmKernel = AsmKernel {
    name: "softmax_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves: |ukernel| ukernel == MicroKernel::Softmax,
    assemble: |a, _| softmax(&mut Vectors { a, width: Width::Half }),
};

/// Softmax in 512 bits.
pub const SOFTMAX_AVX512: AsmKernel = AsmKernel {
    name: "softmax_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::Softmax,
    assemble: |a, _| softmax(&mut Vectors { a, width: Width::Full }),
};

/// Combination in 256 bits.
pub const COMBINE_AVX2: AsmKernel = AsmKernel {
    name: "combine_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves: |ukernel| combines(ukernel, Width::Half),
    assemble: |a, ukernel| combine(a, ukernel, Width::Half),
};

/// Combination in 512 bits.
pub const COMBINE_AVX512: AsmKernel = AsmKernel {
    name: "combine_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| combines(ukernel, Width::Full),
    assemble: |a, ukernel| combine(a, ukernel, Width::Full),
};

fn combines(ukernel: MicroKernel, width: Width) -> bool {
    matches!(ukernel, MicroKernel::Combine { head_dim, .. } if head_dim.is_multiple_of(width.lanes()))
}

/// The constants in order: those of exp, and -infinity.
fn constants() -> impl Iterator<Item = u32> {
    exp::constants().chain([f32::NEG_INFINITY.to_bits()])
}

/// Takes columns of a block out of view.
pub struct Mask {
    /// -infinity.
    pub hidden: VectorOperand,
    /// For intermediate values.
    pub temporary: [Vector; 5],
    /// The numbers of the columns.
    pub columns: Address,
}

impl Mask {
    /// Puts -infinity in the columns of a block whose numbers do not compare so with the bound.
    pub fn emit(
        &self,
        v: &mut Vectors<'_>,
        block: Address,
        kept: u32,
        bound: AsmRegister64,
    ) -> Result<(), IcedError> {
        let [bounds, columns, mask, scores, masked] = self.temporary;
        v.spread(bounds, bound)?;
        v.convert_to_f32(bounds, bounds)?;
        for place in (0..BLOCK_TOKENS * 4).step_by(v.width.bytes()) {
            v.load(scores, block + place)?;
            v.load(columns, self.columns + place)?;
            v.compare(kept, mask, columns, bounds)?;
            v.load(masked, self.hidden)?;
            v.replace(mask, masked, scores)?;
            v.store(block + place, masked)?;
        }
        Ok(())
    }
}

fn softmax(v: &mut Vectors<'_>) -> Result<(), IcedError> {
    let (width, bytes) = (v.width, v.width.bytes());
    let mut regs = Regs::with_params(6);
    let [row, blocks, first, end, max_out, sum_out] = PARAMS;
    let (place, size) = (regs.general(), regs.general());
    let vectors = BLOCK_TOKENS / width.lanes();
    let (maxima, sums) = (regs.several_numbered(width, vectors), regs.several_numbered(width, vectors));
    let other = regs.numbered(width);
    let (max, sum) = (maxima[0], sums[0]);
    let mut constants = Constants::new(v, &mut regs, constants());
    let temporary = std::array::from_fn(|_| regs.numbered(width));
    let hidden = constants.operands[HIDDEN];
    let mask = Mask { hidden, temporary, columns: constants.behind(v) };
    let exp = Exp::new(&mut regs, width, &constants.operands);
    let mut done = v.a.create_label();
    let block_bytes = (BLOCK_TOKENS * 4) as i32;
    regs.save(v.a)?;
    v.a.cmp(blocks, 1)?;
    v.a.jl(done)?;
    constants.load(v)?;
    v.a.imul_3(size, blocks, block_bytes)?;

    mask.emit(v, Address::at(row), NOT_LESS, first)?;
    v.a.imul_3(place, blocks, BLOCK_TOKENS as i32)?;
    v.a.sub(end, place)?;
    v.a.add(end, BLOCK_TOKENS as i32)?;
    v.a.mov(place, size)?;
    v.a.sub(place, block_bytes)?;
    mask.emit(v, Address::at(row) + place, LESS, end)?;

    maxima.iter().try_for_each(|max| v.load(*max, hidden))?;
    v.a.xor(place, place)?;
    let mut again = v.a.create_label();
    v.a.set_label(&mut again)?;
    for (vector, max) in maxima.iter().enumerate() {
        v.load(other, Address::at(row) + place + vector * bytes)?;
        v.lanes(Lanes::Max, *max, other, *max)?;
    }
    v.a.add(place, block_bytes)?;
    v.a.cmp(place, size)?;
    v.a.jl(again)?;
    // Every lane comes to hold the maximum (one of two zeros, where it is zero: exp does not tell them
    // apart).
    maxima[1..].iter().try_for_each(|upper| v.lanes(Lanes::Max, max, *upper, max))?;
    v.across(max, other, |v| v.lanes(Lanes::Max, max, other, max))?;
    v.a.vmovss(dword_ptr(max_out), v.low(max))?;

    sums.iter().try_for_each(|sum| v.zero(*sum))?;
    v.a.xor(place, place)?;
    let mut again = v.a.create_label();
    v.a.set_label(&mut again)?;
    for (vector, sum) in sums.iter().enumerate() {
        let scores = Address::at(row) + place + vector * bytes;
        v.load(other, scores)?;
        v.lanes(Lanes::Sub, other, other, max)?;
        exp.emit(v, other)?;
        v.store(scores, other)?;
        v.lanes(Lanes::Add, *sum, *sum, other)?;
    }
    v.a.add(place, block_bytes)?;
    v.a.cmp(place, size)?;
    v.a.jl(again)?;
    sums[1..].iter().try_for_each(|upper| v.lanes(Lanes::Add, sum, sum, *upper))?;
    v.across(sum, other, |v| v.lanes(Lanes::Add, sum, sum, other))?;
    v.a.vmovss(dword_ptr(sum_out), v.low(sum))?;
    v.a.set_label(&mut done)?;
    regs.restore_and_return(v.a)?;
    constants.finish(v)?;
    v.a.dd(&std::array::from_fn::<u32, BLOCK_TOKENS, _>(|column| (column as f32).to_bits()))
}

fn combine(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::Combine { head_dim, group, sinks } = ukernel else { return Ok(()) };
    let mut regs = Regs::with_params(6);
    let [values, maxima, sums, sink, out, segments] = PARAMS;
    let (left, value, place) = (regs.general(), regs.general(), regs.general());
    let (max, total) = (regs.numbered(width), regs.numbered(width));
    let (factor, sum) = (regs.numbered(width), regs.numbered(width));
    let results = regs.several_numbered(width, VECTORS);
    let v = &mut Vectors { a, width };
    let mut constants = Constants::new(v, &mut regs, constants());
    let exp = Exp::new(&mut regs, width, &constants.operands);
    regs.save(v.a)?;
    constants.load(v)?;
    for head in 0..group {
        let (head_max, head_sum) = (Address::at(maxima) + place, Address::at(sums) + place);
        let (head_max, head_sum) = (head_max + head * 4, head_sum + head * 4);
        let head_sink = Address::at(sink) + head * 4;
        let (mut again, mut known) = (v.a.create_label(), v.a.create_label());
        match sinks {
            true => v.broadcast(max, head_sink)?,
            false => v.load(max, constants.operands[HIDDEN])?,
        }
        v.a.mov(left, segments)?;
        v.a.xor(place, place)?;
        v.a.set_label(&mut again)?;
        v.a.cmp(left, 1)?;
        v.a.jl(known)?;
        v.broadcast(factor, head_max)?;
        v.lanes(Lanes::Max, max, factor, max)?;
        v.a.add(place, (group * 4) as i32)?;
        v.a.dec(left)?;
        v.a.jmp(again)?;
        v.a.set_label(&mut known)?;
        for start in (0..head_dim).step_by(VECTORS * width.lanes()) {
            let results = &results[..((head_dim - start) / width.lanes()).min(VECTORS)];
            let first = (head * head_dim + start) * 4;
            results.iter().chain([&total]).try_for_each(|register| v.zero(*register))?;
            v.a.mov(left, segments)?;
            v.a.mov(value, values)?;
            v.a.xor(place, place)?;
            let (mut again, mut done) = (v.a.create_label(), v.a.create_label());
            v.a.set_label(&mut again)?;
            v.a.cmp(left, 1)?;
            v.a.jl(done)?;
            v.broadcast(factor, head_max)?;
            v.lanes(Lanes::Sub, factor, factor, max)?;
            exp.emit(v, factor)?;
            let sum = v.repeated(head_sum, sum)?;
            v.fma(Fma::F231, total, factor, sum)?;
            for (vector, result) in results.iter().enumerate() {
                let place = Address::at(value) + first + vector * width.bytes();
                v.fma(Fma::F231, *result, factor, place)?;
            }
            v.a.add(place, (group * 4) as i32)?;
            v.a.add(value, (group * head_dim * 4) as i32)?;
            v.a.dec(left)?;
            v.a.jmp(again)?;
            v.a.set_label(&mut done)?;
            if sinks {
                v.broadcast(factor, head_sink)?;
                v.lanes(Lanes::Sub, factor, factor, max)?;
                exp.emit(v, factor)?;
                v.lanes(Lanes::Add, total, total, factor)?;
            }
            for (vector, result) in results.iter().enumerate() {
                v.lanes(Lanes::Div, *result, *result, total)?;
                v.store(Address::at(out) + first + vector * width.bytes(), *result)?;
            }
        }
    }
    regs.restore_and_return(v.a)?;
    constants.finish(v)
}
