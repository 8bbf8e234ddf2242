//! The prefix cache's second tier: a store on disk.
//!
//! Blocks that make way in memory go to the store, and come back when a prompt begins with their tokens. What
//! comes back has the bits that were computed: the store checks every byte, and a block's name is a hash of
//! all that its bits depend on.

use super::Engine;
use crate::executor::Executor;
use crate::kv::{BlockChange, BlockSource, CacheScope, CachedBlock};
use kernmill_kv_store::{
    Block, BlockId, Event, Found, Key, Layout, Part, SessionFile, Source, Stats, Store, Tokens,
};
use kernmill_plan::kv::LayerKind;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

/// Bytes of weights that a CPU multiplies with a token in a second, roughly, when it reads a prompt.
const WEIGHT_BYTES_PER_SECOND: f64 = 2.5e11;

/// A store and how blocks of this engine are named in it.
pub(super) struct Disk {
    store: Store,
    layout: Layout,
    /// Seconds that running a token takes, roughly: what it costs to lose its rows.
    token_seconds: f64,
    /// Files that the log has a line about.
    told: HashSet<PathBuf>,
}

/// What rows are read from.
pub(super) trait Shelf {
    /// The bytes of a block's rows, if they are there.
    fn payload_bytes(&self, id: &BlockId) -> Option<usize>;
    /// Reads a block's rows.
    fn read(&self, id: &BlockId, rows: &mut [u8]) -> Option<Found>;
}

impl Shelf for Store {
    fn payload_bytes(&self, id: &BlockId) -> Option<usize> {
        Store::payload_bytes(self, id)
    }

    fn read(&self, id: &BlockId, rows: &mut [u8]) -> Option<Found> {
        Store::read(self, id, rows)
    }
}

impl<S: Source> Shelf for SessionFile<S> {
    fn payload_bytes(&self, id: &BlockId) -> Option<usize> {
        SessionFile::payload_bytes(self, id)
    }

    fn read(&self, id: &BlockId, rows: &mut [u8]) -> Option<Found> {
        // A file that cannot be read costs what a damaged one does.
        SessionFile::read(self, id, rows).ok().flatten()
    }
}

/// The name under which a block's rows are stored.
pub(super) fn block_id(layout: Layout, kind: LayerKind, key: &[u8; 32]) -> BlockId {
    let part = match kind {
        LayerKind::Full => Part::Full,
        LayerKind::Sliding => Part::Window,
    };
    BlockId { layout, key: Key(*key), part }
}

/// A cached block with its rows, as it is stored.
pub(super) fn stored_block(
    executor: &Executor,
    of: &CachedBlock,
    layout: Layout,
    token_seconds: f64,
) -> Option<Block> {
    let mut payload = Vec::new();
    executor.block_rows(of.kind, of.block, of.len, &mut payload);
    let tokens = Tokens::new(of.tokens()).ok()?;
    let id = block_id(layout, of.kind, &of.key);
    Some(Block { id, parent: Key(of.parent), tokens, seconds: of.cost * token_seconds, payload })
}

impl Disk {
    /// Gives the store a block whose rows are in memory, unless it has them. Waits for room in its queue if
    /// `waits`; or else drops the block when there is none.
    fn put(&self, executor: &Executor, of: &CachedBlock, waits: bool) {
        let id = block_id(self.layout, of.kind, &of.key);
        if self.store.is_read_only() {
            return;
        }
        if self.store.payload_bytes(&id).is_some() {
            return self.store.touch([&id]);
        }
        if let Some(block) = stored_block(executor, of, self.layout, self.token_seconds) {
            // A block that is dropped is computed anew; the store counts it.
            let _ = if waits { self.store.put_waiting(block) } else { self.store.put(block) };
        }
    }

    /// Logs what happened to the store's files: a line for each file.
    fn tell(&mut self) {
        for event in self.store.take_events() {
            let is_new = self.told.insert(event.path().to_owned());
            match event {
                Event::InUse { .. } | Event::ReadOnly { .. } => tracing::warn!("{event}"),
                _ if is_new => tracing::warn!("{event}"),
                _ => tracing::debug!("{event}"),
            }
        }
    }
}

/// Does with the bytes of blocks what a change of the tables asks for.
pub(super) fn apply(change: BlockChange<'_>, executor: &mut Executor, disk: Option<&mut Disk>) {
    match (change, disk) {
        (BlockChange::Copy { kind, from, to }, _) => executor.copy_block(kind, from, to),
        (BlockChange::Leaves(block), Some(disk)) => disk.put(executor, block, false),
        (BlockChange::Leaves(_), None) => {}
    }
}

/// Rows that come back from a shelf, while others go to the disk.
pub(super) struct FromShelf<'a, S> {
    pub shelf: &'a S,
    pub layout: Layout,
    pub executor: &'a mut Executor,
    pub disk: Option<&'a Disk>,
    /// Bytes of a block's rows, by kind.
    pub bytes: [u64; 2],
    /// The rows at hand.
    pub rows: Vec<u8>,
}

impl<S: Shelf> BlockSource for FromShelf<'_, S> {
    fn has(&mut self, kind: LayerKind, key: &[u8; 32]) -> bool {
        let bytes = self.shelf.payload_bytes(&block_id(self.layout, kind, key));
        bytes.is_some_and(|bytes| bytes as u64 == self.bytes[kind.index()])
    }

    fn read(&mut self, block: &CachedBlock) -> bool {
        self.rows.resize(self.bytes[block.kind.index()] as usize, 0);
        let found = self.shelf.read(&block_id(self.layout, block.kind, &block.key), &mut self.rows);
        let is_it =
            |found: &Found| found.tokens.as_slice() == block.tokens() && found.parent == Key(block.parent);
        let is_read = found.as_ref().is_some_and(is_it);
        if is_read {
            self.executor.set_block_rows(block.kind, block.block, &self.rows);
        }
        is_read
    }

    fn keep(&mut self, block: &CachedBlock) {
        if let Some(disk) = self.disk {
            disk.put(self.executor, block, false);
        }
    }
}

impl Engine {
    /// The name of this engine's blocks in stores and sessions. `identity` stands for the model: its spec,
    /// weights and preset ([`crate::PlanImage::identity`]); formats and shape of the KV cache are added.
    /// Engines with the same layout compute the same rows for the same tokens.
    pub fn kv_layout(&self, identity: &[u8; 32]) -> Layout {
        let kv = &self.model.kv;
        let mut hash = blake3::Hasher::new();
        hash.update(b"kernmill kv layout 1").update(identity);
        for geometry in [kv.full, kv.sliding] {
            let sizes = [geometry.kv_heads, geometry.head_dim].map(|size| (size as u64).to_le_bytes());
            hash.update(sizes.as_flattened());
            // The text of a pair is not that of another.
            hash.update(format!("{};", geometry.formats).as_bytes());
        }
        for layer in &kv.layers {
            let window = layer.window.map_or(u64::MAX, u64::from);
            hash.update(&[layer.kind.index() as u8]).update(&window.to_le_bytes());
        }
        Layout(*hash.finalize().as_bytes())
    }

    /// Puts what makes way in the prefix cache into a store on disk, and takes it from there when a prompt
    /// asks for it. `layout` is that of [`Engine::kv_layout`].
    ///
    /// Blocks are read when a sequence begins, by the thread that begins it, and written by a thread of the
    /// store. What has been read has the bits that computing it would give. A block that is damaged or cannot
    /// be read is computed anew, and the log has a line about its file.
    pub fn keep_on_disk(&mut self, store: Store, layout: Layout) {
        let token_seconds = self.model.decode_bytes as f64 / WEIGHT_BYTES_PER_SECOND;
        let mut disk = Disk { store, layout, token_seconds, told: HashSet::new() };
        disk.tell();
        self.disk = Some(disk);
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

    /// What the store on disk holds, and what happened since it was opened; nothing without a store.
    pub fn disk_stats(&self) -> Option<Stats> {
        self.disk.as_ref().map(|disk| disk.store.stats())
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
        layout: Layout,
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
