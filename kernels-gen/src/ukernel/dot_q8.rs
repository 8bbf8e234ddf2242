//! `fn(tile: *const u8, rows: *const *const u8, out: *mut f32, out_stride: u64)`: 16 weight rows by `tokens`
//! rows of q8 activations.
//!
//! `tile` is a packed tile of `k` columns in MXFP4, int8 or int4; `rows[t]` an activation row of `k`; `out +
//! t * out_stride` receives 16 dot products ("blockdot" of docs/dev/numerics.md). Reads exactly the tile and
//! the activation rows, writes exactly `tokens * 64` bytes.
//!
//! [`adjacent`] is the same for the [`TILES_PER_CALL`] tiles from `tile` on, whose results are side by side
//! in an [`TileOrder`], a row for each token.
//!
//! Tile: one token by all 16 rows at once, or several tokens by four rows at a time (four passes over the
//! tile, which fits L1).

use crate::emit::{Emit, LANES};
use crate::ukernel::block::{bias, data_lines, scale_bytes};
use crate::ukernel::decode::{CHUNKS, Decoder};
use cranelift_codegen::ir::types::{F32X4, I8X16, I32, I64};
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
        DotQ8 { format, k, rows, vnni }.quads(e, tile, out, QUADS);
        return;
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

/// Addresses of a quad of rows within the tile: scales and data advance differently.
#[derive(Clone, Copy)]
struct TilePtr {
    scales: Value,
    data: Value,
}

impl DotQ8 {
    fn quad_tile(&self, e: &mut Emit, tile: Value, quad: Value) -> TilePart {
        let scales = e.at(tile, quad, scale_bytes(self.format) / QUADS);
        let data = e.at(tile, quad, LANES * 4);
        TilePart::Split(TilePtr { scales, data })
    }

    /// `quads` groups of four rows, all tokens, over the whole of k.
    fn quads(&self, e: &mut Emit, tile: impl Into<TilePart>, out: DotOut, quads: usize) {
        let tile = match tile.into() {
            TilePart::Whole(tile) => TilePtr { scales: tile, data: tile },
            TilePart::Split(tile) => tile,
        };
        let layout = self.format.tile(self.k);
        let data_start = e.add_imm(tile.data, layout.scale_bytes as i64);
        let zero = e.splat_f32(0.0);
        let init = vec![zero; quads * self.rows.len()];
        let (start, end) = (e.i64(0), e.i64((self.k / BLOCK) as i64));
        let sums = e.for_carry(start, end, 1, &init, |e, block, acc| {
            let scales = e.at(tile.scales, block, scale_bytes(self.format));
            let data = e.at(data_start, block, data_lines(self.format) * LINE);
            self.block(e, block, scales, data, quads, acc)
        });
        for (i, sum) in sums.iter().enumerate() {
            let (quad, token) = (i % quads, i / quads);
            let ptr = out.row(e, token);
            e.store(*sum, ptr, quad * LANES * 4);
        }
    }

    /// One block of 32: integer sums, then one fma per quad and token. `acc[token * quads + quad]`.
    fn block(
        &self,
        e: &mut Emit,
        block: Value,
        scales: Value,
        data: Value,
        quads: usize,
        acc: &[Value],
    ) -> Vec<Value> {
        let decoder = Decoder::new(self.format);
        let row = Q8Row { k: self.k };
        let offset = e.mul_imm(block, BLOCK as i64);
        let values: Vec<Value> = self.rows.iter().map(|r| e.add(*r, offset)).collect();
        let scalars: Vec<Value> = self.rows.iter().map(|r| e.at(*r, block, 4)).collect();
        let mut ints = Vec::with_capacity(acc.len());
        for scalar in &scalars {
            let sum = e.load(I32, *scalar, row.sums());
            let correction = e.b.ins().imul_imm_s(sum, i64::from(-bias(self.format)));
            let correction = e.splat(correction);
            ints.extend(vec![correction; quads]);
        }
        for chunk in 0..CHUNKS {
            let broadcast: Vec<Value> = values
                .iter()
                .map(|v| {
                    let four = e.load(I32, *v, chunk * 4);
                    let splat = e.splat(four);
                    e.cast(I8X16, splat)
                })
                .collect();
            for quad in 0..quads {
                let w = decoder.weights(e, data, quad, chunk);
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
        let row_scales: Vec<Value> = (0..quads).map(|q| decoder.row_scales(e, scales, q)).collect();
        let mut next = Vec::with_capacity(acc.len());
        for (token, scalar) in scalars.iter().enumerate() {
            let a_scale = e.load_splat(*scalar, row.scales());
            for (quad, row_scale) in row_scales.iter().enumerate() {
                let i = token * quads + quad;
                let float = e.b.ins().fcvt_from_sint(F32X4, ints[i]);
                let scaled = e.fmul(float, *row_scale);
                next.push(e.fma(scaled, a_scale, acc[i]));
            }
        }
        next
    }
}

/// A whole tile, or one quad of it.
#[derive(Clone, Copy)]
enum TilePart {
    Whole(Value),
    Split(TilePtr),
}

impl From<Value> for TilePart {
    fn from(tile: Value) -> Self {
        TilePart::Whole(tile)
    }
}
