//! Finding out what lies in a store's directory.

use crate::decode::{Damage, RecordHeader};
use crate::directory::Directory;
use crate::disk::Disk;
use crate::event::StoreEvent;
use crate::index::StoreIndex;
use crate::segment::{Segment, SegmentError};
use kernmill_os::threads;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Threads that read headers: they wait for the disk more than they compute.
const THREADS: usize = 4;

/// A segment as it was found.
struct Scanned {
    segment: Segment,
    slots: Vec<Result<Option<RecordHeader>, Damage>>,
}

/// Why a file does not serve.
enum FileRefusal {
    /// The file went away meanwhile.
    Gone,
    /// The file is not a segment of this version.
    Foreign(String),
    /// The file is a segment that is good for nothing.
    Damaged(Damage),
    /// The file was begun and never finished.
    Unfinished,
    /// The file cannot be read; it has so many bytes.
    Unreadable(io::Error, u64),
}

/// Reads the headers of all records. A record that cannot be used is an event. Files that are proven to be
/// damaged segments are removed, if the store may write.
pub(crate) fn load(directory: &Directory, disk: &dyn Disk) -> io::Result<(StoreIndex, Vec<StoreEvent>)> {
    let (mut index, mut events) = (StoreIndex::default(), Vec::new());
    for (number, outcome) in scan_all(directory, disk, &directory.segments()?) {
        index.next = index.next.max(number + 1);
        let file = directory.segment_path(number);
        let remove = match outcome {
            Ok(Scanned { segment, slots }) => {
                let damaged = |(slot, damage): (usize, &Result<_, Damage>)| {
                    let what = damage.as_ref().err()?.clone();
                    Some(StoreEvent::Damaged {
                        file: file.clone(),
                        offset: segment.offset(slot as u32),
                        what,
                    })
                };
                // For others it may be a write that is not finished.
                if directory.is_writable() {
                    events.extend(slots.iter().enumerate().filter_map(damaged));
                }
                let headers: Vec<Option<RecordHeader>> =
                    slots.into_iter().map(|slot| slot.unwrap_or_default()).collect();
                index.load(number, segment, &headers);
                false
            }
            Err(FileRefusal::Gone) => false,
            Err(FileRefusal::Foreign(what)) => {
                events.push(StoreEvent::Foreign { file: file.clone(), what });
                false
            }
            Err(FileRefusal::Unreadable(error, bytes)) => {
                index.bytes = index.bytes.saturating_add(bytes);
                events.push(StoreEvent::Unreadable { file: file.clone(), error: error.kind() });
                false
            }
            Err(FileRefusal::Unfinished) => directory.is_writable(),
            Err(FileRefusal::Damaged(what)) => {
                if directory.is_writable() {
                    events.push(StoreEvent::Removed { file: file.clone(), what });
                }
                directory.is_writable()
            }
        };
        if remove && let Err(error) = disk.remove(&file) {
            events.push(StoreEvent::NotWritten { file, error: error.kind() });
        }
    }
    index.order.restore_floor();
    Ok((index, events))
}

/// The contents of each of these segments, read on several threads.
fn scan_all(
    directory: &Directory,
    disk: &dyn Disk,
    numbers: &[u64],
) -> BTreeMap<u64, Result<Scanned, FileRefusal>> {
    let (next, scanned) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    threads::share(THREADS.min(numbers.len()), || {
        while let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = scan(disk, &directory.segment_path(*number));
            scanned.lock().unwrap_or_else(PoisonError::into_inner).insert(*number, outcome);
        }
    });
    scanned.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn scan(disk: &dyn Disk, path: &Path) -> Result<Scanned, FileRefusal> {
    let bytes = std::fs::symlink_metadata(path).map_or(0, |found| found.len());
    let file = disk.open(path, false).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileRefusal::Gone,
        io::ErrorKind::InvalidInput => FileRefusal::Foreign(error.to_string()),
        _ => FileRefusal::Unreadable(error, bytes),
    })?;
    let segment = Segment::open(&file).map_err(|error| match error {
        SegmentError::Read(error) => FileRefusal::Unreadable(error, bytes),
        SegmentError::Unfinished => FileRefusal::Unfinished,
        SegmentError::Damaged(what @ (Damage::Magic | Damage::Version { .. } | Damage::CutOff)) => {
            FileRefusal::Foreign(what.to_string())
        }
        SegmentError::Damaged(what) => FileRefusal::Damaged(what),
    })?;
    let slots = segment.scan(&file).map_err(|error| FileRefusal::Unreadable(error, bytes))?;
    Ok(Scanned { segment, slots })
}
