//! Recording of what each worker does and when. Off unless asked for; all memory is taken beforehand.

use super::meter::StepSample;
use super::resolve::ResolvedClass;
use crate::trace::{Activity, Trace, TracedBatch, TracedCall, TracedStep};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Numbers of calls that are no step's.
const GATHER: u64 = u64::MAX;
const ROWS: u64 = u64::MAX - 1;

/// The record of one worker, who alone adds to it. It has its cache lines to itself.
#[repr(align(64))]
pub(super) struct Lane {
    began: Instant,
    next: AtomicUsize,
    calls: Box<[RecordedCall]>,
}

/// Atomic, so that the worker who writes them and the thread that reads them afterwards need no lock.
#[derive(Default)]
struct RecordedCall {
    /// Number of the step in its class, or one of those above.
    what: AtomicU64,
    /// Nanoseconds since the beginning: begun, done, passed.
    times: [AtomicU64; 3],
}

impl Lane {
    /// A step's kernel.
    pub(super) fn step(&self, step: usize, times: [Instant; 3]) {
        self.add(step as u64, times);
    }

    /// Moving wanted rows together.
    pub(super) fn gather(&self, times: [Instant; 3]) {
        self.add(GATHER, times);
    }

    /// Handing out rows.
    pub(super) fn rows(&self, times: [Instant; 3]) {
        self.add(ROWS, times);
    }

    fn add(&self, what: u64, times: [Instant; 3]) {
        let next = self.used();
        // There is room: the recorder has counted before it let the batch in.
        let Some(call) = self.calls.get(next) else { return };
        call.what.store(what, Ordering::Relaxed);
        for (at, time) in call.times.iter().zip(times) {
            at.store(nanoseconds(self.began, time), Ordering::Relaxed);
        }
        self.next.store(next + 1, Ordering::Relaxed);
    }

    fn used(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }
}

/// The records so far.
pub(super) struct Recorder {
    began: Instant,
    lanes: Box<[Lane]>,
    /// Most batches.
    most: usize,
    batches: Vec<TracedBatch>,
    /// By batch, where its calls end in every lane: all workers make the same calls.
    ends: Vec<usize>,
    steps: Vec<TracedStep>,
    /// Whether the present batch is recorded.
    is_on: bool,
    left_out: u64,
}

impl Recorder {
    /// With room for `most` batches of one slab of logits each.
    pub(super) fn new(most: usize, classes: &[ResolvedClass], workers: usize) -> Recorder {
        let calls = most.saturating_mul(classes.iter().map(|class| calls(class, 1)).max().unwrap_or(0));
        let began = Instant::now();
        let lane = |_| Lane {
            began,
            next: AtomicUsize::new(0),
            calls: (0..calls).map(|_| RecordedCall::default()).collect(),
        };
        Recorder {
            began,
            lanes: (0..workers).map(lane).collect(),
            most,
            batches: Vec::with_capacity(most),
            ends: Vec::with_capacity(most),
            steps: Vec::with_capacity(calls),
            is_on: false,
            left_out: 0,
        }
    }

    /// A batch of class `at` begins, with so many slabs of logits: it is recorded if there is room for all of
    /// it.
    pub(super) fn begin(&mut self, at: usize, class: &ResolvedClass, tokens: u32, slabs: usize) {
        let room = self.lanes.iter().map(|lane| lane.calls.len() - lane.used()).min().unwrap_or(0);
        self.is_on = self.batches.len() < self.most && calls(class, slabs) <= room;
        if !self.is_on {
            self.left_out += 1;
            return;
        }
        let (begin, from) = (nanoseconds(self.began, Instant::now()), self.steps.len());
        self.batches.push(TracedBatch { class: at, tokens, begin, end: begin, steps: from..from });
    }

    /// Lanes of the workers, if the present batch is recorded.
    pub(super) fn lanes(&self) -> &[Lane] {
        if self.is_on { &self.lanes } else { &[] }
    }

    /// The batch has ended on all workers.
    pub(super) fn end(&mut self, ran: &StepSample<'_>, class: &ResolvedClass) {
        if let Some(batch) = self.batches.last_mut().filter(|_| self.is_on) {
            batch.end = nanoseconds(self.began, Instant::now());
            ran.each_step(class, |step, work| self.steps.push(TracedStep { step, work }));
            batch.steps.end = self.steps.len();
            self.ends.push(self.lanes.iter().map(Lane::used).min().unwrap_or(0));
            self.is_on = false;
        }
    }

    /// Everything that was recorded.
    pub(super) fn finish(self) -> Trace {
        let Recorder { began, lanes, batches, ends, steps, left_out, .. } = self;
        let workers = lanes.iter().map(|lane| {
            let mut calls = Vec::with_capacity(lane.used());
            let mut from = 0;
            for (n, (batch, end)) in batches.iter().zip(&ends).enumerate() {
                let mut of_batch = batch.steps.clone();
                for call in &lane.calls[from..*end] {
                    let activity = match call.what.load(Ordering::Relaxed) {
                        GATHER => Activity::Gather,
                        ROWS => Activity::Rows,
                        // Both are in the order in which the steps were run.
                        number => match of_batch.find(|at| steps[*at].step as u64 == number) {
                            Some(at) => Activity::Step(at),
                            None => continue,
                        },
                    };
                    let [begin, done, passed] = [0, 1, 2].map(|n| call.times[n].load(Ordering::Relaxed));
                    calls.push(TracedCall { batch: n, activity, begin, done, passed });
                }
                from = *end;
            }
            calls
        });
        Trace { began, workers: workers.collect(), batches, steps, left_out }
    }
}

/// Calls of a batch on every worker at most: its steps, moving the wanted rows together, and for every slab
/// the steps of the logits and handing out their rows.
fn calls(class: &ResolvedClass, slabs: usize) -> usize {
    class.steps.len() + 1 + slabs * (class.logit_steps.len() + 1)
}

fn nanoseconds(began: Instant, time: Instant) -> u64 {
    time.saturating_duration_since(began).as_nanos() as u64
}
