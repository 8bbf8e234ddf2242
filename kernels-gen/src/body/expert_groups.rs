//! A batch's slots grouped by expert: every worker sorts them for itself (a counting sort in its own scratch:
//! a few microseconds for a full prefill chunk, cheaper than a barrier). All find the same groups.

use crate::body::panels::PanelFill;
use crate::cx::Cx;
use crate::emit::{Emit, MEM};
use crate::kernel::{Domain, ValId};
use crate::scratch::Scratch;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

/// The routing that a body follows.
#[derive(Clone, Copy)]
pub struct ExpertRouting {
    /// Value of routing rows.
    pub routing: ValId,
    /// Number of experts.
    pub experts: usize,
    /// Slots per token.
    pub top_k: usize,
}

/// Offsets in the body's scratch of a grouped batch.
pub struct GroupScratch {
    /// Four lists of u32 `[experts]`: slots per expert; first entry of each expert, then the running cursor
    /// while sorting; groups of panels before those of each expert; experts with any slot, ascending.
    lists: usize,
    /// u32 `[max_rows]` slots sorted by expert, ascending within one.
    entries: usize,
}

impl GroupScratch {
    /// Takes room for a batch of `max_rows` slots.
    pub fn take(scratch: &mut Scratch, experts: usize, max_rows: usize) -> GroupScratch {
        GroupScratch { lists: scratch.take(4 * experts * 4), entries: scratch.take(max_rows * 4) }
    }
}

/// The grouped batch, as addresses and counts.
pub struct ExpertGroups {
    counts: Value,
    starts: Value,
    panels: Value,
    active: Value,
    /// u32 slots sorted by expert.
    pub entries: Value,
    /// Number of active experts.
    pub active_count: Value,
}

/// An active expert.
#[derive(Clone, Copy)]
pub struct ActiveExpert {
    /// Number of the expert.
    pub expert: Value,
    /// First entry of the expert.
    pub first: Value,
    /// Slots that chose the expert.
    pub count: Value,
}

impl ExpertGroups {
    /// Expert number `index` of the active ones.
    pub fn expert(&self, e: &mut Emit, index: Value) -> ActiveExpert {
        let expert = u32_at(e, self.active, index);
        let count = u32_at(e, self.counts, expert);
        // The sort's cursor stands behind the expert's last entry.
        let end = u32_at(e, self.starts, expert);
        let first = e.b.ins().isub(end, count);
        ActiveExpert { expert, first, count }
    }

    /// Number of an expert's first group of panels.
    pub fn panel(&self, e: &mut Emit, expert: Value) -> Value {
        u32_at(e, self.panels, expert)
    }

    /// Token and slot of the entry that is `row` behind `position`.
    pub fn row(&self, e: &mut Emit, position: Value, row: Value, top_k: usize) -> (Value, Value) {
        let position = e.add(position, row);
        let slot = u32_at(e, self.entries, position);
        (divide(e, slot, top_k), slot)
    }

    /// Copies the rows of entries `start..end` to the panels at `base`, as far as their experts use them.
    pub fn fill(&self, e: &mut Emit, cx: &Cx, fill: PanelFill, base: Value, (start, end): (Value, Value)) {
        let (list, zero) = (cx.list(e), e.i64(0));
        e.for_range(zero, self.active_count, 1, |e, active| {
            let ActiveExpert { expert, first, count } = self.expert(e, active);
            let [from, to] = [start, end].map(|entry| e.clamp_from(entry, first, count));
            let any = e.icmp(IntCC::UnsignedLessThan, from, to);
            e.if_then(any, |e| {
                let group = self.panel(e, expert);
                let (panel, list) = (e.at(base, group, fill.group_bytes()), e.at(list, first, 8));
                fill.rows(e, panel, list, count, (from, to));
            });
        });
    }
}

/// Sorts the batch's slots by expert and fills the row pointer list in the same order. Panels have groups of
/// `group_rows` rows.
pub fn group(
    e: &mut Emit,
    cx: &Cx,
    routed: ExpertRouting,
    areas: &GroupScratch,
    (input, input_slots): (ValId, bool),
    group_rows: usize,
) -> ExpertGroups {
    let [counts, starts, panels, active] =
        [0, 1, 2, 3].map(|list| cx.body_scratch(e, areas.lists + list * routed.experts * 4));
    let entries = cx.body_scratch(e, areas.entries);
    let list = cx.list(e);
    let slots = cx.rows(e, Domain::Slots(routed.top_k));
    let zero = e.i64(0);
    e.for_count(routed.experts, |e, expert| {
        let count = e.at(counts, expert, 4);
        let zero = e.i32(0);
        e.store(zero, count, 0);
    });
    let first_route = cx.row(e, routed.routing, zero);
    let expert_of = |e: &mut Emit, slot: Value| {
        let route = e.at(first_route, slot, 8);
        let expert = e.load_u32(route, 0);
        // Routing written by top-k is in range; the bound keeps any other bytes from leading outside.
        let last = e.i64(routed.experts as i64 - 1);
        e.min_u(expert, last)
    };
    let increment = |e: &mut Emit, counter: Value| {
        let old = e.load(I32, counter, 0);
        let new = e.b.ins().iadd_imm_s(old, 1);
        e.store(new, counter, 0);
    };
    e.for_range(zero, slots, 1, |e, slot| {
        let expert = expert_of(e, slot);
        let counter = e.at(counts, expert, 4);
        increment(e, counter);
    });
    let (start, end) = (e.i64(0), e.i64(routed.experts as i64));
    let carried = e.for_carry(start, end, 1, &[zero, zero, zero], |e, expert, carried| {
        let [used, found, group] = carried[..] else { unreachable!("three values are carried") };
        for (value, list, index) in [
            (used, starts, expert),
            (group, panels, expert),
            // Written always, kept only when the expert has slots: the next one overwrites it otherwise.
            (expert, active, found),
        ] {
            let place = e.at(list, index, 4);
            e.b.ins().istore32(MEM, value, place, 0);
        }
        let count = u32_at(e, counts, expert);
        let zero = e.i64(0);
        let any = e.icmp(IntCC::NotEqual, count, zero);
        let any = e.b.ins().uextend(I64, any);
        let up = e.add_imm(count, group_rows as i64 - 1);
        let groups = divide(e, up, group_rows);
        vec![e.add(used, count), e.add(found, any), e.add(group, groups)]
    });
    e.for_range(zero, slots, 1, |e, slot| {
        let expert = expert_of(e, slot);
        let cursor = e.at(starts, expert, 4);
        let place = e.load_u32(cursor, 0);
        increment(e, cursor);
        let entry = e.at(entries, place, 4);
        e.b.ins().istore32(MEM, slot, entry, 0);
        let input_row = if input_slots { slot } else { divide(e, slot, routed.top_k) };
        let source = cx.row(e, input, input_row);
        let pointer = e.at(list, place, 8);
        e.store(source, pointer, 0);
    });
    ExpertGroups { counts, starts, panels, active, entries, active_count: carried[1] }
}

/// Number `index` of a list.
fn u32_at(e: &mut Emit, list: Value, index: Value) -> Value {
    let place = e.at(list, index, 4);
    e.load_u32(place, 0)
}

/// A quotient, rounded down.
pub fn divide(e: &mut Emit, value: Value, by: usize) -> Value {
    if by == 1 {
        return value;
    }
    let by = e.i64(by as i64);
    e.b.ins().udiv(value, by)
}
