//! Laying weights on the nodes whose workers read them, where there are several nodes.
//!
//! A file's pages lie where they were first read or written: all on one node, say. Then all CPUs read them no
//! faster than that node gives them.

use crate::image::PlanImage;
use crate::pool::{IdleWork, Pool};
use kernmill_os::memory::available_memory;
use kernmill_os::numa;
use kernmill_os::region::{REGION_ALIGN, WeightRegion};
use kernmill_os::text::size;
use kernmill_plan::hand_out::WorkersByNode;
use kernmill_plan::program::{Operand, OperandReads, Program, Step, TokenClass};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that lie on one node together: those of a huge page.
const PIECE: usize = REGION_ALIGN;
/// Pieces that are moved at once.
const PIECES_AT_ONCE: usize = 32;

/// Bytes of weights that workers of one node read, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaidWeights {
    /// Laid on that node. Of a model that is larger than memory, what was not there yet comes to the node of
    /// the worker that reads it first.
    pub moved: u64,
    /// Copied to that node, since other processes have mapped them too.
    pub copied: u64,
    /// Left where they were: the system refused, or there was no memory for copies.
    pub left: u64,
}

impl LaidWeights {
    /// Lines for users about weights that do not lie beside their workers, or took memory to lie there.
    pub fn notes(&self) -> Vec<String> {
        let note = |bytes: u64, rest: &str| {
            (bytes > 0).then(|| format!("--numa: {} of weights {rest}", size(bytes)))
        };
        let copied = "were copied to the nodes of their workers, since other processes use them too";
        let left = "stay on other nodes than their workers: the system does not move them";
        [note(self.copied, copied), note(self.left, left)].into_iter().flatten().collect()
    }
}

/// Weights that belong on a node.
#[derive(Debug, PartialEq, Eq)]
struct NodeRange {
    bytes: Range<usize>,
    /// The node's place among [`Pool::nodes`], without repetitions.
    node: usize,
}

/// Lays the weights on the nodes of a pool's workers, each worker those of its own node. `spare` bytes of
/// memory are to be left for others. With `all` of the weights in use, those that are not in memory are read,
/// if there is room for all: later, what one worker reads brings along what lies behind it, for workers of
/// other nodes.
pub(super) fn lay_weights<A: IdleWork>(
    pool: &mut Pool<A>,
    image: &PlanImage,
    spare: u64,
    all: bool,
) -> LaidWeights {
    let of_workers = pool.nodes().to_vec();
    let mut nodes = of_workers.clone();
    nodes.dedup();
    let ranges = ranges(image.program(), &pool.by_node(), image.weights().len());
    let available = available_memory().unwrap_or(0).saturating_sub(spare);
    let present_alone = !all || available < image.weights().len() as u64;
    // Half of what is there at most: the rest is for caches of files, which the weights are, too.
    let budget = AtomicU64::new(available / 2);
    let next: Vec<AtomicU64> = nodes.iter().map(|_| AtomicU64::new(0)).collect();
    let sums = [const { AtomicU64::new(0) }; 3];
    pool.run(&|worker, _| {
        let Some(own) = nodes.iter().position(|node| *node == of_workers[worker as usize]) else { return };
        let mut here = ranges.iter().filter(|range| range.node == own);
        let mut done = 0;
        loop {
            // Workers of a node take its ranges in turns.
            let turn = next[own].fetch_add(1, Ordering::Relaxed);
            let Some(range) = here.nth((turn - done) as usize) else { return };
            done = turn + 1;
            numa::map(&image.weights().as_slice()[range.bytes.clone()], present_alone);
            let became = lay(image.weights(), &range.bytes, nodes[own], &budget);
            sums[became].fetch_add(range.bytes.len() as u64, Ordering::Relaxed);
        }
    });
    let [moved, copied, left] = sums.map(AtomicU64::into_inner);
    LaidWeights { moved, copied, left }
}

/// Lays a range that is mapped on a node: whether it was moved (0), copied (1) or left (2).
fn lay(weights: &WeightRegion, range: &Range<usize>, node: usize, budget: &AtomicU64) -> usize {
    let memory = &weights.as_slice()[range.clone()];
    match numa::move_to(memory, node) {
        Ok(true) => return 0,
        Ok(false) => {}
        Err(_) => return 2,
    }
    let bytes = range.len() as u64;
    let take = |left: u64| left.checked_sub(bytes);
    let has = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
    if has && weights.copy_to(range.clone(), node).is_ok() { 1 } else { 2 }
}

/// The weights that workers of each node read most of, in pieces, by the steps for one token: they are the
/// ones that wait for memory.
fn ranges(program: &Program, workers: &WorkersByNode, len: usize) -> Vec<NodeRange> {
    let bytes = vec![vec![0; workers.nodes()]; len.div_ceil(PIECE)];
    let mut shares = PieceShares { bytes, len: len as u64 };
    let class = program.classes.first();
    for (class, step) in class
        .iter()
        .flat_map(|class| class.steps.iter().chain(&class.logit_steps).map(move |step| (class, step)))
    {
        shares.add_step(class, step, workers);
    }
    let mut ranges: Vec<NodeRange> = Vec::new();
    for (n, bytes) in shares.bytes.iter().enumerate() {
        let most = bytes.iter().copied().max().unwrap_or(0);
        let Some(node) = bytes.iter().position(|bytes| *bytes == most && most > 0) else { continue };
        let piece = n * PIECE..len.min((n + 1) * PIECE);
        match ranges.last_mut() {
            Some(last)
                if last.node == node
                    && last.bytes.end == piece.start
                    && last.bytes.len() < PIECES_AT_ONCE * PIECE =>
            {
                last.bytes.end = piece.end;
            }
            _ => ranges.push(NodeRange { bytes: piece, node }),
        }
    }
    ranges
}

/// By piece of the weights, the bytes that workers of each node read of it.
struct PieceShares {
    bytes: Vec<Vec<u64>>,
    len: u64,
}

impl PieceShares {
    fn add_step(&mut self, class: &TokenClass, step: &Step, workers: &WorkersByNode) {
        let reads = &step.weight_reads;
        let experts = reads.routing.and_then(|routing| class.routings.get(routing as usize));
        let experts = experts.map_or(1, |routing| u64::from(routing.experts));
        let total = reads.parts.iter().map(|part| u64::from(part.items)).sum();
        for node in 0..workers.nodes() {
            // Of experts' own items, those of every expert.
            let items = workers.part(total, node);
            let mut before = 0;
            for part in &reads.parts {
                let of_part = |item: u64| item.clamp(before, before + u64::from(part.items)) - before;
                let items = of_part(items.start)..of_part(items.end);
                for reads in &part.operands {
                    if let Some(Operand::Weights { offset, bytes }) =
                        step.operands.get(reads.operand as usize)
                    {
                        self.add(*offset..offset.saturating_add(*bytes), reads, &items, experts, node);
                    }
                }
                before += u64::from(part.items);
            }
        }
    }

    /// Workers of `node` read these items of an operand, of every expert.
    fn add(
        &mut self,
        operand: Range<u64>,
        reads: &OperandReads,
        items: &Range<u64>,
        experts: u64,
        node: usize,
    ) {
        let at = |item: u64| item.saturating_mul(reads.pieces.into()).saturating_mul(reads.stride);
        let experts = if reads.expert_stride == 0 { 1 } else { experts };
        for expert in 0..experts {
            let first = operand.start.saturating_add(expert.saturating_mul(reads.expert_stride));
            let end = operand.end.min(self.len);
            if first >= end {
                return;
            }
            let bound = |at: u64| first.saturating_add(at).min(end);
            self.add_bytes(bound(at(items.start))..bound(at(items.end)), node);
        }
    }

    fn add_bytes(&mut self, bytes: Range<u64>, node: usize) {
        let piece = PIECE as u64;
        let mut at = bytes.start;
        while at < bytes.end {
            let end = bytes.end.min((at / piece + 1) * piece);
            self.bytes[(at / piece) as usize][node] += end - at;
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy;
    use kernmill_plan::program::{ItemReads, Routing, WeightReads};

    const MIB: u64 = 1 << 20;

    /// A step that reads these parts of weights: operands of 64 MiB, one behind the other.
    fn step(parts: Vec<ItemReads>, own_items: bool, routing: Option<u32>) -> Step {
        let mut step = toy::image().program().classes[0].steps[0].clone();
        step.operands = (0..4).map(|n| Operand::Weights { offset: n * 64 * MIB, bytes: 64 * MIB }).collect();
        step.weight_reads = WeightReads { whole: Vec::new(), parts, routing, own_items };
        step
    }

    fn part(operand: u32, items: u32, stride: u64, expert_stride: u64) -> ItemReads {
        let operands = vec![OperandReads { operand, pieces: 1, bytes: stride, stride, expert_stride }];
        ItemReads { items, operands }
    }

    /// First and last MiB and node of each range.
    fn laid(steps: Vec<Step>, of_nodes: &[u32]) -> Vec<(u64, u64, usize)> {
        let workers = WorkersByNode::counted(of_nodes.iter().copied());
        let mut program = toy::image().program().clone();
        let class = &mut program.classes[0];
        class.routings = vec![Routing { step: 0, buffer: 0, top_k: 2, experts: 4 }];
        (class.steps, class.logit_steps) = (steps, Vec::new());
        let mib = |at: usize| at as u64 / MIB;
        let range = |range: NodeRange| (mib(range.bytes.start), mib(range.bytes.end), range.node);
        let all = ranges(&program, &workers, (256 * MIB) as usize).into_iter().map(range);
        // Long ranges come in parts.
        let mut joined: Vec<(u64, u64, usize)> = Vec::new();
        for range in all {
            assert!(range.1 - range.0 <= 64);
            match joined.last_mut() {
                Some(last) if last.1 == range.0 && last.2 == range.2 => last.1 = range.1,
                _ => joined.push(range),
            }
        }
        joined
    }

    #[test]
    fn nodes_have_the_rows_that_their_workers_are_given() {
        // 64 items of a MiB.
        let dense = || step(vec![part(1, 64, MIB, 0)], false, None);
        assert_eq!(laid(vec![dense()], &[2]), [(64, 128, 0)]);
        assert_eq!(laid(vec![dense()], &[1, 1]), [(64, 96, 0), (96, 128, 1)]);
        assert_eq!(laid(vec![dense()], &[3, 1]), [(64, 112, 0), (112, 128, 1)]);
        // Two parts are counted through.
        let parts = vec![part(0, 24, MIB, 0), part(2, 40, MIB, 0)];
        let both = [(0, 24, 0), (128, 136, 0), (136, 168, 1)];
        assert_eq!(laid(vec![step(parts, false, None)], &[1, 1]), both);
    }

    #[test]
    fn experts_have_rows_on_every_node() {
        // Four experts of 16 MiB each.
        for own_items in [false, true] {
            let of_experts = step(vec![part(0, 8, 2 * MIB, 16 * MIB)], own_items, Some(0));
            let each = (0..4).flat_map(|n| [(16 * n, 16 * n + 8, 0), (16 * n + 8, 16 * n + 16, 1)]);
            assert_eq!(laid(vec![of_experts], &[1, 1]), each.collect::<Vec<_>>());
        }
    }

    /// Items that end in the middle of a piece: it goes to the node of most of it. Reads past the
    /// operand are left out.
    #[test]
    fn pieces_are_whole_and_inside_of_operands() {
        let odd = step(vec![part(0, 3, 3 * MIB, 0)], false, None);
        assert_eq!(laid(vec![odd], &[1, 1]), [(0, 4, 0), (4, 10, 1)]);
        let hostile = || part(3, u32::MAX, u64::MAX, 0);
        assert_eq!(laid(vec![step(vec![hostile()], false, None)], &[1, 1]), [(192, 256, 0)]);
        let mut last = part(3, 8, 8 * MIB, 60 * MIB);
        last.operands[0].pieces = u32::MAX;
        assert_eq!(laid(vec![step(vec![last], true, Some(0))], &[1, 1]).last(), Some(&(192, 256, 0)));
    }
}
