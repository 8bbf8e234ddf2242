//! `fn(tile: *const u8, rows: *const *const u8, out: *mut f32, out_stride: u64)`: 16 weight rows by `tokens`
//! rows of q8 activations.
//!
//! `tile` is a packed tile of `k` columns in a format with blocks; `rows[t]` an activation row of `k`;
//! `out + t * out_stride` receives 16 dot products ("blockdot" and "affinedot" of docs/dev/numerics.md).
//! Reads exactly the tile and the activation rows, writes exactly `tokens * 64` bytes.
//!
//! [`adjacent`] is the same for the [`TILES_PER_CALL`] tiles from `tile` on, whose results are side by side
//! in an [`TileOrder`], a row for each token.
//!
//! Tile: one token by all 16 rows at once, or several tokens by four rows at a time (four passes over the
//! tile, which fits L1).

use crate::emit::{Emit, LANES};
use crate::ukernel::block::{bias, data_lines, part_factors};
use crate::ukernel::decode::{CHUNKS, Decoder, ScalePlaces};
use cranelift_codegen::ir::types::{F32X4, I8X16, I16X8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::{BLOCK, LINE, Q8Row, TILE_ROWS, WeightFormat};

/// Groups of four rows in a tile.
pub const QUADS: usize = TILE_ROWS / LANES;
/// Tokens whose accumulators fit the sixteen 128-bit registers beside the decoded weights.
const TOKENS_PER_PASS: usize = 4;

/// Tiles of the micro-kernel for several.
pub const TILES_PER_CALL: usize = 4;

/// How the results of adjacent tiles lie in a token's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TileOrder {
    /// In the order of the tiles.
    Straight,
    /// Even tiles first, because tiles of two matrices alternate.
    Pairs,
}

impl TileOrder {
    /// In the names of symbols.
    pub fn suffix(self) -> &'static str {
        match self {
            TileOrder::Straight => "",
            TileOrder::Pairs => "_pairs",
        }
    }

    /// The tiles whose results a row has, in order.
    pub fn tiles(self) -> impl Iterator<Item = usize> {
        (0..TILES_PER_CALL).map(move |place| match self {
            TileOrder::Straight => place,
            TileOrder::Pairs => place % (TILES_PER_CALL / 2) * 2 + place / (TILES_PER_CALL / 2),
        })
    }
}

pub fn adjacent(
    e: &mut Emit,
    params: &[Value],
    format: WeightFormat,
    k: usize,
    tokens: usize,
    order: TileOrder,
    vnni: bool,
) {
    e.for_count(TILES_PER_CALL, |e, tile| {
        let weights = e.at(params[0], tile, format.tile(k).bytes());
        let place = match order {
            TileOrder::Straight => tile,
            TileOrder::Pairs => {
                let (odd, half) = (e.b.ins().band_imm_s(tile, 1), e.b.ins().ushr_imm_u(tile, 1));
                let odd = e.mul_imm(odd, TILES_PER_CALL as i64 / 2);
                e.add(odd, half)
            }
        };
        let out = e.at(params[2], place, TILE_ROWS * 4);
        emit(e, &[weights, params[1], out, params[3]], format, k, tokens, vnni);
    });
}

pub fn emit(e: &mut Emit, params: &[Value], format: WeightFormat, k: usize, tokens: usize, vnni: bool) {
    let (tile, list, out) = (params[0], params[1], DotOut { ptr: params[2], stride: params[3] });
    let rows: Vec<Value> = (0..tokens).map(|t| e.load(I64, list, t * 8)).collect();
    if tokens == 1 {
        let dot = DotQ8 { format, k, rows, vnni };
        let tile = dot.tile(e, tile);
        return dot.quads(e, tile, out, QUADS);
    }
    for (pass, rows) in rows.chunks(TOKENS_PER_PASS).enumerate() {
        let dot = DotQ8 { format, k, rows: rows.to_vec(), vnni };
        let skipped = e.mul_imm(out.stride, (pass * TOKENS_PER_PASS) as i64);
        let start = e.add(out.ptr, skipped);
        e.for_count(QUADS, |e, quad| {
            let tile = dot.quad_tile(e, tile, quad);
            let ptr = e.at(start, quad, 4 * LANES);
            dot.quads(e, tile, DotOut { ptr, ..out }, 1);
        });
    }
}

/// Where results go: 16 f32 per token, `stride` bytes apart.
#[derive(Clone, Copy)]
pub struct DotOut {
    pub ptr: Value,
    pub stride: Value,
}

impl DotOut {
    pub fn row(self, e: &mut Emit, token: usize) -> Value {
        if token == 0 {
            return self.ptr;
        }
        let offset = e.mul_imm(self.stride, token as i64);
        e.add(self.ptr, offset)
    }
}

struct DotQ8 {
    format: WeightFormat,
    k: usize,
    rows: Vec<Value>,
    vnni: bool,
}

/// Addresses of rows within the tile: scales and data advance differently.
#[derive(Clone, Copy)]
struct TilePtr {
    places: ScalePlaces,
    data: Value,
}

impl DotQ8 {
    fn tile(&self, e: &mut Emit, tile: Value) -> TilePtr {
        TilePtr { places: ScalePlaces::of_tile(e, self.format, self.k, tile), data: tile }
    }

    fn quad_tile(&self, e: &mut Emit, tile: Value, quad: Value) -> TilePtr {
        let whole = self.tile(e, tile);
        let places = whole.places.quad(e, self.format, quad);
        TilePtr { places, data: e.at(tile, quad, LANES * 4) }
    }

    /// `quads` groups of four rows, all tokens, over the whole of k.
    fn quads(&self, e: &mut Emit, tile: TilePtr, out: DotOut, quads: usize) {
        let layout = self.format.tile(self.k);
        let data_start = e.add_imm(tile.data, layout.scale_bytes as i64);
        let zero = e.splat_f32(0.0);
        let init = vec![zero; quads * self.rows.len()];
        let (start, end) = (e.i64(0), e.i64((self.k / BLOCK) as i64));
        let sums = e.for_carry(start, end, 1, &init, |e, block, acc| {
            let places = tile.places.block(e, self.format, block);
            let data = e.at(data_start, block, data_lines(self.format) * LINE);
            self.block(e, block, TilePtr { places, data }, quads, acc)
        });
        for (i, sum) in sums.iter().enumerate() {
            let (quad, token) = (i % quads, i / quads);
            let ptr = out.row(e, token);
            e.store(*sum, ptr, quad * LANES * 4);
        }
    }

    /// One block of 32: for each part integer sums, then one fma per quad and token, and another if there are
    /// minima. `acc[token * quads + quad]`.
    fn block(&self, e: &mut Emit, block: Value, tile: TilePtr, quads: usize, acc: &[Value]) -> Vec<Value> {
        let (decoder, parts) = (Decoder::new(self.format), self.format.parts());
        let row = Q8Row { k: self.k };
        let offset = e.mul_imm(block, BLOCK as i64);
        let values: Vec<Value> = self.rows.iter().map(|r| e.add(*r, offset)).collect();
        let scalars: Vec<Value> = self.rows.iter().map(|r| e.at(*r, block, 4)).collect();
        let mut acc = acc.to_vec();
        for part in 0..parts.parts() {
            let sums_of = |e: &mut Emit, scalar: Value, factor: i32| {
                let sums = e.load(I32, scalar, row.sums());
                let sums = e.splat(sums);
                let sums = e.cast(I16X8, sums);
                let factors = e.splat_i32(part_factors(self.format, part, factor) as i32);
                let factors = e.cast(I16X8, factors);
                e.madd(sums, factors)
            };
            let mut ints = Vec::with_capacity(acc.len());
            for scalar in &scalars {
                let start = match bias(self.format) {
                    0 => e.splat_i32(0),
                    bias => sums_of(e, *scalar, -bias),
                };
                ints.extend(vec![start; quads]);
            }
            let chunks = CHUNKS / parts.parts();
            for chunk in part * chunks..(part + 1) * chunks {
                let broadcast: Vec<Value> = values
                    .iter()
                    .map(|v| {
                        let four = e.load(I32, *v, chunk * 4);
                        let splat = e.splat(four);
                        e.cast(I8X16, splat)
                    })
                    .collect();
                for quad in 0..quads {
                    let w = decoder.weights(e, tile.data, quad, chunk);
                    for (token, a) in broadcast.iter().enumerate() {
                        let i = token * quads + quad;
                        ints[i] = if decoder.is_small() {
                            e.dot_small_u8_i8(ints[i], w, *a, self.vnni)
                        } else {
                            e.dot_u8_i8(ints[i], w, *a, self.vnni)
                        };
                    }
                }
            }
            let row_scales: Vec<Value> =
                (0..quads).map(|q| decoder.row_scales(e, tile.places, q, part)).collect();
            for (token, scalar) in scalars.iter().enumerate() {
                let a_scale = e.load_splat(*scalar, row.scales());
                for (quad, row_scale) in row_scales.iter().enumerate() {
                    let i = token * quads + quad;
                    let float = e.b.ins().fcvt_from_sint(F32X4, ints[i]);
                    let scaled = e.fmul(float, *row_scale);
                    acc[i] = e.fma(scaled, a_scale, acc[i]);
                }
            }
            if !parts.has_minimum() {
                continue;
            }
            let minima: Vec<Value> =
                (0..quads).map(|q| decoder.row_minima(e, tile.places, q, part)).collect();
            for (token, scalar) in scalars.iter().enumerate() {
                let a_scale = e.load_splat(*scalar, row.scales());
                let sum = sums_of(e, *scalar, 1);
                let sum = e.b.ins().fcvt_from_sint(F32X4, sum);
                let scaled = e.fmul(sum, a_scale);
                for (quad, minimum) in minima.iter().enumerate() {
                    let i = token * quads + quad;
                    acc[i] = e.fma(*minimum, scaled, acc[i]);
                }
            }
        }
        acc
    }
}
