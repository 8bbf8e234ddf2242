//! The next step, in the order of its decisions: what is over, which answers grow, which prompts go on.

mod decode;
mod ends;
mod prefill;
mod sheet;
mod start;

pub use ends::is_out_of_reach;

use crate::facts::duration;
use crate::memory::Memory;
use crate::state::{PlannedEntry, SchedulerState};
use crate::step::{EndReason, HoldReason, PlannedStep, PreemptReason};
use sheet::Sheet;

/// Plans the step at `now`.
pub fn plan(state: &mut SchedulerState, now: f64, memory: &dyn Memory) -> PlannedStep {
    // A step that is not reported in time has not run.
    state.planned.truncate(state.config.steps_in_flight as usize - 1);
    state.requests.values_mut().for_each(|request| request.hold = None);
    let mut sheet = Sheet::new(state, now, memory);
    ends::collect(state, &mut sheet);
    loop {
        sheet.step.held.clear();
        decode::place(state, &mut sheet);
        prefill::place(state, &mut sheet);
        if !sheet.placed.is_empty() || !make_way(state, &mut sheet) {
            break;
        }
    }
    finish(state, sheet)
}

/// Where sequences that run are in each other's way, so that none fits: takes one away.
fn make_way(state: &mut SchedulerState, sheet: &mut Sheet<'_>) -> bool {
    let is_held = |number: &u64| state.requests[number].hold == Some(HoldReason::Memory);
    // Steps in flight give blocks back, or can be taken away, when they end.
    if !sheet.flying.is_empty() {
        return false;
    }
    let Some(first) = sheet.runners.iter().copied().find(is_held) else { return false };
    match sheet.runners.iter().rev().copied().find(|number| *number != first) {
        Some(last) => sheet.preempt(state, last, PreemptReason::Memory),
        None => sheet.end(state, first, EndReason::OutOfMemory),
    }
    true
}

/// Puts the entries in order and says how long they take, or when to plan again.
fn finish(state: &mut SchedulerState, sheet: Sheet<'_>) -> PlannedStep {
    let has_dropped = sheet.has_dropped();
    let Sheet { mut step, mut placed, load, now, .. } = sheet;
    placed.sort_by_key(|placed| (placed.planned.entry.adapter, placed.planned.number));
    let planned: Vec<PlannedEntry> = placed.iter().map(|placed| placed.planned).collect();
    step.entries = planned.iter().map(|planned| planned.entry).collect();
    if !planned.is_empty() {
        state.planned.push_back(planned);
    }
    step.predicted = duration(state.costs.step(load));
    if step.entries.is_empty() && !state.requests.is_empty() {
        // A request that was preempted in this plan may start in the next one. Times are rounded: a little
        // later, the end is there for sure.
        let next = ends::next(state).map(|end| end + 1e-6);
        step.wake = if has_dropped { Some(now) } else { next }.map(duration);
    }
    step
}
