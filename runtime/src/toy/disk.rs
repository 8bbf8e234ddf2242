//! The prefix cache with a store on disk behind it: what comes back gives what a fresh run gives.

use super::prefixes::{Running, change, engine, step, text, worst_case};
use super::{VOCAB, expected};
use crate::engine::{Engine, SequenceTokens};
use crate::kv::{Eviction, KvBudget};
use kernmill_kv_store::{PayloadLayout, Session, SessionFile, Store, StoreOptions};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Limits that small tests stay in, also on a disk that is nearly full.
fn options() -> StoreOptions {
    StoreOptions { reserve: 0, segment_bytes: 1 << 16, limit: 64 << 20, ..StoreOptions::default() }
}

/// An engine with a store in `dir`.
fn on_disk(dir: &Path, budget: KvBudget, identity: u8) -> Engine {
    let mut engine = engine(budget, Eviction::default());
    let layout = engine.kv_layout(&[identity; 32]);
    engine.keep_on_disk(Store::open(dir, options()).unwrap(), layout);
    engine
}

/// Runs a prompt, which must give the fresh run's logits; tokens that were cached, and those from the disk.
fn run(engine: &mut Engine, prompt: &[u32], tenant: u8) -> (u32, u32) {
    let begun = engine.begin(prompt, &[], [tenant; 32]).unwrap();
    let mut at = begun.cached_tokens as usize;
    while at < prompt.len() {
        let to = prompt.len().min(at + 20);
        let rows = step(engine, &[SequenceTokens::last(begun.sequence, &prompt[at..to])]).unwrap();
        assert_eq!(rows[0], expected(&prompt[..to]), "after {to} tokens, {begun:?}");
        at = to;
    }
    engine.checkpoint(begun.sequence).unwrap();
    engine.drop_sequence(begun.sequence);
    (begun.cached_tokens, begun.disk_tokens)
}

fn prompt(tokens: usize) -> Vec<u32> {
    (0..tokens as u32).map(|n| (n * 37 + 5) % VOCAB).collect()
}

/// Whatever was kept, and wherever the next prompt leaves it: what is restored has the bits of a fresh run,
/// and as much is found as memory had.
#[test]
fn every_cut_comes_back_from_disk() {
    let all = prompt(80);
    let mut left_inside = 0;
    for kept in 1..70 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let mut first = on_disk(&store, KvBudget::WorstCase, 1);
        assert_eq!(run(&mut first, &all[..kept], 1), (0, 0));
        first.save_cache().unwrap();
        let found = |prompt: &[u32]| first.cached_tokens(prompt, &[], [1; 32]);
        // The same prompt, two that go on, and one that leaves it.
        let mut left = all[..kept.saturating_sub(3).max(1)].to_vec();
        left.extend([299, 298, 297, 296]);
        let prompts = [all[..kept].to_vec(), all[..kept + 1].to_vec(), all[..kept + 10].to_vec(), left];
        let in_memory: Vec<u32> = prompts.iter().map(|prompt| found(prompt)).collect();
        drop(first);
        for (n, (prompt, in_memory)) in prompts.iter().zip(in_memory).enumerate() {
            let mut second = on_disk(&store, KvBudget::WorstCase, 1);
            let foreseen = second.cached_tokens(prompt, &[], [1; 32]);
            assert_eq!((second.disk_stats().unwrap().hits, second.prefix_stats().lookups), (0, 0));
            let (cached, from_disk) = run(&mut second, prompt, 1);
            assert_eq!((cached, foreseen), (from_disk, from_disk), "what is on disk is foreseen unread");
            // On disk a block is found by all of its tokens only: the last one, if the prompt leaves inside.
            assert!(cached <= in_memory, "{kept} tokens were kept, prompt {n}");
            assert!(n == 3 || cached == in_memory, "{kept} tokens were kept, prompt {n}: {cached}");
            left_inside += usize::from(n == 3 && cached > 0);
            assert_eq!(second.prefix_stats().disk_tokens, u64::from(from_disk));
            // The blocks that were brought are cached now.
            assert_eq!(second.begin(prompt, &[], [1; 32]).unwrap().disk_tokens, 0);
        }
    }
    assert!(left_inside > 5, "{left_inside} prompts that left the text found a part of it");
}

#[test]
fn others_find_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let all = prompt(60);
    let mut first = on_disk(&store, KvBudget::WorstCase, 1);
    run(&mut first, &all, 1);
    first.save_cache().unwrap();
    drop(first);
    for (identity, tenant, cached) in [(1, 2, 0), (1, 0, 0), (2, 1, 0), (1, 1, 59)] {
        let mut engine = on_disk(&store, KvBudget::WorstCase, identity);
        assert_eq!(run(&mut engine, &all, tenant), (cached, cached), "{identity} {tenant}");
    }
    // Blocks that belong to everybody are found by all.
    let mut first = on_disk(&store, KvBudget::WorstCase, 3);
    run(&mut first, &all, 0);
    first.save_cache().unwrap();
    drop(first);
    let mut engine = on_disk(&store, KvBudget::WorstCase, 3);
    assert_eq!(run(&mut engine, &all, 7), (59, 59));
}

/// On disk too, everybody's blocks are found where they go further than those of the tenant.
#[test]
fn the_longer_of_own_and_shared_comes_back() {
    let all = prompt(150);
    for (own, shared) in [(20, 120), (120, 20), (20, 0), (100, 100)] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let mut first = on_disk(&store, KvBudget::WorstCase, 1);
        run(&mut first, &all[..own], 4);
        run(&mut first, &all[..shared.max(1)], 0);
        first.save_cache().unwrap();
        drop(first);
        let mut second = on_disk(&store, KvBudget::WorstCase, 1);
        let expect = own.max(shared) as u32;
        assert_eq!(run(&mut second, &all, 4), (expect, expect), "{own} of its own, {shared} shared");
    }
}

/// Random schedules on a cache that is too small, with what makes way on disk.
#[test]
fn random_schedules_on_disk_give_what_fresh_runs_give() {
    for seed in 0..3 {
        fastrand::seed(270 + seed);
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let budget = KvBudget::Bytes(worst_case() * 2 / 5);
        let mut restored = 0;
        let mut prompts = Vec::new();
        for _ in 0..4 {
            let mut engine = on_disk(&store, budget, 1);
            let all = engine.kv().blocks;
            let mut running: Vec<Running> = Vec::new();
            for _ in 0..1200 {
                if running.is_empty() || fastrand::u32(..3) == 0 {
                    change(&mut engine, &mut running, &mut prompts);
                    prompts.drain(..prompts.len().saturating_sub(60));
                    continue;
                }
                let at = fastrand::usize(..running.len());
                let one = &mut running[at];
                if one.waiting.is_empty() {
                    one.waiting = text(3);
                }
                let count = one.waiting.len().min(20).min(200 - one.history.len());
                let is_done = count == 0
                    || match step(&mut engine, &[SequenceTokens::last(one.id, &one.waiting[..count])]) {
                        Ok(rows) => {
                            one.history.extend(one.waiting.drain(..count));
                            assert_eq!(rows[0], expected(&one.history));
                            false
                        }
                        Err(_) => true,
                    };
                if is_done {
                    engine.drop_sequence(running.swap_remove(at).id);
                }
            }
            running.iter().for_each(|one| engine.drop_sequence(one.id));
            assert_eq!(engine.kv().free, all, "every block can be had again");
            restored += engine.prefix_stats().disk_tokens;
            if fastrand::bool() {
                engine.save_cache().unwrap();
            }
            assert_eq!(engine.disk_stats().unwrap().damaged, 0);
        }
        assert!(restored > 500, "{restored} tokens came from the disk");
    }
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "segment")).collect()
}

/// Any byte may be another: what comes back is right all the same.
#[test]
fn damage_costs_recomputation_only() {
    fastrand::seed(3);
    let all = prompt(150);
    let (mut damaged, mut restored) = (0, 0);
    for round in 0..120 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let mut first = on_disk(&store, KvBudget::WorstCase, 1);
        for tokens in [30, 60, 90, 120, 150] {
            run(&mut first, &all[..tokens], 1);
        }
        first.save_cache().unwrap();
        drop(first);
        let files = segments(&store);
        assert!(!files.is_empty());
        for path in files {
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let bytes = file.metadata().unwrap().len();
            for n in 0..=round / 30 {
                // A page of header, then slots of two pages, whose second one begins with the rows.
                let rows = 8192 * (1 + fastrand::u64(..(bytes - 4096) / 8192)) + fastrand::u64(..384);
                let (at, mut byte) = (if n == 0 { rows } else { fastrand::u64(..bytes) }, [0]);
                file.read_exact_at(&mut byte, at).unwrap();
                file.write_all_at(&[byte[0] ^ 1 << fastrand::u32(..8)], at).unwrap();
            }
        }
        let mut second = on_disk(&store, KvBudget::WorstCase, 1);
        let (cached, _) = run(&mut second, &all, 1);
        restored += cached;
        damaged += second.disk_stats().unwrap().damaged;
    }
    println!("{restored} tokens restored, {damaged} blocks found damaged");
    assert!(damaged > 10 && restored > 500, "{damaged} {restored}");
}

/// A store that is full or gone costs blocks, and nothing else.
#[test]
fn a_store_without_room_is_done_without() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut engine = engine(KvBudget::Bytes(worst_case() / 3), Eviction::default());
    let layout = engine.kv_layout(&[1; 32]);
    engine
        .keep_on_disk(Store::open(&store, StoreOptions { reserve: u64::MAX, ..options() }).unwrap(), layout);
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        for n in 0..12 {
            let prompt: Vec<u32> = prompt(150).iter().map(|token| (token + n) % VOCAB).collect();
            run(&mut engine, &prompt, 1);
        }
        engine.save_cache().unwrap();
    });
    assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
    let stats = engine.disk_stats().unwrap();
    assert!(stats.blocks == 0 && stats.refused > 10, "{stats:?}");
}

/// Counts the warnings of a thread's log.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl Subscriber for Warnings {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        *of.level() == Level::WARN
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A disturbance of a store under an engine that runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    DirectoryGone,
    CutOff,
    Emptied,
    Overwritten,
    Swapped,
    Unreadable,
}

impl Fault {
    fn strike(self, store: &Path) {
        let files = segments(store);
        assert!(files.len() > 1);
        let bytes: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
        for (n, path) in files.iter().enumerate() {
            match self {
                Fault::None | Fault::DirectoryGone => {}
                Fault::CutOff => File::options().write(true).open(path).unwrap().set_len(9000).unwrap(),
                Fault::Emptied => fs::write(path, "").unwrap(),
                Fault::Overwritten => fs::write(path, vec![n as u8; bytes[n].len()]).unwrap(),
                Fault::Swapped => fs::write(path, &bytes[(n + 1) % bytes.len()]).unwrap(),
                Fault::Unreadable => {
                    fs::remove_file(path).unwrap();
                    fs::create_dir(path).unwrap();
                }
            }
        }
        if self == Fault::DirectoryGone {
            fs::remove_dir_all(store).unwrap();
        }
    }
}

/// A disk that fails under an engine costs what it had, and one warning: no request fails, no bit differs.
#[test]
fn a_disk_that_fails_costs_recomputation_only() {
    use Fault::{CutOff, DirectoryGone, Emptied, None, Overwritten, Swapped, Unreadable};
    let prompts: Vec<Vec<u32>> =
        (0..12).map(|n| prompt(150).iter().map(|token| (token + n) % VOCAB).collect()).collect();
    for fault in [None, DirectoryGone, CutOff, Emptied, Overwritten, Swapped, Unreadable] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let warnings = Warnings::default();
        tracing::subscriber::with_default(warnings.clone(), || {
            let mut engine = on_disk(&store, KvBudget::Bytes(worst_case() / 3), 1);
            let all =
                |engine: &mut Engine| prompts.iter().map(|prompt| run(engine, prompt, 1).1).sum::<u32>();
            assert_eq!(all(&mut engine), 0);
            let before = all(&mut engine);
            assert!(before > 800, "{before} tokens came from the disk");
            // Queued blocks are written first.
            engine.save_cache().unwrap();
            fault.strike(&store);
            let after = all(&mut engine);
            println!("{fault:?}: {before} tokens came from the disk, then {after}");
            assert!(fault == None || after < before / 2, "{fault:?}: {after} of {before}");
            all(&mut engine);
            let has_failed = engine.save_cache().is_err();
            assert!(!has_failed || fault == DirectoryGone, "{fault:?}");
            assert_eq!(engine.disk_has_failed(), fault != None);
        });
        assert_eq!(warnings.0.load(Ordering::Relaxed), usize::from(fault != None), "{fault:?}");
    }
}

fn session(layout: PayloadLayout, tokens: &[u32]) -> Session {
    let (name, tokens) = ("toy".to_owned(), tokens.to_vec());
    Session { name, layout, tokens, blocks: Vec::new(), state: vec![1, 2, 3] }
}

#[test]
fn sessions_go_on_where_they_were_saved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my.session");
    let all = prompt(120);
    for kept in 1..100 {
        let mut first = engine(KvBudget::WorstCase, Eviction::default());
        let layout = first.kv_layout(&[1; 32]);
        // The last token has been chosen, and not been run.
        run(&mut first, &all[..kept], 5);
        let saved = first.save_session(&path, session(layout, &all[..=kept]), &[], [5; 32]).unwrap();
        assert_eq!(saved.tokens as usize, kept);
        let file = SessionFile::open(&path).unwrap();
        assert_eq!(file.session().tokens, all[..=kept]);
        for more in [1, 2, 20] {
            let mut second = engine(KvBudget::WorstCase, Eviction::default());
            let prompt = &all[..kept + more];
            let restored = second.restore_session(&file, prompt, layout, &[], [5; 32]).unwrap();
            assert_eq!(restored as usize, kept);
            let (cached, from_disk) = run(&mut second, prompt, 5);
            assert_eq!((cached as usize, from_disk), (kept, 0));
        }
        // All of it has been run.
        first.save_session(&path, session(layout, &all[..kept]), &[], [5; 32]).unwrap();
        let file = SessionFile::open(&path).unwrap();
        let mut second = engine(KvBudget::WorstCase, Eviction::default());
        let restored = second.restore_session(&file, &all[..kept], layout, &[], [5; 32]).unwrap();
        assert_eq!(restored as usize, kept - 1);
        assert_eq!(run(&mut second, &all[..kept], 5).0 as usize, kept - 1);
        // Another layout, another tenant.
        let mut other = engine(KvBudget::WorstCase, Eviction::default());
        let otherwise = other.kv_layout(&[2; 32]);
        assert_eq!(other.restore_session(&file, &all, otherwise, &[], [5; 32]).unwrap(), 0);
        assert_eq!(other.restore_session(&file, &all, layout, &[], [1; 32]).unwrap(), 0);
        assert_eq!(run(&mut other, &all, 5), (0, 0));
    }
}
