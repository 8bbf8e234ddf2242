//! Requests that end before anything else is decided.

use super::sheet::Sheet;
use crate::request::ScheduledRequest;
use crate::state::SchedulerState;
use crate::step::{EndReason, PreemptReason};

/// The part of a predicted prefill that is believed when a deadline is said to be out of reach.
pub const BELIEVED: f64 = 0.8;

/// Why a request ends now, if it does.
fn reason(state: &SchedulerState, request: &ScheduledRequest, now: f64) -> Option<EndReason> {
    let is_drained = state.drain.is_some_and(|until| until <= now || !has_begun(request));
    let left = request.deadline.map(|deadline| deadline - now);
    if request.is_cancelled {
        Some(EndReason::Cancelled)
    } else if request.is_adapter_gone {
        Some(EndReason::AdapterGone)
    } else if request.left() == 0 {
        Some(EndReason::MaxTokens)
    } else if is_drained {
        Some(EndReason::Draining)
    } else if left.is_some_and(|left| left <= 0.0) {
        Some(EndReason::Expired)
    } else if request.produced == 0 && left.is_some_and(|left| is_out_of_reach(state, request, left)) {
        Some(EndReason::Unreachable)
    } else {
        None
    }
}

fn has_begun(request: &ScheduledRequest) -> bool {
    request.is_running || request.produced > 0
}

/// Whether a first token cannot come within `left` seconds, even if the machine does nothing else.
pub fn is_out_of_reach(state: &SchedulerState, request: &ScheduledRequest, left: f64) -> bool {
    state.costs.are_known() && request.rest(&state.costs) * BELIEVED > left
}

/// Ends what is over, and preempts a sequence if the last step ran out of memory.
pub fn collect(state: &mut SchedulerState, sheet: &mut Sheet<'_>) {
    let over: Vec<(u64, EndReason)> = state
        .requests
        .iter()
        .filter(|(number, _)| !sheet.flying.contains(number))
        .filter_map(|(number, request)| Some((*number, reason(state, request, sheet.now)?)))
        .collect();
    for (number, reason) in over {
        sheet.end(state, number, reason);
    }
    if std::mem::take(&mut state.is_short) {
        match *sheet.runners {
            [] => {}
            [only] if sheet.flying.is_empty() => sheet.end(state, only, EndReason::OutOfMemory),
            [.., last] => sheet.preempt(state, last, PreemptReason::Memory),
        }
    }
}

/// When the next request ends by time alone.
pub fn next(state: &SchedulerState) -> Option<f64> {
    let ends = state.requests.values().filter_map(|request| {
        let is_counted = request.produced == 0 && state.costs.are_known();
        let prefill = if is_counted { request.rest(&state.costs) * BELIEVED } else { 0.0 };
        Some(request.deadline? - prefill)
    });
    ends.chain(state.drain).min_by(f64::total_cmp)
}
