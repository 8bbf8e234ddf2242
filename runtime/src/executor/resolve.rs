//! Steps with their operands as absolute addresses.

use crate::code::ExecutableCode;
use kernmill_plan::abi::{KernelFn, Route};
use kernmill_plan::program::{Operand, Program, Routing, Step, TokenClass};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where things are.
pub(super) struct Bases {
    pub weights: u64,
    pub arena: u64,
    /// By layer.
    pub kv: Vec<u64>,
    /// By rotary table.
    pub ropes: Vec<u64>,
}

/// A token class, ready to run.
pub(super) struct Class {
    pub max_tokens: u32,
    pub steps: Vec<StepCall>,
    pub logit_steps: Vec<StepCall>,
    /// Arena offset of the logits.
    pub logits: u64,
    /// Where to count chosen experts.
    pub routings: Vec<RoutingAt>,
}

/// Routes that a step leaves behind.
pub(super) struct RoutingAt {
    pub step: usize,
    /// `[tokens][top_k]`.
    pub routes: *const Route,
    pub top_k: usize,
}

/// One kernel call.
pub(super) struct StepCall {
    pub kernel: KernelFn,
    pub operands: Box<[u64]>,
    /// The hand-out counter.
    pub next: Counter,
}

/// A counter on a line of its own.
#[repr(align(64))]
#[derive(Default)]
pub(super) struct Counter(pub AtomicU32);

impl Class {
    /// Resolves a class of a program that has passed the checker.
    pub(super) fn resolve(
        class: &TokenClass,
        program: &Program,
        code: &ExecutableCode,
        bases: &Bases,
    ) -> Class {
        let resolve = |steps: &[Step]| {
            steps.iter().map(|step| StepCall::resolve(step, class, program, code, bases)).collect()
        };
        Class {
            max_tokens: class.max_tokens,
            steps: resolve(&class.steps),
            logit_steps: resolve(&class.logit_steps),
            logits: class.logits,
            routings: class
                .routings
                .iter()
                .map(|routing| RoutingAt::resolve(routing, class, bases))
                .collect(),
        }
    }
}

impl RoutingAt {
    fn resolve(routing: &Routing, class: &TokenClass, bases: &Bases) -> RoutingAt {
        let address = bases.arena + class.buffers[routing.buffer as usize].offset;
        RoutingAt {
            step: routing.step as usize,
            routes: address as *const Route,
            top_k: routing.top_k as usize,
        }
    }

    /// Counts the experts that the batch's tokens chose.
    pub(super) fn count(&self, tokens: usize, counts: &[AtomicU64]) {
        for i in 0..tokens * self.top_k {
            // SAFETY: the checker has found room for `max_tokens * top_k` routes in the buffer, whose memory the executor holds;
            // the step that writes them is behind a barrier, and the buffer lives on for the steps that follow it.
            let route = unsafe { self.routes.add(i).read() };
            if let Some(count) = counts.get(route.expert as usize) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
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
        // SAFETY: the checker has found the symbol inside the code and marked as a function of the kernel ABI; the executor
        // keeps the code while it keeps this pointer.
        let kernel = unsafe { std::mem::transmute::<*const u8, KernelFn>(address) };
        let operand = |operand: &Operand| match *operand {
            Operand::Weights { offset, .. } => bases.weights + offset,
            Operand::Buffer(id) => bases.arena + class.buffers[id as usize].offset,
            Operand::Kv { layer, .. } => bases.kv[layer as usize],
            Operand::Rope(table) => bases.ropes[table as usize],
        };
        let operands = step.operands.iter().map(operand).collect();
        StepCall { kernel, operands, next: Counter::default() }
    }
}
