//! Adapters by slot, as kernels read them.

use super::packed::PackedAdapter;
use kernmill_plan::adapter::{Adapters, SiteEntry};
use kernmill_plan::format::TILE_ROWS;
use std::sync::Arc;

/// A set of a program's sites.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteSet {
    words: Vec<u64>,
}

impl SiteSet {
    fn clear(&mut self, sites: usize) {
        self.words.clear();
        self.words.resize(sites.div_ceil(64), 0);
    }

    fn insert(&mut self, site: usize) {
        self.words[site / 64] |= 1 << (site % 64);
    }

    fn has(&self, site: u32) -> bool {
        self.words.get(site as usize / 64).is_some_and(|word| word >> (site % 64) & 1 == 1)
    }

    /// Whether a step runs that is there for `sites`; for none: that always runs.
    pub(crate) fn want(&self, sites: &[u32]) -> bool {
        sites.is_empty() || self.any_of(sites)
    }

    /// Whether any of `sites` is in it.
    pub(crate) fn any_of(&self, sites: &[u32]) -> bool {
        sites.iter().any(|site| self.has(*site))
    }
}

/// Adapters by slot, as kernels read them. Slot 0 is none.
#[derive(Debug, Default)]
pub struct AdapterTable {
    /// The program's, `None` when it takes none.
    adapters: Option<Adapters>,
    /// `[slot][site]`.
    entries: Vec<SiteEntry>,
    slots: Vec<Option<Arc<PackedAdapter>>>,
}

// SAFETY: the entries' addresses point into memory that `slots` keeps and nobody writes.
unsafe impl Send for AdapterTable {}
// SAFETY: as above.
unsafe impl Sync for AdapterTable {}

impl AdapterTable {
    /// A table of `slots` empty slots, the first of which stays so, for a program's sites.
    pub fn new(adapters: Option<&Adapters>, slots: usize) -> AdapterTable {
        let mut table = AdapterTable { adapters: adapters.cloned(), entries: Vec::new(), slots: Vec::new() };
        table.grow(slots.max(1));
        table
    }

    fn sites(&self) -> usize {
        self.adapters.as_ref().map_or(0, |adapters| adapters.sites.len())
    }

    /// Makes it have at least this many slots, the empty first one included.
    pub fn grow(&mut self, slots: usize) {
        let slots = slots.max(self.slots.len());
        self.slots.resize(slots, None);
        self.entries.resize(slots * self.sites(), SiteEntry::NONE);
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
    /// When the slot is 0 or past the end, or the adapter is packed for other sites.
    pub fn set(&mut self, slot: usize, adapter: Option<Arc<PackedAdapter>>) -> Option<Arc<PackedAdapter>> {
        assert!(slot > 0 && slot < self.slots.len(), "slot {slot} of 1..{}", self.slots.len());
        let fits = adapter.as_ref().is_none_or(|adapter| self.takes(adapter));
        assert!(fits, "the adapter is packed for other sites");
        let sites = self.sites();
        let entries = &mut self.entries[slot * sites..][..sites];
        entries.fill(SiteEntry::NONE);
        if let Some(adapter) = &adapter {
            for (entry, layout) in entries.iter_mut().zip(&adapter.layouts) {
                *entry =
                    layout.as_ref().map_or(SiteEntry::NONE, |layout| layout.entry(adapter.memory.as_ptr()));
            }
        }
        std::mem::replace(&mut self.slots[slot], adapter)
    }

    /// Whether an adapter is packed for the program's sites.
    pub fn takes(&self, adapter: &PackedAdapter) -> bool {
        self.adapters.as_ref().is_some_and(|adapters| adapter.fits(adapters))
    }

    /// The adapter in a slot.
    pub fn get(&self, slot: usize) -> Option<&Arc<PackedAdapter>> {
        self.slots.get(slot)?.as_ref()
    }

    /// First entry.
    pub(crate) fn as_ptr(&self) -> *const SiteEntry {
        self.entries.as_ptr()
    }

    /// Bytes from one slot's entries to the next's.
    pub(crate) fn stride(&self) -> u64 {
        (self.sites() * size_of::<SiteEntry>()) as u64
    }

    /// Collects the sites at which these slots have adapters; the tiles of 16 ranks of the largest one, `None` when there is no adapter.
    pub(crate) fn in_use(&self, slots: impl Iterator<Item = u32>, sites: &mut SiteSet) -> Option<u32> {
        sites.clear(self.sites());
        let mut ranks = 0;
        for slot in slots.filter(|slot| *slot > 0) {
            for (site, entry) in self.entries(slot as usize).iter().enumerate() {
                if entry.ranks > 0 {
                    sites.insert(site);
                    ranks = ranks.max(entry.ranks);
                }
            }
        }
        (ranks > 0).then_some(ranks.div_ceil(TILE_ROWS as u64) as u32)
    }

    /// A slot's entries, one per site; none when there is no such slot.
    pub fn entries(&self, slot: usize) -> &[SiteEntry] {
        self.entries.get(slot * self.sites()..(slot + 1) * self.sites()).unwrap_or_default()
    }
}
