//! The references for the cache: fresh runs on an engine without it, and a list of all texts that it can have
//! seen.

use crate::harness::adapter;
use kernmill_checkpoint::peft::{CONFIG_FILE, TENSOR_FILE};
use kernmill_runtime::adapter::Adapter;
use kernmill_runtime::kv::Eviction;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{AdapterUse, Engine, EngineConfig, PlanImage, SequenceTokens, Steps};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

pub const SEQUENCES: usize = 64;
pub const CONTEXT: usize = 256;
pub const CHUNK: usize = 64;
pub const BLOCK: usize = 16;
/// Adapters: directories of `gptoss-base`, and scales.
pub const CONTENTS: [(&str, f32); 4] =
    [("qv", 1.0), ("everything", 1.0), ("qv", -0.5), ("attention-rslora", 0.75)];

/// Which adapters' contents a sequence has, with weights in halves.
pub type Uses = Vec<(usize, u8)>;

/// How an engine of a round is made.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub budget: u64,
    pub eviction: Eviction,
    /// Whether there is a store on disk behind the cache.
    pub has_disk: bool,
}

/// Counts of events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub begun: usize,
    pub found: usize,
    pub found_again: usize,
    pub from_disk: usize,
    pub restarts: usize,
    /// Most sequences at once.
    pub most: usize,
    pub compared: usize,
    pub refused: usize,
    pub forgotten: usize,
    pub evicted: usize,
    /// Counts by the engines themselves.
    pub lookups: usize,
    pub said_found: usize,
}

/// The bits of the logits after each token of a text.
pub type Rows = Rc<Vec<Vec<u32>>>;

/// Texts whose logits are kept.
const KEPT: usize = 400;

/// Runs texts alone, each by a sequence that takes no part in the cache.
pub struct Fresh {
    engine: Engine,
    files: Vec<(String, Vec<u8>)>,
    known: HashMap<(Uses, Vec<u32>), Rows>,
}

impl Fresh {
    pub fn new(image: &PlanImage) -> Fresh {
        let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
        let engine = Engine::new(
            image,
            EngineConfig { pool, context: Some(CONTEXT as u32), ..EngineConfig::default() },
        );
        let read = |(name, _): &(&str, f32)| {
            let config = std::fs::read_to_string(adapter(name).join(CONFIG_FILE)).unwrap();
            (config, std::fs::read(adapter(name).join(TENSOR_FILE)).unwrap())
        };
        let files = CONTENTS.iter().map(read).collect();
        let mut fresh = Fresh { engine: engine.unwrap(), files, known: HashMap::new() };
        for n in 0..CONTENTS.len() {
            let adapter = fresh.adapter(&fresh.engine, n);
            fresh.engine.adapter_store_mut().insert(&n.to_string(), adapter).unwrap();
        }
        fresh
    }

    /// Bytes of a cache in which the sequences of a schedule never want for room.
    pub fn worst_case(&self, image: &PlanImage) -> u64 {
        let config = EngineConfig {
            context: Some(CONTEXT as u32),
            sequences: SEQUENCES as u32,
            chunk: Some(CHUNK as u32),
            ..EngineConfig::default()
        };
        let usage = Engine::new(image, config).unwrap().kv();
        usage.blocks.iter().zip(usage.block_bytes).map(|(n, bytes)| *n as u64 * bytes).sum()
    }

    /// Some contents, read for an engine.
    pub fn adapter(&self, engine: &Engine, contents: usize) -> Adapter {
        let (config, tensors) = &self.files[contents];
        let loader = engine.adapter_store().loader().unwrap();
        let open = loader.open_bytes(Path::new("memory"), config, tensors.clone(), CONTENTS[contents].1);
        open.unwrap().run().unwrap()
    }

    /// The logits of a text that runs alone.
    pub fn rows(&mut self, uses: &Uses, text: &[u32]) -> Rows {
        if self.known.len() > KEPT {
            self.known.clear();
        }
        let engine = &mut self.engine;
        let run = || {
            let ask = |(n, halves): &(usize, u8)| AdapterUse {
                name: n.to_string(),
                weight: f32::from(*halves) / 2.0,
            };
            let id = engine.create_with(&uses.iter().map(ask).collect::<Vec<_>>()).unwrap();
            let mut rows = Vec::with_capacity(text.len());
            let take = &mut |row: kernmill_runtime::LogitRow<'_>| {
                rows.push(row.logits.iter().map(|logit| logit.to_bits()).collect());
            };
            engine.extend_in_order(&[SequenceTokens::all(id, text)], take).unwrap();
            engine.drop_sequence(id);
            Rc::new(rows)
        };
        Rc::clone(self.known.entry((uses.clone(), text.to_vec())).or_insert_with(run))
    }
}

/// All texts that sequences have held, by adapters and tenant: what a cache that forgets nothing could know.
#[derive(Default)]
pub struct Texts {
    /// Place of a token behind a place; 0 is no place.
    next: HashMap<(u32, u32), u32>,
    roots: HashMap<(Uses, u8), u32>,
    places: u32,
}

impl Texts {
    fn root(&mut self, uses: &Uses, tenant: u8) -> u32 {
        let places = &mut self.places;
        *self.roots.entry((uses.clone(), tenant)).or_insert_with(|| {
            *places += 1;
            *places
        })
    }

    /// A sequence holds a text; its place.
    pub fn add(&mut self, uses: &Uses, tenant: u8, text: &[u32]) -> u32 {
        let root = self.root(uses, tenant);
        self.go_on(root, text)
    }

    /// A sequence at a place holds more; its place then.
    pub fn go_on(&mut self, mut place: u32, tokens: &[u32]) -> u32 {
        for token in tokens {
            let places = &mut self.places;
            place = *self.next.entry((place, *token)).or_insert_with(|| {
                *places += 1;
                *places
            });
        }
        place
    }

    /// How much of a text was ever held by sequences of the tenant, or of the tenant that is everybody.
    pub fn longest(&self, uses: &Uses, tenant: u8, text: &[u32]) -> usize {
        let of = |tenant: u8| {
            let Some(mut place) = self.roots.get(&(uses.clone(), tenant)).copied() else { return 0 };
            let knows = |token: &&u32| {
                let next = self.next.get(&(place, **token));
                next.map(|next| place = *next).is_some()
            };
            text.iter().take_while(knows).count()
        };
        of(tenant).max(of(0))
    }
}
