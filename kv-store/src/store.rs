//! The store: what its callers see.

use crate::block::{Block, BlockId, FoundBlock, bounded_seconds};
use crate::decode::{Damage, RecordHeader};
use crate::directory::{Directory, OpenError};
use crate::disk::{Disk, SystemDisk};
use crate::event::StoreEvent;
use crate::format::{MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES};
use crate::index::{BlockEntry, digest};
use crate::load::load;
use crate::order::Digest;
use crate::segment::Segment;
use crate::state::{Put, StoreOptions, StoreShared, StoreState, StoreStats};
use crate::writer;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A store of blocks in a directory.
///
/// All methods may be called from several threads. Reads are done by the thread that asks, writes by a thread
/// of the store. Dropping the store writes what is queued.
///
/// One process at a time writes to a directory. A store that is opened while another process has it reads
/// what was there at that moment, and takes no blocks ([`Store::is_read_only`]). It says nothing of
/// damage, which may be a write of the other process.
pub struct Store {
    shared: Arc<StoreShared>,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("directory", &self.shared.directory).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in the directory `dir`, which is made if it is missing. The headers of all records are
    /// read, one page for each.
    ///
    /// # Errors
    /// When the directory cannot be made or read, or others than this user may use it.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Store, OpenError> {
        Store::open_on(Box::new(SystemDisk), dir, options)
    }

    /// Opens a store as [`Store::open`] does, on another disk.
    pub(crate) fn open_on(
        disk: Box<dyn Disk>,
        dir: &Path,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        let system = |source: io::Error| OpenError::System { path: dir.to_owned(), source };
        let (directory, event) = Directory::open(dir)?;
        let segment_bytes =
            options.segment_bytes.min(options.limit / 16).clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
        let options = StoreOptions { segment_bytes, ..options };
        let (index, found) = load(&directory, &*disk).map_err(system)?;
        let mut state = StoreState::default();
        state.index = index;
        event.into_iter().chain(found).for_each(|event| state.note(event));
        let shared = Arc::new(StoreShared::new(directory, disk, options, state));
        let mut store = Store { shared, writer: None };
        if !store.is_read_only() {
            store.trim();
            let shared = Arc::clone(&store.shared);
            let thread = std::thread::Builder::new().name("kv-store".to_owned());
            store.writer = Some(thread.spawn(move || writer::run(&shared)).map_err(system)?);
        }
        Ok(store)
    }

    /// Brings files from before under the limit.
    fn trim(&self) {
        let mut state = self.shared.lock();
        let plan = state.index.trim(self.shared.options.limit);
        state.stats.evicted += plan.evicted;
        drop(state);
        writer::remove_files(&self.shared, &plan);
    }

    /// Whether the store takes no blocks, because another process writes to its directory or nobody can.
    pub fn is_read_only(&self) -> bool {
        !self.shared.directory.is_writable()
    }

    /// The bytes of a block's payload, if the store has it.
    pub fn payload_bytes(&self, id: &BlockId) -> Option<usize> {
        let state = self.shared.lock();
        match pending(&state, id) {
            Some(block) => Some(block.payload.len()),
            None => state.index.find(digest(id)).map(|entry| entry.payload_bytes),
        }
    }

    /// Notes that blocks are used, so that they stay: where their rows are read from memory, for example.
    pub fn touch<'a>(&self, ids: impl IntoIterator<Item = &'a BlockId>) {
        let mut state = self.shared.lock();
        ids.into_iter().for_each(|id| state.index.touch(digest(id)));
    }

    /// Gives a block to the store, without waiting for the disk. It is found at once.
    pub fn put(&self, block: Block) -> Put {
        self.offer(block, false)
    }

    /// Puts a block as [`Store::put`] does, but waits while too much is queued; never [`Put::Busy`].
    pub fn put_waiting(&self, block: Block) -> Put {
        self.offer(block, true)
    }

    fn offer(&self, block: Block, waits: bool) -> Put {
        if let Err(error) = block.check() {
            return Put::Refused(error);
        }
        if self.is_read_only() {
            return Put::ReadOnly;
        }
        let (digest, bytes) = (digest(&block.id), block.payload.len() as u64);
        let mut state = self.shared.lock();
        loop {
            if state.pending.contains_key(&digest) || state.index.find(digest).is_some() {
                state.index.touch(digest);
                return Put::Known;
            }
            let queued = state.stats.queued_bytes;
            if queued == 0 || queued.saturating_add(bytes) <= self.shared.options.queue_bytes {
                break;
            }
            if !waits {
                state.stats.dropped += 1;
                return Put::Busy;
            }
            state = self.shared.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let block = Arc::new(block);
        state.stats.queued_bytes += bytes;
        state.pending.insert(digest, Arc::clone(&block));
        state.queue.push_back(block);
        drop(state);
        self.shared.queued.notify_one();
        Put::Queued
    }

    /// Reads a block's payload into `out`, which has the length that [`Store::payload_bytes`] says. Every
    /// byte is checked. None is a miss, also when the block is damaged or cannot be read, which is an event;
    /// `out` may hold anything then.
    pub fn read(&self, id: &BlockId, out: &mut [u8]) -> Option<FoundBlock> {
        let found = self.find(id, out);
        let mut state = self.shared.lock();
        match found {
            Some(_) => {
                state.stats.hits += 1;
                state.index.touch(digest(id));
            }
            None => state.stats.misses += 1,
        }
        found
    }

    fn find(&self, id: &BlockId, out: &mut [u8]) -> Option<FoundBlock> {
        let state = self.shared.lock();
        if let Some(block) = pending(&state, id) {
            drop(state);
            (block.payload.len() == out.len()).then(|| out.copy_from_slice(&block.payload))?;
            let seconds = bounded_seconds(block.seconds);
            return Some(FoundBlock { parent: block.parent, tokens: block.tokens, seconds });
        }
        let digest = digest(id);
        let entry = *state.index.find(digest)?;
        let segment = state.index.segment(entry.slot.segment)?;
        drop(state);
        if entry.payload_bytes != out.len() {
            return None;
        }
        match self.read_slot(id, &entry, segment, out) {
            Ok(Ok(Some(header))) => return Some(header.found),
            Ok(Ok(None)) => self.drop_damaged(digest, &entry, segment, Damage::OtherRecord),
            Ok(Err(what)) => self.drop_damaged(digest, &entry, segment, what),
            Err(error) => self.note_unreadable(&entry, &error),
        }
        None
    }

    fn read_slot(
        &self,
        id: &BlockId,
        entry: &BlockEntry,
        segment: Segment,
        out: &mut [u8],
    ) -> io::Result<Result<Option<RecordHeader>, Damage>> {
        let path = self.shared.directory.segment_path(entry.slot.segment);
        let file = self.shared.disk.open(&path, false)?;
        segment.read(&file, entry.slot.slot, |header| header.id == *id, out)
    }

    /// Forgets a block that is damaged. If the writer took its slot meanwhile, the block is intact.
    fn drop_damaged(&self, digest: Digest, entry: &BlockEntry, segment: Segment, what: Damage) {
        let mut state = self.shared.lock();
        if state.index.find(digest).is_some_and(|now| now.sequence == entry.sequence) {
            state.index.remove(digest);
            // Another process that writes there has only taken the slot.
            if !self.is_read_only() {
                state.stats.damaged += 1;
                let file = self.shared.directory.segment_path(entry.slot.segment);
                state.note(StoreEvent::Damaged { file, offset: segment.offset(entry.slot.slot), what });
            }
        }
    }

    /// Notes that a segment could not be read. One that is gone is forgotten, others are kept.
    fn note_unreadable(&self, entry: &BlockEntry, error: &io::Error) {
        let number = entry.slot.segment;
        let file = self.shared.directory.segment_path(number);
        let mut state = self.shared.lock();
        if error.kind() != io::ErrorKind::NotFound {
            return state.note(StoreEvent::Unreadable { file, error: error.kind() });
        }
        let is_known = state.index.segment(number).is_some();
        state.index.remove_segment(number);
        state.dirty.remove(&number);
        if is_known && !self.is_read_only() {
            state.note(StoreEvent::Missing { file });
        }
    }

    /// Waits until everything that was queued is written, or `longest` is over; whether it is. Written blocks
    /// survive the end of the process, flushed ones also that of the system.
    pub fn drain(&self, longest: Duration) -> bool {
        let end = Instant::now().checked_add(longest);
        let mut state = self.shared.lock();
        while !state.pending.is_empty() {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            let left = left.unwrap_or(Duration::from_secs(60));
            let waited = self.shared.written.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits until everything that was queued is written and on the disk.
    ///
    /// # Errors
    /// When the disk fails; the segments in question are tried again by the next flush.
    pub fn flush(&self) -> io::Result<()> {
        self.drain(Duration::MAX);
        if self.shared.lock().dirty.is_empty() {
            return Ok(());
        }
        let directory = std::fs::File::open(self.shared.directory.path())?;
        let dirty = std::mem::take(&mut self.shared.lock().dirty);
        let mut outcome = Ok(());
        for number in dirty {
            let file = self.shared.disk.open(&self.shared.directory.segment_path(number), true);
            match file.and_then(|file| self.shared.disk.sync(&file)) {
                // It was evicted meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.shared.lock().dirty.insert(number);
                    outcome = Err(error);
                }
                Ok(()) => {}
            }
        }
        // The names of new files.
        outcome.and_then(|()| self.shared.disk.sync(&directory))
    }

    /// The contents of the store, and counts of what happened since it was opened.
    pub fn stats(&self) -> StoreStats {
        let state = self.shared.lock();
        StoreStats { blocks: state.index.len() as u64, bytes: state.index.bytes, ..state.stats }
    }

    /// The events of the files since this was last called, for the log.
    pub fn take_events(&self) -> Vec<StoreEvent> {
        self.shared.lock().take_events()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.queued.notify_all();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has nothing more to say.
            let _ = writer.join();
        }
    }
}

/// The block, if it waits to be written.
fn pending(state: &StoreState, id: &BlockId) -> Option<Arc<Block>> {
    state.pending.get(&digest(id)).filter(|block| block.id == *id).cloned()
}
