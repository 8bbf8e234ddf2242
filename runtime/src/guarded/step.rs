//! One step at a time: who may touch what, and what is left behind.

use super::Guarded;
use super::batch::GuardedBatch;
use super::config::PATTERN;
use super::fence::{Fenced, PageAccess};
use kernmill_plan::abi::{Args, COUNTERS, KernelFn, Worker};
use kernmill_plan::format::LINE;
use kernmill_plan::hand_out::WorkersByNode;
use kernmill_plan::kv::{BLOCK_TOKENS, LayerKind};
use kernmill_plan::program::{Operand, Step};
use std::ops::Range;
use std::sync::atomic::AtomicU32;

/// A step's counters of two nodes, on separate lines.
#[repr(align(64))]
#[derive(Default)]
struct GuardedCounters([[AtomicU32; COUNTERS]; 2]);

impl Guarded<'_> {
    /// Runs some steps of class number `at`, those for logits behind the others, over rows `wanted` of the
    /// batch. With `tiles`, the steps are the last one, which computes only these tiles of logits.
    pub(super) fn steps(
        &mut self,
        at: usize,
        steps: Range<usize>,
        batch: &GuardedBatch,
        wanted: &[u32],
        tiles: Option<&[u32]>,
    ) -> Result<(), String> {
        let program = self.program;
        let class = &program.classes[at];
        let holding = |numbers: &[u32]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            batch.config.holding(&bytes, 4)
        };
        let (wanted_rows, listed) = (holding(wanted), tiles.map(holding));
        for number in steps {
            let step = class.steps.iter().chain(&class.logit_steps).nth(number).expect("a step of the class");
            let has = |lora_targets: &[u32]| {
                let adapter = self.adapter.as_ref();
                adapter.is_some_and(|adapter| {
                    lora_targets.iter().any(|lora_target| adapter.lora_targets.contains(lora_target))
                })
            };
            if !step.lora_targets.is_empty() && !has(&step.lora_targets) {
                continue;
            }
            let lora_target = |operand: &Operand| match *operand {
                Operand::LoraTarget(lora_target) => Some(lora_target),
                _ => None,
            };
            let looks_at: Vec<u32> = step.operands.iter().filter_map(lora_target).collect();
            let mut args = self.arguments(batch, wanted.len() as u32, &wanted_rows, has(&looks_at));
            if let Some((tiles, listed)) = tiles.zip(listed.as_ref()) {
                args.logit_tile_count = tiles.len() as u32;
                args.logit_tiles = listed.address() as *const u32;
            }
            self.open(at, step);
            self.call(at, step, &args);
            self.untouched(at, step)?;
            if number < class.steps.len() {
                self.drop_dead(at, number as u32);
            }
        }
        Ok(())
    }

    /// Opens the step's buffers, and no others.
    fn open(&mut self, at: usize, step: &Step) {
        for (id, buffer) in self.classes[at].buffers.iter_mut().enumerate() {
            let id = id as u32;
            buffer.allow(if step.writes.contains(&id) {
                PageAccess::Write
            } else if step.reads.contains(&id) {
                PageAccess::Read
            } else {
                PageAccess::Nothing
            });
        }
    }

    /// Drops the values that no later step reads.
    fn drop_dead(&mut self, at: usize, step: u32) {
        let class = &self.program.classes[at];
        for (buffer, memory) in class.buffers.iter().zip(&mut self.classes[at].buffers) {
            if buffer.last == step {
                memory.allow(PageAccess::Write);
                memory.fill(PATTERN);
            }
        }
    }

    /// All workers' turns.
    fn call(&mut self, at: usize, step: &Step, args: &Args) {
        let operands: Vec<u8> =
            step.operands.iter().flat_map(|operand| self.address(at, operand).to_le_bytes()).collect();
        let operands = self.config.holding(&operands, 8);
        let symbol = &self.program.code.symbols[step.kernel as usize];
        let address = self.code.address(symbol.offset as usize);
        // The last worker is on a node of its own.
        let nodes = match self.config.workers {
            1 => WorkersByNode::of_one(1),
            workers => WorkersByNode::counted([workers - 1, 1]),
        };
        let counters = GuardedCounters::default();
        let first_scratch = self.scratch[0].address() as *mut u8;
        for (index, scratch) in self.scratch.iter().enumerate() {
            let worker = Worker {
                index: index as u32,
                count: self.config.workers,
                scratch: scratch.address() as *mut u8,
                counters: counters.0.as_ptr().cast(),
                operands: operands.address() as *const u64,
                first_scratch,
                node_starts: nodes.starts().as_ptr(),
                nodes: nodes.nodes() as u32,
                node: nodes.node_of(index as u32) as u32,
            };
            // SAFETY: by the contract of `new` the code is a kernel of the checked program. Its accesses
            // beyond its operands are the subject of the test.
            unsafe {
                let kernel = std::mem::transmute::<*const u8, KernelFn>(address);
                kernel(args, &raw const worker);
            }
        }
    }

    fn arguments(&self, batch: &GuardedBatch, logit_rows: u32, wanted: &Fenced, adapted: bool) -> Args {
        let stride = self.config.context / BLOCK_TOKENS as u32;
        let adapter = self.adapter.as_ref();
        let at = |memory: &Fenced| memory.address() as *const u32;
        let lora_targets =
            self.program.model.adapters.as_ref().map_or(0, |adapters| adapters.lora_targets.len());
        Args {
            tokens: batch.tokens,
            logit_rows,
            token_ids: at(&batch.ids),
            positions: at(&batch.positions),
            sequences: at(&batch.sequences),
            adapters: at(&batch.adapters),
            logit_index: at(wanted),
            block_tables: [self.table(LayerKind::Full), self.table(LayerKind::Sliding)],
            block_table_stride: [stride; 2],
            adapter_table: match adapter.filter(|_| adapted) {
                Some(adapter) => adapter.table.address() as *const _,
                None => std::ptr::null(),
            },
            adapter_stride: (lora_targets * LINE) as u64,
            adapter_runs: at(&batch.runs),
            adapter_tiles: adapter.map_or(0, |adapter| adapter.tiles),
            logit_tile_count: 0,
            logit_tiles: std::ptr::null(),
            last_positions: at(&batch.last_positions),
        }
    }

    /// Bytes beside the step's own, on the pages of the memory that it could write, are as they were.
    fn untouched(&self, at: usize, step: &Step) -> Result<(), String> {
        let class = &self.program.classes[at];
        let buffers = step.writes.iter().map(|id| {
            let id = *id as usize;
            (class.buffers[id].name.as_str(), &self.classes[at].buffers[id])
        });
        let scratch = self.scratch.iter().map(|memory| ("scratch", memory));
        let pools = self.pools.iter().map(|memory| ("the KV pool", memory));
        for (name, memory) in buffers.chain(scratch).chain(pools) {
            let [before, after] = memory.slack();
            if let Some(byte) = after.iter().position(|byte| *byte != PATTERN) {
                return Err(format!("step {} wrote byte {byte} behind {name}", step.label));
            }
            if let Some(byte) = before.iter().rposition(|byte| *byte != PATTERN) {
                let byte = before.len() - byte;
                return Err(format!("step {} wrote byte {byte} before {name}", step.label));
            }
        }
        Ok(())
    }
}
