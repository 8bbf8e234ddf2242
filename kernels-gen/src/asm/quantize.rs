//! `Quantize` in 256 bits (AVX2) and in 512 bits (AVX-512 F). A block a turn; the CPU overlaps them.
//! Clobbers: caller-saved registers and flags.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::registers::{xmm, ymm, zmm};
use iced_x86::code_asm::{
    AsmRegister64, CodeAssembler, dword_ptr, qword_ptr, xmmword_ptr, ymmword_ptr, zmmword_ptr,
};
use kernmill_plan::format::BLOCK;
use kernmill_plan::numeric::ROUND_MAGIC;
use kernmill_plan::target::Features;

/// 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "quantize_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves: |ukernel| ukernel == MicroKernel::Quantize,
    assemble: |a, _| quantize(a, prepare_half, block_half),
};

/// 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "quantize_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::Quantize,
    assemble: |a, _| quantize(a, prepare_full, block_full),
};

/// Bits of a magnitude, 127.0, the magic number, least and largest integer; then the order of double words
/// that undoes the packing of 256-bit halves.
const CONSTANTS: [u32; 13] =
    [0x7fff_ffff, 0x42fe_0000, ROUND_MAGIC.to_bits(), -128i32 as u32, 127, 0, 4, 1, 5, 2, 6, 3, 7];
const MAGNITUDE: usize = 0;
const LIMIT: usize = 4;
const MAGIC: usize = 8;
const LEAST: usize = 12;
const MOST: usize = 16;
const ORDER: usize = 20;

/// Where a block's results go.
struct BlockOut {
    values: AsmRegister64,
    scale: AsmRegister64,
    sums: AsmRegister64,
}

fn quantize(
    a: &mut CodeAssembler,
    prepare: fn(&mut CodeAssembler) -> Result<(), IcedError>,
    block: fn(&mut CodeAssembler, AsmRegister64, &BlockOut) -> Result<(), IcedError>,
) -> Result<(), IcedError> {
    let [x, values, scale, sums, blocks, _] = PARAMS;
    let regs = Regs::with_params(5);
    let mut constants = a.create_label();
    a.lea(SCRATCH, qword_ptr(constants))?;
    prepare(a)?;
    let (mut again, mut done) = (a.create_label(), a.create_label());
    a.test(blocks, blocks)?;
    a.je(done)?;
    a.set_label(&mut again)?;
    block(a, x, &BlockOut { values, scale, sums })?;
    a.add(x, (BLOCK * 4) as i32)?;
    a.add(values, BLOCK as i32)?;
    a.add(scale, 4)?;
    a.add(sums, 4)?;
    a.dec(blocks)?;
    a.jne(again)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dd(&CONSTANTS)
}

/// From the largest magnitudes in the lanes of ymm4: the scale to memory, its inverse to every lane of xmm4.
/// xmm15 is 0, xmm14 127.
fn scale(a: &mut CodeAssembler, out: &BlockOut) -> Result<(), IcedError> {
    a.vextracti128(xmm::xmm5, ymm::ymm4, 1)?;
    a.vpmaxsd(xmm::xmm4, xmm::xmm4, xmm::xmm5)?;
    a.vpshufd(xmm::xmm5, xmm::xmm4, 0x4e)?;
    a.vpmaxsd(xmm::xmm4, xmm::xmm4, xmm::xmm5)?;
    a.vpshufd(xmm::xmm5, xmm::xmm4, 0xb1)?;
    a.vpmaxsd(xmm::xmm4, xmm::xmm4, xmm::xmm5)?;
    a.vdivss(xmm::xmm5, xmm::xmm4, xmm::xmm14)?;
    a.vmovss(dword_ptr(out.scale), xmm::xmm5)?;
    // Not equal, or unordered.
    a.vcmpps(xmm::xmm5, xmm::xmm4, xmm::xmm15, 4)?;
    a.vdivps(xmm::xmm4, xmm::xmm14, xmm::xmm4)?;
    a.vandps(xmm::xmm4, xmm::xmm4, xmm::xmm5)
}

/// The sums of the lanes of ymm4, and of those of ymm5, to memory.
fn sums(a: &mut CodeAssembler, out: &BlockOut) -> Result<(), IcedError> {
    a.vphaddd(ymm::ymm4, ymm::ymm4, ymm::ymm5)?;
    a.vphaddd(ymm::ymm4, ymm::ymm4, ymm::ymm4)?;
    a.vextracti128(xmm::xmm5, ymm::ymm4, 1)?;
    a.vpaddd(xmm::xmm4, xmm::xmm4, xmm::xmm5)?;
    a.vpackssdw(xmm::xmm4, xmm::xmm4, xmm::xmm4)?;
    a.vmovd(dword_ptr(out.sums), xmm::xmm4)
}

/// Constants: ymm15 0, ymm14 127, ymm13 magnitude, ymm12 magic, ymm11 and ymm10 least and most, ymm9 order.
fn prepare_half(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.vpxor(ymm::ymm15, ymm::ymm15, ymm::ymm15)?;
    for (register, offset) in [
        (ymm::ymm14, LIMIT),
        (ymm::ymm13, MAGNITUDE),
        (ymm::ymm12, MAGIC),
        (ymm::ymm11, LEAST),
        (ymm::ymm10, MOST),
    ] {
        a.vpbroadcastd(register, dword_ptr(SCRATCH + offset))?;
    }
    a.vmovdqu(ymm::ymm9, ymmword_ptr(SCRATCH + ORDER))
}

fn block_half(a: &mut CodeAssembler, x: AsmRegister64, out: &BlockOut) -> Result<(), IcedError> {
    let values = [ymm::ymm0, ymm::ymm1, ymm::ymm2, ymm::ymm3];
    for (i, value) in values.iter().enumerate() {
        a.vmovups(*value, ymmword_ptr(x + 32 * i))?;
        let magnitude = if i == 0 { ymm::ymm4 } else { ymm::ymm5 };
        a.vpand(magnitude, *value, ymm::ymm13)?;
        if i > 0 {
            a.vpmaxsd(ymm::ymm4, ymm::ymm4, magnitude)?;
        }
    }
    scale(a, out)?;
    a.vbroadcastss(ymm::ymm4, xmm::xmm4)?;
    for value in values {
        a.vmulps(value, value, ymm::ymm4)?;
        a.vaddps(value, value, ymm::ymm12)?;
        a.vpsubd(value, value, ymm::ymm12)?;
        a.vpmaxsd(value, value, ymm::ymm11)?;
        a.vpminsd(value, value, ymm::ymm10)?;
    }
    a.vpaddd(ymm::ymm4, ymm::ymm0, ymm::ymm1)?;
    a.vpaddd(ymm::ymm5, ymm::ymm2, ymm::ymm3)?;
    a.vpackssdw(ymm::ymm0, ymm::ymm0, ymm::ymm1)?;
    a.vpackssdw(ymm::ymm2, ymm::ymm2, ymm::ymm3)?;
    a.vpacksswb(ymm::ymm0, ymm::ymm0, ymm::ymm2)?;
    a.vpermd(ymm::ymm0, ymm::ymm9, ymm::ymm0)?;
    a.vmovdqu(ymmword_ptr(out.values), ymm::ymm0)?;
    sums(a, out)
}

/// Constants: the registers of [`prepare_half`], less the order.
fn prepare_full(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.vpxord(zmm::zmm15, zmm::zmm15, zmm::zmm15)?;
    for (register, offset) in [
        (zmm::zmm14, LIMIT),
        (zmm::zmm13, MAGNITUDE),
        (zmm::zmm12, MAGIC),
        (zmm::zmm11, LEAST),
        (zmm::zmm10, MOST),
    ] {
        a.vpbroadcastd(register, dword_ptr(SCRATCH + offset))?;
    }
    Ok(())
}

fn block_full(a: &mut CodeAssembler, x: AsmRegister64, out: &BlockOut) -> Result<(), IcedError> {
    let values = [zmm::zmm0, zmm::zmm1];
    for (i, value) in values.iter().enumerate() {
        a.vmovups(*value, zmmword_ptr(x + 64 * i))?;
    }
    a.vpandd(zmm::zmm4, zmm::zmm0, zmm::zmm13)?;
    a.vpandd(zmm::zmm5, zmm::zmm1, zmm::zmm13)?;
    a.vpmaxsd(zmm::zmm4, zmm::zmm4, zmm::zmm5)?;
    a.vextracti64x4(ymm::ymm5, zmm::zmm4, 1)?;
    a.vpmaxsd(ymm::ymm4, ymm::ymm4, ymm::ymm5)?;
    scale(a, out)?;
    a.vbroadcastss(zmm::zmm4, xmm::xmm4)?;
    for (i, value) in values.into_iter().enumerate() {
        a.vmulps(value, value, zmm::zmm4)?;
        a.vaddps(value, value, zmm::zmm12)?;
        a.vpsubd(value, value, zmm::zmm12)?;
        a.vpmaxsd(value, value, zmm::zmm11)?;
        a.vpminsd(value, value, zmm::zmm10)?;
        a.vpmovdb(xmm::xmm5, value)?;
        a.vmovdqu(xmmword_ptr(out.values + 16 * i), xmm::xmm5)?;
    }
    a.vextracti64x4(ymm::ymm4, zmm::zmm0, 1)?;
    a.vpaddd(ymm::ymm4, ymm::ymm4, ymm::ymm0)?;
    a.vextracti64x4(ymm::ymm5, zmm::zmm1, 1)?;
    a.vpaddd(ymm::ymm5, ymm::ymm5, ymm::ymm1)?;
    sums(a, out)
}
