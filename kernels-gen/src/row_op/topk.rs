//! Router: the k largest logits and the softmax over them.

use crate::emit::{Emit, MEM};
use crate::math;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::F32;
use cranelift_codegen::ir::{InstBuilder, Value};

/// Reads `experts` logits, writes `k` routes in descending order, ties to the lower expert. `work` has room
/// for the logits.
///
/// Whatever the logits, every expert id written is below `experts`.
pub fn emit(e: &mut Emit, logits: Value, work: Value, out: Value, experts: usize, k: usize) {
    super::elementwise::copy(e, logits, work, experts);
    let mut chosen = Vec::with_capacity(k);
    for slot in 0..k {
        let (start, end) = (e.i64(0), e.i64(experts as i64));
        let worst = e.b.ins().f32const(f32::NEG_INFINITY);
        let best = e.for_carry(start, end, 1, &[worst, start], |e, expert, best| {
            let ptr = e.at(work, expert, 4);
            let logit = e.load(F32, ptr, 0);
            let better = e.b.ins().fcmp(FloatCC::GreaterThan, logit, best[0]);
            vec![e.select(better, logit, best[0]), e.select(better, expert, best[1])]
        });
        e.b.ins().istore32(MEM, best[1], out, (slot * 8) as i32);
        let taken = e.at(work, best[1], 4);
        let worst = e.b.ins().f32const(f32::NEG_INFINITY);
        e.store(worst, taken, 0);
        chosen.push(best[0]);
    }
    let powers: Vec<Value> = chosen
        .iter()
        .map(|logit| {
            let difference = e.fsub(*logit, chosen[0]);
            let lanes = e.splat(difference);
            let power = math::exp(e, lanes);
            e.b.ins().extractlane(power, 0)
        })
        .collect();
    let sum = powers.iter().copied().reduce(|a, b| e.fadd(a, b)).expect("k is at least 1");
    for (slot, power) in powers.into_iter().enumerate() {
        let weight = e.fdiv(power, sum);
        e.store(weight, out, slot * 8 + 4);
    }
}
