//! Two stages of the toy program in one process: the logits are those that plain loops give, whatever is on
//! its way, and whatever happens to a stage.

use super::hello::{Wish, call, prepare};
use super::wire::{ALIVE, BatchHeader, ROWS, STEP, Update, send};
use super::*;
use crate::engine::{Engine, EngineConfig, EngineError, LogitRow, SequenceTokens, Steps};
use crate::image::PlanImage;
use crate::kv::KvBudget;
use crate::pool::PoolConfig;
use crate::toy::{VOCAB, expected, image};
use proptest::prelude::*;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn named() -> PlanImage {
    image().with_identity([7; 32])
}

/// A second stage on a thread, until it is dropped.
struct Second {
    address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Second {
    fn start(listener: TcpListener, image: PlanImage, key: StageKey) -> Second {
        let address = listener.local_addr().unwrap();
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = has_ended.clone();
        let pool = PoolConfig { threads: Some(2), ..PoolConfig::default() };
        let thread = std::thread::spawn(move || {
            let config = StageServerConfig { number: 2, stages: 2, peer: None, key, pool };
            let server = StageServer::new(image, config).unwrap();
            server.run(listener, &ended).unwrap();
        });
        Second { address, has_ended, thread: Some(thread) }
    }

    fn any() -> Second {
        Second::start(TcpListener::bind("127.0.0.1:0").unwrap(), named(), StageKey::none())
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn first(second: &Second, key: StageKey, config: EngineConfig) -> Engine {
    let stages = StagesConfig { stages: 2, peer: second.address.to_string(), key };
    Engine::with_stages(&named(), config, &stages).unwrap()
}

fn ready(second: &Second) -> Engine {
    let config = EngineConfig { sequences: 4, ..EngineConfig::default() };
    let engine = first(second, StageKey::none(), config);
    engine.wait_for_stages(PATIENCE).unwrap();
    engine
}

/// Collects rows by entry and token.
#[derive(Default)]
struct Rows(Mutex<Vec<(usize, usize, Vec<f32>)>>);

impl crate::RowSink for Rows {
    fn row(&self, _: usize, row: LogitRow<'_>) {
        self.0.lock().unwrap().push((row.entry, row.token, row.logits.to_vec()));
    }
}

impl Rows {
    fn of(self, entry: usize, token: usize) -> Vec<f32> {
        let rows = self.0.into_inner().unwrap();
        rows.into_iter().find(|row| (row.0, row.1) == (entry, token)).expect("a row").2
    }
}

#[test]
fn two_stages_give_the_logits_of_one_process() {
    let second = Second::any();
    let mut engine = ready(&second);
    let mut rng = fastrand::Rng::with_seed(5);
    let mut sequences: Vec<_> = (0..3).map(|_| (engine.create().unwrap(), Vec::new())).collect();
    let mut rows = 0;
    for _ in 0..120 {
        let chosen: Vec<usize> = (0..3).filter(|_| rng.bool()).collect();
        if chosen.is_empty() {
            continue;
        }
        let tokens: Vec<Vec<u32>> =
            chosen.iter().map(|_| (0..rng.usize(1..7)).map(|_| rng.u32(0..VOCAB)).collect()).collect();
        let entries: Vec<SequenceTokens<'_>> = chosen
            .iter()
            .zip(&tokens)
            .map(|(n, tokens)| match rng.u8(0..4) {
                0 => SequenceTokens::silent(sequences[*n].0, tokens),
                1 => SequenceTokens::all(sequences[*n].0, tokens),
                _ => SequenceTokens::last(sequences[*n].0, tokens),
            })
            .collect();
        let got = Mutex::new(Vec::new());
        engine
            .step(&entries, &|_: usize, row: LogitRow<'_>| {
                got.lock().unwrap().push((row.entry, row.token, row.logits.to_vec()));
            })
            .unwrap();
        for (entry, token, logits) in got.into_inner().unwrap() {
            let mut text: Vec<u32> = sequences[chosen[entry]].1.clone();
            text.extend_from_slice(&tokens[entry][..=token]);
            assert_eq!(logits, expected(&text));
            rows += 1;
        }
        for (n, tokens) in chosen.iter().zip(tokens) {
            sequences[*n].1.extend(tokens);
            // A copy of the sequence writes into blocks that it shares: copies go to the stages, too.
            if sequences[*n].1.len() > 180 {
                engine.drop_sequence(sequences[*n].0);
                sequences[*n] = (engine.create().unwrap(), Vec::new());
            } else if rng.u8(0..5) == 0 {
                let at = sequences[*n].1.len() as u32;
                let copy = engine.fork(sequences[*n].0, at).unwrap();
                engine.drop_sequence(std::mem::replace(&mut sequences[*n].0, copy));
            }
        }
    }
    assert!(rows > 100, "{rows} rows were compared");
}

#[test]
fn two_batches_are_on_their_way_at_once() {
    let second = Second::any();
    let mut engine = ready(&second);
    assert_eq!(engine.most_in_flight(), 2);
    let (a, b) = (engine.create().unwrap(), engine.create().unwrap());
    engine.begin_step(&[SequenceTokens::last(a, &[1, 2, 3])]).unwrap();
    assert!(matches!(engine.begin_step(&[SequenceTokens::last(a, &[4])]), Err(EngineError::InFlight)));
    engine.begin_step(&[SequenceTokens::last(b, &[9, 8])]).unwrap();
    let c = engine.create().unwrap();
    assert!(matches!(engine.begin_step(&[SequenceTokens::last(c, &[4])]), Err(EngineError::InFlight)));
    assert!(matches!(engine.step(&[SequenceTokens::last(c, &[4])], &()), Err(EngineError::InFlight)));
    for text in [&[1, 2, 3][..], &[9, 8]] {
        let rows = Rows::default();
        engine.end_step(&rows).unwrap();
        assert_eq!(rows.of(0, text.len() - 1), expected(text));
    }
    assert!(matches!(engine.end_step(&()), Err(EngineError::NoFlight)));
    assert_eq!(engine.length(a).unwrap(), 3);
}

#[test]
fn a_lost_stage_takes_the_sequences_along_and_is_joined_again() {
    let second = Second::any();
    let mut engine = ready(&second);
    let a = engine.create().unwrap();
    engine.step(&[SequenceTokens::last(a, &[1, 2])], &()).unwrap();
    engine.begin_step(&[SequenceTokens::last(a, &[3])]).unwrap();
    let address = second.address;
    drop(second);
    // The answer may have been on its way; what follows finds nobody.
    let mut outcome = engine.end_step(&());
    while outcome.is_ok() {
        outcome = engine.step(&[SequenceTokens::last(a, &[4])], &());
    }
    let Err(EngineError::Stage(lost)) = outcome else { panic!("{outcome:?}") };
    let text = lost.to_string();
    assert!(text.starts_with(&format!("stage 2 at {address} cannot be reached: ")), "{text}");
    assert!(engine.take_lost_stage().is_none(), "the step has told it");
    assert!(engine.stage_health().unwrap().lost().is_some());
    assert!(matches!(engine.length(a), Err(EngineError::NoSequence)));
    assert_eq!(engine.in_flight(), 0);
    let _second = Second::start(TcpListener::bind(address).unwrap(), named(), StageKey::none());
    engine.wait_for_stages(PATIENCE).unwrap();
    assert!(engine.take_lost_stage().is_none());
    let b = engine.create().unwrap();
    let mut logits = Vec::new();
    engine.append(b, &[5, 6, 7], &mut logits).unwrap();
    assert_eq!(logits, expected(&[5, 6, 7]));
}

#[test]
fn a_stage_that_began_anew_between_two_looks_is_noticed() {
    let second = Second::any();
    let mut engine = ready(&second);
    let a = engine.create().unwrap();
    engine.step(&[SequenceTokens::last(a, &[1, 2])], &()).unwrap();
    let address = second.address;
    drop(second);
    let _second = Second::start(TcpListener::bind(address).unwrap(), named(), StageKey::none());
    let health = engine.stage_health().unwrap();
    while health.lost().is_none() {
        std::thread::yield_now();
    }
    engine.wait_for_stages(PATIENCE).unwrap();
    let lost = engine.take_lost_stage().unwrap();
    assert!(lost.to_string().ends_with("it was lost, and has begun anew"), "{lost}");
    assert!(engine.take_lost_stage().is_none(), "it is told once");
    assert!(matches!(engine.length(a), Err(EngineError::NoSequence)));
}

#[test]
fn only_who_knows_the_key_and_has_the_same_model_is_let_in() {
    let key = || StageKey::of("a key of sixteen");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let second = Second::start(listener, named(), key());
    let why = |key: StageKey, image: &PlanImage| {
        let stages = StagesConfig { stages: 2, peer: second.address.to_string(), key };
        let engine = Engine::with_stages(image, EngineConfig::default(), &stages).unwrap();
        let health = engine.stage_health().unwrap();
        let begin = std::time::Instant::now();
        loop {
            match health.lost() {
                None => return None,
                Some(lost) if !lost.why.contains("not been reached") => return Some(lost.why),
                Some(_) => assert!(begin.elapsed() < PATIENCE),
            }
        }
    };
    assert_eq!(
        why(StageKey::none(), &named()).unwrap(),
        "its key is another one: give both the same --stage-key"
    );
    let other = why(key(), &image().with_identity([8; 32])).unwrap();
    assert_eq!(other, "it has another model, preset or version of kernmill");
    assert_eq!(why(key(), &named()), None);
}

#[test]
fn stages_that_cannot_be_are_refused() {
    let new = |number, stages, peer: Option<&str>| {
        let (peer, key, pool) = (peer.map(str::to_owned), StageKey::none(), PoolConfig::default());
        let made = StageServer::new(named(), StageServerConfig { number, stages, peer, key, pool });
        made.err().map(|error| error.to_string())
    };
    assert_eq!(new(1, 2, None).unwrap(), "stage 1 of 2: expected 2 to 2");
    assert_eq!(new(2, 3, None).unwrap(), "a stage in the middle needs --peer, the address of the next one");
    assert_eq!(new(2, 2, Some("x:1")).unwrap(), "the last stage has no --peer: it answers the one before it");
    assert_eq!(new(2, 2, None), None);
    let program = named();
    let error = StageShare::of(program.program(), 1, 3).unwrap_err().to_string();
    assert_eq!(
        error,
        "3 stages were asked for, and the model has 2 attention layers: each stage has one at least"
    );
}

fn order() -> impl Strategy<Value = BatchHeader> {
    let numbers = |most| prop::collection::vec(0..400u32, 0..most);
    let update = (0..3u32, 0..60u32, numbers(4)).prop_map(|(kind, at, ids)| Update { kind, at, ids });
    let copies = prop::collection::vec(prop::array::uniform3(0..60u32), 0..3);
    (copies, prop::collection::vec(update, 0..4), numbers(6), numbers(6), numbers(4)).prop_map(
        |(copies, updates, positions, mut sequences, wanted)| {
            sequences.resize(positions.len(), 0);
            let tokens = sequences.clone();
            BatchHeader { copies, updates, tokens, positions, sequences, wanted }
        },
    )
}

proptest! {
    #[test]
    fn orders_come_back_as_they_were(order in order(), rows in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut bytes = Vec::new();
        order.write(&mut bytes);
        bytes.extend_from_slice(&rows);
        prop_assert_eq!(BatchHeader::read(&bytes), Some((order, &rows[..])));
    }

    #[test]
    fn damaged_bytes_are_no_orders_or_others(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some((order, rows)) = BatchHeader::read(&bytes) {
            let mut again = Vec::new();
            order.write(&mut again);
            again.extend_from_slice(rows);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn wishes_come_back_as_they_were(
        numbers in prop::collection::vec(any::<u32>(), 9),
        budget in any::<Option<u64>>(),
    ) {
        let wish = Wish {
            identity: [numbers[0] as u8; 32],
            stage: numbers[1],
            bounds: numbers[2..5].to_vec(),
            token_bytes: numbers[5..7].to_vec(),
            shape: KvShape {
                context: numbers[7],
                sequences: numbers[8],
                chunk: 3,
                budget: budget.map_or(KvBudget::WorstCase, KvBudget::Bytes),
            },
        };
        prop_assert_eq!(Wish::read(&wish.write()), Some(wish));
    }
}

fn wish() -> Wish {
    let cuts = Cuts::even(named().program(), 2).unwrap();
    let shape = KvShape { context: 64, sequences: 2, chunk: 8, budget: KvBudget::WorstCase };
    let token_bytes = (1..=2).map(|stage| cuts.token_bytes(stage) as u32).collect();
    Wish { identity: [7; 32], stage: 2, bounds: cuts.bounds().to_vec(), token_bytes, shape }
}

/// The last row that comes of tokens at these positions, which a new caller sends for block 0.
fn row_of(second: &Second, positions: std::ops::Range<u32>) -> Vec<u8> {
    let mut stream = TcpStream::connect(second.address).unwrap();
    prepare(&stream).unwrap();
    call(&mut stream, &StageKey::none(), &wish()).unwrap();
    let count = positions.len();
    let order = BatchHeader {
        copies: Vec::new(),
        updates: [0, 1].map(|kind| Update { kind, at: 0, ids: vec![0] }).to_vec(),
        tokens: vec![3; count],
        positions: positions.clone().collect(),
        sequences: vec![0; count],
        wanted: vec![count as u32 - 1],
    };
    let mut bytes = Vec::new();
    order.write(&mut bytes);
    let floats = wish().token_bytes[0] as usize / 4;
    let rows: Vec<u8> =
        positions.flat_map(|at| vec![1.0 + at as f32; floats]).flat_map(f32::to_le_bytes).collect();
    send(&mut stream, STEP, &[&bytes, &rows]).unwrap();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        let [length @ .., kind] = head;
        let mut contents = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut contents).unwrap();
        assert!([ALIVE, ROWS].contains(&kind), "{kind}: {}", String::from_utf8_lossy(&contents));
        if kind == ROWS {
            return contents;
        }
    }
}

/// A caller may map blocks that it has not written: they hold nothing of the caller before.
#[test]
fn blocks_of_one_caller_are_not_read_by_the_next() {
    let fresh = row_of(&Second::any(), 7..8);
    let second = Second::any();
    let whole = row_of(&second, 0..8);
    assert!(whole != fresh, "what is cached shows in the rows");
    assert_eq!(row_of(&second, 7..8), fresh);
}

/// A caller that knows the key may still send nonsense: its connection ends, and the next one is served.
#[test]
fn nonsense_from_a_caller_ends_its_connection_alone() {
    let second = Second::any();
    let wish = wish();
    let mut rng = fastrand::Rng::with_seed(11);
    for round in 0..60 {
        let mut stream = TcpStream::connect(second.address).unwrap();
        prepare(&stream).unwrap();
        call(&mut stream, &StageKey::none(), &wish).unwrap();
        let n = |rng: &mut fastrand::Rng, most: u32| {
            if rng.u8(0..4) == 0 { rng.u32(..) } else { rng.u32(0..most) }
        };
        let tokens = rng.usize(0..10);
        let order = BatchHeader {
            copies: (0..rng.usize(0..2)).map(|_| [n(&mut rng, 3), n(&mut rng, 9), n(&mut rng, 9)]).collect(),
            updates: (0..rng.usize(0..4))
                .map(|_| Update {
                    kind: n(&mut rng, 3),
                    at: n(&mut rng, 10),
                    ids: vec![n(&mut rng, 9); rng.usize(0..5)],
                })
                .collect(),
            tokens: (0..tokens).map(|_| n(&mut rng, VOCAB)).collect(),
            positions: (0..tokens).map(|_| n(&mut rng, 64)).collect(),
            sequences: (0..tokens).map(|_| n(&mut rng, 3)).collect(),
            wanted: (0..rng.usize(0..12)).map(|_| n(&mut rng, 10)).collect(),
        };
        let mut bytes = Vec::new();
        order.write(&mut bytes);
        let rows = vec![rng.u8(..); if round % 3 == 0 { rng.usize(0..100) } else { tokens * 4 }];
        // The stage may have ended the connection before all is sent.
        let _ = send(&mut stream, if round % 10 == 0 { 9 } else { STEP }, &[&bytes, &rows]);
    }
    let mut engine = ready(&second);
    let a = engine.create().unwrap();
    let mut logits = Vec::new();
    engine.append(a, &[5, 6, 7], &mut logits).unwrap();
    assert_eq!(logits, expected(&[5, 6, 7]));
}
