//! The loop that decoding micro-kernels have around a block's body. Their first parameters are pointers to
//! scales, data and what is decoded, the number of blocks, and for some what is fetched meanwhile.

use super::regs::PARAMS;
use crate::ukernel::block::{data_lines, scale_bytes};
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, CodeLabel};
use kernmill_plan::format::{LINE, WeightFormat};

/// Where the loop begins, if there are blocks; where it does, and what is behind it.
pub fn first_block(a: &mut CodeAssembler) -> Result<[CodeLabel; 2], IcedError> {
    let (blocks, mut again, done) = (PARAMS[3], a.create_label(), a.create_label());
    a.test(blocks, blocks)?;
    a.je(done)?;
    a.set_label(&mut again)?;
    Ok([again, done])
}

/// The loop's end; a decoded block has `out_bytes`.
pub fn next_block(
    a: &mut CodeAssembler,
    format: WeightFormat,
    out_bytes: usize,
    labels: [CodeLabel; 2],
) -> Result<(), IcedError> {
    end(a, format, out_bytes, false, labels)
}

/// The loop's end where the body fetches what is decoded later, as [`next_block`].
pub fn next_block_ahead(
    a: &mut CodeAssembler,
    format: WeightFormat,
    out_bytes: usize,
    labels: [CodeLabel; 2],
) -> Result<(), IcedError> {
    end(a, format, out_bytes, true, labels)
}

fn end(
    a: &mut CodeAssembler,
    format: WeightFormat,
    out_bytes: usize,
    has_ahead: bool,
    [again, mut done]: [CodeLabel; 2],
) -> Result<(), IcedError> {
    let [scales, data, out, blocks, ahead, ..] = PARAMS;
    let data_bytes = (data_lines(format) * LINE) as i32;
    a.add(scales, scale_bytes(format) as i32)?;
    a.add(data, data_bytes)?;
    if has_ahead {
        a.add(ahead, data_bytes)?;
    }
    a.add(out, out_bytes as i32)?;
    a.dec(blocks)?;
    a.jne(again)?;
    a.set_label(&mut done)
}
