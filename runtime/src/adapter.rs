//! Adapters in memory: packed once, then shared by the slots that use them.

use kernmill_plan::adapter::{Adapters, SiteEntry, SiteLayout, SiteShape};
use kernmill_plan::pack::PackError;
use kernmill_plan::region::{RegionError, WeightRegion};
use std::sync::Arc;

/// An adapter, packed for the sites of a program; never written again.
#[derive(Debug)]
pub struct PackedAdapter {
    layouts: Vec<Option<SiteLayout>>,
    memory: Arc<WeightRegion>,
}

/// Why an adapter could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum AdapterPackError {
    /// The system refused the memory.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// An element is unusable.
    #[error(transparent)]
    Pack(#[from] PackError),
}

impl PackedAdapter {
    /// Takes memory for an adapter of these shapes (one per site, `None` where it has nothing) and lets `fill` pack each site.
    ///
    /// # Errors
    /// The system's, or those of `fill`.
    ///
    /// # Panics
    /// When there are not as many shapes as sites, or a rank is out of range.
    pub fn pack<E: From<RegionError>>(
        adapters: &Adapters,
        shapes: &[Option<SiteShape>],
        fill: &mut dyn FnMut(usize, &SiteLayout, &mut [u8]) -> Result<(), E>,
    ) -> Result<PackedAdapter, E> {
        let (layouts, bytes) = adapters.layout(shapes);
        let mut memory = WeightRegion::anonymous(bytes)?;
        for (site, layout) in layouts.iter().enumerate() {
            if let Some(layout) = layout {
                fill(site, layout, memory.as_mut_slice())?;
            }
        }
        Ok(PackedAdapter { layouts, memory: memory.freeze()? })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Its layout at each site.
    pub fn layouts(&self) -> &[Option<SiteLayout>] {
        &self.layouts
    }

    /// Largest rank at any site.
    pub fn rank(&self) -> usize {
        self.layouts.iter().flatten().map(SiteLayout::rank).max().unwrap_or(0)
    }
}

/// Adapters by slot, as kernels read them. Slot 0 is none.
#[derive(Debug, Default)]
pub struct AdapterTable {
    sites: usize,
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
        let sites = adapters.map_or(0, |adapters| adapters.sites.len());
        let slots = slots.max(1);
        AdapterTable { sites, entries: vec![SiteEntry::NONE; slots * sites], slots: vec![None; slots] }
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
        let entries = &mut self.entries[slot * self.sites..][..self.sites];
        entries.fill(SiteEntry::NONE);
        if let Some(adapter) = &adapter {
            assert_eq!(adapter.layouts.len(), entries.len(), "the adapter is packed for other sites");
            for (entry, layout) in entries.iter_mut().zip(&adapter.layouts) {
                *entry =
                    layout.as_ref().map_or(SiteEntry::NONE, |layout| layout.entry(adapter.memory.as_ptr()));
            }
        }
        std::mem::replace(&mut self.slots[slot], adapter)
    }

    /// The adapter in a slot.
    pub fn get(&self, slot: usize) -> Option<&Arc<PackedAdapter>> {
        self.slots.get(slot)?.as_ref()
    }

    /// A slot's entries, one per site; none when there is no such slot.
    pub fn entries(&self, slot: usize) -> &[SiteEntry] {
        self.entries.get(slot * self.sites..(slot + 1) * self.sites).unwrap_or_default()
    }
}
