//! Where the next record goes, and what gives way for it.

use crate::format::PAGE_BYTES;
use crate::index::{SegmentSlot, SegmentSlots, StoreIndex};
use crate::segment::Segment;

/// The limits of a store's files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentRoom {
    /// Bytes that they may have.
    pub limit: u64,
    /// Bytes that one of them may have.
    pub segment_bytes: u64,
    /// Bytes by which they may grow now, so that the disk keeps its reserve.
    pub growth: u64,
}

/// A slot that is taken for a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TakenSlot {
    pub slot: SegmentSlot,
    pub segment: Segment,
    pub origin: SlotOrigin,
}

/// Where a slot comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotOrigin {
    /// Another record was in it.
    Reused,
    /// The slot is the next one of its file.
    Appended,
    /// The slot is the first one of a file that is not there yet.
    NewFile,
}

/// The actions for a record, in this order.
#[derive(Debug, Default)]
pub(crate) struct PlacementPlan {
    /// Segments whose files are to be removed, with their bytes. The index has forgotten them.
    pub removed: Vec<(u64, u64)>,
    /// Blocks that were evicted.
    pub evicted: u64,
    /// The record's slot; none when there is no room for it.
    pub target: Option<TakenSlot>,
}

impl StoreIndex {
    /// Finds a slot of `slot_bytes` for a record: a free one; else a new one, if the files may grow; else the
    /// slot of a block that is evicted. Blocks go in their order, whatever their size, until a slot of the
    /// right size is free. When a segment's worth of others has gone in vain, the segment with the least
    /// value goes as a whole.
    pub fn place(&mut self, slot_bytes: u64, mut room: SegmentRoom) -> PlacementPlan {
        let mut plan = PlacementPlan::default();
        if !self.can_place(slot_bytes, room) {
            return plan;
        }
        let mut gone = 0;
        loop {
            plan.target = self.reuse(slot_bytes).or_else(|| self.grow(slot_bytes, room));
            if plan.target.is_some() {
                return plan;
            }
            let evicted = if gone < room.segment_bytes { self.evict() } else { None };
            let segment = match evicted {
                Some((slot, bytes)) => {
                    plan.evicted += 1;
                    gone += bytes;
                    self.is_spare(slot.segment, slot_bytes).then_some(slot.segment)
                }
                None => match self.least_valuable() {
                    Some(segment) => Some(segment),
                    None => return plan,
                },
            };
            if let Some(segment) = segment {
                let (blocks, bytes) = self.remove_segment(segment);
                plan.evicted += blocks;
                plan.removed.push((segment, bytes));
                room.growth = room.growth.saturating_add(bytes);
                gone = 0;
            }
        }
    }

    /// Segments that go so that the rest keeps within `limit`, with their bytes; how many blocks went with
    /// them.
    pub fn trim(&mut self, limit: u64) -> PlacementPlan {
        let mut plan = PlacementPlan::default();
        while self.bytes > limit {
            let Some(segment) = self.least_valuable() else { break };
            let (blocks, bytes) = self.remove_segment(segment);
            plan.evicted += blocks;
            plan.removed.push((segment, bytes));
        }
        plan
    }

    /// Undoes the taking of a slot that could not be written.
    pub fn give_back(&mut self, target: &TakenSlot) {
        match target.origin {
            SlotOrigin::Reused => self.release(target.slot),
            SlotOrigin::Appended => {
                if let Some(slots) = self.segments.get_mut(&target.slot.segment) {
                    slots.slots.pop();
                    self.bytes -= target.segment.slot_bytes;
                }
            }
            SlotOrigin::NewFile => {
                self.remove_segment(target.slot.segment);
            }
        }
    }

    /// Whether there is room for a record if everything else goes. If not, nothing need go.
    fn can_place(&self, slot_bytes: u64, room: SegmentRoom) -> bool {
        let has_slots =
            |slots: &SegmentSlots| slots.segment.slot_bytes == slot_bytes && !slots.slots.is_empty();
        if self.segments.values().any(has_slots) {
            return true;
        }
        let own: u64 = self.segments.values().map(SegmentSlots::bytes).sum();
        let most =
            room.growth.saturating_add(own).min(room.limit.saturating_add(own).saturating_sub(self.bytes));
        slot_bytes + PAGE_BYTES <= most
    }

    /// A free slot.
    fn reuse(&mut self, slot_bytes: u64) -> Option<TakenSlot> {
        let slot = *self.free.get(&slot_bytes)?.first()?;
        let segment = self.segment(slot.segment)?;
        self.take(slot);
        Some(TakenSlot { slot, segment, origin: SlotOrigin::Reused })
    }

    /// A slot behind the last one of a file, or of a new file.
    fn grow(&mut self, slot_bytes: u64, room: SegmentRoom) -> Option<TakenSlot> {
        let fits = |bytes: u64| bytes <= room.growth && self.bytes.saturating_add(bytes) <= room.limit;
        if !fits(slot_bytes) {
            return None;
        }
        let has_room = |slots: &SegmentSlots| {
            slots.segment.slot_bytes == slot_bytes && (slots.slots.len() as u64) < slots.segment.slots.into()
        };
        if let Some((number, slots)) = self.segments.iter_mut().rev().find(|(_, slots)| has_room(slots)) {
            let slot = SegmentSlot { segment: *number, slot: slots.slots.len() as u32 };
            slots.slots.push(None);
            self.bytes += slot_bytes;
            return Some(TakenSlot { slot, segment: slots.segment, origin: SlotOrigin::Appended });
        }
        if !fits(slot_bytes + PAGE_BYTES) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let slots = (room.segment_bytes.saturating_sub(PAGE_BYTES) / slot_bytes).max(1);
        let segment = Segment { slot_bytes, slots: u32::try_from(slots).ok()? };
        let slots = SegmentSlots { segment, slots: vec![None] };
        self.bytes += slots.bytes();
        self.segments.insert(number, slots);
        Some(TakenSlot {
            slot: SegmentSlot { segment: number, slot: 0 },
            segment,
            origin: SlotOrigin::NewFile,
        })
    }

    /// Whether a segment is empty, and of no use for slots of `slot_bytes`.
    fn is_spare(&self, number: u64, slot_bytes: u64) -> bool {
        self.segments.get(&number).is_some_and(|slots| {
            slots.segment.slot_bytes != slot_bytes && slots.slots.iter().all(Option::is_none)
        })
    }

    /// The segment whose blocks lie lowest above the floor, for its bytes; among equal ones the oldest.
    fn least_valuable(&self) -> Option<u64> {
        let floor = self.order.floor();
        let value = |slots: &SegmentSlots| {
            let entries = slots.slots.iter().flatten().filter_map(|digest| self.find(*digest));
            entries.map(|entry| entry.priority() - floor).sum::<f64>() / slots.bytes() as f64
        };
        let values = self.segments.iter().map(|(number, slots)| (value(slots), *number));
        values
            .min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))
            .map(|(_, number)| number)
    }
}
