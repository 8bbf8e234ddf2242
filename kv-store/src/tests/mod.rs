//! Tests of the whole store, on disks that work, fill up, fail, and stop the process.

mod damage;
mod directory;
mod faults;
mod format;
mod kill;
mod model;
mod processes;
mod queue;
mod session;
mod size;

use crate::block::{Block, BlockId, BlockTokens, LayerPart, PayloadLayout, StoreKey};
use crate::format::PAGE_BYTES;
use crate::state::StoreOptions;
use crate::store::Store;
use fastrand::Rng;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Bytes of a payload that takes a slot of two pages.
const SMALL: usize = 4000;
/// Slots of two pages in a segment of 64 KiB.
const SLOTS: u64 = 7;
/// Bytes of a segment full of such slots.
const SEGMENT: u64 = PAGE_BYTES + SLOTS * 2 * PAGE_BYTES;

/// A directory for a store, and what it is in.
struct StoreDir {
    dir: PathBuf,
    _base: TempDir,
}

fn place() -> StoreDir {
    let base = TempDir::new().unwrap();
    StoreDir { dir: base.path().join("store"), _base: base }
}

/// The id of block `n`.
fn id(n: u64) -> BlockId {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&n.to_le_bytes());
    BlockId { layout: PayloadLayout([7; 32]), key: StoreKey(key), part: LayerPart::ALL[(n % 2) as usize] }
}

/// Block `n` with a payload of so many bytes, which follow from both.
fn block(n: u64, bytes: usize) -> Block {
    let mut rng = Rng::with_seed(n ^ (bytes as u64) << 32);
    let mut payload = vec![0; bytes];
    rng.fill(&mut payload);
    let tokens: Vec<u32> = (0..rng.usize(1..=16)).map(|_| rng.u32(..)).collect();
    let parent = if n == 0 { StoreKey([0; 32]) } else { id(n - 1).key };
    Block { id: id(n), parent, tokens: BlockTokens::new(&tokens).unwrap(), seconds: 0.01, payload }
}

/// Small segments, and no more bytes than `limit`.
fn options(limit: u64) -> StoreOptions {
    StoreOptions { limit, reserve: 0, segment_bytes: 64 << 10, ..StoreOptions::default() }
}

fn open(dir: &Path, limit: u64) -> Store {
    Store::open(dir, options(limit)).unwrap()
}

/// Puts a block and waits until it is written, or has been refused.
fn put(store: &Store, block: Block) {
    assert!(store.put(block).is_kept());
    assert!(store.drain(Duration::from_secs(600)));
}

/// Whether the store has a block; what it gives is what was put.
fn holds(store: &Store, block: &Block) -> bool {
    let mut payload = vec![0xaa; block.payload.len()];
    let Some(found) = store.read(&block.id, &mut payload) else { return false };
    assert!(payload == block.payload, "other bytes");
    assert_eq!((found.parent, found.tokens, found.seconds), (block.parent, block.tokens, block.seconds));
    true
}

/// The files of a directory with their sizes, by name.
fn files(dir: &Path) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries.map(|entry| (entry.path(), entry.metadata().unwrap().len())).collect();
    files.sort();
    files
}

/// The segment files of a directory.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "segment");
    files(dir).into_iter().map(|(path, _)| path).filter(is_segment).collect()
}
