//! Metering of runs: what the steps read and multiply, and how long they take. Off unless asked for.

use super::batch::Batch;
use super::resolve::ResolvedClass;
use crate::adapter::LoraTargetSet;
use crate::profile::{self, Detail, Profile, StepProfile, WorkDone};
use kernmill_plan::kv::KvLayers;
use kernmill_plan::program::StepWork;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often each expert of a layer was chosen, and by how many of them the present run is served.
pub(super) struct ExpertCounts {
    /// By expert, since the executor was made.
    counts: Box<[AtomicU64]>,
    /// By expert, the last run that chose it.
    last_run: Box<[AtomicU64]>,
    /// Experts that the present run chose.
    distinct: AtomicU64,
}

impl ExpertCounts {
    pub(super) fn new(experts: u32) -> ExpertCounts {
        let zeros = || (0..experts).map(|_| AtomicU64::new(0)).collect();
        ExpertCounts { counts: zeros(), last_run: zeros(), distinct: AtomicU64::new(0) }
    }

    /// Bytes of the counters of so many experts.
    pub(super) fn bytes(experts: u32) -> u64 {
        2 * size_of::<AtomicU64>() as u64 * u64::from(experts)
    }

    pub(super) fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Experts that a run chose, ascending, if none has chosen since.
    pub(super) fn of_run(&self, run: u64) -> Vec<u32> {
        let chose = self.last_run.iter().map(|last| last.load(Ordering::Relaxed) == run);
        chose.zip(0..).filter_map(|(chose, expert)| chose.then_some(expert)).collect()
    }

    /// Counts one run's choices. Runs are numbered from 1. One thread at a time calls this.
    pub(super) fn add(&self, run: u64, experts: impl Iterator<Item = u32>) {
        let mut distinct = 0;
        for expert in experts.map(|expert| expert as usize) {
            let (Some(count), Some(last)) = (self.counts.get(expert), self.last_run.get(expert)) else {
                continue;
            };
            count.fetch_add(1, Ordering::Relaxed);
            distinct += u64::from(last.swap(run, Ordering::Relaxed) != run);
        }
        self.distinct.store(distinct, Ordering::Relaxed);
    }
}

/// Nanoseconds of one step of one class.
pub(super) struct StepClock {
    /// On worker 0, from the step's start to the end of the barrier behind it.
    wall: AtomicU64,
    /// By worker, in the kernel.
    busy: Box<[AtomicU64]>,
}

impl StepClock {
    fn new(workers: usize) -> StepClock {
        StepClock { wall: AtomicU64::new(0), busy: (0..workers).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A worker's kernel call has taken so long.
    pub(super) fn called(&self, worker: u32, time: Duration) {
        self.busy[worker as usize].fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Worker 0 has passed the barrier behind the step, so long after it began.
    pub(super) fn passed(&self, time: Duration) {
        self.wall.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// The measurements so far.
pub(super) struct StepMeter {
    runs: u64,
    tokens: u64,
    total: WorkDone,
    classes: Vec<ClassMeter>,
}

/// Steps, then logit steps.
struct ClassMeter {
    clocks: Vec<StepClock>,
    done: Vec<StepDone>,
}

#[derive(Clone, Copy, Default)]
struct StepDone {
    calls: u64,
    work: WorkDone,
}

/// A run that has been.
pub(super) struct StepSample<'a> {
    pub class: usize,
    pub batch: &'a Batch,
    /// From which step on only wanted rows were computed, and these.
    pub narrowed: Option<(usize, &'a Batch)>,
    /// Rows of each slab of logits.
    pub slabs: std::slice::Chunks<'a, u32>,
    /// How many tiles of tokens the last step computed, if not all.
    pub tiles: Option<usize>,
    pub layers: &'a KvLayers,
    /// LoRA targets of its adapters: steps for others were left out.
    pub lora_targets: &'a LoraTargetSet,
    pub chosen: &'a [ExpertCounts],
}

impl StepSample<'_> {
    /// Calls `each` with the number of every step that was run, in order, and what it has read and
    /// multiplied.
    pub(super) fn each_step(&self, class: &ResolvedClass, mut each: impl FnMut(usize, WorkDone)) {
        let all = class.steps.iter().enumerate();
        for (n, step) in all.filter(|(_, step)| self.lora_targets.want(&step.lora_targets)) {
            let batch = match self.narrowed {
                Some((from, narrowed)) if n >= from => narrowed,
                _ => self.batch,
            };
            if batch.len() > 0 {
                each(n, step_work(&step.work, batch, batch.len(), class, self));
            }
        }
        for rows in self.slabs.clone() {
            for (n, step) in class.logit_steps.iter().enumerate() {
                let all = step_work(&step.work, self.batch, rows.len(), class, self);
                let is_last = n + 1 == class.logit_steps.len();
                let work = match self.tiles.zip(class.tiles.as_ref()).filter(|_| is_last) {
                    Some((listed, tiles)) => tiles.work(all, listed),
                    None => all,
                };
                each(class.steps.len() + n, work);
            }
        }
    }
}

impl StepMeter {
    pub(super) fn new(detail: Detail, classes: &[ResolvedClass], workers: usize) -> StepMeter {
        let class = |class: &ResolvedClass| {
            let steps = class.steps.len() + class.logit_steps.len();
            let clocks = if detail == Detail::Steps { steps } else { 0 };
            ClassMeter {
                clocks: (0..clocks).map(|_| StepClock::new(workers)).collect(),
                done: vec![StepDone::default(); steps],
            }
        };
        StepMeter {
            runs: 0,
            tokens: 0,
            total: WorkDone::default(),
            classes: classes.iter().map(class).collect(),
        }
    }

    /// Clocks of a class's steps; none unless steps are timed.
    pub(super) fn clocks(&self, class: usize) -> &[StepClock] {
        &self.classes[class].clocks
    }

    /// Adds a run's work.
    pub(super) fn add(&mut self, ran: &StepSample<'_>, class: &ResolvedClass) {
        self.runs += 1;
        self.tokens += ran.batch.len() as u64;
        let done = &mut self.classes[ran.class].done;
        ran.each_step(class, |step, work| self.total += done[step].add(work));
    }

    /// By kind of step and by layer, in order of first appearance.
    pub(super) fn profile(&self, classes: &[ResolvedClass]) -> Profile {
        let (mut steps, mut layers) = (Vec::new(), Vec::new());
        for (class, meter) in classes.iter().zip(&self.classes) {
            let calls = class.steps.iter().chain(&class.logit_steps);
            for ((step, done), clock) in calls.zip(&meter.done).zip(&meter.clocks) {
                if done.calls > 0 {
                    add_step(&mut steps, profile::kind(&step.label), *done, clock);
                    add_step(&mut layers, profile::layer(&step.label), *done, clock);
                }
            }
        }
        Profile { runs: self.runs, tokens: self.tokens, total: self.total, steps, layers }
    }
}

impl StepDone {
    fn add(&mut self, work: WorkDone) -> WorkDone {
        self.calls += 1;
        self.work += work;
        work
    }
}

fn add_step(steps: &mut Vec<StepProfile>, name: &str, done: StepDone, clock: &StepClock) {
    let seconds = |nanoseconds: &AtomicU64| nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
    let at = steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
        steps.push(StepProfile::new(name, clock.busy.len()));
        steps.len() - 1
    });
    let step = &mut steps[at];
    step.calls += done.calls;
    step.work += done.work;
    step.seconds += seconds(&clock.wall);
    step.busy.iter_mut().zip(&clock.busy).for_each(|(sum, busy)| *sum += seconds(busy));
}

/// The reads and multiply-adds of a step over `rows` rows. The plan's figures are not checked: nothing here
/// may overflow.
fn step_work(
    step: &StepWork,
    batch: &Batch,
    rows: usize,
    class: &ResolvedClass,
    ran: &StepSample<'_>,
) -> WorkDone {
    let rows = rows as u64;
    let routing =
        step.routing.and_then(|at| Some((class.routings.get(at as usize)?, ran.chosen.get(at as usize)?)));
    let (experts, choices) = routing.map_or((0, 0), |(routing, chosen)| {
        (chosen.distinct.load(Ordering::Relaxed), rows * routing.top_k as u64)
    });
    let layer = step.cache.and_then(|layer| ran.layers.layers.get(layer as usize));
    let keys = layer.map_or(0, |layer| batch.keys_in_view(layer.window));
    let product = u64::saturating_mul;
    let sum = |terms: [u64; 3]| terms.into_iter().fold(0, u64::saturating_add);
    WorkDone {
        weight_bytes: sum([
            step.shared_bytes,
            product(step.row_bytes, rows),
            product(step.expert_bytes, experts),
        ]),
        cache_bytes: product(
            keys,
            layer.map_or(0, |layer| ran.layers.geometry(layer.kind).token_bytes() as u64),
        ),
        macs: sum([product(step.row_macs, rows), product(step.expert_macs, choices), 0]),
    }
}
