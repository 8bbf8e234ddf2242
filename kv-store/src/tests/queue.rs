//! The queue of blocks that wait to be written.

use super::{SMALL, StoreDir, block, holds, options, place};
use crate::block::{BlockError, BlockTokens};
use crate::disk::{Disk, SystemDisk};
use crate::format::MAX_PAYLOAD_BYTES;
use crate::state::{Put, StoreOptions};
use crate::store::Store;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A disk whose writes wait until the gate is open.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn unlock(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Disk for Arc<Gate> {
    fn create(&self, path: &Path) -> io::Result<File> {
        SystemDisk.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<File> {
        SystemDisk.open(path, write)
    }

    fn write(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let closed = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(closed, |is_open| !*is_open).unwrap());
        SystemDisk.write(file, offset, bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        SystemDisk.sync(file)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        SystemDisk.free_space(dir)
    }
}

fn gated(dir: &Path) -> (Store, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let options = StoreOptions { queue_bytes: 3 * SMALL as u64, ..options(1 << 30) };
    (Store::open_on(Box::new(Arc::clone(&gate)), dir, options).unwrap(), gate)
}

#[test]
fn blocks_are_found_while_they_wait_and_dropped_when_too_many_do() {
    let StoreDir { dir, _base } = place();
    let (store, gate) = gated(&dir);
    for n in 0..3 {
        assert_eq!(store.put(block(n, SMALL)), Put::Queued);
    }
    assert_eq!(store.put(block(3, SMALL)), Put::Busy);
    assert_eq!(store.put(block(1, SMALL)), Put::Known);
    assert!((0..3).all(|n| holds(&store, &block(n, SMALL))));
    assert!(!holds(&store, &block(3, SMALL)));
    assert_eq!(store.payload_bytes(&block(2, SMALL).id), Some(SMALL));
    let stats = store.stats();
    assert_eq!((stats.blocks, stats.dropped, stats.queued_bytes), (0, 1, 3 * SMALL as u64));
    assert!(!store.drain(Duration::from_millis(1)));
    gate.unlock();
    assert!(store.drain(Duration::MAX));
    let stats = store.stats();
    assert_eq!((stats.blocks, stats.written, stats.queued_bytes), (3, 3, 0));
    assert_eq!(store.put(block(3, SMALL)), Put::Queued);
}

#[test]
fn a_put_that_waits_is_never_dropped() {
    let StoreDir { dir, _base } = place();
    let (store, gate) = gated(&dir);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|n| assert_eq!(store.put_waiting(block(n, SMALL)), Put::Queued)));
        while store.stats().queued_bytes < 3 * SMALL as u64 {
            std::thread::yield_now();
        }
        assert_eq!(store.stats().written, 0);
        gate.unlock();
    });
    assert!(store.drain(Duration::MAX));
    assert!((0..50).all(|n| holds(&store, &block(n, SMALL))));
    assert_eq!(store.stats().dropped, 0);
}

#[test]
fn what_is_queued_is_written_before_a_store_ends() {
    let StoreDir { dir, _base } = place();
    let (store, gate) = gated(&dir);
    for n in 0..3 {
        assert_eq!(store.put(block(n, SMALL)), Put::Queued);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| drop(store));
        gate.unlock();
    });
    let store = super::open(&dir, 1 << 30);
    assert!((0..3).all(|n| holds(&store, &block(n, SMALL))));
}

#[test]
fn blocks_that_no_store_takes_are_refused() {
    let StoreDir { dir, _base } = place();
    let store = super::open(&dir, 1 << 30);
    for (bytes, says) in
        [(0, "a payload of 0 bytes, expected 1 to 67108864"), (MAX_PAYLOAD_BYTES + 1, "67108865")]
    {
        let Put::Refused(error) = store.put(block(1, bytes)) else { panic!("refused") };
        assert_eq!(error, BlockError::Payload { found: bytes });
        assert!(error.to_string().contains(says), "{error}");
    }
    for ids in [&[0; 17][..], &[]] {
        let error = BlockTokens::new(ids).unwrap_err();
        assert_eq!(error, BlockError::Tokens { found: ids.len() });
    }
    // The largest one, which has a separate segment.
    assert_eq!(store.put(block(1, MAX_PAYLOAD_BYTES)), Put::Queued);
    store.flush().unwrap();
    assert!(holds(&store, &block(1, MAX_PAYLOAD_BYTES)));
    // A buffer of another length is a miss, and nothing is wrong with the block.
    assert_eq!(store.read(&block(1, 1).id, &mut [0; 5]), None);
    assert_eq!(store.take_events(), []);
}
