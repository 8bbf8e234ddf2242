//! Writers that are killed in the middle of a write.

use super::{SEGMENT, SLOTS, SMALL, StoreDir, block, holds, open, options, place, put};
use crate::disk::{Disk, SystemDisk};
use crate::event::StoreEvent;
use crate::store::Store;
use fastrand::Rng;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kills that a test does.
const KILLS: u64 = 200;
/// How the child is told what to do: a directory, the first block's number, bytes to its end, the limit.
const CHILD: &str = "KERNMILL_KV_STORE_KILL";

/// A disk that kills the process after so many bytes, in the middle of a write.
struct DeadlyDisk {
    left: AtomicU64,
}

impl Disk for DeadlyDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        // Making a file counts as one byte, so that a kill falls between it and its header too.
        let file = SystemDisk.create(path)?;
        self.spend(1);
        Ok(file)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<File> {
        SystemDisk.open(path, write)
    }

    fn write(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        if left < bytes.len() as u64 {
            SystemDisk.write(file, offset, &bytes[..left as usize])?;
        } else {
            SystemDisk.write(file, offset, bytes)?;
        }
        self.spend(bytes.len() as u64);
        Ok(())
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        SystemDisk.sync(file)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)?;
        self.spend(1);
        Ok(())
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        SystemDisk.free_space(dir)
    }
}

impl DeadlyDisk {
    fn spend(&self, bytes: u64) {
        let left = self.left.load(Ordering::Relaxed);
        if left < bytes {
            // SAFETY: no memory is involved; the process ends.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        self.left.store(left - bytes, Ordering::Relaxed);
    }
}

/// Writes blocks until it is killed, and says which are written.
fn child(task: &str) {
    let (dir, numbers) = task.rsplit_once('|').unwrap();
    let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    let disk = DeadlyDisk { left: AtomicU64::new(numbers[1]) };
    let store = Store::open_on(Box::new(disk), Path::new(dir), options(numbers[2])).unwrap();
    for n in numbers[0].. {
        put(&store, block(n, SMALL));
        println!("\nwritten {n}");
    }
}

/// Kills writers over one directory, each `KILLS` times and after a random number of bytes. Of the blocks
/// that were written before a kill, the last `kept` are there after it.
fn kill_writers(test: &str, limit: u64, kept: u64) {
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task);
    }
    let StoreDir { dir, _base } = place();
    let (mut rng, mut next, mut between, mut torn) = (Rng::with_seed(limit), 0, 0, 0);
    for kill in 0..KILLS {
        // A record takes 8,096 bytes, or a page more where another one is made invalid first.
        let bytes = rng.u64(..120_000);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, format!("{}|{next} {bytes} {limit}", dir.display()))
            .output()
            .unwrap();
        assert!(!output.status.success(), "it was killed");
        let text = String::from_utf8(output.stdout).unwrap();
        let written = text.lines().filter_map(|line| line.strip_prefix("written ")?.parse().ok());
        let end = written.max().map_or(next, |last: u64| last + 1);
        let store = open(&dir, limit);
        for n in 0..end {
            let is_there = holds(&store, &block(n, SMALL));
            assert!(is_there || n + kept < end, "kill {kill} after {bytes} bytes: block {n} is lost");
        }
        // The one at work may be there or not, but nothing in between.
        between += u64::from(holds(&store, &block(end, SMALL)));
        assert!(!holds(&store, &block(end + 1, SMALL)));
        assert_eq!(store.stats().damaged, 0, "kill {kill}");
        // Half a header is damaged, which costs its slot's record: the one at work.
        let events = store.take_events();
        assert!(matches!(events[..], [] | [StoreEvent::Damaged { .. }]), "kill {kill}: {events:?}");
        torn += events.len();
        next = end;
    }
    println!("{next} blocks, {torn} torn headers, {between} of them written and not said to be");
    assert!(next > 4 * KILLS, "only {next} blocks");
}

#[test]
fn a_kill_loses_nothing_that_was_written() {
    kill_writers("tests::kill::a_kill_loses_nothing_that_was_written", 1 << 30, 1 << 30);
}

/// In a store that is full, every record is written over another one.
#[test]
fn a_kill_in_a_full_store_loses_nothing_that_was_written() {
    let (limit, kept) = (3 * SEGMENT, 2 * SLOTS);
    kill_writers("tests::kill::a_kill_in_a_full_store_loses_nothing_that_was_written", limit, kept);
}
