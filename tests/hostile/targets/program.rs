//! Compiled programs, damaged as data; and what must hold of those that pass the check.

use super::edit::edit;
use super::sound::sound_program;
use kernmill_plan::check::check_program;
use kernmill_plan::contract::Need;
use kernmill_plan::program::{Buffer, Operand, Program, Step, TokenClass};
use kernmill_runtime::MemoryNeed;
use kernmill_runtime::kv::{KvBudget, KvShape};

/// A compiled program, damaged: the data is a list of edits of 8 bytes each, see [`edit`].
pub fn program(data: &[u8]) {
    let (sound, json) = sound_program();
    let mut json = json.clone();
    for instruction in data.chunks_exact(8).take(32) {
        let at = u16::from_le_bytes([instruction[0], instruction[1]]);
        let value = u32::from_le_bytes([instruction[4], instruction[5], instruction[6], instruction[7]]);
        edit(&mut json, at.into(), instruction[2], value);
    }
    let Ok(mut program) = serde_json::from_value::<Program>(json) else { return };
    program.code.bytes.clone_from(&sound.code.bytes);
    check(&program);
}

/// The runtime's use of a program: it checks it, and goes on only if it is sound.
pub fn check(program: &Program) {
    if check_program(program).is_ok() {
        assert_runtime_agrees(program);
    }
}

/// The figures that the runtime works out from a program that has passed, before it takes any memory.
pub(super) fn assert_runtime_agrees(program: &Program) {
    for (context, chunk) in [(1, 1), (4096, 16), (1 << 24, 4096)] {
        let shape = KvShape { context, sequences: 3, chunk, budget: KvBudget::WorstCase };
        let need = MemoryNeed::of(program, shape, 7);
        assert!(need.total() >= program.arena_bytes && need.total() >= program.scratch_bytes);
    }
    for class in &program.classes {
        for buffer in &class.buffers {
            assert!(buffer.offset + buffer.bytes <= program.arena_bytes);
        }
        for routing in &class.routings {
            let routes = u64::from(class.max_tokens) * u64::from(routing.top_k);
            assert!(class.buffers[routing.buffer as usize].bytes / 8 >= routes);
        }
        assert_nothing_is_overwritten(class);
        for step in class.steps.iter().chain(&class.logit_steps) {
            assert_kernel_has_room(program, class, step);
        }
    }
}

/// No operand is smaller than what the step's kernel says that it touches.
fn assert_kernel_has_room(program: &Program, class: &TokenClass, step: &Step) {
    let symbol = &program.code.symbols[step.kernel as usize];
    let contract = symbol.contract.as_ref().expect("steps call kernels");
    assert!(contract.scratch_bytes <= program.scratch_bytes, "{}", step.label);
    assert_eq!(contract.operands.len(), step.operands.len(), "{}", step.label);
    for (operand, need) in step.operands.iter().zip(&contract.operands) {
        let (bytes, needed) = match (operand, need) {
            (Operand::Weights { bytes, .. }, Need::Weights { bytes: needed, .. }) => (*bytes, *needed),
            (Operand::Weights { bytes, .. }, Need::Table { row_bytes, rows }) => {
                (*bytes, row_bytes.saturating_mul(u64::from(program.model.vocab).div_ceil(u64::from(*rows))))
            }
            (Operand::Buffer(id), Need::Buffer { slots, wanted, row_bytes, .. }) => {
                let rows = u64::from(class.max_tokens) * u64::from(*slots);
                let slab = if *wanted { u64::from(class.max_tokens.min(16)) } else { 0 };
                (class.buffers[*id as usize].bytes, rows.max(slab).saturating_mul(*row_bytes))
            }
            (Operand::Buffer(id), Need::Panels { bytes, .. }) => (class.buffers[*id as usize].bytes, *bytes),
            (Operand::Kv { kind, .. }, Need::Kv { geometry, .. }) => {
                assert_eq!(geometry, program.model.kv.geometry(*kind), "{}", step.label);
                continue;
            }
            (Operand::Rope(table), Need::Rope { rotary_dim }) => {
                (program.model.ropes[*table as usize].inv_freq.len() as u64 * 2, (*rotary_dim).into())
            }
            (Operand::LoraTarget(_), Need::LoraTarget { .. }) => continue,
            _ => panic!("{}: {operand:?} for {need:?}", step.label),
        };
        assert!(bytes >= needed, "{}: {bytes} of {needed} bytes", step.label);
    }
}

/// Walks the steps as the executor does, two slabs of logits included: what a step reads was written, and by
/// nothing else since.
fn assert_nothing_is_overwritten(class: &TokenClass) {
    let mut whole = vec![false; class.buffers.len()];
    for (index, step) in class.steps.iter().enumerate() {
        run_step(class, step, &mut whole);
        for routing in class.routings.iter().filter(|routing| routing.step as usize == index) {
            assert!(whole[routing.buffer as usize], "the routing of {} is gone", step.label);
        }
    }
    for _ in 0..2 {
        class.logit_steps.iter().for_each(|step| run_step(class, step, &mut whole));
        let logits = |(id, buffer): (usize, &Buffer)| buffer.offset == class.logits && whole[id];
        assert!(class.buffers.iter().enumerate().any(logits), "the logits are gone");
    }
}

/// `whole` says by buffer whether its contents are what was written last.
fn run_step(class: &TokenClass, step: &Step, whole: &mut [bool]) {
    let shared = |a: &Buffer, b: &Buffer| a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
    for id in &step.reads {
        let buffer = &class.buffers[*id as usize];
        assert!(whole[*id as usize], "{} reads what is left of `{}`", step.label, buffer.name);
    }
    for id in &step.writes {
        let written = &class.buffers[*id as usize];
        for (other, buffer) in class.buffers.iter().enumerate() {
            if other != *id as usize && shared(written, buffer) {
                let used = step.reads.iter().chain(&step.writes).any(|id| *id as usize == other);
                assert!(!used, "{} uses `{}` and `{}` at once", step.label, written.name, buffer.name);
                whole[other] = false;
            }
        }
        whole[*id as usize] = true;
    }
}
