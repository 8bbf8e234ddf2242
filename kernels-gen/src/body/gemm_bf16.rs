//! bf16 activations, any number of rows: rows are gathered into panels, weights decoded to bf16 once per
//! chunk of k into scratch, and multiplied tile pair by tile pair. Where there are tiles, they are configured
//! around all of it.

use crate::body::gemm::zero_ukernel;
use crate::body::tile_order::{place_of, tile_pairs};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::MatrixPart;
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::gemm_bf16::{
    CHUNK_BLOCKS, DECODED_TILE, GROUP, PANEL_BLOCK, PANEL_ROWS, ROW_BYTES, Shape,
};
use crate::ukernel::gemm_tiles::TileShapes;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, WeightFormat};

/// Offsets in the body's scratch.
#[derive(Clone, Copy)]
pub struct Bf16GemmScratch {
    /// Two decoded tiles of a chunk.
    decoded: usize,
    /// f32 `[rows, up to whole groups][mats][rows_per_item]`.
    pub results: usize,
}

/// Takes room for `rows` rows of an item's results.
pub fn areas(scratch: &mut Scratch, rows: usize, result_bytes: usize) -> Bf16GemmScratch {
    Bf16GemmScratch {
        decoded: scratch.take(2 * DECODED_TILE),
        results: scratch.take(rows.next_multiple_of(GROUP) * result_bytes),
    }
}

/// A tile of an item.
#[derive(Clone, Copy)]
struct Bf16Tile {
    /// Index of the tile's matrix in the part.
    mat: usize,
    /// Number within the item.
    index: usize,
    /// Bytes from a row's first result to the tile's.
    place: usize,
}

/// An item's tiles in the order of [`tile_pairs`].
fn tiles(part: &MatrixPart) -> Vec<Bf16Tile> {
    let tile = |(mat, index): (usize, usize)| Bf16Tile { mat, index, place: place_of(part, (mat, index)) };
    tile_pairs(part).into_iter().flatten().map(tile).collect()
}

/// The micro-kernel for a pair of tiles, or a single one.
fn shape(part: &MatrixPart, pair: &[Bf16Tile], groups: usize) -> Shape {
    let gap = pair.get(1).map_or(0, |second| second.place - pair[0].place);
    Shape { tiles: pair.len(), groups, stride: part.result_bytes(), gap }
}

/// Micro-kernels for a part.
pub fn ukernels(part: &MatrixPart) -> Vec<MicroKernel> {
    let mut ukernels = vec![
        MicroKernel::TilesOn(TileShapes::Whole),
        MicroKernel::TilesOff,
        MicroKernel::DecodeBf16,
        zero_ukernel(part),
    ];
    for pair in tiles(part).chunks(2) {
        ukernels.extend([1, 2].map(|groups| MicroKernel::GemmBf16(shape(part, pair, groups))));
    }
    ukernels
}

/// Copies rows `start..end` of the bf16 rows of `k` that the pointers at `list` name into panels,
/// `[groups of 32 rows][blocks][PANEL_BLOCK]`.
pub fn fill_panel(e: &mut Emit, k: usize, panel: Value, list: Value, (start, end): (Value, Value)) {
    let blocks = k / BLOCK;
    e.for_range(start, end, 1, |e, row| {
        let entry = e.at(list, row, 8);
        let source = e.load(I64, entry, 0);
        let number = e.b.ins().ushr_imm_u(row, i64::from(PANEL_ROWS.trailing_zeros()));
        let within = e.b.ins().band_imm_u(row, PANEL_ROWS as i64 - 1);
        let panel = e.at(panel, number, blocks * PANEL_BLOCK);
        let panel = e.at(panel, within, ROW_BYTES);
        e.for_count(blocks, |e, block| {
            let (from, to) = (e.at(source, block, ROW_BYTES), e.at(panel, block, PANEL_BLOCK));
            for i in 0..ROW_BYTES / 16 {
                let values = e.load(I8X16, from, i * 16);
                e.store(values, to, i * 16);
            }
        });
    });
}

/// Results of an item for the `rows` rows of the panels at `panel`; `weights` are the addresses of its first
/// tile in each matrix.
pub fn item(
    e: &mut Emit,
    cx: &Cx,
    areas: &Bf16GemmScratch,
    part: &MatrixPart,
    weights: &[Value],
    (panel, rows): (Value, Value),
) {
    let results = cx.body_scratch(e, areas.results);
    e.call(cx.ukernel(zero_ukernel(part)), &[results, rows]);
    let chunks = (part.mats[0].k / BLOCK).div_ceil(CHUNK_BLOCKS);
    for pair in tiles(part).chunks(2) {
        e.for_count(chunks, |e, chunk| {
            let count = decode(e, cx, areas, part, pair, weights, chunk);
            multiply(e, cx, areas, part, pair, (chunk, count), (panel, rows));
        });
    }
}

/// Decodes a chunk of each tile of a pair; its blocks.
fn decode(
    e: &mut Emit,
    cx: &Cx,
    areas: &Bf16GemmScratch,
    part: &MatrixPart,
    pair: &[Bf16Tile],
    weights: &[Value],
    chunk: Value,
) -> Value {
    let format = WeightFormat::Mxfp4;
    let k = part.mats[0].k;
    let blocks = k / BLOCK;
    let first = e.mul_imm(chunk, CHUNK_BLOCKS as i64);
    let end = e.i64(blocks as i64);
    let left = e.b.ins().isub(end, first);
    let most = e.i64(CHUNK_BLOCKS as i64);
    let count = e.min_u(left, most);
    let decoded = cx.body_scratch(e, areas.decoded);
    for (i, tile) in pair.iter().enumerate() {
        let mat = &part.mats[tile.mat];
        let base = e.add_imm(weights[tile.mat], (tile.index * mat.tile_stride) as i64);
        let scales = e.at(base, first, scale_bytes(format));
        let start = e.add_imm(base, format.tile(k).scale_bytes as i64);
        let now = e.at(start, first, data_lines(format) * LINE);
        // The next chunk of this tile, or the start of the same tile of the next pair.
        let next = e.at(now, count, data_lines(format) * LINE);
        let later = e.add_imm(start, (2 * mat.tile_stride / part.mats.len()) as i64);
        let last = e.i64(blocks.div_ceil(CHUNK_BLOCKS) as i64 - 1);
        let more = e.icmp(IntCC::UnsignedLessThan, chunk, last);
        let ahead = e.select(more, next, later);
        let out = e.add_imm(decoded, (i * DECODED_TILE) as i64);
        e.call(cx.ukernel(MicroKernel::DecodeBf16), &[scales, now, out, count, ahead]);
    }
    count
}

/// Adds the decoded chunk times every row to the results.
fn multiply(
    e: &mut Emit,
    cx: &Cx,
    areas: &Bf16GemmScratch,
    part: &MatrixPart,
    pair: &[Bf16Tile],
    (chunk, count): (Value, Value),
    (panel, rows): (Value, Value),
) {
    let blocks = part.mats[0].k / BLOCK;
    let decoded = cx.body_scratch(e, areas.decoded);
    let results = cx.body_scratch(e, areas.results + pair[0].place);
    let panel = e.at(panel, chunk, CHUNK_BLOCKS * PANEL_BLOCK);
    let zero = e.i64(0);
    e.for_range(zero, rows, PANEL_ROWS as i64, |e, first| {
        let number = e.b.ins().ushr_imm_u(first, i64::from(PANEL_ROWS.trailing_zeros()));
        let panel = e.at(panel, number, blocks * PANEL_BLOCK);
        let out = e.at(results, first, part.result_bytes());
        let left = e.b.ins().isub(rows, first);
        let most = e.i64(PANEL_ROWS as i64);
        let tokens = e.min_u(left, most);
        let one = e.i64(GROUP as i64);
        for (groups, cc) in [(1, IntCC::UnsignedLessThanOrEqual), (2, IntCC::UnsignedGreaterThan)] {
            let ukernel = cx.ukernel(MicroKernel::GemmBf16(shape(part, pair, groups)));
            let fits = e.icmp(cc, tokens, one);
            e.if_then(fits, |e| e.call(ukernel, &[decoded, panel, out, count, tokens]));
        }
    });
}
