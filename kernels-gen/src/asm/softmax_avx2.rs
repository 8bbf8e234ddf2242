//! `Softmax` and `Combine` in 256 bits. Needs AVX2 and FMA.
//!
//! Softmax: a block of 16 scores is two vectors, whose lanes are those of the lane sum. Combine: one query
//! head at a time, up to 64 columns (eight vectors) in registers over all segments; a factor is computed in
//! all lanes. Clobbers: caller-saved registers and flags; callee-saved ones are pushed and popped.

use super::AsmKernel;
use super::exp::{CONSTANTS, Exp256};
use super::regs::{PARAMS, Regs, SCRATCH, constants_here, low_half};
use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, AsmRegisterYmm, CodeAssembler, dword_ptr, eax, ymmword_ptr};
use kernmill_plan::kv::BLOCK_TOKENS;
use kernmill_plan::target::Features;

/// Columns per vector.
const LANES: usize = 8;
/// Vectors of a block.
const BLOCK_VECTORS: usize = BLOCK_TOKENS / LANES;
/// Vectors of columns that a pass of `Combine` has in registers.
const VECTORS: usize = 8;
/// Bytes of a vector.
const BYTES: usize = LANES * 4;
/// Where -infinity and the numbers of the columns are, in bytes from the constants of exp on.
const HIDDEN: usize = CONSTANTS * BYTES;
const COLUMNS: usize = HIDDEN + BYTES;

/// The softmax version.
pub const SOFTMAX: AsmKernel = AsmKernel {
    name: "softmax_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves: |ukernel| ukernel == MicroKernel::Softmax,
    assemble: |a, _| softmax(a),
};

/// The version that combines.
pub const COMBINE: AsmKernel = AsmKernel {
    name: "combine_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves: |ukernel| matches!(ukernel, MicroKernel::Combine { head_dim, .. } if head_dim % LANES == 0),
    assemble: |a, ukernel| match ukernel {
        MicroKernel::Combine { head_dim, group, sinks } => combine(a, head_dim, group, sinks),
        _ => Ok(()),
    },
};

/// The constants behind the code.
fn data(a: &mut CodeAssembler) -> Result<(), IcedError> {
    Exp256::data(a)?;
    a.dd(&[f32::NEG_INFINITY.to_bits(); LANES])?;
    a.dd(&std::array::from_fn::<u32, BLOCK_TOKENS, _>(|column| column as u32))
}

/// Puts -infinity in the columns of a block at `row + place` before the bound in eax, or from it on.
fn mask(
    a: &mut CodeAssembler,
    [row, place, constants]: [AsmRegister64; 3],
    [bound, scores, earlier]: [AsmRegisterYmm; 3],
    before: bool,
) -> Result<(), IcedError> {
    a.vmovd(low_half(bound), eax)?;
    a.vpbroadcastd(bound, low_half(bound))?;
    for vector in 0..BLOCK_VECTORS {
        let memory = ymmword_ptr(row + place + vector * BYTES);
        a.vpcmpgtd(earlier, bound, ymmword_ptr(constants + COLUMNS + vector * BYTES))?;
        if before {
            a.vmovups(scores, memory)?;
            a.vblendvps(scores, scores, ymmword_ptr(constants + HIDDEN), earlier)?;
        } else {
            a.vmovups(scores, ymmword_ptr(constants + HIDDEN))?;
            a.vblendvps(scores, scores, memory, earlier)?;
        }
        a.vmovups(memory, scores)?;
    }
    Ok(())
}

/// Lane `i` of `to` is lane `i ^ distance` of `from`.
fn exchange(
    a: &mut CodeAssembler,
    distance: usize,
    to: AsmRegisterYmm,
    from: AsmRegisterYmm,
) -> Result<(), IcedError> {
    match distance {
        4 => a.vperm2f128(to, from, from, 1),
        2 => a.vpshufd(to, from, 0b01_00_11_10),
        _ => a.vpshufd(to, from, 0b10_11_00_01),
    }
}

fn softmax(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [row, blocks, first, end, max_out, sum_out] = PARAMS;
    let (base, place, size) = (regs.general(), regs.general(), regs.general());
    let (max, sums, other) = (regs.halves(BLOCK_VECTORS), regs.halves(BLOCK_VECTORS), regs.half());
    let temporary = [regs.half(), regs.half(), regs.half()];
    let exp = Exp256::new(base, temporary);
    let (mut constants, mut done) = (a.create_label(), a.create_label());
    let block_bytes = (BLOCK_TOKENS * 4) as i32;
    regs.save(a)?;
    a.cmp(blocks, 1)?;
    a.jl(done)?;
    exp.load(a, constants)?;
    a.imul_3(size, blocks, block_bytes)?;

    a.mov(SCRATCH, first)?;
    a.xor(place, place)?;
    mask(a, [row, place, base], temporary, true)?;
    a.imul_3(place, blocks, BLOCK_TOKENS as i32)?;
    a.mov(SCRATCH, end)?;
    a.sub(SCRATCH, place)?;
    a.add(SCRATCH, BLOCK_TOKENS as i32)?;
    a.mov(place, size)?;
    a.sub(place, block_bytes)?;
    mask(a, [row, place, base], temporary, false)?;

    for max in &max {
        a.vmovups(*max, ymmword_ptr(base + HIDDEN))?;
    }
    a.xor(place, place)?;
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    for (vector, max) in max.iter().enumerate() {
        a.vmovups(other, ymmword_ptr(row + place + vector * BYTES))?;
        a.vmaxps(*max, other, *max)?;
    }
    a.add(place, block_bytes)?;
    a.cmp(place, size)?;
    a.jl(again)?;
    // Every lane comes to hold the maximum (one of two zeros, where it is zero: exp does not tell them
    // apart).
    let (max, upper) = (max[0], max[1]);
    a.vmaxps(max, upper, max)?;
    for distance in [4, 2, 1] {
        exchange(a, distance, other, max)?;
        a.vmaxps(max, other, max)?;
    }
    a.vmovss(dword_ptr(max_out), low_half(max))?;

    for sum in &sums {
        a.vpxor(*sum, *sum, *sum)?;
    }
    a.xor(place, place)?;
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    for (vector, sum) in sums.iter().enumerate() {
        let memory = ymmword_ptr(row + place + vector * BYTES);
        a.vmovups(other, memory)?;
        a.vsubps(other, other, max)?;
        exp.emit(a, other)?;
        a.vmovups(memory, other)?;
        a.vaddps(*sum, *sum, other)?;
    }
    a.add(place, block_bytes)?;
    a.cmp(place, size)?;
    a.jl(again)?;
    let (sum, upper) = (sums[0], sums[1]);
    a.vaddps(sum, sum, upper)?;
    for distance in [4, 2, 1] {
        exchange(a, distance, other, sum)?;
        a.vaddps(sum, sum, other)?;
    }
    a.vmovss(dword_ptr(sum_out), low_half(sum))?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    data(a)
}

fn combine(a: &mut CodeAssembler, head_dim: usize, group: usize, sinks: bool) -> Result<(), IcedError> {
    let mut regs = Regs::with_params(6);
    let [values, maxima, sums, sink, out, segments] = PARAMS;
    let (left, value, place, base) = (regs.general(), regs.general(), regs.general(), regs.general());
    let (max, total, factor, sum) = (regs.half(), regs.half(), regs.half(), regs.half());
    let results = regs.halves(VECTORS);
    let exp = Exp256::new(base, [regs.half(), regs.half(), regs.half()]);
    let mut constants = a.create_label();
    regs.save(a)?;
    exp.load(a, constants)?;
    for head in 0..group {
        let (head_max, head_sum) = (maxima + place + head * 4, sums + place + head * 4);
        let (mut again, mut known) = (a.create_label(), a.create_label());
        if sinks {
            a.vbroadcastss(max, dword_ptr(sink + head * 4))?;
        } else {
            a.vmovups(max, ymmword_ptr(base + HIDDEN))?;
        }
        a.mov(left, segments)?;
        a.xor(place, place)?;
        a.set_label(&mut again)?;
        a.cmp(left, 1)?;
        a.jl(known)?;
        a.vbroadcastss(factor, dword_ptr(head_max))?;
        a.vmaxps(max, factor, max)?;
        a.add(place, (group * 4) as i32)?;
        a.dec(left)?;
        a.jmp(again)?;
        a.set_label(&mut known)?;
        for start in (0..head_dim).step_by(VECTORS * LANES) {
            let results = &results[..((head_dim - start) / LANES).min(VECTORS)];
            let first = (head * head_dim + start) * 4;
            for register in results.iter().chain([&total]) {
                a.vpxor(*register, *register, *register)?;
            }
            a.mov(left, segments)?;
            a.mov(value, values)?;
            a.xor(place, place)?;
            let (mut again, mut done) = (a.create_label(), a.create_label());
            a.set_label(&mut again)?;
            a.cmp(left, 1)?;
            a.jl(done)?;
            a.vbroadcastss(factor, dword_ptr(head_max))?;
            a.vsubps(factor, factor, max)?;
            exp.emit(a, factor)?;
            a.vbroadcastss(sum, dword_ptr(head_sum))?;
            a.vfmadd231ps(total, factor, sum)?;
            for (vector, result) in results.iter().enumerate() {
                a.vfmadd231ps(*result, factor, ymmword_ptr(value + first + vector * BYTES))?;
            }
            a.add(place, (group * 4) as i32)?;
            a.add(value, (group * head_dim * 4) as i32)?;
            a.dec(left)?;
            a.jmp(again)?;
            a.set_label(&mut done)?;
            if sinks {
                a.vbroadcastss(factor, dword_ptr(sink + head * 4))?;
                a.vsubps(factor, factor, max)?;
                exp.emit(a, factor)?;
                a.vaddps(total, total, factor)?;
            }
            for (vector, result) in results.iter().enumerate() {
                a.vdivps(*result, *result, total)?;
                a.vmovups(ymmword_ptr(out + first + vector * BYTES), *result)?;
            }
        }
    }
    regs.restore_and_return(a)?;
    constants_here(a, &mut constants)?;
    data(a)
}
