//! `Prefetch`, for every level: a line of each place at a time, into the first-level cache. Clobbers: flags and its parameters.

use super::Wide;
use super::regs::{PARAMS, Regs};
use crate::leaf::Leaf;
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, byte_ptr};
use kernmill_plan::format::LINE;

/// The version.
pub const WIDE: Wide = Wide {
    name: "prefetch_sse",
    levels: |_| true,
    serves: |leaf| leaf == Leaf::Prefetch,
    assemble: |a, _| prefetch(a),
};

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
