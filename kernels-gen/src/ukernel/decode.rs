//! How 128-bit code makes integers, scales and minima of a block format's bytes: the one place of each part
//! of [`BlockParts`] in Cranelift IR.
//!
//! A block is read four columns (k) of four rows at a time: a vector of 16 bytes, byte `4 * row + j` that
//! of column `4 * chunk + j`.

use crate::emit::{Emit, LANES};
use cranelift_codegen::ir::types::{F32X4, I8X16, I16X8, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{
    BLOCK, BlockParts, CodeMap, LINE, Minimum, SUPERBLOCK, Scale, TILE_ROWS, WeightFormat,
};

/// Vectors of 4 columns in a block.
pub const CHUNKS: usize = BLOCK / 4;

/// Reads elements, scales and minima of a block format.
#[derive(Clone, Copy)]
pub struct Decoder {
    parts: &'static BlockParts,
}

/// Where a block's scales are; of formats whose scales have units, also where those are.
#[derive(Clone, Copy)]
pub struct ScalePlaces {
    scales: Value,
    /// From where minima are counted as scales are: the same place, unless they take other bytes of a row.
    minima: Value,
    units: Value,
}

impl ScalePlaces {
    /// Scales from here on, and their units.
    pub fn new(scales: Value, units: Value) -> ScalePlaces {
        ScalePlaces { scales, minima: scales, units }
    }

    /// Where scales begin.
    pub fn scales(self) -> Value {
        self.scales
    }

    /// Where units begin.
    pub fn units(self) -> Value {
        self.units
    }

    /// The places of scales and units at the start of a tile.
    pub fn of_tile(e: &mut Emit, format: WeightFormat, k: usize, tile: Value) -> ScalePlaces {
        let scales = e.add_imm(tile, format.tile(k).unit_bytes as i64);
        ScalePlaces::new(scales, tile)
    }

    /// Places of block number `block` from here on, which is the first of its units.
    pub fn block(self, e: &mut Emit, format: WeightFormat, block: Value) -> ScalePlaces {
        let parts = format.parts();
        let scales = e.at(self.scales, block, parts.scale_bytes());
        let minima = match self.minima == self.scales {
            true => scales,
            false => e.at(self.minima, block, parts.scale_bytes()),
        };
        if !parts.is_super() {
            return ScalePlaces { scales, minima, ..self };
        }
        let number = e.b.ins().ushr_imm_u(block, i64::from((SUPERBLOCK / BLOCK).trailing_zeros()));
        ScalePlaces { scales, minima, units: e.at(self.units, number, parts.unit_bytes()) }
    }

    /// Places of quad `quad`'s four rows.
    pub fn quad(self, e: &mut Emit, format: WeightFormat, quad: Value) -> ScalePlaces {
        let parts = format.parts();
        let width = if parts.scale == Scale::F16 { 2 } else { 1 };
        let scales = e.at(self.scales, quad, LANES * width);
        let minima = match parts.minimum {
            Minimum::Zero => e.at(self.minima, quad, LANES),
            Minimum::None | Minimum::F16 | Minimum::Super | Minimum::SuperNibbles => scales,
        };
        if !parts.is_super() {
            return ScalePlaces { scales, minima, ..self };
        }
        ScalePlaces { scales, minima, units: e.at(self.units, quad, LANES * 2) }
    }
}

impl Decoder {
    /// A decoder of a format with blocks.
    pub fn new(format: WeightFormat) -> Decoder {
        Decoder { parts: format.parts() }
    }

    /// Whether its bytes are so small that products of two of them with int8 never overflow 16 bits.
    pub fn is_small(self) -> bool {
        self.parts.largest() <= 64
    }

    /// Unsigned bytes of a quad of rows of the block at `data`.
    pub fn weights(self, e: &mut Emit, data: Value, quad: usize, chunk: usize) -> Value {
        let codes = self.codes(e, chunk, |e, line| e.load(I8X16, data, line * LINE + quad * LANES * 4));
        self.unsigned(e, codes)
    }

    /// Signed bytes of four rows, whose data begins at `data`.
    pub fn signed(self, e: &mut Emit, data: Value, chunk: usize) -> Value {
        let codes = self.codes(e, chunk, |e, line| e.load(I8X16, data, line * LINE));
        self.signed_codes(e, codes)
    }

    /// Signed bytes of one row, whose data begins at `data`, four times.
    pub fn signed_row(self, e: &mut Emit, data: Value, chunk: usize) -> Value {
        let codes = self.codes(e, chunk, |e, line| {
            let four = e.load(I32, data, line * LINE);
            let four = e.splat(four);
            e.cast(I8X16, four)
        });
        self.signed_codes(e, codes)
    }

    /// The codes of four columns, of lines as `load` gives them.
    fn codes(self, e: &mut Emit, chunk: usize, load: impl Fn(&mut Emit, usize) -> Value) -> Value {
        let mut plane = |first: usize, bits: usize, to: usize| {
            let per_line = 8 / bits;
            let bytes = load(e, first + chunk / per_line);
            let from = bits * (chunk % per_line);
            let shifted = if from == to {
                bytes
            } else {
                let words = e.cast(I16X8, bytes);
                let words = match from > to {
                    true => e.b.ins().ushr_imm_u(words, (from - to) as i64),
                    false => e.b.ins().ishl_imm_u(words, (to - from) as i64),
                };
                e.cast(I8X16, words)
            };
            if bits == 8 {
                return shifted;
            }
            let mask = e.bytes([((0xff >> (8 - bits)) << to) as u8; 16]);
            e.b.ins().band(shifted, mask)
        };
        let codes = self.parts.codes;
        let low = plane(0, codes.low, 0);
        if codes.high == 0 {
            return low;
        }
        let high = plane(codes.low, codes.high, codes.low);
        e.b.ins().bor(low, high)
    }

    fn unsigned(self, e: &mut Emit, codes: Value) -> Value {
        match self.parts.map {
            CodeMap::Linear { .. } => codes,
            CodeMap::Table { values, bias } => {
                let table = e.bytes(values.map(|value| value.cast_unsigned().wrapping_add(bias)));
                e.b.ins().x86_pshufb(table, codes)
            }
        }
    }

    fn signed_codes(self, e: &mut Emit, codes: Value) -> Value {
        match self.parts.map {
            CodeMap::Linear { .. } => self.less_bias(e, codes),
            CodeMap::Table { values, .. } => {
                let table = e.bytes(values.map(i8::cast_unsigned));
                e.b.ins().x86_pshufb(table, codes)
            }
        }
    }

    /// Unsigned bytes as signed ones.
    pub fn less_bias(self, e: &mut Emit, bytes: Value) -> Value {
        match self.parts.bias() {
            0 => bytes,
            128 => {
                let signs = e.bytes([0x80; 16]);
                e.b.ins().bxor(bytes, signs)
            }
            bias => {
                let bias = e.bytes([bias as u8; 16]);
                e.b.ins().isub(bytes, bias)
            }
        }
    }

    /// The scales of quad `quad`'s four rows for part `part` of the block, as f32.
    pub fn row_scales(self, e: &mut Emit, places: ScalePlaces, quad: usize, part: usize) -> Value {
        let half = |e: &mut Emit, scales: Value, by: f32| {
            let factor = e.splat_f32(by);
            e.fmul(factor, scales)
        };
        let at = part * TILE_ROWS + quad * LANES;
        match self.parts.scale {
            Scale::E8M0 => {
                let four = e.load(I32, places.scales, at);
                let scales = e8m0_to_f32(e, four);
                half(e, scales, 0.5)
            }
            Scale::F16 => e.load_f16x4(places.scales, 2 * at),
            Scale::E4M3 => {
                // As an f16, whose exponent has a bias of 15 and not of 7, it is 2^-8 of the number.
                let bytes = byte_lanes(e, places.scales, at, false);
                let bits = e.b.ins().ishl_imm_u(bytes, 7);
                let scales = e.f16_to_f32(bits);
                half(e, scales, 128.0)
            }
            Scale::Super { signed, .. } => {
                let mut bytes = byte_lanes(e, places.scales, at, signed);
                if self.parts.minimum == Minimum::SuperNibbles {
                    let low = e.splat_i32(15);
                    bytes = e.b.ins().band(bytes, low);
                }
                let integers = e.b.ins().fcvt_from_sint(F32X4, bytes);
                let units = e.load_f16x4(places.units, quad * LANES * 2);
                e.fmul(integers, units)
            }
        }
    }

    /// The minima of quad `quad`'s four rows for part `part` of the block, as f32.
    ///
    /// # Panics
    /// If the format has none.
    pub fn row_minima(self, e: &mut Emit, places: ScalePlaces, quad: usize, part: usize) -> Value {
        let at = part * TILE_ROWS + quad * LANES;
        let bytes = match self.parts.minimum {
            Minimum::None => panic!("the format has no minima"),
            Minimum::F16 => return e.load_f16x4(places.minima, self.parts.minima() + 2 * at),
            Minimum::Zero | Minimum::Super => byte_lanes(e, places.minima, self.parts.minima() + at, false),
            Minimum::SuperNibbles => {
                let bytes = byte_lanes(e, places.scales, at, false);
                e.b.ins().ushr_imm_u(bytes, 4)
            }
        };
        let integers = e.b.ins().fcvt_from_sint(F32X4, bytes);
        let units = match self.parts.minimum {
            Minimum::Zero => self.row_scales(e, places, quad, part),
            _ => e.load_f16x4(places.units, 2 * TILE_ROWS + quad * LANES * 2),
        };
        let product = e.fmul(integers, units);
        e.b.ins().fneg(product)
    }

    /// Four elements of one row as f32, as [`Decoder::elements`] of four rows; every lane of `scale` and
    /// `minimum` is the row's.
    pub fn elements_of_row(self, e: &mut Emit, signed: Value, scale: Value, minimum: Option<Value>) -> Value {
        let values = low_bytes(e, signed);
        let values = e.b.ins().fcvt_from_sint(F32X4, values);
        match minimum {
            Some(minimum) => e.fma(values, scale, minimum),
            None => e.fmul(values, scale),
        }
    }

    /// Elements of four columns as f32, by column: `signed` bytes times `scale`, plus `minimum` if there is
    /// one, rounded once.
    pub fn elements(self, e: &mut Emit, signed: Value, scale: Value, minimum: Option<Value>) -> [Value; 4] {
        let words = e.cast(I32X4, signed);
        [0, 1, 2, 3].map(|j| {
            // Lane = row; byte j of the lane, sign-extended.
            let up = e.b.ins().ishl_imm_u(words, (24 - 8 * j) as i64);
            let value = e.b.ins().sshr_imm_u(up, 24);
            let value = e.b.ins().fcvt_from_sint(F32X4, value);
            match minimum {
                Some(minimum) => e.fma(value, scale, minimum),
                None => e.fmul(value, scale),
            }
        })
    }
}

/// Bytes 0 to 3 as int32.
fn low_bytes(e: &mut Emit, bytes: Value) -> Value {
    let words = e.b.ins().swiden_low(bytes);
    e.b.ins().swiden_low(words)
}

/// Four bytes as int32.
fn byte_lanes(e: &mut Emit, from: Value, offset: usize, signed: bool) -> Value {
    let bytes = e.load_i8x4(from, offset);
    if signed {
        return bytes;
    }
    let low = e.splat_i32(0xff);
    e.b.ins().band(bytes, low)
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
