//! Router: the k largest logits and the softmax over them.

use super::prelude::*;
use crate::math;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::F32;
use kernmill_plan::limit;

/// The k largest logits and their weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopKRow<V = ValId> {
    /// Logits.
    pub x: V,
    /// How many there are.
    pub experts: usize,
    /// How many are taken.
    pub k: usize,
    /// The routing.
    pub out: V,
}

impl<V> TopKRow<V> {
    pub(super) fn facts(&self) -> RowOpFacts<'_, V> {
        RowOpFacts::new("router_topk", Some(&self.out))
    }

    pub(super) fn numbered<O>(&self, names: &mut impl Names<V, O>) -> TopKRow {
        let out = names.write(&self.out);
        TopKRow { x: names.read(&self.x), experts: self.experts, k: self.k, out }
    }
}

impl RowOpCode for TopKRow {
    fn check(&self, check: &mut KernelChecker, site: CheckedSite) -> Checked {
        let TopKRow { x, experts, k, out } = *self;
        let most = limit::TOP_K.min(experts);
        check
            .ensure((1..=most).contains(&k), || format!("the best {k} of {experts}, expected 1 to {most}"))?;
        check.reads(x, RowType::F32(experts), site.rows)?;
        check.keeps(experts * 4);
        check.writes(out, RowType::Routing(k), site.rows)
    }

    fn emit(&self, e: &mut Emit, cx: &Cx, site: &OpSite) {
        let (logits, out) = (site.val(e, cx, self.x), site.val(e, cx, self.out));
        let work = cx.work_scratch(e);
        emit(e, logits, work, out, self.experts, self.k);
    }

    fn work_bytes(&self) -> usize {
        self.experts.next_multiple_of(LANES) * 4
    }

    fn work(&self, _: &dyn Fn(ValId) -> usize) -> Option<RowWork> {
        Some(RowWork { elements: self.experts * self.k, weights: 0 })
    }
}

/// Reads `experts` logits, writes `k` routes in descending order, ties to the lower expert. `work` has room
/// for the logits.
///
/// Whatever the logits, every expert id written is below `experts`.
fn emit(e: &mut Emit, logits: Value, work: Value, out: Value, experts: usize, k: usize) {
    floats::copy(e, logits, work, experts);
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
