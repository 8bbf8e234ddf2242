//! State that the threads of a store share.

use crate::block::{Block, BlockError};
use crate::directory::Directory;
use crate::disk::Disk;
use crate::event::StoreEvent;
use crate::index::StoreIndex;
use crate::order::Digest;
use crate::place::SegmentRoom;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Events that are kept until they are asked for.
const MAX_EVENTS: usize = 256;

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Bytes that the store's files may have together. 16 GiB by default.
    pub limit: u64,
    /// Bytes of the file system that the store leaves free: it does not grow into them. 1 GiB by default.
    pub reserve: u64,
    /// Bytes of a segment file at most, from 64 KiB to 256 MiB. 64 MiB by default. Where the limit is small,
    /// segments have a sixteenth of it. A larger record has a separate file.
    pub segment_bytes: u64,
    /// Bytes of payloads that may wait to be written; more are dropped. 64 MiB by default.
    pub queue_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions { limit: 16 << 30, reserve: 1 << 30, segment_bytes: 64 << 20, queue_bytes: 64 << 20 }
    }
}

/// The result of giving a block to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// The block will be written, and is found from now on.
    Queued,
    /// The block is there already, and counts as used.
    Known,
    /// The block was dropped: too much waits to be written.
    Busy,
    /// The block was dropped: the store only reads.
    ReadOnly,
    /// The block was dropped: no store takes such a block.
    Refused(BlockError),
}

impl Put {
    /// Whether the store has the block.
    pub fn is_kept(self) -> bool {
        matches!(self, Put::Queued | Put::Known)
    }
}

/// The contents of a store, and counts of what happened since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Blocks on disk.
    pub blocks: u64,
    /// Bytes of the store's files.
    pub bytes: u64,
    /// Bytes of payloads that wait to be written.
    pub queued_bytes: u64,
    /// Reads that found their block.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Blocks that were written.
    pub written: u64,
    /// Blocks that were dropped because too much waited to be written.
    pub dropped: u64,
    /// Blocks that could not be written, for want of room or because the disk failed.
    pub refused: u64,
    /// Blocks that gave way to others.
    pub evicted: u64,
    /// Blocks that were found damaged by a read.
    pub damaged: u64,
    /// Events that were not kept, because nobody asked for them.
    pub lost_events: u64,
}

/// Everything that changes.
#[derive(Default)]
pub(crate) struct StoreState {
    pub index: StoreIndex,
    /// Blocks that wait to be written, the oldest first.
    pub queue: VecDeque<Arc<Block>>,
    /// Blocks that wait to be written, and the one that is being written, by their names.
    pub pending: HashMap<Digest, Arc<Block>>,
    /// Segments that were written to since the last flush.
    pub dirty: BTreeSet<u64>,
    /// Whether the last block found no room, which is said once.
    pub is_full: bool,
    /// Whether the writer is to end when the queue is empty.
    pub is_ending: bool,
    pub stats: StoreStats,
    events: VecDeque<StoreEvent>,
}

impl StoreState {
    /// Keeps an event for the log; the oldest are lost when nobody asks for them.
    pub fn note(&mut self, event: StoreEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
            self.stats.lost_events += 1;
        }
        self.events.push_back(event);
    }

    /// All events that are kept, which are forgotten then.
    pub fn take_events(&mut self) -> Vec<StoreEvent> {
        self.events.drain(..).collect()
    }
}

/// State that the threads of a store share.
pub(crate) struct StoreShared {
    pub directory: Directory,
    pub disk: Box<dyn Disk>,
    pub options: StoreOptions,
    state: Mutex<StoreState>,
    /// Told when a block is queued, or the writer is to end.
    pub queued: Condvar,
    /// Told when a block has been written.
    pub written: Condvar,
}

impl StoreShared {
    pub fn new(
        directory: Directory,
        disk: Box<dyn Disk>,
        options: StoreOptions,
        state: StoreState,
    ) -> StoreShared {
        let (queued, written) = (Condvar::new(), Condvar::new());
        StoreShared { directory, disk, options, state: Mutex::new(state), queued, written }
    }

    /// The state, which no other thread has meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present limits of the files.
    pub fn room(&self) -> io::Result<SegmentRoom> {
        let free = self.disk.free_space(self.directory.path())?;
        let StoreOptions { limit, reserve, segment_bytes, .. } = self.options;
        Ok(SegmentRoom { limit, segment_bytes, growth: free.saturating_sub(reserve) })
    }
}
