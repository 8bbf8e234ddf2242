//! `RmsNorm` in 256 bits (AVX2, FMA) and in 512 bits (AVX-512 F). The sixteen lanes of the sum of squares are
//! one vector or two: what bounds it is the latency of one fma per sixteen elements. Clobbers: caller-saved
//! registers and flags.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use super::vector::{Address, Fma, Lanes, Vectors, Width};
use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::registers::{xmm, ymm, zmm};
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, dword_ptr, qword_ptr};
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::target::Features;

/// 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "rms_norm_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves,
    assemble: |a, ukernel| assemble(a, ukernel, Width::Half),
};

/// 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "rms_norm_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| assemble(a, ukernel, Width::Full),
};

fn serves(ukernel: MicroKernel) -> bool {
    matches!(ukernel, MicroKernel::RmsNorm { n, .. } if n > 0 && n.is_multiple_of(TILE_ROWS) && n < 1 << 28)
}

fn assemble(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::RmsNorm { n, eps } = ukernel else { return Ok(()) };
    let mut regs = Regs::with_params(3);
    let [x, weight, out] = [PARAMS[0], PARAMS[1], PARAMS[2]];
    let index = regs.general();
    let mut constants = a.create_label();
    regs.save(a)?;
    a.lea(SCRATCH, qword_ptr(constants))?;
    // Sixteen elements a turn: lanes 0 to 7 and 8 to 15, or all of them at once.
    let vectors = TILE_ROWS / width.lanes();
    let place = |base: AsmRegister64, vector: usize| Address::at(base) + index + vector * width.bytes();
    for sum in 0..vectors {
        Vectors { a: &mut *a, width }.zero(sum)?;
    }
    turns(a, index, n, |a| {
        for sum in 0..vectors {
            let mut v = Vectors { a: &mut *a, width };
            let value = vectors + sum;
            v.load(value, place(x, sum))?;
            v.fma(Fma::F231, sum, value, value)?;
        }
        Ok(())
    })?;
    match width {
        Width::Half => a.vaddps(ymm::ymm0, ymm::ymm0, ymm::ymm1)?,
        Width::Full => {
            a.vextractf64x4(ymm::ymm1, zmm::zmm0, 1)?;
            a.vaddps(ymm::ymm0, ymm::ymm0, ymm::ymm1)?;
        }
    }
    a.vextractf128(xmm::xmm1, ymm::ymm0, 1)?;
    a.vaddps(xmm::xmm0, xmm::xmm0, xmm::xmm1)?;
    a.vpshufd(xmm::xmm1, xmm::xmm0, 0x4e)?;
    a.vaddps(xmm::xmm0, xmm::xmm0, xmm::xmm1)?;
    a.vpshufd(xmm::xmm1, xmm::xmm0, 0xb1)?;
    a.vaddss(xmm::xmm0, xmm::xmm0, xmm::xmm1)?;
    a.vdivss(xmm::xmm0, xmm::xmm0, dword_ptr(SCRATCH))?;
    a.vaddss(xmm::xmm0, xmm::xmm0, dword_ptr(SCRATCH + 4))?;
    a.vsqrtss(xmm::xmm0, xmm::xmm0, xmm::xmm0)?;
    a.vmovss(xmm::xmm1, dword_ptr(SCRATCH + 8))?;
    a.vdivss(xmm::xmm0, xmm::xmm1, xmm::xmm0)?;
    match width {
        Width::Half => a.vbroadcastss(ymm::ymm0, xmm::xmm0)?,
        Width::Full => a.vbroadcastss(zmm::zmm0, xmm::xmm0)?,
    }
    turns(a, index, n, |a| {
        for vector in 0..vectors {
            let mut v = Vectors { a: &mut *a, width };
            let (factor, value) = (0, 1 + vector);
            v.load(value, place(x, vector))?;
            v.lanes(Lanes::Mul, value, value, factor)?;
            v.lanes(Lanes::Mul, value, value, place(weight, vector))?;
            v.store(place(out, vector), value)?;
        }
        Ok(())
    })?;
    regs.restore_and_return(a)?;
    a.set_label(&mut constants)?;
    a.dd(&[(n as f32).to_bits(), eps, 1f32.to_bits()])
}

/// `body` for every sixteen elements, `index` their offset in bytes.
fn turns(
    a: &mut CodeAssembler,
    index: AsmRegister64,
    n: usize,
    body: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Result<(), IcedError> {
    let mut again = a.create_label();
    a.xor(index, index)?;
    a.set_label(&mut again)?;
    body(a)?;
    a.add(index, (TILE_ROWS * 4) as i32)?;
    a.cmp(index, (n * 4) as i32)?;
    a.jne(again)
}
