//! How 128-bit code makes integers and scales of a block format's bytes: the one place of each
//! [`BlockDecode`] in Cranelift IR.
//!
//! A block is read four columns (k) of four rows at a time: a vector of 16 bytes, byte `4 * row + j` that
//! of column `4 * chunk + j`.

use super::block::{MXFP4_SIGNED, MXFP4_TABLE, bias, data_lines, decode_of};
use crate::emit::{Emit, LANES, MEM};
use cranelift_codegen::ir::types::{F32X4, I8X16, I16X8, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, BlockDecode, LINE, Scale, WeightFormat};

/// Vectors of 4 columns in a block.
pub const CHUNKS: usize = BLOCK / 4;

/// Reads elements and scales of a block format.
#[derive(Clone, Copy)]
pub struct Decoder {
    format: WeightFormat,
    decode: BlockDecode,
}

impl Decoder {
    /// A decoder of a format with blocks.
    pub fn new(format: WeightFormat) -> Decoder {
        Decoder { format, decode: decode_of(format) }
    }

    /// Whether its bytes are so small that products of two of them with int8 never overflow 16 bits.
    pub fn is_small(self) -> bool {
        self.decode.largest() <= 24
    }

    /// Unsigned bytes of a quad of rows of the block at `data`.
    pub fn weights(self, e: &mut Emit, data: Value, quad: usize, chunk: usize) -> Value {
        match self.decode {
            BlockDecode::Bytes => e.load(I8X16, data, chunk * LINE + quad * LANES * 4),
            BlockDecode::Nibbles => nibbles(e, data, quad, chunk),
            BlockDecode::NibbleTable => {
                let codes = nibbles(e, data, quad, chunk);
                let table = e.bytes(MXFP4_TABLE);
                e.b.ins().x86_pshufb(table, codes)
            }
        }
    }

    /// The vectors that one step of [`Decoder::signed`] gives.
    pub fn chunks_per_step(self) -> usize {
        match self.decode {
            BlockDecode::Bytes => 1,
            BlockDecode::Nibbles | BlockDecode::NibbleTable => 2,
        }
    }

    /// Signed bytes of four rows, whose data begins at `data`: as many vectors as one step decodes at once.
    pub fn signed(self, e: &mut Emit, data: Value, step: usize) -> Vec<Value> {
        match self.decode {
            BlockDecode::Bytes => {
                let bytes = e.load(I8X16, data, step * LINE);
                let flip = e.bytes([0x80; 16]);
                vec![e.b.ins().bxor(bytes, flip)]
            }
            BlockDecode::NibbleTable => signed_nibbles(e, data, step, |e, codes| {
                let table = e.bytes(MXFP4_SIGNED);
                e.b.ins().x86_pshufb(table, codes)
            }),
            BlockDecode::Nibbles => signed_nibbles(e, data, step, |e, codes| {
                let eight = e.bytes([bias(WeightFormat::Int4) as u8; 16]);
                e.b.ins().isub(codes, eight)
            }),
        }
    }

    /// Unsigned bytes as signed ones.
    pub fn less_bias(self, e: &mut Emit, bytes: Value) -> Value {
        match self.decode {
            BlockDecode::Bytes => {
                let signs = e.splat_i32(i32::from_ne_bytes([0x80; 4]));
                let signs = e.cast(I8X16, signs);
                e.b.ins().bxor(bytes, signs)
            }
            BlockDecode::Nibbles | BlockDecode::NibbleTable => {
                let bias = e.bytes([bias(self.format) as u8; 16]);
                e.b.ins().isub(bytes, bias)
            }
        }
    }

    /// The scales of quad `quad`'s four rows as f32, halved for mxfp4, whose integers are twice the value.
    pub fn row_scales(self, e: &mut Emit, scales: Value, quad: usize) -> Value {
        match self.format.descriptor().scale {
            Scale::E8M0 => {
                let scales = self.whole_row_scales(e, scales, quad);
                let half = e.splat_f32(0.5);
                e.fmul(half, scales)
            }
            Scale::F16 | Scale::None => self.whole_row_scales(e, scales, quad),
        }
    }

    /// The factors of signed bytes of the first quad's four rows.
    pub fn scale_of_signed(self, e: &mut Emit, scales: Value) -> Value {
        let scale = self.whole_row_scales(e, scales, 0);
        match self.format.descriptor().scale {
            Scale::E8M0 => {
                let half = e.splat_f32(0.5);
                e.fmul(scale, half)
            }
            Scale::F16 | Scale::None => scale,
        }
    }

    /// The scales of quad `quad`'s four rows as f32, as they are.
    fn whole_row_scales(self, e: &mut Emit, scales: Value, quad: usize) -> Value {
        let scale = self.format.descriptor().scale;
        let offset = quad * LANES * scale.bytes();
        match scale {
            Scale::E8M0 => {
                let four = e.load(I32, scales, offset);
                e8m0_to_f32(e, four)
            }
            Scale::F16 => e.load_f16x4(scales, offset),
            Scale::None => e.splat_f32(1.0),
        }
    }

    /// Lines of a block.
    pub fn lines(self) -> usize {
        data_lines(self.format)
    }
}

/// The low (of an even chunk) or high nibbles of a line.
fn nibbles(e: &mut Emit, data: Value, quad: usize, chunk: usize) -> Value {
    let bytes = e.b.ins().load(I8X16, MEM, data, (chunk / 2 * LINE + quad * LANES * 4) as i32);
    let shifted = if chunk.is_multiple_of(2) {
        bytes
    } else {
        let words = e.cast(I16X8, bytes);
        let words = e.b.ins().ushr_imm_u(words, 4);
        e.cast(I8X16, words)
    };
    let mask = e.bytes([0x0f; 16]);
    e.b.ins().band(shifted, mask)
}

/// The low and the high nibbles of a line, each through `number`.
fn signed_nibbles(
    e: &mut Emit,
    data: Value,
    line: usize,
    number: impl Fn(&mut Emit, Value) -> Value,
) -> Vec<Value> {
    let bytes = e.load(I8X16, data, line * LINE);
    let mask = e.bytes([0x0f; 16]);
    let words = e.cast(I16X8, bytes);
    let high = e.b.ins().ushr_imm_u(words, 4);
    let high = e.cast(I8X16, high);
    let each = |nibbles: Value| {
        let codes = e.b.ins().band(nibbles, mask);
        number(e, codes)
    };
    [bytes, high].into_iter().map(each).collect()
}

/// Four E8M0 bytes (an i32) as f32: `2^(s-127)`, with the denormal 2^-127 for s = 0. Packing refuses 255,
/// which stands for NaN.
fn e8m0_to_f32(e: &mut Emit, four: Value) -> Value {
    let lanes = e.splat(four);
    let bytes = e.cast(I8X16, lanes);
    let words = e.b.ins().uwiden_low(bytes);
    let s = e.b.ins().uwiden_low(words);
    let normal = e.b.ins().ishl_imm_u(s, 23);
    let zero = e.splat_i32(0);
    let is_zero = e.icmp(cranelift_codegen::ir::condcodes::IntCC::Equal, s, zero);
    let smallest = e.splat_i32(0x0040_0000);
    let denormal = e.b.ins().band(is_zero, smallest);
    let bits = e.b.ins().bor(normal, denormal);
    debug_assert_eq!(e.b.func.dfg.value_type(bits), I32X4);
    e.cast(F32X4, bits)
}
