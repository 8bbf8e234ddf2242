//! What each leaf may do to memory, as data: which parameters it reads and writes, and exactly how far.
//!
//! The checker of wide leaves (`wide/check.rs`) takes the directions from here; the tests with guard pages take the sizes.

use super::block::{data_lines, scale_bytes};
use super::dot_q8::ADJACENT;
use super::gemm_bf16::{self, GROUP, ROW_BYTES};
use super::gemm_q8::{DECODED_BLOCK, DECODED_TILE, PANEL_BLOCK};
use super::{Leaf, SCORE_STRIDE};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};
use kernmill_plan::kv::{BLOCK_TOKENS, KvElem};

/// Bytes of the results of 16 rows.
const ROWS_F32: usize = TILE_ROWS * 4;

/// Whether tiles are configured when a leaf is called, and when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileState {
    /// At the call.
    pub before: bool,
    /// At the return.
    pub after: bool,
}

/// One parameter of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// A number.
    Number,
    /// A place that may be prefetched from and is neither read nor written.
    Ahead,
    /// A pointer to memory that is read.
    Read(Region),
    /// A pointer to memory that is written and never read.
    Write(Region),
    /// A pointer to memory that is read and written.
    Update(Region),
    /// A pointer to `rows` pointers to `bytes` bytes each; all of it is read.
    Rows {
        /// Pointers in the list.
        rows: usize,
        /// Bytes of each row.
        bytes: usize,
    },
}

/// Memory seen from a pointer: a piece, repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where the first piece starts.
    pub start: Amount,
    /// Bytes of a piece. None when not positive.
    pub bytes: Amount,
    /// How many pieces and how far apart, for each dimension of repetition.
    pub repeat: Vec<(Amount, Amount)>,
    /// Alignment of the pointer that the leaf relies on.
    pub align: usize,
}

/// A number of bytes or pieces: a constant, and multiples of parameters (by index).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The constant.
    pub constant: i64,
    /// Parameter and factor.
    pub terms: Vec<(usize, i64)>,
}

impl Amount {
    /// Its value for a call with these arguments.
    pub fn value(&self, args: &[u64]) -> i64 {
        self.terms.iter().fold(self.constant, |sum, (param, factor)| sum + args[*param] as i64 * factor)
    }

    pub(crate) fn times(param: usize, factor: usize) -> Amount {
        Amount { constant: 0, terms: vec![(param, factor as i64)] }
    }

    pub(crate) fn param(param: usize) -> Amount {
        Amount::times(param, 1)
    }
}

impl From<usize> for Amount {
    fn from(constant: usize) -> Amount {
        Amount { constant: constant as i64, terms: Vec::new() }
    }
}

impl Region {
    pub(crate) fn new(bytes: impl Into<Amount>) -> Region {
        Region { start: 0.into(), bytes: bytes.into(), repeat: Vec::new(), align: 1 }
    }

    fn from(mut self, start: Amount) -> Region {
        self.start = start;
        self
    }

    pub(crate) fn times(mut self, count: impl Into<Amount>, stride: impl Into<Amount>) -> Region {
        self.repeat.push((count.into(), stride.into()));
        self
    }

    fn aligned(mut self, align: usize) -> Region {
        self.align = align;
        self
    }

    /// The pieces as (offset from the pointer, bytes) for a call with these arguments.
    pub fn pieces(&self, args: &[u64]) -> Vec<(i64, usize)> {
        let bytes = usize::try_from(self.bytes.value(args)).unwrap_or(0);
        if bytes == 0 {
            return Vec::new();
        }
        let mut pieces = vec![(self.start.value(args), bytes)];
        for (count, stride) in &self.repeat {
            let (count, stride) = (count.value(args), stride.value(args));
            pieces = pieces
                .iter()
                .flat_map(|(offset, bytes)| (0..count).map(move |i| (offset + i * stride, *bytes)))
                .collect();
        }
        pieces
    }
}

impl Leaf {
    /// Whether tiles are configured around it.
    pub fn tiles(self) -> TileState {
        match self {
            Leaf::TilesOn => TileState { before: false, after: true },
            Leaf::TilesOff => TileState { before: true, after: false },
            Leaf::GemmBf16(_) => TileState { before: true, after: true },
            _ => TileState::default(),
        }
    }

    /// The parameters, in order.
    pub fn contract(self) -> Vec<Param> {
        match self {
            Leaf::DotQ8 { format, k, tokens } => dot(format, k, tokens, k + k / BLOCK * 8),
            Leaf::DotAdjacent { format, k, tokens, .. } => {
                let mut params = dot(format, k, tokens, k + k / BLOCK * 8);
                params[0] = Param::Read(Region::new(ADJACENT * format.tile(k).bytes()));
                params[2] = Param::Write(Region::new(ADJACENT * ROWS_F32).times(tokens, Amount::param(3)));
                params
            }
            Leaf::DotF32 { format, k, tokens } => dot(format, k, tokens, 4 * k),
            Leaf::Decode { format } => vec![
                Param::Read(Region::new(Amount::times(3, scale_bytes(format)))),
                Param::Read(Region::new(Amount::times(3, data_lines(format) * LINE))),
                Param::Write(Region::new(Amount::times(3, DECODED_BLOCK))),
                Param::Number,
                Param::Ahead,
            ],
            Leaf::GemmQ8 { tiles, tokens, .. } => vec![
                Param::Read(
                    Region::new(Amount::times(3, DECODED_BLOCK)).times(tiles, DECODED_TILE).aligned(LINE),
                ),
                Param::Read(Region::new(Amount::times(3, PANEL_BLOCK))),
                Param::Update(
                    Region::new(ROWS_F32).times(tokens, Amount::param(4)).times(tiles, Amount::param(5)),
                ),
                Param::Number,
                Param::Number,
                Param::Number,
            ],
            Leaf::TilesOn | Leaf::TilesOff => Vec::new(),
            Leaf::DecodeBf16 => vec![
                Param::Read(Region::new(Amount::times(3, scale_bytes(WeightFormat::Mxfp4)))),
                Param::Read(Region::new(Amount::times(3, data_lines(WeightFormat::Mxfp4) * LINE))),
                Param::Write(Region::new(Amount::times(3, gemm_bf16::DECODED_BLOCK))),
                Param::Number,
                Param::Ahead,
            ],
            Leaf::GemmBf16(gemm_bf16::Shape { tiles, groups, stride, gap }) => vec![
                Param::Read(
                    Region::new(Amount::times(3, gemm_bf16::DECODED_BLOCK))
                        .times(tiles, gemm_bf16::DECODED_TILE),
                ),
                Param::Read(
                    Region::new(groups * GROUP * ROW_BYTES).times(Amount::param(3), gemm_bf16::PANEL_BLOCK),
                ),
                Param::Update(Region::new(ROWS_F32).times(groups * GROUP, stride).times(tiles, gap)),
                Param::Number,
                Param::Number,
            ],
            Leaf::Score { elem, head_dim, group, .. } => vec![
                Param::Read(Region::new(head_dim * BLOCK_TOKENS * elem.bytes())),
                Param::Read(Region::new(group * head_dim * 4)),
                Param::Write(Region::new(BLOCK_TOKENS * 4).times(group, SCORE_STRIDE)),
                Param::Ahead,
            ],
            Leaf::Value { elem, head_dim, group } => value(elem, head_dim, group),
        }
    }
}

/// Both kinds of dot leaf.
fn dot(format: WeightFormat, k: usize, tokens: usize, row_bytes: usize) -> Vec<Param> {
    vec![
        Param::Read(Region::new(format.tile(k).bytes())),
        Param::Rows { rows: tokens, bytes: row_bytes },
        Param::Write(Region::new(ROWS_F32).times(tokens, Amount::param(3))),
        Param::Number,
    ]
}

/// Tokens `first..end`, parameters 3 and 4, of the values and of each head's weights.
fn value(elem: KvElem, head_dim: usize, group: usize) -> Vec<Param> {
    let tokens = |bytes: usize| {
        let all = Amount { constant: 0, terms: vec![(4, bytes as i64), (3, -(bytes as i64))] };
        Region::new(all).from(Amount::times(3, bytes))
    };
    vec![
        Param::Read(tokens(head_dim * elem.bytes())),
        Param::Read(tokens(4).times(group, SCORE_STRIDE)),
        Param::Update(Region::new(group * head_dim * 4)),
        Param::Number,
        Param::Number,
        Param::Ahead,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_the_arguments() {
        let contract = Leaf::GemmQ8 { small: false, tiles: 2, tokens: 2 }.contract();
        let args = [0, 0, 0, 3, 128, 1000];
        let Param::Update(sums) = &contract[2] else { panic!("{contract:?}") };
        assert_eq!(sums.pieces(&args), [(0, 64), (1000, 64), (128, 64), (1128, 64)]);
        let Param::Read(weights) = &contract[0] else { panic!("{contract:?}") };
        assert_eq!(weights.pieces(&args), [(0, 3 * DECODED_BLOCK), (DECODED_TILE as i64, 3 * DECODED_BLOCK)]);
        assert_eq!(weights.pieces(&[0; 6]), []);

        let contract = Leaf::Value { elem: KvElem::F16, head_dim: 64, group: 1 }.contract();
        let Param::Read(values) = &contract[0] else { panic!("{contract:?}") };
        assert_eq!(values.pieces(&[0, 0, 0, 3, 7]), [(3 * 128, 4 * 128)]);
    }

    #[test]
    fn every_parameter_has_its_entry() {
        let format = WeightFormat::Mxfp4;
        for leaf in [
            Leaf::DotQ8 { format, k: 32, tokens: 1 },
            Leaf::DotAdjacent { format, k: 32, tokens: 1, pairs: false },
            Leaf::DotF32 { format, k: 32, tokens: 1 },
            Leaf::Decode { format },
            Leaf::GemmQ8 { small: true, tiles: 1, tokens: 1 },
            Leaf::DecodeBf16,
            Leaf::GemmBf16(gemm_bf16::Shape { tiles: 2, groups: 1, stride: 128, gap: 64 }),
            Leaf::TilesOn,
            Leaf::TilesOff,
            Leaf::Score { elem: KvElem::F16, head_dim: 64, group: 8, scale: 0 },
            Leaf::Value { elem: KvElem::F16, head_dim: 64, group: 8 },
        ] {
            assert_eq!(leaf.contract().len(), leaf.params(), "{leaf}");
        }
    }
}
