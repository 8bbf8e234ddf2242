//! The prefix cache over the toy program: whatever begins in it gives what a fresh run gives.

use super::tests::allocations;
use super::{VOCAB, expected, image};
use crate::engine::{Engine, EngineConfig, EngineError, LogitRow, SeqId, SequenceTokens, Steps};
use crate::kv::{Eviction, KvBudget, KvError, PrefixStats};
use crate::pool::PoolConfig;
use std::sync::Mutex;

/// Sequences of the engines here.
const SEQUENCES: u32 = 6;
/// Steps of each random schedule.
const STEPS: usize = 7000;

pub(super) fn engine(budget: KvBudget, eviction: Eviction) -> Engine {
    let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
    let config = EngineConfig { pool, sequences: SEQUENCES, kv: budget, eviction, ..EngineConfig::default() };
    Engine::new(&image(), config).unwrap()
}

/// Bytes of the worst case.
pub(super) fn worst_case() -> u64 {
    let usage = engine(KvBudget::WorstCase, Eviction::default()).kv();
    usage.blocks.iter().zip(usage.block_bytes).map(|(n, bytes)| *n as u64 * bytes).sum()
}

/// A running sequence: what it holds, and what it has still to run.
pub(super) struct Running {
    pub id: SeqId,
    pub history: Vec<u32>,
    pub waiting: Vec<u32>,
}

/// Tokens in which prefixes repeat: two values, and now and then another.
pub(super) fn text(most: usize) -> Vec<u32> {
    let token = || if fastrand::u32(..40) == 0 { fastrand::u32(..VOCAB) } else { fastrand::u32(..2) * 7 };
    (0..fastrand::usize(1..=most)).map(|_| token()).collect()
}

/// The rows of a step after the last token of each entry.
pub(super) fn step(engine: &mut Engine, batch: &[SequenceTokens<'_>]) -> Result<Vec<Vec<f32>>, EngineError> {
    let rows = Mutex::new(vec![Vec::new(); batch.len()]);
    engine
        .step(batch, &|_: usize, row: LogitRow<'_>| rows.lock().unwrap()[row.entry] = row.logits.to_vec())?;
    Ok(rows.into_inner().unwrap())
}

/// Begins, forks, truncates or ends sequences, or keeps a checkpoint of one.
pub(super) fn change(
    engine: &mut Engine,
    running: &mut Vec<Running>,
    prompts: &mut Vec<(Vec<u32>, [u8; 32])>,
) {
    let at = fastrand::usize(..running.len().max(1));
    let has_room = running.len() < SEQUENCES as usize;
    match (fastrand::u32(..9), running.get_mut(at)) {
        (0, Some(_)) => engine.drop_sequence(running.swap_remove(at).id),
        (1, Some(one)) => engine.checkpoint(one.id).unwrap(),
        (2, Some(one)) => {
            let length = fastrand::u32(..=one.history.len() as u32);
            match engine.fork(one.id, length) {
                Ok(id) => {
                    let history = one.history[..length as usize].to_vec();
                    running.push(Running { id, history, waiting: Vec::new() });
                }
                Err(EngineError::Kv(KvError::NoFreeSequence { .. } | KvError::Forgotten { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        (3, Some(one)) => {
            let length = (one.history.len() as u32).saturating_sub(fastrand::u32(..20));
            if engine.truncate(one.id, length).is_ok() {
                one.history.truncate(length as usize);
            }
        }
        (4, Some(one)) => {
            // A turn ends: its text begins the next prompt.
            engine.checkpoint(one.id).unwrap();
            let one = running.swap_remove(at);
            engine.drop_sequence(one.id);
            prompts.push((one.history, [fastrand::u8(..3); 32]));
        }
        _ if has_room => {
            let (mut prompt, mut tenant) = (Vec::new(), [fastrand::u8(..3); 32]);
            if !prompts.is_empty() && fastrand::u32(..4) > 0 {
                (prompt, tenant) = prompts[fastrand::usize(..prompts.len())].clone();
                prompt.truncate(fastrand::usize(..=prompt.len()));
            }
            prompt.extend(text(30));
            prompt.truncate(150);
            let begun = engine.begin(&prompt, &[], tenant).unwrap();
            let cached = begun.cached_tokens as usize;
            assert!(cached < prompt.len());
            assert_eq!(engine.length(begun.sequence).unwrap() as usize, cached);
            let waiting = prompt.split_off(cached);
            running.push(Running { id: begun.sequence, history: prompt, waiting });
        }
        _ => {}
    }
}

/// Random schedules on a cache that is too small: every row has the bits of a fresh run, a step that fails
/// leaves no trace, and no block is lost or given back twice.
fn random_schedules(eviction: Eviction, budget: u64, steps: usize) -> (PrefixStats, usize) {
    let mut engine = engine(KvBudget::Bytes(budget), eviction);
    let all = engine.kv().blocks;
    let (mut running, mut prompts) = (Vec::new(), Vec::new());
    let mut refused = 0;
    for n in 0..steps {
        if running.is_empty() || fastrand::u32(..3) == 0 {
            change(&mut engine, &mut running, &mut prompts);
            prompts.drain(..prompts.len().saturating_sub(24));
            continue;
        }
        let mut room = 20;
        let mut batch = Vec::new();
        for one in &mut running {
            if one.waiting.is_empty() {
                one.waiting = text(3);
            }
            let count = one.waiting.len().min(fastrand::usize(..=room)).min(200 - one.history.len());
            if count > 0 {
                batch.push((one, count));
                room -= count;
            }
        }
        if batch.is_empty() {
            engine.drop_sequence(running.remove(0).id);
            continue;
        }
        let entries: Vec<SequenceTokens<'_>> =
            batch.iter().map(|(one, count)| SequenceTokens::last(one.id, &one.waiting[..*count])).collect();
        let before = engine.kv();
        match step(&mut engine, &entries) {
            Ok(rows) => {
                for ((one, count), row) in batch.iter_mut().zip(rows) {
                    one.history.extend(one.waiting.drain(..*count));
                    assert_eq!(row, expected(&one.history), "step {n}");
                }
            }
            Err(error) => {
                let source = match &error {
                    EngineError::Entry { source, .. } => source,
                    other => other,
                };
                assert!(matches!(source, EngineError::Kv(KvError::OutOfBlocks { .. })), "{error}");
                assert_eq!(engine.kv(), before);
                refused += 1;
                engine.drop_sequence(running.swap_remove(fastrand::usize(..running.len())).id);
            }
        }
        let now = engine.kv();
        assert_eq!(now.blocks, all);
        assert!((0..2).all(|kind| now.cached[kind] <= now.free[kind] && now.free[kind] <= all[kind]));
    }
    running.iter().for_each(|one| engine.drop_sequence(one.id));
    assert_eq!(engine.kv().free, all, "every block can be had again");
    (engine.prefix_stats(), refused)
}

#[test]
fn random_schedules_give_what_fresh_runs_give() {
    let policies = [Eviction::LeastRecentlyUsed, Eviction::LeastFrequentlyUsed, Eviction::Random(9)];
    let mut checkpoints = 0;
    for (seed, eviction) in policies.into_iter().enumerate() {
        fastrand::seed(27 + seed as u64);
        // The sequences want more at once than fits.
        let (stats, refused) = random_schedules(eviction, worst_case() * 2 / 5, STEPS);
        assert!(stats.evicted_blocks > 100 && refused > 20, "{stats:?} {refused}");
        // There is room for some of what has ended.
        let (stats, _) = random_schedules(eviction, worst_case() * 3 / 2, STEPS);
        assert!(stats.found_tokens > 200 && stats.evicted_blocks > 100, "{stats:?}");
        checkpoints += stats.evicted_checkpoints;
    }
    assert!(checkpoints > 100, "{checkpoints} checkpoints made way");
}

/// A chat: every turn begins with all turns before, and only what is new is run. So it is when the last turn
/// is edited.
#[test]
fn a_turn_runs_only_what_is_new() {
    fastrand::seed(1);
    let mut engine = engine(KvBudget::WorstCase, Eviction::default());
    let mut history: Vec<u32> = Vec::new();
    let mut turn = |history: &mut Vec<u32>, expect: usize, question: Vec<u32>| {
        history.extend(question);
        let begun = engine.begin(history, &[], [1; 32]).unwrap();
        assert_eq!(begun.cached_tokens as usize, expect);
        let mut at = expect;
        while at < history.len() {
            let to = history.len().min(at + 20);
            let rows = step(&mut engine, &[SequenceTokens::last(begun.sequence, &history[at..to])]).unwrap();
            assert_eq!(rows[0], expected(&history[..to]));
            at = to;
        }
        engine.checkpoint(begun.sequence).unwrap();
        for token in text(6) {
            step(&mut engine, &[SequenceTokens::last(begun.sequence, &[token])]).unwrap();
            history.push(token);
        }
        engine.checkpoint(begun.sequence).unwrap();
        engine.drop_sequence(begun.sequence);
        let begun = engine.begin(history, &[], [1; 32]).unwrap();
        let rest = &history[begun.cached_tokens as usize..];
        assert_eq!(
            step(&mut engine, &[SequenceTokens::last(begun.sequence, rest)]).unwrap()[0],
            expected(history)
        );
        engine.drop_sequence(begun.sequence);
    };
    for _ in 0..12 {
        let known = history.len();
        turn(&mut history, known, text(8));
    }
    // The question before the last answer is edited: all before it is known.
    let (mut edited, known) = (history.clone(), history.len());
    turn(&mut history, known, vec![100, 101, 102]);
    turn(&mut edited, known + 1, vec![100, 102]);
}

#[test]
fn tenants_find_their_own_and_what_belongs_to_all() {
    let mut engine = engine(KvBudget::WorstCase, Eviction::default());
    let prompt: Vec<u32> = (0..40).collect();
    let mut found = |tenant: u8| {
        let begun = engine.begin(&prompt, &[], [tenant; 32]).unwrap();
        let rest = &prompt[begun.cached_tokens as usize..];
        engine.extend(&[SequenceTokens::silent(begun.sequence, rest)], &()).unwrap();
        engine.checkpoint(begun.sequence).unwrap();
        engine.drop_sequence(begun.sequence);
        begun.cached_tokens
    };
    assert_eq!([found(1), found(1), found(2), found(2)], [0, 39, 0, 39]);
    // From now on it belongs to everybody.
    assert_eq!([found(0), found(3)], [0, 39]);
}

/// Everybody's blocks are found where they go further than the tenant's own, and own ones behind them.
#[test]
fn the_longer_of_own_and_shared_is_found() {
    let mut engine = engine(KvBudget::WorstCase, Eviction::default());
    let prompt: Vec<u32> = (0..150).collect();
    let mut found = |tenant: u8, tokens: usize| {
        let begun = engine.begin(&prompt[..tokens], &[], [tenant; 32]).unwrap();
        let rest = &prompt[begun.cached_tokens as usize..tokens];
        let rows = step_all(&mut engine, begun.sequence, rest);
        assert_eq!(rows, expected(&prompt[..tokens]));
        engine.checkpoint(begun.sequence).unwrap();
        engine.drop_sequence(begun.sequence);
        begun.cached_tokens
    };
    // Tenant 1 has a short beginning of its own, tenant 2 a long one.
    assert_eq!([found(1, 20), found(2, 130)], [0, 0]);
    assert_eq!(found(0, 70), 0);
    assert_eq!([found(1, 71), found(2, 131)], [70, 130]);
    // Tenant 3 goes on behind everybody's blocks, and everybody's grow in turn.
    assert_eq!([found(3, 90), found(3, 91)], [70, 90]);
    assert_eq!(found(0, 80), 70);
    assert_eq!([found(3, 92), found(1, 81), found(2, 132)], [91, 80, 131]);
}

/// All tokens are kept of a block that a sequence has in common with a shorter fork of it.
#[test]
fn a_fork_that_is_kept_first_costs_nothing() {
    let prompt: Vec<u32> = (0..60).collect();
    for (length, fork) in [(12, 10), (44, 42), (30, 25)] {
        let mut engine = engine(KvBudget::WorstCase, Eviction::default());
        let first = engine.begin(&prompt[..length], &[], [1; 32]).unwrap().sequence;
        step_all(&mut engine, first, &prompt[..length]);
        let second = engine.fork(first, fork as u32).unwrap();
        for id in [second, first, second] {
            engine.checkpoint(id).unwrap();
        }
        let found =
            |engine: &Engine, tokens: usize| engine.cached_tokens(&prompt[..tokens], &[], [1; 32]) as usize;
        assert_eq!(found(&engine, 60), length);
        // Each goes on as it would alone.
        for (id, from) in [(second, fork), (first, length)] {
            let row = step_all(&mut engine, id, &prompt[from..from + 3]);
            assert_eq!(row, expected(&prompt[..from + 3]));
            engine.drop_sequence(id);
        }
        assert_eq!((found(&engine, 60), found(&engine, fork + 1)), (length, fork));
        let usage = engine.kv();
        assert_eq!(usage.free, usage.blocks);
    }
}

/// Runs tokens of a sequence; the row behind the last one.
fn step_all(engine: &mut Engine, id: SeqId, tokens: &[u32]) -> Vec<f32> {
    let mut row = Vec::new();
    for part in tokens.chunks(20) {
        row = step(engine, &[SequenceTokens::last(id, part)]).unwrap().remove(0);
    }
    row
}

/// A sequence that changes its adapter is no longer a function of its tokens.
#[test]
fn what_is_not_a_function_of_its_tokens_is_not_cached() {
    let mut engine = engine(KvBudget::WorstCase, Eviction::default());
    let prompt: Vec<u32> = (0..40).collect();
    let begun = engine.begin(&prompt, &[], [0; 32]).unwrap();
    engine.use_adapter(begun.sequence, 0).unwrap();
    engine.extend(&[SequenceTokens::silent(begun.sequence, &prompt)], &()).unwrap();
    engine.checkpoint(begun.sequence).unwrap();
    assert_eq!(engine.begin(&prompt, &[], [0; 32]).unwrap().cached_tokens, 0);
    let plain = engine.create().unwrap();
    engine.extend(&[SequenceTokens::silent(plain, &prompt)], &()).unwrap();
    engine.checkpoint(plain).unwrap();
    assert_eq!(engine.begin(&prompt, &[], [0; 32]).unwrap().cached_tokens, 0);
    assert_eq!(engine.kv().cached, [0, 0]);
}

#[test]
fn steps_that_fill_the_cache_allocate_nothing() {
    let mut engine = engine(KvBudget::Bytes(worst_case() / 3), Eviction::default());
    fastrand::seed(4);
    for _ in 0..60 {
        let prompt: Vec<u32> = (0..120).map(|_| fastrand::u32(..VOCAB)).collect();
        let begun = engine.begin(&prompt, &[], [0; 32]).unwrap();
        for part in prompt[begun.cached_tokens as usize..].chunks(20) {
            let before = allocations();
            engine.step(&[SequenceTokens::last(begun.sequence, part)], &()).unwrap();
            assert_eq!(allocations(), before);
        }
        let before = allocations();
        engine.checkpoint(begun.sequence).unwrap();
        engine.drop_sequence(begun.sequence);
        assert_eq!(allocations(), before);
    }
    assert!(engine.prefix_stats().evicted_blocks > 100);
}
