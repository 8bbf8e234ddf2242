//! Many rows at once: activations are gathered into panels, weights decoded once per chunk of k into scratch,
//! and multiplied tile pair by tile pair. The same sums in the same order as row by row
//! (docs/dev/numerics.md), so bodies may choose by the number of rows.

use crate::asm;
use crate::body::chunks::{DecodeTask, TilePair, overlaps};
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::MatrixPart;
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use crate::ukernel::block::bias;
use crate::ukernel::gemm_q8::{Decoded, DecodedNumber, DotStep, GROUP, MAGIC, words};
use crate::ukernel::map::Map;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{FuncRef, InstBuilder, Value};
use kernmill_plan::format::{BLOCK, Q8Row, TILE_ROWS, WeightFormat};
use kernmill_plan::target::Level;

/// Offsets in the body's scratch.
#[derive(Clone, Copy)]
pub struct GemmScratch {
    /// How products add up.
    products: DotStep,
    /// Two decoded tiles of a chunk, and of the next.
    decoded: usize,
    /// f32 `[rows][mats][rows_per_item]`.
    pub results: usize,
}

/// Takes room for `rows` rows and results of an item of any of the parts, which have the same k.
pub fn areas(scratch: &mut Scratch, rows: usize, parts: &[MatrixPart], products: DotStep) -> GemmScratch {
    let mats = || parts.iter().flat_map(|part| &part.mats);
    let largest = |bytes: fn(Decoded) -> usize| {
        mats().map(|mat| bytes(products.decoded(mat.format))).max().unwrap_or(0)
    };
    GemmScratch {
        products,
        decoded: scratch.take(4 * largest(Decoded::tile_bytes)),
        results: scratch.take(rows * parts.iter().map(MatrixPart::result_bytes).max().unwrap_or(0)),
    }
}

/// Micro-kernels for a part at a level; those that decode beside multiplying only where there is an assembled
/// version.
pub fn ukernels(part: &MatrixPart, products: DotStep, level: Level) -> Vec<MicroKernel> {
    let tiles = part.mats.len() * part.rows_per_item / TILE_ROWS;
    let mut ukernels = vec![zero_ukernel(part), MicroKernel::Prefetch];
    let both = (1..=GROUP).flat_map(|tokens| overlaps(part, tokens));
    ukernels.extend(both.filter(|ukernel| asm::find(ukernel, level).is_some()));
    for mat in &part.mats {
        let weights = products.decoded(mat.format);
        ukernels.push(MicroKernel::decoding(weights, mat.format));
        for tokens in 1..=GROUP {
            for tiles in 1..=2.min(tiles) {
                ukernels.push(MicroKernel::GemmQ8 { weights, tiles, tokens });
            }
        }
    }
    ukernels
}

/// Sets rows of results to zero.
pub fn zero_ukernel(part: &MatrixPart) -> MicroKernel {
    MicroKernel::Map(Map::zero(part.result_bytes() / 4, part.result_bytes()))
}

/// Copies rows `start..end` of the `rows` q8 rows of `k` that the pointers at `list` name into their groups'
/// panels, `[groups][blocks]`, each as [`Decoded::panel`] says, for weights of a format.
pub fn fill_panel(
    e: &mut Emit,
    (format, products): (WeightFormat, DotStep),
    k: usize,
    panel: Value,
    list: Value,
    rows: Value,
    (start, end): (Value, Value),
) {
    let blocks = k / BLOCK;
    let row_layout = Q8Row { k };
    let decoded = products.decoded(format);
    let layout = decoded.panel();
    RowGroups::of(e, rows).for_each_size(e, |e, group, first, size| {
        let panel = e.at(panel, group, blocks * layout.block);
        let list = e.at(list, first, 8);
        let [start, end] = [start, end].map(|row| e.clamp_from(row, first, size));
        e.for_range(start, end, 1, |e, place| {
            let entry = e.at(list, place, 8);
            let source = e.load(I64, entry, 0);
            let row = e.at(panel, place, layout.row);
            let dword = e.at(panel, place, 4);
            e.for_count(blocks, |e, block| {
                let from = e.at(source, block, BLOCK);
                let halves = [0, 16].map(|offset| e.load(I8X16, from, offset));
                let to = e.at(row, block, layout.block);
                store_activations(e, decoded, halves, to);
                let from = e.at(source, block, 4);
                let to = e.at(dword, block, layout.block);
                let scale = e.load(I32, from, row_layout.scales());
                e.store(scale, to, layout.scales);
                let factor = -bias(format);
                match decoded.number {
                    DecodedNumber::I16 => {}
                    DecodedNumber::U8Pairwise => {
                        let start = start_of_pairs(e, halves, factor);
                        e.store(start, to, layout.starts);
                    }
                    _ => {
                        for (part, sum) in
                            part_sums(e, from, decoded.parts, row_layout).into_iter().enumerate()
                        {
                            let correction = e.b.ins().imul_imm_s(sum, i64::from(factor));
                            let start = e.b.ins().iadd_imm_s(correction, i64::from(MAGIC.to_bits()));
                            e.store(start, to, layout.starts + part * GROUP * 4);
                        }
                    }
                }
                if decoded.minima {
                    let scale = e.load(F32, from, row_layout.scales());
                    for (part, sum) in part_sums(e, from, decoded.parts, row_layout).into_iter().enumerate() {
                        let sum = e.b.ins().fcvt_from_sint(F32, sum);
                        let scaled = e.fmul(sum, scale);
                        e.store(scaled, to, layout.sums + part * GROUP * 4);
                    }
                }
            });
        });
    });
}

/// The sums of a block's activations, or of each half of it, as int32; `from` is the block's place among the
/// row's dwords.
fn part_sums(e: &mut Emit, from: Value, parts: usize, layout: Q8Row) -> Vec<Value> {
    let both = e.load(I32, from, layout.sums());
    let low = e.b.ins().ishl_imm_u(both, 16);
    let low = e.b.ins().sshr_imm_u(low, 16);
    let high = e.b.ins().sshr_imm_u(both, 16);
    if parts == 2 { vec![low, high] } else { vec![e.add(low, high)] }
}

/// A block's 32 activations as a panel's row has them.
fn store_activations(e: &mut Emit, decoded: Decoded, halves: [Value; 2], to: Value) {
    for (half, bytes) in halves.into_iter().enumerate() {
        if decoded.number != DecodedNumber::I16 {
            e.store(bytes, to, half * 16);
            continue;
        }
        for (words, line) in words(e, bytes).into_iter().zip([0, BLOCK / 4]) {
            e.store(words, to, line * 4 + half * 16);
        }
    }
}

/// `factor` times the sums of the activations 4q and 4q + 1, and of 4q + 2 and 4q + 3: two int16.
fn start_of_pairs(e: &mut Emit, halves: [Value; 2], factor: i32) -> Value {
    let [left, right] = halves.map(|bytes| {
        let [even, odd] = words(e, bytes);
        e.b.ins().iadd(even, odd)
    });
    let sums = e.b.ins().iadd(left, right);
    let sums = e.cast(I32X4, sums);
    let low = e.b.ins().ishl_imm_u(sums, 16);
    let low = e.b.ins().sshr_imm_u(low, 16);
    let high = e.b.ins().sshr_imm_u(sums, 16);
    let sums = e.b.ins().iadd_pairwise(low, high);
    let sums = e.b.ins().iadd_pairwise(sums, sums);
    let factor = e.splat_i32(factor);
    let starts = e.b.ins().imul(sums, factor);
    let starts = e.b.ins().snarrow(starts, starts);
    let starts = e.cast(I32X4, starts);
    e.b.ins().extractlane(starts, 0)
}

/// Rows split into as few groups as there can be, their sizes as equal as can be: the tiles of one or two
/// rows that a rest would need cannot fill the pipelines. The first `larger` groups have `size + 1` rows, the
/// others `size`.
#[derive(Clone, Copy)]
struct RowGroups {
    count: Value,
    larger: Value,
    size: Value,
}

impl RowGroups {
    /// `rows` is at least 1.
    fn of(e: &mut Emit, rows: Value) -> RowGroups {
        let up = e.add_imm(rows, GROUP as i64 - 1);
        let most = e.i64(GROUP as i64);
        let count = e.b.ins().udiv(up, most);
        let size = e.b.ins().udiv(rows, count);
        let even = e.b.ins().imul(size, count);
        let larger = e.b.ins().isub(rows, even);
        RowGroups { count, larger, size }
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

    /// Each group's part of so many things, rounded up.
    fn share(self, e: &mut Emit, things: Value) -> Value {
        let up = e.add(things, self.count);
        let up = e.add_imm(up, -1);
        e.b.ins().udiv(up, self.count)
    }

    /// The two runs of groups: first group, group behind the last, first row, rows in each.
    fn runs(self, e: &mut Emit) -> [(Value, Value, Value, Value); 2] {
        let zero = e.i64(0);
        let bigger = e.add_imm(self.size, 1);
        let row = e.b.ins().imul(self.larger, bigger);
        [(zero, self.larger, zero, bigger), (self.larger, self.count, row, self.size)]
    }
}

/// Results of an item for `rows` rows; `panels` are the addresses of the panels of each of an input row's
/// terms, `weights` those of its first tile in each matrix.
///
/// Where micro-kernels can, the first group of rows decodes the first tile of the next chunk besides, the
/// second group the second one: for that, there is room for two chunks. Without such micro-kernels every
/// chunk is decoded before it is multiplied.
pub fn item(
    e: &mut Emit,
    cx: &Cx,
    areas: &GemmScratch,
    part: &MatrixPart,
    weights: &[Value],
    (panels, rows): (&[Value], Value),
) {
    let results = cx.body_scratch(e, areas.results);
    e.call(cx.ukernel(zero_ukernel(part)), &[results, rows]);
    let pairs =
        TilePair::of(e, part, weights, |mat| areas.products.decoded(mat.format).chunk_blocks(mat.format));
    let item = GemmItem {
        cx,
        part,
        groups: RowGroups::of(e, rows),
        stride: e.i64(part.result_bytes() as i64),
        products: areas.products,
        panels,
    };
    let zero = e.i64(0);
    // Where the chunk that is multiplied lies decoded, and the one after it.
    let two = 2 * item.decoded(&pairs[0]).tile_bytes();
    let mut buffers = [0, two].map(|offset| cx.body_scratch(e, areas.decoded + offset));
    let overlapped = item.both(0, GROUP).is_some();
    if overlapped {
        pairs[0].task(e, zero, buffers[0]).decode(e, cx, item.products);
    }
    for (number, pair) in pairs.iter().enumerate() {
        let out = e.add_imm(results, pair.offset as i64);
        let chunks = e.i64(pair.chunks() as i64);
        let swapped = e.for_carry(zero, chunks, 1, &buffers, |e, index, buffers| {
            let (now, later) = (buffers[0], buffers[1]);
            let next = if overlapped {
                let task = pair.next(e, pairs.get(number + 1), index, later);
                let beside = item.decode_next(e, pair, index, &task);
                Some(NextChunk { task, beside })
            } else {
                pair.task(e, index, now).decode(e, cx, item.products);
                None
            };
            item.multiply(e, &Chunk { pair, number, index, decoded: now, out, next });
            if overlapped { vec![later, now] } else { vec![now, later] }
        });
        buffers = [swapped[0], swapped[1]];
    }
}

/// The values that all chunks of an item share.
struct GemmItem<'a> {
    cx: &'a Cx<'a>,
    part: &'a MatrixPart,
    groups: RowGroups,
    /// Bytes of a row of results.
    stride: Value,
    products: DotStep,
    panels: &'a [Value],
}

/// A decoded chunk.
struct Chunk<'a> {
    pair: &'a TilePair<'a>,
    /// Number of the pair among the item's.
    number: usize,
    /// The chunk's among the pair's.
    index: Value,
    decoded: Value,
    /// The pair's results for the first row.
    out: Value,
    /// The chunk that is decoded meanwhile.
    next: Option<NextChunk>,
}

/// The chunk after one, of which `beside` tiles are decoded beside groups of rows.
struct NextChunk {
    task: DecodeTask,
    beside: Value,
}

impl GemmItem<'_> {
    /// The layout of a pair's decoded tiles.
    fn decoded(&self, pair: &TilePair) -> Decoded {
        self.products.decoded(pair.mat.format)
    }

    /// The micro-kernel for `tokens` rows that decodes besides, for pair number `number`.
    fn both(&self, number: usize, tokens: usize) -> Option<FuncRef> {
        self.cx.try_ukernel(overlaps(self.part, tokens).into_iter().nth(number)?)
    }

    /// Decodes the chunk after chunk number `index`, but for the tiles that groups of rows decode beside:
    /// their number.
    fn decode_next(&self, e: &mut Emit, pair: &TilePair, index: Value, next: &DecodeTask) -> Value {
        let (_, count) = pair.blocks_of(e, index);
        let beside = beside(e, &self.groups, pair.chunk_blocks, count, next.count);
        for tile in 0..next.places.len() {
            let number = e.i64(tile as i64);
            let is_left = e.icmp(IntCC::UnsignedGreaterThanOrEqual, number, beside);
            e.if_then(is_left, |e| next.decode_tile(e, self.cx, self.products, tile));
        }
        beside
    }

    /// Adds a chunk times all rows to their results.
    fn multiply(&self, e: &mut Emit, chunk: &Chunk) {
        let (cx, pair) = (self.cx, chunk.pair);
        let ahead = pair.ahead(e, self.part, chunk.index, if chunk.next.is_some() { 2 } else { 1 });
        ahead.scales(e, cx);
        let lines = e.i64(ahead.lines() as i64);
        let lines = self.groups.share(e, lines);
        let (first, count) = pair.blocks_of(e, chunk.index);
        let panel_block = self.decoded(pair).panel().block;
        let panel = e.at(self.panels[pair.mat.term], first, panel_block);
        let row_bytes = self.part.result_bytes();
        for (first, end, row, size) in self.groups.runs(e) {
            let out = e.at(chunk.out, row, row_bytes);
            for tokens in 1..=GROUP {
                let wanted = e.i64(tokens as i64);
                let is = e.icmp(IntCC::Equal, size, wanted);
                e.if_then(is, |e| {
                    e.for_range(first, end, 1, |e, group| {
                        ahead.data(e, cx, group, lines);
                        let panel = e.at(panel, group, pair.blocks() * panel_block);
                        let passed = e.b.ins().isub(group, first);
                        let out = e.at(out, passed, tokens * row_bytes);
                        self.multiply_group(e, chunk, (group, tokens), [panel, out, count]);
                    });
                });
            }
        }
    }

    /// Adds a chunk of `count` blocks times a group of `tokens` rows to `out`, and decodes what this group is
    /// to decode.
    fn multiply_group(
        &self,
        e: &mut Emit,
        chunk: &Chunk,
        (group, tokens): (Value, usize),
        [panel, out, count]: [Value; 3],
    ) {
        let Chunk { pair, decoded, .. } = *chunk;
        let (weights, tiles) = (self.decoded(pair), pair.tiles.len());
        let ukernel = self.cx.ukernel(MicroKernel::GemmQ8 { weights, tiles, tokens });
        let gap = e.i64(pair.gap as i64);
        let args = [decoded, panel, out, count, self.stride, gap];
        let Some((next, both)) = chunk.next.as_ref().zip(self.both(chunk.number, tokens)) else {
            return e.call(ukernel, &args);
        };
        let decodes = e.icmp(IntCC::UnsignedLessThan, group, next.beside);
        let decoding = |e: &mut Emit| {
            let [scales, data, to] = next.task.of_tile(e, group);
            e.call(both, &[decoded, panel, out, scales, data, to]);
        };
        e.if_else(decodes, decoding, |e| e.call(ukernel, &args));
    }
}

/// How many tiles of the next chunk are decoded beside the groups of this one: micro-kernels do it for whole
/// chunks.
fn beside(e: &mut Emit, groups: &RowGroups, whole: usize, count: Value, next: Value) -> Value {
    let whole = e.i64(whole as i64);
    let (now, then) = (e.icmp(IntCC::Equal, count, whole), e.icmp(IntCC::Equal, next, whole));
    let both = e.b.ins().band(now, then);
    let (two, zero) = (e.i64(2), e.i64(0));
    let most = e.min_u(groups.count, two);
    e.select(both, most, zero)
}
