//! `Weights` in 256 bits (AVX2, FMA) and in 512 bits (AVX-512 F).
//!
//! Two vectors or one are a block's scores of one query head, whose lanes are those of the lane sum. Maxima
//! of one head are found at a time, or of up to four in 512 bits. A pass over a head's blocks in view makes
//! exponentials, their sum, and weights, and finds the largest; another one makes integers. Clobbers: caller-
//! saved registers, mask register 1, flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::constants::Constants;
use super::exp::{self, CONSTANTS, Exp};
use super::regs::{PARAMS, Regs};
use super::softmax::Mask;
use super::vector::{Address, LESS, Lanes, NOT_LESS, Vector, VectorOperand, Vectors, Width};
use crate::ukernel::{MicroKernel, SCORE_STRIDE, WEIGHTS};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, dword_ptr, qword_ptr};
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_plan::numeric::{LEAST_WEIGHT, WEIGHT_MAX};
use kernmill_plan::target::Features;

/// 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "weights_avx2",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::Weights { .. }),
    assemble: |a, ukernel| weights(a, ukernel, Width::Half),
};

/// 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "weights_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::Weights { .. }),
    assemble: |a, ukernel| weights(a, ukernel, Width::Full),
};

/// Bytes of a block's scores.
const SCORES: usize = BLOCK_TOKENS * 4;

/// The micro-kernel's registers and shape.
struct Weighing<'c> {
    group: usize,
    /// Bytes of a row to the first block in view and to the last.
    begin: AsmRegister64,
    last: AsmRegister64,
    /// Bytes to a block's scores, and to its integers.
    place: AsmRegister64,
    integers: AsmRegister64,
    /// A pointer into the list, and what lies there.
    entry: AsmRegister64,
    plane: AsmRegister64,
    exp: Exp<'c>,
    /// The bits of a magnitude, [`WEIGHT_MAX`], [`LEAST_WEIGHT`], and the smallest integer.
    magnitude: VectorOperand,
    most: VectorOperand,
    least: VectorOperand,
    least_integer: VectorOperand,
    /// For intermediate values.
    temporary: [Vector; 5],
    power: Vector,
    sums: Vec<Vector>,
    largest: Vector,
    inverse: Vector,
}

fn weights(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::Weights { group } = ukernel else { return Ok(()) };
    let v = &mut Vectors { a, width };
    let mut regs = Regs::with_params(6);
    let [_, p, blocks, first, end, out] = PARAMS;
    let vectors = BLOCK_TOKENS / width.lanes();
    // Heads whose maxima are found together: one chain of maxima alone would wait for itself.
    let together = match width {
        Width::Half => 1,
        Width::Full => 4,
    };
    let temporary: [Vector; 5] = std::array::from_fn(|_| regs.numbered(width));
    let maxima = regs.several_numbered(width, together * vectors);
    // Single numbers are stored from the first sixteen registers.
    let (power, sums) = (regs.numbered(width), regs.several_numbered(width, vectors));
    let (largest, inverse) = (regs.numbered(width), regs.numbered(width));
    let more = [
        f32::NEG_INFINITY.to_bits(),
        0x7fff_ffff,
        WEIGHT_MAX.to_bits(),
        LEAST_WEIGHT.to_bits(),
        (-(WEIGHT_MAX as i32)).cast_unsigned(),
    ];
    let mut constants = Constants::new(v, &mut regs, exp::constants().chain(more));
    let &[hidden, magnitude, most, least, least_integer] = &constants.operands[CONSTANTS..] else {
        unreachable!("five more")
    };
    let [t, u, kept, ..] = temporary;
    let weighing = Weighing {
        group,
        begin: regs.general(),
        last: regs.general(),
        place: regs.general(),
        integers: regs.general(),
        entry: regs.general(),
        plane: regs.general(),
        exp: Exp::with(&constants.operands, [t, u, kept]),
        magnitude,
        most,
        least,
        least_integer,
        temporary,
        power,
        sums,
        largest,
        inverse,
    };
    let Weighing { begin, last, place, .. } = weighing;
    let mask = Mask { hidden, temporary, columns: constants.behind(v) };
    let mut done = v.a.create_label();
    regs.save(v.a)?;
    v.a.cmp(end, first)?;
    v.a.jle(done)?;
    constants.load(v)?;
    // Bytes of scores to the first block and the last; `first` and `end` as columns of these.
    for (bytes, column, before) in [(begin, first, 0), (last, end, 1)] {
        v.a.lea(bytes, qword_ptr(column - before))?;
        v.a.and(bytes, -(BLOCK_TOKENS as i32))?;
        v.a.sub(column, bytes)?;
        v.a.shl(bytes, 2)?;
    }
    for heads in (0..group).collect::<Vec<_>>().chunks(together) {
        let maxima = maxima.chunks(vectors).take(heads.len());
        for head in heads {
            let row = Address::at(p) + head * SCORE_STRIDE;
            mask.emit(v, row + begin, NOT_LESS, first)?;
            mask.emit(v, row + last, LESS, end)?;
        }
        maxima.clone().flatten().try_for_each(|max| v.load(*max, hidden))?;
        v.a.mov(place, begin)?;
        let mut again = v.a.create_label();
        v.a.set_label(&mut again)?;
        for (head, maxima) in heads.iter().zip(maxima.clone()) {
            for (vector, max) in maxima.iter().enumerate() {
                v.load(power, Address::at(p) + place + (head * SCORE_STRIDE + vector * width.bytes()))?;
                v.lanes(Lanes::Max, *max, power, *max)?;
            }
        }
        v.a.add(place, SCORES as i32)?;
        v.a.cmp(place, last)?;
        v.a.jle(again)?;
        for (head, maxima) in heads.iter().zip(maxima) {
            let max = maxima[0];
            maxima[1..].iter().try_for_each(|upper| v.lanes(Lanes::Max, max, *upper, max))?;
            v.across(max, power, |v| v.lanes(Lanes::Max, max, power, max))?;
            v.a.vmovss(dword_ptr(out + head * 4), v.low(max))?;
            weighing.weigh(v, *head, max)?;
            weighing.round(v, *head, blocks)?;
        }
    }
    v.a.set_label(&mut done)?;
    regs.restore_and_return(v.a)?;
    constants.finish(v)?;
    v.a.dd(&std::array::from_fn::<u32, BLOCK_TOKENS, _>(|column| (column as f32).to_bits()))
}

impl Weighing<'_> {
    /// Exponentials, their sum, and weights in their place, with the largest; the head's factor, and what
    /// makes integers of weights.
    fn weigh(&self, v: &mut Vectors<'_>, head: usize, max: Vector) -> Result<(), IcedError> {
        let [list, p, .., out] = PARAMS;
        let Weighing { place, entry, plane, power, largest, inverse, .. } = *self;
        let [scale, other, kept, ..] = self.temporary;
        self.sums.iter().chain([&largest]).try_for_each(|sum| v.zero(*sum))?;
        // A pointer for 16 scores.
        v.a.mov(entry, self.begin)?;
        v.a.shr(entry, 3)?;
        v.a.add(entry, list)?;
        v.a.mov(place, self.begin)?;
        let mut again = v.a.create_label();
        v.a.set_label(&mut again)?;
        v.a.mov(plane, qword_ptr(entry))?;
        for (vector, sum) in self.sums.iter().enumerate() {
            let bytes = vector * v.width.bytes();
            let row = Address::at(p) + place + (head * SCORE_STRIDE + bytes);
            v.load(power, row)?;
            v.lanes(Lanes::Sub, power, power, max)?;
            self.exp.emit(v, power)?;
            v.lanes(Lanes::Add, *sum, *sum, power)?;
            // Where the exponential is 0, a scale may be anything.
            v.load(scale, Address::at(plane) + bytes)?;
            v.lanes_where(kept, Lanes::Mul, power, power, scale)?;
            v.store(row, power)?;
            v.lanes(Lanes::And, power, power, self.magnitude)?;
            v.max_int(largest, largest, power)?;
        }
        v.a.add(place, SCORES as i32)?;
        v.a.add(entry, 8)?;
        v.a.cmp(place, self.last)?;
        v.a.jle(again)?;
        let sum = self.sums[0];
        self.sums[1..].iter().try_for_each(|upper| v.lanes(Lanes::Add, sum, sum, *upper))?;
        v.across(sum, other, |v| v.lanes(Lanes::Add, sum, sum, other))?;
        v.a.vmovss(dword_ptr(out + (self.group + head) * 4), v.low(sum))?;
        v.across(largest, other, |v| v.max_int(largest, largest, other))?;
        v.lanes(Lanes::Div, other, largest, self.most)?;
        v.a.vmovss(dword_ptr(out + (2 * self.group + head) * 4), v.low(other))?;
        v.load(other, self.most)?;
        v.compare(NOT_LESS, kept, largest, self.least)?;
        v.lanes_where(kept, Lanes::Div, inverse, other, largest)
    }

    /// Integers where weights have been read, and zeros in blocks that are not in view.
    fn round(&self, v: &mut Vectors<'_>, head: usize, blocks: AsmRegister64) -> Result<(), IcedError> {
        let [_, p, ..] = PARAMS;
        let Weighing { place, integers, power, .. } = *self;
        let other = self.temporary[0];
        let to = Address::at(p) + integers + head * SCORE_STRIDE;
        let (mut before, mut again) = (v.a.create_label(), v.a.create_label());
        let (mut behind, mut is_behind) = (v.a.create_label(), v.a.create_label());
        v.a.xor(integers, integers)?;
        v.a.xor(place, place)?;
        v.a.set_label(&mut before)?;
        v.a.cmp(place, self.begin)?;
        v.a.je(again)?;
        [power, other].into_iter().try_for_each(|zero| v.zero(zero))?;
        v.store_words(to, [power, other])?;
        v.a.add(place, SCORES as i32)?;
        v.a.add(integers, WEIGHTS as i32)?;
        v.a.jmp(before)?;
        v.a.set_label(&mut again)?;
        for (part, integer) in (0..SCORES).step_by(v.width.bytes()).zip([power, other]) {
            let weights = Address::at(p) + place + (head * SCORE_STRIDE + part);
            v.lanes(Lanes::Mul, integer, self.inverse, weights)?;
            v.convert_to_int(integer, integer)?;
            v.max_int(integer, integer, self.least_integer)?;
        }
        v.store_words(to, [power, other])?;
        v.a.add(place, SCORES as i32)?;
        v.a.add(integers, WEIGHTS as i32)?;
        v.a.cmp(place, self.last)?;
        v.a.jle(again)?;
        // Bytes of all integers, for the while.
        v.a.mov(self.plane, blocks)?;
        v.a.shl(self.plane, WEIGHTS.trailing_zeros())?;
        v.a.jmp(is_behind)?;
        v.a.set_label(&mut behind)?;
        [power, other].into_iter().try_for_each(|zero| v.zero(zero))?;
        v.store_words(to, [power, other])?;
        v.a.add(integers, WEIGHTS as i32)?;
        v.a.set_label(&mut is_behind)?;
        v.a.cmp(integers, self.plane)?;
        v.a.jl(behind)
    }
}
