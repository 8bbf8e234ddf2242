//! Running steps on all workers.

use super::alone::Alone;
use super::memory::ExecutorMemory;
use super::meter::{ExpertCounts, StepClock};
use super::prefetch::Fetch;
use super::record::Lane;
use super::resolve::{RoutingAt, StepCall, WantedOnlyAt};
use super::rows::{Slab, WorkersTake};
use crate::adapter::LoraTargetSet;
use crate::pool::{Pool, PoolTurn};
use kernmill_plan::abi::{Args, KernelFn, Worker};
use kernmill_plan::hand_out::WorkersByNode;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Stages of a dispatch at most: steps over the batch, over its wanted rows, over a slab of these, and the
/// last of them.
const STAGES: usize = 4;

/// Which steps' routings are counted, and where; which steps are timed and recorded.
pub(super) struct TimedRun<'a> {
    pub routings: &'a [RoutingAt],
    pub chosen: &'a [ExpertCounts],
    /// Number of the run.
    pub run: u64,
    /// Clocks of the class's steps; none when they are not timed.
    pub clocks: &'a [StepClock],
    /// By worker, where its calls are recorded; none when they are not.
    pub lanes: &'a [Lane],
}

/// The work of a turn of a dispatch.
#[derive(Clone, Copy)]
enum TurnWork {
    /// Moving a stage's wanted rows together.
    Gather(usize),
    /// A stage's step.
    Step(usize, usize),
    /// Handing out rows.
    Rows,
}

/// Buffers that dispatches reuse, so that none allocates.
pub(super) struct DispatchState {
    /// The turns of the present one.
    parts: Vec<TurnWork>,
    /// By worker, a part that is done, until the turn has ended.
    timings: Box<[Mutex<Option<Timing>>]>,
    /// All workers, and a lone one.
    workers: WorkersByNode,
    lone_worker: WorkersByNode,
    alone: Alone,
}

impl DispatchState {
    /// For dispatches of at most so many steps.
    pub(super) fn new(steps: usize, workers: WorkersByNode) -> DispatchState {
        DispatchState {
            // Every stage may gather rows, and rows are handed out once.
            parts: Vec::with_capacity(steps + STAGES + 1),
            timings: (0..workers.workers()).map(|_| Mutex::new(None)).collect(),
            workers,
            lone_worker: WorkersByNode::of_one(1),
            alone: Alone::new(),
        }
    }
}

/// A worker's part of a turn, while it is timed.
#[derive(Clone, Copy)]
struct Timing {
    what: Timed,
    start: Instant,
    /// When it was done.
    done: Instant,
}

/// The thing that is timed: a part, by its step's number in the class.
#[derive(Clone, Copy)]
enum Timed {
    Gather,
    Step(usize),
    Rows,
}

// SAFETY: only worker 0 follows the addresses in `routings`, and only behind the barrier of the step that
// wrote there.
unsafe impl Sync for TimedRun<'_> {}

impl TimedRun<'_> {
    /// Whether anybody wants to know when parts begin and end.
    fn is_on(&self) -> bool {
        !self.clocks.is_empty() || !self.lanes.is_empty()
    }

    /// A worker's part begins, if that is to be known: what it did before has passed.
    fn begin(&self, seat: u32, last: &Mutex<Option<Timing>>) -> Option<Instant> {
        let now = self.is_on().then(Instant::now)?;
        self.passed(seat, last, now);
        Some(now)
    }

    /// A worker's part is done.
    fn done(&self, seat: u32, last: &Mutex<Option<Timing>>, what: Timed, start: Option<Instant>) {
        let Some(start) = start else { return };
        let done = Instant::now();
        if let (Timed::Step(step), true) = (what, !self.clocks.is_empty()) {
            self.clocks[step].called(seat, done - start);
        }
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Timing { what, start, done });
    }

    /// The turn of a worker's last part has ended.
    fn passed(&self, seat: u32, last: &Mutex<Option<Timing>>, now: Instant) {
        let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Timing { what, start, done }) = last else { return };
        let times = [start, done, now];
        if let Some(lane) = self.lanes.get(seat as usize) {
            match what {
                Timed::Gather => lane.gather(times),
                Timed::Step(step) => lane.step(step, times),
                Timed::Rows => lane.rows(times),
            }
        }
        if let (Timed::Step(step), 0, false) = (what, seat, self.clocks.is_empty()) {
            self.clocks[step].passed(now - start);
        }
    }

    /// Worker 0, behind step `step` of the class, run over so many tokens.
    fn after(&self, step: usize, tokens: usize) {
        let layers = self.routings.iter().zip(self.chosen);
        for (routing, chosen) in layers.filter(|(routing, _)| routing.step == step) {
            chosen.add(self.run, routing.experts(tokens));
        }
    }
}

/// Steps that run over the same rows.
pub(super) struct DispatchStage<'a> {
    pub steps: &'a [StepCall],
    /// Number of the first among the class's.
    pub first: usize,
    pub args: &'a Args,
    /// Rows that are moved together before.
    pub gather: Option<(&'a WantedOnlyAt, &'a [u32])>,
}

/// The state that workers share for one dispatch.
struct DispatchShared<'a> {
    stages: &'a [DispatchStage<'a>],
    /// By stage, its arguments without adapters.
    plain: &'a [Args],
    scratch: *mut u8,
    stride: usize,
    /// Workers that take part.
    workers: &'a WorkersByNode,
    parts: &'a [TurnWork],
    lora_targets: &'a LoraTargetSet,
    counting: &'a TimedRun<'a>,
    timings: &'a [Mutex<Option<Timing>>],
    rows: Option<(Slab, &'a WorkersTake<'a>)>,
}

// SAFETY: workers only read the arguments; they write disjoint parts of `scratch`, and read each other's only
// behind an atomic counter.
unsafe impl Sync for DispatchShared<'_> {}

/// Runs stages one after the other on all workers, and hands out rows of logits, if any are asked for. Every
/// step ends on all workers before the next begins. Steps for adapters at none of `lora_targets` are left
/// out; others that look at none of those get no table of adapters, so that they need not look at every
/// token's entry to find nothing.
pub(super) fn dispatch(
    pool: &mut Pool<Fetch<'static>>,
    memory: &mut ExecutorMemory,
    state: &mut DispatchState,
    stages: &[DispatchStage<'_>],
    lora_targets: &LoraTargetSet,
    counting: &TimedRun<'_>,
    rows: Option<(Slab, &WorkersTake<'_>)>,
) {
    for step in stages.iter().flat_map(|stage| stage.steps) {
        let counters = step.counters.iter().flat_map(|of_node| &of_node.0);
        counters.for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
    let none = Args { adapter_table: std::ptr::null(), ..*stages[0].args };
    let mut plain = [none; STAGES];
    for (plain, stage) in plain.iter_mut().zip(stages) {
        *plain = Args { adapter_table: std::ptr::null(), ..*stage.args };
    }
    list_parts(&mut state.parts, stages, lora_targets, rows.is_some());
    let workers = pool.count();
    // All workers make the same calls where these are timed.
    let alone = workers > 1 && state.alone.is_next() && !counting.is_on();
    let shared = DispatchShared {
        stages,
        plain: &plain,
        scratch: memory.scratch.as_mut_ptr(),
        stride: memory.scratch_stride,
        workers: if alone { &state.lone_worker } else { &state.workers },
        parts: &state.parts,
        lora_targets,
        counting,
        timings: &state.timings,
        rows,
    };
    let (start, turns) = (Instant::now(), shared.parts.len());
    let waited = if alone {
        pool.run_alone(|| (0..turns).for_each(|turn| shared.part(turn, 0)));
        None
    } else {
        Some(pool.run_turns(turns, &|turn: PoolTurn<'_>| {
            shared.part(turn.number, turn.seat);
            shared.fetch(turn.number + 1, turn.seat)
        }))
    };
    shared.end();
    let (tokens, took) = (stages[0].args.tokens as usize, start.elapsed());
    match waited {
        Some(waited) => state.alone.ran_together(workers, tokens, took, waited),
        None => state.alone.ran_alone(tokens, took),
    }
}

/// The turns of a dispatch.
fn list_parts(
    parts: &mut Vec<TurnWork>,
    stages: &[DispatchStage<'_>],
    lora_targets: &LoraTargetSet,
    rows: bool,
) {
    parts.clear();
    for (at, stage) in stages.iter().enumerate() {
        let wanted = stage.steps.iter().enumerate().filter(|(_, step)| lora_targets.want(&step.lora_targets));
        for (n, _) in wanted {
            let is_first = !matches!(parts.last(), Some(TurnWork::Step(last, _)) if *last == at);
            if is_first && stage.gather.is_some() {
                parts.push(TurnWork::Gather(at));
            }
            parts.push(TurnWork::Step(at, n));
        }
    }
    if rows {
        parts.push(TurnWork::Rows);
    }
}

impl DispatchShared<'_> {
    /// A worker's part of a turn.
    fn part(&self, turn: usize, seat: u32) {
        if seat == 0 {
            self.behind(turn);
        }
        let last = &self.timings[seat as usize];
        let start = self.counting.begin(seat, last);
        let what = match self.parts[turn] {
            TurnWork::Gather(at) => {
                if let Some((from, wanted)) = self.stages[at].gather.filter(|_| seat == 0) {
                    // SAFETY: the last turn has ended on all workers, and the next one begins after this; the
                    // executor holds the arena, and has checked the batch.
                    unsafe { from.gather(wanted) };
                }
                Timed::Gather
            }
            TurnWork::Step(at, n) => {
                let (stage, step) = (&self.stages[at], &self.stages[at].steps[n]);
                let worker = Worker {
                    index: seat,
                    count: self.workers.workers(),
                    scratch: self.scratch.wrapping_add(seat as usize * self.stride),
                    counters: step.counters.as_ptr().cast(),
                    operands: step.operands.as_ptr(),
                    first_scratch: self.scratch,
                    node_starts: self.workers.starts().as_ptr(),
                    nodes: self.workers.nodes() as u32,
                    node: self.workers.node_of(seat) as u32,
                };
                let looks = self.lora_targets.any_of(&step.looks_at);
                let args = if looks { stage.args } else { &self.plain[at] };
                call(step.kernel, args, &worker);
                Timed::Step(stage.first + n)
            }
            TurnWork::Rows => {
                if let Some((slab, to)) = self.rows {
                    // SAFETY: the last step has ended on all workers, and no other one runs before all have
                    // ended this.
                    unsafe { slab.hand_out(seat as usize, self.workers.workers() as usize, to) };
                }
                Timed::Rows
            }
        };
        self.counting.done(seat, last, what, start);
    }

    /// Worker 0, when the turn before this one has ended.
    fn behind(&self, turn: usize) {
        if let Some(TurnWork::Step(at, n)) = turn.checked_sub(1).map(|last| self.parts[last]) {
            let stage = &self.stages[at];
            self.counting.after(stage.first + n, stage.args.tokens as usize);
        }
    }

    /// The bytes that a worker is to fetch while it waits for a turn's beginning: those of the next step that
    /// reads weights. Attention, for one, reads none.
    fn fetch(&self, turn: usize, seat: u32) -> Option<Fetch<'static>> {
        let (stage, heads) = self.parts.get(turn..)?.iter().find_map(|part| {
            let TurnWork::Step(at, n) = *part else { return None };
            let stage = &self.stages[at];
            Some((stage, &stage.steps[n].heads)).filter(|(_, heads)| !heads.is_empty())
        })?;
        let fetch = match stage.args.logit_tiles.is_null() {
            true => heads.fetch(seat, stage.args.tokens as usize),
            false => heads.fetch_whole(),
        };
        // SAFETY: the steps, and the arena that their routes are read from, are the executor's, which ends
        // the pool's threads before it gives them up.
        Some(unsafe { fetch.outliving() })
    }

    /// The last turn has ended on all workers.
    fn end(&self) {
        self.behind(self.parts.len());
        if self.counting.is_on() {
            let now = Instant::now();
            for (seat, last) in (0..).zip(self.timings) {
                self.counting.passed(seat, last, now);
            }
        }
    }
}

fn call(kernel: KernelFn, args: *const Args, worker: &Worker) {
    // SAFETY: the code is a kernel of the checked program; its operands, the batch behind `args` and the
    // block tables have been checked against the memory that the executor holds for the whole run.
    unsafe { kernel(args, worker) }
}
