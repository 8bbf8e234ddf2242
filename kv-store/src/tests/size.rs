//! The limit of a store, and what it holds within it.

use super::{SMALL, StoreDir, block, files, holds, open, place, put};
use crate::block::Block;
use crate::store::Store;
use fastrand::Rng;
use std::path::Path;

/// A number below `n`. Number `i` comes `1 / (i + 1)` times as often as 0.
fn zipf(n: u64, rng: &mut Rng) -> u64 {
    let total: f64 = (1..=n).map(|i| 1.0 / i as f64).sum();
    let mut rest = rng.f64() * total;
    let found = (0..n).find(|i| {
        rest -= 1.0 / (i + 1) as f64;
        rest < 0.0
    });
    found.unwrap_or(n - 1)
}

fn file_bytes(dir: &Path) -> u64 {
    files(dir).iter().map(|(_, bytes)| bytes).sum()
}

/// Looks a block up, and puts it if it is not there; whether it was.
fn look_up(store: &Store, block: Block) -> bool {
    let is_there = holds(store, &block);
    if !is_there {
        put(store, block);
    }
    is_there
}

#[test]
fn a_zipf_load_keeps_to_the_limit_and_hits_what_is_frequent() {
    let StoreDir { dir, _base } = place();
    // A fifth of the blocks.
    let limit = 900_000;
    let mut store = open(&dir, limit);
    let mut rng = Rng::with_seed(1);
    let (mut hits, mut largest) = (0, 0);
    for step in 0..6000 {
        hits += u32::from(look_up(&store, block(zipf(500, &mut rng), SMALL)));
        if step % 10 == 0 {
            let bytes = file_bytes(&dir);
            assert!(bytes <= limit && store.stats().bytes <= limit, "{bytes} bytes");
            largest = bytes.max(largest);
        }
        if step % 2000 == 1999 {
            drop(store);
            store = open(&dir, limit);
        }
    }
    println!("{hits} hits of 6,000, at most {largest} bytes of {limit}");
    // The 100 most frequent of 500 are asked for in 76 % of the cases.
    assert!(hits > 3600, "{hits} hits");
    assert!(largest > limit * 9 / 10, "{largest} bytes");
}

#[test]
fn repeated_prefixes_hit() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 2 << 20);
    let mut rng = Rng::with_seed(2);
    // Chats over shared beginnings: a turn reads its whole history and adds a block. Every 12 turns a chat is
    // begun anew.
    let mut chats: Vec<Vec<u64>> = Vec::new();
    let mut fresh = 1000;
    let (mut hits, mut asked) = (0, 0);
    for turn in 0..400 {
        let chat = turn % 8;
        if chats.len() <= chat {
            chats.push(Vec::new());
        }
        if turn / 8 % 12 == 0 {
            let beginning = rng.u64(..3) * 20;
            chats[chat] = (beginning..beginning + 20).collect();
        }
        fresh += 1;
        chats[chat].push(fresh);
        for n in &chats[chat] {
            asked += 1;
            hits += u32::from(look_up(&store, block(*n, SMALL)));
        }
    }
    let rate = f64::from(hits) / f64::from(asked);
    println!("{hits} of {asked} blocks were there: {rate:.3}");
    assert!(rate > 0.8, "{rate}");
    assert!(file_bytes(&dir) <= 2 << 20);
}

#[test]
fn what_is_dear_stays_longer() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 400_000);
    let mut rng = Rng::with_seed(3);
    let (mut dear, mut cheap) = (0, 0);
    for _ in 0..3000 {
        let n = rng.u64(..100);
        let seconds = if n < 50 { 0.5 } else { 0.1 };
        let hit = u32::from(look_up(&store, Block { seconds, ..block(n, SMALL) }));
        if n < 50 { dear += hit } else { cheap += hit }
    }
    println!("{dear} hits of dear blocks, {cheap} of cheap ones");
    assert!(dear > 2 * cheap && cheap > 100, "{dear} and {cheap}");
}

/// Another model has blocks of another size: those of the one before give way, segment by segment.
#[test]
fn blocks_of_another_size_get_the_room() {
    let StoreDir { dir, _base } = place();
    let limit = 1_000_000;
    let store = open(&dir, limit);
    for (round, bytes) in [SMALL, 20_000, 1000, 60_000].into_iter().enumerate() {
        let first = round as u64 * 1000;
        for n in first..first + 300 {
            put(&store, block(n, bytes));
            assert!(file_bytes(&dir) <= limit && store.stats().bytes <= limit);
        }
        let slot = 4096 + (bytes as u64).div_ceil(4096) * 4096;
        let kept = (first..first + 300).filter(|n| holds(&store, &block(*n, bytes))).count() as u64;
        println!("{kept} blocks of {bytes} bytes");
        assert!(kept * slot > limit * 7 / 10, "only {kept} blocks of {bytes} bytes");
    }
    assert_eq!(store.stats().refused, 0);
}

/// Both sizes stay in use: neither is starved by the other.
#[test]
fn two_sizes_share_the_room() {
    let StoreDir { dir, _base } = place();
    let limit = 600_000;
    let store = open(&dir, limit);
    for n in 0..2000 {
        put(&store, block(n, if n % 2 == 0 { SMALL } else { 12_000 }));
        assert!(store.stats().bytes <= limit);
    }
    let kept = |odd: u64| {
        let of = (0..2000).filter(|n| n % 2 == odd);
        of.filter(|n| store.payload_bytes(&super::id(*n)).is_some()).count()
    };
    let (small, large) = (kept(0), kept(1));
    println!("{small} small blocks and {large} large ones");
    assert!(small >= 15 && large >= 15, "{small} and {large}");
    assert!((1980..2000).all(|n| holds(&store, &block(n, if n % 2 == 0 { SMALL } else { 12_000 }))));
}

#[test]
fn a_smaller_limit_is_kept_from_the_start() {
    let StoreDir { dir, _base } = place();
    let store = open(&dir, 1 << 20);
    (0..100).for_each(|n| put(&store, block(n, SMALL)));
    drop(store);
    let store = open(&dir, 200_000);
    assert!(file_bytes(&dir) <= 200_000);
    let kept = (0..100).filter(|n| holds(&store, &block(*n, SMALL))).count();
    assert!(kept >= 14, "{kept} blocks");
    drop(store);
    let store = open(&dir, 5000);
    assert_eq!((file_bytes(&dir), store.stats().blocks), (0, 0));
    put(&store, block(1, SMALL));
    assert_eq!((file_bytes(&dir), store.stats().refused), (0, 1));
}
