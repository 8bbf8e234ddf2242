//! Requests through the loop that makes texts, on the nano model.

mod drafts;
mod ruled;
mod thread;

use kernmill::{Engine, Opened, Options};
use kernmill_runtime::{AdapterUse, Sampler, SamplerParams, Steps, Tokenizer, TokenizerHandle};
use kernmill_serve::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The tokenizer of the nano model.
fn tokenizer() -> &'static TokenizerHandle {
    static TOKENIZER: LazyLock<TokenizerHandle> = LazyLock::new(|| {
        let json = include_bytes!("../../model-specs/nano/tokenizer.json");
        Tokenizer::from_json(json, 3072).unwrap().into()
    });
    &TOKENIZER
}

fn encode(text: &str, special: bool) -> Vec<u32> {
    tokenizer().get().unwrap().encode(text, special).unwrap()
}

/// An engine of the nano model.
fn engine(context: u32, sequences: u32, kv_memory: Option<u64>) -> Engine {
    engine_on(None, context, sequences, kv_memory)
}

/// An engine of the nano model with a store in a directory.
fn engine_on(kv_disk: Option<&Path>, context: u32, sequences: u32, kv_memory: Option<u64>) -> Engine {
    let kv_disk = kv_disk.map(Path::to_owned);
    let options = Options::default().with(|it| {
        it.threads = Some(1);
        it.kv_memory = kv_memory;
        it.kv_disk = kv_disk;
        it.chunk = Some(64);
    });
    let opened = Opened::open(kernmill::locate::nano(), &options).unwrap();
    opened.prepare(&options).unwrap().load(&options, context, sequences).unwrap().engine
}

/// A serving whose clock goes on by a millisecond whenever it is looked at.
fn serve_on(engine: Engine, config: SchedulerConfig) -> Serving {
    let time = Arc::new(AtomicU64::new(0));
    let clock = Box::new(move || Duration::from_millis(time.fetch_add(1, Ordering::Relaxed)));
    Serving::with_clock(engine, config, clock).unwrap().with_tokenizer(Some(tokenizer().clone()))
}

/// The result of a request.
struct Alone {
    text: String,
    tokens: Vec<u32>,
    finish: Finish,
}

/// The text of a request, made one token after the other by the logits alone: nothing is planned, guessed,
/// forced or cached.
fn alone(engine: &mut Engine, request: &Request) -> Alone {
    let tokenizer = tokenizer().get().unwrap();
    let mut constraint = request.constraint.clone();
    let mut sampler = Sampler::new(request.sampler.clone(), 3072).unwrap();
    sampler.prompt(&request.prompt);
    let sequence = engine.create_with(&request.adapters).unwrap();
    let (mut known, mut run, mut logits) = (request.prompt.clone(), 0, Vec::new());
    let text_of = |known: &[u32]| {
        let before = tokenizer.decode(&request.prompt).unwrap().len();
        tokenizer.decode(known).unwrap()[before..].to_owned()
    };
    let (mut text, mut finish) = (String::new(), None);
    while finish.is_none() {
        engine.append(sequence, &known[run..], &mut logits).unwrap();
        run = known.len();
        let mask = constraint.as_mut().map(|constraint| token_mask(constraint.mask().unwrap()));
        let token = sampler.choose(&logits, run as u64, mask.as_ref()).unwrap();
        sampler.accept(token);
        if request.stop_tokens.contains(&token) {
            finish = Some(Finish::Token(token));
            break;
        }
        known.push(token);
        text = text_of(&known);
        let found = |stop: &String| Some((text.find(stop.as_str())?, stop.clone()));
        let stop = request.stop.iter().filter_map(found).min_by_key(|(at, stop)| at + stop.len());
        if let Some((at, stop)) = stop {
            text.truncate(at);
            finish = Some(Finish::Text(stop));
        } else if let Some(constraint) = &mut constraint {
            constraint.accept(token).unwrap();
            constraint.mask().unwrap();
            finish = constraint.is_done().then_some(Finish::Complete);
        }
        if finish.is_none() && known.len() - request.prompt.len() == request.max_tokens as usize {
            finish = Some(Finish::MaxTokens);
        } else if finish.is_none() && known.len() > engine.context() as usize {
            finish = Some(Finish::Context);
        }
    }
    engine.drop_sequence(sequence);
    Alone { text, tokens: known.split_off(request.prompt.len()), finish: finish.unwrap() }
}

/// Requests with prompts that share beginnings, of several tenants, classes and ways of sampling.
fn requests(count: u64) -> Vec<Request> {
    let shared = "A slice is a view into a contiguous sequence of elements. ".repeat(3);
    let endings = ["It", "Use `iter`", "See also", "# Examples\n\nBasic usage:\n\n```\nlet", "Panics if"];
    let request = |n: u64| {
        let ending = endings[n as usize % endings.len()];
        let text = if n.is_multiple_of(3) { ending.to_owned() } else { format!("{shared}{ending}") };
        let sampler = SamplerParams {
            temperature: [0.0, 0.8][n as usize % 2],
            top_p: 0.9,
            seed: Some(n),
            ..SamplerParams::default()
        };
        Request {
            prompt: encode(&text, true),
            max_tokens: 5 + (n * 7 % 40) as u32,
            sampler,
            stop: if n.is_multiple_of(4) { vec!["\n\n".to_owned()] } else { Vec::new() },
            tenant: n % 3,
            class: Class::ALL[n as usize % 3],
            ..Request::greedy(Vec::new(), 1)
        }
    };
    (0..count).map(request).collect()
}

/// Runs requests to their ends, and compares every text with that of its request alone.
fn same_as_alone(mut serving: Serving, requests: &[Request]) -> ServeStats {
    for request in requests {
        serving.submit(request.clone()).unwrap();
    }
    as_alone(serving, requests).stats().clone()
}

/// Runs the first requests of a serving, which wait, as [`same_as_alone`] does.
fn as_alone(mut serving: Serving, requests: &[Request]) -> Serving {
    let mut solo = engine(serving.engine().context(), 1, None);
    let ids: BTreeMap<RequestId, &Request> =
        requests.iter().enumerate().map(|(n, request)| (RequestId(n as u64), request)).collect();
    let mut streamed: BTreeMap<RequestId, String> = BTreeMap::new();
    let mut ended = 0;
    while !serving.is_empty() {
        let on_event = &mut |id: RequestId, event| match event {
            RequestEvent::Token(token) => streamed.entry(id).or_default().push_str(&token.text),
            RequestEvent::Done(answer) => {
                let expected = alone(&mut solo, ids[&id]);
                assert_eq!((&answer.text, &answer.tokens), (&expected.text, &expected.tokens), "{id:?}");
                assert_eq!(answer.finish, expected.finish);
                assert_eq!(streamed.remove(&id).unwrap_or_default(), expected.text);
                assert!(answer.steps <= answer.stepped && answer.stepped as usize <= answer.tokens.len());
                ended += 1;
            }
        };
        let tick = serving.tick(on_event).unwrap();
        assert!(matches!(tick, Tick::Ran | Tick::Idle(_)));
    }
    assert_eq!(ended, requests.len());
    let kv = serving.engine().kv();
    assert_eq!(kv.free, kv.blocks, "every block has been given back");
    serving
}

#[test]
fn texts_do_not_depend_on_what_runs_beside_them() {
    let engine = engine(256, 6, None);
    let requests = requests(24);
    let config = SchedulerConfig { max_sequences: 6, ..SchedulerConfig::default() };
    let stats = same_as_alone(serve_on(engine, config), &requests);
    assert!(stats.generated > 200 && stats.steps * 2 < stats.tokens, "{stats:?}");
    assert!(stats.drafts.accepted > 20 && stats.drafts.tokens > stats.drafts.accepted, "{stats:?}");
}

/// The KV cache holds little more than one request, so that sequences lose their places and come back.
#[test]
fn texts_do_not_depend_on_the_memory() {
    let engine = engine(256, 6, Some(engine_bytes() * 3 / 2));
    let mut requests = requests(24);
    for request in &mut requests {
        (request.max_tokens, request.class) = (90, Class::Batch);
    }
    let config = SchedulerConfig { max_sequences: 6, growth: 8, ..SchedulerConfig::default() };
    let stats = same_as_alone(serve_on(engine, config), &requests);
    assert!(stats.preemptions > 0 && stats.drafts.accepted > 20, "{stats:?}");
}

/// Bytes of the KV cache of one sequence of 256 tokens.
fn engine_bytes() -> u64 {
    let usage = engine(256, 1, None).kv();
    usage.blocks.iter().zip(usage.block_bytes).map(|(blocks, bytes)| *blocks as u64 * bytes).sum()
}

#[test]
fn a_second_turn_runs_only_what_is_new() {
    let mut serving = serve_on(engine(256, 2, None), SchedulerConfig::default());
    let mut run = |request: Request| {
        serving.submit(request).unwrap();
        let mut done = None;
        while !serving.is_empty() {
            serving
                .tick(&mut |_, event| {
                    if let RequestEvent::Done(answer) = event {
                        done = Some(*answer);
                    }
                })
                .unwrap();
        }
        done.unwrap()
    };
    let first = run(Request::greedy((1..60).collect(), 9));
    assert_eq!((first.cached_tokens, first.tokens.len()), (0, 9));
    let mut prompt: Vec<u32> = (1..60).collect();
    prompt.extend(&first.tokens);
    let known = prompt.len() as u32;
    prompt.extend([7, 8, 9]);
    let second = run(Request::greedy(prompt, 4));
    // The last token of an answer has not been run.
    assert_eq!(second.cached_tokens, known - 1);
}

#[test]
fn requests_that_cannot_be_served_are_refused_and_others_go_on() {
    let engine = engine(64, 2, None);
    let vocab = engine.model().vocab;
    let mut serving = serve_on(engine, SchedulerConfig::default());
    let refused = |serving: &mut Serving, request| serving.submit(request).unwrap_err().to_string();
    let prompt = |count: u32| Request::greedy((0..count).collect(), 3);
    assert!(refused(&mut serving, prompt(0)).contains("no tokens"));
    assert!(refused(&mut serving, prompt(65)).contains("the context holds 64"));
    assert!(refused(&mut serving, Request::greedy(vec![vocab], 1)).contains("expected less than"));
    let adapters = vec![AdapterUse::of("poet")];
    let with_adapter = Request { adapters, ..prompt(3) };
    assert!(refused(&mut serving, with_adapter).contains("no adapter `poet` is loaded, loaded: none"));
    let hot = SamplerParams { temperature: -1.0, ..SamplerParams::default() };
    assert!(refused(&mut serving, Request { sampler: hot, ..prompt(3) }).contains("temperature"));
    // One is cancelled on its way, one fills the context.
    let cancelled = serving.submit(Request { max_tokens: 50, ..prompt(4) }).unwrap();
    let long = serving.submit(Request { max_tokens: 500, ..prompt(5) }).unwrap();
    let mut done = BTreeMap::new();
    for tick in 0.. {
        if tick == 5 {
            assert!(serving.cancel(cancelled));
        }
        serving
            .tick(&mut |id, event| {
                if let RequestEvent::Done(answer) = event {
                    done.insert(id, *answer);
                }
            })
            .unwrap();
        if serving.is_empty() {
            break;
        }
    }
    assert_eq!(done[&cancelled].finish, Finish::Ended(EndReason::Cancelled));
    assert_eq!(done[&long].finish, Finish::Context);
    assert_eq!(done[&long].tokens.len(), 64 - 5 + 1);
    assert!(!serving.cancel(long));
}

/// Blocks on the disk count as cached for the plan too. Where the disk fails in between, the prompts are run
/// by the plans that follow.
#[test]
fn prompts_on_disk_are_planned_as_cached_ones() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("kv");
    let mut serving = serve_on(engine_on(Some(&store), 256, 3, None), SchedulerConfig::default());
    let requests: Vec<Request> = requests(6)
        .into_iter()
        .enumerate()
        .map(|(n, request)| {
            let prompt = [&[n as u32; 100], &request.prompt[..]].concat();
            // Every token that is run is one of a prompt or of a text.
            Request { prompt, drafts: false, ..request }
        })
        .collect();
    in_turn(&mut serving, &requests);
    serving.save_cache();
    drop(serving);
    for is_gone in [false, true] {
        let mut serving = serve_on(engine_on(Some(&store), 256, 3, None), SchedulerConfig::default());
        for request in &requests {
            serving.submit(request.clone()).unwrap();
        }
        if is_gone {
            std::fs::remove_dir_all(&store).unwrap();
        }
        serving = as_alone(serving, &requests);
        let from_disk = serving.prefix_stats().disk_tokens;
        let all: usize = requests.iter().map(|request| request.prompt.len() - 1).sum();
        assert_eq!(from_disk, if is_gone { 0 } else { all as u64 });
        let run = serving.stats().tokens - serving.stats().generated;
        assert!(is_gone || run == 0, "{run} tokens of prompts were run");
    }
}

/// Requests one after the other, and how they ended.
fn in_turn(serving: &mut Serving, requests: &[Request]) -> Vec<Finish> {
    answers_in_turn(serving, requests).into_iter().map(|answer| answer.finish).collect()
}

/// Runs requests one after another.
fn answers_in_turn(serving: &mut Serving, requests: &[Request]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for request in requests {
        serving.submit(request.clone()).unwrap();
        while !serving.is_empty() {
            serving
                .tick(&mut |_, event| {
                    if let RequestEvent::Done(answer) = event {
                        answers.push(*answer);
                    }
                })
                .unwrap();
        }
    }
    answers
}

#[test]
fn a_salt_parts_the_cached_prompts_of_a_tenant() {
    let mut serving = serve_on(engine(64, 3, None), SchedulerConfig::default());
    let request = |(tenant, salt): (u64, u8)| Request {
        tenant,
        salt: [salt; 16],
        ..Request::greedy((1..50).collect(), 2)
    };
    // Blocks that tenant 0 caches without a salt are found by other tenants, but with no salt.
    let requests = [(0, 0), (0, 0), (0, 1), (0, 1), (7, 0), (7, 1), (7, 1), (0, 2)];
    let answers = answers_in_turn(&mut serving, &requests.map(request));
    let cached: Vec<u32> = answers.iter().map(|answer| answer.cached_tokens).collect();
    assert_eq!(cached, [0, 48, 0, 48, 48, 48, 48, 0]);
    assert!(answers.iter().all(|answer| answer.tokens == answers[0].tokens), "the text is the same");
}

/// A request may fill the cache alone, also when it finds its prompt there.
#[test]
fn a_request_that_needs_all_blocks_runs() {
    let mut serving = serve_on(engine(64, 1, None), SchedulerConfig::default());
    let request = |tokens: u32| Request::greedy((1..=tokens).collect(), 64 - tokens + 1);
    let requests = [60, 60, 10, 49, 63].map(request);
    let ends = in_turn(&mut serving, &requests);
    assert!(ends.iter().all(|end| *end == Finish::MaxTokens), "{ends:?}");
    assert!(serving.stats().hits > 1, "{:?}", serving.stats());
}

/// A text of no tokens runs its prompt, which the next one finds.
#[test]
fn a_prompt_can_be_run_without_a_text() {
    let mut serving = serve_on(engine(64, 2, None), SchedulerConfig::default());
    let requests = [0, 2].map(|tokens| Request::greedy((1..50).collect(), tokens));
    let answers = answers_in_turn(&mut serving, &requests);
    assert_eq!((answers[0].tokens.len(), &answers[0].finish), (0, &Finish::MaxTokens));
    assert_eq!((answers[1].tokens.len(), answers[1].cached_tokens), (2, 48));
}

/// Penalties count what was written before as they count the text itself.
#[test]
fn a_text_goes_on_with_what_was_written() {
    let mut serving = serve_on(engine(256, 1, None), SchedulerConfig::default());
    let sampler = SamplerParams { frequency_penalty: 1.5, presence_penalty: 0.5, ..SamplerParams::default() };
    let whole = Request { sampler, ..Request::greedy(encode("A slice is", true), 40) };
    let expected = answers_in_turn(&mut serving, std::slice::from_ref(&whole)).remove(0).tokens;
    for cut in [1, 7, 23] {
        let mut written = BTreeMap::new();
        expected[..cut].iter().for_each(|token| *written.entry(*token).or_insert(0) += 1);
        let prompt = [&whole.prompt, &expected[..cut]].concat();
        let rest = Request { prompt, max_tokens: 40 - cut as u32, ..whole.clone() };
        let [forgetful, knowing] = [Vec::new(), written.into_iter().collect()]
            .map(|written| Request { written, ..rest.clone() })
            .map(|request| answers_in_turn(&mut serving, &[request]).remove(0).tokens);
        assert_eq!(knowing, expected[cut..], "{cut}");
        assert!(cut == 1 || forgetful != knowing, "{cut}");
    }
}

/// A flag ends a text between two steps, also while its prompt is read.
#[test]
fn a_flag_ends_a_text() {
    let mut serving = serve_on(engine(256, 1, None), SchedulerConfig::default());
    for steps in [1, 2, 6] {
        let flag = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let prompt = (steps..steps + 150).collect();
        let request = Request { cancelled: Some(flag.clone()), ..Request::greedy(prompt, 90) };
        serving.submit(request).unwrap();
        let mut done = None;
        for step in 0.. {
            flag.store(step == steps, Ordering::Relaxed);
            let on_event = &mut |_, event| {
                if let RequestEvent::Done(answer) = event {
                    done = Some(answer);
                }
            };
            serving.tick(on_event).unwrap();
            if serving.is_empty() {
                assert_eq!(step, steps);
                break;
            }
        }
        let answer = done.unwrap();
        assert_eq!(answer.finish, Finish::CANCELLED);
        assert_eq!(answer.tokens.is_empty(), steps < 3, "{answer:?}");
    }
}
