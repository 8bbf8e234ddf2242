//! The four parts that formats with blocks are put together of, and a block that is taken apart into them.

use super::layout::{BLOCK, LINE, SUPERBLOCK, TILE_ROWS};
use half::f16;

/// The parts of a format with blocks. The integer of an element is what its code stands for in `map`; with
/// the scale `w` and the minimum `m` of its part of the block, the element is `integer * w + m`, rounded
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockParts {
    /// How many bits a code has, and where.
    pub codes: Codes,
    /// The integer that a code stands for.
    pub map: CodeMap,
    /// The scale.
    pub scale: Scale,
    /// The minimum.
    pub minimum: Minimum,
}

/// Bits of a code: those in the first plane, and those above in the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    /// Lower bits: 8, 4 or 2.
    pub low: usize,
    /// Upper bits: 0, 1 or 2.
    pub high: usize,
}

/// The integer that a code stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeMap {
    /// The code less this.
    Linear {
        /// The code of 0.
        bias: u8,
    },
    /// One of 16 integers.
    Table {
        /// By code.
        values: &'static [i8; 16],
        /// A number that makes all of them unsigned when it is added.
        bias: u8,
    },
}

/// The scale of a row's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Half a power of two in a byte: `2^(byte - 128)`. Integers are twice the values of E2M1.
    E8M0,
    /// An f16 of either sign.
    F16,
    /// Half a number of E4M3 for each 16 elements, its sign left out. Integers are twice the values of E2M1.
    E4M3,
    /// An f16 for 256 elements, times an integer.
    Super {
        /// Integers in a block: 1, or 2 for its halves.
        parts: usize,
        /// Whether they are signed bytes.
        signed: bool,
    },
}

/// The minimum of a row's block: what is added to its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimum {
    /// Nothing.
    None,
    /// An f16.
    F16,
    /// Less the scale, times a byte: the code of 0, which each row's block has of its own.
    Zero,
    /// Less an f16 for 256 elements, times a byte for each scale.
    Super,
    /// Less an f16 for 256 elements, times the upper four bits of the byte whose lower four are the integer
    /// of the scale.
    SuperNibbles,
}

impl Codes {
    /// All bits.
    pub const fn bits(self) -> usize {
        self.low + self.high
    }
}

impl BlockParts {
    /// The difference of an unsigned number, as products take it, to the integer.
    pub fn bias(&self) -> i32 {
        match self.map {
            CodeMap::Linear { bias } | CodeMap::Table { bias, .. } => i32::from(bias),
        }
    }

    /// The largest unsigned number.
    pub fn largest(&self) -> u8 {
        match self.map {
            CodeMap::Linear { .. } => (1u32 << self.codes.bits()).wrapping_sub(1) as u8,
            CodeMap::Table { values, bias } => {
                values.iter().map(|&value| (i32::from(value) + i32::from(bias)) as u8).max().unwrap_or(0)
            }
        }
    }

    /// The integer of a code.
    pub fn integer(&self, code: u8) -> i32 {
        match self.map {
            CodeMap::Linear { bias } => i32::from(code) - i32::from(bias),
            CodeMap::Table { values, .. } => i32::from(values[usize::from(code % 16)]),
        }
    }

    /// Parts of a block that have a scale each: 1, or 2 of 16 elements.
    pub fn parts(&self) -> usize {
        match self.scale {
            Scale::E8M0 | Scale::F16 => 1,
            Scale::E4M3 => 2,
            Scale::Super { parts, .. } => parts,
        }
    }

    /// Whether elements have a minimum.
    pub fn has_minimum(&self) -> bool {
        self.minimum != Minimum::None
    }

    /// Whether scales have a unit per [`SUPERBLOCK`] elements.
    pub fn is_super(&self) -> bool {
        matches!(self.scale, Scale::Super { .. })
    }

    /// A multiple of this many columns makes whole blocks.
    pub fn columns(&self) -> usize {
        if self.is_super() { SUPERBLOCK } else { BLOCK }
    }

    /// Bytes of one row's scales of a block, and of its minima.
    fn row_bytes(&self) -> (usize, usize) {
        let scales = match self.scale {
            Scale::E8M0 => 1,
            Scale::F16 => 2,
            Scale::E4M3 => 2,
            Scale::Super { parts, .. } => parts,
        };
        let minima = match self.minimum {
            Minimum::None | Minimum::SuperNibbles => 0,
            Minimum::F16 => 2,
            Minimum::Zero | Minimum::Super => self.parts(),
        };
        (scales, minima)
    }

    /// Bytes of a block's scales and minima in a tile, units left out.
    pub fn scale_bytes(&self) -> usize {
        let (scales, minima) = self.row_bytes();
        TILE_ROWS * (scales + minima)
    }

    /// Offset of a block's minima from its scales.
    pub fn minima(&self) -> usize {
        TILE_ROWS * self.row_bytes().0
    }

    /// Bytes of the units of 256 columns in a tile.
    pub fn unit_bytes(&self) -> usize {
        match (self.scale, self.minimum) {
            (Scale::Super { .. }, Minimum::Super | Minimum::SuperNibbles) => 4 * TILE_ROWS,
            (Scale::Super { .. }, Minimum::None | Minimum::F16 | Minimum::Zero) => 2 * TILE_ROWS,
            _ => 0,
        }
    }

    /// Bytes of all units of a tile of `k` columns, padded to a line.
    pub fn all_unit_bytes(&self, k: usize) -> usize {
        (k.div_ceil(SUPERBLOCK) * self.unit_bytes()).next_multiple_of(LINE)
    }

    /// The code that packing gives to rows that a tile does not have.
    pub(super) fn padding(&self) -> u8 {
        match self.map {
            CodeMap::Linear { bias } => bias,
            CodeMap::Table { .. } => 0,
        }
    }
}

/// A block of a row as a file has it, taken apart: 32, 64 or 256 neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBlock {
    /// Codes, one per element.
    pub codes: [u8; SUPERBLOCK],
    /// The scale, or the unit of scales: bits of an f16, or a byte of E8M0.
    pub scale: u16,
    /// The minimum, or the unit of minima: bits of an f16.
    pub minimum: u16,
    /// Integer scales (of signed ones the bits), or bytes of E4M3: one for each part that has one.
    pub scales: [u8; SUPERBLOCK / 16],
    /// Integer minima, or zeros.
    pub minima: [u8; SUPERBLOCK / 16],
}

/// An element of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockElement {
    /// The integer.
    pub q: i32,
    /// Scale of the integer.
    pub scale: f32,
    /// Number that is added; -0, which keeps the sign of a zero, if the format has none.
    pub minimum: f32,
}

impl FileBlock {
    /// Nothing, with this code everywhere.
    pub(super) fn of(code: u8) -> FileBlock {
        let integers = [0; SUPERBLOCK / 16];
        FileBlock { codes: [code; SUPERBLOCK], scale: 0, minimum: 0, scales: integers, minima: integers }
    }

    /// Scale and minimum of a part.
    pub(super) fn factors(&self, parts: &BlockParts, part: usize) -> (f32, f32) {
        let [unit, minimum_unit] = [self.scale, self.minimum].map(|bits| f16::from_bits(bits).to_f32());
        let scale = match parts.scale {
            Scale::E8M0 => 0.5 * scale_value(self.scale as u8),
            Scale::F16 => unit,
            Scale::E4M3 => half_e4m3(self.scales[part]),
            Scale::Super { signed: true, .. } => unit * f32::from(self.scales[part].cast_signed()),
            Scale::Super { signed: false, .. } => unit * f32::from(self.scales[part]),
        };
        let minimum = match parts.minimum {
            Minimum::None => -0.0,
            Minimum::F16 => minimum_unit,
            Minimum::Zero => -(scale * f32::from(self.minima[part])),
            Minimum::Super | Minimum::SuperNibbles => -(minimum_unit * f32::from(self.minima[part])),
        };
        (scale, minimum)
    }
}

impl BlockElement {
    /// The element, rounded once.
    pub fn value(self) -> f32 {
        (self.q as f32).mul_add(self.scale, self.minimum)
    }
}

/// Half a number of E4M3 whose sign is left out; NaN for 127.
pub fn half_e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = (byte >> 3 & 15, f32::from(byte & 7));
    match (exponent, byte & 127) {
        (_, 127) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-10),
        _ => (8.0 + mantissa) * 2f32.powi(i32::from(exponent) - 11),
    }
}

/// `2^(scale - 127)`; NaN for 255, as the OCP specification has it. Tiles hold no scale above
/// [`super::mxfp4::MAX_SCALE`], so kernels may make anything of 255.
pub fn scale_value(scale: u8) -> f32 {
    match scale {
        // The only one that is not a normal f32.
        0 => f32::from_bits(0x0040_0000),
        255 => f32::NAN,
        _ => f32::from_bits(u32::from(scale) << 23),
    }
}
