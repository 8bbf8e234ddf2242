//! How a step's workers share its items.

use crate::body::{Cx, experts};
use crate::emit::{Emit, MEM};
use crate::kernel::{Body, MatrixPart};
use crate::run::{run_of, run_of_all};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, BlockArg, InstBuilder, Value};
use kernmill_plan::abi::{TAIL_SHIFT, Worker};
use std::mem::offset_of;
use std::sync::atomic::AtomicU32;

#[cfg(test)]
mod tests;

/// How much a worker takes from the step's counter at a time.
#[derive(Clone, Copy)]
enum Take {
    /// An item.
    One,
    /// A part of what is left, in runs of so many.
    Shrinking(usize),
}

/// Items of a kernel's body that are kept together.
pub fn items_per_claim(body: &Body) -> usize {
    match body {
        Body::Matmul { parts, .. } => run_of_all(parts),
        Body::Experts { part, .. } => experts::claim_run(part),
        Body::ExpertDown { mat, rows_per_item, .. } => run_of(&MatrixPart::down(mat, *rows_per_item)),
        _ => 1,
    }
}

impl Cx<'_> {
    /// Workers that take part.
    pub fn workers(&self, e: &mut Emit) -> Value {
        e.load_u32(self.worker, offset_of!(Worker, count))
    }

    /// Static share `[start, end)` that this worker has of `total` items.
    pub fn share(&self, e: &mut Emit, total: Value) -> (Value, Value) {
        let index = e.load_u32(self.worker, offset_of!(Worker, index));
        let count = self.workers(e);
        let before = e.b.ins().imul(total, index);
        let start = e.b.ins().udiv(before, count);
        let after = e.add(before, total);
        let end = e.b.ins().udiv(after, count);
        (start, end)
    }

    /// Hands out `total` items, as ranges for `body`: three quarters in equal contiguous shares, which stream
    /// from memory best; the rest from the step's counter, so that workers finish together although one of
    /// them is slower today. The portions taken from the counter shrink with the rest: every jump to another
    /// place of the weights costs what had been prefetched ahead. `run`, a power of two, is how many items
    /// `body` takes through memory together where it has so many: portions are whole runs, but for the last
    /// few. Shares are not: many workers have a few items each.
    pub fn distribute_items(
        &self,
        e: &mut Emit,
        total: Value,
        run: usize,
        body: impl FnOnce(&mut Emit, Value, Value),
    ) {
        let tail = e.b.ins().ushr_imm_u(total, i64::from(TAIL_SHIFT));
        let fixed = e.b.ins().isub(total, tail);
        let share = self.share(e, fixed);
        self.share_then_take(e, share, fixed, total, Take::Shrinking(run), body);
    }

    /// Hands out `groups` groups of `units` items, where an item of a group costs `cost`: three quarters of
    /// the cost in contiguous shares, the rest from the step's counter in runs of at least `run` items. Every
    /// worker finds the same shares.
    pub fn distribute_by_cost(
        &self,
        e: &mut Emit,
        (groups, units): (Value, usize),
        cost: impl Fn(&mut Emit, Value) -> Value,
        run: usize,
        body: impl FnOnce(&mut Emit, Value, Value),
    ) {
        let zero = e.i64(0);
        let sum = e.for_carry(zero, groups, 1, &[zero], |e, group, sum| {
            let each = cost(e, group);
            vec![e.add(sum[0], each)]
        });
        let all = e.mul_imm(sum[0], units as i64);
        let tail = e.b.ins().ushr_imm_u(all, i64::from(TAIL_SHIFT));
        let fixed = e.b.ins().isub(all, tail);
        let (start, end) = self.share(e, fixed);
        // The items before which as much lies.
        let cuts = e.for_carry(zero, groups, 1, &[zero, zero, zero, zero], |e, group, carried| {
            let (before, each) = (carried[0], cost(e, group));
            let most = e.i64(units as i64);
            let cut = |e: &mut Emit, at: Value, items: Value| {
                let inside = e.clamp_from(at, before, all);
                let inside = e.b.ins().udiv(inside, each);
                let inside = e.min_u(inside, most);
                e.add(items, inside)
            };
            let cuts = [(start, 1), (end, 2), (fixed, 3)].map(|(at, n)| cut(e, at, carried[n]));
            let own = e.mul_imm(each, units as i64);
            vec![e.add(before, own), cuts[0], cuts[1], cuts[2]]
        });
        let total = e.mul_imm(groups, units as i64);
        self.share_then_take(e, (cuts[1], cuts[2]), cuts[3], total, Take::Shrinking(run), body);
    }

    /// Hands out `total` items of unequal cost one by one from the step's counter.
    pub fn for_each_claimed(&self, e: &mut Emit, total: Value, body: impl FnOnce(&mut Emit, Value)) {
        let none = e.i64(0);
        let body = |e: &mut Emit, start, end| e.for_range(start, end, 1, body);
        self.share_then_take(e, (none, none), none, total, Take::One, body);
    }

    fn share_then_take(
        &self,
        e: &mut Emit,
        (start, end): (Value, Value),
        fixed: Value,
        total: Value,
        take: Take,
        body: impl FnOnce(&mut Emit, Value, Value),
    ) {
        let [again, more, claim, exit] = [(); 4].map(|()| e.b.create_block());
        let first = e.b.append_block_param(again, I64);
        let behind = e.b.append_block_param(again, I64);
        e.b.ins().jump(again, &[BlockArg::Value(start), BlockArg::Value(end)]);
        e.b.switch_to_block(again);
        body(e, first, behind);
        e.b.ins().jump(more, &[]);
        e.b.switch_to_block(more);
        e.b.seal_block(more);
        // Workers that come when nothing is left only look: many can look at once, but take one by one.
        let counter = e.load(I64, self.worker, offset_of!(Worker, counters));
        let taken = e.b.ins().atomic_load(I32, MEM, counter);
        let taken = e.b.ins().uextend(I64, taken);
        let next = e.add(fixed, taken);
        let is_left = e.icmp(IntCC::UnsignedLessThan, next, total);
        e.b.ins().brif(is_left, claim, &[], exit, &[]);
        e.b.switch_to_block(claim);
        e.b.seal_block(claim);
        let count = match take {
            Take::One => e.i64(1),
            Take::Shrinking(run) => {
                let left = e.b.ins().isub(total, next);
                self.guided_chunk(e, left, run)
            }
        };
        let taken = self.take_next(e, count);
        let next = e.add(fixed, taken);
        let is_left = e.icmp(IntCC::UnsignedLessThan, next, total);
        let after = e.add(next, count);
        let after = e.min_u(after, total);
        e.b.ins().brif(is_left, again, &[BlockArg::Value(next), BlockArg::Value(after)], exit, &[]);
        e.b.seal_block(again);
        e.b.switch_to_block(exit);
        e.b.seal_block(exit);
    }

    /// Items to take at once: an equal share of the `left` ones that the counter has (guided self-scheduling,
    /// Polychronopoulos and Kuck 1987), in whole runs as long as there is one for every worker, and at least
    /// one item. Others may take some in between; then it is a little more than a share.
    fn guided_chunk(&self, e: &mut Emit, left: Value, run: usize) -> Value {
        let workers = self.workers(e);
        let part = e.b.ins().udiv(left, workers);
        let one = e.i64(1);
        let part = e.b.ins().umax(part, one);
        if run == 1 {
            return part;
        }
        let each = e.mul_imm(workers, run as i64);
        let enough = e.icmp(IntCC::UnsignedGreaterThanOrEqual, left, each);
        let whole = e.b.ins().band_imm_s(part, -(run as i64));
        let run = e.i64(run as i64);
        let whole = e.b.ins().umax(whole, run);
        e.select(enough, whole, part)
    }

    /// Takes the next `count` items from the step's counter; the first of them.
    pub fn take_next(&self, e: &mut Emit, count: Value) -> Value {
        let counters = e.load(I64, self.worker, offset_of!(Worker, counters));
        add_to(e, counters, count)
    }

    /// Adds to counter number `index` of the step's; what it was before. Data that workers wrote before they
    /// added is visible to those that add after them.
    pub fn count(&self, e: &mut Emit, index: Value, by: Value) -> Value {
        let counters = e.load(I64, self.worker, offset_of!(Worker, counters));
        let counter = e.at(counters, index, size_of::<AtomicU32>());
        add_to(e, counter, by)
    }
}

/// Adds to a counter; what it was before.
fn add_to(e: &mut Emit, counter: Value, by: Value) -> Value {
    let by = e.b.ins().ireduce(I32, by);
    let before = e.b.ins().atomic_rmw(I32, MEM, AtomicRmwOp::Add, counter, by);
    e.b.ins().uextend(I64, before)
}
