//! A row of a table of embeddings as f32: that of a token, or of its position.

use super::prelude::*;
use crate::ukernel::block::data_lines;
use crate::ukernel::decode::{CHUNKS, Decoder, ScalePlaces};
use cranelift_codegen::ir::types::{F32X4, I8X16, I32};
use kernmill_plan::format::{Decode, LINE, PlainDecode, WeightFormat};

/// A row of the embedding table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EmbedRow<V = ValId, O = OperandId> {
    /// The table.
    pub table: O,
    /// Format of the table.
    pub format: WeightFormat,
    /// Bytes from one row to the next, or from one tile of 16 rows to the next where the format has blocks.
    pub row_bytes: usize,
    /// Rows of the table, where it has one for each position; `None` where it has one for each token.
    pub positions: Option<usize>,
    /// The row in f32.
    pub out: V,
}

impl<V, O> EmbedRow<V, O> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("embed", Some(&self.out))
    }

    pub(super) fn numbered(&self, names: &mut impl Names<V, O>) -> EmbedRow {
        let out = names.write(&self.out);
        let table = names.operand(&self.table);
        EmbedRow { table, format: self.format, row_bytes: self.row_bytes, positions: self.positions, out }
    }
}

impl RowOpCode for EmbedRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        check.rows_are(site.rows, CountedRows::Tokens)?;
        let n = check.f32(self.out)?;
        let (row, rows_together) = match self.format.decode() {
            Decode::Plain(decode) => (n * decode.bytes(), 1),
            Decode::Block(parts) => {
                check.multiple(n, parts.columns())?;
                (self.format.tile(n).bytes(), TILE_ROWS)
            }
        };
        check.multiple(n, VECTOR)?;
        let row_bytes = self.row_bytes;
        check.ensure(row_bytes >= row, || {
            format!("rows of the table are {row_bytes} bytes apart and have {row}")
        })?;
        match self.positions {
            None => check.table(self.table, row_bytes, rows_together)?,
            Some(rows) => {
                check.by_position(
                    self.table,
                    rows,
                    rows.div_ceil(rows_together).saturating_mul(row_bytes),
                )?;
            }
        }
        check.writes(self.out, RowType::F32(n), site.rows)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let row = match self.positions {
            None => cx.token_id(e, site.row),
            Some(_) => cx.position(e, site.row),
        };
        let table = cx.operand(e, self.table);
        let out = site.val(e, cx, self.out);
        emit(e, self.format, (table, self.row_bytes), row, out, cx.len(self.out));
    }
}

/// Converts the `n` elements of row `row` of the table at `table` to f32 at `out`. `stride` is the bytes from
/// one row to the next, or from one tile of 16 rows to the next where the format has blocks. n is a multiple
/// of 4, or whole blocks.
fn emit(
    e: &mut Emit,
    format: WeightFormat,
    (table, stride): (Value, usize),
    row: Value,
    out: Value,
    n: usize,
) {
    let decode = match format.decode() {
        Decode::Plain(decode) => decode,
        Decode::Block(_) => {
            let (number, lane) = (e.b.ins().ushr_imm_u(row, 4), e.b.ins().band_imm_u(row, 15));
            let tile = e.at(table, number, stride);
            return blocked(e, format, (tile, lane), out, n);
        }
    };
    let source = e.at(table, row, stride);
    e.for_count(n / LANES, |e, i| {
        let target = e.at(out, i, LANES * 4);
        let ptr = e.at(source, i, LANES * decode.bytes());
        let value = match decode {
            PlainDecode::Bf16 => e.load_bf16x4(ptr, 0),
            PlainDecode::F32 => e.load(F32X4, ptr, 0),
        };
        e.store(value, target, 0);
    });
}

/// The row of a tile that `lane` numbers. Scales are those of its four rows, of which the row's is taken.
fn blocked(e: &mut Emit, format: WeightFormat, (tile, lane): (Value, Value), out: Value, n: usize) {
    let (decoder, parts) = (Decoder::new(format), format.parts());
    let quad = e.b.ins().ushr_imm_u(lane, 2);
    let places = ScalePlaces::of_tile(e, format, n, tile).quad(e, format, quad);
    let data = e.at(tile, lane, 4);
    let data = e.add_imm(data, format.tile(n).scale_bytes as i64);
    let within = e.b.ins().band_imm_u(lane, LANES as i64 - 1);
    let blocks = n / BLOCK;
    e.for_count(blocks, |e, block| {
        let places = places.block(e, format, block);
        let data = e.at(data, block, data_lines(format) * LINE);
        let out = e.at(out, block, BLOCK * 4);
        for part in 0..parts.parts() {
            let scales = decoder.row_scales(e, places, 0, part);
            let scale = in_every_lane(e, scales, within);
            let minimum = parts.has_minimum().then(|| {
                let minima = decoder.row_minima(e, places, 0, part);
                in_every_lane(e, minima, within)
            });
            let chunks = CHUNKS / parts.parts();
            for chunk in part * chunks..(part + 1) * chunks {
                let signed = decoder.signed_row(e, data, chunk);
                let elements = decoder.elements_of_row(e, signed, scale, minimum);
                e.store(elements, out, chunk * 16);
            }
        }
    });
}

/// Lane `number` (an i64, 0 to 3) of four f32 in every lane.
fn in_every_lane(e: &mut Emit, v: Value, number: Value) -> Value {
    let first = e.b.ins().ireduce(I32, number);
    let first = e.b.ins().imul_imm_s(first, 0x0404_0404);
    let first = e.splat(first);
    let first = e.cast(I8X16, first);
    let within = e.bytes([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    let order = e.b.ins().iadd(first, within);
    let bytes = e.cast(I8X16, v);
    let bytes = e.b.ins().x86_pshufb(bytes, order);
    e.cast(F32X4, bytes)
}
