//! Many rows at once: activations are gathered into panels, weights decoded once per chunk of k into scratch, and multiplied tile pair
//! by tile pair. The same sums in the same order as row by row (docs/numerics.md), so bodies may choose by the number of rows.

use crate::body::Cx;
use crate::body::matmul::unit_bytes;
use crate::emit::Emit;
use crate::kernel::{Mat, Part};
use crate::leaf::Leaf;
use crate::leaf::block::{bias, data_lines, scale_bytes};
use crate::leaf::gemm_q8::{
    CHUNK_BLOCKS, DECODED_TILE, Decoded, GROUP, MAGIC, PANEL_BLOCK, PANEL_SCALES, PANEL_STARTS,
};
use crate::leaf::map::Map;
use crate::scratch::Scratch;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, Q8Row, TILE_ROWS};

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

/// Leaves for a part of that many tiles per unit.
pub fn leaves(part: &Part) -> Vec<Leaf> {
    let tiles = part.mats.len() * part.unit / TILE_ROWS;
    let mut leaves = vec![zero_leaf(part), Leaf::Prefetch];
    for mat in &part.mats {
        leaves.push(Leaf::Decode { format: mat.format });
        for tokens in 1..=GROUP {
            for tiles in 1..=2.min(tiles) {
                leaves.push(Leaf::GemmQ8 { weights: Decoded::of(mat.format), tiles, tokens });
            }
        }
    }
    leaves
}

/// Sets rows of results to zero.
pub fn zero_leaf(part: &Part) -> Leaf {
    Leaf::Map(Map::zero(unit_bytes(part) / 4, unit_bytes(part)))
}

/// Gathers the `rows` q8 rows that the pointers at `list` name into the panel area.
pub fn fill_panel(e: &mut Emit, cx: &Cx, areas: &Areas, mat: &Mat, list: Value, rows: Value) {
    let blocks = mat.k / BLOCK;
    let layout = Q8Row { k: mat.k };
    let panel = cx.body_scratch(e, areas.panel);
    Groups::of(e, rows).for_each_size(e, |e, group, first, size| {
        let panel = e.at(panel, group, blocks * PANEL_BLOCK);
        let list = e.at(list, first, 8);
        let zero = e.i64(0);
        e.for_range(zero, size, 1, |e, place| {
            let entry = e.at(list, place, 8);
            let source = e.load(I64, entry, 0);
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
    });
}

/// Rows split into as few groups as there can be, their sizes as equal as can be: the tiles of one or two rows that a rest would need
/// cannot fill the pipelines. The first `larger` groups have `size + 1` rows, the others `size`.
#[derive(Clone, Copy)]
struct Groups {
    count: Value,
    larger: Value,
    size: Value,
}

impl Groups {
    /// `rows` is at least 1.
    fn of(e: &mut Emit, rows: Value) -> Groups {
        let up = e.add_imm(rows, GROUP as i64 - 1);
        let most = e.i64(GROUP as i64);
        let count = e.b.ins().udiv(up, most);
        let size = e.b.ins().udiv(rows, count);
        let even = e.b.ins().imul(size, count);
        let larger = e.b.ins().isub(rows, even);
        Groups { count, larger, size }
    }

    /// `body(group, first row, rows)`.
    fn for_each_size(self, e: &mut Emit, body: impl FnOnce(&mut Emit, Value, Value, Value)) {
        let zero = e.i64(0);
        let _ = e.for_carry(zero, self.count, 1, &[zero], |e, group, first| {
            let is_larger = e.icmp(IntCC::UnsignedLessThan, group, self.larger);
            let more = e.b.ins().uextend(I64, is_larger);
            let size = e.add(self.size, more);
            body(e, group, first[0], size);
            vec![e.add(first[0], size)]
        });
    }

    /// The two runs of groups: first group, group behind the last, first row, rows in each.
    fn runs(self, e: &mut Emit) -> [(Value, Value, Value, Value); 2] {
        let zero = e.i64(0);
        let bigger = e.add_imm(self.size, 1);
        let row = e.b.ins().imul(self.larger, bigger);
        [(zero, self.larger, zero, bigger), (self.larger, self.count, row, self.size)]
    }
}

/// Results of a unit for the panel's `rows` rows; `weights` are the addresses of its first tile in each matrix.
pub fn unit(e: &mut Emit, cx: &Cx, areas: &Areas, part: &Part, weights: &[Value], rows: Value) {
    let k = part.mats[0].k;
    let blocks = k / BLOCK;
    let row_bytes = unit_bytes(part);
    let results = cx.body_scratch(e, areas.results);
    e.call(cx.leaf(zero_leaf(part)), &[results, rows]);
    // In the order in which tiles lie in memory, whether or not matrices are interleaved.
    let mut tiles = Vec::new();
    for tile in 0..part.unit / TILE_ROWS {
        for (m, mat) in part.mats.iter().enumerate() {
            let base = e.add_imm(weights[m], (tile * mat.tile_stride) as i64);
            tiles.push((mat, base, (m * part.unit + tile * TILE_ROWS) * 4));
        }
    }
    let groups = Groups::of(e, rows);
    let runs = groups.runs(e);
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
            let mut ahead = Vec::new();
            for (i, (mat, base, _)) in pair.iter().enumerate() {
                let scales = e.at(*base, first, scale);
                let start = e.add_imm(*base, format.tile(k).scale_bytes as i64);
                let now = e.at(start, first, data);
                // The next chunk of this tile, or the start of the same tile of the next pair.
                let last = e.i64(chunks as i64 - 1);
                let more = e.icmp(IntCC::UnsignedLessThan, chunk, last);
                let pair_bytes = (2 * mat.tile_stride / part.mats.len()) as i64;
                let mut next = |start: Value, now: Value, block_bytes: usize| {
                    let next = e.at(now, count, block_bytes);
                    let later = e.add_imm(start, pair_bytes);
                    e.select(more, next, later)
                };
                ahead.push((next(*base, scales, scale), next(start, now, data)));
                let out = e.add_imm(decoded, (i * DECODED_TILE) as i64);
                let leaf = cx.leaf(Leaf::Decode { format });
                e.call(leaf, &[scales, now, out, count]);
            }
            // Every group of rows fetches its part of what is decoded next.
            let lines = e.mul_imm(count, data_lines(format) as i64);
            let lines = e.add(lines, groups.count);
            let lines = e.b.ins().udiv(lines, groups.count);
            let (one, other) = (ahead[0], ahead[ahead.len() - 1]);
            let fetch = |e: &mut Emit, group: Value| {
                let done = e.b.ins().imul(group, lines);
                let [one, other] = [one.1, other.1].map(|from| e.at(from, done, LINE));
                e.call(cx.leaf(Leaf::Prefetch), &[one, other, lines]);
            };
            let scale_lines = e.i64((CHUNK_BLOCKS * scale).div_ceil(LINE) as i64 + 1);
            e.call(cx.leaf(Leaf::Prefetch), &[one.0, other.0, scale_lines]);
            let panel = cx.body_scratch(e, areas.panel);
            let panel = e.at(panel, first, PANEL_BLOCK);
            let stride = e.i64(row_bytes as i64);
            let weights = Decoded::of(format);
            let gemm = |tokens: usize| cx.leaf(Leaf::GemmQ8 { weights, tiles: pair.len(), tokens });
            for (first, end, row, size) in runs {
                for tokens in 1..=GROUP {
                    let wanted = e.i64(tokens as i64);
                    let is = e.icmp(IntCC::Equal, size, wanted);
                    e.if_then(is, |e| {
                        let out = e.at(out, row, row_bytes);
                        e.for_range(first, end, 1, |e, group| {
                            fetch(e, group);
                            let panel = e.at(panel, group, blocks * PANEL_BLOCK);
                            let passed = e.b.ins().isub(group, first);
                            let out = e.at(out, passed, tokens * row_bytes);
                            e.call(gemm(tokens), &[decoded, panel, out, count, stride, gap]);
                        });
                    });
                }
            }
        });
    }
}
