//! Kernel bodies: everything but the innermost register tile. One file per body; [`emit`] starts every kernel.

pub mod adapter;
mod attention;
mod chunks;
mod epilogue;
mod experts;
mod gemm;
mod gemm_bf16;
mod hand_out;
mod matmul;
mod panels;
mod run;
mod shrink;

pub use crate::body::hand_out::{equal_shares, items_together};
use crate::emit::Emit;
use crate::kernel::{
    Body, Domain, Home, Kernel, OperandId, PROLOGUE_TOKENS, Part, RowType, Stage, Tiling, ValId,
};
use crate::leaf::Leaf;
use crate::scratch::Scratch;
use crate::stage::kv::KvSlot;
use crate::stage::{self, dot_leaf};
use crate::wide;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{FuncRef, InstBuilder, Value};
use kernmill_plan::abi::{Args, Worker};
use kernmill_plan::format::WeightFormat;
use kernmill_plan::kv::{BLOCK_TOKENS, KvGeometry, LayerKind};
use kernmill_plan::program::LOGIT_SLAB;
use kernmill_plan::target::Level;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

/// What every emitter within a kernel may refer to.
pub struct Cx<'k> {
    /// Value types, by [`ValId`].
    pub vals: Vec<RowType>,
    bases: Vec<Value>,
    args: Value,
    worker: Value,
    operands: Value,
    scratch: Value,
    layout: Layout,
    leaves: &'k BTreeMap<Leaf, FuncRef>,
}

/// Offsets in the worker's scratch.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    /// Row pointers `[max_rows]` for dot leaves.
    list: usize,
    /// One pointer, for `Stage::Linear`.
    linear_list: usize,
    /// Work area of top-k and of sorting a token's slots.
    topk: usize,
    /// Body-specific area.
    body: usize,
}

/// Leaves that a kernel calls at a level: those for adjacent tiles only where they are made for it, elsewhere those for one tile do.
pub fn leaves(kernel: &Kernel, level: Level) -> Vec<Leaf> {
    let rows = |val: &ValId| kernel.vals[*val].row;
    let q8 = |row: RowType| matches!(row, RowType::Q8(_));
    let bf16 = |val: &ValId| matches!(kernel.vals[*val].row, RowType::Bf16(_));
    let mut leaves = Vec::new();
    let stages = kernel.body.stages();
    let vals: Vec<RowType> = kernel.vals.iter().map(|val| val.row).collect();
    leaves.extend(kernel.prologue.iter().chain(stages).flat_map(|stage| stage::leaves(&vals, stage)));
    match &kernel.body {
        Body::Matmul { parts, .. } => {
            leaves.extend(parts.iter().flat_map(|part| epilogue::leaves(&vals, part, true)));
        }
        Body::Experts { part, .. } => leaves.extend(epilogue::leaves(&vals, part, false)),
        Body::ExpertDown { mat, unit, out, residual, .. } => {
            let part = experts::down_part(mat, *unit);
            leaves.extend(experts::down_leaves(&part, vals[*out], residual.map(|val| vals[val])));
        }
        _ => {}
    }
    let mut dots = |part: &Part, input: RowType| {
        leaves.extend(epilogue::fetch_leaf(part));
        for tokens in Leaf::dot_tokens(q8(input)) {
            leaves.extend(part.mats.iter().map(|mat| dot_leaf(mat, input, *tokens)));
            leaves.extend(
                matmul::adjacent_leaf(part, input, *tokens).filter(|leaf| wide::find(*leaf, level).is_some()),
            );
        }
    };
    match &kernel.body {
        Body::Rows { .. } | Body::Shrink { .. } => {}
        Body::Matmul { input, parts, .. } => parts.iter().for_each(|part| dots(part, rows(input))),
        Body::Experts { input, part, .. } if bf16(input) => leaves.extend(gemm_bf16::leaves(part)),
        Body::ExpertDown { input, mat, unit, .. } if bf16(input) => {
            leaves.extend(gemm_bf16::leaves(&experts::down_part(mat, *unit)));
        }
        Body::Experts { input, part, .. } => dots(part, rows(input)),
        Body::ExpertDown { input, mat, unit, .. } => dots(&experts::down_part(mat, *unit), rows(input)),
        Body::Attention(body) => leaves.extend(attention::leaves(body)),
    }
    if let Tiling::Gemm { products, .. } = kernel.tiling {
        match &kernel.body {
            Body::Matmul { parts, .. } => {
                leaves.extend(parts.iter().flat_map(|part| gemm::leaves(part, products, level)))
            }
            Body::Experts { input, part, .. } if !bf16(input) => {
                leaves.extend(gemm::leaves(part, products, level))
            }
            Body::ExpertDown { input, mat, unit, .. } if !bf16(input) => {
                leaves.extend(gemm::leaves(&experts::down_part(mat, *unit), products, level));
            }
            _ => {}
        }
    }
    let branches =
        kernel.mats().into_iter().filter_map(|mat| mat.adapter.as_ref()).map(|branch| branch.format);
    let sites = match &kernel.body {
        Body::Shrink { sites, .. } => sites.as_slice(),
        _ => &[],
    };
    let formats: BTreeSet<WeightFormat> = branches.chain(sites.iter().map(|site| site.format)).collect();
    leaves.extend(formats.into_iter().flat_map(adapter::leaves));
    leaves.sort();
    leaves.dedup();
    leaves
}

/// Bytes of scratch that a kernel needs.
pub fn scratch_bytes(kernel: &Kernel) -> usize {
    plan_scratch(kernel).1.used()
}

/// Scratch offsets of values homed there, the fixed layout, and what is used in all.
fn plan_scratch(kernel: &Kernel) -> (Vec<usize>, Scratch, Layout) {
    let mut scratch = Scratch::default();
    let prologue_rows = match &kernel.body {
        Body::Matmul { domain: Domain::Wanted, .. } => LOGIT_SLAB,
        _ => PROLOGUE_TOKENS,
    };
    let vals = kernel
        .vals
        .iter()
        .map(|val| match val.home {
            Home::Operand(_) => 0,
            Home::Scratch | Home::ScratchUnlessFirst(_) => scratch.take(val.row.stride() * prologue_rows),
        })
        .collect();
    let stages = kernel.body.stages();
    let work = kernel.prologue.iter().chain(stages).map(|stage| match stage {
        Stage::TopK { experts, .. } => experts.next_multiple_of(4) * 4,
        Stage::ExpertSum { top_k, .. } => top_k * 8,
        _ => 0,
    });
    let mut layout = Layout { topk: 0, list: 0, linear_list: 0, body: 0 };
    layout.topk = scratch.take(work.max().unwrap_or(0));
    layout.linear_list = scratch.take(8);
    layout.list = scratch.take(kernel.max_rows * 8);
    layout.body = scratch.used();
    let body = match &kernel.body {
        Body::Rows { .. } | Body::Shrink { .. } => 0,
        Body::Matmul { input, parts, .. } => {
            matmul::scratch_bytes(kernel.vals[*input].row, parts, kernel.max_rows, kernel.tiling)
        }
        Body::Experts { .. } | Body::ExpertDown { .. } => experts::scratch_bytes(kernel),
        Body::Attention(body) => attention::scratch_bytes(body),
    };
    scratch.take(body);
    (vals, scratch, layout)
}

/// Emits a whole kernel; `params` are the ABI's `args` and `worker`.
pub fn emit(e: &mut Emit, kernel: &Kernel, params: [Value; 2], leaves: &BTreeMap<Leaf, FuncRef>) {
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
            Home::ScratchUnlessFirst(id) => {
                let own = e.add_imm(scratch, *offset as i64);
                let shared = e.load(I64, operands, id * 8);
                e.select(index, own, shared)
            }
        })
        .collect();
    let vals = kernel.vals.iter().map(|val| val.row).collect();
    let cx = Cx { vals, bases, args, worker, operands, scratch, layout, leaves };
    if !kernel.prologue.is_empty() {
        let domain = match &kernel.body {
            Body::Matmul { domain, .. } => *domain,
            _ => Domain::Tokens,
        };
        let rows = cx.rows(e, domain);
        let zero = e.i64(0);
        e.for_range(zero, rows, 1, |e, row| {
            for stage in &kernel.prologue {
                stage::emit(e, &cx, stage, row);
            }
        });
    }
    match &kernel.body {
        Body::Rows { domain, stages } => {
            let rows = cx.rows(e, *domain);
            let (start, end) = cx.share(e, rows);
            e.for_range(start, end, 1, |e, row| {
                for stage in stages {
                    stage::emit(e, &cx, stage, row);
                }
            });
        }
        Body::Matmul { domain, input, parts } => {
            matmul::emit(e, &cx, *domain, *input, parts, kernel.max_rows, kernel.tiling);
        }
        Body::Experts { input, input_slots, routing, experts, top_k, part } => {
            let dynamic = kernel.max_rows > PROLOGUE_TOKENS * top_k;
            let routed = experts::Routed { routing: *routing, experts: *experts, top_k: *top_k };
            let rows = experts::RowLimits { max: kernel.max_rows, tiling: kernel.tiling };
            experts::up(e, &cx, routed, *input, *input_slots, part, rows, dynamic);
        }
        Body::ExpertDown { input, routing, experts, top_k, mat, unit, residual, out } => {
            let routed = experts::Routed { routing: *routing, experts: *experts, top_k: *top_k };
            let rows = experts::RowLimits { max: kernel.max_rows, tiling: kernel.tiling };
            let part = experts::down_part(mat, *unit);
            experts::down(e, &cx, routed, *input, &part, *residual, *out, rows);
        }
        Body::Attention(body) => attention::emit(e, &cx, body),
        Body::Shrink { .. } => shrink::emit(e, &cx, kernel),
    }
}

impl Cx<'_> {
    /// Address of an operand.
    pub fn operand(&self, e: &mut Emit, id: OperandId) -> Value {
        e.load(I64, self.operands, id * 8)
    }

    /// Address of a value's row.
    pub fn row(&self, e: &mut Emit, val: ValId, row: Value) -> Value {
        e.at(self.bases[val], row, self.vals[val].stride())
    }

    /// Elements of a value's rows.
    pub fn len(&self, val: ValId) -> usize {
        self.vals[val].len()
    }

    /// The imported leaf, if the kernel calls it at its level.
    pub fn try_leaf(&self, leaf: Leaf) -> Option<FuncRef> {
        self.leaves.get(&leaf).copied()
    }

    /// The imported leaf.
    pub fn leaf(&self, leaf: Leaf) -> FuncRef {
        self.leaves[&leaf]
    }

    /// Number of rows of a domain in this run.
    pub fn rows(&self, e: &mut Emit, domain: Domain) -> Value {
        match domain {
            Domain::Tokens => e.load_u32(self.args, offset_of!(Args, tokens)),
            Domain::Wanted => e.load_u32(self.args, offset_of!(Args, logit_rows)),
            Domain::Slots(k) => {
                let tokens = e.load_u32(self.args, offset_of!(Args, tokens));
                e.mul_imm(tokens, k as i64)
            }
        }
    }

    fn arg_u32(&self, e: &mut Emit, field: usize, index: Value) -> Value {
        let list = e.load(I64, self.args, field);
        let ptr = e.at(list, index, 4);
        e.load_u32(ptr, 0)
    }

    /// Token id of a batch row.
    pub fn token_id(&self, e: &mut Emit, row: Value) -> Value {
        self.arg_u32(e, offset_of!(Args, token_ids), row)
    }

    /// Position of a batch row.
    pub fn position(&self, e: &mut Emit, row: Value) -> Value {
        self.arg_u32(e, offset_of!(Args, positions), row)
    }

    /// Batch row of a wanted row.
    pub fn logit_index(&self, e: &mut Emit, row: Value) -> Value {
        self.arg_u32(e, offset_of!(Args, logit_index), row)
    }

    /// The rotary table's row (cos and sin, `head_dim` f32 in all) for a batch row's position.
    pub fn rope_row(&self, e: &mut Emit, table: OperandId, head_dim: usize, row: Value) -> Value {
        let base = self.operand(e, table);
        let position = self.position(e, row);
        e.at(base, position, head_dim * 4)
    }

    /// Sequence of a batch row: which row of the block tables is its own.
    pub fn sequence(&self, e: &mut Emit, row: Value) -> Value {
        self.arg_u32(e, offset_of!(Args, sequences), row)
    }

    /// The block table of a batch row's sequence.
    pub fn block_table(&self, e: &mut Emit, kind: LayerKind, row: Value) -> Value {
        let sequence = self.sequence(e, row);
        let table = e.load(I64, self.args, offset_of!(Args, block_tables) + kind.index() * 8);
        let entries = e.load_u32(self.args, offset_of!(Args, block_table_stride) + kind.index() * 4);
        let start = e.b.ins().imul(sequence, entries);
        e.at(table, start, 4)
    }

    /// Address of KV block number `index` (position / 16) in a block table.
    pub fn kv_block(
        &self,
        e: &mut Emit,
        pool: Value,
        table: Value,
        index: Value,
        geometry: &KvGeometry,
    ) -> Value {
        let entry = e.at(table, index, 4);
        let block = e.load_u32(entry, 0);
        e.at(pool, block, geometry.block_bytes())
    }

    /// Where a batch row's keys and values go.
    pub fn kv_slot(
        &self,
        e: &mut Emit,
        pool: OperandId,
        kind: LayerKind,
        geometry: &KvGeometry,
        row: Value,
    ) -> KvSlot {
        let pool = self.operand(e, pool);
        let table = self.block_table(e, kind, row);
        let position = self.position(e, row);
        let index = e.b.ins().ushr_imm_u(position, i64::from(BLOCK_TOKENS.trailing_zeros()));
        let block = self.kv_block(e, pool, table, index, geometry);
        let token = e.b.ins().band_imm_u(position, BLOCK_TOKENS as i64 - 1);
        KvSlot { block, token }
    }

    /// Row pointer list.
    pub fn list(&self, e: &mut Emit) -> Value {
        e.add_imm(self.scratch, self.layout.list as i64)
    }

    /// One-entry pointer list.
    pub fn linear_list(&self, e: &mut Emit) -> Value {
        e.add_imm(self.scratch, self.layout.linear_list as i64)
    }

    /// Work area of top-k and of sorting slots.
    pub fn topk_scratch(&self, e: &mut Emit) -> Value {
        e.add_imm(self.scratch, self.layout.topk as i64)
    }

    /// Address within the body's own area.
    pub fn body_scratch(&self, e: &mut Emit, offset: usize) -> Value {
        e.add_imm(self.scratch, (self.layout.body + offset) as i64)
    }

    /// The same of worker 0's, which all workers of the step may write to.
    pub fn common_scratch(&self, e: &mut Emit, offset: usize) -> Value {
        let scratch = e.load(I64, self.worker, offset_of!(Worker, first_scratch));
        e.add_imm(scratch, (self.layout.body + offset) as i64)
    }
}
