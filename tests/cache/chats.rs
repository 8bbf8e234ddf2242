//! Chats and agents, counted: what they have said before is not computed again.

use crate::equality::Case;
use crate::harness::{Model, answer as made, answers as together};
use crate::hostile::targets::small_model::ModelShape;
use fastrand::Rng;
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::CompilerOptions;
use kernmill_kv_store::{Store, StoreOptions};
use kernmill_plan::target::Level;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{
    Engine, EngineConfig, KvBudget, LogitRow, PlanImage, PrefixStats, SequenceTokens, Steps,
};
use kernmill_serve::{Answer, Request, SchedulerConfig, Serving};
use std::path::Path;

const CONTEXT: usize = 8192;
/// Tokens that are there before the chat begins.
const HISTORY: usize = 4096;
const TURNS: usize = 20;

/// Nano with its weights, whose window is 64, and a random model like GPT-OSS, whose window is 128.
fn images() -> [(&'static str, PlanImage); 2] {
    let mut nano = Model::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("model-specs/nano"));
    // It was trained on shorter texts; the cache does not mind.
    nano.graph.max_context = CONTEXT;
    let shape =
        ModelShape { window: Some(128), max_context: CONTEXT, layers: 4, ..ModelShape::mini_gpt_oss() };
    let case = Case::new(&shape, 7, 0);
    let level = *Level::supported().last().expect("tests run on x86-64-v3 or better");
    let options = CompilerOptions { preset: Preset::Faithful, ..CompilerOptions::new(level) };
    let random = case.image(&case.compile(&options));
    [("nano", nano.image(Preset::Faithful)), ("random", random)]
}

fn engine(image: &PlanImage, sequences: u32) -> Engine {
    let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
    // Room for all that is said here.
    let kv = KvBudget::Bytes(64 << 20);
    let config =
        EngineConfig { pool, context: Some(CONTEXT as u32), sequences, kv, ..EngineConfig::default() };
    Engine::new(image, config).unwrap()
}

/// An engine with a store in a directory.
fn on_disk(image: &PlanImage, disk: &Path) -> Serving {
    let mut engine = engine(image, 2);
    let layout = engine.kv_layout(&[27; 32]);
    let options = StoreOptions { reserve: 0, ..StoreOptions::default() };
    engine.keep_on_disk(Store::open(&disk.join("store"), options).unwrap(), layout);
    Serving::new(engine, SchedulerConfig::default()).unwrap()
}

fn words(rng: &mut Rng, count: usize) -> Vec<u32> {
    (0..count).map(|_| rng.u32(..96)).collect()
}

/// An answer of `tokens` tokens, and what was counted.
fn answer(serving: &mut Serving, prompt: &[u32], tokens: u32) -> Answer {
    made(serving, Request { drafts: false, ..Request::greedy(prompt.to_vec(), tokens) })
}

/// An answer that nothing was cached for.
fn alone(image: &PlanImage, prompt: &[u32], tokens: u32) -> Answer {
    answer(&mut Serving::new(engine(image, 1), SchedulerConfig::default()).unwrap(), prompt, tokens)
}

#[test]
fn a_chat_of_20_turns_runs_only_what_is_new() {
    for (name, image) in images() {
        let mut rng = Rng::with_seed(27);
        let disk = tempfile::tempdir().unwrap();
        let mut serving = on_disk(&image, disk.path());
        let mut history = words(&mut rng, HISTORY);
        // By turn: the text with its answer.
        let mut ends = Vec::new();
        let mut known = 0;
        for turn in 0..TURNS {
            // Longer than nano's window, or shorter than a block.
            let asked = [90, 7, 23, 48][turn % 4];
            history.extend(words(&mut rng, asked));
            let summary = answer(&mut serving, &history, 17);
            assert_eq!(summary.cached_tokens as usize, known, "{name}, turn {turn}");
            assert_eq!(summary.prompt_tokens as usize, history.len());
            history.extend(&summary.tokens);
            // The last token of an answer has been chosen, and not run.
            known = history.len() - 1;
            ends.push(history.clone());
        }
        // The answer is the one that a fresh run gives.
        let last = &ends[TURNS - 1];
        let fresh = alone(&image, &last[..last.len() - 17], 17);
        assert_eq!((fresh.cached_tokens, &fresh.tokens[..]), (0, &last[last.len() - 17..]), "{name}");

        // The last answer is made again.
        let prompt = last[..last.len() - 17].to_vec();
        assert_eq!(answer(&mut serving, &prompt, 17).cached_tokens as usize, prompt.len() - 1, "{name}");
        // The last question, of 48 tokens, is edited: from its first token on, or inside a block.
        let before = ends[TURNS - 2].len();
        for kept in [0, 1, 5, 40, 47] {
            let mut edited = last[..before + kept].to_vec();
            edited.extend([95; 9]);
            let cached = answer(&mut serving, &edited, 3).cached_tokens as usize;
            // Inside a message, sliding layers go on near its ends alone.
            let least = if kept >= 40 { before + kept } else { before - 1 };
            assert!((least..=before + kept).contains(&cached), "{name}, {kept}: {cached} of {before}");
        }
        // The chat goes on from earlier turns, long after the window has moved on.
        for turn in [0, 9, 18] {
            let mut other = ends[turn].clone();
            let known = other.len() - 1;
            other.extend([94; 30]);
            let cached = answer(&mut serving, &other, 3).cached_tokens as usize;
            // The turn that followed had the last token of the answer too.
            assert!((known..=known + 1).contains(&cached), "{name}, turn {turn}: {cached} of {known}");
        }

        // The next turn, and one from long before, after a restart.
        serving.save_cache();
        drop(serving);
        let mut serving = on_disk(&image, disk.path());
        for turn in [TURNS - 1, 9] {
            let mut next = ends[turn].clone();
            let known = next.len() - 1;
            next.extend([93; 30]);
            let summary = answer(&mut serving, &next, 17);
            let cached = summary.cached_tokens as usize;
            assert!((known..=known + 1).contains(&cached), "{name}, turn {turn} after a restart: {cached}");
            let fresh = alone(&image, &next, 17);
            assert_eq!(summary.tokens, fresh.tokens, "{name}, turn {turn}");
        }
        assert!(serving.prefix_stats().disk_tokens >= ends[TURNS - 1].len() as u64 - 1);
    }
}

/// A checkpoint at the end of every message: a later prompt that leaves the text there finds all before.
#[test]
fn prompts_that_differ_after_a_message_find_all_before() {
    for (name, image) in images() {
        let mut rng = Rng::with_seed(28);
        let mut engine = engine(&image, 2);
        let messages: Vec<Vec<u32>> = [203, 310, 45, 150, 260].map(|count| words(&mut rng, count)).into();
        let prompt = messages.concat();
        for has_checkpoints in [false, true] {
            // Tenants find only what is theirs.
            let tenant = [1 + u8::from(has_checkpoints); 32];
            let begun = engine.begin(&prompt, &[], tenant).unwrap();
            for message in &messages {
                engine.extend(&[SequenceTokens::silent(begun.sequence, message)], &()).unwrap();
                if has_checkpoints {
                    engine.checkpoint(begun.sequence).unwrap();
                }
            }
            engine.checkpoint(begun.sequence).unwrap();
            engine.drop_sequence(begun.sequence);
            for count in 1..messages.len() {
                let boundary = messages[..count].concat().len();
                let mut other = prompt[..boundary].to_vec();
                other.extend([95, 94, 93]);
                let found = engine.cached_tokens(&other, &[], tenant) as usize;
                let without = boundary / 512 * 512;
                assert_eq!(found, if has_checkpoints { boundary } else { without }, "{name}, {count}");
                assert_eq!(logits(&mut engine, &other, Some(tenant)), logits(&mut engine, &other, None));
            }
        }
    }
}

/// The logits behind a prompt, of a tenant's cache or computed anew.
fn logits(engine: &mut Engine, prompt: &[u32], tenant: Option<[u8; 32]>) -> Vec<u32> {
    let (id, cached) = match tenant {
        Some(tenant) => {
            let begun = engine.begin(prompt, &[], tenant).unwrap();
            (begun.sequence, begun.cached_tokens as usize)
        }
        None => (engine.create().unwrap(), 0),
    };
    let mut bits = Vec::new();
    let take = &mut |row: LogitRow<'_>| bits.extend(row.logits.iter().map(|logit| logit.to_bits()));
    engine.extend_in_order(&[SequenceTokens::last(id, &prompt[cached..])], take).unwrap();
    engine.drop_sequence(id);
    bits
}

fn share(now: PrefixStats, before: PrefixStats) -> f64 {
    (now.found_tokens - before.found_tokens) as f64 / (now.asked_tokens - before.asked_tokens) as f64
}

/// Four agents with one system prompt and its tools, side by side; and prompts that come again and again.
#[test]
fn agents_and_repeated_prompts_hit() {
    for (name, image) in images() {
        let mut rng = Rng::with_seed(29);
        let mut serving = Serving::new(engine(&image, 5), SchedulerConfig::default()).unwrap();
        let system = words(&mut rng, 1500);
        let mut agents: Vec<Vec<u32>> = (0..4u32).map(|n| [&system[..], &[n; 40]].concat()).collect();
        for _ in 0..20 {
            let requests = agents.iter().map(|text| Request::greedy(text.clone(), 24)).collect();
            for (text, answer) in agents.iter_mut().zip(together(&mut serving, requests)) {
                assert_eq!(answer.tokens.len(), 24);
                text.extend(answer.tokens);
                // The output of a tool.
                let result = rng.usize(40..200);
                text.extend(words(&mut rng, result));
            }
        }
        let of_agents = share(serving.prefix_stats(), PrefixStats::default());
        println!("{name}: agents find {:.1} % of their tokens", 100.0 * of_agents);
        assert!(of_agents > 0.9, "{name}: {of_agents}");

        let before = serving.prefix_stats();
        let prompts: Vec<Vec<u32>> = (0..8).map(|_| words(&mut rng, 300)).collect();
        for _ in 0..40 {
            let requests = prompts.iter().map(|prompt| Request::greedy(prompt.clone(), 2)).collect();
            together(&mut serving, requests);
        }
        let of_repeated = share(serving.prefix_stats(), before);
        println!("{name}: repeated prompts find {:.1} % of their tokens", 100.0 * of_repeated);
        assert!(of_repeated > 0.95, "{name}: {of_repeated}");
        assert!(serving.stats().hits > 380, "{:?}", serving.stats());
    }
}
