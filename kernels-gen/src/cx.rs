//! The context of a kernel's code: its operands, the batch's arguments, its scratch, the micro-kernels that
//! it calls.

use crate::emit::Emit;
use crate::ukernel::MicroKernel;
use crate::values::{Domain, Home, OperandId, RowType, Val, ValId};
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{FuncRef, InstBuilder, Value};
use kernmill_plan::abi::{Args, Worker};
use kernmill_plan::kv::{BLOCK_TOKENS, KvGeometry, LayerKind};
use std::collections::BTreeMap;
use std::mem::offset_of;

/// The context of every emitter within a kernel.
pub struct Cx<'k> {
    /// Value types, by [`ValId`].
    pub vals: Vec<RowType>,
    pub(crate) bases: Vec<Value>,
    pub(crate) args: Value,
    pub(crate) worker: Value,
    pub(crate) operands: Value,
    pub(crate) scratch: Value,
    pub(crate) layout: ScratchLayout,
    pub(crate) ukernels: &'k BTreeMap<MicroKernel, FuncRef>,
}

/// Offsets in the worker's scratch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScratchLayout {
    /// Row pointers `[max_rows]` for dot micro-kernels.
    pub(crate) list: usize,
    /// One pointer, for small matrices of row operations.
    pub(crate) linear_list: usize,
    /// Work area of row operations.
    pub(crate) work: usize,
    /// Body-specific area.
    pub(crate) body: usize,
}

/// Where one token's keys and values go.
#[derive(Clone, Copy)]
pub struct KvSlot {
    /// The token's block.
    pub block: Value,
    /// The token within the block, 0..16.
    pub token: Value,
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

    /// The imported micro-kernel, if the kernel calls it at its level.
    pub fn try_ukernel(&self, ukernel: MicroKernel) -> Option<FuncRef> {
        self.ukernels.get(&ukernel).copied()
    }

    /// The imported micro-kernel.
    pub fn ukernel(&self, ukernel: MicroKernel) -> FuncRef {
        self.ukernels[&ukernel]
    }

    /// Number of rows of a domain in this run.
    pub fn rows(&self, e: &mut Emit, domain: Domain) -> Value {
        match domain {
            Domain::Tokens => e.load_u32(self.args, offset_of!(Args, tokens)),
            Domain::LogitRows => e.load_u32(self.args, offset_of!(Args, logit_rows)),
            Domain::Slots(k) => {
                let tokens = e.load_u32(self.args, offset_of!(Args, tokens));
                e.mul_imm(tokens, k as i64)
            }
        }
    }

    pub(crate) fn arg_u32(&self, e: &mut Emit, field: usize, index: Value) -> Value {
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

    /// Last position of a batch row's sequence in the batch.
    pub fn last_position(&self, e: &mut Emit, row: Value) -> Value {
        self.arg_u32(e, offset_of!(Args, last_positions), row)
    }

    /// Batch row of a wanted row.
    pub fn logit_index(&self, e: &mut Emit, row: Value) -> Value {
        self.arg_u32(e, offset_of!(Args, logit_index), row)
    }

    /// The rotary table's row (cos and sin, `rotary_dim` f32 in all) for a batch row's position.
    pub fn rope_row(&self, e: &mut Emit, table: OperandId, rotary_dim: usize, row: Value) -> Value {
        let base = self.operand(e, table);
        let position = self.position(e, row);
        e.at(base, position, rotary_dim * 4)
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

    /// Work area of row operations.
    pub fn work_scratch(&self, e: &mut Emit) -> Value {
        e.add_imm(self.scratch, self.layout.work as i64)
    }

    /// Address within the body's own area.
    pub fn body_scratch(&self, e: &mut Emit, offset: usize) -> Value {
        e.add_imm(self.scratch, (self.layout.body + offset) as i64)
    }

    /// Address within the body's area of worker 0, which all workers of the step may write to.
    pub fn common_scratch(&self, e: &mut Emit, offset: usize) -> Value {
        let scratch = e.load(I64, self.worker, offset_of!(Worker, first_scratch));
        e.add_imm(scratch, (self.layout.body + offset) as i64)
    }
}

impl<'k> Cx<'k> {
    /// This context of a kernel with such values, but row `first` of what is homed in scratch is its first
    /// row.
    pub fn based_at(&self, e: &mut Emit, vals: &[Val], first: Value) -> Cx<'k> {
        let bases = vals.iter().zip(&self.bases).map(|(val, base)| match val.home {
            Home::Operand(_) => *base,
            Home::Scratch | Home::ScratchExceptWorker0(_) => {
                let before = e.mul_imm(first, val.row.stride() as i64);
                e.b.ins().isub(*base, before)
            }
        });
        let bases = bases.collect();
        Cx { vals: self.vals.clone(), bases, ..*self }
    }
}
