//! `Prefetch`, for every level: a line of each place at a time, into the first-level cache. Clobbers: flags
//! and its parameters.
//!
//! And what micro-kernels prefetch that go through the same memory in several passes.

use super::AsmKernel;
use super::regs::{PARAMS, Regs};
use crate::ukernel::MicroKernel;
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, byte_ptr};
use kernmill_plan::format::LINE;
use kernmill_plan::target::Features;

/// The version.
pub const WIDE: AsmKernel = AsmKernel {
    name: "prefetch_sse",
    needs: Features::FLOOR,
    unless: Features::NONE,
    serves: |ukernel| ukernel == MicroKernel::Prefetch,
    assemble: |a, _| prefetch(a),
};

/// Prefetches into L2, of the `bytes` bytes at `from`, the lines that fall to pass number `pass` of `passes`.
///
/// A core can have only so many lines on their way. On a Zen 3, attention at depth 4096 takes a third less
/// time with the lines shared out than with all of them in the first pass
/// (`benches/runs/2026-11-22-zen3.md`).
pub fn share(
    a: &mut CodeAssembler,
    from: AsmRegister64,
    bytes: usize,
    (pass, passes): (usize, usize),
) -> Result<(), IcedError> {
    let lines = bytes.div_ceil(LINE);
    let mut share = lines * pass / passes..lines * (pass + 1) / passes;
    share.try_for_each(|line| a.prefetcht1(byte_ptr(from + line * LINE)))
}

fn prefetch(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let regs = Regs::with_params(3);
    let [first, second, lines] = [PARAMS[0], PARAMS[1], PARAMS[2]];
    let (mut again, mut done) = (a.create_label(), a.create_label());
    regs.save(a)?;
    a.test(lines, lines)?;
    a.je(done)?;
    a.set_label(&mut again)?;
    for place in [first, second] {
        a.prefetcht0(byte_ptr(place))?;
        a.add(place, LINE as i32)?;
    }
    a.dec(lines)?;
    a.jne(again)?;
    a.set_label(&mut done)?;
    regs.restore_and_return(a)
}
