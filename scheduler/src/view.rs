//! Figures for logs and statistics.

use crate::facts::{Class, TenantId, duration};
use crate::request::ScheduledRequest;
use crate::state::SchedulerState;
use crate::step::HoldReason;
use std::time::Duration;

/// A request as it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestView {
    /// Tenant of the request.
    pub tenant: TenantId,
    /// Class of the request.
    pub class: Class,
    /// Whether it has a sequence.
    pub is_running: bool,
    /// Tokens of the prompt and of what was generated.
    pub known_tokens: u32,
    /// Tokens in the KV cache; while it waits, those that are likely to be found there.
    pub computed_tokens: u32,
    /// Tokens generated.
    pub produced_tokens: u32,
    /// Time since its arrival in which its prompt was not worked on.
    pub waited: Duration,
    /// The time of its whole prefill, by the cost model.
    pub service: Duration,
    /// How strong its claim is within its class and tenant.
    pub claim: f64,
    /// Why it was not in the last step.
    pub hold: Option<HoldReason>,
}

impl RequestView {
    pub(crate) fn new(state: &SchedulerState, request: &ScheduledRequest, now: f64) -> RequestView {
        RequestView {
            tenant: request.tenant,
            class: request.class,
            is_running: request.is_running,
            known_tokens: request.known,
            computed_tokens: request.computed,
            produced_tokens: request.produced,
            waited: duration(request.waited(now)),
            service: duration(request.service(&state.costs)),
            claim: request.claim(&state.costs, now),
            hold: request.hold,
        }
    }
}

/// Counts of requests, and who is due how much. Classes are in the order of [`Class::ALL`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulerStats {
    /// By class: requests that wait.
    pub waiting: [u32; 3],
    /// By class: requests that have a sequence.
    pub running: [u32; 3],
    /// Tokens of an answer in the mean of those that ended lately.
    pub answer_tokens: f64,
    /// Steps that the cost model has learned from.
    pub measured_steps: u64,
    /// By class: tenants that have requests, and the seconds of the machine that they are due; below zero for
    /// those that have had more than their share.
    pub deficits: [Vec<(TenantId, f64)>; 3],
}

impl SchedulerStats {
    pub(crate) fn new(state: &SchedulerState) -> SchedulerStats {
        let (mut waiting, mut running) = ([0; 3], [0; 3]);
        for request in state.requests.values() {
            let counts = if request.is_running { &mut running } else { &mut waiting };
            counts[request.class.index()] += 1;
        }
        SchedulerStats {
            waiting,
            running,
            answer_tokens: state.answer,
            measured_steps: state.costs.steps(),
            deficits: [0, 1, 2].map(|class: usize| state.tenants[class].active().collect()),
        }
    }
}
