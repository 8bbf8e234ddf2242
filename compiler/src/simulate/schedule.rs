//! A step's items on workers, event by event.

use super::machine::SimulatedMachine;
use kernmill_plan::hand_out::{HandOut, NodeItems};
use std::ops::Range;

/// Consecutive items that cost alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ItemGroup {
    /// Items.
    pub items: u64,
    /// Bytes from memory of each.
    pub bytes: f64,
    /// How much longer than a stream these take, as a share.
    pub stalls: f64,
    /// ns of arithmetic of each that waiting for memory may hide in.
    pub arithmetic: f64,
    /// How much of the smaller of the two, waiting for memory and arithmetic, does not hide in the larger.
    pub exposed: f64,
    /// ns of each besides.
    pub besides: f64,
}

/// A step: what every worker does, and what they share.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedStep {
    /// How workers get the items.
    pub hand_out: HandOut,
    /// The items, in the order of their numbers.
    pub groups: Vec<ItemGroup>,
    /// ns of what every worker does before its first item.
    pub before: f64,
    /// ns at the start of each range of items.
    pub range: f64,
    /// Bytes of its first items that a worker may fetch while it waits for the step; none where the step
    /// reads no weights.
    pub ahead: Option<u64>,
}

/// The times of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTimes {
    /// ns until all workers go on to the next one.
    pub ns: f64,
    /// ns that a worker waits for others, in the mean, without the barrier.
    pub waits: f64,
    /// ns that the step would take if nothing but reading took time.
    pub reads: f64,
    /// ns that it would take if nothing but the items' arithmetic did.
    pub arithmetic: f64,
}

impl StepTimes {
    /// Adds a step behind this one.
    pub fn add(&mut self, other: &StepTimes) {
        self.ns += other.ns;
        self.waits += other.waits;
        self.reads += other.reads;
        self.arithmetic += other.arithmetic;
    }
}

/// The bytes that workers fetch while they wait for others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetches<'a> {
    /// Bytes that each worker has fetched of this step's first items; none beyond the list's end.
    pub done: &'a [u64],
    /// Bytes of a later step that each may fetch while it waits for this one's end.
    pub wanted: u64,
}

/// Bytes that a worker fetches between two looks at whether the step has ended.
const FETCHED_AT_ONCE: u64 = 2 << 10;

/// A worker within the step.
#[derive(Clone)]
struct SimulatedWorker {
    /// ns at which it is free.
    at: f64,
    /// ns at which it had no item left, and what it has fetched since.
    idle: Option<(f64, u64)>,
    /// Bytes of its first items that it has fetched before.
    cached: f64,
    /// The parts of the items in which it still looks for some, the present one last.
    parts: Vec<usize>,
    /// The items that it took last there.
    taken: Range<u64>,
    /// Items that it has left of these, the first range last.
    left: Vec<Range<u64>>,
    /// The group that it is in, if any.
    group: Option<usize>,
}

/// Runs a step in virtual time: its times, and the bytes that each worker has fetched of a later one. `take`
/// is told of each range, with the worker that gets it.
pub fn schedule(
    step: &SharedStep,
    machine: &SimulatedMachine,
    fetches: Fetches<'_>,
    mut take: impl FnMut(usize, Range<u64>),
) -> (StepTimes, Vec<u64>) {
    let count = machine.workers;
    let ends: Vec<u64> = step
        .groups
        .iter()
        .scan(0, |end, group| {
            *end += group.items;
            Some(*end)
        })
        .collect();
    let mut reads = vec![true; count];
    let nodes = machine.workers_by_node();
    let parts = step.hand_out.by_node(&nodes);
    let ranges = |part: &NodeItems, range: Range<u64>| -> Vec<Range<u64>> {
        let mut ranges: Vec<_> = part.ranges(range).collect();
        ranges.reverse();
        ranges
    };
    let mut workers: Vec<SimulatedWorker> = (0..count)
        .map(|worker| {
            let mut order: Vec<usize> = step.hand_out.order(&nodes, worker as u32).collect();
            order.reverse();
            let own = &parts[order[order.len() - 1]];
            let taken = own.share(worker as u32);
            let left = ranges(own, taken.clone());
            let at = step.before / machine.speed(worker);
            let cached = fetches.done.get(worker).map_or(0.0, |bytes| *bytes as f64);
            SimulatedWorker { at, idle: None, cached, parts: order, taken, left, group: None }
        })
        .collect();
    // The counters: what is gone, and when each is free.
    let mut counters = vec![(0, 0.0_f64); parts.len()];
    let claim = |part: &NodeItems| machine.claim[0] + machine.claim[1] * (part.workers() - 1) as f64;
    for (number, worker) in workers.iter_mut().enumerate().filter(|(_, worker)| !worker.left.is_empty()) {
        worker.left.iter().rev().for_each(|range| take(number, range.clone()));
        worker.at += (step.range + machine.jump) / machine.speed(number);
    }
    let mut busy = count;
    while busy > 0 {
        let next = (0..count)
            .filter(|worker| reads[*worker])
            .min_by(|a, b| workers[*a].at.total_cmp(&workers[*b].at));
        let Some(number) = next else { break };
        let speed = machine.speed(number);
        let worker = &mut workers[number];
        if let Some((_, fetched)) = &mut worker.idle {
            let piece = FETCHED_AT_ONCE.min(fetches.wanted - *fetched);
            worker.at += piece as f64 / machine.rates.of(number, &reads);
            *fetched += piece;
            reads[number] = *fetched < fetches.wanted;
            continue;
        }
        let Some(range) = worker.left.last_mut().filter(|range| !range.is_empty()) else {
            if worker.left.pop().is_some() {
                continue;
            }
            let Some(part) = worker.parts.last().copied() else {
                worker.idle = Some((worker.at, 0));
                (busy, reads[number]) = (busy - 1, fetches.wanted > 0);
                continue;
            };
            let (taken, free) = &mut counters[part];
            let items = parts[part].claim(*taken);
            let Some(range) = parts[part].claimed(*taken, items).filter(|_| parts[part].has_tail()) else {
                // Many workers may look at a counter at once.
                worker.at += if parts[part].has_tail() { claim(&parts[part]) } else { 0.0 };
                worker.parts.pop();
                worker.taken = 0..0;
                continue;
            };
            worker.at = worker.at.max(*free) + claim(&parts[part]);
            (*free, *taken) = (worker.at, *taken + items);
            let follows = worker.taken.end == range.start;
            worker.left = ranges(&parts[part], range.clone());
            worker.left.iter().rev().for_each(|range| take(number, range.clone()));
            worker.taken = range;
            worker.at += (step.range + if follows { 0.0 } else { machine.jump }) / speed;
            continue;
        };
        let index = ends.partition_point(|end| *end <= range.start);
        let Some(group) = step.groups.get(index) else {
            // Items that cost nothing.
            range.start = range.end;
            continue;
        };
        range.start += 1;
        let mut ns = group.besides;
        if worker.group.replace(index).is_some_and(|last| last != index) {
            ns += machine.jump;
        }
        let cached = worker.cached.min(group.bytes);
        worker.cached -= cached;
        let memory = match group.bytes > cached {
            true => (group.bytes - cached) * (1.0 + group.stalls) / machine.rates.of(number, &reads),
            false => 0.0,
        };
        let arithmetic = group.arithmetic * machine.pace;
        ns += memory.max(arithmetic) + group.exposed * memory.min(arithmetic);
        worker.at += ns / speed;
    }
    let idle = |worker: &SimulatedWorker| worker.idle.unwrap_or((worker.at, 0));
    let end = workers.iter().map(|worker| idle(worker).0).fold(0.0, f64::max);
    let barrier = machine.arrival.ns(count);
    let at_barrier = machine.rates.attainable(count) / count as f64 * barrier;
    let fetched = |worker| (idle(worker).1 + at_barrier as u64).min(fetches.wanted);
    let sum = |of: &dyn Fn(&ItemGroup) -> f64| -> f64 {
        step.groups.iter().map(|group| group.items as f64 * of(group)).sum()
    };
    let arithmetic = sum(&|group| group.arithmetic * machine.pace + group.besides);
    let times = StepTimes {
        ns: end + barrier,
        waits: workers.iter().map(|worker| end - idle(worker).0).sum::<f64>() / count as f64,
        reads: sum(&|group| group.bytes) / machine.rates.attainable(count),
        arithmetic: arithmetic / count as f64,
    };
    (times, workers.iter().map(fetched).collect())
}
