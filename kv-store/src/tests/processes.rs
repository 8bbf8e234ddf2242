//! Two processes, or two stores of one, on a directory.

use super::{SMALL, StoreDir, block, holds, open, options, place, put};
use crate::disk::{Disk, SystemDisk};
use crate::event::StoreEvent;
use crate::state::{Put, StoreOptions};
use crate::store::Store;
use fastrand::Rng;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes of a store in which blocks give way all the time.
const LIMIT: u64 = 300_000;
/// How the child is told its directory.
const CHILD: &str = "KERNMILL_KV_STORE_WRITER";

#[test]
fn the_second_store_reads_and_the_next_writes_again() {
    let StoreDir { dir, _base } = place();
    let first = open(&dir, 1 << 20);
    (0..5).for_each(|n| put(&first, block(n, SMALL)));
    let second = open(&dir, 1 << 20);
    assert!(!first.is_read_only() && second.is_read_only());
    assert_eq!(second.take_events(), [StoreEvent::InUse { dir: dir.clone() }]);
    assert!((0..5).all(|n| holds(&second, &block(n, SMALL))));
    assert_eq!(second.put(block(9, SMALL)), Put::ReadOnly);
    assert_eq!(second.put_waiting(block(9, SMALL)), Put::ReadOnly);
    second.flush().unwrap();
    put(&first, block(6, SMALL));
    assert!(holds(&first, &block(6, SMALL)) && !holds(&second, &block(6, SMALL)));
    drop(first);
    assert!(second.is_read_only());
    let third = open(&dir, 1 << 20);
    put(&third, block(7, SMALL));
    assert!([0, 6, 7].iter().all(|n| holds(&third, &block(*n, SMALL))));
}

/// A process that is killed when the test ends.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A process writes, and blocks give way to others, while this one reads what it knows of.
#[test]
fn a_reader_never_sees_what_a_writer_is_at() {
    if let Ok(dir) = std::env::var(CHILD) {
        let store = open(Path::new(&dir), LIMIT);
        assert!(!store.is_read_only());
        println!("\nready");
        let mut rng = Rng::with_seed(1);
        // Until it is killed, or forgotten.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(600) {
            let n = rng.u64(..200);
            put(&store, block(n, if n.is_multiple_of(2) { SMALL } else { 9000 }));
        }
        return;
    }
    let StoreDir { dir, _base } = place();
    let writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::processes::a_reader_never_sees_what_a_writer_is_at", "--nocapture"])
        .env(CHILD, &dir)
        .stdout(Stdio::piped())
        .spawn();
    let mut writer = Writer(writer.unwrap());
    let lines = BufReader::new(writer.0.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    let (start, mut hits, mut misses) = (Instant::now(), 0, 0);
    while hits < 2000 || misses < 500 {
        let store = open(&dir, LIMIT);
        assert!(store.is_read_only());
        for n in 0..200 {
            let block = block(n, if n % 2 == 0 { SMALL } else { 9000 });
            let is_known = store.payload_bytes(&block.id).is_some();
            match holds(&store, &block) {
                true => hits += 1,
                // It was known, and has given way since.
                false => misses += u32::from(is_known),
            }
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{hits} hits, {misses} misses");
    }
    drop(writer);
    println!("{hits} hits, {misses} blocks went away between being known and being read");
    let store = open(&dir, LIMIT);
    assert!(!store.is_read_only());
    assert_eq!(store.take_events(), []);
}

/// A disk that does something before the next file is opened for reading.
#[derive(Default)]
struct HookedDisk {
    hook: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Disk for Arc<HookedDisk> {
    fn create(&self, path: &Path) -> io::Result<File> {
        SystemDisk.create(path)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<File> {
        let hook = if write { None } else { self.hook.lock().unwrap().take() };
        if let Some(hook) = hook {
            hook();
        }
        SystemDisk.open(path, write)
    }

    fn write(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
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

/// Between being found and being read, a block gives way to another one, and is stored again elsewhere.
#[test]
fn a_block_that_moves_while_it_is_read_is_no_damage() {
    let StoreDir { dir, _base } = place();
    let disk = Arc::new(HookedDisk::default());
    let store = Store::open_on(Box::new(Arc::clone(&disk)), &dir, options(70_000)).unwrap();
    let store = Arc::new(store);
    (0..7).for_each(|n| put(&store, block(n, SMALL)));
    let other = Arc::clone(&store);
    let hook = move || [10, 11, 0].into_iter().for_each(|n| put(&other, block(n, SMALL)));
    *disk.hook.lock().unwrap() = Some(Box::new(hook));
    assert!(!holds(&store, &block(0, SMALL)));
    assert_eq!(store.take_events(), []);
    assert!(holds(&store, &block(0, SMALL)) && holds(&store, &block(10, SMALL)));
    assert_eq!((store.stats().damaged, store.stats().evicted), (0, 3));
}

/// Threads read while blocks give way: no read is taken for damage.
#[test]
fn reads_and_writes_at_once_are_no_damage() {
    let StoreDir { dir, _base } = place();
    // A short queue, so that most reads are of files.
    let store = Store::open(&dir, StoreOptions { queue_bytes: 20_000, ..options(LIMIT) }).unwrap();
    let blocks: Vec<_> = (0..120).map(|n| block(n, if n % 2 == 0 { SMALL } else { 9000 })).collect();
    let hits = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (store, blocks, hits) = (&store, &blocks, &hits);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(seed);
                for _ in 0..4000 {
                    let block = rng.choice(blocks).unwrap();
                    if holds(store, block) {
                        hits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    } else {
                        assert!(store.put_waiting(block.clone()).is_kept());
                    }
                }
            });
        }
    });
    assert!(hits.into_inner() > 1000);
    let stats = store.stats();
    assert!(stats.evicted > 1000, "{stats:?}");
    assert_eq!((stats.damaged, stats.refused), (0, 0));
    assert_eq!(store.take_events(), []);
}
