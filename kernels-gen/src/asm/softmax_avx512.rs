//! `Softmax` and `Combine` in 512 bits. Needs AVX-512 F.
//!
//! Softmax: a vector is a block of 16 scores, its lanes those of the lane sum. Combine: one query head at a
//! time, up to 128 columns (eight vectors) in registers over all segments; a factor is computed in all lanes.
//! Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::exp::{CONSTANTS, Exp512};
use super::predicates::{LESS, NOT_LESS};
use super::regs::{PARAMS, Regs, SCRATCH, low};
use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegisterZmm, CodeAssembler, dword_bcst, dword_ptr, eax, k1, zmmword_ptr};
use kernmill_plan::target::Features;

/// Columns per vector.
const LANES: usize = 16;
/// Vectors of columns that a pass of `Combine` has in registers.
const VECTORS: usize = 8;

/// The softmax version.
pub const SOFTMAX: AsmKernel = AsmKernel {
    name: "softmax_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::Softmax,
    assemble: |a, _| softmax(a),
};

/// The version that combines.
pub const COMBINE: AsmKernel = AsmKernel {
    name: "combine_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| matches!(ukernel, MicroKernel::Combine { head_dim, .. } if head_dim % LANES == 0),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Combine { head_dim, group, sinks } => combine(a, head_dim, group, sinks),
        _ => Ok(()),
    },
};

/// Lanes apart of what each step of a tree brings together.
pub(super) const DISTANCES: [usize; 4] = [8, 4, 2, 1];

/// Each lane `i` of `to` is lane `i ^ distance` of `from`.
pub(super) fn exchange(
    a: &mut CodeAssembler,
    distance: usize,
    to: AsmRegisterZmm,
    from: AsmRegisterZmm,
) -> Result<(), IcedError> {
    match distance {
        8 => a.vshuff32x4(to, from, from, 0b01_00_11_10),
        4 => a.vshuff32x4(to, from, from, 0b10_11_00_01),
        2 => a.vpshufd(to, from, 0b01_00_11_10),
        _ => a.vpshufd(to, from, 0b10_11_00_01),
    }
}

/// The constants behind the code: those of exp, then -infinity, then the numbers of the columns.
fn data(a: &mut CodeAssembler) -> Result<(), IcedError> {
    Exp512::data(a)?;
    a.dd(&[f32::NEG_INFINITY.to_bits()])?;
    a.dd(&std::array::from_fn::<u32, LANES, _>(|lane| lane as u32))
}

fn softmax(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [row, blocks, first, end, max_out, sum_out] = PARAMS;
    let (place, size) = (regs.general(), regs.general());
    let (result, other, max, sum) = (regs.vector(), regs.vector(), regs.vector(), regs.vector());
    let (hidden, columns, bound) = (regs.vector(), regs.vector(), regs.vector());
    let exp = Exp512::new(regs.vectors(CONSTANTS), [regs.vector(), regs.vector()]);
    let mut constants = a.create_label();
    let mut done = a.create_label();
    regs.save(a)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    exp.load(a, place, constants)?;
    a.vpbroadcastd(hidden, dword_ptr(place + CONSTANTS * 4))?;
    a.vmovups(columns, zmmword_ptr(place + (CONSTANTS + 1) * 4))?;
    a.imul_3(size, blocks, (LANES * 4) as i32)?;

    // -infinity in the columns of the first and the last block that are out of view.
    let last = zmmword_ptr(row + size - LANES * 4);
    a.mov(SCRATCH, first)?;
    a.vpbroadcastd(bound, eax)?;
    a.vpcmpd(k1, columns, bound, NOT_LESS)?;
    a.vmovaps(result, hidden)?;
    a.vmovups(other, zmmword_ptr(row))?;
    a.vmovaps(result.k1(), other)?;
    a.vmovups(zmmword_ptr(row), result)?;
    a.imul_3(place, blocks, LANES as i32)?;
    a.mov(SCRATCH, end)?;
    a.sub(SCRATCH, place)?;
    a.add(SCRATCH, LANES as i32)?;
    a.vpbroadcastd(bound, eax)?;
    a.vpcmpd(k1, columns, bound, LESS)?;
    a.vmovaps(result, hidden)?;
    a.vmovups(other, last)?;
    a.vmovaps(result.k1(), other)?;
    a.vmovups(last, result)?;

    a.vmovaps(max, hidden)?;
    a.xor(place, place)?;
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    a.vmovups(result, zmmword_ptr(row + place))?;
    a.vmaxps(max, result, max)?;
    a.add(place, (LANES * 4) as i32)?;
    a.cmp(place, size)?;
    a.jl(again)?;
    // Every lane comes to hold the maximum (one of two zeros, where it is zero: exp does not tell them
    // apart).
    for distance in DISTANCES {
        exchange(a, distance, result, max)?;
        a.vmaxps(max, result, max)?;
    }
    a.vmovss(dword_ptr(max_out), low(max))?;

    a.vpxord(sum, sum, sum)?;
    a.xor(place, place)?;
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    a.vmovups(result, zmmword_ptr(row + place))?;
    a.vsubps(result, result, max)?;
    exp.emit(a, result)?;
    a.vmovups(zmmword_ptr(row + place), result)?;
    a.vaddps(sum, sum, result)?;
    a.add(place, (LANES * 4) as i32)?;
    a.cmp(place, size)?;
    a.jl(again)?;
    for distance in DISTANCES {
        exchange(a, distance, result, sum)?;
        a.vaddps(sum, sum, result)?;
    }
    a.vmovss(dword_ptr(sum_out), low(sum))?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    data(a)
}

fn combine(a: &mut CodeAssembler, head_dim: usize, group: usize, sinks: bool) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [values, maxima, sums, sink, out, segments] = PARAMS;
    let (left, value, place) = (regs.general(), regs.general(), regs.general());
    let (max, total, factor, least) = (regs.vector(), regs.vector(), regs.vector(), regs.vector());
    let results = regs.vectors(VECTORS);
    let exp = Exp512::new(regs.vectors(CONSTANTS), [regs.vector(), regs.vector()]);
    let mut constants = a.create_label();
    regs.save(a)?;
    exp.load(a, place, constants)?;
    a.vpbroadcastd(least, dword_ptr(place + CONSTANTS * 4))?;
    for head in 0..group {
        let (head_max, head_sum) = (maxima + place + head * 4, sums + place + head * 4);
        let (mut again, mut known) = (a.create_label(), a.create_label());
        if sinks {
            a.vpbroadcastd(max, dword_ptr(sink + head * 4))?;
        } else {
            a.vmovaps(max, least)?;
        }
        a.mov(left, segments)?;
        a.xor(place, place)?;
        a.set_label(&mut again)?;
        a.cmp(left, 1)?;
        a.jl(known)?;
        a.vpbroadcastd(factor, dword_ptr(head_max))?;
        a.vmaxps(max, factor, max)?;
        a.add(place, (group * 4) as i32)?;
        a.dec(left)?;
        a.jmp(again)?;
        a.set_label(&mut known)?;
        for start in (0..head_dim).step_by(VECTORS * LANES) {
            let results = &results[..((head_dim - start) / LANES).min(VECTORS)];
            let first = (head * head_dim + start) * 4;
            for register in results.iter().chain([&total]) {
                a.vpxord(*register, *register, *register)?;
            }
            a.mov(left, segments)?;
            a.mov(value, values)?;
            a.xor(place, place)?;
            let (mut again, mut done) = (a.create_label(), a.create_label());
            a.set_label(&mut again)?;
            a.cmp(left, 1)?;
            a.jl(done)?;
            a.vpbroadcastd(factor, dword_ptr(head_max))?;
            a.vsubps(factor, factor, max)?;
            exp.emit(a, factor)?;
            a.vfmadd231ps(total, factor, dword_bcst(head_sum))?;
            for (vector, result) in results.iter().enumerate() {
                a.vfmadd231ps(*result, factor, zmmword_ptr(value + first + vector * LANES * 4))?;
            }
            a.add(place, (group * 4) as i32)?;
            a.add(value, (group * head_dim * 4) as i32)?;
            a.dec(left)?;
            a.jmp(again)?;
            a.set_label(&mut done)?;
            if sinks {
                a.vpbroadcastd(factor, dword_ptr(sink + head * 4))?;
                a.vsubps(factor, factor, max)?;
                exp.emit(a, factor)?;
                a.vaddps(total, total, factor)?;
            }
            for (vector, result) in results.iter().enumerate() {
                a.vdivps(*result, *result, total)?;
                a.vmovups(zmmword_ptr(out + first + vector * LANES * 4), *result)?;
            }
        }
    }
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    data(a)
}
