//! Many rows at once: activations are gathered into panels, weights decoded once per chunk of k into scratch, and multiplied tile pair
//! by tile pair. The same sums in the same order as row by row (docs/numerics.md), so bodies may choose by the number of rows.

use crate::body::Cx;
use crate::body::matmul::unit_bytes;
use crate::emit::Emit;
use crate::kernel::{Mat, Part};
use crate::leaf::Leaf;
use crate::leaf::gemm_q8::{
    CHUNK_BLOCKS, DECODED_TILE, GROUP, MAGIC, PANEL_BLOCK, PANEL_SCALES, PANEL_STARTS, bias, data_lines,
    scale_bytes,
};
use crate::scratch::Scratch;
use crate::stage::elementwise;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, Q8Row, TILE_ROWS, WeightFormat};

/// Fewer rows than this are left to dot leaves: decoding into scratch would cost more than it saves.
pub const LEAST_ROWS: usize = 4;

/// Offsets in the body's scratch.
#[derive(Clone, Copy)]
pub struct Areas {
    /// Activations: `[groups of 6 rows][blocks][PANEL_BLOCK]`.
    pub panel: usize,
    /// Two decoded tiles of a chunk.
    decoded: usize,
    /// f32 `[rows][mats][unit]`.
    pub results: usize,
}

/// Takes room for `rows` rows of `k` and a unit's results.
pub fn areas(scratch: &mut Scratch, rows: usize, k: usize, unit_bytes: usize) -> Areas {
    Areas {
        panel: scratch.take(rows.div_ceil(GROUP) * (k / BLOCK) * PANEL_BLOCK),
        decoded: scratch.take(2 * DECODED_TILE),
        results: scratch.take(rows * unit_bytes),
    }
}

/// Whether weight bytes of a format are at most 64.
fn is_small(format: WeightFormat) -> bool {
    format != WeightFormat::Int8
}

/// Leaves for a part of that many tiles per unit.
pub fn leaves(part: &Part) -> Vec<Leaf> {
    let tiles = part.mats.len() * part.unit / TILE_ROWS;
    let mut leaves = Vec::new();
    for mat in &part.mats {
        leaves.push(Leaf::Decode { format: mat.format });
        for tokens in 1..=GROUP {
            for tiles in 1..=2.min(tiles) {
                leaves.push(Leaf::GemmQ8 { small: is_small(mat.format), tiles, tokens });
            }
        }
    }
    leaves
}

/// Gathers the `rows` q8 rows that the pointers at `list` name into the panel area.
pub fn fill_panel(e: &mut Emit, cx: &Cx, areas: &Areas, mat: &Mat, list: Value, rows: Value) {
    let blocks = mat.k / BLOCK;
    let layout = Q8Row { k: mat.k };
    let panel = cx.body_scratch(e, areas.panel);
    let zero = e.i64(0);
    e.for_range(zero, rows, 1, |e, row| {
        let size = e.i64(GROUP as i64);
        let group = e.b.ins().udiv(row, size);
        let before = e.mul_imm(group, GROUP as i64);
        let place = e.b.ins().isub(row, before);
        let entry = e.at(list, row, 8);
        let source = e.load(I64, entry, 0);
        let panel = e.at(panel, group, blocks * PANEL_BLOCK);
        let bytes = e.at(panel, place, BLOCK);
        let words = e.at(panel, place, 4);
        e.for_count(blocks, |e, block| {
            let from = e.at(source, block, BLOCK);
            let to = e.at(bytes, block, PANEL_BLOCK);
            for half in 0..2 {
                let values = e.load(I8X16, from, half * 16);
                e.store(values, to, half * 16);
            }
            let from = e.at(source, block, 4);
            let to = e.at(words, block, PANEL_BLOCK);
            let scale = e.load(I32, from, layout.scales());
            e.store(scale, to, PANEL_SCALES);
            let sum = e.load(I32, from, layout.sums());
            let correction = e.b.ins().imul_imm_s(sum, i64::from(-bias(mat.format)));
            let start = e.b.ins().iadd_imm_s(correction, i64::from(MAGIC.to_bits()));
            e.store(start, to, PANEL_STARTS);
        });
    });
}

/// Results of a unit for the panel's `rows` rows; `weights` are the addresses of its first tile in each matrix.
pub fn unit(e: &mut Emit, cx: &Cx, areas: &Areas, part: &Part, weights: &[Value], rows: Value) {
    let k = part.mats[0].k;
    let blocks = k / BLOCK;
    let row_bytes = unit_bytes(part);
    let results = cx.body_scratch(e, areas.results);
    let zero = e.i64(0);
    e.for_range(zero, rows, 1, |e, row| {
        let row = e.at(results, row, row_bytes);
        elementwise::zero(e, row, row_bytes / 4);
    });
    // In the order in which tiles lie in memory, whether or not matrices are interleaved.
    let mut tiles = Vec::new();
    for tile in 0..part.unit / TILE_ROWS {
        for (m, mat) in part.mats.iter().enumerate() {
            let base = e.add_imm(weights[m], (tile * mat.tile_stride) as i64);
            tiles.push((mat, base, (m * part.unit + tile * TILE_ROWS) * 4));
        }
    }
    let size = e.i64(GROUP as i64);
    let groups = e.b.ins().udiv(rows, size);
    let grouped = e.mul_imm(groups, GROUP as i64);
    let rest = e.b.ins().isub(rows, grouped);
    for pair in tiles.chunks(2) {
        let format = pair[0].0.format;
        let (scale, data) = (scale_bytes(format), data_lines(format) * LINE);
        let out = e.add_imm(results, pair[0].2 as i64);
        let gap = e.i64(pair.get(1).map_or(0, |second| second.2 as i64 - pair[0].2 as i64));
        let chunks = blocks.div_ceil(CHUNK_BLOCKS);
        e.for_count(chunks, |e, chunk| {
            let first = e.mul_imm(chunk, CHUNK_BLOCKS as i64);
            let end = e.i64(blocks as i64);
            let left = e.b.ins().isub(end, first);
            let most = e.i64(CHUNK_BLOCKS as i64);
            let count = e.min_u(left, most);
            let decoded = cx.body_scratch(e, areas.decoded);
            for (i, (mat, base, _)) in pair.iter().enumerate() {
                let scales = e.at(*base, first, scale);
                let start = e.add_imm(*base, format.tile(k).scale_bytes as i64);
                let now = e.at(start, first, data);
                // The next chunk of this tile, or the start of the same tile of the next pair.
                let next = e.at(now, count, data);
                let later = e.add_imm(start, (2 * mat.tile_stride / part.mats.len()) as i64);
                let last = e.i64(chunks as i64 - 1);
                let more = e.icmp(IntCC::UnsignedLessThan, chunk, last);
                let ahead = e.select(more, next, later);
                let out = e.add_imm(decoded, (i * DECODED_TILE) as i64);
                let leaf = cx.leaf(Leaf::Decode { format });
                e.call(leaf, &[scales, now, out, count, ahead]);
            }
            let panel = cx.body_scratch(e, areas.panel);
            let panel = e.at(panel, first, PANEL_BLOCK);
            let stride = e.i64(row_bytes as i64);
            let gemm =
                |tokens: usize| cx.leaf(Leaf::GemmQ8 { small: is_small(format), tiles: pair.len(), tokens });
            let zero = e.i64(0);
            e.for_range(zero, groups, 1, |e, group| {
                let panel = e.at(panel, group, blocks * PANEL_BLOCK);
                let out = e.at(out, group, GROUP * row_bytes);
                e.call(gemm(GROUP), &[decoded, panel, out, count, stride, gap]);
            });
            let panel = e.at(panel, groups, blocks * PANEL_BLOCK);
            let out = e.at(out, groups, GROUP * row_bytes);
            for tokens in 1..GROUP {
                let wanted = e.i64(tokens as i64);
                let is = e.icmp(IntCC::Equal, rest, wanted);
                e.if_then(is, |e| e.call(gemm(tokens), &[decoded, panel, out, count, stride, gap]));
            }
        });
    }
}
