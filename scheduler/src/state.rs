//! Everything that the scheduler remembers between plans.

use crate::config::SchedulerConfig;
use crate::costs::{Costs, StepLoad};
use crate::facts::{AdapterId, Class, RequestId, TenantId, seconds};
use crate::request::ScheduledRequest;
use crate::shares::Shares;
use crate::step::StepEntry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Seconds by which shares must differ before they decide. Within it, claims do.
pub const SLACK: f64 = 1.0;
/// Largest deficit of a class, in seconds. It is small: a burst of batch work passes interactive requests for
/// no longer.
const CLASS_MEMORY: f64 = 4.0;
/// Tokens of an answer, before any has ended.
const ANSWER: f64 = 256.0;
/// Weight of the latest answer in the mean.
const LATEST: f64 = 0.1;

/// An entry of the last plan.
#[derive(Clone, Copy, Debug)]
pub struct PlannedEntry {
    /// Number of the request.
    pub number: u64,
    /// Whether it was part of a prefill.
    pub is_prefill: bool,
    pub entry: StepEntry,
}

/// Requests, costs and shares.
///
/// Requests have numbers in the order of their arrival. Decisions between equals go by these, never by names.
#[derive(Clone, Debug)]
pub struct SchedulerState {
    pub config: SchedulerConfig,
    pub costs: Costs,
    pub requests: BTreeMap<u64, ScheduledRequest>,
    pub numbers: BTreeMap<RequestId, u64>,
    next_number: u64,
    pub adapters: BTreeSet<AdapterId>,
    /// Interactive and batch requests against each other.
    pub classes: Shares<Class>,
    /// By class: tenants against each other.
    pub tenants: [Shares<TenantId>; 3],
    /// Tokens of an answer in the mean.
    pub answer: f64,
    /// When a drain ends, if there is one.
    pub drain: Option<f64>,
    /// Whether the last step ran out of memory.
    pub is_short: bool,
    /// Steps of a lone request since the last plan, and the seconds that nobody was charged for.
    pub lone: (u32, f64),
    /// Entries of the plans that have not been reported, the oldest first.
    pub planned: VecDeque<Vec<PlannedEntry>>,
    /// Since when prompts want to run and could not.
    pub starved_since: Option<f64>,
    pub starts: u64,
    now: f64,
}

impl SchedulerState {
    pub fn new(config: SchedulerConfig) -> SchedulerState {
        let costs = Costs::new(config.max_batch_tokens, &config.start_costs, config.start_key_cost);
        let tenants = Shares::new(seconds(config.share_memory));
        SchedulerState {
            config,
            costs,
            requests: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_number: 0,
            adapters: BTreeSet::new(),
            classes: Shares::new(CLASS_MEMORY),
            tenants: [tenants.clone(), tenants.clone(), tenants],
            answer: ANSWER,
            drain: None,
            is_short: false,
            lone: (0, 0.0),
            planned: VecDeque::new(),
            starved_since: None,
            starts: 0,
            now: 0.0,
        }
    }

    /// Tokens of the next piece of a prompt that has `pending` tokens left, in a step with room for `room`.
    /// `None` where prompts run whole and this one does not fit.
    pub fn piece(&self, pending: u32, room: u32) -> Option<u32> {
        match self.config.whole_prompts {
            true => (pending <= room).then_some(pending),
            false => Some(pending.min(room)),
        }
    }

    /// Seconds of a time, which does not go back.
    pub fn at(&mut self, now: Duration) -> f64 {
        self.now = self.now.max(seconds(now));
        self.now
    }

    /// The time of the last call.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Takes a request in.
    pub fn add(&mut self, request: ScheduledRequest) {
        let (class, tenant) = (request.class, request.tenant);
        if let Some(weight) = self.class_weight(class) {
            self.classes.join(class, weight);
        }
        self.tenants[class.index()].join(tenant, self.config.weight(tenant));
        self.numbers.insert(request.id, self.next_number);
        self.requests.insert(self.next_number, request);
        self.next_number += 1;
    }

    /// Forgets a request that has ended.
    pub fn remove(&mut self, number: u64) -> Option<ScheduledRequest> {
        let request = self.requests.remove(&number)?;
        self.numbers.remove(&request.id);
        if self.class_weight(request.class).is_some() {
            self.classes.leave(request.class);
        }
        self.tenants[request.class.index()].leave(request.tenant);
        if request.produced > 0 {
            self.answer += LATEST * (f64::from(request.produced) - self.answer);
        }
        Some(request)
    }

    /// Whether a request is in a step that has begun and has not been reported.
    pub fn is_away(&self, number: u64) -> bool {
        self.planned.iter().flatten().any(|planned| planned.number == number)
    }

    fn class_weight(&self, class: Class) -> Option<f64> {
        match class {
            Class::Background => None,
            Class::Batch => Some(1.0 - self.config.interactive_share),
            Class::Interactive => Some(self.config.interactive_share),
        }
    }

    /// Whether a request's adapter is there.
    pub fn is_ready(&self, request: &ScheduledRequest) -> bool {
        request.adapter.is_none_or(|adapter| self.adapters.contains(&adapter))
    }

    /// Whether requests that are not background have work.
    pub fn is_busy(&self) -> bool {
        let counts = |request: &ScheduledRequest| {
            request.class != Class::Background && (request.is_running || self.is_ready(request))
        };
        self.requests.values().any(counts)
    }

    /// Whether batch requests have had less than their share, and go first.
    pub fn is_batch_due(&self) -> bool {
        self.classes.deficit(Class::Batch) > SLACK
    }

    /// Order of classes; the highest first.
    pub fn rank(&self, class: Class) -> u8 {
        match class {
            Class::Background => 0,
            Class::Batch if self.is_batch_due() => 3,
            Class::Batch => 1,
            Class::Interactive => 2,
        }
    }

    /// Tokens per second that an answer gets at least if it is interactive and follows `depth` tokens.
    pub fn floor(&self, depth: u32) -> f64 {
        let alone = 1.0 / self.costs.step(StepLoad::piece(1, depth));
        self.config.floor_rate.max(self.config.floor_fraction * alone)
    }

    /// Whether as many answers as a step has tokens get their floor, with time left for prompts.
    pub fn allows_width(&self, load: StepLoad) -> bool {
        let depth = load.keys / f64::from(load.tokens.max(1));
        let floor = self.floor(depth as u32);
        load.tokens <= 1 || self.costs.untried(load) * floor <= 1.0 - self.config.prefill_share
    }
}
