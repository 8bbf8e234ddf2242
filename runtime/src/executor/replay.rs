//! Reading what a run reads, and nothing else: the same bytes in the same order by the same workers, with the
//! same barriers, and without any arithmetic. How long that takes is what memory allows a run.

use super::Executor;
use super::batch::{Batch, first_key};
use crate::image::PlanImage;
use crate::kv::KvTables;
use crate::measure::MemoryReader;
use kernmill_os::region::WeightRegion;
use kernmill_plan::abi::LOGIT_SLAB;
use kernmill_plan::format::LINE;
use kernmill_plan::hand_out::{HandOut, WorkersByNode};
use kernmill_plan::kv::{BLOCK_TOKENS, KvGeometry, KvLayer, KvLayers, KvPlane};
use kernmill_plan::program::{ItemReads, Operand, OperandReads, Step, TokenClass};
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks of one head that a worker reads before it looks for more.
const SEGMENT_BLOCKS: u64 = 64;
/// Blocks that are fetched ahead, as attention does.
const BLOCKS_AHEAD: usize = 8;

/// The weights that the steps of a program read.
pub struct Replay {
    /// By token class.
    classes: Vec<ClassReads>,
    /// The weights that the addresses point into.
    weights: Arc<WeightRegion>,
}

struct ClassReads {
    steps: Vec<StepReads>,
    logit_steps: Vec<StepReads>,
}

/// A step's reads, as addresses.
struct StepReads {
    whole: Vec<Range<u64>>,
    parts: Vec<PartReads>,
    routing: Option<usize>,
    own_items: bool,
    /// Layer whose keys and values are read.
    cache: Option<usize>,
}

/// A counter of a node's items that are left, on a separate line.
#[repr(align(64))]
#[derive(Default)]
struct Counter(AtomicU64);

struct PartReads {
    items: u64,
    operands: Vec<PieceReads>,
}

/// The reads of items, of one operand.
struct PieceReads {
    /// Address of the first item.
    start: u64,
    /// Pieces that the operand holds at most, whatever the plan claims of its items.
    held: u64,
    reads: OperandReads,
}

impl PieceReads {
    fn new(start: u64, bytes: u64, reads: OperandReads) -> PieceReads {
        PieceReads { start, held: bytes.div_ceil(reads.stride.max(reads.bytes).max(1)), reads }
    }

    /// The pieces of some items.
    fn pieces(&self, items: Range<u64>) -> Range<u64> {
        let piece = |item: u64| item.saturating_mul(self.reads.pieces.into()).min(self.held);
        piece(items.start)..piece(items.end)
    }
}

impl Replay {
    /// The reads of a plan in memory.
    pub fn new(image: &PlanImage) -> Replay {
        let weights = Arc::clone(image.weights());
        let base = weights.as_ptr() as u64;
        let class = |class: &TokenClass| ClassReads {
            steps: steps(&class.steps, base),
            logit_steps: steps(&class.logit_steps, base),
        };
        Replay { classes: image.program().classes.iter().map(class).collect(), weights }
    }

    /// Bytes of the weights.
    pub fn bytes(&self) -> u64 {
        self.weights.len() as u64
    }

    /// Reads what lies in `range`, as far as it is of the weights; how many bytes that are.
    fn read(&self, reader: &MemoryReader, range: Range<u64>) -> u64 {
        let base = self.weights.as_ptr() as u64;
        let (start, end) = (range.start.max(base), range.end.min(base + self.bytes()));
        let bytes = end.saturating_sub(start);
        if bytes > 0 {
            reader.read(&self.weights.as_slice()[(start - base) as usize..][..bytes as usize]);
        }
        bytes
    }
}

/// Steps for adapters, which are not replayed, keep their places.
fn steps(steps: &[Step], base: u64) -> Vec<StepReads> {
    steps.iter().map(|step| StepReads::new(step, base)).collect()
}

impl StepReads {
    fn new(step: &Step, base: u64) -> StepReads {
        let reads = &step.weight_reads;
        let weights = |operand: u32| match step.operands.get(operand as usize) {
            Some(Operand::Weights { offset, bytes }) => Some((base + offset, *bytes)),
            _ => None,
        };
        let whole = |operand: &u32| weights(*operand).map(|(start, bytes)| start..start + bytes);
        let of_operand = |reads: &OperandReads| {
            weights(reads.operand).map(|(start, bytes)| PieceReads::new(start, bytes, *reads))
        };
        let part = |part: &ItemReads| PartReads {
            items: part.items.into(),
            operands: part.operands.iter().filter_map(of_operand).collect(),
        };
        StepReads {
            whole: reads.whole.iter().filter_map(whole).collect(),
            parts: reads.parts.iter().map(part).collect(),
            routing: reads.routing.map(|routing| routing as usize),
            own_items: reads.own_items,
            cache: step.work.cache.map(|layer| layer as usize),
        }
    }

    fn items(&self) -> u64 {
        self.parts.iter().map(|part| part.items).sum()
    }

    /// Reads a worker's share of the weights; how many bytes that are. Bytes that every worker reads are
    /// counted on worker 0.
    fn weights(
        &self,
        replay: &Replay,
        reader: &MemoryReader,
        worker: WorkerShare<'_>,
        counters: &[Counter],
        experts: &[u32],
        tiles: Option<&[u32]>,
    ) -> u64 {
        let mut bytes = 0;
        for whole in &self.whole {
            let read = replay.read(reader, whole.clone());
            bytes += if worker.index == 0 { read } else { 0 };
        }
        if let Some(tiles) = tiles {
            let total = tiles.len() as u64;
            worker.take(HandOut::with_tail(total, 1), counters, |range| {
                let listed = tiles[range.start as usize..range.end as usize].iter();
                bytes += listed.map(|tile| self.tile(replay, reader, (*tile).into())).sum::<u64>();
            });
            return bytes;
        }
        let each = self.items();
        if self.own_items {
            let items = HandOut::in_groups(experts.len() as u64, each, 1);
            worker.take(items, counters, |range| {
                let mut at = range.start;
                while at < range.end {
                    let (expert, first) = (at / each, at % each);
                    let count = (each - first).min(range.end - at);
                    bytes +=
                        self.items_of(replay, reader, first..first + count, &experts[expert as usize..][..1]);
                    at += count;
                }
            });
            return bytes;
        }
        let experts = if self.routing.is_some() { experts } else { &[0] };
        worker.take(HandOut::with_tail(each, 1), counters, |range| {
            bytes += self.items_of(replay, reader, range, experts);
        });
        bytes
    }

    /// Reads what the only part's items have of a tile, whose first operand is the tiles of a matrix.
    fn tile(&self, replay: &Replay, reader: &MemoryReader, tile: u64) -> u64 {
        let operands = || self.parts.iter().flat_map(|part| &part.operands);
        let tiles = operands().next().map_or(1, |matrix| u64::from(matrix.reads.pieces).max(1));
        let read = |PieceReads { start, reads, .. }: &PieceReads| {
            let of_tile = |bytes: u64| bytes.saturating_mul(reads.pieces.into()) / tiles;
            let at = start.saturating_add(of_tile(reads.stride).saturating_mul(tile));
            replay.read(reader, at..at.saturating_add(of_tile(reads.bytes)))
        };
        operands().map(read).sum()
    }

    /// Reads items, one expert after the other.
    fn items_of(&self, replay: &Replay, reader: &MemoryReader, range: Range<u64>, experts: &[u32]) -> u64 {
        let mut bytes = 0;
        for expert in experts.iter().copied().map(u64::from) {
            let mut before = 0;
            for part in &self.parts {
                let of_part = |item: u64| item.saturating_sub(before).min(part.items);
                let (first, behind) = (of_part(range.start), of_part(range.end));
                for operand in part.operands.iter().filter(|_| first < behind) {
                    let PieceReads { start, reads, .. } = operand;
                    // A plan's figures are not checked: what is outside of the weights is not read.
                    let start = start.saturating_add(expert.saturating_mul(reads.expert_stride));
                    let at = |piece: u64| start.saturating_add(piece.saturating_mul(reads.stride));
                    let pieces = operand.pieces(first..behind);
                    if reads.stride == reads.bytes {
                        bytes += replay.read(reader, at(pieces.start)..at(pieces.end));
                        continue;
                    }
                    for piece in pieces {
                        bytes += replay.read(reader, at(piece)..at(piece).saturating_add(reads.bytes));
                    }
                }
                before += part.items;
            }
        }
        bytes
    }
}

/// A worker among all.
#[derive(Clone, Copy)]
struct WorkerShare<'a> {
    index: u32,
    workers: &'a WorkersByNode,
}

impl WorkerShare<'_> {
    /// Takes its part of some items, range by range, as the kernels do.
    fn take(self, items: HandOut, counters: &[Counter], mut take: impl FnMut(Range<u64>)) {
        // A step's counters are for what it has items of: weights, or keys and values.
        if items.total() == 0 {
            return;
        }
        for (turn, number) in items.order(self.workers, self.index).enumerate() {
            let (part, counter) = (items.part(self.workers, number), &counters[number].0);
            if turn == 0 {
                part.ranges(part.share(self.index)).for_each(&mut take);
            }
            loop {
                let count = part.claim(counter.load(Ordering::Relaxed));
                let taken = counter.fetch_add(count, Ordering::Relaxed);
                let Some(range) = part.claimed(taken, count) else { break };
                part.ranges(range).for_each(&mut take);
            }
        }
    }
}

/// The keys and values that a step reads.
struct CacheReads<'a> {
    kv: &'a [u8],
    /// Start of the layer's pool.
    offset: usize,
    geometry: &'a KvGeometry,
    /// Blocks in view, by sequence.
    views: Vec<&'a [u32]>,
    /// Segments of the longest view.
    segments: u64,
}

impl<'a> CacheReads<'a> {
    fn new(
        kv: &'a [u8],
        offset: usize,
        layers: &'a KvLayers,
        layer: &KvLayer,
        batch: &Batch,
        tables: &'a KvTables,
    ) -> Self {
        let (table, stride) = tables.table(layer.kind);
        let views: Vec<_> = batch
            .sequence_runs()
            .map(|(row, low, high)| {
                let own = &table[batch.sequences[row] as usize * stride as usize..][..stride as usize];
                let first = first_key(low, layer.window) as usize / BLOCK_TOKENS;
                &own[first..=high as usize / BLOCK_TOKENS]
            })
            .collect();
        let longest = views.iter().map(|view| view.len() as u64).max().unwrap_or(0);
        CacheReads {
            kv,
            offset,
            geometry: layers.geometry(layer.kind),
            views,
            segments: longest.div_ceil(SEGMENT_BLOCKS),
        }
    }

    /// Keys and values of a head in a block.
    fn plane(&self, block: u32, head: usize) -> &[u8] {
        let geometry = self.geometry;
        let start = self.offset + block as usize * geometry.block_bytes() + geometry.offset(KvPlane::K, head);
        self.kv.get(start..).and_then(|kv| kv.get(..geometry.head_bytes())).unwrap_or_default()
    }

    /// Reads a worker's share, whose items are a head's blocks of one segment; how many bytes that are.
    fn read(&self, reader: &MemoryReader, worker: WorkerShare<'_>, counters: &[Counter]) -> u64 {
        let mut bytes = 0;
        let heads = self.geometry.kv_heads as u64;
        let items = self.views.len() as u64 * self.segments * heads;
        worker.take(HandOut::with_shares(items, 0), counters, |items| {
            for item in items {
                let (head, segment) = ((item % heads) as usize, item / heads);
                let view = self.views[(segment / self.segments) as usize];
                let first = (segment % self.segments * SEGMENT_BLOCKS) as usize;
                for at in first..view.len().min(first + SEGMENT_BLOCKS as usize) {
                    if let Some(ahead) = view.get(at + BLOCKS_AHEAD) {
                        fetch(self.plane(*ahead, head));
                    }
                    let plane = self.plane(view[at], head);
                    reader.read(plane);
                    bytes += plane.len() as u64;
                }
            }
        });
        bytes
    }
}

/// A run whose reads are replayed.
pub(crate) struct Replayed<'a> {
    /// The run's batch; its sequences have not been dropped or shortened.
    pub batch: &'a Batch,
    /// Rows of logits that it wanted.
    pub wanted: usize,
    /// Tiles of tokens that it wanted of them; `None` is all.
    pub tiles: Option<&'a [u32]>,
    /// By layer that routes, the experts to read.
    pub experts: &'a [Vec<u32>],
}

impl Executor {
    /// By layer that routes, the experts that the last run chose, ascending.
    pub(crate) fn last_experts(&self) -> Vec<Vec<u32>> {
        self.chosen.iter().map(|chosen| chosen.of_run(self.runs)).collect()
    }

    /// Reads what a run reads, in its order; how many bytes that are.
    pub(crate) fn replay(
        &mut self,
        replay: &Replay,
        reader: &MemoryReader,
        run: &Replayed<'_>,
        tables: &KvTables,
    ) -> u64 {
        let tokens = run.batch.len() as u32;
        let Some(at) = self.classes.iter().position(|class| class.max_tokens >= tokens) else { return 0 };
        let (class, Some(reads)) = (&self.classes[at], replay.classes.get(at)) else { return 0 };
        let slabs = run.wanted.div_ceil(LOGIT_SLAB.min(class.max_tokens as usize));
        let tiles = run.tiles.filter(|_| class.tiles.is_some() && !self.all_logits);
        let last = class.logit_steps.len().saturating_sub(1);
        let logit_steps = || {
            let steps = class.logit_steps.iter().zip(&reads.logit_steps).enumerate();
            steps.map(|(n, (call, reads))| (call, reads, tiles.filter(|_| n == last)))
        };
        let plain = class.steps.iter().zip(&reads.steps).filter(|(step, _)| step.lora_targets.is_empty());
        let (layers, memory) = (&self.limits.layers, &self.memory);
        let cache = |layer: usize| {
            let (layer, offset) = (layers.layers.get(layer)?, (*memory.kv_offsets.get(layer)?)?);
            Some(CacheReads::new(memory.kv.as_slice(), offset, layers, layer, run.batch, tables))
        };
        let steps: Vec<_> = plain
            .map(|(call, reads)| (call, reads, None))
            .chain((0..slabs).flat_map(|_| logit_steps()))
            .map(|(call, reads, tiles)| (&call.heads, reads, tiles, reads.cache.and_then(cache)))
            .collect();
        let experts = |step: &StepReads| {
            step.routing.and_then(|layer| run.experts.get(layer)).map_or(&[][..], Vec::as_slice)
        };
        let (sum, workers) = (AtomicU64::new(0), self.pool.by_node());
        let nodes = workers.nodes();
        let counters: Vec<Counter> = (0..steps.len() * nodes).map(|_| Counter::default()).collect();
        self.pool.run(&|index, barrier| {
            let worker = WorkerShare { index, workers: &workers };
            let mut bytes = 0;
            for (n, (_, reads, tiles, cache)) in steps.iter().enumerate() {
                let counters = &counters[n * nodes..][..nodes];
                bytes += reads.weights(replay, reader, worker, counters, experts(reads), *tiles);
                bytes += cache.as_ref().map_or(0, |cache| cache.read(reader, worker, counters));
                let later = &steps[n + 1..];
                let next = later.iter().find(|(heads, ..)| !heads.is_empty());
                let mut fetch = next.map(|(heads, next, tiles, _)| match tiles {
                    Some(_) => heads.fetch_whole(),
                    None => {
                        let lowest = experts(next).first().copied().unwrap_or(0);
                        heads.fetch_of(index, lowest.into())
                    }
                });
                if !later.is_empty() {
                    barrier.wait_busy(index, || fetch.as_mut().is_some_and(|fetch| fetch.some()));
                }
            }
            sum.fetch_add(bytes, Ordering::Relaxed);
        });
        sum.load(Ordering::Relaxed)
    }

    /// Reads `bytes` bytes of the weights from `from` on, and on from their start behind their end, every
    /// worker one stretch.
    pub(crate) fn read_weights(&mut self, replay: &Replay, reader: &MemoryReader, from: u64, bytes: u64) {
        let workers = self.pool.count() as u64;
        let (all, base) = (replay.bytes(), replay.weights.as_ptr() as u64);
        if all == 0 {
            return;
        }
        self.pool.run(&|index, _| {
            let part = |worker: u64| (u128::from(bytes) * u128::from(worker) / u128::from(workers)) as u64;
            let (mut at, mut left) =
                ((from + part(index.into())) % all, part(u64::from(index) + 1) - part(index.into()));
            while left > 0 {
                let count = left.min(all - at);
                replay.read(reader, base + at..base + at + count);
                (at, left) = (0, left - count);
            }
        });
    }
}

/// Asks for memory.
fn fetch(memory: &[u8]) {
    for line in memory.chunks(LINE) {
        // SAFETY: every x86-64 CPU has the instruction, and it accepts any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(pieces: u32, bytes: u64, stride: u64) -> OperandReads {
        OperandReads { operand: 0, pieces, bytes, stride, expert_stride: 0 }
    }

    #[test]
    fn items_read_no_more_pieces_than_their_operand_holds() {
        let all = 0..u64::from(u32::MAX);
        for (bytes, reads, held) in [
            (1024, reads(1, 64, 128), 8),
            (1000, reads(u32::MAX, 64, 128), 8),
            (1024, reads(2, 64, 0), 16),
            (1024, reads(1, 0, 0), 1024),
            (0, reads(1, 64, 64), 0),
        ] {
            let operand = PieceReads::new(0, bytes, reads);
            assert_eq!(operand.pieces(all.clone()), 0..held);
            assert_eq!(operand.pieces(all.end..2 * all.end), held..held);
        }
        // Pieces inside of the operand are read.
        assert_eq!(PieceReads::new(0, 1024, reads(2, 64, 64)).pieces(1..3), 2..6);
    }
}
