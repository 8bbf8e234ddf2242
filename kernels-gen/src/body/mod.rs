//! Kernel bodies: everything but the innermost register tile. One file per body; [`emit`] starts every
//! kernel.

mod adapters;
mod attention;
mod attention_calls;
mod attention_items;
mod attention_scratch;
mod attention_ukernels;
mod chunks;
mod epilogue;
mod expert_groups;
mod experts;
mod gemm;
mod gemm_bf16;
mod gemm_tiles;
mod integer_attention;
mod listed;
mod matmul;
mod panel_step;
mod panels;
mod shrink;
mod term_lists;
mod tile_order;
mod work_sharing;

use crate::adapter;
use crate::asm;
use crate::body::expert_groups::ExpertRouting;
pub use crate::body::work_sharing::items_per_claim;
use crate::cx::{Cx, ScratchLayout};
use crate::emit::Emit;
use crate::kernel::{Body, Domain, Home, Kernel, MatrixPart, PROLOGUE_TOKENS, RowType, Tiling, ValId};
use crate::row_op::{self, linear::dot_ukernel};
use crate::scratch::Scratch;
use crate::ukernel::MicroKernel;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{FuncRef, Value};
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::abi::Worker;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

/// Micro-kernels that a kernel calls at a level: those for adjacent tiles only where they are made for it,
/// elsewhere those for one tile do.
pub fn ukernels(kernel: &Kernel, level: Level) -> Vec<MicroKernel> {
    let rows = |val: &ValId| kernel.vals[*val].row;
    let q8 = RowType::is_q8;
    let bf16 = |val: &ValId| matches!(kernel.vals[*val].row, RowType::Bf16(_));
    let mut ukernels = Vec::new();
    let row_ops = kernel.body.row_ops();
    let vals: Vec<RowType> = kernel.vals.iter().map(|val| val.row).collect();
    ukernels.extend(kernel.prologue.iter().chain(row_ops).flat_map(|op| op.code().ukernels(&vals, None)));
    match &kernel.body {
        Body::Matmul { parts, .. } => {
            let listed = kernel.body.listed_part();
            let parts = parts.iter().chain(&listed);
            ukernels.extend(parts.flat_map(|part| epilogue::ukernels(&vals, part, true)));
        }
        Body::Experts { part, .. } => ukernels.extend(epilogue::ukernels(&vals, part, false)),
        Body::ExpertDown { mat, rows_per_item, out, residual, .. } => {
            let part = MatrixPart::down(mat, *rows_per_item);
            ukernels.extend(experts::down_ukernels(&part, vals[*out], residual.map(|val| vals[val])));
        }
        _ => {}
    }
    let mut dots = |part: &MatrixPart, input: RowType| {
        ukernels.extend(epilogue::fetch_ukernel(part));
        for tokens in MicroKernel::dot_tokens(q8(input)) {
            let each = part.mats.iter().map(|mat| dot_ukernel(mat, input, *tokens));
            let is_wide = |ukernel: &MicroKernel| asm::find(ukernel, level).is_some();
            ukernels.extend(each.filter(|ukernel| q8(input) || *tokens <= 2 || is_wide(ukernel)));
            ukernels.extend(
                matmul::x4_ukernel(part, input, *tokens)
                    .filter(|ukernel| asm::find(ukernel, level).is_some()),
            );
        }
    };
    match &kernel.body {
        Body::Rows { .. } | Body::Panels { .. } | Body::Shrink { .. } => {}
        Body::Matmul { input, parts, .. } => parts.iter().for_each(|part| dots(part, rows(input))),
        Body::Experts { input, part, .. } if bf16(input) => ukernels.extend(gemm_bf16::ukernels(part)),
        Body::ExpertDown { input, mat, rows_per_item, .. } if bf16(input) => {
            ukernels.extend(gemm_bf16::ukernels(&MatrixPart::down(mat, *rows_per_item)));
        }
        Body::Experts { input, part, .. } => dots(part, rows(input)),
        Body::ExpertDown { input, mat, rows_per_item, .. } => {
            dots(&MatrixPart::down(mat, *rows_per_item), rows(input))
        }
        Body::Attention(body) => ukernels.extend(attention_ukernels::ukernels(body, vals[body.q].stride())),
    }
    if let Tiling::Gemm { products, .. } = kernel.tiling {
        match &kernel.body {
            Body::Matmul { parts, .. } => {
                ukernels.extend(parts.iter().flat_map(|part| gemm::ukernels(part, products, level)))
            }
            Body::Experts { input, part, .. } if !bf16(input) => {
                ukernels.extend(gemm::ukernels(part, products, level))
            }
            Body::ExpertDown { input, mat, rows_per_item, .. } if !bf16(input) => {
                ukernels.extend(gemm::ukernels(&MatrixPart::down(mat, *rows_per_item), products, level));
            }
            _ => {}
        }
    }
    if let Tiling::Tiles { .. } = kernel.tiling {
        match &kernel.body {
            Body::Matmul { parts, .. } => ukernels.extend(parts.iter().flat_map(gemm_tiles::ukernels)),
            Body::Experts { part, .. } => ukernels.extend(gemm_tiles::ukernels(part)),
            Body::ExpertDown { mat, rows_per_item, .. } => {
                ukernels.extend(gemm_tiles::ukernels(&MatrixPart::down(mat, *rows_per_item)));
            }
            _ => {}
        }
    }
    let branches =
        kernel.mats().into_iter().filter_map(|mat| mat.adapter.as_ref()).map(|branch| branch.format);
    let lora_targets = match &kernel.body {
        Body::Shrink { lora_targets, .. } => lora_targets.as_slice(),
        _ => &[],
    };
    let formats: BTreeSet<WeightFormat> =
        branches.chain(lora_targets.iter().map(|lora_target| lora_target.format)).collect();
    ukernels.extend(formats.into_iter().flat_map(adapter::ukernels));
    ukernels.sort();
    ukernels.dedup();
    ukernels
}

/// Bytes of scratch that a kernel needs.
pub fn scratch_bytes(kernel: &Kernel) -> usize {
    plan_scratch(kernel).1.used()
}

/// Scratch offsets of values homed there, the fixed layout, and what is used in all.
fn plan_scratch(kernel: &Kernel) -> (Vec<usize>, Scratch, ScratchLayout) {
    let mut scratch = Scratch::default();
    let prologue_rows = match &kernel.body {
        Body::Matmul { domain: Domain::LogitRows, .. } => LOGIT_SLAB,
        _ => PROLOGUE_TOKENS,
    };
    let vals = kernel
        .vals
        .iter()
        .map(|val| match val.home {
            Home::Operand(_) => 0,
            Home::Scratch | Home::ScratchExceptWorker0(_) => scratch.take(val.row.stride() * prologue_rows),
        })
        .collect();
    let parts = match &kernel.body {
        Body::Matmul { parts, .. } => parts.as_slice(),
        Body::Experts { part, .. } => std::slice::from_ref(part),
        _ => &[],
    };
    let epilogues = parts.iter().flat_map(|part| &part.epilogue);
    let row_ops = kernel.prologue.iter().chain(kernel.body.row_ops()).chain(epilogues);
    let len = |val: ValId| kernel.vals[val].row.len();
    let work = row_ops.map(|op| op.code().work_bytes(&len)).max().unwrap_or(0);
    let lists = match &kernel.body {
        Body::Matmul { input, .. } | Body::Panels { input, .. } => {
            term_lists::lists_of(kernel.vals[*input].row)
        }
        _ => 1,
    };
    // In the order of their places.
    let layout = ScratchLayout {
        work: scratch.take(work),
        linear_list: scratch.take(8),
        list: scratch.take(lists * kernel.max_rows * 8),
        body: scratch.used(),
    };
    let body = match &kernel.body {
        Body::Rows { .. } | Body::Shrink { .. } => 0,
        Body::Matmul { input, parts, .. } => matmul::scratch_bytes(kernel, kernel.vals[*input].row, parts),
        Body::Panels { routed, .. } => panel_step::scratch_bytes(*routed, kernel.max_rows),
        Body::Experts { .. } | Body::ExpertDown { .. } => experts::scratch_bytes(kernel),
        Body::Attention(body) => attention_scratch::scratch_bytes(body),
    };
    scratch.take(body);
    (vals, scratch, layout)
}

/// Emits a whole kernel; `params` are the ABI's `args` and `worker`.
pub fn emit(e: &mut Emit, kernel: &Kernel, params: [Value; 2], ukernels: &BTreeMap<MicroKernel, FuncRef>) {
    let [args, worker] = params;
    let (val_offsets, _, layout) = plan_scratch(kernel);
    let operands = e.load(I64, worker, offset_of!(Worker, operands));
    let scratch = e.load(I64, worker, offset_of!(Worker, scratch));
    let index = e.load_u32(worker, offset_of!(Worker, index));
    let bases = kernel
        .vals
        .iter()
        .zip(&val_offsets)
        .map(|(val, offset)| match val.home {
            Home::Operand(id) => e.load(I64, operands, id * 8),
            Home::Scratch => e.add_imm(scratch, *offset as i64),
            Home::ScratchExceptWorker0(id) => {
                let own = e.add_imm(scratch, *offset as i64);
                let shared = e.load(I64, operands, id * 8);
                e.select(index, own, shared)
            }
        })
        .collect();
    let vals = kernel.vals.iter().map(|val| val.row).collect();
    let cx = Cx { vals, bases, args, worker, operands, scratch, layout, ukernels };
    if !kernel.prologue.is_empty() {
        let domain = match &kernel.body {
            Body::Matmul { domain, .. } => *domain,
            _ => Domain::Tokens,
        };
        let rows = cx.rows(e, domain);
        let zero = e.i64(0);
        e.for_range(zero, rows, 1, |e, row| row_op::emit(e, &cx, &kernel.prologue, row));
    }
    match &kernel.body {
        Body::Rows { domain, row_ops } => {
            let rows = cx.rows(e, *domain);
            let (start, end) = cx.share(e, rows);
            e.for_range(start, end, 1, |e, row| row_op::emit(e, &cx, row_ops, row));
        }
        Body::Matmul { domain, input, parts } => matmul::emit(e, &cx, kernel, *domain, *input, parts),
        Body::Experts { input, input_slots, routing, experts, top_k, part, even_rows } => {
            let routed = ExpertRouting { routing: *routing, experts: *experts, top_k: *top_k };
            experts::up(e, &cx, kernel, routed, (*input, *input_slots), part, *even_rows);
        }
        Body::ExpertDown { input, routing, experts, top_k, mat, rows_per_item, residual, out } => {
            let routed = ExpertRouting { routing: *routing, experts: *experts, top_k: *top_k };
            let part = MatrixPart::down(mat, *rows_per_item);
            experts::down(e, &cx, kernel, routed, *input, &part, *residual, *out);
        }
        Body::Panels { domain, input, routed, panels } => {
            let rows = (kernel.max_rows, kernel.tiling);
            panel_step::emit(e, &cx, (*domain, *input), *routed, panels, rows);
        }
        Body::Attention(body) => attention::emit(e, &cx, body),
        Body::Shrink { .. } => shrink::emit(e, &cx, kernel),
    }
}
