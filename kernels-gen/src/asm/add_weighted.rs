//! `AddWeighted` in 256 bits (AVX2, FMA) and in 512 bits (AVX-512 F). Rows are independent and short, so the
//! CPU has many of them under way: targets come from memory. Clobbers: caller-saved registers and flags.

use super::AsmKernel;
use super::regs::{PARAMS, Regs, SCRATCH};
use super::vector::{Address, Fma, Lanes, Vectors, Width};
use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, qword_ptr};
use kernmill_plan::target::Features;

/// 256 bits.
pub const AVX2: AsmKernel = AsmKernel {
    name: "add_weighted_avx2",
    needs: Features::FLOOR,
    unless: Features::AVX512,
    serves,
    assemble: |a, ukernel| assemble(a, ukernel, Width::Half),
};

/// 512 bits.
pub const AVX512: AsmKernel = AsmKernel {
    name: "add_weighted_avx512",
    needs: Features::AVX512,
    unless: Features::NONE,
    serves,
    assemble: |a, ukernel| assemble(a, ukernel, Width::Full),
};

/// A bias stays in registers: up to eight of them.
const LONGEST: usize = 64;

fn serves(ukernel: MicroKernel) -> bool {
    matches!(ukernel, MicroKernel::AddWeighted { n, .. } if n.is_multiple_of(16) && n <= LONGEST)
}

fn assemble(a: &mut CodeAssembler, ukernel: MicroKernel, width: Width) -> Result<(), IcedError> {
    let MicroKernel::AddWeighted { n, bias } = ukernel else { return Ok(()) };
    let regs = Regs::with_params(6);
    let [x, biases, weights, targets, offset, rows] = PARAMS;
    let vectors = n / width.lanes();
    let (weight, value, sum) = (0, 1, 2);
    let place = |base: AsmRegister64, vector: usize| Address::at(base) + vector * width.bytes();
    let resident = |vector: usize| 3 + vector;
    let (mut again, mut done) = (a.create_label(), a.create_label());
    a.test(rows, rows)?;
    a.je(done)?;
    for vector in (0..vectors).filter(|_| bias) {
        Vectors { a: &mut *a, width }.load(resident(vector), place(biases, vector))?;
    }
    a.set_label(&mut again)?;
    a.mov(SCRATCH, qword_ptr(targets))?;
    let mut v = Vectors { a: &mut *a, width };
    v.broadcast(weight, place(weights, 0))?;
    for vector in 0..vectors {
        let target = place(SCRATCH, vector) + offset;
        v.load(value, place(x, vector))?;
        if bias {
            v.lanes(Lanes::Add, value, value, resident(vector))?;
        }
        v.load(sum, target)?;
        v.fma(Fma::F231, sum, weight, value)?;
        v.store(target, sum)?;
    }
    a.add(x, (n * 4) as i32)?;
    a.add(weights, 4)?;
    a.add(targets, 8)?;
    a.dec(rows)?;
    a.jne(again)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)
}
