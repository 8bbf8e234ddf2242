//! Matrices by q8 activations on tiles: "blockdot" of docs/dev/numerics.md, bit for bit. A product of tiles
//! is one block of 32 k, and what is left to do is done by vectors.
//!
//! Tiles of int8 ([`TileElement::I8`], matrices in int8 and int4): a product of tiles is `isum`, and as a
//! float it is multiplied by the scale of the weights, then by that of the activations, as blockdot says.
//!
//! Tiles of bf16 ([`TileElement::Bf16`], MXFP4): an integer of 8 bits is a bf16 number, and so is a MXFP4
//! value times its power of two. A block's sum is an integer below 2^16 times that power, which f32 holds in
//! whatever order the 32 products are added. So one product of tiles gives `isum * w` exactly, and one fma by
//! the activation's scale is left.
//!
//! Tiles of bf16 take numbers below 2^-126 for zeros. The least product of a block is 2^(s - 128), s being
//! the byte of its scale. Bytes 0 and 1 are therefore decoded as [`LEAST_SCALE`], and a factor makes up for
//! it, which is 1 for all other blocks. Products with it are exact, too.
//!
//! - strip: `fn(weights: *const u8, panels: *const u8, sums: *mut f32, rows: u64, blocks: u64, products: *mut
//!   u8, scales: *const u8, data: *const u8, out: *mut u8, count: u64, apart: u64, ahead: u64)`: adds
//!   `blocks` blocks of one or two decoded tiles, [`TileElement::decoded_tile`] bytes apart, times every
//!   panel of `rows` rows to `sums`: 16 f32 per row and tile, rows `stride` bytes apart, tiles `gap` bytes.
//!   Panels are those of whole rows of `k` elements, and the blocks are the first ones from `panels` on. Rows
//!   of the last panel that are not there may hold anything, and their sums may become anything. `products`
//!   is memory for [`PRODUCTS`] products of tiles, which versions may use. At most [`CHUNK_BLOCKS`] blocks.
//!
//!   Meanwhile it decodes the next chunk: `count` blocks of as many packed tiles, from the given places in
//!   the first one's scale and data planes, those of the second `apart` bytes behind, to `out`, which is as
//!   `weights`. It may prefetch as many blocks `ahead` bytes behind the data, and never loads them. Without
//!   rows it only decodes.
//!
//! A decoded block has [`TileElement::lines`] lines, and behind them one of 16 f32, the factors of the rows.
//! For bf16 a line is 2 k of 16 rows, the second operand of `tdpbf16ps`, scales are at least
//! [`LEAST_SCALE`], and a value times its scale is exact. For int8 it is 4 signed bytes of 16 rows, that of
//! `tdpbssd`, and factors are the scales.
//!
//! A panel has [`PANEL_ROWS`] rows, and a panel block is [`TileElement::panel_block`] bytes: 32 elements per
//! row, then a f32 scale per row. Versions for tiles need those of [`TileShapes::Strip`] on.

use crate::emit::{Emit, LANES};
use crate::ukernel::block::{data_lines, scale_bytes};
use crate::ukernel::decode::{CHUNKS, Decoder, ScalePlaces};
use crate::ukernel::dot_q8::QUADS;
use crate::ukernel::gemm_bf16::{decode_blocks, halves};
use crate::ukernel::gemm_q8::words;
use cranelift_codegen::ir::types::{F32X4, I8X16, I32, I32X4};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, TILE_ROWS, WeightFormat};

/// Rows of a panel, which are those of a tile register.
pub const PANEL_ROWS: usize = 16;
/// Half as many: last panels of so many rows or fewer take half the work.
pub const HALF_PANEL: usize = PANEL_ROWS / 2;
/// Blocks of a chunk, which is decoded and multiplied at a time. A first cache of 48 KB holds two chunks of
/// two tiles, one of them on its way, and the products of a panel, with some room for rows and sums.
pub const CHUNK_BLOCKS: usize = 6;
/// Products of tiles that there is memory for: those of a panel by two tiles, and of some blocks more.
pub const PRODUCTS: usize = 2 * (CHUNK_BLOCKS + 2);
/// Whole panels beside which a chunk of two tiles is decoded. Fewer would be slower: a core stores a line a
/// cycle and loads two, a product has 19 lines to store and 45 to load, and decoding adds 4 and 1 with these.
pub const DECODING_PANELS: usize = 4;
/// Bytes of one.
pub const PRODUCT_BYTES: usize = PANEL_ROWS * TILE_ROWS * 4;
/// The least byte of a scale whose products tiles of bf16 keep.
pub const LEAST_SCALE: u8 = 2;

/// The kind of elements that tiles multiply. It decides the layout of panels and of decoded weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TileElement {
    /// Values of MXFP4 times their scale, by integers.
    Bf16,
    /// Integers by integers.
    I8,
}

impl TileElement {
    /// Every element.
    pub const ALL: [TileElement; 2] = [TileElement::Bf16, TileElement::I8];

    /// The elements that tiles multiply for a format with blocks.
    pub fn of(format: WeightFormat) -> TileElement {
        if format == WeightFormat::Mxfp4 { TileElement::Bf16 } else { TileElement::I8 }
    }

    /// Whether tiles multiply a format: blocks have one scale that has no unit, and no minimum.
    pub fn serves(format: WeightFormat) -> bool {
        let parts = format.parts();
        parts.parts() == 1 && !parts.has_minimum() && !parts.is_super()
    }

    /// Bytes of one.
    const fn bytes(self) -> usize {
        match self {
            TileElement::Bf16 => 2,
            TileElement::I8 => 1,
        }
    }

    /// Bytes of a row in a panel's block.
    pub const fn row_bytes(self) -> usize {
        BLOCK * self.bytes()
    }

    /// Offset of a panel block's scales.
    pub const fn panel_scales(self) -> usize {
        PANEL_ROWS * self.row_bytes()
    }

    /// Bytes of a panel's block.
    pub const fn panel_block(self) -> usize {
        self.panel_scales() + PANEL_ROWS * 4
    }

    /// Lines of a decoded block, which are the rows of a tile.
    pub const fn lines(self) -> usize {
        BLOCK * TILE_ROWS * self.bytes() / LINE
    }

    /// Offset of a decoded block's factors.
    pub const fn decoded_factors(self) -> usize {
        self.lines() * LINE
    }

    /// Bytes of a decoded block.
    pub const fn decoded_block(self) -> usize {
        self.decoded_factors() + LINE
    }

    /// Bytes from one decoded tile to the next.
    pub const fn decoded_tile(self) -> usize {
        CHUNK_BLOCKS * self.decoded_block()
    }
}

/// Which shapes tile registers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TileShapes {
    /// Whole ones, for `GemmBf16`.
    Whole,
    /// Registers for panels of 16 and of 8 rows, for `GemmStrip`.
    Strip(TileElement),
}

impl TileShapes {
    /// The suffix of micro-kernels' names for it.
    pub fn suffix(self) -> &'static str {
        match self {
            TileShapes::Whole => "",
            TileShapes::Strip(TileElement::Bf16) => "_strip",
            TileShapes::Strip(TileElement::I8) => "_strip_bytes",
        }
    }
}

/// The shape that a strip micro-kernel is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Strip {
    /// The format that weights are decoded from.
    pub format: WeightFormat,
    /// Decoded tiles, 1 or 2.
    pub tiles: usize,
    /// Elements of a panel's rows.
    pub k: usize,
    /// Bytes between the sums of rows.
    pub stride: usize,
    /// Bytes between the sums of tiles.
    pub gap: usize,
}

impl Strip {
    /// Bytes from one panel to the next.
    pub fn panel_stride(self) -> usize {
        self.k / BLOCK * TileElement::of(self.format).panel_block()
    }
}

/// Decodes blocks of a tile; the parameters are scales, data, what they become, and the number of blocks.
fn decode(e: &mut Emit, params: &[Value], format: WeightFormat) {
    let element = TileElement::of(format);
    match element {
        TileElement::Bf16 => decode_blocks(e, params, element.decoded_block(), |e, scales, out| {
            let (scale, factor) = scale_and_factor(e, scales);
            e.store(factor, out, element.decoded_factors());
            scale
        }),
        TileElement::I8 => decode_bytes(e, params, format),
    }
}

/// Signed bytes, and scales as they are.
fn decode_bytes(e: &mut Emit, params: &[Value], format: WeightFormat) {
    let (scales, data, out, blocks) = (params[0], params[1], params[2], params[3]);
    let (element, decoder) = (TileElement::I8, Decoder::new(format));
    let zero = e.i64(0);
    e.for_range(zero, blocks, 1, |e, block| {
        let scales = e.at(scales, block, scale_bytes(format));
        let places = ScalePlaces::new(scales, scales);
        let data = e.at(data, block, data_lines(format) * LINE);
        let out = e.at(out, block, element.decoded_block());
        for quad in 0..QUADS {
            let w = decoder.row_scales(e, places, quad, 0);
            e.store(w, out, element.decoded_factors() + quad * LANES * 4);
            for chunk in 0..CHUNKS {
                let bytes = decoder.weights(e, data, quad, chunk);
                let bytes = decoder.less_bias(e, bytes);
                e.store(bytes, out, chunk * LINE + quad * LANES * 4);
            }
        }
    });
}

/// The scale of four rows' integers, which are twice their values, and the factor that is left for their
/// sums.
fn scale_and_factor(e: &mut Emit, scales: Value) -> (Value, Value) {
    let low = e.splat_i32(0xff);
    let bytes = e.load_i8x4(scales, 0);
    let bytes = e.b.ins().band(bytes, low);
    let least = e.splat_i32(i32::from(LEAST_SCALE));
    let used = e.b.ins().umax(bytes, least);
    let power = |e: &mut Emit, exponent: Value, bias: i32| {
        let bias = e.splat_i32(bias);
        let biased = e.b.ins().iadd(exponent, bias);
        let bits = e.b.ins().ishl_imm_u(biased, 23);
        e.cast(F32X4, bits)
    };
    let left = e.b.ins().isub(bytes, used);
    (power(e, used, -1), power(e, left, 127))
}

/// Emits `GemmStrip`.
pub fn strip(e: &mut Emit, params: &[Value], strip: Strip) {
    let (weights, panels, sums, rows, blocks) = (params[0], params[1], params[2], params[3], params[4]);
    let [scales, data, out, count, apart] = [6, 7, 8, 9, 10].map(|index: usize| params[index]);
    let element = TileElement::of(strip.format);
    decode(e, &[scales, data, out, count], strip.format);
    if strip.tiles == 2 {
        let [scales, data] = [scales, data].map(|place| e.add(place, apart));
        let out = e.add_imm(out, element.decoded_tile() as i64);
        decode(e, &[scales, data, out, count], strip.format);
    }
    let (zero, quads) = (e.i64(0), strip.tiles * QUADS);
    e.for_range(zero, rows, 1, |e, row| {
        let number = e.b.ins().ushr_imm_u(row, i64::from(PANEL_ROWS.trailing_zeros()));
        let within = e.b.ins().band_imm_u(row, PANEL_ROWS as i64 - 1);
        let (panel, sums) = (e.at(panels, number, strip.panel_stride()), e.at(sums, row, strip.stride));
        let (row, scale) = (e.at(panel, within, element.row_bytes()), e.at(panel, within, 4));
        e.for_count(quads, |e, quad| {
            let tile = e.b.ins().ushr_imm_u(quad, i64::from(QUADS.trailing_zeros()));
            let quad = e.b.ins().band_imm_u(quad, QUADS as i64 - 1);
            let (weights, sums) = (e.at(weights, tile, element.decoded_tile()), e.at(sums, tile, strip.gap));
            let (weights, sums) = (e.at(weights, quad, LANES * 4), e.at(sums, quad, LANES * 4));
            let start = e.load(F32X4, sums, 0);
            let done = e.for_carry(zero, blocks, 1, &[start], |e, block, acc| {
                let weights = e.at(weights, block, element.decoded_block());
                let row = e.at(row, block, element.panel_block());
                let scale = e.at(scale, block, element.panel_block());
                let sum = match element {
                    TileElement::Bf16 => block_sum(e, weights, row),
                    TileElement::I8 => integer_sum(e, weights, row),
                };
                let factor = e.load(F32X4, weights, element.decoded_factors());
                let sum = e.fmul(sum, factor);
                let scale = e.load_splat(scale, element.panel_scales());
                vec![e.fma(sum, scale, acc[0])]
            });
            e.store(done[0], sums, 0);
        });
    });
}

/// The exact sum of a block's products of bf16, four rows by one token.
fn block_sum(e: &mut Emit, weights: Value, row: Value) -> Value {
    let zero = e.splat_f32(0.0);
    let (start, end) = (e.i64(0), e.i64(TileElement::Bf16.lines() as i64));
    e.for_carry(start, end, 1, &[zero], |e, line, sum| {
        let (weights, pair) = (e.at(weights, line, LINE), e.at(row, line, 4));
        let w = e.load(I32X4, weights, 0);
        let w = halves(e, w, false);
        let a = e.load(I32, pair, 0);
        let a = e.splat(a);
        let a = halves(e, a, false);
        let sum = e.fma(a[0], w[0], sum[0]);
        vec![e.fma(a[1], w[1], sum)]
    })[0]
}

/// The sum of a block's products of integers, four rows by one token, as floats.
fn integer_sum(e: &mut Emit, weights: Value, row: Value) -> Value {
    let zero = e.splat_i32(0);
    let (start, end) = (e.i64(0), e.i64(TileElement::I8.lines() as i64));
    let sum = e.for_carry(start, end, 1, &[zero], |e, line, sum| {
        let (weights, four) = (e.at(weights, line, LINE), e.at(row, line, 4));
        let w = e.load(I8X16, weights, 0);
        let a = e.load(I32, four, 0);
        let a = e.splat(a);
        let a = e.cast(I8X16, a);
        let (w, a) = (words(e, w), words(e, a));
        let products = [e.madd(w[0], a[0]), e.madd(w[1], a[1])];
        let sum = e.b.ins().iadd(sum[0], products[0]);
        vec![e.b.ins().iadd(sum, products[1])]
    })[0];
    e.b.ins().fcvt_from_sint(F32X4, sum)
}
