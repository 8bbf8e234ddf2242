//! Sequences with adapters.

use super::{Engine, EngineError, SeqId};
use crate::adapter::{AdapterStore, AdapterTable, AdapterUse};

impl Engine {
    /// Starts an empty sequence whose tokens all have these adapters of the store, added up.
    ///
    /// # Errors
    /// When all sequences are in use, an adapter is not loaded, or they cannot be combined.
    pub fn create_with(&mut self, adapters: &[AdapterUse]) -> Result<SeqId, EngineError> {
        let slot = self.tables.create()?;
        match self.store.acquire(adapters, &mut self.adapters) {
            Ok(adapter) => {
                let id = self.name(slot);
                self.sequence_adapters[slot as usize] = adapter;
                Ok(id)
            }
            Err(error) => {
                self.tables.release(slot);
                Err(error.into())
            }
        }
    }

    /// The adapters that sequences may have, by name.
    pub fn adapter_store(&self) -> &AdapterStore {
        &self.store
    }

    /// The same, to load, replace and drop some; between steps, whatever sequences run.
    pub fn adapter_store_mut(&mut self) -> &mut AdapterStore {
        &mut self.store
    }

    /// Makes room for adapters in slots 1 to `slots`; those that are in slots stay.
    pub fn reserve_adapters(&mut self, slots: u32) {
        self.adapters.grow(slots as usize + 1);
    }

    /// The table of adapters, to fill and empty slots between steps.
    pub fn adapters(&mut self) -> &mut AdapterTable {
        &mut self.adapters
    }

    /// Tokens that are appended to a sequence from now on use the adapter in that slot of the table; 0 is none. What is cached stays as it is:
    /// an adapter for a whole sequence is set while it is empty.
    ///
    /// # Errors
    /// When there is no such sequence or slot.
    pub fn use_adapter(&mut self, id: SeqId, slot: u32) -> Result<(), EngineError> {
        let sequence = self.slot(id)?;
        if slot as usize >= self.adapters.len() {
            return Err(EngineError::NoAdapterSlot { slot, slots: self.adapters.len() as u32 });
        }
        self.store.share(slot);
        let before = std::mem::replace(&mut self.sequence_adapters[sequence as usize], slot);
        self.store.release(before, &mut self.adapters);
        Ok(())
    }
}
