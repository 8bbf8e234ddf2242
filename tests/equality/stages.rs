//! A model in several stages gives the interpreter's logits bit for bit, with as many batches on their way as
//! there are stages.

use super::{Case, PRESETS, options, shapes};
use crate::hostile::targets::small_model::ModelShape;
use kernmill_plan::target::Level;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::stages::{StageKey, StageServer, StageServerConfig, StagesConfig};
use kernmill_runtime::{Engine, EngineConfig, LogitRow, PlanImage, SequenceTokens};
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The stages of a model but the first, on threads of this process, until they are dropped.
pub struct Others {
    /// Where the second one waits.
    pub address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Others {
    /// The stages from the second on; that one waits at `address`, where port 0 takes a free one.
    pub fn at(address: SocketAddr, image: &PlanImage, stages: u32) -> Others {
        let has_ended = Arc::new(AtomicBool::new(false));
        let bind = |address| {
            let listener = TcpListener::bind(address).unwrap();
            let address = listener.local_addr().unwrap();
            (listener, address)
        };
        let mut next: Option<SocketAddr> = None;
        let mut threads = Vec::new();
        for number in (2..=stages).rev() {
            let free = SocketAddr::from(([127, 0, 0, 1], 0));
            let (listener, own) = bind(if number == 2 { address } else { free });
            let peer = next.replace(own).map(|peer| peer.to_string());
            let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
            let config = StageServerConfig { number, stages, peer, key: StageKey::none(), pool };
            let server = StageServer::new(image.clone(), config).unwrap();
            let ended = has_ended.clone();
            threads.push(std::thread::spawn(move || server.run(listener, &ended).unwrap()));
        }
        Others { address: next.unwrap(), has_ended, threads }
    }

    pub fn start(image: &PlanImage, stages: u32) -> Others {
        Others::at(SocketAddr::from(([127, 0, 0, 1], 0)), image, stages)
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// An engine of the first stage that has reached the others.
fn first(image: &PlanImage, others: &Others, stages: u32) -> Engine {
    let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
    let config = EngineConfig { pool, context: Some(2304), sequences: stages, ..EngineConfig::default() };
    let peer = others.address.to_string();
    let engine =
        Engine::with_stages(image, config, &StagesConfig { stages, peer, key: StageKey::none() }).unwrap();
    engine.wait_for_stages(Duration::from_secs(60)).unwrap();
    engine
}

/// Every sequence has the same text, in pieces of its own; a step of each is on its way at any time. Compares
/// every row with the interpreter's; how many there were.
pub(super) fn compare(case: &Case, image: &PlanImage, stages: u32, expected: &[f32], what: &str) -> usize {
    let others = Others::start(image, stages);
    let mut engine = first(image, &others, stages);
    let vocab = case.graph.vocab;
    let pieces: [&[usize]; 3] = [&[20, 1, 2, 1, 31], &[1, 1, 32, 5], &[3, 1]];
    let mut sequences: Vec<_> =
        (0..stages).map(|n| (engine.create().unwrap(), 0, pieces[n as usize % 3].iter().cycle())).collect();
    let mut away: VecDeque<(usize, usize)> = VecDeque::new();
    let (mut turns, mut rows) = (0, 0);
    loop {
        let n = turns % sequences.len();
        turns += 1;
        let (sequence, at, pieces) = &mut sequences[n];
        let begins = *at < case.tokens.len() && !away.iter().any(|(other, _)| *other == n);
        if begins {
            let to = case.tokens.len().min(*at + pieces.next().unwrap());
            let tokens = &case.tokens[*at..to];
            // Some batches want a part of their rows, or none.
            let entry = match turns % 5 {
                0 => SequenceTokens::silent(*sequence, tokens),
                1 | 2 => SequenceTokens::last(*sequence, tokens),
                _ => SequenceTokens::all(*sequence, tokens),
            };
            engine.begin_step(&[entry]).unwrap();
            away.push_back((n, *at));
            *at = to;
        }
        // The oldest batch ends when there are as many as may be, or this sequence has nothing to begin.
        if !begins || away.len() == sequences.len() {
            let Some((_, from)) = away.pop_front() else {
                match sequences.iter().all(|(_, at, _)| *at == case.tokens.len()) {
                    true => return rows,
                    false => continue,
                }
            };
            let got = Mutex::new(Vec::new());
            engine
                .end_step(&|_: usize, row: LogitRow<'_>| {
                    got.lock().unwrap().push((row.token, row.logits.to_vec()));
                })
                .unwrap();
            for (token, logits) in got.into_inner().unwrap() {
                let own = &expected[(from + token) * vocab..][..vocab];
                assert!(
                    logits.iter().zip(own).all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{what}: {from}, {token}"
                );
                rows += 1;
            }
        }
    }
}

#[test]
fn stages_give_the_interpreters_bits() {
    let levels = Level::supported();
    let (mut cases, mut longest) = (0, 0);
    let deep = |shape: ModelShape| ModelShape { layers: 4, ..shape };
    let more =
        [("deep gpt-oss", deep(ModelShape::mini_gpt_oss())), ("deep llama", deep(ModelShape::mini_llama()))];
    for (at, (name, shape)) in shapes().into_iter().chain(more).enumerate() {
        let case = Case::new(&shape, 23, 90);
        for (n, preset) in PRESETS.into_iter().enumerate() {
            let expected = case.expected(preset);
            let level = levels[(at + n) % levels.len()];
            let image = case.image(&case.compile(&options(preset, level))).with_identity([3; 32]);
            let layers = image.program().model.kv.layers.len() as u32;
            for stages in 2..=layers.min(3) {
                let what = format!("{name}, {}, {}, {stages} stages", preset.name(), level.name());
                assert!(compare(&case, &image, stages, &expected, &what) > 40, "{what}");
                (cases, longest) = (cases + 1, longest.max(stages));
            }
        }
    }
    assert!(cases > 20 && longest == 3, "{cases} cases, {longest} stages");
}
