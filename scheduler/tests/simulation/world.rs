//! A scripted engine in virtual time. It checks every plan while it carries it out.

use crate::pool::Pool;
use kernmill_scheduler::{
    AdapterId, Arrival, BlockCounts, Class, EndReason, EntryOutcome, Memory, PlannedStep, PreemptReason,
    Refusal, RequestId, Scheduler, SchedulerConfig, StepEntry, StepFault, StepReport, TenantId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Plans of a script at most: far more than any script needs whose requests get on.
const MOST_PLANS: u64 = 300_000;

pub fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(0.0))
}

/// The true times of steps.
#[derive(Clone, Copy)]
pub struct Truth {
    pub factor: f64,
    /// Largest part by which a step is off.
    pub noise: f64,
    /// The machine's speed goes up and down by this part, in ten minutes.
    pub drift: f64,
    /// One step in so many takes three times as long.
    pub late: Option<u32>,
}

impl Truth {
    pub const QUIET: Truth = Truth { factor: 1.0, noise: 0.0, drift: 0.0, late: None };
    pub const NOISY: Truth = Truth { factor: 1.0, noise: 0.1, drift: 0.3, late: Some(200) };

    /// Seconds of a step without noise at the start of time: other sizes, and other costs, than the defaults
    /// of the scheduler.
    pub fn step(&self, tokens: u32, keys: f64) -> f64 {
        let curve = [(0, 0.03), (1, 0.05), (4, 0.08), (16, 0.22), (64, 0.36), (128, 0.6), (512, 2.2)];
        let above = curve.partition_point(|(size, _)| *size < tokens).clamp(1, curve.len() - 1);
        let ((a, low), (b, high)) = (curve[above - 1], curve[above]);
        let part = (f64::from(tokens) - f64::from(a)) / f64::from(b - a);
        self.factor * (low + (high - low) * part + 4e-7 * keys)
    }

    /// Seconds that a request takes alone.
    pub fn alone(&self, prompt: u32, answer: u32, largest: u32) -> f64 {
        let mut seconds = 0.0;
        let mut at = 0;
        while at < prompt {
            let piece = largest.min(prompt - at);
            seconds += self.step(piece, f64::from(piece) * (f64::from(at) + f64::from(piece) / 2.0));
            at += piece;
        }
        seconds + f64::from(answer) * self.step(1, f64::from(prompt + answer / 2))
    }
}

/// A request of a script.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub at: f64,
    pub arrival: Arrival,
    /// Tokens after which the model ends it.
    pub answer: u32,
    pub cancel_at: Option<f64>,
    /// Prompts of a family begin alike.
    pub family: Option<(u32, u32)>,
    /// Parts of a thousand steps that bring forced tokens, and that offer drafts.
    pub forced: u32,
    pub drafts: u32,
}

impl Job {
    /// An interactive request of tenant 0.
    pub fn chat(id: u64, at: f64, prompt: u32, answer: u32) -> Job {
        let arrival = Arrival {
            id: RequestId(id),
            tenant: TenantId(0),
            class: Class::Interactive,
            priority: 0,
            deadline: None,
            adapter: None,
            prompt_tokens: prompt,
            cached_tokens: 0,
            max_tokens: answer,
        };
        Job { at, arrival, answer, cancel_at: None, family: None, forced: 0, drafts: 0 }
    }

    #[must_use]
    pub fn of(mut self, tenant: u64, class: Class) -> Job {
        (self.arrival.tenant, self.arrival.class) = (TenantId(tenant), class);
        self
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Finished,
    Refused(Refusal),
    Ended(EndReason),
}

/// The history of a request.
#[derive(Clone, Debug)]
pub struct Record {
    pub job: Job,
    pub estimate: f64,
    pub first_token: Option<f64>,
    /// Times and counts of its tokens.
    pub tokens: Vec<(f64, u32)>,
    /// When its answer was interrupted by a preemption.
    pub preempted: Vec<f64>,
    pub end: Option<(f64, How)>,
    pub known: u32,
    pub produced: u32,
    drafts: u32,
}

/// Disturbances besides the script.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Parts of a thousand steps that fail for want of memory, and for other reasons.
    pub memory: u32,
    pub other: u32,
    /// Parts of a thousand steps in which somebody else pins blocks.
    pub pins: u32,
}

pub struct World {
    pub scheduler: Scheduler,
    pub config: SchedulerConfig,
    pub pool: Pool,
    pub truth: Truth,
    pub faults: Faults,
    pub now: f64,
    pub records: BTreeMap<RequestId, Record>,
    /// Every plan, if they are wanted.
    pub steps: Option<Vec<PlannedStep>>,
    /// Seconds of the machine by class and tenant.
    pub spent: BTreeMap<(Class, TenantId), f64>,
    pub busy: f64,
    pub longest_stall: f64,
    pub ran: u64,
    /// For every step: when it ended, how much slower the machine was than at the start, and how many
    /// interactive answers grew.
    pub paces: Vec<(f64, f64, u32)>,
    pub preemptions: BTreeMap<&'static str, u64>,
    adapters: BTreeSet<AdapterId>,
    rng: fastrand::Rng,
    /// When the run stops, whoever is still there.
    pub stop_at: Option<f64>,
}

/// An event at a time.
#[derive(Clone, Copy)]
pub enum Event {
    Arrive(Job),
    Cancel(RequestId),
    Adapter(AdapterId),
    AdapterGone(AdapterId),
    /// No new requests; the end of the drain.
    Drain(f64),
}

impl World {
    pub fn new(config: SchedulerConfig, blocks: BlockCounts, truth: Truth, seed: u64) -> World {
        World {
            scheduler: Scheduler::new(config.clone()).expect("a legal configuration"),
            pool: Pool::new(blocks, config.max_batch_tokens),
            config,
            truth,
            faults: Faults::default(),
            now: 0.0,
            records: BTreeMap::new(),
            steps: None,
            spent: BTreeMap::new(),
            busy: 0.0,
            longest_stall: 0.0,
            ran: 0,
            paces: Vec::new(),
            preemptions: BTreeMap::new(),
            adapters: BTreeSet::new(),
            rng: fastrand::Rng::with_seed(seed),
            stop_at: None,
        }
    }

    /// Runs a script until every request has ended.
    pub fn run(&mut self, jobs: &[Job], others: &[(f64, Event)]) {
        let mut events: Vec<(f64, Event)> = jobs.iter().map(|job| (job.at, Event::Arrive(*job))).collect();
        let cancels = jobs.iter().filter_map(|job| Some((job.cancel_at?, Event::Cancel(job.arrival.id))));
        events.extend(cancels);
        events.extend(others);
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        events.reverse();
        let (mut idle, mut plans) = (0, 0);
        loop {
            plans += 1;
            assert!(plans < MOST_PLANS, "plans without end: {:?}", self.scheduler.stats());
            self.deliver(&mut events);
            if self.stop_at.is_some_and(|stop| self.now >= stop) {
                return;
            }
            let step = self.plan();
            if !step.is_idle() {
                idle = 0;
                self.execute(&step, &mut events);
                continue;
            }
            idle += 1;
            assert!(idle < 1000, "plans lead nowhere: {step:?}");
            let next = events.last().map(|event| event.0);
            let wake = step.wake.map(|wake| wake.as_secs_f64());
            match next.into_iter().chain(wake).min_by(f64::total_cmp) {
                Some(next) => self.now = self.now.max(next),
                None if self.scheduler.is_empty() => break,
                None => panic!("nothing will happen any more: {step:?} {:?}", self.scheduler.stats()),
            }
        }
        self.pool.check();
        assert_eq!(self.pool.used(), 0, "blocks are still in use");
        for record in self.records.values() {
            assert!(record.end.is_some(), "no end of {record:?}");
        }
    }

    fn deliver(&mut self, events: &mut Vec<(f64, Event)>) {
        while events.last().is_some_and(|(at, _)| *at <= self.now) {
            let (at, event) = events.pop().expect("there is one");
            self.happen(at, event);
        }
    }

    fn happen(&mut self, at: f64, event: Event) {
        match event {
            Event::Arrive(job) => {
                let result = self.scheduler.arrive(secs(at), &job.arrival);
                let id = job.arrival.id;
                let (estimate, end) = match result {
                    Ok(admission) => (admission.wait.as_secs_f64(), None),
                    Err(refusal) => (0.0, Some((at, How::Refused(refusal)))),
                };
                if let (Some(family), None) = (job.family, end) {
                    self.pool.families.insert(id, family);
                }
                let record = Record {
                    job,
                    estimate,
                    first_token: None,
                    tokens: Vec::new(),
                    preempted: Vec::new(),
                    end,
                    known: job.arrival.prompt_tokens,
                    produced: 0,
                    drafts: 0,
                };
                assert!(self.records.insert(id, record).is_none(), "ids of a script are unique");
            }
            Event::Cancel(id) => {
                let is_there = self.records.get(&id).is_some_and(|record| record.end.is_none());
                assert_eq!(self.scheduler.cancel(id), is_there);
            }
            Event::Adapter(adapter) => {
                self.adapters.insert(adapter);
                self.scheduler.adapter_ready(adapter);
            }
            Event::AdapterGone(adapter) => {
                self.adapters.remove(&adapter);
                self.scheduler.adapter_gone(adapter);
            }
            Event::Drain(until) => self.scheduler.drain(secs(until)),
        }
    }

    fn plan(&mut self) -> PlannedStep {
        if self.rng.u32(0..1000) < self.faults.pins {
            self.pool.pinned = [0, 1].map(|_| self.rng.u64(0..12));
        }
        let step = self.scheduler.plan(secs(self.now), &self.pool);
        if let Some(steps) = &mut self.steps {
            steps.push(step.clone());
        }
        for ended in &step.ended {
            let record = self.records.get_mut(&ended.id).expect("it has arrived");
            assert!(record.end.is_none(), "{:?} ends twice", ended.id);
            record.end = Some((self.now, How::Ended(ended.reason)));
            assert_eq!(self.pool.runs(ended.id), ended.was_running);
            if ended.was_running {
                self.pool.drop_sequence(ended.id, false);
            }
            self.pool.forget(ended.id);
        }
        for preempted in &step.preempted {
            self.pool.drop_sequence(preempted.id, true);
            let record = self.records.get_mut(&preempted.id).expect("it has arrived");
            assert!(record.end.is_none());
            record.preempted.push(self.now);
            record.drafts = 0;
            let name = match preempted.reason {
                PreemptReason::Memory => "memory",
                PreemptReason::Class => "class",
                PreemptReason::Share => "share",
            };
            *self.preemptions.entry(name).or_insert(0) += 1;
        }
        for started in &step.started {
            let record = &self.records[&started.id];
            assert!(record.end.is_none() && !step.preempted.iter().any(|one| one.id == started.id));
            let cached = self.pool.start(started.id).min(record.known - 1);
            assert_eq!(cached, started.cached);
            self.pool.truncate(started.id, cached);
        }
        self.check(&step);
        step
    }

    /// The rules that every plan keeps to.
    fn check(&self, step: &PlannedStep) {
        assert!(step.tokens() <= self.config.max_batch_tokens);
        assert!(step.entries.is_sorted_by_key(|entry| entry.adapter));
        let ids: BTreeSet<RequestId> = step.entries.iter().map(|entry| entry.id).collect();
        assert_eq!(ids.len(), step.entries.len(), "a request has two entries");
        let running = self.records.keys().filter(|id| self.pool.runs(**id)).count();
        assert!(running <= self.config.max_sequences as usize);
        for entry in &step.entries {
            let record = &self.records[&entry.id];
            assert!(record.end.is_none() && self.pool.runs(entry.id));
            assert_eq!(entry.from, self.pool.length(entry.id));
            assert!(entry.from < entry.to && entry.to <= record.known);
            assert_eq!(entry.samples, entry.to == record.known);
            assert!(entry.drafts == 0 || (entry.samples && entry.drafts <= record.drafts));
            assert!(entry.adapter.is_none_or(|adapter| self.adapters.contains(&adapter)));
            assert_eq!(entry.adapter, record.job.arrival.adapter);
        }
        let class = |id: &RequestId| self.records[id].job.arrival.class;
        if ids.iter().any(|id| class(id) == Class::Background) {
            assert!(ids.iter().all(|id| class(id) == Class::Background), "background work is not alone");
        }
        // Whatever is not in the step has a reason. Long queues are looked through now and then.
        if self.records.len() > 64 && !self.ran.is_multiple_of(64) {
            return;
        }
        for id in self.records.keys().filter(|id| !ids.contains(id)) {
            if let Some(view) = self.scheduler.request(*id) {
                assert!(view.hold.is_some(), "nothing explains why {id:?} is not in the step: {view:?}");
            }
        }
    }

    fn execute(&mut self, step: &PlannedStep, events: &mut Vec<(f64, Event)>) {
        let is_out_of_memory = self.rng.u32(0..1000) < self.faults.memory;
        let has_failed = self.rng.u32(0..1000) < self.faults.other;
        if is_out_of_memory || has_failed {
            let fault = Some(if is_out_of_memory { StepFault::OutOfMemory } else { StepFault::Other });
            let took = secs(0.001);
            self.now += 0.001;
            self.scheduler.report(secs(self.now), &StepReport { took, outcomes: Vec::new(), fault });
            return;
        }
        let keys = |from: u32, tokens: u32| f64::from(tokens) * (f64::from(from) + f64::from(tokens) / 2.0);
        let all = step.entries.iter().map(|entry| keys(entry.from, entry.tokens())).sum();
        let mut took = self.truth.step(step.tokens(), all);
        let drift = 1.0 + self.truth.drift * (self.now / 600.0 * std::f64::consts::TAU).sin();
        took *= drift;
        took *= 1.0 + self.truth.noise * (2.0 * self.rng.f64() - 1.0);
        if self.truth.late.is_some_and(|late| self.rng.u32(0..late) == 0) {
            took *= 3.0;
        }
        let is_answering = |entry: &StepEntry| {
            let record = &self.records[&entry.id];
            let is_piece = entry.to - entry.from > self.config.max_forced + 1;
            record.produced > 0 && !is_piece && record.job.arrival.class == Class::Interactive
        };
        let answers = step.entries.iter().filter(|entry| is_answering(entry)).count() as u32;
        self.paces.push((self.now + took, drift, answers));
        if answers > 0 {
            self.longest_stall = self.longest_stall.max(took);
        }
        let alone: Vec<f64> = step
            .entries
            .iter()
            .map(|entry| self.truth.step(entry.tokens(), keys(entry.from, entry.tokens())))
            .collect();
        let sum: f64 = alone.iter().sum();
        for (entry, alone) in step.entries.iter().zip(alone) {
            let arrival = self.records[&entry.id].job.arrival;
            *self.spent.entry((arrival.class, arrival.tenant)).or_insert(0.0) += took * alone / sum;
        }
        self.ran += 1;
        self.busy += took;
        let end = self.now + took;
        // Events of the meantime are reported in the meantime.
        while events.last().is_some_and(|(at, _)| *at <= end) {
            let (at, event) = events.pop().expect("there is one");
            self.happen(at, event);
        }
        self.now = end;
        let outcomes = step.entries.iter().filter_map(|entry| self.outcome(entry)).collect();
        self.scheduler.report(secs(end), &StepReport { took: secs(took), outcomes, fault: None });
        if self.ran.is_multiple_of(16) {
            self.pool.check();
        }
    }

    /// The outcome of an entry; `None` if it does not run because somebody else took the blocks.
    fn outcome(&mut self, entry: &StepEntry) -> Option<EntryOutcome> {
        let has_room = self.pool.append(entry.id, entry.tokens());
        if !has_room {
            assert!(self.faults.pins > 0, "the plan does not fit: {entry:?}");
            return None;
        }
        let record = self.records.get_mut(&entry.id).expect("it has arrived");
        let mut outcome = EntryOutcome { id: entry.id, tokens: 0, accepted: 0, drafts: 0, ended: false };
        if entry.samples {
            outcome.accepted = self.rng.u32(0..=entry.drafts);
            let forced = if self.rng.u32(0..1000) < record.job.forced { self.rng.u32(1..40) } else { 0 };
            outcome.tokens = (outcome.accepted + 1 + forced).min(record.job.answer - record.produced);
            outcome.accepted = outcome.accepted.min(outcome.tokens - 1);
            let longest = self.rng.choice([8, 256]).expect("one of two");
            outcome.drafts =
                if self.rng.u32(0..1000) < record.job.drafts { self.rng.u32(1..longest) } else { 0 };
            self.pool.truncate(entry.id, entry.to + outcome.accepted);
            record.drafts = outcome.drafts;
            record.known += outcome.tokens;
            record.produced += outcome.tokens;
            record.tokens.push((self.now, outcome.tokens));
            record.first_token.get_or_insert(self.now);
            // An answer that reaches its limit is ended by the scheduler.
            outcome.ended =
                record.produced == record.job.answer && record.produced < record.job.arrival.max_tokens;
        }
        if outcome.ended {
            record.end = Some((self.now, How::Finished));
            self.pool.drop_sequence(entry.id, false);
            self.pool.forget(entry.id);
        }
        Some(outcome)
    }

    /// Whether a request got everything it asked for.
    pub fn is_complete(&self, id: u64) -> bool {
        let record = &self.records[&RequestId(id)];
        let is_right = matches!(record.end, Some((_, How::Finished | How::Ended(EndReason::MaxTokens))));
        is_right && record.produced == record.job.answer
    }

    /// Seconds from a request's arrival to its first token.
    pub fn first_token(&self, id: u64) -> f64 {
        let record = &self.records[&RequestId(id)];
        record.first_token.expect("it has one") - record.job.at
    }
}

/// Room for everything.
pub const PLENTY: BlockCounts = [3000, 600];

/// Whether memory is as it was made.
pub fn is_all_there(pool: &Pool, blocks: BlockCounts) -> bool {
    let (free, evictable) = (pool.free(), pool.evictable());
    (0..2).all(|kind| free[kind] + evictable[kind] == blocks[kind])
}
