//! `lora_shrink`: every token's (slot's) row times the A of its adapter, scaled.
//!
//! For few tokens work items are tiles of A, so that workers share what comes from memory; for many they are
//! groups of tokens, whose rows stay in the cache while all of A passes. A kernel for many tokens does
//! either, by how many there are: at two to eight, groups would leave workers without work.

use crate::adapter::{AdapterEntry, AddDots, SHRUNK_STRIDE, in_groups, tile_bytes};
use crate::cx::Cx;
use crate::emit::{Emit, LANES};
use crate::floats;
use crate::kernel::{Body, Domain, Kernel, PROLOGUE_TOKENS, RowOp, ShrinkLoraTarget, ValId};
use crate::row_op;
use crate::ukernel::add_dot::TOKENS;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::F32X4;
use cranelift_codegen::ir::{InstBuilder, Value};
use kernmill_plan::format::TILE_ROWS;

/// Tokens of a work item when there are many.
const GROUP: usize = TOKENS[0];

/// The matrix and the rows that are shrunk.
struct Shrink<'k> {
    input: ValId,
    routed: Option<(ValId, usize, usize)>,
    input_slots: bool,
    lora_targets: &'k [ShrinkLoraTarget],
}

pub fn emit(e: &mut Emit, cx: &Cx, kernel: &Kernel) {
    let Body::Shrink { input, routed, input_slots, lora_targets, row_ops, by_rows } = &kernel.body else {
        return;
    };
    let shrink = Shrink { input: *input, routed: *routed, input_slots: *input_slots, lora_targets };
    cx.if_adapters(e, |e| {
        let tokens = cx.rows(e, Domain::Tokens);
        if !*by_rows {
            return shrink.by_tiles(e, cx, tokens);
        }
        let most = e.i64(PROLOGUE_TOKENS as i64);
        let are_few = e.icmp(IntCC::UnsignedLessThanOrEqual, tokens, most);
        let few = |e: &mut Emit| {
            // Scratch has room for their rows, which every worker computes.
            let zero = e.i64(0);
            run_stages(e, cx, row_ops, zero, tokens);
            shrink.by_tiles(e, cx, tokens);
        };
        e.if_else(are_few, few, |e| shrink.by_rows(e, cx, kernel, row_ops, tokens));
    });
}

/// The stages before the shrinking, for rows `first..end`.
fn run_stages(e: &mut Emit, cx: &Cx, row_ops: &[RowOp], first: Value, end: Value) {
    e.for_range(first, end, 1, |e, token| row_op::emit(e, cx, row_ops, token));
}

impl Shrink<'_> {
    fn by_tiles(&self, e: &mut Emit, cx: &Cx, tokens: Value) {
        let lora_targets = e.i64(self.lora_targets.len() as i64);
        let pieces = e.b.ins().imul(tokens, lora_targets);
        let tiles = cx.adapter_tiles(e);
        let total = e.b.ins().imul(tiles, pieces);
        cx.for_each_claimed(e, total, |e, item| {
            let tile = e.b.ins().udiv(item, pieces);
            let piece = e.b.ins().urem(item, pieces);
            let token = e.b.ins().udiv(piece, lora_targets);
            let number = e.b.ins().urem(piece, lora_targets);
            // The first of tokens with one adapter does the work for all of them.
            let first = cx.starts_adapter_run(e, token);
            e.if_nonzero(first, |e| {
                for (index, lora_target) in self.lora_targets.iter().enumerate() {
                    let wanted = e.i64(index as i64);
                    let is = e.icmp(IntCC::Equal, number, wanted);
                    e.if_then(is, |e| {
                        let run = cx.adapter_run(e, token, tokens);
                        self.run(e, cx, lora_target, (token, run), Some(tile));
                    });
                }
            });
        });
    }

    fn by_rows(&self, e: &mut Emit, cx: &Cx, kernel: &Kernel, row_ops: &[RowOp], tokens: Value) {
        let groups = e.add_imm(tokens, GROUP as i64 - 1);
        let size = e.i64(GROUP as i64);
        let groups = e.b.ins().udiv(groups, size);
        cx.for_each_claimed(e, groups, |e, group| {
            let first = e.mul_imm(group, GROUP as i64);
            let end = e.add_imm(first, GROUP as i64);
            let end = e.min_u(end, tokens);
            let zero = e.i64(0);
            let any = e.for_carry(first, end, 1, &[zero], |e, token, any| {
                let slot = cx.adapter_slot(e, token);
                vec![e.b.ins().bor(any[0], slot)]
            })[0];
            e.if_nonzero(any, |e| {
                // Rows of the scratch are those of the group.
                let cx = &cx.based_at(e, &kernel.vals, first);
                run_stages(e, cx, row_ops, first, end);
                for lora_target in self.lora_targets {
                    e.for_next(first, end, |e, token| {
                        let run = cx.adapter_run(e, token, end);
                        self.run(e, cx, lora_target, (token, run), None);
                        e.add(token, run)
                    });
                }
            });
        });
    }

    /// `run` tokens with one adapter at one LoRA target, from `token` on: one tile of ranks, or all.
    fn run(
        &self,
        e: &mut Emit,
        cx: &Cx,
        lora_target: &ShrinkLoraTarget,
        (token, run): (Value, Value),
        tile: Option<Value>,
    ) {
        let entry = cx.adapter(e, lora_target.lora_target, token);
        let all = e.add_imm(entry.ranks, TILE_ROWS as i64 - 1);
        let all = e.b.ins().ushr_imm_u(all, i64::from(TILE_ROWS.trailing_zeros()));
        let (from, to) = match tile {
            Some(tile) => {
                let behind = e.add_imm(tile, 1);
                (tile, e.min_u(behind, all))
            }
            None => (e.i64(0), all),
        };
        match self.routed {
            None => e.for_range(from, to, 1, |e, tile| {
                self.tile(e, cx, lora_target, &entry, tile, None, (token, token), run);
            }),
            Some((routing, experts, top_k)) => {
                let one = e.i64(1);
                let behind = e.add(token, run);
                e.for_range(token, behind, 1, |e, token| {
                    let routes = cx.row(e, routing, token);
                    e.for_count(top_k, |e, place| {
                        let route = e.at(routes, place, 8);
                        let expert = e.load_u32(route, 0);
                        // As in the body of the experts: no bytes may lead outside.
                        let last = e.i64(experts as i64 - 1);
                        let expert = e.min_u(expert, last);
                        let slot = e.mul_imm(token, top_k as i64);
                        let slot = e.add(slot, place);
                        let row = if self.input_slots { slot } else { token };
                        e.for_range(from, to, 1, |e, tile| {
                            self.tile(e, cx, lora_target, &entry, tile, Some(expert), (row, slot), one);
                        });
                    });
                });
            }
        }
    }

    /// A tile of ranks for `count` rows from the given rows of the input and of the output on.
    #[allow(clippy::too_many_arguments)]
    fn tile(
        &self,
        e: &mut Emit,
        cx: &Cx,
        lora_target: &ShrinkLoraTarget,
        entry: &AdapterEntry,
        tile: Value,
        expert: Option<Value>,
        (input, output): (Value, Value),
        count: Value,
    ) {
        let k = e.i64(cx.len(self.input) as i64);
        let a = entry.a(e, expert);
        let bytes = tile_bytes(e, lora_target.format, k);
        let before = e.b.ins().imul(tile, bytes);
        let out = cx.row(e, lora_target.out, output);
        let out = e.at(out, tile, TILE_ROWS * 4);
        let zero = e.i64(0);
        e.for_range(zero, count, 1, |e, row| {
            let out = e.at(out, row, SHRUNK_STRIDE);
            floats::zero(e, out, TILE_ROWS);
        });
        let (a, x) = (e.add(a, before), cx.row(e, self.input, input));
        let x_stride = cx.vals[self.input].stride();
        in_groups(e, count, |e, row, tokens| {
            let dots = AddDots {
                format: lora_target.format,
                tile: a,
                x: e.at(x, row, x_stride),
                x_stride,
                out: e.at(out, row, SHRUNK_STRIDE),
                out_stride: SHRUNK_STRIDE,
                k,
            };
            dots.call(e, cx, tokens);
        });
        let scale = entry.scale(e);
        let scale = e.at(scale, tile, TILE_ROWS * 4);
        e.for_range(zero, count, 1, |e, row| {
            let out = e.at(out, row, SHRUNK_STRIDE);
            for vector in 0..TILE_ROWS / LANES {
                let (s, scale) =
                    (e.load(F32X4, out, vector * LANES * 4), e.load(F32X4, scale, vector * LANES * 4));
                let s = e.fmul(s, scale);
                e.store(s, out, vector * LANES * 4);
            }
        });
    }
}
