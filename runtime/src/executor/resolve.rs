//! Steps with their operands as absolute addresses.

use super::prefetch::NextStepPrefetch;
use super::vocab_tiles::VocabTiles;
use crate::code::ExecutableCode;
use kernmill_plan::abi::{COUNTERS, ChosenExpert, KernelFn};
use kernmill_plan::adapter::LoraTargetEntry;
use kernmill_plan::hand_out::WorkersByNode;
use kernmill_plan::program::{Operand, Program, Routing, Step, StepWork, TokenClass};
use std::sync::atomic::AtomicU32;

/// Where things are.
pub(super) struct Bases {
    pub weights: u64,
    pub arena: u64,
    /// By layer.
    pub kv: Vec<u64>,
    /// By rotary table.
    pub ropes: Vec<u64>,
    pub workers: WorkersByNode,
}

/// A token class, ready to run.
pub(super) struct ResolvedClass {
    pub max_tokens: u32,
    pub steps: Vec<StepCall>,
    pub logit_steps: Vec<StepCall>,
    /// Tiles of the last of these, if it takes a list of them.
    pub tiles: Option<VocabTiles>,
    /// Arena offset of the logits.
    pub logits: u64,
    /// Where to count chosen experts.
    pub routings: Vec<RoutingAt>,
    /// From where on only the wanted rows matter.
    pub wanted_only: Option<WantedOnlyAt>,
}

/// From which step on only the wanted rows matter, and the rows that are moved together before it.
pub(super) struct WantedOnlyAt {
    pub step: usize,
    /// Address of the first row, and bytes of a token's.
    rows: Box<[(u64, usize)]>,
}

// SAFETY: the addresses are followed by one worker, behind a barrier that all have reached.
unsafe impl Sync for WantedOnlyAt {}

impl WantedOnlyAt {
    /// Moves the rows `wanted`, ascending, to the front of every buffer.
    ///
    /// # Safety
    /// The buffers are in memory, `wanted` are rows of a batch that the class takes, and no other thread uses
    /// the buffers.
    pub(super) unsafe fn gather(&self, wanted: &[u32]) {
        for (base, bytes) in &self.rows {
            let row = |n: usize| (*base as *mut u8).wrapping_add(n * bytes);
            for (to, from) in
                wanted.iter().map(|from| *from as usize).enumerate().filter(|(to, from)| to != from)
            {
                // SAFETY: the checker has found room for the class's tokens in the buffer; the rest is the
                // caller's promise. No row is overwritten before it has been moved, since `to` is at most
                // `from`.
                unsafe { std::ptr::copy(row(from), row(to), *bytes) };
            }
        }
    }
}

/// Routes that a step leaves behind.
pub(super) struct RoutingAt {
    pub step: usize,
    /// `[tokens][top_k]`.
    pub routes: *const ChosenExpert,
    pub top_k: usize,
}

/// One kernel call.
pub(super) struct StepCall {
    pub kernel: KernelFn,
    pub operands: Box<[u64]>,
    /// Counters of its workers, by node.
    pub counters: Box<[StepCounters]>,
    /// Name, for profiles.
    pub label: Box<str>,
    /// LoRA targets of adapters without which it is left out; none when it always runs.
    pub lora_targets: Box<[u32]>,
    /// LoRA targets whose entries it looks at.
    pub looks_at: Box<[u32]>,
    /// Reads and multiply-adds of the step, for profiles.
    pub work: StepWork,
    /// The bytes that its workers read first.
    pub heads: NextStepPrefetch,
}

/// A step's counters of a node, on a separate line.
#[repr(align(64))]
#[derive(Default)]
pub(super) struct StepCounters(pub [AtomicU32; COUNTERS]);

impl ResolvedClass {
    /// Resolves a class of a program that has passed the checker.
    pub(super) fn resolve(
        class: &TokenClass,
        program: &Program,
        code: &ExecutableCode,
        bases: &Bases,
    ) -> ResolvedClass {
        let resolve = |steps: &[Step]| {
            steps.iter().map(|step| StepCall::resolve(step, class, program, code, bases)).collect()
        };
        ResolvedClass {
            max_tokens: class.max_tokens,
            steps: resolve(&class.steps),
            logit_steps: resolve(&class.logit_steps),
            tiles: VocabTiles::of(class, program),
            logits: class.logits,
            routings: class
                .routings
                .iter()
                .map(|routing| RoutingAt::resolve(routing, class, bases))
                .collect(),
            wanted_only: class.wanted_only.as_ref().map(|from| WantedOnlyAt {
                step: from.step as usize,
                rows: from
                    .rows
                    .iter()
                    .map(|rows| {
                        let buffer = &class.buffers[rows.buffer as usize];
                        (bases.arena + buffer.offset, rows.bytes as usize)
                    })
                    .collect(),
            }),
        }
    }
}

impl RoutingAt {
    fn resolve(routing: &Routing, class: &TokenClass, bases: &Bases) -> RoutingAt {
        let address = bases.arena + class.buffers[routing.buffer as usize].offset;
        RoutingAt {
            step: routing.step as usize,
            routes: address as *const ChosenExpert,
            top_k: routing.top_k as usize,
        }
    }

    /// The experts that the batch's tokens chose, in order; to be read before any step overwrites the buffer.
    pub(super) fn experts(&self, tokens: usize) -> impl Iterator<Item = u32> + '_ {
        (0..tokens * self.top_k).map(|i| {
            // SAFETY: the checker has found room for `max_tokens * top_k` routes in the buffer, whose memory
            // the executor holds; the step that writes them is behind a barrier, and the buffer lives on for
            // the steps that follow it.
            unsafe { self.routes.add(i).read() }.expert
        })
    }
}

impl StepCall {
    fn resolve(
        step: &Step,
        class: &TokenClass,
        program: &Program,
        code: &ExecutableCode,
        bases: &Bases,
    ) -> StepCall {
        let symbol = &program.code.symbols[step.kernel as usize];
        let address = code.address(symbol.offset as usize);
        // SAFETY: the checker has found the symbol inside the code and marked as a function of the kernel
        // ABI; the executor keeps the code while it keeps this pointer.
        let kernel = unsafe { std::mem::transmute::<*const u8, KernelFn>(address) };
        let operand = |operand: &Operand| match *operand {
            Operand::Weights { offset, .. } => bases.weights + offset,
            Operand::Buffer(id) => bases.arena + class.buffers[id as usize].offset,
            Operand::Kv { layer, .. } => bases.kv[layer as usize],
            Operand::Rope(table) => bases.ropes[table as usize],
            Operand::LoraTarget(lora_target) => u64::from(lora_target) * size_of::<LoraTargetEntry>() as u64,
        };
        let operands: Box<[u64]> = step.operands.iter().map(operand).collect();
        let lora_target = |operand: &Operand| match *operand {
            Operand::LoraTarget(lora_target) => Some(lora_target),
            _ => None,
        };
        let heads = NextStepPrefetch::resolve(step, class, &operands, bases.arena, &bases.workers);
        StepCall {
            kernel,
            operands,
            counters: (0..bases.workers.nodes()).map(|_| StepCounters::default()).collect(),
            label: step.label.as_str().into(),
            lora_targets: step.lora_targets.as_slice().into(),
            looks_at: step.operands.iter().filter_map(lora_target).collect(),
            work: step.work,
            heads,
        }
    }
}
