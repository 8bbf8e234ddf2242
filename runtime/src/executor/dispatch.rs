//! Running steps on all workers.

use super::memory::Memory;
use super::meter::{Clock, ExpertCounts};
use super::record::Lane;
use super::resolve::{RoutingAt, StepCall, WantedOnlyAt};
use super::rows::{Slab, WorkersTake};
use crate::adapter::LoraTargetSet;
use crate::pool::{Barrier, Pool};
use kernmill_plan::abi::{Args, KernelFn, Worker};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Stages of a dispatch at most: steps over the batch, over its wanted rows, over a slab of these.
const STAGES: usize = 3;

/// Which steps' routings are counted, and where; which steps are timed and recorded.
pub(super) struct TimedRun<'a> {
    pub routings: &'a [RoutingAt],
    pub chosen: &'a [ExpertCounts],
    /// Number of the run.
    pub run: u64,
    /// Clocks of the class's steps; none when they are not timed.
    pub clocks: &'a [Clock],
    /// By worker, where its calls are recorded; none when they are not.
    pub lanes: &'a [Lane],
}

/// A step of the class on one worker, while it is timed.
#[derive(Clone, Copy)]
struct Timing<'a> {
    step: usize,
    clock: Option<&'a Clock>,
    lane: Option<&'a Lane>,
    start: Instant,
    /// When the kernel returned.
    done: Instant,
}

// SAFETY: only worker 0 follows the addresses in `routings`, and only behind the barrier of the step that
// wrote there.
unsafe impl Sync for TimedRun<'_> {}

impl TimedRun<'_> {
    /// A worker begins a step, which is timed if anybody wants to know.
    fn begin(&self, step: usize, worker: u32) -> Option<Timing<'_>> {
        let (clock, lane) = (self.clocks.get(step), self.lanes.get(worker as usize));
        if clock.is_none() && lane.is_none() {
            return None;
        }
        let start = Instant::now();
        Some(Timing { step, clock, lane, start, done: start })
    }

    /// Worker 0, behind the barrier after step `step` of the class, run over so many tokens.
    fn after(&self, step: usize, tokens: usize) {
        let layers = self.routings.iter().zip(self.chosen);
        for (routing, chosen) in layers.filter(|(routing, _)| routing.step == step) {
            chosen.add(self.run, routing.experts(tokens));
        }
    }
}

impl Timing<'_> {
    /// The kernel has returned.
    fn called(&mut self, worker: u32) {
        self.done = Instant::now();
        if let Some(clock) = self.clock {
            clock.called(worker, self.done - self.start);
        }
    }

    /// The worker has passed the barrier behind the step.
    fn passed(&self, worker: u32) {
        let clock = self.clock.filter(|_| worker == 0);
        if clock.is_none() && self.lane.is_none() {
            return;
        }
        let passed = Instant::now();
        if let Some(clock) = clock {
            clock.passed(passed - self.start);
        }
        if let Some(lane) = self.lane {
            lane.step(self.step, [self.start, self.done, passed]);
        }
    }
}

/// Does work that is no step's, and is recorded in `lane` as `add` does; `work` returns when its own part is
/// done and when all are through.
fn recorded(lane: Option<&Lane>, add: fn(&Lane, [Instant; 3]), work: impl FnOnce(&mut dyn FnMut())) {
    let Some(lane) = lane else { return work(&mut || {}) };
    let start = Instant::now();
    let mut done = start;
    work(&mut || done = Instant::now());
    add(lane, [start, done, Instant::now()]);
}

/// Steps that run over the same rows.
pub(super) struct Stage<'a> {
    pub steps: &'a [StepCall],
    /// Number of the first among the class's.
    pub first: usize,
    pub args: &'a Args,
    /// Rows that are moved together before.
    pub gather: Option<(&'a WantedOnlyAt, &'a [u32])>,
}

/// Addresses that workers share for one dispatch.
#[derive(Clone, Copy)]
struct Shared<'a> {
    stages: &'a [Stage<'a>],
    /// By stage, its arguments without adapters.
    plain: &'a [Args],
    scratch: *mut u8,
}

// SAFETY: workers only read the arguments; they write disjoint parts of `scratch`, and read each other's only
// behind an atomic counter.
unsafe impl Sync for Shared<'_> {}
// SAFETY: it owns nothing.
unsafe impl Send for Shared<'_> {}

/// Runs stages one after the other on all workers, and hands out rows of logits, if any are asked for. There
/// is a barrier after every step but the last (which gets one when it is timed, or rows are handed out).
/// Steps for adapters at none of `lora_targets` are left out; others that look at none of those get no table
/// of adapters, so that they need not look at every token's entry to find nothing.
pub(super) fn dispatch(
    pool: &mut Pool,
    memory: &mut Memory,
    stages: &[Stage<'_>],
    lora_targets: &LoraTargetSet,
    counting: &TimedRun<'_>,
    rows: Option<(Slab, &WorkersTake<'_>)>,
) {
    for step in stages.iter().flat_map(|stage| stage.steps) {
        step.counters.0.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
    let count = pool.count() as u32;
    let stride = memory.scratch_stride;
    let none = Args { adapter_table: std::ptr::null(), ..*stages[0].args };
    let mut plain = [none; STAGES];
    for (plain, stage) in plain.iter_mut().zip(stages) {
        *plain = Args { adapter_table: std::ptr::null(), ..*stage.args };
    }
    let shared = Shared { stages, plain: &plain, scratch: memory.scratch.as_mut_ptr() };
    pool.run(&move |index: u32, barrier: &Barrier| {
        let shared = shared;
        let steps = |stage: usize| {
            shared.stages[stage].steps.iter().enumerate().map(move |(n, step)| (stage, n, step))
        };
        let all = (0..shared.stages.len()).flat_map(steps);
        let mut list = all.filter(|(_, _, step)| lora_targets.want(&step.lora_targets)).peekable();
        let lane = counting.lanes.get(index as usize);
        let mut gathered = 0;
        while let Some((at, n, step)) = list.next() {
            let stage = &shared.stages[at];
            if let Some((from, wanted)) = stage.gather.filter(|_| gathered < at) {
                recorded(lane, Lane::gather, |done| {
                    if index == 0 {
                        // SAFETY: the last step's barrier is behind all workers, and the next one in front of
                        // them; the executor holds the arena, and has checked the batch.
                        unsafe { from.gather(wanted) };
                    }
                    done();
                    barrier.wait();
                });
            }
            gathered = at;
            let worker = Worker {
                index,
                count,
                scratch: shared.scratch.wrapping_add(index as usize * stride),
                counters: step.counters.0.as_ptr(),
                operands: step.operands.as_ptr(),
                first_scratch: shared.scratch,
            };
            let mut timing = counting.begin(stage.first + n, index);
            let looks = lora_targets.any_of(&step.looks_at);
            let args = if looks { stage.args } else { &shared.plain[at] };
            call(step.kernel, args, &worker);
            if let Some(timing) = &mut timing {
                timing.called(index);
            }
            if let Some((next_stage, _, next)) = list.peek() {
                let mut fetch = next.heads.fetch(index, shared.stages[*next_stage].args.tokens as usize);
                barrier.wait_busy(|| fetch.some());
            } else if timing.is_some() {
                barrier.wait();
            }
            if let Some(timing) = timing {
                timing.passed(index);
            }
            if index == 0 {
                counting.after(stage.first + n, stage.args.tokens as usize);
            }
        }
        if let Some((slab, to)) = rows {
            barrier.wait();
            recorded(lane, Lane::rows, |done| {
                // SAFETY: every worker has ended the last step, and `run` returns when all have ended this.
                unsafe { slab.hand_out(index as usize, count as usize, to) };
                done();
            });
        }
    });
}

fn call(kernel: KernelFn, args: *const Args, worker: &Worker) {
    // SAFETY: the code is a kernel of the checked program; its operands, the batch behind `args` and the
    // block tables have been checked against the memory that the executor holds for the whole run.
    unsafe { kernel(args, worker) }
}
