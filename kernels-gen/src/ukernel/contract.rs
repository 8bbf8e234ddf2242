//! The memory accesses of micro-kernels, as data: which parameters each reads and writes, and exactly how
//! far. The table in `mod.rs` says whose these are.
//!
//! The checker of assembled micro-kernels (`asm/check/`) takes the directions from here; the tests with
//! guard pages take the sizes.

use super::block::{data_lines, scale_bytes};
use super::dot_q8::TILES_PER_CALL;
use super::gemm_bf16::{self, GROUP, ROW_BYTES};
use super::gemm_q8::{CHUNK_BLOCKS, Decoded, DotStep, Overlap};
use super::gemm_tiles::{PANEL_ROWS, Strip, TileElement};
use super::param::{Amount, Param, Region, RowPointers};
use super::{BLOCKS_AHEAD, QueryHeads, QueryLayout, SCORE_STRIDE, ValueScratch, WEIGHTS, gemm_tiles};
use kernmill_plan::format::{BLOCK, LINE, SUPERBLOCK, TILE_ROWS, WeightFormat};
use kernmill_plan::kv::{BLOCK_TOKENS, KvFormat};

/// Bytes of the results of 16 rows.
const ROWS_F32: usize = TILE_ROWS * 4;

pub fn dot_q8(format: WeightFormat, k: usize, tokens: usize) -> Vec<Param> {
    dot(format, k, tokens, k + k / BLOCK * 8)
}

pub fn dot_q8_adjacent(format: WeightFormat, k: usize, tokens: usize) -> Vec<Param> {
    let mut params = dot_q8(format, k, tokens);
    params[0] = Param::Read(Region::new(TILES_PER_CALL * format.tile(k).bytes()));
    params[2] = Param::Write(Region::new(TILES_PER_CALL * ROWS_F32).times(tokens, Amount::param(3)));
    params
}

pub fn dot_f32(format: WeightFormat, k: usize, tokens: usize) -> Vec<Param> {
    dot(format, k, tokens, 4 * k)
}

pub fn decode(format: WeightFormat, decoded: Decoded) -> Vec<Param> {
    let mut params = vec![
        Param::Read(Region::new(Amount::times(3, scale_bytes(format)))),
        Param::Read(Region::new(Amount::times(3, data_lines(format) * LINE))),
        Param::Write(Region::new(Amount::times(3, decoded.block_bytes()))),
        Param::Number,
    ];
    let units = Amount::times(3, format.parts().unit_bytes()).per(SUPERBLOCK / BLOCK);
    params.extend(format.parts().is_super().then(|| Param::Read(Region::new(units))));
    params
}

pub fn gemm_q8(weights: Decoded, tiles: usize, tokens: usize) -> Vec<Param> {
    vec![
        Param::Read(
            Region::new(Amount::times(3, weights.block_bytes()))
                .times(tiles, weights.tile_bytes())
                .aligned(LINE),
        ),
        Param::Read(Region::new(Amount::times(3, weights.panel().block))),
        Param::Update(Region::new(ROWS_F32).times(tokens, Amount::param(4)).times(tiles, Amount::param(5))),
        Param::Number,
        Param::Number,
        Param::Number,
    ]
}

pub fn gemm_decode(Overlap { tokens, stride, gap }: Overlap) -> Vec<Param> {
    let (format, power) = (WeightFormat::Mxfp4, DotStep::K4.decoded(WeightFormat::Mxfp4));
    vec![
        Param::Read(Region::new(power.tile_bytes()).times(2, power.tile_bytes()).aligned(LINE)),
        Param::Read(Region::new(CHUNK_BLOCKS * power.panel().block)),
        Param::Update(Region::new(ROWS_F32).times(tokens, stride).times(2, gap)),
        Param::Read(Region::new(CHUNK_BLOCKS * scale_bytes(format))),
        Param::Read(Region::new(CHUNK_BLOCKS * data_lines(format) * LINE)),
        Param::Write(Region::new(power.tile_bytes())),
    ]
}

pub fn decode_bf16() -> Vec<Param> {
    vec![
        Param::Read(Region::new(Amount::times(3, scale_bytes(WeightFormat::Mxfp4)))),
        Param::Read(Region::new(Amount::times(3, data_lines(WeightFormat::Mxfp4) * LINE))),
        Param::Write(Region::new(Amount::times(3, gemm_bf16::DECODED_BLOCK))),
        Param::Number,
        Param::Ahead,
    ]
}

pub fn gemm_bf16(gemm_bf16::Shape { tiles, groups, stride, gap }: gemm_bf16::Shape) -> Vec<Param> {
    vec![
        Param::Read(
            Region::new(Amount::times(3, gemm_bf16::DECODED_BLOCK)).times(tiles, gemm_bf16::DECODED_TILE),
        ),
        Param::Read(Region::new(groups * GROUP * ROW_BYTES).times(Amount::param(3), gemm_bf16::PANEL_BLOCK)),
        Param::Update(Region::new(ROWS_F32).times(groups * GROUP, stride).times(tiles, gap)),
        Param::Number,
        Param::Number,
    ]
}

pub fn gemm_strip(strip: Strip) -> Vec<Param> {
    let element = TileElement::of(strip.format);
    // Whole panels.
    let panels = Amount { constant: PANEL_ROWS as i64 - 1, ..Amount::param(3) }.per(PANEL_ROWS);
    let next = |bytes: usize| {
        Param::Read(Region::new(Amount::times(9, bytes)).times(strip.tiles, Amount::param(10)))
    };
    vec![
        Param::Read(
            Region::new(Amount::times(4, element.decoded_block())).times(strip.tiles, element.decoded_tile()),
        ),
        Param::Read(
            Region::new(Amount::times(4, element.panel_block())).times(panels.clone(), strip.panel_stride()),
        ),
        Param::Update(
            Region::new(ROWS_F32)
                .times(PANEL_ROWS, strip.stride)
                .times(panels, PANEL_ROWS * strip.stride)
                .times(strip.tiles, strip.gap),
        ),
        Param::Number,
        Param::Number,
        Param::Update(Region::new(gemm_tiles::PRODUCTS * gemm_tiles::PRODUCT_BYTES)),
        next(scale_bytes(strip.format)),
        next(data_lines(strip.format) * LINE),
        Param::Write(
            Region::new(Amount::times(9, element.decoded_block())).times(strip.tiles, element.decoded_tile()),
        ),
        Param::Number,
        Param::Number,
        Param::Number,
    ]
}

pub fn score(elem: KvFormat, head_dim: usize, queries: QueryHeads) -> Vec<Param> {
    vec![
        planes(elem, head_dim, None),
        Param::Read(heads(head_dim, queries)),
        Param::Write(Region::new(Amount::times(3, BLOCK_TOKENS * 4)).times(queries.rows(), SCORE_STRIDE)),
        Param::Number,
    ]
}

pub fn query(head_dim: usize, group: usize) -> Vec<Param> {
    vec![
        Param::Read(Region::new(group * head_dim * 4)),
        Param::Write(Region::new(QueryLayout::new(head_dim, group).bytes)),
    ]
}

pub fn integer_score(elem: KvFormat, head_dim: usize, group: usize) -> Vec<Param> {
    vec![
        planes(elem, head_dim, None),
        Param::Read(Region::new(QueryLayout::new(head_dim, group).bytes)),
        Param::Write(Region::new(Amount::times(3, BLOCK_TOKENS * 4)).times(group, SCORE_STRIDE)),
        Param::Number,
    ]
}

pub fn weights(group: usize) -> Vec<Param> {
    vec![
        Param::Rows(RowPointers { rows: Amount::param(2), bytes: BLOCK_TOKENS * 4, ahead: 0, tokens: None }),
        Param::Update(Region::new(Amount::times(2, BLOCK_TOKENS * 4)).times(group, SCORE_STRIDE)),
        Param::Number,
        Param::Number,
        Param::Number,
        Param::Write(Region::new(3 * group * 4)),
    ]
}

pub fn integer_value(elem: KvFormat, head_dim: usize, group: usize, stride: usize) -> Vec<Param> {
    vec![
        planes(elem, head_dim, None),
        Param::Read(
            Region::new(Amount::times(3, WEIGHTS))
                .times(group, SCORE_STRIDE)
                .times(Amount::param(4), group * SCORE_STRIDE),
        ),
        Param::Update(Region::new(group * head_dim * 4).times(Amount::param(4), stride)),
        Param::Number,
        Param::Number,
        Param::Update(Region::new(ValueScratch::new(group).bytes)),
    ]
}

pub fn softmax() -> Vec<Param> {
    vec![
        Param::Update(Region::new(Amount::times(1, BLOCK_TOKENS * 4))),
        Param::Number,
        Param::Number,
        Param::Number,
        Param::Write(Region::new(4)),
        Param::Write(Region::new(4)),
    ]
}

pub fn combine(head_dim: usize, group: usize, sinks: bool) -> Vec<Param> {
    vec![
        Param::Read(Region::new(Amount::times(5, group * head_dim * 4))),
        Param::Read(Region::new(Amount::times(5, group * 4))),
        Param::Read(Region::new(Amount::times(5, group * 4))),
        if sinks { Param::Read(Region::new(group * 4)) } else { Param::Number },
        Param::Write(Region::new(group * head_dim * 4)),
        Param::Number,
    ]
}

/// Both kinds of dot micro-kernel.
fn dot(format: WeightFormat, k: usize, tokens: usize, row_bytes: usize) -> Vec<Param> {
    vec![
        Param::Read(Region::new(format.tile(k).bytes())),
        Param::Rows(RowPointers { rows: tokens.into(), bytes: row_bytes, ahead: 0, tokens: None }),
        Param::Write(Region::new(ROWS_F32).times(tokens, Amount::param(3))),
        Param::Number,
    ]
}

/// A row of `head_dim` f32 for each of the queries.
fn heads(head_dim: usize, QueryHeads { group, tokens, stride }: QueryHeads) -> Region {
    Region::new(group * head_dim * 4).times(tokens, stride)
}

/// Keys or values of as many blocks as parameter 3 says.
fn planes(elem: KvFormat, head_dim: usize, tokens: Option<(usize, usize)>) -> Param {
    let bytes = elem.plane_bytes(head_dim);
    Param::Rows(RowPointers { rows: Amount::param(3), bytes, ahead: BLOCKS_AHEAD, tokens })
}

/// Tokens `first..end`, parameters 4 and 5, of the values and of each head's weights.
pub fn value(elem: KvFormat, head_dim: usize, queries: QueryHeads) -> Vec<Param> {
    let tokens = Amount { terms: vec![(5, 4), (4, -4)], ..Amount::default() };
    let weights = Region::new(tokens).starting_at(Amount::times(4, 4)).times(queries.rows(), SCORE_STRIDE);
    vec![
        planes(elem, head_dim, Some((4, 5))),
        Param::Read(weights),
        Param::Update(heads(head_dim, queries)),
        Param::Number,
        Param::Number,
        Param::Number,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ukernel::MicroKernel;
    use crate::ukernel::gemm_q8::DecodedNumber;

    #[test]
    fn pieces_follow_the_arguments() {
        let decoded = Decoded::plain(DecodedNumber::U8);
        let contract = MicroKernel::GemmQ8 { weights: decoded, tiles: 2, tokens: 2 }.contract();
        let args = [0, 0, 0, 3, 128, 1000];
        let Param::Update(sums) = &contract[2] else { panic!("{contract:?}") };
        assert_eq!(sums.pieces(&args), [(0, 64), (1000, 64), (128, 64), (1128, 64)]);
        let Param::Read(weights) = &contract[0] else { panic!("{contract:?}") };
        let (tile, bytes) = (decoded.tile_bytes() as i64, 3 * decoded.block_bytes());
        assert_eq!(weights.pieces(&args), [(0, bytes), (tile, bytes)]);
        assert_eq!(weights.pieces(&[0; 6]), []);

        let queries = QueryHeads::of_token(1);
        let contract = MicroKernel::Value { elem: KvFormat::F16, head_dim: 64, queries }.contract();
        let Param::Rows(values) = &contract[0] else { panic!("{contract:?}") };
        assert_eq!(values.pieces(&[0, 0, 0, 2, 3, 7]), [3 * 128..7 * 128, 0..0]);
        assert_eq!(values.pieces(&[0, 0, 0, 3, 15, 33]), [15 * 128..2048, 0..2048, 0..128]);
        assert!(values.pieces(&[0, 0, 0, 1, 5, 5]).iter().all(|piece| piece.is_empty()));
    }
}
