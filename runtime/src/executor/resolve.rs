//! Steps with their operands as absolute addresses.

use crate::code::ExecutableCode;
use kernmill_plan::abi::KernelFn;
use kernmill_plan::program::{Operand, Program, Step, TokenClass};
use std::sync::atomic::AtomicU32;

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
