//! Stages: what is done to one row. One file per kind of work; each takes addresses and emits loops over the
//! row.

pub mod bf16;
pub mod elementwise;
pub mod embed;
pub mod expert_sum;
pub mod hadamard;
pub mod kv;
mod kv_integers;
mod kv_plane;
pub mod quantize;
pub mod rope;
pub mod topk;

use crate::adapter;
use crate::cx::Cx;
use crate::emit::Emit;
use crate::kernel::{FloatBits, Mat, RowOp, RowType};
use crate::ukernel::MicroKernel;
use cranelift_codegen::ir::Value;
use kernmill_plan::format::TILE_ROWS;
use kernmill_plan::kv::hadamard_block;

/// Micro-kernels that a stage calls.
pub fn ukernels(vals: &[RowType], row_op: &RowOp) -> Vec<MicroKernel> {
    match row_op {
        RowOp::RmsNorm { x, eps, .. } => vec![norm_ukernel(vals[*x].len(), *eps)],
        RowOp::Quantize { .. } => vec![MicroKernel::Quantize],
        RowOp::Elementwise { expr, inputs, out } => {
            elementwise::map(expr, inputs.len(), vals[*out].len()).map(MicroKernel::Map).into_iter().collect()
        }
        RowOp::Linear { x, mat, .. } => vec![dot_ukernel(mat, vals[*x], 1)],
        _ => Vec::new(),
    }
}

fn norm_ukernel(n: usize, eps: FloatBits) -> MicroKernel {
    MicroKernel::RmsNorm { n, eps: eps.bits() }
}

/// Emits `row_op` for row `row` of its values.
pub fn emit(e: &mut Emit, cx: &Cx, row_op: &RowOp, row: Value) {
    match row_op {
        RowOp::Embed { table, format, row_bytes, out } => {
            let token = cx.token_id(e, row);
            let table = cx.operand(e, *table);
            let target = cx.row(e, *out, row);
            embed::emit(e, *format, (table, *row_bytes), token, target, cx.len(*out));
        }
        RowOp::RmsNorm { x, weight, eps, out } => {
            let (source, target) = (cx.row(e, *x, row), cx.row(e, *out, row));
            let weight = cx.operand(e, *weight);
            e.call(cx.ukernel(norm_ukernel(cx.len(*x), *eps)), &[source, weight, target]);
        }
        RowOp::Quantize { x, out } => {
            let (source, target) = (cx.row(e, *x, row), cx.row(e, *out, row));
            let target = quantize::Q8Ptr::of_row(e, target, cx.len(*out));
            quantize::emit(e, cx, source, target, cx.len(*x));
        }
        RowOp::Bf16Cast { x, out } => {
            let (source, target) = (cx.row(e, *x, row), cx.row(e, *out, row));
            bf16::emit(e, source, target, cx.len(*x));
        }
        RowOp::Elementwise { expr, inputs, out } => {
            let sources: Vec<Value> = inputs.iter().map(|x| cx.row(e, *x, row)).collect();
            let target = cx.row(e, *out, row);
            elementwise::emit(e, cx, expr, &sources, target, cx.len(*out));
        }
        RowOp::Rope { x, table, head_dim, out } => {
            let (source, target) = (cx.row(e, *x, row), cx.row(e, *out, row));
            let table = cx.rope_row(e, *table, *head_dim, row);
            e.for_count(cx.len(*x) / head_dim, |e, head| {
                let (source, target) = (e.at(source, head, head_dim * 4), e.at(target, head, head_dim * 4));
                rope::emit(e, source, table, target, *head_dim);
            });
        }
        RowOp::Hadamard { x, head_dim, out } => {
            let (source, target) = (cx.row(e, *x, row), cx.row(e, *out, row));
            hadamard::emit(e, source, target, cx.len(*x), hadamard_block(*head_dim));
        }
        RowOp::KvCast { x, to, out } => {
            let (source, target) = (cx.row(e, *x, row), cx.row(e, *out, row));
            kv::cast(e, source, target, cx.len(*x), *to);
        }
        RowOp::KvStore { x, pool, plane, kind, geometry } => {
            let source = cx.row(e, *x, row);
            let slot = cx.kv_slot(e, *pool, *kind, geometry, row);
            kv::store_row(e, source, slot, *plane, geometry);
        }
        RowOp::Linear { x, mat, out } => linear(e, cx, mat, *x, *out, row),
        RowOp::TopK { x, experts, k, out } => {
            let (logits, target) = (cx.row(e, *x, row), cx.row(e, *out, row));
            let work = cx.topk_scratch(e);
            topk::emit(e, logits, work, target, *experts, *k);
        }
        RowOp::SelectRow { x, out } => {
            let source_row = cx.logit_index(e, row);
            let (source, target) = (cx.row(e, *x, source_row), cx.row(e, *out, row));
            elementwise::copy(e, source, target, cx.len(*out));
        }
        RowOp::ExpertSum { y, routing, top_k, out } => {
            let first = e.mul_imm(row, *top_k as i64);
            let rows = cx.row(e, *y, first);
            let (routes, target) = (cx.row(e, *routing, row), cx.row(e, *out, row));
            let work = cx.topk_scratch(e);
            expert_sum::emit(e, rows, cx.vals[*y].stride(), routes, work, target, *top_k, cx.len(*out));
        }
    }
}

/// A whole small matrix times one row.
fn linear(e: &mut Emit, cx: &Cx, mat: &Mat, x: usize, out: usize, row: Value) {
    let ukernel = dot_ukernel(mat, cx.vals[x], 1);
    let (source, target) = (cx.row(e, x, row), cx.row(e, out, row));
    let list = cx.linear_list(e);
    e.store(source, list, 0);
    let base = cx.operand(e, mat.operand);
    let stride = e.i64(0);
    e.for_count(mat.n.div_ceil(TILE_ROWS), |e, tile| {
        let weights = e.at(base, tile, mat.tile_stride);
        let target = e.at(target, tile, TILE_ROWS * 4);
        e.call(cx.ukernel(ukernel), &[weights, list, target, stride]);
    });
    adapter::expand_row(e, cx, mat, row, target);
    if let Some(bias) = mat.bias {
        let bias = cx.operand(e, bias);
        elementwise::add_in_place(e, target, bias, mat.n);
    }
}

/// The dot micro-kernel for `tokens` rows of an input of that type.
pub fn dot_ukernel(mat: &Mat, input: RowType, tokens: usize) -> MicroKernel {
    let (format, k) = (mat.format, mat.k);
    match input {
        RowType::Q8(_) => MicroKernel::DotQ8 { format, k, tokens },
        _ => MicroKernel::DotF32 { format, k, tokens },
    }
}
