//! Adapters in kernels: finding what a token's adapter has at a LoRA target, and adding its part to the
//! results of a product.
//!
//! Tokens in a row that have one adapter are taken together. A batch without adapters costs a test of the
//! table's address.

use crate::cx::Cx;
use crate::emit::{Emit, LANES};
use crate::ukernel::MicroKernel;
use crate::ukernel::add_dot::{TOKENS, per_line};
use crate::values::{Mat, MatAdapter, OperandId};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::abi::Args;
use kernmill_plan::adapter::{LoraTargetEntry, MAX_RANK};
use kernmill_plan::format::{LINE, TILE_ROWS, WeightFormat};
use std::mem::offset_of;

/// Bytes from one row of shrunk values to the next.
pub const SHRUNK_STRIDE: usize = MAX_RANK * 4;

/// Micro-kernels that adapters of that format need.
pub fn ukernels(format: WeightFormat) -> impl Iterator<Item = MicroKernel> {
    TOKENS.into_iter().map(move |tokens| MicroKernel::AddDot { format, tokens })
}

/// A token's adapter at a LoRA target; `ranks` is 0 without one.
pub struct AdapterEntry {
    at: Value,
    pub ranks: Value,
}

impl AdapterEntry {
    fn field(&self, e: &mut Emit, offset: usize) -> Value {
        e.load(I64, self.at, offset)
    }

    /// Packed A of an expert (of the only one without).
    pub fn a(&self, e: &mut Emit, expert: Option<Value>) -> Value {
        let a = self.field(e, offset_of!(LoraTargetEntry, a));
        self.of_expert(e, a, offset_of!(LoraTargetEntry, a_expert), expert)
    }

    /// Factors of the ranks.
    pub fn scale(&self, e: &mut Emit) -> Value {
        self.field(e, offset_of!(LoraTargetEntry, scale))
    }

    /// Packed B of an expert.
    pub fn b(&self, e: &mut Emit, expert: Option<Value>) -> Value {
        let b = self.field(e, offset_of!(LoraTargetEntry, b));
        self.of_expert(e, b, offset_of!(LoraTargetEntry, b_expert), expert)
    }

    fn of_expert(&self, e: &mut Emit, base: Value, stride: usize, expert: Option<Value>) -> Value {
        let Some(expert) = expert else { return base };
        let stride = self.field(e, stride);
        let offset = e.b.ins().imul(expert, stride);
        e.add(base, offset)
    }
}

impl Cx<'_> {
    /// `then`, if any token of the batch has an adapter.
    pub fn if_adapters(&self, e: &mut Emit, then: impl FnOnce(&mut Emit)) {
        let table = e.load(I64, self.args, offset_of!(Args, adapter_table));
        e.if_nonzero(table, then);
    }

    /// The adapter of a token at a LoRA target. Only when [`Cx::if_adapters`].
    pub fn adapter(&self, e: &mut Emit, lora_target: OperandId, token: Value) -> AdapterEntry {
        let table = e.load(I64, self.args, offset_of!(Args, adapter_table));
        let stride = e.load(I64, self.args, offset_of!(Args, adapter_stride));
        let slot = self.adapter_slot(e, token);
        let row = e.b.ins().imul(slot, stride);
        let lora_target = self.operand(e, lora_target);
        let at = e.add(table, row);
        let at = e.add(at, lora_target);
        let ranks = e.load(I64, at, offset_of!(LoraTargetEntry, ranks));
        AdapterEntry { at, ranks }
    }

    /// Adapter slot of a batch row.
    pub fn adapter_slot(&self, e: &mut Emit, row: Value) -> Value {
        self.arg_u32(e, offset_of!(Args, adapters), row)
    }

    /// Rows from `row` on that have its adapter slot, at most up to `end`.
    pub fn adapter_run(&self, e: &mut Emit, row: Value, end: Value) -> Value {
        let run = self.arg_u32(e, offset_of!(Args, adapter_runs), row);
        let left = e.b.ins().isub(end, row);
        e.min_u(run, left)
    }

    /// A value that is not 0 where a row's adapter slot is not that of the row before.
    pub fn starts_adapter_run(&self, e: &mut Emit, row: Value) -> Value {
        let one = e.i64(1);
        let none = e.i64(0);
        let is_first = e.icmp(IntCC::Equal, row, none);
        let before = e.b.ins().isub(row, one);
        let before = e.select(is_first, none, before);
        let (slot, before) = (self.adapter_slot(e, row), self.adapter_slot(e, before));
        let differs = e.b.ins().bxor(slot, before);
        e.select(is_first, one, differs)
    }

    /// Tiles of 16 ranks of the batch's largest rank.
    pub fn adapter_tiles(&self, e: &mut Emit) -> Value {
        e.load_u32(self.args, offset_of!(Args, adapter_tiles))
    }

    /// `then`, if a token has an adapter at one of the LoRA targets; without any target always.
    pub fn if_kept(
        &self,
        e: &mut Emit,
        lora_targets: &[OperandId],
        token: Value,
        then: impl FnOnce(&mut Emit),
    ) {
        if lora_targets.is_empty() {
            return then(e);
        }
        self.if_adapters(e, |e| {
            let mut any = e.i64(0);
            for lora_target in lora_targets {
                let entry = self.adapter(e, *lora_target, token);
                any = e.b.ins().bor(any, entry.ranks);
            }
            e.if_nonzero(any, then);
        });
    }
}

/// A tile of packed A or B times rows: `out[i] += tile * x[i]`.
#[derive(Clone, Copy)]
pub struct AddDots {
    pub format: WeightFormat,
    pub tile: Value,
    pub x: Value,
    pub x_stride: usize,
    pub out: Value,
    pub out_stride: usize,
    pub k: Value,
}

impl AddDots {
    /// Calls the micro-kernel for `tokens` rows.
    pub fn call(self, e: &mut Emit, cx: &Cx, tokens: usize) {
        let (x_stride, out_stride) = (e.i64(self.x_stride as i64), e.i64(self.out_stride as i64));
        let ukernel = MicroKernel::AddDot { format: self.format, tokens };
        e.call(cx.ukernel(ukernel), &[self.tile, self.x, x_stride, self.out, out_stride, self.k]);
    }
}

/// `body(first, count)` for groups of `rows` rows, as many at a time as micro-kernels take.
pub fn in_groups(e: &mut Emit, rows: Value, mut body: impl FnMut(&mut Emit, Value, usize)) {
    let mut start = e.i64(0);
    for tokens in TOKENS {
        let end = match tokens {
            1 => rows,
            _ => {
                let size = e.i64(tokens as i64);
                let rest = e.b.ins().urem(rows, size);
                e.b.ins().isub(rows, rest)
            }
        };
        e.for_range(start, end, tokens as i64, |e, row| body(e, row, tokens));
        start = end;
    }
}

/// Bytes of a tile of packed A or B with `k` columns.
pub fn tile_bytes(e: &mut Emit, format: WeightFormat, k: Value) -> Value {
    e.mul_imm(k, (LINE / per_line(format)) as i64)
}

/// Rows of results that belong together.
pub struct ResultRows {
    /// Row of the shrunk values of the first.
    pub shrunk: Value,
    /// The first's results of the first tile.
    pub y: Value,
    /// Bytes from one row's to the next's.
    pub stride: usize,
    /// Tiles of each.
    pub tiles: usize,
    /// How many.
    pub rows: Option<Value>,
}

/// Adds to rows of results; `first_tile` is that of the B.
pub fn add(
    e: &mut Emit,
    cx: &Cx,
    branch: &MatAdapter,
    entry: &AdapterEntry,
    b: Value,
    first_tile: Value,
    to: &ResultRows,
) {
    let bytes = tile_bytes(e, branch.format, entry.ranks);
    let before = e.b.ins().imul(first_tile, bytes);
    let b = e.add(b, before);
    // Rows outside: what is shrunk is read from the first-level cache for all tiles.
    let dots = |e: &mut Emit, row: Value, tokens: usize| {
        let (shrunk, y) = (e.at(to.shrunk, row, SHRUNK_STRIDE), e.at(to.y, row, to.stride));
        e.for_count(to.tiles, |e, tile| {
            let offset = e.b.ins().imul(tile, bytes);
            let dots = AddDots {
                format: branch.format,
                tile: e.add(b, offset),
                x: shrunk,
                x_stride: SHRUNK_STRIDE,
                out: e.at(y, tile, TILE_ROWS * 4),
                out_stride: to.stride,
                k: entry.ranks,
            };
            dots.call(e, cx, tokens);
        });
    };
    match to.rows {
        Some(rows) => in_groups(e, rows, dots),
        None => {
            let first = e.i64(0);
            dots(e, first, 1);
        }
    }
    let factor = entry.field(e, offset_of!(LoraTargetEntry, factor));
    e.if_nonzero(factor, |e| {
        let factor = e.at(factor, first_tile, TILE_ROWS * 4);
        let (zero, one) = (e.i64(0), e.i64(1));
        e.for_range(zero, to.rows.unwrap_or(one), 1, |e, row| {
            let y = e.at(to.y, row, to.stride);
            e.for_count(to.tiles * TILE_ROWS / LANES, |e, vector| {
                let (y, factor) = (e.at(y, vector, LANES * 4), e.at(factor, vector, LANES * 4));
                let (old, factor) = (e.load(F32X4, y, 0), e.load(F32X4, factor, 0));
                let new = e.fmul(old, factor);
                e.store(new, y, 0);
            });
        });
    });
}

/// Adds a token's adapter's part to all rows of a small matrix's product.
pub fn expand_row(e: &mut Emit, cx: &Cx, mat: &Mat, token: Value, y: Value) {
    let Some(branch) = &mat.adapter else { return };
    cx.if_adapters(e, |e| {
        let entry = cx.adapter(e, branch.lora_target, token);
        e.if_nonzero(entry.ranks, |e| {
            let b = entry.b(e, None);
            let shrunk = cx.row(e, branch.shrunk, token);
            let first_tile = e.i64(branch.first_tile as i64);
            let to = ResultRows { shrunk, y, stride: 0, tiles: mat.n.div_ceil(TILE_ROWS), rows: None };
            add(e, cx, branch, &entry, b, first_tile, &to);
        });
    });
}
