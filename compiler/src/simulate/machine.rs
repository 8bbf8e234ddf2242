//! Machines as a simulation sees them.

use crate::machine::{Description, ReachedSpeeds};
use crate::passes::select::costs_of_machine::Machine;
use kernmill_plan::hand_out::WorkersByNode;

/// The wait for others at the end of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// So many ns, whatever the workers.
    Fixed(f64),
    /// All workers count up one counter, one after the other.
    Flat {
        /// ns of a barrier of few workers.
        base: f64,
        /// ns of each arrival.
        each: f64,
    },
    /// Workers count by groups, and the last of each group counts for it on the next level.
    Tree {
        /// ns of a barrier of few workers.
        base: f64,
        /// ns of each arrival at a counter.
        each: f64,
        /// Workers that share a last level of cache.
        cache: usize,
        /// Workers of a node of memory.
        node: usize,
    },
}

impl Arrival {
    /// ns from the last worker's arrival until all go on.
    pub fn ns(self, workers: usize) -> f64 {
        match self {
            Arrival::Fixed(ns) => ns,
            Arrival::Flat { base, each } => base + each * workers as f64,
            Arrival::Tree { base, each, cache, node } => {
                let (cache, node) = (cache.clamp(1, workers), node.clamp(1, workers));
                let levels = [cache, node.div_ceil(cache), workers.div_ceil(node)];
                base + each * levels.into_iter().filter(|members| *members > 1).sum::<usize>() as f64
            }
        }
    }
}

/// Bytes per ns that workers read from memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRates {
    /// Numbers of readers, ascending from one, with what they read together. Between them the rate is
    /// interpolated; more readers read no more.
    pub all: Vec<(usize, f64)>,
    /// Groups of workers that share a part of the machine, such as a last level of cache or a node: how many
    /// workers, and what they read together at most.
    pub groups: Vec<(usize, f64)>,
}

impl MemoryRates {
    /// Bytes per ns of so many readers together, groups left out.
    pub fn together(&self, readers: usize) -> f64 {
        between(&self.all, readers)
    }

    /// Bytes per ns of a worker while those read for which `reads` says so, itself among them.
    pub fn of(&self, worker: usize, reads: &[bool]) -> f64 {
        let count = |workers: &[bool]| workers.iter().filter(|reads| **reads).count().max(1);
        let readers = count(reads);
        let all = self.together(readers) / readers as f64;
        self.groups.iter().fold(all, |rate, (size, most)| {
            let first = worker / size * size;
            rate.min(most / count(&reads[first..(first + size).min(reads.len())]) as f64)
        })
    }

    /// Bytes per ns of so many workers that all read.
    pub fn attainable(&self, workers: usize) -> f64 {
        let reads = vec![true; workers];
        (0..workers).map(|worker| self.of(worker, &reads)).sum()
    }
}

/// The value at `count` between points that ascend; outside of them that of the nearest.
fn between(points: &[(usize, f64)], count: usize) -> f64 {
    let behind = points.partition_point(|(other, _)| *other < count);
    match (behind.checked_sub(1).map(|at| points[at]), points.get(behind).copied()) {
        (Some((low, from)), Some((high, to))) => {
            from + (to - from) * (count - low) as f64 / (high - low) as f64
        }
        (None, Some((_, value))) | (Some((_, value)), None) => value,
        (None, None) => f64::INFINITY,
    }
}

/// A machine, for a number of workers.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedMachine {
    /// Workers.
    pub workers: usize,
    /// By node of memory, how many of them; none where there is one node.
    pub nodes: Vec<u32>,
    /// Memory.
    pub rates: MemoryRates,
    /// Barriers.
    pub arrival: Arrival,
    /// By worker, how fast it is beside one that has its core to itself. Workers without an entry are.
    pub speeds: Vec<f64>,
    /// How long arithmetic takes beside the cost model's tables.
    pub pace: f64,
    /// How long the arithmetic of panels takes with weights of MXFP4, which are decoded meanwhile, beside the
    /// cost model's tables.
    pub decoded_panels: f64,
    /// How much longer than a stream the bytes take of weights that dots stream, as a share.
    pub dot_stalls: f64,
    /// How much of waiting for memory does not hide in the arithmetic of dots that go through a tile more
    /// than once: what they fetch ahead is farther away.
    pub exposed_passes: f64,
    /// Bytes of a core's second level of cache; 0 where they are not known, and then panels have room.
    pub core_cache: u64,
    /// Bytes per ns of panels from the next level, for which that one has no room.
    pub outer_bytes: f64,
    /// ns of an item of attention besides its multiply-adds.
    pub attention_item: f64,
    /// ns until memory streams again, when a worker turns to another place of the weights.
    pub jump: f64,
    /// ns of a take from the counter, and for each worker that the counter's line may come from.
    pub claim: [f64; 2],
    /// How long stages of few rows take, which every worker computes for itself in its caches, beside the
    /// cost model's.
    pub own_rows: f64,
    /// ns of sorting a slot by its expert, which every worker does for itself.
    pub slot: f64,
}

impl SimulatedMachine {
    /// The cost model's machine.
    pub fn new(machine: &Machine) -> SimulatedMachine {
        let mut all = vec![(1, machine.worker_bytes), (machine.workers, machine.all_bytes)];
        all.dedup_by_key(|(workers, _)| *workers);
        SimulatedMachine {
            workers: machine.workers,
            nodes: Vec::new(),
            rates: MemoryRates { all, groups: Vec::new() },
            arrival: Arrival::Fixed(machine.barrier),
            speeds: Vec::new(),
            pace: 1.0,
            decoded_panels: 1.16,
            dot_stalls: 0.0,
            exposed_passes: 0.85,
            core_cache: 0,
            outer_bytes: 70.0,
            attention_item: 3000.0,
            jump: 100.0,
            claim: [30.0, 2.0],
            own_rows: 0.54,
            slot: 7.5,
        }
    }

    /// A described machine with so many workers. Of more than were measured, memory is as fast as it was with
    /// the most, a barrier takes as much longer as there are more of them, and arithmetic is as fast for
    /// each.
    pub fn described(machine: &Description, workers: usize) -> SimulatedMachine {
        let all = machine.measured.iter().map(|one| (one.threads, one.gb_per_s)).collect();
        let measured = |of: fn(&ReachedSpeeds) -> f64| {
            let points: Vec<(usize, f64)> =
                machine.measured.iter().map(|one| (one.threads, of(one))).collect();
            between(&points, workers)
        };
        let more = (workers as f64 / machine.workers().threads as f64).max(1.0);
        let of_one = |speeds: &ReachedSpeeds| speeds.tops_per_s / speeds.threads as f64;
        SimulatedMachine {
            workers,
            rates: MemoryRates { all, groups: Vec::new() },
            arrival: Arrival::Fixed(measured(|one| one.barrier_us) * 1e3 * more),
            // Threads that share a core, or a limit of power, are slower than one alone.
            pace: of_one(&machine.measured[0]) / measured(of_one),
            core_cache: machine.core_cache,
            ..SimulatedMachine::new(&machine.costs())
        }
    }

    /// Workers by node.
    pub fn workers_by_node(&self) -> WorkersByNode {
        match self.nodes[..] {
            [] => WorkersByNode::of_one(self.workers as u32),
            _ => WorkersByNode::counted(self.nodes.iter().copied()),
        }
    }

    /// A worker's speed beside one that has its core to itself.
    pub fn speed(&self, worker: usize) -> f64 {
        self.speeds.get(worker).copied().unwrap_or(1.0)
    }
}
