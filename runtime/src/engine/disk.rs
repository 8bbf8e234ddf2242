//! The prefix cache's second tier: a store on disk.
//!
//! Blocks that make way in memory go to the store, and come back when a prompt begins with their tokens. A
//! block that comes back has the bits that were computed: the store checks every byte, and a block's name is
//! a hash of all that its bits depend on.

use super::Engine;
use super::shelf::{self, EngineStore, FromShelf, Shelf, block_id};
use crate::kv::CacheScope;
use kernmill_kv_store::{BlockId, PayloadLayout, Store, StoreStats};
use std::io;

impl Engine {
    /// The name of this engine's blocks in stores and sessions. `identity` stands for the model: its spec,
    /// weights and preset ([`crate::PlanImage::identity`]); formats and shape of the KV cache are added.
    /// Engines with the same layout compute the same rows for the same tokens.
    pub fn kv_layout(&self, identity: &[u8; 32]) -> PayloadLayout {
        let kv = &self.model.kv;
        let mut hash = blake3::Hasher::new();
        hash.update(b"kernmill kv layout 2").update(identity);
        for geometry in [kv.full, kv.sliding] {
            let sizes = [geometry.kv_heads, geometry.head_dim, geometry.v_head_dim];
            let sizes = sizes.map(|size| (size as u64).to_le_bytes());
            hash.update(sizes.as_flattened());
            // The text of a pair is not that of another.
            hash.update(format!("{};", geometry.formats).as_bytes());
        }
        for layer in &kv.layers {
            let window = layer.window.map_or(u64::MAX, u64::from);
            hash.update(&[layer.kind.index() as u8]).update(&window.to_le_bytes());
        }
        PayloadLayout(*hash.finalize().as_bytes())
    }

    /// Puts what makes way in the prefix cache into a store on disk, and takes it from there when a prompt
    /// asks for it. `layout` is that of [`Engine::kv_layout`].
    ///
    /// Blocks are read when a sequence begins, by the thread that begins it, and written by a thread of the
    /// store. Read blocks have the bits that computing them would give. A block that is damaged or cannot be
    /// read is computed anew. The log has one warning of it, and a line about each further file.
    pub fn keep_on_disk(&mut self, store: Store, layout: PayloadLayout) {
        self.disk = Some(EngineStore::new(store, layout, self.model.decode_bytes));
        self.tables.watch_leaving();
    }

    /// Puts everything that the prefix cache has into the store, waits until it is written, and has the
    /// system put it on the disk: at the end, so that the next start finds it. Without a store nothing
    /// happens.
    ///
    /// # Errors
    /// When the disk fails. Blocks for which there is no room are dropped, and the log says so.
    pub fn save_cache(&mut self) -> io::Result<()> {
        let Engine { tables, executor, disk, .. } = self;
        let Some(disk) = disk else { return Ok(()) };
        tables.hand_over(&mut |block| disk.put(executor, block, true));
        let blocks = tables.cached_blocks();
        blocks.iter().for_each(|block| disk.put(executor, block, true));
        let flushed = disk.store.flush();
        // The ends of texts go before their beginnings, which others may share.
        let ids: Vec<BlockId> =
            blocks.iter().rev().map(|block| block_id(disk.layout, block.kind, &block.key)).collect();
        disk.store.touch(&ids);
        disk.tell();
        flushed
    }

    /// The contents of the store on disk, and counts since it was opened; nothing without a store.
    pub fn disk_stats(&self) -> Option<StoreStats> {
        self.disk.as_ref().map(|disk| disk.store.stats())
    }

    /// Whether files of the store on disk have failed, of which the log has a warning.
    pub fn disk_has_failed(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.has_warned)
    }

    /// How many tokens of a prompt are in memory or in the store.
    pub(super) fn foreseen(&self, scope: &CacheScope, prompt: &[u32]) -> u32 {
        let Some(disk) = &self.disk else { return self.tables.cached(scope, prompt) };
        let bytes = self.tables.usage().block_bytes;
        let is_there = &mut |kind, key: &[u8; 32]| shelf::has(&disk.store, disk.layout, bytes, kind, key);
        self.tables.foreseen(scope, prompt, is_there)
    }

    /// Brings back what the store has of a prompt; how many tokens more are cached then.
    pub(super) fn restore_from_disk(&mut self, scope: &CacheScope, prompt: &[u32]) -> u32 {
        let Engine { tables, executor, disk: Some(disk), .. } = self else { return 0 };
        let bytes = tables.usage().block_bytes;
        let (shelf, layout) = (&disk.store, disk.layout);
        let mut source = FromShelf { shelf, layout, executor, disk: Some(disk), bytes, rows: Vec::new() };
        let restored = tables.restore(scope, prompt, &mut source);
        disk.tell();
        restored
    }

    /// Brings back what a shelf has of a prompt, as [`Engine::restore_from_disk`] does.
    pub(super) fn restore_from(
        &mut self,
        shelf: &impl Shelf,
        layout: PayloadLayout,
        scope: &CacheScope,
        prompt: &[u32],
    ) -> u32 {
        let Engine { tables, executor, disk, .. } = self;
        let bytes = tables.usage().block_bytes;
        let disk = disk.as_ref();
        let mut source = FromShelf { shelf, layout, executor, disk, bytes, rows: Vec::new() };
        tables.restore(scope, prompt, &mut source)
    }
}
