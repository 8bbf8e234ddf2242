//! Drafts change no token, whatever they say: greedy texts, drawn ones, ones with penalties, ones that are
//! held to a form.
//!
//! `KERNMILL_DRAFT_TOKENS` is how many tokens each test compares in all; a few thousand by default.

use super::{Case, PRESETS, engine, options, shapes};
use crate::harness::{Model, answer};
use crate::hostile::targets::small_model::ModelShape;
use crate::smollm2::model;
use fastrand::Rng;
use kernmill_compiler::passes::quant::Preset;
use kernmill_plan::target::Level;
use kernmill_runtime::draft::{Drafter, Guess, MAX_DRAFT, SuffixDrafter};
use kernmill_runtime::kv::KvBudget;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{DraftStats, Engine, EngineConfig, Guide, GuideError, SamplerParams, TokenMask};
use kernmill_serve::{Answer, EndReason, Finish, Request, SchedulerConfig, Serving};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A drafter that is told the text, and makes mistakes.
#[derive(Clone, Debug)]
pub struct ForesightDrafter {
    text: Vec<u32>,
    at: usize,
    /// How many of a thousand tokens are wrong.
    wrong: u32,
    vocab: u32,
    rng: Rng,
}

impl Drafter for ForesightDrafter {
    fn follow(&mut self, tokens: &[u32]) {
        self.at += tokens.len();
    }

    fn guess(&mut self, most: usize, tokens: &mut Vec<u32>) -> Guess {
        let rest = self.text.get(self.at..).unwrap_or_default();
        for token in rest.iter().take(most) {
            let is_wrong = self.rng.u32(..1000) < self.wrong;
            tokens.push(if is_wrong { self.rng.u32(..self.vocab + 3) } else { *token });
        }
        // It is always as sure as can be.
        Guess { evidence: 1000 }
    }

    fn is_free(&self) -> bool {
        self.wrong != 300
    }

    fn fork(&self) -> Box<dyn Drafter> {
        Box::new(self.clone())
    }
}

/// Texts in which a token is never followed by one that is close to it, and which end behind a hundred.
#[derive(Clone, Debug)]
struct Spread {
    vocab: u32,
    last: u32,
    left: u32,
}

impl Guide for Spread {
    fn allowed(&mut self) -> Result<Option<TokenMask>, GuideError> {
        let mut mask = TokenMask::new(self.vocab as usize, true);
        (0..8).for_each(|near| mask.set((self.last + near) % self.vocab, false));
        Ok((self.left > 0).then_some(mask))
    }

    fn accept(&mut self, token: u32) -> Result<(), GuideError> {
        (self.last, self.left) = (token, self.left - 1);
        Ok(())
    }

    /// Behind every token that is a multiple of 16 the two before it must come.
    fn forced(&mut self) -> Vec<u32> {
        let is_free = !self.last.is_multiple_of(16) || self.last < 16 || self.left < 3;
        if is_free { Vec::new() } else { vec![self.last - 1, self.last - 2] }
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

fn serving(engine: Engine) -> Serving {
    Serving::new(engine, SchedulerConfig::default()).unwrap()
}

/// A text without drafts of what it repeats.
fn plain(prompt: &[u32], tokens: usize) -> Request {
    Request { drafts: false, ..Request::greedy(prompt.to_vec(), tokens as u32) }
}

fn generate(serving: &mut Serving, request: &Request) -> Answer {
    let made = answer(serving, request.clone());
    let kv = serving.engine().kv();
    assert_eq!(kv.free, kv.blocks, "every block has been given back");
    made
}

/// Compares texts of the prompts with drafts to those without, in all kinds of sampling and with drafters
/// that know everything, that know nothing, and that find what repeats itself. Returns how many tokens were
/// compared, and what came of the drafts.
pub fn compare(
    serving: &mut Serving,
    prompts: &[Vec<u32>],
    each: usize,
    wanted: usize,
) -> (usize, DraftStats) {
    let vocab = serving.engine().model().vocab;
    let mut rng = Rng::with_seed(29);
    let (mut tokens, mut all) = (0, DraftStats::default());
    for (round, prompt) in prompts.iter().cycle().enumerate() {
        if tokens >= wanted && round >= 6 {
            break;
        }
        let drawn = SamplerParams {
            temperature: 0.8,
            top_p: 0.9,
            top_k: (round % 2 == 0).then_some(20),
            seed: Some(round as u64),
            ..SamplerParams::default()
        };
        let sampler = match round % 3 {
            0 => SamplerParams::default(),
            1 => drawn,
            _ => SamplerParams { repetition_penalty: 1.1, presence_penalty: 0.2, ..drawn },
        };
        let guide = (round % 5 == 4)
            .then(|| Box::new(Spread { vocab, last: 0, left: each as u32 }) as Box<dyn Guide>);
        let plain = Request { sampler, guide, ..plain(prompt, each) };
        let expected = generate(serving, &plain);
        assert_eq!(expected.drafts, DraftStats::default());
        let text = [prompt, &expected.tokens[..]].concat();
        let told = |wrong| -> Box<dyn Drafter> {
            Box::new(ForesightDrafter {
                text: text.clone(),
                at: 0,
                wrong,
                vocab,
                rng: Rng::with_seed(round as u64),
            })
        };
        for drafter in [told(0), told(50), told(300), told(1000), SuffixDrafter::boxed()] {
            let what = format!("round {round}, {drafter:?}");
            let found = generate(serving, &Request { drafter: Some(drafter), ..plain.clone() });
            assert_eq!(found.tokens, expected.tokens, "{what}");
            assert_eq!(found.finish, expected.finish, "{what}");
            assert_eq!(found.stepped, expected.stepped, "{what}");
            assert!(found.steps <= expected.steps, "{what}");
            assert!(found.drafts.accepted <= found.drafts.tokens);
            tokens += found.tokens.len();
            all.tokens += found.drafts.tokens;
            all.accepted += found.drafts.accepted;
        }
        // A text that ends among tokens of a draft ends where it ends without.
        if let Some(stop) = expected.tokens.get(rng.usize(0..each)) {
            let plain = Request { stop_tokens: vec![*stop], ..plain };
            let expected = generate(serving, &plain);
            let found = generate(serving, &Request { drafter: Some(told(0)), ..plain });
            assert_eq!((found.tokens, found.finish), (expected.tokens, expected.finish), "round {round}");
        }
    }
    (tokens, all)
}

/// How many tokens a test compares.
pub fn wanted(usual: usize) -> usize {
    let given = std::env::var("KERNMILL_DRAFT_TOKENS").ok();
    given.map_or(usual, |count| count.parse().expect("KERNMILL_DRAFT_TOKENS is a number"))
}

#[test]
fn drafts_change_no_token_of_any_shape() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let mut all = DraftStats::default();
    for (name, shape) in shapes() {
        let case = Case::new(&shape, 23, 60);
        for preset in PRESETS {
            let image = case.image(&case.compile(&options(preset, level)));
            let prompts: Vec<Vec<u32>> =
                [1, 30, 60].iter().map(|length| case.tokens[..*length].to_vec()).collect();
            let mut engine = serving(engine(&image, 2, 1, None));
            let (tokens, stats) = compare(&mut engine, &prompts, 40, wanted(20_000) / 20);
            assert!(tokens >= 1000, "{name}, {}: {tokens}", preset.name());
            all.tokens += stats.tokens;
            all.accepted += stats.accepted;
        }
    }
    assert!(all.accepted > 1000 && all.tokens > all.accepted, "{all:?}");
}

#[test]
fn drafts_change_no_token_where_the_context_ends() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let (_, shape) = shapes().swap_remove(0);
    let case = Case::new(&shape, 24, 60);
    let image = case.image(&case.compile(&options(PRESETS[1], level)));
    // The context ends within the text, so that drafts meet its end.
    let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
    let config = EngineConfig { pool, context: Some(70), ..EngineConfig::default() };
    let mut engine = serving(Engine::new(&image, config).unwrap());
    let (tokens, _) = compare(&mut engine, std::slice::from_ref(&case.tokens), 40, 100);
    assert!(tokens > 100, "{tokens}");
}

/// A draft that wants more blocks than there are is left out, and the text goes on without.
#[test]
fn drafts_give_way_where_blocks_run_out() {
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let case = Case::new(&ModelShape::mini_llama(), 25, 60);
    let image = case.image(&case.compile(&options(Preset::Faithful, level)));
    let mut roomy = serving(engine(&image, 1, 1, None));
    // Greedy texts of random weights soon go round in circles: this one is drawn.
    let sampler = SamplerParams { temperature: 1.0, seed: Some(3), ..SamplerParams::default() };
    let mut ends = Request { sampler, ..plain(&case.tokens, 40) };
    let whole = generate(&mut roomy, &ends);
    let is_new = |at: &usize| !whole.tokens[..*at].contains(&whole.tokens[*at]);
    let stop = (8..16).find(is_new).expect("a token that did not come before");
    ends.stop_tokens = vec![whole.tokens[stop]];
    let expected = generate(&mut roomy, &ends);
    assert_eq!(expected.tokens, whole.tokens[..stop]);
    // Five blocks hold 80 tokens: the text until its end, and no draft of all that is foretold.
    let budget = KvBudget::Bytes(5 * roomy.engine().kv().block_bytes[0]);
    let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
    let config = EngineConfig { pool, kv: budget, ..EngineConfig::default() };
    let mut narrow = serving(Engine::new(&image, config).unwrap());
    assert_eq!(narrow.engine().kv().blocks[0], 5);
    let text = [&case.tokens[..], &whole.tokens[..]].concat();
    let vocab = narrow.engine().model().vocab;
    ends.drafter = Some(Box::new(ForesightDrafter { text, at: 0, wrong: 0, vocab, rng: Rng::with_seed(1) }));
    let found = generate(&mut narrow, &ends);
    assert_eq!((found.tokens, found.finish), (expected.tokens, expected.finish));
    // Without more blocks, the text itself ends where it has no room.
    ends.stop_tokens.clear();
    assert_eq!(generate(&mut narrow, &ends).finish, Finish::Ended(EndReason::OutOfMemory));
}

#[test]
fn drafts_change_no_token_of_nano() {
    let nano = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano");
    let mut engine = serving(Model::open(&nano).engine(Preset::Faithful, EngineConfig::default()));
    let mut rng = Rng::with_seed(31);
    let prompts: Vec<Vec<u32>> =
        [3, 40, 200].map(|length| (0..length).map(|_| rng.u32(..3000)).collect()).to_vec();
    let (tokens, drafts) = compare(&mut engine, &prompts, 120, wanted(20_000));
    assert!(tokens >= 5000 && drafts.accepted > 1000, "{tokens}, {drafts:?}");
}

/// By a clock that gives every step the same time, drafts are as long as they may be.
#[test]
fn the_longest_drafts_change_no_token_of_nano() {
    let nano = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano");
    let engine = Model::open(&nano).engine(Preset::Faithful, EngineConfig::default());
    let time = AtomicU64::new(0);
    let clock = Box::new(move || Duration::from_millis(time.fetch_add(1, Ordering::Relaxed)));
    let mut serving = Serving::with_clock(engine, SchedulerConfig::default(), clock).unwrap();
    let mut rng = Rng::with_seed(33);
    let prompts: Vec<Vec<u32>> =
        [5, 300].map(|length| (0..length).map(|_| rng.u32(..3000)).collect()).to_vec();
    let (tokens, drafts) = compare(&mut serving, &prompts, 330, wanted(20_000));
    assert!(tokens >= 5000 && drafts.accepted > 1000, "{tokens}, {drafts:?}");
    let accepted = &serving.stats().accepted_at;
    assert!(accepted.len() == MAX_DRAFT && accepted[MAX_DRAFT - 1] > 0, "{accepted:?}");
}

#[test]
fn drafts_change_no_token_of_smollm2() {
    let Some(path) = model("equality::drafts::drafts_change_no_token_of_smollm2") else { return };
    let mut engine = serving(Model::open(&path).engine(Preset::Faithful, EngineConfig::default()));
    let mut rng = Rng::with_seed(32);
    let prompts: Vec<Vec<u32>> =
        [3, 40].map(|length| (0..length).map(|_| rng.u32(..49_000)).collect()).to_vec();
    let (tokens, drafts) = compare(&mut engine, &prompts, 30, wanted(20_000) / 100);
    assert!(tokens >= 200 && drafts.accepted > 50, "{tokens}, {drafts:?}");
}
