//! Rows of blocks on their way to a store on disk, and back from there or from a saved session.

use crate::executor::Executor;
use crate::kv::{BlockChange, BlockSource, CachedBlock};
use kernmill_kv_store::{
    Block, BlockId, BlockTokens, FoundBlock, LayerPart, PayloadLayout, SessionFile, Source, Store,
    StoreEvent, StoreKey,
};
use kernmill_plan::kv::LayerKind;
use std::collections::HashSet;
use std::path::PathBuf;

/// Bytes of weights that a CPU multiplies with a token in a second, roughly, when it reads a prompt.
const WEIGHT_BYTES_PER_SECOND: f64 = 2.5e11;

/// A store and how blocks of this engine are named in it.
pub(super) struct EngineStore {
    pub store: Store,
    pub layout: PayloadLayout,
    /// Seconds that running a token takes, roughly: what it costs to lose its rows.
    token_seconds: f64,
    /// Files that the log has a line about.
    told: HashSet<PathBuf>,
    /// Whether the log has a warning that files failed.
    pub has_warned: bool,
}

/// A place that rows are read from.
pub(super) trait Shelf {
    /// The bytes of a block's rows, if they are there.
    fn payload_bytes(&self, id: &BlockId) -> Option<usize>;
    /// Reads a block's rows.
    fn read(&self, id: &BlockId, rows: &mut [u8]) -> Option<FoundBlock>;
}

impl Shelf for Store {
    fn payload_bytes(&self, id: &BlockId) -> Option<usize> {
        Store::payload_bytes(self, id)
    }

    fn read(&self, id: &BlockId, rows: &mut [u8]) -> Option<FoundBlock> {
        Store::read(self, id, rows)
    }
}

impl<S: Source> Shelf for SessionFile<S> {
    fn payload_bytes(&self, id: &BlockId) -> Option<usize> {
        SessionFile::payload_bytes(self, id)
    }

    fn read(&self, id: &BlockId, rows: &mut [u8]) -> Option<FoundBlock> {
        // A file that cannot be read costs what a damaged one does.
        SessionFile::read(self, id, rows).ok().flatten()
    }
}

/// The name under which a block's rows are stored.
pub(super) fn block_id(layout: PayloadLayout, kind: LayerKind, key: &[u8; 32]) -> BlockId {
    let part = match kind {
        LayerKind::Full => LayerPart::Full,
        LayerKind::Sliding => LayerPart::Window,
    };
    BlockId { layout, key: StoreKey(*key), part }
}

/// A cached block with its rows, as it is stored.
pub(super) fn stored_block(
    executor: &Executor,
    of: &CachedBlock,
    layout: PayloadLayout,
    token_seconds: f64,
) -> Option<Block> {
    let mut payload = Vec::new();
    executor.block_rows(of.kind, of.block, of.len, &mut payload);
    let tokens = BlockTokens::new(of.tokens()).ok()?;
    let id = block_id(layout, of.kind, &of.key);
    Some(Block { id, parent: StoreKey(of.parent), tokens, seconds: of.cost * token_seconds, payload })
}

impl EngineStore {
    /// A store for a model whose tokens read so many bytes of weights.
    pub(super) fn new(store: Store, layout: PayloadLayout, weight_bytes: u64) -> EngineStore {
        let token_seconds = weight_bytes as f64 / WEIGHT_BYTES_PER_SECOND;
        let mut disk = EngineStore { store, layout, token_seconds, told: HashSet::new(), has_warned: false };
        disk.tell();
        disk
    }

    /// Gives the store a block whose rows are in memory, unless it has them. Waits for room in its queue if
    /// `waits`; or else drops the block when the queue is full.
    pub(super) fn put(&self, executor: &Executor, of: &CachedBlock, waits: bool) {
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

    /// Logs what happened to the store's files: one warning, and less loudly a line for each further file.
    pub(super) fn tell(&mut self) {
        for event in self.store.take_events() {
            let is_new = self.told.insert(event.path().to_owned());
            match event {
                StoreEvent::InUse { .. } | StoreEvent::ReadOnly { .. } => {
                    tracing::warn!("KV cache on disk: {event}")
                }
                _ if !std::mem::replace(&mut self.has_warned, true) => {
                    tracing::warn!("KV cache on disk: {event} (what is missing is computed anew)");
                }
                _ if is_new => tracing::info!("KV cache on disk: {event}"),
                _ => tracing::debug!("KV cache on disk: {event}"),
            }
        }
    }
}

/// Does with the bytes of blocks what a change of the tables asks for.
pub(super) fn apply(change: BlockChange<'_>, executor: &mut Executor, disk: Option<&mut EngineStore>) {
    match (change, disk) {
        (BlockChange::Copy { kind, from, to }, _) => executor.copy_block(kind, from, to),
        (BlockChange::Leaves(block), Some(disk)) => disk.put(executor, block, false),
        (BlockChange::Leaves(_), None) => {}
    }
}

/// Rows that come back from a shelf, while others go to the disk.
pub(super) struct FromShelf<'a, S> {
    pub shelf: &'a S,
    pub layout: PayloadLayout,
    pub executor: &'a mut Executor,
    pub disk: Option<&'a EngineStore>,
    /// Bytes of a block's rows, by kind.
    pub bytes: [u64; 2],
    /// The rows at hand.
    pub rows: Vec<u8>,
}

/// Whether a shelf has the rows of a block, which have so many bytes, by kind.
pub(super) fn has(
    shelf: &impl Shelf,
    layout: PayloadLayout,
    bytes: [u64; 2],
    kind: LayerKind,
    key: &[u8; 32],
) -> bool {
    let there = shelf.payload_bytes(&block_id(layout, kind, key));
    there.is_some_and(|there| there as u64 == bytes[kind.index()])
}

impl<S: Shelf> BlockSource for FromShelf<'_, S> {
    fn has(&mut self, kind: LayerKind, key: &[u8; 32]) -> bool {
        has(self.shelf, self.layout, self.bytes, kind, key)
    }

    fn read(&mut self, block: &CachedBlock) -> bool {
        self.rows.resize(self.bytes[block.kind.index()] as usize, 0);
        let found = self.shelf.read(&block_id(self.layout, block.kind, &block.key), &mut self.rows);
        let is_it = |found: &FoundBlock| {
            found.tokens.as_slice() == block.tokens() && found.parent == StoreKey(block.parent)
        };
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
