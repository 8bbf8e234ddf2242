//! Sequences with adapters.

use super::{Engine, EngineError, SeqId};
use crate::adapter::{AdapterStore, AdapterUse, PackedAdapter};
use std::sync::Arc;

impl Engine {
    /// Starts an empty sequence whose tokens all have these adapters of the store, added up.
    ///
    /// # Errors
    /// When all sequences are in use, an adapter is not loaded, or they cannot be combined.
    pub fn create_with(&mut self, adapters: &[AdapterUse]) -> Result<SeqId, EngineError> {
        let number = self.tables.create()?;
        match self.store.acquire(adapters, &mut self.adapters) {
            Ok(adapter) => {
                let id = self.name(number);
                self.sequence_adapters[number as usize] = adapter;
                Ok(id)
            }
            Err(error) => {
                self.tables.release(number);
                Err(error.into())
            }
        }
    }

    /// The adapters that sequences may have, by name.
    pub fn adapter_store(&self) -> &AdapterStore {
        &self.store
    }

    /// Mutable access to the adapter store, to load, replace and drop adapters between steps. Sequences that
    /// run keep the adapters they started with.
    pub fn adapter_store_mut(&mut self) -> &mut AdapterStore {
        &mut self.store
    }

    /// Gives an adapter without a name a separate slot, for [`Engine::use_adapter`]. It counts in the
    /// store's budget, and stays as long as the engine.
    ///
    /// # Errors
    /// When it is packed for other LoRA targets than the plan's, or there is no room beside the adapters in
    /// use; then nothing has changed.
    pub fn place_adapter(&mut self, adapter: Arc<PackedAdapter>) -> Result<u32, EngineError> {
        Ok(self.store.place(adapter, &mut self.adapters)?)
    }

    /// Tokens that are appended to a sequence from now on use the adapter in that slot; 0 is no adapter.
    /// Cached rows stay as they are: an adapter for a whole sequence is set while it is empty.
    ///
    /// # Errors
    /// When there is no such sequence, or no adapter in the slot.
    pub fn use_adapter(&mut self, id: SeqId, slot: u32) -> Result<(), EngineError> {
        let sequence = self.number_of(id)?;
        if slot > 0 && !self.store.share(slot) {
            return Err(EngineError::NoAdapterSlot { slot });
        }
        // Its keys and values follow from more than its tokens and one adapter from now on.
        self.tables.leave_cache(sequence);
        let before = std::mem::replace(&mut self.sequence_adapters[sequence as usize], slot);
        self.store.release(before, &mut self.adapters);
        Ok(())
    }
}
