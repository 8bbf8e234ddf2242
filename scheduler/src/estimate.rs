//! How long a request that arrives will wait.
//!
//! The estimate is that of a fluid machine. Work is the rest of prefills, in seconds. The request waits for
//! the work of its own tenant that goes before it by response ratio, and for as much of every other tenant as
//! is due to that one meanwhile. The time that answers need for their floor slows all of it down. If all
//! sequences are in use, it waits at least until as many answers have ended as there are requests before it,
//! or until its tenant is due so much that it gets the place of another one.

use crate::costs::StepLoad;
use crate::facts::{Class, TenantId, seconds};
use crate::request::ScheduledRequest;
use crate::state::SchedulerState;
use std::collections::{BTreeMap, BTreeSet};

/// How often the estimate is put into the response ratios that it rests on.
const ROUNDS: usize = 4;

/// Seconds until the first token of a request that arrives now, without its own prefill.
pub fn wait(state: &SchedulerState, request: &ScheduledRequest, now: f64) -> f64 {
    let work = PendingPrefills::of(state, request, now);
    let speed = prefill_speed(state);
    let mut wait = work.seconds(state, request, f64::INFINITY);
    for _ in 0..ROUNDS {
        wait = work.seconds(state, request, wait);
    }
    let ahead = work.requests_ahead(request, state, wait);
    let place = wait_for_place(state, request, ahead).min(wait_for_share(state, request, &work, wait));
    (wait / speed).max(place)
}

/// A request with prefill left.
struct PrefillJob {
    tenant: TenantId,
    class: Class,
    rest: f64,
    service: f64,
    waited: f64,
    is_running: bool,
}

/// All prefills that are left.
struct PendingPrefills {
    jobs: Vec<PrefillJob>,
    /// Seconds of the largest step.
    step: f64,
}

impl PendingPrefills {
    fn of(state: &SchedulerState, request: &ScheduledRequest, now: f64) -> PendingPrefills {
        let max_forced = state.config.max_forced;
        let left = state.requests.values().filter(|other| !other.is_decoding(max_forced));
        let counted = left.filter(|other| other.class >= request.class);
        let jobs = counted.map(|other| PrefillJob {
            tenant: other.tenant,
            class: other.class,
            rest: other.rest(&state.costs),
            service: other.service(&state.costs),
            waited: other.waited(now),
            is_running: other.is_running,
        });
        PendingPrefills { jobs: jobs.collect(), step: state.costs.prefill(state.config.max_batch_tokens, 0) }
    }

    /// Whether a job goes before the request after `wait` seconds, by response ratio.
    fn is_ahead(&self, job: &PrefillJob, service: f64, wait: f64) -> bool {
        // One step is under way in any case.
        let wait = wait.max(self.step);
        wait.is_infinite() || (job.waited + wait) / job.service >= wait / service
    }

    /// Seconds of work before the request, if it waits for `wait` seconds.
    fn seconds(&self, state: &SchedulerState, request: &ScheduledRequest, wait: f64) -> f64 {
        let service = request.service(&state.costs);
        let same_class = self.jobs.iter().filter(|job| job.class == request.class);
        let mut tenants = BTreeMap::new();
        let mut own = 0.0;
        for job in same_class {
            if job.tenant != request.tenant {
                *tenants.entry(job.tenant).or_insert(0.0) += job.rest;
            } else if self.is_ahead(job, service, wait) {
                own += job.rest;
            }
        }
        let weight = state.config.weight(request.tenant);
        let due = |tenant, rest: f64| rest.min((own + service) * state.config.weight(tenant) / weight);
        let class: f64 = own + tenants.into_iter().map(|(tenant, rest)| due(tenant, rest)).sum::<f64>();
        let others =
            |of: Class| self.jobs.iter().filter(|job| job.class == of).map(|job| job.rest).sum::<f64>();
        let interactive = state.config.interactive_share;
        let before = match request.class {
            Class::Interactive => 0.0,
            Class::Batch => others(Class::Interactive).min(class * interactive / (1.0 - interactive)),
            Class::Background => others(Class::Interactive) + others(Class::Batch),
        };
        class + before
    }

    /// Requests of the same tenant that get a place before this one.
    fn own_ahead(&self, request: &ScheduledRequest, state: &SchedulerState, wait: f64) -> usize {
        let service = request.service(&state.costs);
        let waiting = self.jobs.iter().filter(|job| !job.is_running && job.class == request.class);
        let own = waiting.filter(|job| job.tenant == request.tenant);
        own.filter(|job| self.is_ahead(job, service, wait)).count()
    }

    /// Requests that get a place before this one.
    fn requests_ahead(&self, request: &ScheduledRequest, state: &SchedulerState, wait: f64) -> usize {
        let own = self.own_ahead(request, state, wait);
        let waiting = self.jobs.iter().filter(|job| !job.is_running && job.class >= request.class);
        let mut others = BTreeMap::new();
        for job in waiting.filter(|job| job.tenant != request.tenant || job.class != request.class) {
            *others.entry((job.class, job.tenant)).or_insert(0) += 1;
        }
        let due =
            |class: Class, count: usize| if class == request.class { count.min(own + 1) } else { count };
        own + others.into_iter().map(|((class, _), count)| due(class, count)).sum::<usize>()
    }
}

/// The part of the time that prompts get.
fn prefill_speed(state: &SchedulerState) -> f64 {
    let load = answers(state);
    if load.tokens == 0 {
        return 1.0;
    }
    let depth = load.keys / f64::from(load.tokens);
    let floor = state.costs.step(load) * state.floor(depth as u32);
    1.0 - floor.min(1.0 - state.config.prefill_share)
}

/// A step of the interactive answers alone.
fn answers(state: &SchedulerState) -> StepLoad {
    let max_forced = state.config.max_forced;
    let answers = state.requests.values();
    let answers = answers.filter(|other| other.is_decoding(max_forced) && other.class == Class::Interactive);
    answers.fold(StepLoad::default(), |load, other| load.and(other.token_load()))
}

/// Seconds until enough answers have ended that a request with `ahead` others before it gets a sequence.
fn wait_for_place(state: &SchedulerState, request: &ScheduledRequest, ahead: usize) -> f64 {
    let running = state.requests.values().filter(|other| other.is_running && other.class >= request.class);
    let running: Vec<&ScheduledRequest> = running.collect();
    let places = state.config.max_sequences as usize;
    let missing = (ahead + running.len() + 1).saturating_sub(places);
    if missing == 0 || running.is_empty() {
        return 0.0;
    }
    let load = running.iter().fold(StepLoad::default(), |load, other| load.and(other.token_load()));
    // An answer is as long as others were, and no longer than it may become.
    let there = state.requests.values().filter(|other| other.class >= request.class);
    let (sum, count) = there.fold((0.0, 0.0), |(sum, count), other| {
        (sum + state.answer.min(f64::from(other.left())), count + 1.0)
    });
    let answer = state.costs.step(load) / (1.0 - state.config.prefill_share) * sum / count;
    answer * missing as f64 / running.len() as f64
}

/// Seconds until the request's tenant is due the place of another tenant's request.
fn wait_for_share(
    state: &SchedulerState,
    request: &ScheduledRequest,
    work: &PendingPrefills,
    wait: f64,
) -> f64 {
    let shares = &state.tenants[request.class.index()];
    let running = state.requests.values().filter(|other| other.is_running && other.class == request.class);
    let running: Vec<&ScheduledRequest> = running.filter(|other| other.tenant != request.tenant).collect();
    let others: BTreeSet<TenantId> = running.iter().map(|other| other.tenant).collect();
    let lag = seconds(state.config.share_lag);
    let due = running.iter().map(|other| shares.deficit(other.tenant) + other.lag(lag));
    let Some(due) = due.min_by(f64::total_cmp) else {
        return f64::INFINITY;
    };
    let ahead = work.own_ahead(request, state, wait) as f64;
    let missing = due - shares.deficit(request.tenant) + lag * ahead;
    // One that has the machine alone gets ahead by a second in a second; several do so more slowly.
    missing.max(0.0) * others.len() as f64
}
