//! The description of a weight format, as data, for packing, kernels and the cost model.

use super::error::PackError;
use super::layout::{BLOCK, Column, LINE, TILE_ROWS, TileLayout};

/// Packs rows of a given number of columns into a tile.
pub type PackTile = fn(usize, &[f32], &mut [u8]) -> Result<(), PackError>;

/// One weight format. Everything that depends on the format asks this, or matches on [`Descriptor::decode`]
/// without a catch-all arm.
#[derive(Debug)]
pub struct Descriptor {
    /// The name used in specs, listings and symbols.
    pub name: &'static str,
    /// Bits of an element, scales not counted. A line of the data plane has 32 bits for each row.
    pub bits: usize,
    /// How kernels make numbers of a line.
    pub decode: Decode,
    /// The scale that a block's elements are multiplied by.
    pub scale: Scale,
    /// How f32 weights become elements.
    pub quantise: Quantise,
    /// Packs `rows [1..=16][k]` into a tile; `None` for a format that is packed from stored blocks only.
    pub pack: Option<PackTile>,
    /// Element `[row, index]` of a tile of `k` columns: `value(k, tile, row, index)`. It is written from
    /// the layout's definition and shares no code with `pack` and `unpack`, so that each checks the other.
    pub value: fn(usize, &[u8], usize, usize) -> f32,
    /// All elements of a tile, a column for each k.
    pub unpack: fn(&[u8], &mut [Column]),
}

/// How elements lie in the data plane and become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decode {
    /// Integers in blocks of [`BLOCK`] along k, which a scale follows.
    Block(BlockDecode),
    /// Numbers by themselves.
    Plain(PlainDecode),
}

/// How the lines of a block become unsigned bytes, 16 rows by 4 k at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDecode {
    /// Low, then high nibbles of a line; each is a place in the table of E2M1 values
    /// ([`super::mxfp4::E2M1`]). A byte is twice the value plus the bias.
    NibbleTable,
    /// Low, then high nibbles of a line; a byte is the nibble.
    Nibbles,
    /// The bytes of a line as they are.
    Bytes,
}

/// Formats without blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainDecode {
    /// Two bf16 for each row in a line.
    Bf16,
    /// One f32 for each row in a line.
    F32,
}

/// The scale of a row's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// None: elements are numbers by themselves.
    None,
    /// A power of two in a byte: `2^(byte - 127)`.
    E8M0,
    /// An f16 of either sign.
    F16,
}

impl Scale {
    /// Bytes of one scale.
    pub fn bytes(self) -> usize {
        match self {
            Scale::None => 0,
            Scale::E8M0 => 1,
            Scale::F16 => 2,
        }
    }
}

/// How f32 weights become a format's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantise {
    /// Not at all: blocks are taken bit for bit from a checkpoint that stores them.
    Stored,
    /// Without rounding: every weight must be a number of the format.
    Exact,
    /// To integers in `-levels..=levels`, by the smallest f16 scale that reaches the block's largest weight.
    Symmetric {
        /// The largest integer.
        levels: f32,
    },
    /// To integers in -8..=7, by the scale with the smallest error of several.
    Fitted,
}

impl Decode {
    /// The decoding of a block; `None` for plain formats.
    pub fn block(self) -> Option<BlockDecode> {
        match self {
            Decode::Block(decode) => Some(decode),
            Decode::Plain(_) => None,
        }
    }

    /// The decoding of a plain format; `None` for those with blocks.
    pub fn plain(self) -> Option<PlainDecode> {
        match self {
            Decode::Block(_) => None,
            Decode::Plain(decode) => Some(decode),
        }
    }
}

impl PlainDecode {
    /// Elements of a row in a line.
    pub fn per_line(self) -> usize {
        match self {
            PlainDecode::Bf16 => 2,
            PlainDecode::F32 => 1,
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        4 / self.per_line()
    }
}

impl BlockDecode {
    /// The difference of an unsigned byte to the signed integer.
    pub fn bias(self) -> i32 {
        match self {
            BlockDecode::NibbleTable => 12,
            BlockDecode::Nibbles => 8,
            BlockDecode::Bytes => 128,
        }
    }

    /// The largest unsigned byte.
    pub fn largest(self) -> u8 {
        match self {
            BlockDecode::NibbleTable => 24,
            BlockDecode::Nibbles => 15,
            BlockDecode::Bytes => 255,
        }
    }

    /// The value of an integer step before the scale, as a share of the scale: twice that of E2M1 values is
    /// kept.
    pub fn unit(self) -> f32 {
        match self {
            BlockDecode::NibbleTable => 0.5,
            BlockDecode::Nibbles | BlockDecode::Bytes => 1.0,
        }
    }
}

impl Descriptor {
    /// Whether elements share a scale per [`BLOCK`] along k; such a matrix needs `k % 32 == 0`.
    pub fn is_blocked(&self) -> bool {
        self.decode.block().is_some()
    }

    /// Lines that [`BLOCK`] elements along k of a tile's 16 rows take.
    pub fn data_lines(&self) -> usize {
        BLOCK * self.bits / 32
    }

    /// Bytes of a block's scales in a tile.
    pub fn scale_bytes(&self) -> usize {
        TILE_ROWS * self.scale.bytes()
    }

    /// Layout of a tile of 16 rows x `k`.
    ///
    /// # Panics
    /// If the format is blocked and `k` is not a multiple of [`BLOCK`]; specs are checked for that before.
    pub fn tile(&self, k: usize) -> TileLayout {
        assert!(!self.is_blocked() || k.is_multiple_of(BLOCK), "k = {k} is not a multiple of {BLOCK}");
        let scale = k / BLOCK * self.scale_bytes();
        let data = (k * self.bits).div_ceil(32) * LINE;
        TileLayout { scale_bytes: scale.next_multiple_of(LINE), data_bytes: data }
    }

    /// Rows in `elements` elements of rows of `k`.
    ///
    /// # Panics
    /// If they are not 1 to 16 whole rows, or the tile has the wrong length.
    pub(super) fn count_rows(&self, k: usize, elements: usize, tile: &[u8]) -> usize {
        let rows = elements / k;
        assert!(
            (1..=TILE_ROWS).contains(&rows) && rows * k == elements,
            "a tile takes 1 to {TILE_ROWS} rows of {k}, not {elements} elements"
        );
        assert_eq!(tile.len(), self.tile(k).bytes(), "length of a {} tile of k = {k}", self.name);
        rows
    }
}
