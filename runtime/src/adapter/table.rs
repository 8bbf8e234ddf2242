//! Adapters by slot, as kernels read them.

use super::packed::PackedAdapter;
use kernmill_plan::adapter::{Adapters, LoraTargetEntry};
use kernmill_plan::format::TILE_ROWS;
use std::sync::Arc;

/// A set of a program's LoRA targets.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoraTargetSet {
    words: Vec<u64>,
}

impl LoraTargetSet {
    fn clear(&mut self, lora_targets: usize) {
        self.words.clear();
        self.words.resize(lora_targets.div_ceil(64), 0);
    }

    fn insert(&mut self, lora_target: usize) {
        self.words[lora_target / 64] |= 1 << (lora_target % 64);
    }

    fn has(&self, lora_target: u32) -> bool {
        self.words.get(lora_target as usize / 64).is_some_and(|word| word >> (lora_target % 64) & 1 == 1)
    }

    /// Whether a step runs that is there for `lora_targets`; for none: that always runs.
    pub(crate) fn want(&self, lora_targets: &[u32]) -> bool {
        lora_targets.is_empty() || self.any_of(lora_targets)
    }

    /// Whether any of `lora_targets` is in it.
    pub(crate) fn any_of(&self, lora_targets: &[u32]) -> bool {
        lora_targets.iter().any(|lora_target| self.has(*lora_target))
    }
}

/// Adapters by slot, as kernels read them. Slot 0 has no adapter.
#[derive(Debug, Default)]
pub struct AdapterTable {
    /// The program's, `None` when it takes none.
    adapters: Option<Adapters>,
    /// `[slot][lora_target]`.
    entries: Vec<LoraTargetEntry>,
    slots: Vec<Option<Arc<PackedAdapter>>>,
}

// SAFETY: the entries' addresses point into memory that `slots` keeps and nobody writes.
unsafe impl Send for AdapterTable {}
// SAFETY: as above.
unsafe impl Sync for AdapterTable {}

impl AdapterTable {
    /// A table of `slots` empty slots, the first of which stays so, for a program's LoRA targets.
    pub fn new(adapters: Option<&Adapters>, slots: usize) -> AdapterTable {
        let mut table = AdapterTable { adapters: adapters.cloned(), entries: Vec::new(), slots: Vec::new() };
        table.grow(slots.max(1));
        table
    }

    fn lora_targets(&self) -> usize {
        self.adapters.as_ref().map_or(0, |adapters| adapters.lora_targets.len())
    }

    /// Makes the table have at least this many slots, the empty first one included.
    pub fn grow(&mut self, slots: usize) {
        let slots = slots.max(self.slots.len());
        self.slots.resize(slots, None);
        self.entries.resize(slots * self.lora_targets(), LoraTargetEntry::NONE);
    }

    /// Slots, the empty first one included.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no slot but the first.
    pub fn is_empty(&self) -> bool {
        self.slots.len() == 1
    }

    /// Puts an adapter into a slot, or empties it; what was there.
    ///
    /// # Panics
    /// When the slot is 0 or past the end, or the adapter is packed for other LoRA targets.
    pub fn set(&mut self, slot: usize, adapter: Option<Arc<PackedAdapter>>) -> Option<Arc<PackedAdapter>> {
        assert!(slot > 0 && slot < self.slots.len(), "slot {slot} of 1..{}", self.slots.len());
        let fits = adapter.as_ref().is_none_or(|adapter| self.takes(adapter));
        assert!(fits, "the adapter is packed for other LoRA targets");
        let lora_targets = self.lora_targets();
        let entries = &mut self.entries[slot * lora_targets..][..lora_targets];
        entries.fill(LoraTargetEntry::NONE);
        if let Some(adapter) = &adapter {
            for (entry, layout) in entries.iter_mut().zip(&adapter.layouts) {
                *entry = layout
                    .as_ref()
                    .map_or(LoraTargetEntry::NONE, |layout| layout.entry(adapter.memory.as_ptr()));
            }
        }
        std::mem::replace(&mut self.slots[slot], adapter)
    }

    /// Whether an adapter is packed for the program's LoRA targets.
    pub fn takes(&self, adapter: &PackedAdapter) -> bool {
        self.adapters.as_ref().is_some_and(|adapters| adapter.fits(adapters))
    }

    /// The adapter in a slot.
    pub fn get(&self, slot: usize) -> Option<&Arc<PackedAdapter>> {
        self.slots.get(slot)?.as_ref()
    }

    /// First entry.
    pub(crate) fn as_ptr(&self) -> *const LoraTargetEntry {
        self.entries.as_ptr()
    }

    /// Bytes from one slot's entries to the next's.
    pub(crate) fn stride(&self) -> u64 {
        (self.lora_targets() * size_of::<LoraTargetEntry>()) as u64
    }

    /// Collects the LoRA targets at which these slots have adapters; the tiles of 16 ranks of the largest
    /// one, `None` when there is no adapter.
    pub(crate) fn in_use(
        &self,
        slots: impl Iterator<Item = u32>,
        lora_targets: &mut LoraTargetSet,
    ) -> Option<u32> {
        lora_targets.clear(self.lora_targets());
        let mut ranks = 0;
        for slot in slots.filter(|slot| *slot > 0) {
            for (lora_target, entry) in self.entries(slot as usize).iter().enumerate() {
                if entry.ranks > 0 {
                    lora_targets.insert(lora_target);
                    ranks = ranks.max(entry.ranks);
                }
            }
        }
        (ranks > 0).then_some(ranks.div_ceil(TILE_ROWS as u64) as u32)
    }

    /// A slot's entries, one per LoRA target; none when there is no such slot.
    pub fn entries(&self, slot: usize) -> &[LoraTargetEntry] {
        self.entries.get(slot * self.lora_targets()..(slot + 1) * self.lora_targets()).unwrap_or_default()
    }
}
