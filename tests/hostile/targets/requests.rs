//! Requests to a running engine: sequences that come, grow, fork, shrink and go, with any tokens, in any
//! order; and sampling.

use super::edit::{Edit, edits};
use super::sound::sound_image;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{
    Engine, EngineConfig, ErrorKind, LogitRow, LogitRows, Sampler, SamplerParams, SeqId, SequenceTokens,
    Steps,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Mutex;

/// Tokens that a sequence may have: two blocks of cache and a bit.
const CONTEXT: u32 = 40;
/// Sequences at once.
const SEQUENCES: usize = 3;
/// Prefixes that are remembered.
const MAX_KNOWN: usize = 4096;

/// An engine, and what it has said so far.
struct Served {
    engine: Engine,
    /// Hash of the logits after these tokens, whoever asked for them and in whatever steps.
    known: HashMap<Vec<u32>, [u8; 32]>,
}

/// A sequence and what it must hold.
type Sequence = (SeqId, Vec<u32>);

thread_local! {
    static SERVED: RefCell<Option<Served>> = const { RefCell::new(None) };
}

/// Instructions of 8 bytes, see [`edits`]; each is a request. Whatever came before, the same tokens have the
/// same logits, to the bit.
pub fn requests(data: &[u8]) {
    // An engine that a panic left in the midst of a request is not used again.
    let mut served = SERVED.take().unwrap_or_else(|| {
        let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
        let config = EngineConfig {
            pool,
            context: Some(CONTEXT),
            sequences: SEQUENCES as u32,
            chunk: None,
            ..EngineConfig::default()
        };
        let engine = Engine::new(sound_image(), config).expect("a sound plan");
        Served { engine, known: HashMap::new() }
    });
    let mut sequences: Vec<Sequence> = Vec::new();
    edits(data).for_each(|request| serve(&mut served, &mut sequences, &request));
    sequences.iter().for_each(|(id, _)| served.engine.drop_sequence(*id));
    assert_all_is_free(&mut served.engine);
    if served.known.len() > MAX_KNOWN {
        served.known.clear();
    }
    SERVED.set(Some(served));
}

fn serve(served: &mut Served, sequences: &mut Vec<Sequence>, request: &Edit) {
    let engine = &mut served.engine;
    let Edit { part, how, at, value } = *request;
    let index = usize::from(how) % sequences.len().max(1);
    match (part % 8, sequences.get_mut(index)) {
        (0, _) | (_, None) => match engine.create() {
            Ok(id) => sequences.push((id, Vec::new())),
            Err(error) => assert!(sequences.len() == SEQUENCES, "{error}"),
        },
        (1, Some((id, tokens))) => {
            let at = at % (CONTEXT as usize + 2);
            if let Ok(copy) = engine.fork(*id, at as u32) {
                let copied = tokens[..at].to_vec();
                sequences.push((copy, copied));
            }
        }
        (2, Some((id, tokens))) => {
            let length = at % (CONTEXT as usize + 2);
            match engine.truncate(*id, length as u32) {
                Ok(()) => {
                    assert!(length <= tokens.len());
                    tokens.truncate(length);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::BadInput, "{error}"),
            }
        }
        (3, Some((id, _))) => {
            let id = *id;
            engine.drop_sequence(id);
            sequences.remove(index);
            assert!(engine.length(id).is_err());
        }
        (4, _) => sample(value, at, how),
        _ => step(served, sequences, request),
    }
    for (id, tokens) in sequences {
        assert_eq!(served.engine.length(*id).expect("it is there"), tokens.len() as u32);
    }
}

/// Tokens for one or several sequences in one step; some are past the vocabulary, some too many.
fn step(served: &mut Served, sequences: &mut [Sequence], &Edit { part, how, at, value }: &Edit) {
    let Served { engine, known } = served;
    let vocab = engine.model().vocab;
    let token =
        |n: usize| if at == 0xffff { u32::MAX - n as u32 } else { (value as usize + n * n) as u32 % vocab };
    let count = at % 24;
    let new: Vec<u32> = (0..count).map(token).collect();
    let first = usize::from(how) % sequences.len();
    let mut chosen: Vec<usize> = if part & 8 == 0 { vec![first] } else { (0..sequences.len()).collect() };
    if part & 16 != 0 && part & 32 != 0 {
        chosen.push(first);
    }
    // Each entry wants other rows.
    let wanted = [LogitRows::Last, LogitRows::All, LogitRows::None, LogitRows::LastN(value % 30)];
    let entry = |(at, n): (usize, &usize)| {
        let logits = wanted[(usize::from(part >> 6) + at) % wanted.len()];
        SequenceTokens { sequence: sequences[*n].0, tokens: &new, logits, allowed: &[] }
    };
    let work: Vec<SequenceTokens<'_>> = chosen.iter().enumerate().map(entry).collect();
    let rows = Mutex::new(Vec::new());
    let take = |_: usize, row: LogitRow<'_>| {
        rows.lock().expect("no panic").push((row.entry, row.token, hash(row.logits)));
    };
    // In one run, if it is one for which there is room; or in as many as it takes.
    let result = if how & 0x40 == 0 { engine.step(&work, &take) } else { engine.extend(&work, &take) };
    let rows = rows.into_inner().expect("no panic");
    if let Err(error) = result {
        // Errors are found before anything runs.
        assert!(error.kind() == ErrorKind::BadInput && rows.is_empty(), "{error}");
        return;
    }
    chosen.iter().for_each(|n| sequences[*n].1.extend_from_slice(&new));
    for (entry, token, hash) in rows {
        let tokens = &sequences[chosen[entry]].1;
        let prefix = tokens[..tokens.len() - count + token + 1].to_vec();
        let first = *known.entry(prefix).or_insert(hash);
        assert!(first == hash, "other logits after {tokens:?}");
    }
}

fn hash(row: &[f32]) -> [u8; 32] {
    let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
    *blake3::hash(&bytes).as_bytes()
}

/// Any parameters, any logits.
fn sample(value: u32, at: usize, how: u8) {
    let any = |n: u32| f32::from_bits(value.rotate_left(n * 5) ^ n);
    let small = |n: u32| (value >> n & 15) as f32 / 15.0;
    let wild = how & 1 == 0;
    let params = SamplerParams {
        temperature: if wild { any(0) } else { small(0) },
        top_k: (how & 2 == 0).then_some(at),
        top_p: if wild { any(1) } else { small(4) },
        min_p: if wild { any(2) } else { small(8) },
        repetition_penalty: if wild { any(3) } else { small(12) },
        presence_penalty: any(4),
        frequency_penalty: any(5),
        logit_bias: vec![(value % 9, any(6)), (u32::from(how) % 9, f32::NEG_INFINITY)],
        seed: Some(value.into()),
    };
    let mut sampler = match Sampler::new(params, 8) {
        Ok(sampler) => sampler,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    sampler.prompt(&[value % 8, 7]);
    for n in 0..3u32 {
        let logits: Vec<f32> =
            (0..8).map(|i| if how & 4 == 0 { any(i + n) } else { small(i * 3 % 28) * 20.0 }).collect();
        match sampler.sample(&logits, n.into()) {
            Ok(token) => assert!(token < 8),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// The sequences that are gone hold nothing back.
fn assert_all_is_free(engine: &mut Engine) {
    let tokens = vec![1; CONTEXT as usize];
    let ids: Vec<SeqId> = (0..SEQUENCES).map(|_| engine.create().expect("all are free")).collect();
    let work: Vec<SequenceTokens<'_>> = ids.iter().map(|id| SequenceTokens::silent(*id, &tokens)).collect();
    engine.extend(&work, &()).expect("there is room for all");
    ids.into_iter().for_each(|id| engine.drop_sequence(id));
}
