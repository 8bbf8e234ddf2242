//! The memory of a store's adapters, kept up to date by every change rather than added up anew.

use super::packed::PackedAdapter;
use std::collections::HashMap;
use std::sync::Arc;

/// Adapters in memory, each counted once however many slots and names it has.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// By address: whoever counts an adapter in keeps it, so that the address stays its own.
    adapters: HashMap<*const PackedAdapter, AdapterUses>,
    /// Bytes and number of those in slots.
    in_use: (u64, usize),
    /// Bytes of all.
    bytes: u64,
}

// SAFETY: the addresses are compared and never followed.
unsafe impl Send for Tally {}
// SAFETY: as above.
unsafe impl Sync for Tally {}

#[derive(Debug, Default)]
struct AdapterUses {
    slots: usize,
    loaded: bool,
}

impl Tally {
    /// Notes that an adapter is loaded from now on.
    pub(super) fn load(&mut self, adapter: &Arc<PackedAdapter>) {
        self.change(adapter, |kept| kept.loaded = true);
    }

    /// Notes that an adapter is not loaded any more.
    pub(super) fn unload(&mut self, adapter: &Arc<PackedAdapter>) {
        self.change(adapter, |kept| kept.loaded = false);
    }

    /// One more slot has it.
    pub(super) fn hold(&mut self, adapter: &Arc<PackedAdapter>) {
        self.change(adapter, |kept| kept.slots += 1);
    }

    /// One slot less has it.
    pub(super) fn let_go(&mut self, adapter: &Arc<PackedAdapter>) {
        self.change(adapter, |kept| kept.slots = kept.slots.saturating_sub(1));
    }

    /// Whether some slot has it.
    pub(super) fn is_held(&self, adapter: &Arc<PackedAdapter>) -> bool {
        self.adapters.get(&Arc::as_ptr(adapter)).is_some_and(|kept| kept.slots > 0)
    }

    /// Bytes and number of the adapters that slots have.
    pub(super) fn in_use(&self) -> (u64, usize) {
        self.in_use
    }

    /// Bytes of all adapters.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of all adapters.
    pub(super) fn count(&self) -> usize {
        self.adapters.len()
    }

    fn change(&mut self, adapter: &Arc<PackedAdapter>, change: impl FnOnce(&mut AdapterUses)) {
        // It counts here from now on, or has long done so.
        drop(adapter.room().take());
        let (address, bytes) = (Arc::as_ptr(adapter), adapter.bytes() as u64);
        let kept = self.adapters.entry(address).or_default();
        let before = (kept.slots > 0, kept.slots > 0 || kept.loaded);
        change(kept);
        let after = (kept.slots > 0, kept.slots > 0 || kept.loaded);
        if !after.1 {
            self.adapters.remove(&address);
        }
        match (before.0, after.0) {
            (false, true) => self.in_use = (self.in_use.0 + bytes, self.in_use.1 + 1),
            (true, false) => self.in_use = (self.in_use.0 - bytes, self.in_use.1 - 1),
            _ => {}
        }
        match (before.1, after.1) {
            (false, true) => self.bytes += bytes,
            (true, false) => self.bytes -= bytes,
            _ => {}
        }
    }
}
