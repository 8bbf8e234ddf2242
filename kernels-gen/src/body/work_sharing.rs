//! How a step's workers share its items. [`kernmill_plan::hand_out`] has the same rules as numbers.

use crate::body::{Cx, experts};
use crate::emit::{Emit, MEM};
use crate::kernel::{Body, MatrixPart};
use crate::run::{run_of, run_of_all};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, BlockArg, InstBuilder, Value};
use kernmill_plan::abi::{COUNTERS, TAIL_SHIFT, Worker};
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
        share_of(e, total, index, count)
    }

    /// The part `[start, end)` of `total` that a node has, as much as its workers are of all, and these
    /// workers: the first and the number behind the last.
    fn node_part(&self, e: &mut Emit, total: Value, node: Value) -> ((Value, Value), (Value, Value)) {
        let (count, starts) = (self.workers(e), e.load(I64, self.worker, offset_of!(Worker, node_starts)));
        let starts = e.at(starts, node, size_of::<u32>());
        let workers = (e.load_u32(starts, 0), e.load_u32(starts, size_of::<u32>()));
        // Where there is one node, it has all, and nothing is divided: small steps would notice.
        let nodes = e.load_u32(self.worker, offset_of!(Worker, nodes));
        let (zero, one) = (e.i64(0), e.i64(1));
        let is_cut = e.icmp(IntCC::NotEqual, nodes, one);
        let times = e.b.ins().uextend(I64, is_cut);
        let part = e.for_carry(zero, times, 1, &[zero, total], |e, _, _| {
            let before = |workers: Value| {
                let all = e.b.ins().imul(total, workers);
                e.b.ins().udiv(all, count)
            };
            [workers.0, workers.1].map(before).to_vec()
        });
        ((part[0], part[1]), workers)
    }

    /// Number of this worker's node.
    fn node(&self, e: &mut Emit) -> Value {
        e.load_u32(self.worker, offset_of!(Worker, node))
    }

    /// Hands out `total` items, as ranges for `body`. Each node of memory has a part of them; of that, three
    /// quarters go to its workers in equal contiguous shares, which stream from memory best. The rest comes
    /// from the node's counter, so that workers finish together although one of them is slower today; whose
    /// node has nothing left helps others. The portions taken from a counter shrink with the rest: every jump
    /// to another place of the weights costs what had been prefetched ahead. `run`, a power of two, is how
    /// many items `body` takes through memory together where it has so many: portions are whole runs, but for
    /// the last few. Shares are not: many workers have a few items each.
    pub fn distribute_items(
        &self,
        e: &mut Emit,
        total: Value,
        run: usize,
        body: impl FnOnce(&mut Emit, Value, Value),
    ) {
        let tail_of = |e: &mut Emit, node: Value| {
            let ((start, end), workers) = self.node_part(e, total, node);
            let items = e.b.ins().isub(end, start);
            let tail = e.b.ins().ushr_imm_u(items, i64::from(TAIL_SHIFT));
            let fixed = e.b.ins().isub(end, tail);
            (start, (fixed, end), workers)
        };
        let node = self.node(e);
        let (first, tail, (worker, behind)) = tail_of(e, node);
        let index = e.load_u32(self.worker, offset_of!(Worker, index));
        let (index, count) = (e.b.ins().isub(index, worker), e.b.ins().isub(behind, worker));
        let shared = e.b.ins().isub(tail.0, first);
        let share = share_of(e, shared, index, count);
        let share = (e.add(first, share.0), e.add(first, share.1));
        let other = |e: &mut Emit, node: Value| tail_of(e, node).1;
        let body = |e: &mut Emit, _, start, end| body(e, start, end);
        self.share_then_take(e, (node, share, tail), Take::Shrinking(run), Some(other), body);
    }

    /// Hands out `groups` groups of `units` items, where an item of a group costs `cost`. Each node of memory
    /// has a part of every group. Of these three quarters of the cost go to its workers in contiguous shares,
    /// and the rest comes from its counter in runs of at least `run` items. Every worker finds the same
    /// shares. `body` gets an item's group and its number within the group.
    pub fn distribute_by_cost(
        &self,
        e: &mut Emit,
        (groups, units): (Value, usize),
        cost: impl Fn(&mut Emit, Value) -> Value,
        run: usize,
        body: impl FnOnce(&mut Emit, Value, Value),
    ) {
        let (zero, units) = (e.i64(0), e.i64(units as i64));
        // A node's part: of what its workers have together, those of `index` behind the first.
        let part = |e: &mut Emit, node: Value, own: bool| {
            let ((first, end), (worker, behind)) = self.node_part(e, units, node);
            let each_has = e.b.ins().isub(end, first);
            let sum = e.for_carry(zero, groups, 1, &[zero], |e, group, sum| {
                let each = cost(e, group);
                vec![e.add(sum[0], each)]
            });
            let all = e.b.ins().imul(sum[0], each_has);
            let tail = e.b.ins().ushr_imm_u(all, i64::from(TAIL_SHIFT));
            let fixed = e.b.ins().isub(all, tail);
            let mut at = vec![fixed];
            if own {
                let index = e.load_u32(self.worker, offset_of!(Worker, index));
                let (index, count) = (e.b.ins().isub(index, worker), e.b.ins().isub(behind, worker));
                let share = share_of(e, fixed, index, count);
                at.extend([share.0, share.1]);
            }
            // The items before which as much lies.
            let init = vec![zero; 1 + at.len()];
            let cuts = e.for_carry(zero, groups, 1, &init, |e, group, carried| {
                let (before, each) = (carried[0], cost(e, group));
                let cut = |(at, items): (&Value, &Value)| {
                    let inside = e.clamp_from(*at, before, all);
                    let inside = e.b.ins().udiv(inside, each);
                    let inside = e.min_u(inside, each_has);
                    e.add(*items, inside)
                };
                let cuts: Vec<Value> = at.iter().zip(&carried[1..]).map(cut).collect();
                let own = e.b.ins().imul(each, each_has);
                [vec![e.add(before, own)], cuts].concat()
            });
            let total = e.b.ins().imul(groups, each_has);
            (cuts, total)
        };
        let node = self.node(e);
        let (cuts, total) = part(e, node, true);
        let other = |e: &mut Emit, node: Value| {
            let (cuts, total) = part(e, node, false);
            (cuts[1], total)
        };
        let body = |e: &mut Emit, node, start, end| {
            let ((first, behind), _) = self.node_part(e, units, node);
            let each_has = e.b.ins().isub(behind, first);
            let is_any = e.icmp(IntCC::UnsignedLessThan, start, end);
            e.if_then(is_any, |e| {
                let group = e.b.ins().udiv(start, each_has);
                let before = e.b.ins().imul(group, each_has);
                let unit = e.b.ins().isub(start, before);
                e.for_carry(start, end, 1, &[group, unit], |e, _, place| {
                    let item = e.add(first, place[1]);
                    body(e, place[0], item);
                    let (unit, group) = (e.add_imm(place[1], 1), e.add_imm(place[0], 1));
                    let ends = e.icmp(IntCC::Equal, unit, each_has);
                    vec![e.select(ends, group, place[0]), e.select(ends, zero, unit)]
                });
            });
        };
        let own = (node, (cuts[2], cuts[3]), (cuts[1], total));
        self.share_then_take(e, own, Take::Shrinking(run), Some(other), body);
    }

    /// Hands out `total` items of unequal cost one by one from a counter of all nodes.
    pub fn for_each_claimed(&self, e: &mut Emit, total: Value, body: impl FnOnce(&mut Emit, Value)) {
        let none = e.i64(0);
        let body = |e: &mut Emit, _, start, end| e.for_range(start, end, 1, body);
        let other = None::<fn(&mut Emit, Value) -> (Value, Value)>;
        self.share_then_take(e, (none, (none, none), (none, total)), Take::One, other, body);
    }

    /// Begins with this worker's share of its node's items, and takes from what the node's counter has, whose
    /// first item and end are `tail`. Then it turns to what `other` says that other nodes' counters have.
    /// `body` gets the node whose items these are.
    fn share_then_take(
        &self,
        e: &mut Emit,
        (node, share, tail): (Value, (Value, Value), (Value, Value)),
        take: Take,
        other: Option<impl FnOnce(&mut Emit, Value) -> (Value, Value)>,
        body: impl FnOnce(&mut Emit, Value, Value, Value),
    ) {
        let [again, look, claim, empty, exit] = [(); 5].map(|()| e.b.create_block());
        let [first, behind] = [(); 2].map(|()| e.b.append_block_param(again, I64));
        let [of, of_fixed, of_total] = [(); 3].map(|()| e.b.append_block_param(again, I64));
        let [at, fixed, total] = [(); 3].map(|()| e.b.append_block_param(look, I64));
        e.jump(again, &[share.0, share.1, node, tail.0, tail.1]);
        e.b.switch_to_block(again);
        body(e, of, first, behind);
        e.jump(look, &[of, of_fixed, of_total]);
        e.b.switch_to_block(look);
        // Workers that come when nothing is left only look: many can look at once, but take one by one.
        let counters = e.load(I64, self.worker, offset_of!(Worker, counters));
        let counter = e.at(counters, at, COUNTERS * size_of::<AtomicU32>());
        let taken = e.b.ins().atomic_load(I32, MEM, counter);
        let taken = e.b.ins().uextend(I64, taken);
        let next = e.add(fixed, taken);
        let is_left = e.icmp(IntCC::UnsignedLessThan, next, total);
        e.b.ins().brif(is_left, claim, &[], empty, &[]);
        e.b.switch_to_block(claim);
        e.b.seal_block(claim);
        let count = match take {
            Take::One => e.i64(1),
            Take::Shrinking(run) => {
                let left = e.b.ins().isub(total, next);
                self.guided_chunk(e, left, at, run)
            }
        };
        let taken = add_to(e, counter, count);
        let next = e.add(fixed, taken);
        let is_left = e.icmp(IntCC::UnsignedLessThan, next, total);
        let after = e.add(next, count);
        let after = e.min_u(after, total);
        let range = [next, after, at, fixed, total].map(BlockArg::Value);
        e.b.ins().brif(is_left, again, &range, empty, &[]);
        e.b.seal_block(again);
        e.b.switch_to_block(empty);
        e.b.seal_block(empty);
        match other {
            None => e.jump(exit, &[]),
            Some(other) => {
                let nodes = e.load_u32(self.worker, offset_of!(Worker, nodes));
                let (up, zero) = (e.add_imm(at, 1), e.i64(0));
                let is_last = e.icmp(IntCC::Equal, up, nodes);
                let following = e.select(is_last, zero, up);
                let ends = e.icmp(IntCC::Equal, following, node);
                let turn = e.b.create_block();
                e.b.ins().brif(ends, exit, &[], turn, &[]);
                e.b.switch_to_block(turn);
                e.b.seal_block(turn);
                let tail = other(e, following);
                e.jump(look, &[following, tail.0, tail.1]);
            }
        }
        e.b.seal_block(look);
        e.b.switch_to_block(exit);
        e.b.seal_block(exit);
    }

    /// Items to take at once: an equal share of the `left` ones that a node's counter has for its workers
    /// (guided self-scheduling, Polychronopoulos and Kuck 1987), in whole runs as long as there is one for
    /// every one of them, and at least one item. Others may take some in between; then it is a little more
    /// than a share.
    fn guided_chunk(&self, e: &mut Emit, left: Value, node: Value, run: usize) -> Value {
        let starts = e.load(I64, self.worker, offset_of!(Worker, node_starts));
        let starts = e.at(starts, node, size_of::<u32>());
        let (worker, behind) = (e.load_u32(starts, 0), e.load_u32(starts, size_of::<u32>()));
        let workers = e.b.ins().isub(behind, worker);
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

    /// Adds to counter number `index` of the step's; what it was before. Data that workers wrote before they
    /// added is visible to those that add after them.
    pub fn count(&self, e: &mut Emit, index: Value, by: Value) -> Value {
        let counters = e.load(I64, self.worker, offset_of!(Worker, counters));
        let counter = e.at(counters, index, size_of::<AtomicU32>());
        add_to(e, counter, by)
    }
}

/// The equal share `[start, end)` of `total` that number `index` of `count` has.
fn share_of(e: &mut Emit, total: Value, index: Value, count: Value) -> (Value, Value) {
    let before = e.b.ins().imul(total, index);
    let start = e.b.ins().udiv(before, count);
    let after = e.add(before, total);
    (start, e.b.ins().udiv(after, count))
}

/// Adds to a counter; what it was before.
fn add_to(e: &mut Emit, counter: Value, by: Value) -> Value {
    let by = e.b.ins().ireduce(I32, by);
    let before = e.b.ins().atomic_rmw(I32, MEM, AtomicRmwOp::Add, counter, by);
    e.b.ins().uextend(I64, before)
}
