//! Engine and executor over the toy program.

use super::{MAX_CONTEXT, VOCAB, WINDOW, expected, image, wide_image};
use crate::ErrorKind;
use crate::engine::{Engine, EngineConfig, EngineError, LogitRow, SeqId, SequenceTokens, Steps};
use crate::executor::LoadError;
use crate::kv::KvError;
use crate::pool::PoolConfig;
use crate::profile::{Detail, Profile, WorkDone};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts each thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is one that calls the engine, not one of its pool.
    static CALLER: Cell<bool> = const { Cell::new(false) };
}

/// Allocations of this thread so far.
pub(super) fn allocations() -> usize {
    ALLOCATIONS.get()
}

// SAFETY: everything is the system allocator's; counting touches only a constant-initialised thread-local.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

pub(super) fn config(threads: usize, sequences: u32, chunk: Option<u32>) -> EngineConfig {
    let pool = PoolConfig { threads: Some(threads), ..PoolConfig::default() };
    EngineConfig { pool, sequences, chunk, ..EngineConfig::default() }
}

pub(super) fn engine(threads: usize, sequences: u32, chunk: Option<u32>) -> Engine {
    Engine::new(&image(), config(threads, sequences, chunk)).unwrap()
}

pub(super) fn tokens(count: usize, salt: u32) -> Vec<u32> {
    (0..count as u32).map(|i| (i * 37 + salt * 101 + i * i) % VOCAB).collect()
}

/// Appends tokens and checks the logits after each against the definition.
fn check_all(engine: &mut Engine, id: SeqId, history: &mut Vec<u32>, more: &[u32]) {
    let before = history.len();
    history.extend_from_slice(more);
    let mut rows = 0;
    engine
        .extend_in_order(&[SequenceTokens::all(id, more)], &mut |row| {
            assert_eq!((row.entry, row.token), (0, rows));
            assert_eq!(row.logits, expected(&history[..=before + rows]), "position {}", before + rows);
            rows += 1;
        })
        .unwrap();
    assert_eq!(rows, more.len());
}

/// A sink for steps that are refused.
fn nothing_runs(_: usize, _: LogitRow<'_>) {
    panic!("nothing runs");
}

#[test]
fn logits_are_the_same_in_any_chunks_with_any_threads() {
    let text = tokens(150, 0);
    for threads in [1, 3] {
        for chunk in [None, Some(1), Some(7), Some(16)] {
            let mut engine = engine(threads, 1, chunk);
            let id = engine.create().unwrap();
            let mut history = Vec::new();
            for part in [&text[..1], &text[1..60], &text[60..61], &text[61..]] {
                check_all(&mut engine, id, &mut history, part);
            }
            assert_eq!(engine.length(id).unwrap(), 150);
        }
    }
}

#[test]
fn sequences_in_one_batch_do_not_disturb_each_other() {
    let mut engine = engine(2, 3, None);
    let texts: Vec<Vec<u32>> = (0..3).map(|s| tokens(90, s)).collect();
    let ids: Vec<SeqId> = (0..3).map(|_| engine.create().unwrap()).collect();
    let mut done = [0; 3];
    for lengths in [[33, 0, 1], [1, 1, 1], [0, 50, 19], [2, 30, 9], [54, 9, 60]] {
        let there: Vec<usize> = (0..3).filter(|s| lengths[*s] > 0).collect();
        let entry = |s: &usize| SequenceTokens::last(ids[*s], &texts[*s][done[*s]..done[*s] + lengths[*s]]);
        let work: Vec<SequenceTokens<'_>> = there.iter().map(entry).collect();
        let mut seen = Vec::new();
        engine
            .extend_in_order(&work, &mut |row| {
                let s = there[row.entry];
                assert_eq!(row.token + 1, lengths[s]);
                assert_eq!(row.logits, expected(&texts[s][..done[s] + lengths[s]]));
                seen.push(s);
            })
            .unwrap();
        assert_eq!(seen, there);
        (0..3).for_each(|s| done[s] += lengths[s]);
    }
}

#[test]
fn forks_share_a_prefix_and_go_their_own_ways() {
    let mut engine = engine(2, 3, None);
    let mut first = Vec::new();
    let a = engine.create().unwrap();
    check_all(&mut engine, a, &mut first, &tokens(75, 1));
    for at in [75, 70] {
        let mut second = first[..at as usize].to_vec();
        let b = engine.fork(a, at).unwrap();
        check_all(&mut engine, a, &mut first, &tokens(3, 2));
        check_all(&mut engine, b, &mut second, &tokens(40, 3));
        engine.drop_sequence(b);
        assert!(matches!(engine.length(b), Err(EngineError::NoSequence)));
    }
    engine.truncate(a, 77).unwrap();
    first.truncate(77);
    check_all(&mut engine, a, &mut first, &tokens(5, 4));
    let gone = engine.fork(a, 10).unwrap_err();
    assert!(matches!(gone, EngineError::Kv(KvError::Forgotten { position: 10, .. })), "{gone}");
}

#[test]
fn a_step_allocates_nothing() {
    let mut engine = engine(2, 2, None);
    let text = tokens(60, 0);
    let sum = AtomicU64::new(0);
    CALLER.set(true);
    // The allocations of the pool's own thread at its first row and at its last. A worker's number does not
    // tell its thread: the caller plays worker 1 when that comes late.
    let (first, last, rows) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let take = |_: usize, row: LogitRow<'_>| {
        sum.fetch_add(row.logits[0] as u64, Ordering::Relaxed);
        if !CALLER.get() {
            last.store(ALLOCATIONS.get(), Ordering::Relaxed);
            if rows.fetch_add(1, Ordering::Relaxed) == 0 {
                first.store(ALLOCATIONS.get(), Ordering::Relaxed);
            }
        }
    };
    // On a busy machine the other thread can sleep through a hundred steps: they go on until it took rows.
    while rows.load(Ordering::Relaxed) < 20 {
        let (a, b) = (engine.create().unwrap(), engine.create().unwrap());
        engine.extend(&[SequenceTokens::all(a, &text[..10])], &take).unwrap();
        engine.extend(&[SequenceTokens::all(a, &text), SequenceTokens::all(b, &text[..5])], &take).unwrap();
        let before = ALLOCATIONS.get();
        for n in 0..100 {
            let work = [
                SequenceTokens::last(a, &text[n % 50..][..1]),
                SequenceTokens::last(b, &text[n % 40..][..1]),
            ];
            engine.step(&work, &take).unwrap();
        }
        assert_eq!(ALLOCATIONS.get(), before);
        engine.drop_sequence(a);
        engine.drop_sequence(b);
    }
    assert_eq!(last.into_inner(), first.into_inner());
    assert!(sum.into_inner() > 0);
}

#[test]
fn a_meter_counts_what_steps_read_and_multiply() {
    let mut engine = engine(2, 3, None);
    let (a, b) = (engine.create().unwrap(), engine.create().unwrap());
    assert_eq!(engine.stop_meter(), Profile::default());
    engine.extend(&[SequenceTokens::silent(a, &tokens(30, 0))], &()).unwrap();
    engine.start_meter(Detail::Steps);
    // Batches of 20 tokens and of two sequences, each with a slab of logits.
    engine.extend(&[SequenceTokens::all(b, &tokens(20, 1))], &()).unwrap();
    engine.step(&[SequenceTokens::last(a, &[5]), SequenceTokens::last(b, &[6])], &()).unwrap();
    let profile = engine.stop_meter();
    // A key and value have 16 bytes in a layer: 20 keys in view; then 31 and 21, at most the window of the
    // sliding layer.
    let window = u64::from(WINDOW);
    let cache_bytes = 16 * (2 * 20 + 31 + 21 + window + 21);
    let work = |calls: u64, rows: u64, cache_bytes| WorkDone {
        weight_bytes: 16 * calls,
        cache_bytes,
        macs: 3 * rows,
    };
    assert_eq!((profile.runs, profile.tokens), (2, 22));
    assert_eq!(profile.total, work(8 + 2, 4 * 22 + 22, cache_bytes));
    let steps =
        profile.steps.iter().map(|step| (step.name.as_str(), step.calls, step.work)).collect::<Vec<_>>();
    let expected =
        [("store", 4, work(4, 44, 0)), ("sum", 4, work(4, 44, cache_bytes)), ("logits", 2, work(2, 22, 0))];
    assert_eq!(steps, expected);
    assert!(profile.steps.iter().all(|step| step.seconds > 0.0 && step.busy.len() == 2), "{profile:?}");

    engine.start_meter(Detail::Totals);
    engine.extend(&[SequenceTokens::silent(a, &[7])], &()).unwrap();
    let totals = engine.stop_meter();
    assert_eq!((totals.total, totals.steps.len()), (work(4, 4, 16 * (32 + window)), 0));
}

#[test]
fn rows_of_two_slabs_are_those_of_one_and_read_its_weights_twice() {
    let mut engine = Engine::new(&wide_image(), config(2, 1, None)).unwrap();
    let (id, text) = (engine.create().unwrap(), tokens(70, 3));
    engine.start_meter(Detail::Totals);
    let mut rows = 0;
    engine
        .extend_in_order(&[SequenceTokens::all(id, &text)], &mut |row| {
            assert_eq!(row.logits, expected(&text[..=rows]), "row {rows}");
            rows += 1;
        })
        .unwrap();
    assert_eq!(rows, 70);
    // Four steps over the batch and two slabs.
    assert_eq!(engine.stop_meter().total.weight_bytes, 16 * (4 + 2));
}

#[test]
fn bad_requests_are_refused_before_anything_runs() {
    let mut engine = engine(1, 1, None);
    let id = engine.create().unwrap();
    assert!(matches!(engine.create(), Err(EngineError::Kv(KvError::NoFreeSequence { limit: 1 }))));
    let mut refused = |work: &[(SeqId, &[u32])]| {
        let work: Vec<SequenceTokens<'_>> =
            work.iter().map(|(id, tokens)| SequenceTokens::last(*id, tokens)).collect();
        let error = engine.step(&work, &nothing_runs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadInput);
        error.to_string()
    };
    assert_eq!(refused(&[(id, &[1, 2, VOCAB])]), "token 2 of the input has id 300, expected less than 300");
    assert_eq!(refused(&[(id, &tokens(201, 0))]), "0 tokens and 201 more exceed the context of 200");
    assert!(refused(&[(id, &[])]).starts_with("an entry of a step has no tokens"));
    assert!(refused(&[]).starts_with("an entry of a step has no tokens"));
    let many = "the step has 21 tokens, one run takes at most 20";
    assert!(refused(&[(id, &tokens(21, 0))]).starts_with(many));
    let twice = "entry 1 of the step: a sequence occurs twice in one step";
    assert_eq!(refused(&[(id, &[1]), (id, &[2])]), twice);
    engine.drop_sequence(id);
    assert!(matches!(engine.extend(&[SequenceTokens::silent(id, &[1])], &()), Err(EngineError::NoSequence)));
    assert!(engine.create().is_ok(), "a refused request keeps no sequence");
}

#[test]
fn the_entry_of_a_step_that_is_at_fault_is_named() {
    let mut engine = engine(1, 3, None);
    let ids = [(); 3].map(|()| engine.create().unwrap());
    let long = tokens(201, 0);
    for at in 0..3 {
        for wrong in [&[VOCAB][..], &long] {
            let mut work = ids.map(|id| SequenceTokens::last(id, &[1][..]));
            work[at].tokens = wrong;
            let error = engine.step(&work, &nothing_runs).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BadInput);
            assert!(matches!(error, EngineError::Entry { entry, .. } if entry == at), "{error}");
        }
    }
    assert!(ids.iter().all(|id| engine.length(*id).unwrap() == 0));
}

#[test]
fn sequences_of_another_engine_are_unknown() {
    let (mut first, mut second) = (engine(1, 2, None), engine(1, 2, None));
    let (a, b) = (first.create().unwrap(), second.create().unwrap());
    assert_ne!(a, b);
    second.extend(&[SequenceTokens::silent(b, &[1, 2])], &()).unwrap();
    assert!(matches!(second.length(a), Err(EngineError::NoSequence)));
    assert!(matches!(second.extend(&[SequenceTokens::silent(a, &[1])], &()), Err(EngineError::NoSequence)));
    assert!(matches!(second.fork(a, 0), Err(EngineError::NoSequence)));
    assert!(matches!(second.truncate(a, 0), Err(EngineError::NoSequence)));
    assert!(matches!(second.use_adapter(a, 0), Err(EngineError::NoSequence)));
    second.drop_sequence(a);
    assert_eq!(second.length(b).unwrap(), 2);
    // Beside one's own, in any order; nothing of the step runs.
    let (own, foreign) = (SequenceTokens::last(b, &[3]), SequenceTokens::last(a, &[4]));
    for (work, at) in [([own, foreign], 1), ([foreign, own], 0)] {
        let error = second.step(&work, &nothing_runs).unwrap_err();
        assert!(
            matches!(&error, EngineError::Entry { entry, source } if *entry == at && matches!(**source,
                EngineError::NoSequence)),
            "{error}"
        );
        assert_eq!(second.length(b).unwrap(), 2);
    }
    // A fork's handle, a handle of an engine that is gone, and a handle whose place has another sequence now.
    let forked = first.fork(a, 0).unwrap();
    drop(first);
    let ended = second.create().unwrap();
    second.drop_sequence(ended);
    let place = second.create().unwrap();
    for stale in [a, forked, ended] {
        assert!(matches!(second.length(stale), Err(EngineError::NoSequence)));
        assert!(matches!(second.append(stale, &[1], &mut Vec::new()), Err(EngineError::NoSequence)));
        second.drop_sequence(stale);
    }
    assert_eq!((second.length(b).unwrap(), second.length(place).unwrap()), (2, 0));
}

#[test]
fn engines_that_cannot_be_are_refused() {
    let refused = |change: fn(&mut crate::PlanImage, &mut EngineConfig)| {
        let (mut image, mut config) = (image(), config(1, 1, None));
        change(&mut image, &mut config);
        Engine::new(&image, config).err().expect("the change is a fault")
    };
    for change in [
        (|_, c| c.context = Some(MAX_CONTEXT + 1)) as fn(&mut _, &mut EngineConfig),
        |_, c| c.sequences = 0,
        |_, c| c.chunk = Some(0),
    ] {
        assert!(matches!(refused(change), EngineError::Config { .. }));
    }
    assert!(matches!(
        refused(|i, _| i.program_mut().weight_bytes = 129),
        EngineError::Load(LoadError::Weights { .. })
    ));
    assert!(matches!(
        refused(|i, _| i.program_mut().classes.clear()),
        EngineError::Load(LoadError::Check(_))
    ));
    assert!(matches!(
        refused(|i, _| *i = i.clone().with_code_hash([1; 32])),
        EngineError::Load(LoadError::Code(_))
    ));
    // The contracts of kernels state the least scratch; more is sound, and may be too much.
    let memory = refused(|i, _| i.program_mut().scratch_bytes = 1 << 45);
    assert!(matches!(memory, EngineError::Load(LoadError::Memory { .. })), "{memory}");
}

/// Logits are handed out within a step: a panic there leaves an engine whose sequences can be dropped, and
/// whose others go on.
#[test]
fn panics_of_who_takes_the_logits_harm_no_other_sequence() {
    for threads in [1, 3] {
        let mut engine = engine(threads, 2, Some(16));
        let b = engine.create().unwrap();
        let mut history = Vec::new();
        check_all(&mut engine, b, &mut history, &tokens(21, 1));
        for at in [0, 3, 39] {
            let a = engine.create().unwrap();
            let rows = AtomicUsize::new(0);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                engine.extend(&[SequenceTokens::all(a, &tokens(40, 2))], &|_, _: LogitRow<'_>| {
                    assert!(rows.fetch_add(1, Ordering::Relaxed) < at, "the caller's");
                })
            }));
            assert!(caught.is_err(), "{threads} {at}");
            engine.drop_sequence(a);
            let again = engine.create().unwrap();
            assert_ne!(a, again);
            check_all(&mut engine, again, &mut Vec::new(), &tokens(30, 3));
            check_all(&mut engine, b, &mut history, &tokens(2, at as u32));
            engine.drop_sequence(again);
        }
    }
}

/// Runs `child` in a fork of this process; its exit status.
fn forked(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `child` on its only thread and ends without touching anything else.
    let process = unsafe { libc::fork() };
    if process == 0 {
        // Should it hang, the alarm ends it.
        // SAFETY: neither call touches memory.
        unsafe {
            libc::alarm(20);
            libc::_exit(child());
        }
    }
    let mut status = 0;
    // SAFETY: `status` is writable and lives through the call.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
}

#[test]
fn a_fork_is_told_that_it_has_no_workers() {
    let run = |engine: &mut Engine| {
        let id = engine.create().unwrap();
        match engine.extend(&[SequenceTokens::silent(id, &[1, 2])], &()) {
            Ok(_) => 0,
            Err(EngineError::Forked) => 7,
            Err(_) => 1,
        }
    };
    let mut three = engine(3, 4, None);
    let mut one = engine(1, 4, None);
    assert_eq!(forked(|| run(&mut three)), 7);
    assert_eq!(forked(|| run(&mut one)), 0, "an engine of one thread needs no others");
    let other = engine(2, 4, None);
    // Dropping it waits for nobody.
    assert_eq!(
        forked(move || {
            drop(other);
            3
        }),
        3
    );
    assert_eq!(run(&mut three), 0, "the parent has all of its threads");
}
