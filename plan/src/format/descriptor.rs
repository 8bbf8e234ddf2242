//! The description of a weight format, as data, for packing, kernels and the cost model.

use super::error::PackError;
use super::layout::{BLOCK, LINE, TILE_ROWS, TileLayout};
use super::parts::{BlockParts, FileBlock};

/// Packs rows of a given number of columns into a tile.
pub type PackTile = fn(usize, &[f32], &mut [u8]) -> Result<(), PackError>;

/// One weight format. Everything that depends on the format asks this, or matches on [`Descriptor::decode`]
/// without a catch-all arm.
#[derive(Debug)]
pub struct Descriptor {
    /// The name used in specs, listings and symbols.
    pub name: &'static str,
    /// How elements lie in a tile and become numbers.
    pub decode: Decode,
    /// How f32 weights become elements.
    pub quantise: Quantise,
    /// Packs `rows [1..=16][k]` into a tile; `None` for a format that is packed from stored blocks only.
    pub pack: Option<PackTile>,
    /// The blocks in files that the format keeps.
    pub file: Option<FileType>,
}

/// Blocks as a file has them: a type of GGUF tensors, or what readers of other checkpoints make.
#[derive(Clone, Copy, Debug)]
pub struct FileType {
    /// Name by which tools call it, such as `Q4_K`.
    pub name: &'static str,
    /// Number in GGUF files, if they have such tensors.
    pub number: Option<u32>,
    /// Elements of a block, neighbours in a row.
    pub elements: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// Takes a block's bytes apart.
    pub read: fn(&[u8], &mut FileBlock),
}

/// How elements lie in the data plane and become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decode {
    /// Integers in blocks of [`BLOCK`] along k, which a scale follows.
    Block(BlockParts),
    /// Numbers by themselves.
    Plain(PlainDecode),
}

/// Formats without blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainDecode {
    /// Two bf16 for each row in a line.
    Bf16,
    /// One f32 for each row in a line.
    F32,
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
    /// The parts of a format with blocks; `None` for plain formats.
    pub fn block(&self) -> Option<&BlockParts> {
        match self {
            Decode::Block(parts) => Some(parts),
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

impl Descriptor {
    /// The parts of a format with blocks.
    ///
    /// # Panics
    /// For a plain format.
    pub(super) fn parts(&self) -> &BlockParts {
        self.decode.block().unwrap_or_else(|| panic!("{} has no blocks", self.name))
    }

    /// Bits of an element, scales not counted. A line of the data plane has 32 bits for each row.
    pub fn bits(&self) -> usize {
        match self.decode {
            Decode::Block(parts) => parts.codes.bits(),
            Decode::Plain(decode) => 8 * decode.bytes(),
        }
    }

    /// Whether elements share a scale per [`BLOCK`] along k; such a matrix needs whole blocks
    /// ([`Descriptor::columns`]).
    pub fn is_blocked(&self) -> bool {
        self.decode.block().is_some()
    }

    /// A multiple of this many columns makes whole blocks.
    pub fn columns(&self) -> usize {
        self.decode.block().map_or(1, BlockParts::columns)
    }

    /// Layout of a tile of 16 rows x `k`.
    ///
    /// # Panics
    /// If `k` is not a multiple of [`Descriptor::columns`]; specs are checked for that before.
    pub fn tile(&self, k: usize) -> TileLayout {
        let columns = self.columns();
        assert!(k.is_multiple_of(columns), "k = {k} is not a multiple of {columns}");
        let data_bytes = (k * self.bits()).div_ceil(32) * LINE;
        let (unit_bytes, scale_bytes) = self.decode.block().map_or((0, 0), |parts| {
            let units = parts.all_unit_bytes(k);
            (units, units + (k / BLOCK * parts.scale_bytes()).next_multiple_of(LINE))
        });
        TileLayout { unit_bytes, scale_bytes, data_bytes }
    }

    /// Rows in `elements` elements of rows of `k`.
    ///
    /// # Panics
    /// If they are not 1 to 16 whole rows, or the tile has the wrong length.
    pub(super) fn count_rows(&self, k: usize, elements: usize, tile: &[u8]) -> usize {
        let rows = elements / k;
        assert!(rows * k == elements, "whole rows of {k}, not {elements} elements");
        self.check_tile(k, rows, tile);
        rows
    }

    /// # Panics
    /// If there are not 1 to 16 rows of `k`, or the tile has the wrong length.
    pub(super) fn check_tile(&self, k: usize, rows: usize, tile: &[u8]) {
        assert!((1..=TILE_ROWS).contains(&rows), "a tile takes 1 to {TILE_ROWS} rows, not {rows}");
        assert_eq!(tile.len(), self.tile(k).bytes(), "length of a {} tile of k = {k}", self.name);
    }
}
