//! Many q8 rows on tiles: rows are gathered into panels, weights decoded once per chunk of k, and a chunk of
//! two tiles multiplied by all panels at once. For MXFP4 both become bf16, for other formats int8. Each chunk
//! is decoded while the one before is multiplied. The bits are those of every other way to multiply.

use crate::body::chunks::{BlockPlaces, DecodeAhead, DecodeTask, TilePair, tile_gaps};
use crate::body::gemm::zero_ukernel;
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{Mat, MatrixPart};
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use crate::ukernel::gemm_tiles::{
    CHUNK_BLOCKS, PANEL_ROWS, PRODUCT_BYTES, PRODUCTS, Strip, TileElement, TileShapes,
};
use cranelift_codegen::ir::types::{F32X4, I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, Q8Row};

/// Offsets in the body's scratch.
#[derive(Clone, Copy)]
pub struct TileGemmScratch {
    /// Two decoded tiles of a chunk, and of the next.
    decoded: usize,
    /// Products on their way from tiles to vectors.
    products: usize,
    /// f32 `[rows, up to whole panels][mats][rows_per_item]`.
    pub results: usize,
}

/// Takes room for `rows` rows and results of an item of any of the parts.
pub fn areas(scratch: &mut Scratch, rows: usize, parts: &[MatrixPart]) -> TileGemmScratch {
    let largest = |bytes: fn(TileElement) -> usize| {
        parts.iter().map(|part| bytes(element(&part.mats[0]))).max().unwrap_or(0)
    };
    let result_bytes = parts.iter().map(MatrixPart::result_bytes).max().unwrap_or(0);
    TileGemmScratch {
        decoded: scratch.take(4 * largest(TileElement::decoded_tile)),
        products: scratch.take(PRODUCTS * PRODUCT_BYTES),
        results: scratch.take(rows.next_multiple_of(PANEL_ROWS) * result_bytes),
    }
}

/// The elements that tiles multiply for a matrix.
fn element(mat: &Mat) -> TileElement {
    TileElement::of(mat.format)
}

/// Micro-kernels for a part.
pub fn ukernels(part: &MatrixPart) -> Vec<MicroKernel> {
    let mat = &part.mats[0];
    let strips = tile_gaps(part).into_iter().map(|gap| strip(part, gap));
    let mut ukernels = vec![
        MicroKernel::TilesOn(TileShapes::Strip(element(mat))),
        MicroKernel::TilesOff,
        MicroKernel::Prefetch,
        zero_ukernel(part),
    ];
    ukernels.extend(strips);
    ukernels
}

/// The strip of two tiles whose results lie `gap` bytes apart, or of one.
fn strip(part: &MatrixPart, gap: Option<usize>) -> MicroKernel {
    let Mat { format, k, .. } = part.mats[0];
    let tiles = if gap.is_some() { 2 } else { 1 };
    MicroKernel::GemmStrip(Strip { format, tiles, k, stride: part.result_bytes(), gap: gap.unwrap_or(0) })
}

/// Copies rows `start..end` of the q8 rows of `k` that the pointers at `list` name into panels,
/// `[groups of 16 rows][blocks]`, each as [`TileElement::panel_block`] says.
pub fn fill_panel(
    e: &mut Emit,
    element: TileElement,
    k: usize,
    panel: Value,
    list: Value,
    (start, end): (Value, Value),
) {
    let (blocks, layout) = (k / BLOCK, Q8Row { k });
    e.for_range(start, end, 1, |e, row| {
        let entry = e.at(list, row, 8);
        let source = e.load(I64, entry, 0);
        let number = e.b.ins().ushr_imm_u(row, i64::from(PANEL_ROWS.trailing_zeros()));
        let within = e.b.ins().band_imm_u(row, PANEL_ROWS as i64 - 1);
        let panel = e.at(panel, number, blocks * element.panel_block());
        let (row, scales) = (e.at(panel, within, element.row_bytes()), e.at(panel, within, 4));
        e.for_count(blocks, |e, block| {
            let (from, to) = (e.at(source, block, BLOCK), e.at(row, block, element.panel_block()));
            for half in 0..2 {
                let bytes = e.load(I8X16, from, half * 16);
                let pieces = match element {
                    TileElement::Bf16 => as_bf16(e, bytes).to_vec(),
                    TileElement::I8 => vec![bytes],
                };
                for (i, piece) in pieces.into_iter().enumerate() {
                    e.store(piece, to, half * element.row_bytes() / 2 + i * 16);
                }
            }
            let (from, to) = (e.at(source, block, 4), e.at(scales, block, element.panel_block()));
            let scale = e.load(I32, from, layout.scales());
            e.store(scale, to, element.panel_scales());
        });
    });
}

/// Sixteen signed bytes as bf16, in order.
fn as_bf16(e: &mut Emit, bytes: Value) -> [Value; 2] {
    let words = [e.b.ins().swiden_low(bytes), e.b.ins().swiden_high(bytes)];
    words.map(|words| {
        let quads = [e.b.ins().swiden_low(words), e.b.ins().swiden_high(words)];
        let [low, high] = quads.map(|quad| {
            let float = e.b.ins().fcvt_from_sint(F32X4, quad);
            let bits = e.cast(I32X4, float);
            e.b.ins().ushr_imm_u(bits, 16)
        });
        e.b.ins().unarrow(low, high)
    })
}

/// Results of an item for `rows` rows; `panels` are the addresses of the panels of each of an input row's
/// terms, `weights` those of its first tile in each matrix.
pub fn item(
    e: &mut Emit,
    cx: &Cx,
    areas: &TileGemmScratch,
    part: &MatrixPart,
    weights: &[Value],
    (panels, rows): (&[Value], Value),
) {
    let item = TileGemmItem { cx, areas, part, panels };
    let results = cx.body_scratch(e, areas.results);
    e.call(cx.ukernel(zero_ukernel(part)), &[results, rows]);
    let pairs = TilePair::of(e, part, weights, |_| CHUNK_BLOCKS);
    let zero = e.i64(0);
    // Where the chunk that is multiplied lies decoded, and the one after it.
    let second = 2 * element(&part.mats[0]).decoded_tile();
    let mut buffers = [0, second].map(|offset| cx.body_scratch(e, areas.decoded + offset));
    // The first chunk is decoded beside nothing.
    let first = pairs[0].task(e, zero, buffers[0]);
    let ahead = pairs[0].ahead(e, part, zero, 1);
    item.strip(e, &pairs[0], (zero, zero), [buffers[1], results], (&first, &ahead));
    for (number, pair) in pairs.iter().enumerate() {
        let out = e.add_imm(results, pair.offset as i64);
        let chunks = e.i64(pair.chunks() as i64);
        let swapped = e.for_carry(zero, chunks, 1, &buffers, |e, index, buffers| {
            let (now, later) = (buffers[0], buffers[1]);
            let next = pair.next(e, pairs.get(number + 1), index, later);
            let ahead = pair.ahead(e, part, index, 2);
            item.strip(e, pair, (index, rows), [now, out], (&next, &ahead));
            vec![later, now]
        });
        buffers = [swapped[0], swapped[1]];
    }
}

/// An item that is computed.
struct TileGemmItem<'a> {
    cx: &'a Cx<'a>,
    areas: &'a TileGemmScratch,
    part: &'a MatrixPart,
    panels: &'a [Value],
}

impl TileGemmItem<'_> {
    /// Adds chunk number `index` of a pair, which lies decoded, times so many rows to `out`. Meanwhile it
    /// decodes the next chunk, and fetches what is decoded behind that.
    fn strip(
        &self,
        e: &mut Emit,
        pair: &TilePair,
        (index, rows): (Value, Value),
        [decoded, out]: [Value; 2],
        (next, ahead): (&DecodeTask, &DecodeAhead),
    ) {
        let TileGemmItem { cx, areas, part, panels } = *self;
        let (first, count) = pair.blocks_of(e, index);
        let panels = e.at(panels[pair.mat.term], first, element(pair.mat).panel_block());
        let products = cx.body_scratch(e, areas.products);
        ahead.scales(e, cx);
        let BlockPlaces { scales, data } = next.places[0];
        let [second, fetched] = [next.places[pair.tiles.len() - 1].data, ahead.data_of(0)];
        let [apart, ahead] = [second, fetched].map(|place| e.b.ins().isub(place, data));
        let strip = strip(part, (pair.tiles.len() == 2).then_some(pair.gap));
        let product = [decoded, panels, out, rows, count, products];
        let next = [scales.scales(), data, next.out, next.count, apart, ahead];
        e.call(cx.ukernel(strip), &[product, next].concat());
    }
}
