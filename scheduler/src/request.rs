//! The state of a request.

use crate::costs::{Costs, StepLoad};
use crate::facts::{AdapterId, Arrival, Class, RequestId, TenantId, seconds};
use crate::pace::Pace;
use crate::step::{HoldReason, PreemptReason};

/// Priorities go from minus to plus this.
const PRIORITIES: i32 = 4;
/// How much more a request claims whose deadline is near.
const URGENT: f64 = 4.0;
/// Steps over which the known tokens of an answer are spread at most.
const FORCED_STEPS: u32 = 4;
/// A deadline is near if less time is left than so many times what the rest of the prompt takes.
const NEAR: f64 = 2.0;

/// A request that has not ended.
#[derive(Clone, Debug)]
pub struct ScheduledRequest {
    pub id: RequestId,
    pub tenant: TenantId,
    pub class: Class,
    pub priority: i32,
    pub deadline: Option<f64>,
    pub adapter: Option<AdapterId>,
    pub max_tokens: u32,
    pub arrived: f64,
    /// Tokens of the prompt and of what was generated.
    pub known: u32,
    /// Tokens in the KV cache; while the request waits, those that are likely to be found there.
    pub computed: u32,
    /// Tokens generated.
    pub produced: u32,
    /// Draft tokens on offer.
    pub drafts: u32,
    pub is_running: bool,
    /// Whether it has sampled a token since it got its sequence.
    pub is_answering: bool,
    pub is_cancelled: bool,
    pub is_adapter_gone: bool,
    /// Whether it was preempted for want of memory or by a higher class, and goes before others of its class.
    pub is_front: bool,
    /// How often another tenant's request took its place before it sampled a token there.
    pub gave_way: u32,
    /// Number of its last start.
    pub start: u64,
    /// First token of the prefill that it needs or needed, and the end of it.
    pub service: (u32, u32),
    /// Seconds that its prefill has had.
    pub served: f64,
    pub pace: Pace,
    pub hold: Option<HoldReason>,
}

impl ScheduledRequest {
    /// A request that arrives at `now`.
    pub fn new(arrival: &Arrival, now: f64) -> ScheduledRequest {
        let known = arrival.prompt_tokens;
        let cached = arrival.cached_tokens.min(known.saturating_sub(1));
        ScheduledRequest {
            id: arrival.id,
            tenant: arrival.tenant,
            class: arrival.class,
            priority: arrival.priority.clamp(-PRIORITIES, PRIORITIES),
            deadline: arrival.deadline.map(seconds),
            adapter: arrival.adapter,
            max_tokens: arrival.max_tokens,
            arrived: now,
            known,
            computed: cached,
            produced: 0,
            drafts: 0,
            is_running: false,
            is_answering: false,
            is_cancelled: false,
            is_adapter_gone: false,
            is_front: false,
            gave_way: 0,
            start: 0,
            service: (cached, known),
            served: 0.0,
            pace: Pace::default(),
            hold: None,
        }
    }

    /// Known tokens that are not in the KV cache.
    pub fn pending(&self) -> u32 {
        self.known - self.computed
    }

    /// Whether the request runs and generates. A few known tokens that are missing do not change that; more
    /// are a prefill.
    pub fn is_decoding(&self, max_forced: u32) -> bool {
        let one_step = max_forced.saturating_add(1);
        let steps = if self.is_answering { FORCED_STEPS } else { 1 };
        self.is_running && self.produced > 0 && self.pending() <= one_step.saturating_mul(steps)
    }

    /// Tokens that may still be generated.
    pub fn left(&self) -> u32 {
        self.max_tokens.saturating_sub(self.produced)
    }

    /// Tokens until the end of what room is promised for: the answer grows by `growth`.
    pub fn promised(&self, growth: u32) -> u32 {
        self.known.saturating_add(self.left().min(growth - self.produced % growth))
    }

    /// Seconds that the whole prefill takes by itself.
    pub fn service(&self, costs: &Costs) -> f64 {
        let (from, to) = self.service;
        costs.prefill((to - from).max(1), from)
    }

    /// Seconds that the rest of the prefill takes by itself.
    pub fn rest(&self, costs: &Costs) -> f64 {
        costs.prefill(self.pending().max(1), self.computed)
    }

    /// Seconds that it has waited.
    pub fn waited(&self, now: f64) -> f64 {
        (now - self.arrived - self.served).max(0.0)
    }

    /// How strong its claim is within its class and tenant: the response ratio, which is (wait + service) /
    /// service, times two for each step of priority, times four if the deadline is near.
    pub fn claim(&self, costs: &Costs, now: f64) -> f64 {
        let service = self.service(costs);
        let ratio = 1.0 + self.waited(now) / service;
        let is_near = self.deadline.is_some_and(|deadline| deadline - now < NEAR * self.rest(costs));
        ratio * f64::from(self.priority).exp2() * if is_near { URGENT } else { 1.0 }
    }

    /// Seconds by which its tenant must be ahead of another one that takes its place. They double with every
    /// place that it lost so before it sampled a token there. Otherwise two requests that only fit alone
    /// would take the memory from each other forever, each with the other's tokens evicted.
    pub fn lag(&self, share_lag: f64) -> f64 {
        share_lag * f64::from(self.gave_way).exp2()
    }

    /// The cost of one more token of the answer in a step.
    pub fn token_load(&self) -> StepLoad {
        StepLoad::piece(1, self.computed)
    }

    /// The request gets a sequence that has the first `cached` tokens.
    pub fn begin(&mut self, cached: u32, start: u64) {
        self.computed = cached.min(self.known - 1);
        self.service = (self.computed, self.known);
        self.start = start;
        self.is_running = true;
        self.is_front = false;
        self.hold = None;
    }

    /// The request loses its sequence.
    pub fn lose_place(&mut self, reason: PreemptReason) {
        self.gave_way += u32::from(reason == PreemptReason::Share && !self.is_answering);
        self.is_running = false;
        self.is_answering = false;
        // One that has had more than a fair share does not go before those that have had less.
        self.is_front = reason != PreemptReason::Share;
        self.drafts = 0;
        self.pace.reset();
        // Its blocks are cached, and are likely to be found again.
        self.computed = self.computed.min(self.known - 1);
    }
}
