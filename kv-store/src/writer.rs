//! The thread that writes blocks.

use crate::block::Block;
use crate::encode::{record_header, segment_header};
use crate::event::StoreEvent;
use crate::format::{PAGE, PAGE_BYTES, slot_bytes};
use crate::index::digest;
use crate::order::Rank;
use crate::place::{PlacementPlan, SlotOrigin, TakenSlot};
use crate::state::{StoreShared, StoreState};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// Writes what is queued, until it is told to end and nothing is queued any more.
pub(crate) fn run(shared: &StoreShared) {
    while let Some(block) = next(shared) {
        write(shared, &block);
        let mut state = shared.lock();
        state.pending.remove(&digest(&block.id));
        state.stats.queued_bytes -= block.payload.len() as u64;
        drop(state);
        shared.written.notify_all();
    }
}

/// The next block, which stays among those that are pending.
fn next(shared: &StoreShared) -> Option<Arc<Block>> {
    let mut state = shared.lock();
    loop {
        if let Some(block) = state.queue.pop_front() {
            return Some(block);
        }
        if state.is_ending {
            return None;
        }
        state = shared.queued.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Writes a block, or notes why it was not.
fn write(shared: &StoreShared, block: &Block) {
    let bytes = slot_bytes(block.payload.len());
    let room = match shared.room() {
        Ok(room) => room,
        Err(error) => return refuse(&mut shared.lock(), shared.directory.path().to_owned(), &error),
    };
    let mut state = shared.lock();
    let plan = state.index.place(bytes, room);
    state.stats.evicted += plan.evicted;
    let rank = state.index.rank_now(block.seconds, bytes);
    drop(state);
    let is_removed = remove_files(shared, &plan);
    let mut state = shared.lock();
    let Some(target) = plan.target else {
        state.stats.refused += 1;
        if !std::mem::replace(&mut state.is_full, true) {
            let dir = shared.directory.path().to_owned();
            state.note(StoreEvent::NoRoom { dir, bytes, growth: room.growth });
        }
        return;
    };
    // The rest of a file that could not be removed still counts.
    if !is_removed {
        state.stats.refused += 1;
        return state.index.give_back(&target);
    }
    drop(state);
    let outcome = write_record(shared, &target, block, rank);
    let mut state = shared.lock();
    match outcome {
        Ok(()) => {
            let slot = target.slot;
            state.index.insert(slot, &block.id, block.payload.len(), block.seconds, rank);
            state.dirty.insert(slot.segment);
            state.is_full = false;
            state.stats.written += 1;
        }
        Err(WriteFailure { error, left }) => {
            match error.kind() {
                io::ErrorKind::NotFound => drop(state.index.remove_segment(target.slot.segment)),
                // A slot that cannot be written for another reason than space is not tried again.
                kind if target.origin == SlotOrigin::Reused && !is_full(kind) => {}
                _ => state.index.give_back(&target),
            }
            state.index.bytes = state.index.bytes.saturating_add(left);
            refuse(&mut state, shared.directory.segment_path(target.slot.segment), &error);
        }
    }
}

/// Why a record was not written.
struct WriteFailure {
    error: io::Error,
    /// Bytes that stay on the disk even so, and belong to no slot.
    left: u64,
}

impl From<io::Error> for WriteFailure {
    fn from(error: io::Error) -> WriteFailure {
        WriteFailure { error, left: 0 }
    }
}

/// Counts and notes a block that could not be written.
fn refuse(state: &mut StoreState, file: PathBuf, error: &io::Error) {
    state.stats.refused += 1;
    state.note(StoreEvent::NotWritten { file, error: error.kind() });
}

/// Whether an error says that there is no space for more bytes.
fn is_full(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    [StorageFull, QuotaExceeded, FileTooLarge].contains(&kind)
}

/// Removes the files of segments that the index has forgotten; whether all are gone.
pub(crate) fn remove_files(shared: &StoreShared, plan: &PlacementPlan) -> bool {
    let mut is_removed = true;
    for (number, bytes) in &plan.removed {
        let file = shared.directory.segment_path(*number);
        let mut state = match shared.disk.remove(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let mut state = shared.lock();
                state.index.bytes = state.index.bytes.saturating_add(*bytes);
                state.note(StoreEvent::NotWritten { file, error: error.kind() });
                is_removed = false;
                state
            }
            Err(_) | Ok(()) => shared.lock(),
        };
        state.dirty.remove(number);
    }
    is_removed
}

/// Writes a record into its slot. Another one that lay there is made invalid first: a kill in between leaves
/// a free slot. After an error, what was added to a file is taken away again.
fn write_record(
    shared: &StoreShared,
    target: &TakenSlot,
    block: &Block,
    rank: Rank,
) -> Result<(), WriteFailure> {
    let (disk, directory) = (&shared.disk, &shared.directory);
    let path = directory.segment_path(target.slot.segment);
    let offset = target.segment.offset(target.slot.slot);
    let file = match target.origin {
        SlotOrigin::NewFile => disk.create(&path)?,
        SlotOrigin::Reused | SlotOrigin::Appended => disk.open(&path, true)?,
    };
    let steps = || {
        match target.origin {
            SlotOrigin::NewFile => {
                let header = segment_header(target.segment.slot_bytes, target.segment.slots);
                disk.write(&file, 0, &header)?;
            }
            SlotOrigin::Reused => disk.write(&file, offset, &[0; PAGE])?,
            SlotOrigin::Appended => {}
        }
        disk.write(&file, offset + PAGE_BYTES, &block.payload)?;
        disk.write(&file, offset, &record_header(block, rank.priority(), rank.time()))
    };
    let Err(error) = steps() else { return Ok(()) };
    let is_undone = match target.origin {
        SlotOrigin::NewFile => disk.remove(&path).is_ok(),
        SlotOrigin::Appended => file.set_len(offset).is_ok(),
        SlotOrigin::Reused => true,
    };
    let left = match target.origin {
        SlotOrigin::NewFile => PAGE_BYTES + target.segment.slot_bytes,
        SlotOrigin::Appended | SlotOrigin::Reused => target.segment.slot_bytes,
    };
    Err(WriteFailure { error, left: if is_undone { 0 } else { left } })
}
