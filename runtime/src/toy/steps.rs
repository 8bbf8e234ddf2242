//! Steps over the toy program: batches of any entries, and steps that fail.

use super::{VOCAB, expected, image};
use crate::ErrorKind;
use crate::engine::{Engine, EngineConfig, EngineError, LogitRow, LogitRows, SeqId, SequenceTokens, Steps};
use crate::kv::{KvBudget, KvError};
use crate::pool::PoolConfig;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Sequences of the engines here.
const SEQUENCES: u32 = 4;
/// Steps that are tried.
const STEPS: usize = 6000;

fn engine(threads: usize, kv: KvBudget) -> Engine {
    let pool = PoolConfig { threads: Some(threads), ..PoolConfig::default() };
    let config = EngineConfig { pool, sequences: SEQUENCES, kv, ..EngineConfig::default() };
    Engine::new(&image(), config).unwrap()
}

/// Rows by entry and token.
type Rows = Vec<(usize, usize, Vec<f32>)>;

/// The rows that a step hands out, in order.
fn step(engine: &mut Engine, batch: &[SequenceTokens<'_>]) -> Result<Rows, EngineError> {
    let rows = Mutex::new(Vec::new());
    let take = |_: usize, row: LogitRow<'_>| {
        rows.lock().unwrap().push((row.entry, row.token, row.logits.to_vec()));
    };
    let stats = engine.step(batch, &take);
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|(entry, token, _)| (*entry, *token));
    match stats {
        Ok(stats) => {
            let tokens: usize = batch.iter().map(|entry| entry.tokens.len()).sum();
            assert_eq!((stats.tokens as usize, stats.rows as usize), (tokens, rows.len()));
            Ok(rows)
        }
        Err(error) => {
            assert!(rows.is_empty(), "a step that fails hands out nothing");
            Err(error)
        }
    }
}

/// The rows that an entry wants after a history, by definition.
fn rows_of(at: usize, history: &[u32], entry: &SequenceTokens<'_>) -> Rows {
    let count = entry.tokens.len();
    let wanted = match entry.logits {
        LogitRows::None => 0..0,
        LogitRows::Last => count - 1..count,
        LogitRows::LastN(most) => count.saturating_sub(most as usize)..count,
        LogitRows::All => 0..count,
        LogitRows::First => 0..1,
    };
    let text = [history, entry.tokens].concat();
    let after = |token: usize| expected(&text[..=history.len() + token]);
    wanted.map(|token| (at, token, after(token))).collect()
}

fn any_rows() -> LogitRows {
    match fastrand::u32(..5) {
        0 => LogitRows::None,
        1 => LogitRows::Last,
        2 => LogitRows::LastN(fastrand::u32(..6)),
        3 => LogitRows::First,
        _ => LogitRows::All,
    }
}

fn any_tokens(most: usize) -> Vec<u32> {
    (0..fastrand::usize(1..=most)).map(|_| fastrand::u32(..VOCAB)).collect()
}

#[test]
fn entries_with_other_rows_do_not_disturb_each_other() {
    fastrand::seed(26);
    for threads in [1, 2, 3] {
        let mut engine = engine(threads, KvBudget::WorstCase);
        let ids: Vec<SeqId> = (0..SEQUENCES).map(|_| engine.create().unwrap()).collect();
        let mut histories = vec![Vec::new(); ids.len()];
        // A part of a prompt, a decoded token, a draft to check, and any other rows.
        for _ in 0..40 {
            let tokens: Vec<Vec<u32>> = [9, 1, 4, 6].map(any_tokens).into();
            let logits = [LogitRows::None, LogitRows::Last, LogitRows::LastN(4), any_rows()];
            let entry = |n: usize| SequenceTokens {
                sequence: ids[n],
                tokens: &tokens[n],
                logits: logits[n],
                allowed: &[],
            };
            let batch: Vec<SequenceTokens<'_>> = (0..4).map(entry).collect();
            if histories.iter().zip(&tokens).any(|(history, more)| history.len() + more.len() > 200) {
                break;
            }
            let wanted: Rows = (0..4).flat_map(|n| rows_of(n, &histories[n], &batch[n])).collect();
            assert_eq!(step(&mut engine, &batch).unwrap(), wanted);
            histories.iter_mut().zip(&tokens).for_each(|(history, more)| history.extend(more));
        }
    }
}

/// A sequence of both engines, and its tokens.
struct Both {
    tried: SeqId,
    spared: SeqId,
    history: Vec<u32>,
}

/// The kind of failure, for counting.
fn reason(error: &EngineError) -> usize {
    assert_eq!(error.kind(), ErrorKind::BadInput, "{error}");
    match error {
        EngineError::Entry { source, .. } => reason(source),
        EngineError::Kv(KvError::OutOfBlocks { .. }) => 0,
        EngineError::Kv(KvError::Context { .. }) => 1,
        EngineError::Token { .. } => 2,
        EngineError::TooManyTokens { .. } => 3,
        EngineError::Repeated => 4,
        EngineError::EmptyEntry => 5,
        other => panic!("{other}"),
    }
}

/// Sequences come, fork, shrink and go.
fn change(tried: &mut Engine, spared: &mut Engine, sequences: &mut Vec<Both>) {
    let at = fastrand::usize(..sequences.len().max(1));
    let has_room = sequences.len() < SEQUENCES as usize;
    match (fastrand::u32(..4), sequences.get_mut(at)) {
        (0, Some(_)) => {
            let Both { tried: a, spared: b, .. } = sequences.swap_remove(at);
            tried.drop_sequence(a);
            spared.drop_sequence(b);
        }
        (1, Some(both)) => {
            let length = fastrand::u32(..=both.history.len() as u32);
            if let Ok(copy) = tried.fork(both.tried, length) {
                let history = both.history[..length as usize].to_vec();
                let spared = spared.fork(both.spared, length).unwrap();
                sequences.push(Both { tried: copy, spared, history });
            } else {
                assert!(spared.fork(both.spared, length).is_err());
            }
        }
        (2, Some(both)) => {
            let length = (both.history.len() as u32).saturating_sub(fastrand::u32(..9));
            let results = (tried.truncate(both.tried, length), spared.truncate(both.spared, length));
            assert_eq!(results.0.is_ok(), results.1.is_ok());
            if results.0.is_ok() {
                both.history.truncate(length as usize);
            }
        }
        _ if has_room => {
            let (tried, spared) = (tried.create().unwrap(), spared.create().unwrap());
            sequences.push(Both { tried, spared, history: Vec::new() });
        }
        _ => {}
    }
}

/// Two engines get the same, but one also the steps that fail: it must go on as if it had not. Blocks suffice
/// for about half of what the sequences could hold.
#[test]
fn a_failed_step_leaves_no_trace() {
    fastrand::seed(2026);
    let usage = engine(1, KvBudget::WorstCase).kv();
    let worst: u64 = usage.blocks.iter().zip(usage.block_bytes).map(|(n, bytes)| *n as u64 * bytes).sum();
    let (mut tried, mut spared) =
        (engine(2, KvBudget::Bytes(worst / 2)), engine(1, KvBudget::Bytes(worst / 2)));
    assert!(tried.kv().blocks[0] * 2 <= usage.blocks[0]);
    let mut sequences: Vec<Both> = Vec::new();
    let mut failures = [0; 6];
    for _ in 0..STEPS {
        if sequences.is_empty() || fastrand::u32(..8) == 0 {
            change(&mut tried, &mut spared, &mut sequences);
            continue;
        }
        let mut tokens: Vec<Vec<u32>> = sequences.iter().map(|_| any_tokens(8)).collect();
        let (victim, harm) = (fastrand::usize(..tokens.len()), fastrand::u32(..12));
        match harm {
            0 => tokens[victim].push(VOCAB + fastrand::u32(..9)),
            1 => tokens[victim].clear(),
            _ => {}
        }
        let mut batch: Vec<SequenceTokens<'_>> = Vec::new();
        for (both, tokens) in sequences.iter().zip(&tokens) {
            batch.push(SequenceTokens { sequence: both.tried, tokens, logits: any_rows(), allowed: &[] });
        }
        if harm == 2 {
            batch.push(batch[victim]);
        }
        let before =
            (tried.kv(), sequences.iter().map(|both| tried.length(both.tried).unwrap()).sum::<u32>());
        match step(&mut tried, &batch) {
            Err(error) => {
                failures[reason(&error)] += 1;
                let lengths = sequences.iter().map(|both| tried.length(both.tried).unwrap()).sum();
                assert_eq!((tried.kv(), lengths), before, "{error}");
            }
            Ok(rows) => {
                let wanted = batch.iter().zip(&sequences).enumerate();
                let wanted: Rows =
                    wanted.flat_map(|(at, (entry, both))| rows_of(at, &both.history, entry)).collect();
                assert_eq!(rows, wanted);
                batch.iter_mut().zip(&sequences).for_each(|(entry, both)| entry.sequence = both.spared);
                assert_eq!(step(&mut spared, &batch).unwrap(), rows);
                sequences.iter_mut().zip(&tokens).for_each(|(both, more)| both.history.extend(more));
            }
        }
        assert_eq!(tried.kv(), spared.kv());
    }
    assert!(failures.iter().all(|count| *count >= 20), "{failures:?}");
}

#[test]
fn the_demand_for_blocks_is_what_a_step_takes() {
    fastrand::seed(7);
    let mut engine = engine(1, KvBudget::WorstCase);
    let id = engine.create().unwrap();
    let mut others = Vec::new();
    while engine.length(id).unwrap() < 180 {
        let tokens = any_tokens(20);
        let (before, demand) = (engine.kv(), engine.blocks_for(id, tokens.len() as u32).unwrap());
        engine.step(&[SequenceTokens::silent(id, &tokens)], &()).unwrap();
        let after = engine.kv();
        for kind in 0..2 {
            assert_eq!(after.free[kind] + demand.takes[kind], before.free[kind] + demand.frees[kind]);
        }
        if fastrand::bool() {
            others.push(engine.fork(id, engine.length(id).unwrap()).unwrap());
        }
        if others.len() > 2 {
            others.drain(..).for_each(|other| engine.drop_sequence(other));
        }
    }
    assert!(matches!(engine.blocks_for(id, 30), Err(EngineError::Kv(KvError::Context { .. }))));
    engine.drop_sequence(id);
    assert!(matches!(engine.blocks_for(id, 1), Err(EngineError::NoSequence)));
}

#[test]
fn a_panic_of_what_takes_rows_reaches_the_caller_and_harms_nobody() {
    for threads in [1, 3] {
        let mut engine = engine(threads, KvBudget::WorstCase);
        let id = engine.create().unwrap();
        let take = |_: usize, row: LogitRow<'_>| assert!(row.token != 2, "the second row");
        let tokens = [5, 6, 7, 8];
        let caught =
            catch_unwind(AssertUnwindSafe(|| engine.step(&[SequenceTokens::all(id, &tokens)], &take)));
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "the second row");
        // The tokens were run, and the engine goes on.
        assert_eq!(engine.length(id).unwrap(), 4);
        let rows = step(&mut engine, &[SequenceTokens::last(id, &[9])]).unwrap();
        assert_eq!(rows, [(0, 0, expected(&[5, 6, 7, 8, 9]))]);
    }
}
