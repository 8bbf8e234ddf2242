//! Disks that fill up and fail.

use super::{SEGMENT, SMALL, StoreDir, block, files, holds, open, options, place, put};
use crate::disk::{Disk, SystemDisk};
use crate::event::StoreEvent;
use crate::state::{Put, StoreOptions};
use crate::store::Store;
use fastrand::Rng;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A disk that has so many bytes, writes as much as fits, and fails one operation of every `every`.
#[derive(Default)]
struct PoorDisk {
    left: AtomicU64,
    /// The size that it claims; `None` for the true one.
    claims: Option<u64>,
    /// Zero for never.
    every: AtomicU64,
    operations: AtomicU64,
}

impl PoorDisk {
    fn work(&self) -> io::Result<()> {
        let n = self.operations.fetch_add(1, Ordering::Relaxed);
        let every = self.every.load(Ordering::Relaxed);
        // Not the same operation of a record each time.
        let is_bad = every > 0 && Rng::with_seed(n).u64(..every) == 0;
        if is_bad { Err(io::Error::other("a bad sector")) } else { Ok(()) }
    }
}

impl Disk for Arc<PoorDisk> {
    fn create(&self, path: &Path) -> io::Result<File> {
        self.work()?;
        SystemDisk.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<File> {
        self.work()?;
        SystemDisk.open(path, write)
    }

    fn write(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.work()?;
        let end = offset + bytes.len() as u64;
        let more = end.saturating_sub(file.metadata()?.len());
        let left = self.left.load(Ordering::Relaxed);
        if more > left {
            SystemDisk.write(file, offset, &bytes[..bytes.len() / 2])?;
            return Err(ErrorKind::StorageFull.into());
        }
        self.left.store(left - more, Ordering::Relaxed);
        SystemDisk.write(file, offset, bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.work()?;
        SystemDisk.sync(file)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.work()?;
        let bytes = std::fs::metadata(path)?.len();
        SystemDisk.remove(path)?;
        self.left.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn free_space(&self, _: &Path) -> io::Result<u64> {
        self.work()?;
        Ok(self.claims.unwrap_or(self.left.load(Ordering::Relaxed)))
    }
}

fn poor(left: u64, claims: Option<u64>, every: u64) -> Arc<PoorDisk> {
    let (left, every) = (AtomicU64::new(left), AtomicU64::new(every));
    Arc::new(PoorDisk { left, claims, every, operations: AtomicU64::new(0) })
}

/// The disk says that it has space, and has not: as when others write to it at the same time.
#[test]
fn a_disk_that_is_suddenly_full_refuses_blocks_and_loses_none() {
    let StoreDir { dir, _base } = place();
    let disk = poor(40_000, Some(1 << 40), 0);
    let store = Store::open_on(Box::new(Arc::clone(&disk)), &dir, options(1 << 30)).unwrap();
    (0..10).for_each(|n| put(&store, block(n, SMALL)));
    let stats = store.stats();
    assert_eq!((stats.written, stats.refused, stats.blocks), (4, 6, 4));
    let events = store.take_events();
    assert_eq!(events.len(), 6);
    assert!(matches!(events[0], StoreEvent::NotWritten { error: ErrorKind::StorageFull, .. }), "{events:?}");
    // Nothing is left of what did not fit.
    assert_eq!(files(&dir).iter().map(|(_, bytes)| bytes).sum::<u64>(), 4096 + 4 * 8192);
    assert!((0..4).all(|n| holds(&store, &block(n, SMALL))));
    disk.left.store(1 << 30, Ordering::Relaxed);
    (4..10).for_each(|n| put(&store, block(n, SMALL)));
    drop(store);
    let store = open(&dir, 1 << 30);
    assert!((0..10).all(|n| holds(&store, &block(n, SMALL))));
    assert_eq!(store.take_events(), []);
}

#[test]
fn the_reserve_of_a_disk_is_left_alone() {
    let StoreDir { dir, _base } = place();
    let disk = poor(100_000, None, 0);
    let options = StoreOptions { reserve: 60_000, ..options(1 << 30) };
    let store = Store::open_on(Box::new(Arc::clone(&disk)), &dir, options).unwrap();
    (0..20).for_each(|n| put(&store, block(n, SMALL)));
    // Once the files may not grow, blocks give way to others.
    assert!((60_000..69_000).contains(&disk.left.load(Ordering::Relaxed)));
    let stats = store.stats();
    assert_eq!((stats.blocks, stats.evicted, stats.refused), (4, 16, 0));
    // For this one there would be no room if everything else went, so nothing goes.
    put(&store, block(100, 50_000));
    assert!((16..20).all(|n| holds(&store, &block(n, SMALL))));
    assert!(matches!(store.take_events()[..], [StoreEvent::NoRoom { .. }]));
    assert_eq!(store.stats().refused, 1);
    put(&store, block(101, 50_000));
    assert_eq!(store.take_events(), [], "it is said once");
    put(&store, block(102, SMALL));
    assert!(holds(&store, &block(102, SMALL)));
}

/// Any operation may fail at any time. Files keep to the limit, and what is read is what was put. When the
/// disk is well again, so is the store.
#[test]
fn a_disk_that_fails_now_and_then_costs_blocks_only() {
    let mut hits = 0;
    for seed in 0..40 {
        let StoreDir { dir, _base } = place();
        let disk = poor(1 << 30, Some(1 << 30), 3 + seed % 9);
        let limit = 200_000;
        let store = loop {
            match Store::open_on(Box::new(Arc::clone(&disk)), &dir, options(limit)) {
                Ok(store) => break store,
                Err(error) => assert!(error.to_string().contains("bad sector")),
            }
        };
        let mut rng = Rng::with_seed(seed);
        for _ in 0..100 {
            let n = rng.u64(..60);
            let block = block(n, [SMALL, 20, 9000][(n % 3) as usize]);
            if rng.bool() {
                put(&store, block);
            } else {
                hits += usize::from(holds(&store, &block));
            }
            if rng.u8(..10) == 0 {
                let _ = store.flush();
            }
            let bytes = files(&dir).iter().map(|(_, bytes)| bytes).sum::<u64>();
            let counted = store.stats().bytes;
            assert!(bytes <= counted && counted <= limit, "seed {seed}: {bytes} bytes, counted {counted}");
        }
        assert!(store.stats().refused > 0);
        disk.every.store(0, Ordering::Relaxed);
        store.flush().unwrap();
        drop(store);
        let store = open(&dir, limit);
        (100..105).for_each(|n| put(&store, block(n, SMALL)));
        assert!((100..105).all(|n| holds(&store, &block(n, SMALL))), "seed {seed}");
    }
    assert!(hits > 200, "{hits} hits");
}

/// Errors of reading prove nothing about a file.
#[test]
fn files_that_cannot_be_read_are_kept() {
    let StoreDir { dir, _base } = place();
    let disk = poor(1 << 30, None, 0);
    let store = Store::open_on(Box::new(Arc::clone(&disk)), &dir, options(1 << 20)).unwrap();
    (0..9).for_each(|n| put(&store, block(n, SMALL)));
    disk.every.store(1, Ordering::Relaxed);
    assert!((0..9).all(|n| !holds(&store, &block(n, SMALL))));
    let events = store.take_events();
    assert!(events.len() == 9 && events.iter().all(|event| matches!(event, StoreEvent::Unreadable { .. })));
    assert!(events[0].to_string().ends_with("cannot be read: other error"), "{}", events[0]);
    disk.every.store(0, Ordering::Relaxed);
    assert!((0..9).all(|n| holds(&store, &block(n, SMALL))));
    drop(store);
    disk.every.store(1, Ordering::Relaxed);
    let store = Store::open_on(Box::new(Arc::clone(&disk)), &dir, options(1 << 20)).unwrap();
    assert!(matches!(
        store.take_events()[..],
        [StoreEvent::Unreadable { .. }, StoreEvent::Unreadable { .. }]
    ));
    // A file that cannot be read counts all the same.
    let bytes = files(&dir).iter().map(|(_, bytes)| bytes).sum::<u64>();
    assert_eq!((store.stats().blocks, store.stats().bytes), (0, bytes));
    drop(store);
    let store = open(&dir, 1 << 20);
    assert!((0..9).all(|n| holds(&store, &block(n, SMALL))));
}

#[test]
fn a_flush_that_fails_is_tried_again() {
    let StoreDir { dir, _base } = place();
    let disk = poor(1 << 30, None, 0);
    let store = Store::open_on(Box::new(Arc::clone(&disk)), &dir, options(1 << 30)).unwrap();
    put(&store, block(1, SMALL));
    disk.every.store(1, Ordering::Relaxed);
    assert!(store.flush().is_err());
    assert!(store.flush().is_err());
    disk.every.store(0, Ordering::Relaxed);
    let before = disk.operations.load(Ordering::Relaxed);
    store.flush().unwrap();
    assert_eq!(
        disk.operations.load(Ordering::Relaxed) - before,
        3,
        "opening and writing the segment and the directory"
    );
    store.flush().unwrap();
    assert_eq!(disk.operations.load(Ordering::Relaxed) - before, 3, "nothing is left to do");
}

/// The system itself refuses writes of a process whose files may have only so many bytes.
#[test]
fn the_systems_limit_of_files_refuses_blocks_and_loses_none() {
    const CHILD: &str = "KERNMILL_KV_STORE_FSIZE";
    let limit = SEGMENT / 2;
    if let Ok(dir) = std::env::var(CHILD) {
        let most = libc::rlimit { rlim_cur: limit, rlim_max: limit };
        // SAFETY: the limit is a value that the call only reads, and the signal's new handler is a constant.
        let refused = unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const most)
        };
        assert_eq!(refused, 0);
        let store = open(Path::new(&dir), 1 << 30);
        (0..10).for_each(|n| put(&store, block(n, SMALL)));
        let fit = (limit - 4096) / 8192;
        assert!((0..fit).all(|n| holds(&store, &block(n, SMALL))));
        assert_eq!((store.stats().written, store.stats().refused), (fit, 10 - fit));
        let error = ErrorKind::FileTooLarge;
        assert!(
            matches!(&store.take_events()[0], StoreEvent::NotWritten { error: found, .. } if *found == error)
        );
        return;
    }
    let StoreDir { dir, _base } = place();
    let test = "tests::faults::the_systems_limit_of_files_refuses_blocks_and_loses_none";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test]).env(CHILD, &dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let store = open(&dir, 1 << 30);
    assert_eq!(store.stats().blocks, (limit - 4096) / 8192);
    assert_eq!(store.take_events(), []);
}

#[test]
fn a_directory_that_is_removed_costs_its_blocks() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 1 << 20);
    put(&store, block(1, SMALL));
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(!holds(&store, &block(1, SMALL)));
    assert!(matches!(store.take_events()[..], [StoreEvent::Missing { .. }]));
    assert_eq!(store.put(block(2, SMALL)), Put::Queued);
    drop(store);
    assert!(!dir.exists());
}
