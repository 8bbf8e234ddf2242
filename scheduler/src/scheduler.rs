//! The scheduler: facts go in, plans come out.

use crate::config::{ConfigError, SchedulerConfig};
use crate::costs::{Costs, StepLoad};
use crate::estimate;
use crate::facts::{
    AdapterId, Arrival, Class, EntryOutcome, RequestId, StepFault, StepReport, TenantId, duration, seconds,
};
use crate::memory::Memory;
use crate::plan::{is_out_of_reach, plan};
use crate::request::ScheduledRequest;
use crate::state::{PlannedEntry, SchedulerState};
use crate::step::{Admission, PlannedStep, Refusal, RefusalReason, StepEntry};
use crate::view::{RequestView, SchedulerStats};
use std::collections::BTreeMap;
use std::time::Duration;

/// Steps of a lone request between two that are planned.
const LONE: u32 = 63;

/// Decides which sequences run next.
///
/// Times are given as durations since any fixed moment. A time before that of an earlier call counts as the
/// earlier one.
#[derive(Clone, Debug)]
pub struct Scheduler {
    state: SchedulerState,
}

impl Scheduler {
    /// A scheduler without requests.
    ///
    /// # Errors
    /// When an option is out of its range.
    pub fn new(config: SchedulerConfig) -> Result<Scheduler, ConfigError> {
        config.check()?;
        Ok(Scheduler { state: SchedulerState::new(config) })
    }

    /// A request arrives. It waits from now on, if it is accepted.
    ///
    /// # Errors
    /// When it is refused, with the reason and when to try again.
    pub fn arrive(&mut self, now: Duration, arrival: &Arrival) -> Result<Admission, Refusal> {
        let now = self.state.at(now);
        let state = &self.state;
        let refuse = |reason, wait| Err(Refusal { reason, retry_after: duration(wait) });
        if state.numbers.contains_key(&arrival.id) {
            return refuse(RefusalReason::Duplicate, 0.0);
        }
        if arrival.prompt_tokens == 0 || arrival.max_tokens == 0 {
            return refuse(RefusalReason::Empty, 0.0);
        }
        if state.drain.is_some() {
            return refuse(RefusalReason::Draining, 0.0);
        }
        let request = ScheduledRequest::new(arrival, now);
        let left = request.deadline.map(|deadline| deadline - now);
        if left.is_some_and(|left| left <= 0.0 || is_out_of_reach(state, &request, left)) {
            return refuse(RefusalReason::Unreachable, 0.0);
        }
        let wait = estimate::wait(state, &request, now);
        if self.is_full(arrival.tenant) {
            return refuse(RefusalReason::QueueFull, wait);
        }
        let most = state.config.max_wait[arrival.class.index()];
        if state.costs.are_known() && most.is_some_and(|most| wait > seconds(most)) {
            return refuse(RefusalReason::TooLongWait, wait);
        }
        self.state.add(request);
        Ok(Admission { wait: duration(wait) })
    }

    /// Whether a tenant's request finds no room in the queue. Beyond the limit, there is room for tenants
    /// that use less of the queue than their part, up to twice the limit.
    fn is_full(&self, tenant: TenantId) -> bool {
        let mut waiting = BTreeMap::from([(tenant, 0_usize)]);
        for request in self.state.requests.values().filter(|request| !request.is_running) {
            *waiting.entry(request.tenant).or_insert(0) += 1;
        }
        let (all, limit) = (waiting.values().sum::<usize>(), self.state.config.max_queue as usize);
        all >= limit && (waiting[&tenant] >= limit / waiting.len() || all >= 2 * limit)
    }

    /// Cancels a request: the next plan ends it. Returns whether there was one of that name.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let number = self.state.numbers.get(&id);
        let request = number.and_then(|number| self.state.requests.get_mut(number));
        request.map(|request| request.is_cancelled = true).is_some()
    }

    /// An adapter is loaded: requests with it can run from now on.
    pub fn adapter_ready(&mut self, adapter: AdapterId) {
        self.state.adapters.insert(adapter);
    }

    /// An adapter is no longer there, or could not be loaded: the next plan ends the requests that have it.
    pub fn adapter_gone(&mut self, adapter: AdapterId) {
        self.state.adapters.remove(&adapter);
        let requests = self.state.requests.values_mut();
        let its = requests.filter(|request| request.adapter == Some(adapter));
        its.for_each(|request| request.is_adapter_gone = true);
    }

    /// Accepts no more requests. The next plan ends those that wait and have no token yet; the others go on
    /// until they end, or `until`. A drain does not end.
    pub fn drain(&mut self, until: Duration) {
        self.state.drain = Some(seconds(until));
    }

    /// The next step. It is carried out in the order of its fields, and the outcome of its entries is
    /// reported before the next plan; with [`SchedulerConfig::steps_in_flight`], before so many further
    /// plans. Of what is not reported by then, the latest step has not run. A plan leaves alone what is on
    /// its way.
    pub fn plan(&mut self, now: Duration, memory: &dyn Memory) -> PlannedStep {
        let now = self.state.at(now);
        self.settle();
        plan(&mut self.state, now, memory)
    }

    /// The next step where there is nothing to decide: one request is there, it is answering, nothing is on
    /// its way and nothing ends it. [`Scheduler::went_on`] is told of the step, if it runs. `None` where a
    /// plan is needed, as it is now and then, so that costs are learnt.
    pub fn alone(&self) -> Option<StepEntry> {
        let SchedulerState { requests, planned, drain, is_short, lone, config, .. } = &self.state;
        if requests.len() > 1 || !planned.is_empty() || drain.is_some() || *is_short || lone.0 >= LONE {
            return None;
        }
        let request = requests.values().next()?;
        let goes_on = request.is_answering && request.is_decoding(config.max_forced) && request.left() > 0;
        let ends = request.is_cancelled || request.is_adapter_gone || request.deadline.is_some();
        let ScheduledRequest { id, adapter, computed, known, drafts, .. } = *request;
        let room = config.max_batch_tokens.checked_sub(request.pending());
        room.filter(|_| goes_on && !ends).map(|room| StepEntry {
            id,
            adapter,
            from: computed,
            to: known,
            drafts: drafts.min(room),
            samples: true,
        })
    }

    /// The step of [`Scheduler::alone`] has run until `now`, and took so long.
    pub fn went_on(&mut self, now: Duration, entry: &StepEntry, outcome: &EntryOutcome, took: Duration) {
        let now = self.state.at(now);
        let Some(number) = self.state.numbers.get(&entry.id).copied() else { return };
        self.state.lone = (self.state.lone.0 + 1, self.state.lone.1 + seconds(took));
        if outcome.ended {
            self.settle();
        }
        self.advance(&PlannedEntry { number, is_prefill: false, entry: *entry }, outcome, now);
    }

    /// Charges the lone request for its steps since the last plan.
    fn settle(&mut self) {
        let (_, had) = std::mem::take(&mut self.state.lone);
        if had > 0.0
            && let Some(request) = self.state.requests.values().next()
        {
            let (class, tenant) = (request.class, request.tenant);
            if class != Class::Background {
                self.state.classes.spend(&BTreeMap::from([(class, had)]));
            }
            self.state.tenants[class.index()].spend(&BTreeMap::from([(tenant, had)]));
        }
    }

    /// The entries of the oldest plan that has not been reported have run until `now`; or those of the latest
    /// plan have failed.
    pub fn report(&mut self, now: Duration, report: &StepReport) {
        let now = self.state.at(now);
        if let Some(fault) = report.fault {
            self.state.planned.pop_back();
            self.state.is_short = fault == StepFault::OutOfMemory;
            return;
        }
        let planned = self.state.planned.pop_front().unwrap_or_default();
        let outcomes: BTreeMap<RequestId, EntryOutcome> =
            report.outcomes.iter().map(|outcome| (outcome.id, *outcome)).collect();
        let ran: Vec<(PlannedEntry, EntryOutcome)> =
            planned.iter().filter_map(|one| Some((*one, *outcomes.get(&one.entry.id)?))).collect();
        let load = |one: &PlannedEntry| StepLoad::piece(one.entry.tokens(), one.entry.from);
        // Costs are those of the whole step: one that ran in parts teaches nothing.
        if ran.len() == planned.len() {
            let all = planned.iter().fold(StepLoad::default(), |sum, one| sum.and(load(one)));
            self.state.costs.observe(all, seconds(report.took));
        }
        self.charge(&ran, seconds(report.took));
        for (one, outcome) in ran {
            self.advance(&one, &outcome, now);
        }
    }

    /// Splits a step's seconds among its requests, as their entries would have taken by themselves.
    fn charge(&mut self, ran: &[(PlannedEntry, EntryOutcome)], took: f64) {
        let alone =
            |one: &PlannedEntry| self.state.costs.step(StepLoad::piece(one.entry.tokens(), one.entry.from));
        let costs: Vec<f64> = ran.iter().map(|(one, _)| alone(one)).collect();
        let all: f64 = costs.iter().sum();
        let mut classes = BTreeMap::new();
        let mut tenants = [const { BTreeMap::new() }; 3];
        for ((one, _), cost) in ran.iter().zip(costs) {
            let Some(request) = self.state.requests.get_mut(&one.number) else { continue };
            let had = took * cost / all;
            if one.is_prefill {
                request.served += had;
            }
            if request.class != Class::Background {
                *classes.entry(request.class).or_insert(0.0) += had;
            }
            *tenants[request.class.index()].entry(request.tenant).or_insert(0.0) += had;
        }
        if !classes.is_empty() {
            self.state.classes.spend(&classes);
        }
        for (shares, spent) in self.state.tenants.iter_mut().zip(tenants) {
            if !spent.is_empty() {
                shares.spend(&spent);
            }
        }
    }

    /// An entry has run.
    fn advance(&mut self, one: &PlannedEntry, outcome: &EntryOutcome, now: f64) {
        let window = seconds(self.state.config.floor_window);
        let Some(request) = self.state.requests.get_mut(&one.number) else { return };
        let tokens = if one.entry.samples { outcome.tokens } else { 0 };
        request.produced = request.produced.saturating_add(tokens);
        request.known = request.known.saturating_add(tokens);
        let accepted = outcome.accepted.min(one.entry.drafts);
        // The last token that was sampled is not in the cache.
        request.computed = one.entry.to.saturating_add(accepted).min(request.known - 1);
        request.drafts = outcome.drafts;
        if tokens > 0 {
            request.is_answering = true;
            request.pace.add(now, tokens, window);
        }
        if outcome.ended {
            self.state.remove(one.number);
        }
    }

    /// A request that the last plan started has found only `cached` tokens in the prefix cache, less than the
    /// plan counted on: others have taken the room, or a disk has failed. Its entry is not to be run, and has
    /// no outcome in the report; the next plan goes on from there.
    pub fn found(&mut self, id: RequestId, cached: u32) {
        let number = self.state.numbers.get(&id);
        if let Some(request) = number.and_then(|number| self.state.requests.get_mut(number)) {
            request.computed = request.computed.min(cached);
            request.service.0 = request.service.0.min(cached);
        }
    }

    /// Whether no request waits or runs.
    pub fn is_empty(&self) -> bool {
        self.state.requests.is_empty()
    }

    /// A request as it stands, if there is one of that name.
    pub fn request(&self, id: RequestId) -> Option<RequestView> {
        let request = self.state.requests.get(self.state.numbers.get(&id)?)?;
        Some(RequestView::new(&self.state, request, self.state.now()))
    }

    /// How many requests there are, and who is due how much.
    pub fn stats(&self) -> SchedulerStats {
        SchedulerStats::new(&self.state)
    }

    /// The times of steps, as far as they have been measured.
    pub fn costs(&self) -> &Costs {
        &self.state.costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Unlimited;

    /// A scheduler with an answer of two tokens so far.
    fn answering() -> (Scheduler, Duration) {
        let mut scheduler = Scheduler::new(SchedulerConfig::default()).unwrap();
        let arrival = Arrival { max_tokens: 200, ..arrival(1) };
        scheduler.arrive(Duration::ZERO, &arrival).unwrap();
        assert_eq!(scheduler.alone(), None, "its prompt is planned");
        let mut now = Duration::ZERO;
        for _ in 0..2 {
            now += Duration::from_millis(10);
            planned(&mut scheduler, now);
        }
        (scheduler, now)
    }

    fn arrival(id: u64) -> Arrival {
        Arrival {
            id: RequestId(id),
            tenant: TenantId(0),
            class: Class::Interactive,
            priority: 0,
            deadline: None,
            adapter: None,
            prompt_tokens: 30,
            cached_tokens: 0,
            max_tokens: 9,
        }
    }

    fn outcome(id: RequestId, ended: bool) -> EntryOutcome {
        EntryOutcome { id, tokens: 1, accepted: 0, drafts: 0, ended }
    }

    /// A step by a plan.
    fn planned(scheduler: &mut Scheduler, now: Duration) {
        let step = scheduler.plan(now, &Unlimited);
        let outcomes = step.entries.iter().map(|entry| outcome(entry.id, false)).collect();
        scheduler.report(now, &StepReport { took: Duration::from_millis(10), outcomes, fault: None });
    }

    #[test]
    fn a_lone_request_goes_on_as_by_plans() {
        let (mut by_plans, mut now) = answering();
        let (mut alone, _) = answering();
        let mut steps = 0;
        for _ in 0..100 {
            now += Duration::from_millis(10);
            planned(&mut by_plans, now);
            match alone.alone() {
                Some(entry) => {
                    assert_eq!((entry.to - entry.from, entry.samples), (1, true));
                    steps += 1;
                    alone.went_on(now, &entry, &outcome(entry.id, false), Duration::from_millis(10));
                }
                None => planned(&mut alone, now),
            }
        }
        // Now and then a step is planned.
        assert_eq!(steps, 99);
        let (a, b) = (by_plans.request(RequestId(1)).unwrap(), alone.request(RequestId(1)).unwrap());
        let tokens = |view: &RequestView| (view.known_tokens, view.computed_tokens, view.produced_tokens);
        assert_eq!((tokens(&a), a.waited, a.hold), (tokens(&b), b.waited, b.hold));
    }

    #[test]
    fn what_a_plan_decides_is_left_to_plans() {
        let (mut scheduler, now) = answering();
        assert!(scheduler.alone().is_some());
        let mut drained = scheduler.clone();
        drained.drain(now);
        assert_eq!(drained.alone(), None);
        let mut cancelled = scheduler.clone();
        cancelled.cancel(RequestId(1));
        assert_eq!(cancelled.alone(), None);
        let mut two = scheduler.clone();
        two.arrive(now, &arrival(2)).unwrap();
        assert_eq!(two.alone(), None);
        let entry = scheduler.alone().unwrap();
        scheduler.went_on(now, &entry, &outcome(entry.id, true), Duration::from_millis(10));
        assert!(scheduler.is_empty() && scheduler.alone().is_none());
    }
}
