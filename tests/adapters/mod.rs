//! The store of adapters under load: what is loaded, replaced and dropped while sequences run touches none of
//! them.

use crate::harness::{Model, adapter, oracle};
use kernmill_checkpoint::peft::{CONFIG_FILE, TENSOR_FILE};
use kernmill_compiler::passes::quant::Preset;
use kernmill_runtime::adapter::{Adapter, AdapterError, AdapterLoader, Loading, PackedAdapter};
use kernmill_runtime::{AdapterUse, Engine, EngineConfig, EngineError, SeqId, SequenceTokens, Steps};
use kernmill_serve::{EndReason, Finish, Request, RequestEvent, RequestId, SchedulerConfig, Serving};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

/// Directories of PEFT for `gptoss-base`, one a DoRA.
const SOURCES: [&str; 4] = ["qv", "attention-rslora", "everything", "dora"];
/// Scales at which they are loaded: as many different adapters as sources times scales.
const SCALES: [f32; 3] = [1.0, 0.5, -0.75];
const CYCLES: usize = 1000;
const SEQUENCES: u32 = 4;
/// Tokens of each sequence, a piece each step.
const TOKENS: [&[u32]; 4] = [&[5, 17, 80, 3, 44], &[9], &[62, 1], &[33]];

fn engine() -> Engine {
    let image = Model::open(&oracle("gptoss-base")).image_with(Preset::Faithful, true);
    Engine::new(&image, EngineConfig { sequences: SEQUENCES, ..EngineConfig::default() }).unwrap()
}

/// Number `n` of the adapters, read from memory.
struct Files(Vec<(String, Vec<u8>)>);

impl Files {
    fn read() -> Files {
        let read = |name: &&str| {
            let config = std::fs::read_to_string(adapter(name).join(CONFIG_FILE)).unwrap();
            (config, std::fs::read(adapter(name).join(TENSOR_FILE)).unwrap())
        };
        Files(SOURCES.iter().map(read).collect())
    }

    fn open(&self, loader: &AdapterLoader, n: usize) -> Loading {
        let (config, tensors) = &self.0[n % SOURCES.len()];
        loader.open_bytes(Path::new("memory"), config, tensors.clone(), SCALES[n / SOURCES.len()]).unwrap()
    }
}

/// The bits of the logits after each piece, of a sequence that runs alone.
fn solo(engine: &mut Engine, uses: &[AdapterUse]) -> Vec<Vec<u32>> {
    let id = engine.create_with(uses).unwrap();
    let logits = TOKENS.iter().map(|piece| step(engine, &[(id, piece)]).remove(0)).collect();
    engine.drop_sequence(id);
    logits
}

fn step(engine: &mut Engine, work: &[(SeqId, &[u32])]) -> Vec<Vec<u32>> {
    let work: Vec<SequenceTokens<'_>> =
        work.iter().map(|(id, tokens)| SequenceTokens::last(*id, tokens)).collect();
    let mut logits = Vec::new();
    engine
        .extend_in_order(&work, &mut |row| logits.push(row.logits.iter().map(|x| x.to_bits()).collect()))
        .unwrap();
    logits
}

/// A sequence under way.
struct Running {
    id: SeqId,
    /// The adapter that it began with; `None` for none.
    adapter: Option<usize>,
    /// Pieces done.
    done: usize,
}

#[test]
fn a_thousand_cycles_mix_nothing_up_and_leave_nothing_behind() {
    let files = Files::read();
    let mut engine = engine();
    let loader = engine.adapter_store().loader().unwrap();
    let all = SOURCES.len() * SCALES.len();
    let expected: Vec<Vec<Vec<u32>>> = (0..all)
        .map(|n| {
            engine.adapter_store_mut().insert("one", files.open(&loader, n).run().unwrap()).unwrap();
            solo(&mut engine, &[AdapterUse::of("one")])
        })
        .collect();
    let plain = solo(&mut engine, &[]);
    assert!(
        (0..all).all(|n| expected[n] != plain && expected[..n].iter().all(|other| *other != expected[n]))
    );
    engine.adapter_store_mut().remove("one");
    assert_eq!(engine.adapter_store().bytes(), 0);

    // Room for what four sequences use, and little more: adapters give way all the time.
    let largest = (0..all).map(|n| files.open(&loader, n).bytes()).max().unwrap();
    engine.adapter_store_mut().set_budget(largest * u64::from(SEQUENCES + 2));
    let mut rng = fastrand::Rng::with_seed(7);
    let mut named: [Option<usize>; 5] = [None; 5];
    let mut running: Vec<Running> = Vec::new();
    let mut packed: Vec<Weak<PackedAdapter>> = Vec::new();
    type Thread = JoinHandle<Result<Adapter, AdapterError>>;
    let (mut loading, mut cycles, mut finished): (Option<(usize, usize, Thread)>, usize, usize) =
        (None, 0, 0);
    let name = |place: usize| format!("adapter-{place}");
    let mut heap = Vec::new();
    while cycles < CYCLES || !running.is_empty() {
        // A thread loads an adapter beside the steps.
        if loading.is_none() && cycles < CYCLES {
            let n = rng.usize(..all);
            let work = files.open(&loader, n);
            loading = Some((rng.usize(..named.len()), n, thread::spawn(move || work.run())));
        }
        if let Some((place, n, work)) = loading.take() {
            if !work.is_finished() && !running.is_empty() {
                loading = Some((place, n, work));
            } else {
                let adapter = work.join().unwrap().unwrap();
                packed.push(Arc::downgrade(adapter.packed()));
                engine.adapter_store_mut().insert(&name(place), adapter).unwrap();
                named[place] = Some(n);
                cycles += 1;
                heap.push(live_adapters(&packed));
            }
        }
        if rng.usize(..4) == 0 {
            let place = rng.usize(..named.len());
            engine.adapter_store_mut().remove(&name(place));
            named[place] = None;
        }
        // Those that gave way are not there any more.
        let kept: Vec<String> = engine.adapter_store().names().map(str::to_owned).collect();
        (0..named.len()).filter(|place| !kept.contains(&name(*place))).for_each(|place| named[place] = None);
        while running.len() < SEQUENCES as usize && cycles < CYCLES && rng.bool() {
            let place = rng.usize(..=named.len());
            let adapter = named.get(place).copied().flatten();
            let uses: Vec<AdapterUse> = adapter.iter().map(|_| AdapterUse::of(name(place))).collect();
            running.push(Running { id: engine.create_with(&uses).unwrap(), adapter, done: 0 });
        }
        if running.is_empty() {
            continue;
        }
        let work: Vec<(SeqId, &[u32])> = running.iter().map(|r| (r.id, TOKENS[r.done])).collect();
        let logits = step(&mut engine, &work);
        for (sequence, logits) in running.iter_mut().zip(logits) {
            let expected = sequence.adapter.map_or(&plain, |n| &expected[n]);
            assert!(logits == expected[sequence.done], "cycle {cycles}: another adapter's bits");
            sequence.done += 1;
        }
        for sequence in running.extract_if(.., |sequence| sequence.done == TOKENS.len()) {
            engine.drop_sequence(sequence.id);
            finished += 1;
        }
    }
    assert!(finished > 100, "{finished} sequences");
    let most = SEQUENCES as usize + 2 + named.len();
    assert!(heap.iter().all(|live| *live <= most), "at most {most} adapters are in memory: {heap:?}");
    drop(loading);
    for place in 0..named.len() {
        engine.adapter_store_mut().remove(&name(place));
    }
    assert_eq!((live_adapters(&packed), engine.adapter_store().bytes()), (0, 0), "adapters that nobody has");
    assert_eq!(solo(&mut engine, &[]), plain, "the base weights are as they were");
}

/// Adapters that go while requests with them wait and run: those end with the reason, the others go on.
#[test]
fn requests_whose_adapter_goes_end_and_others_go_on() {
    let files = Files::read();
    let mut engine = engine();
    let loader = engine.adapter_store().loader().unwrap();
    for n in 0..3 {
        let adapter = files.open(&loader, n).run().unwrap();
        engine.adapter_store_mut().insert(&format!("a{n}"), adapter).unwrap();
    }
    let alone = {
        let mut logits = Vec::new();
        let id = engine.create_with(&[AdapterUse::of("a1")]).unwrap();
        engine.append(id, &[1, 2, 3], &mut logits).unwrap();
        engine.drop_sequence(id);
        logits
    };
    let best = (0..alone.len()).max_by(|a, b| alone[*a].total_cmp(&alone[*b])).unwrap() as u32;
    let mut serving =
        Serving::new(engine, SchedulerConfig { max_sequences: 2, ..SchedulerConfig::default() }).unwrap();
    let request = |adapter: &str, max_tokens| Request {
        adapters: vec![AdapterUse::of(adapter)],
        ..Request::greedy(vec![1, 2, 3], max_tokens)
    };
    // Two run, the others wait.
    let ids = [("a0", 90), ("a1", 12), ("a0", 90), ("a2", 5), ("a1", 7), ("a2", 90)]
        .map(|(name, tokens)| serving.submit(request(name, tokens)).unwrap());
    let mut ends = BTreeMap::new();
    for tick in 0..400 {
        match tick {
            4 => assert!(serving.engine().adapter_store_mut().remove("a0")),
            // Another adapter of that name is no longer the one that was asked for.
            30 => {
                let other = files.open(&loader, 3).run().unwrap();
                serving.engine().adapter_store_mut().insert("a2", other).unwrap();
            }
            _ => {}
        }
        let on_event = &mut |id, event| {
            if let RequestEvent::Done(answer) = event {
                ends.insert(id, *answer);
            }
        };
        serving.tick(on_event).unwrap();
    }
    assert!(serving.is_empty());
    let gone = |id: &RequestId| ends[id].finish == Finish::Ended(EndReason::AdapterGone);
    assert_eq!(ids.each_ref().map(gone), [true, false, true, false, false, true]);
    let tokens = ids.map(|id| ends[&id].tokens.len());
    assert_eq!((tokens[1], tokens[2], tokens[3], tokens[4]), (12, 0, 5, 7));
    assert!((1..90).contains(&tokens[0]) && (1..90).contains(&tokens[5]), "what was made stands: {tokens:?}");
    assert_eq!(ends[&ids[4]].tokens[0], best);
    // The name is known again from here on.
    let after = serving.submit(request("a2", 3)).unwrap();
    let error = serving.submit(request("a0", 3)).unwrap_err().to_string();
    assert!(error.contains("no adapter `a0` is loaded, loaded: a1, a2"), "{error}");
    while !serving.is_empty() {
        serving.tick(&mut |id, event| drop((id == after).then_some(event))).unwrap();
    }
}

fn live_adapters(packed: &[Weak<PackedAdapter>]) -> usize {
    packed.iter().filter(|weak| weak.strong_count() > 0).count()
}

#[test]
fn a_sequence_keeps_its_adapter_when_it_is_forked_and_the_name_goes() {
    let files = Files::read();
    let mut engine = engine();
    let loader = engine.adapter_store().loader().unwrap();
    engine.adapter_store_mut().insert("a", files.open(&loader, 0).run().unwrap()).unwrap();
    let expected = solo(&mut engine, &[AdapterUse::of("a")]);
    let first = engine.create_with(&[AdapterUse::of("a")]).unwrap();
    step(&mut engine, &[(first, TOKENS[0])]);
    engine.adapter_store_mut().insert("a", files.open(&loader, 1).run().unwrap()).unwrap();
    let copy = engine.fork(first, TOKENS[0].len() as u32).unwrap();
    engine.drop_sequence(first);
    engine.adapter_store_mut().remove("a");
    assert_eq!(step(&mut engine, &[(copy, TOKENS[1])])[0], expected[1]);
    engine.drop_sequence(copy);
    assert_eq!(engine.adapter_store().bytes(), 0);
    let error = engine.create_with(&[AdapterUse::of("a")]).unwrap_err();
    assert_eq!(error.to_string(), "there is no adapter `a`");
    for _ in 0..SEQUENCES {
        engine.create().unwrap();
    }
}

/// Slots by hand and those of the store do not touch: neither gets what the other has, and nobody gets an
/// empty one.
#[test]
fn placed_adapters_have_slots_of_their_own() {
    let files = Files::read();
    let mut engine = engine();
    let loader = engine.adapter_store().loader().unwrap();
    let load = |n: usize| files.open(&loader, n).run().unwrap();
    engine.adapter_store_mut().insert("a", load(0)).unwrap();
    let expected = solo(&mut engine, &[AdapterUse::of("a")]);
    let other = Arc::clone(load(1).packed());
    let slot = engine.place_adapter(Arc::clone(&other)).unwrap();
    let mine = engine.create().unwrap();
    engine.use_adapter(mine, slot).unwrap();
    let theirs = engine.create_with(&[AdapterUse::of("a")]).unwrap();
    let logits = step(&mut engine, &[(mine, TOKENS[0]), (theirs, TOKENS[0])]);
    assert!(logits[0] != expected[0] && logits[1] == expected[0]);

    // It stays when no sequence has it any more.
    engine.drop_sequence(mine);
    let again = engine.place_adapter(other).unwrap();
    assert!(again != slot);
    let error = engine.use_adapter(theirs, 99).unwrap_err();
    assert!(matches!(error, EngineError::NoAdapterSlot { .. }), "{error}");
    assert!(step(&mut engine, &[(theirs, TOKENS[1])])[0] == expected[1], "a refused change changes nothing");

    let image = Model::open(&oracle("llama-plain")).image_with(Preset::Faithful, true);
    let mut foreign = Engine::new(&image, EngineConfig { sequences: 1, ..EngineConfig::default() }).unwrap();
    let error = foreign.place_adapter(Arc::clone(load(2).packed())).unwrap_err().to_string();
    assert!(error.contains("packed for another program"), "{error}");
}
