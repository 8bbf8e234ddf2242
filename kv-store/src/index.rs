//! The places of all data: segments, their slots, and the blocks in them. Nothing here touches the disk.

use crate::block::{BlockId, bounded_seconds};
use crate::decode::RecordHeader;
use crate::format::PAGE_BYTES;
use crate::order::{Digest, EvictionOrder, Rank};
use crate::segment::Segment;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The name of a block in memory. Two blocks with the same one would be misses of each other: every read
/// compares whole ids.
pub(crate) fn digest(id: &BlockId) -> Digest {
    let mut bytes = [0; 65];
    bytes[..32].copy_from_slice(&id.layout.0);
    bytes[32..64].copy_from_slice(&id.key.0);
    bytes[64] = id.part.number();
    xxhash_rust::xxh3::xxh3_128(&bytes)
}

/// A slot of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentSlot {
    /// The number of the segment, which its file's name has.
    pub segment: u64,
    /// Which of its slots, from 0.
    pub slot: u32,
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BlockEntry {
    pub slot: SegmentSlot,
    pub payload_bytes: usize,
    /// The number of its write: another record in the same slot has another one.
    pub sequence: u64,
    /// Seconds by byte.
    weight: f64,
    rank: Rank,
}

impl BlockEntry {
    /// The block's place in the order of eviction.
    pub fn priority(&self) -> f64 {
        self.rank.priority()
    }
}

/// A segment and who lies in its slots.
#[derive(Debug)]
pub(crate) struct SegmentSlots {
    pub segment: Segment,
    /// As many as the file has so far; none where a slot is free or being written.
    pub slots: Vec<Option<Digest>>,
}

impl SegmentSlots {
    /// Bytes of the file, with its last slot whole.
    pub fn bytes(&self) -> u64 {
        PAGE_BYTES + self.slots.len() as u64 * self.segment.slot_bytes
    }
}

/// Everything that is known of a store's files.
#[derive(Debug, Default)]
pub(crate) struct StoreIndex {
    entries: HashMap<Digest, BlockEntry>,
    pub(crate) order: EvictionOrder,
    pub(crate) segments: BTreeMap<u64, SegmentSlots>,
    /// Free slots by their bytes.
    pub(crate) free: BTreeMap<u64, BTreeSet<SegmentSlot>>,
    /// Bytes of all segments, and of files that count without being used.
    pub(crate) bytes: u64,
    /// The number of the next segment.
    pub(crate) next: u64,
}

impl StoreIndex {
    /// Where a block lies.
    pub fn find(&self, digest: Digest) -> Option<&BlockEntry> {
        self.entries.get(&digest)
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The geometry of a segment.
    pub fn segment(&self, number: u64) -> Option<Segment> {
        self.segments.get(&number).map(|slots| slots.segment)
    }

    /// Takes in a segment that was read; `headers` are those of its slots. Of two records of one block the
    /// later one stays.
    pub fn load(&mut self, number: u64, segment: Segment, headers: &[Option<RecordHeader>]) {
        let slots = SegmentSlots { segment, slots: vec![None; headers.len()] };
        self.bytes += slots.bytes();
        self.segments.insert(number, slots);
        for (n, header) in headers.iter().enumerate() {
            let slot = SegmentSlot { segment: number, slot: n as u32 };
            self.free.entry(segment.slot_bytes).or_default().insert(slot);
            let Some(header) = header else { continue };
            let known = self.find(digest(&header.id)).map(|entry| entry.sequence);
            if known.is_none_or(|sequence| sequence < header.sequence) {
                self.take(slot);
                let rank = Rank::new(header.priority, header.sequence);
                self.insert(slot, &header.id, header.payload_bytes, header.found.seconds, rank);
            }
        }
    }

    /// Puts a block in a slot that is taken. Its rank has the time of its write.
    pub fn insert(
        &mut self,
        slot: SegmentSlot,
        id: &BlockId,
        payload_bytes: usize,
        seconds: f64,
        rank: Rank,
    ) {
        let digest = digest(id);
        self.remove(digest);
        let Some(slots) = self.segments.get_mut(&slot.segment) else { return };
        let weight = weight(seconds, slots.segment.slot_bytes);
        let Some(place) = slots.slots.get_mut(slot.slot as usize) else { return };
        *place = Some(digest);
        self.order.insert(rank, digest);
        let entry = BlockEntry { slot, payload_bytes, sequence: rank.time(), weight, rank };
        self.entries.insert(digest, entry);
    }

    /// The rank that a block gets when it is written now.
    pub fn rank_now(&mut self, seconds: f64, slot_bytes: u64) -> Rank {
        self.order.rank_now(weight(seconds, slot_bytes))
    }

    /// Notes that a block is used.
    pub fn touch(&mut self, digest: Digest) {
        let Some(entry) = self.entries.get_mut(&digest) else { return };
        self.order.remove(entry.rank, digest);
        let rank = self.order.rank_now(entry.weight);
        entry.rank = rank;
        self.order.insert(rank, digest);
    }

    /// Forgets a block; its slot is free then. Whether there was one.
    pub fn remove(&mut self, digest: Digest) -> bool {
        let Some(entry) = self.entries.remove(&digest) else { return false };
        self.order.remove(entry.rank, digest);
        self.release(entry.slot);
        true
    }

    /// Forgets the block that goes first: its slot and that slot's bytes.
    pub fn evict(&mut self) -> Option<(SegmentSlot, u64)> {
        let digest = self.order.evict()?;
        let entry = self.entries.remove(&digest)?;
        self.release(entry.slot);
        Some((entry.slot, self.segment(entry.slot.segment).map_or(0, |segment| segment.slot_bytes)))
    }

    /// Makes a slot free.
    pub fn release(&mut self, slot: SegmentSlot) {
        let Some(slots) = self.segments.get_mut(&slot.segment) else { return };
        if let Some(place) = slots.slots.get_mut(slot.slot as usize) {
            *place = None;
            self.free.entry(slots.segment.slot_bytes).or_default().insert(slot);
        }
    }

    /// Takes a slot out of the free ones.
    pub fn take(&mut self, slot: SegmentSlot) {
        let Some(bytes) = self.segment(slot.segment).map(|segment| segment.slot_bytes) else { return };
        if let Some(free) = self.free.get_mut(&bytes) {
            free.remove(&slot);
            if free.is_empty() {
                self.free.remove(&bytes);
            }
        }
    }

    /// Forgets a segment and its blocks: how many these were, and the file's bytes.
    pub fn remove_segment(&mut self, number: u64) -> (u64, u64) {
        let Some(slots) = self.segments.remove(&number) else { return (0, 0) };
        for (n, digest) in slots.slots.iter().enumerate() {
            if let Some(digest) = digest
                && let Some(entry) = self.entries.remove(digest)
            {
                self.order.remove(entry.rank, *digest);
            }
            let slot = SegmentSlot { segment: number, slot: n as u32 };
            if let Some(free) = self.free.get_mut(&slots.segment.slot_bytes) {
                free.remove(&slot);
            }
        }
        self.free.retain(|_, slots| !slots.is_empty());
        self.bytes -= slots.bytes();
        (slots.slots.iter().flatten().count() as u64, slots.bytes())
    }
}

/// Seconds by byte.
fn weight(seconds: f64, slot_bytes: u64) -> f64 {
    bounded_seconds(seconds) / slot_bytes as f64
}
