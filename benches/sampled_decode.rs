//! The time that choosing tokens and making text adds to decoding: `cargo bench --bench sampled_decode --
//! PLAN [ROUNDS]`.
//!
//! One engine decodes the same tokens twice in turn: by steps whose logits nobody takes, as `kernmill bench`
//! does, and by generating text with the sampling that `kernmill run` has by default. Prints one line of JSON
//! with the medians in tokens per second, and the median, least and largest ratio of a round.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, Plan, SamplerParams, SequenceTokens, Steps};
use kernmill_serve::{Answer, Request, RequestEvent, SchedulerConfig, Serving};
use std::path::Path;
use std::time::Instant;

/// Tokens that each way decodes in a round.
const TOKENS: usize = 48;
/// Tokens of the prompt.
const PROMPT: [u32; 1] = [1];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [plan, rest @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!("usage: cargo bench --bench sampled_decode -- PLAN [ROUNDS]");
    };
    let rounds = rest.first().map_or(21, |count| count.parse().expect("a count of rounds"));
    let plan = Plan::open(Path::new(plan)).expect("a plan");
    let image = plan.image(plan.choose(None).expect("a target for this CPU")).expect("weights");
    let config = EngineConfig {
        pool: PoolConfig { pin: true, ..PoolConfig::default() },
        sequences: 1,
        ..EngineConfig::default()
    };
    let engine = Engine::new(&image, config).expect("an engine");
    let serving = Serving::new(engine, SchedulerConfig::default()).expect("a configuration");
    let mut serving = serving.with_tokenizer(plan.tokenizer());
    // Weights come from the disk at first. Both ways run the same tokens, and so the same experts.
    let tokens = generate(&mut serving).tokens;
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (a, b) = if round % 2 == 0 {
            let a = plain(serving.engine(), &tokens);
            (a, generate(&mut serving).decode_rate())
        } else {
            let b = generate(&mut serving).decode_rate();
            (plain(serving.engine(), &tokens), b)
        };
        without.push(a);
        with.push(b);
        ratios.push(b / a);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{{\"tokens\": {TOKENS}, \"rounds\": {rounds}, \"steps_per_second\": {:.3}, \
         \"sampled_tokens_per_second\": {:.3}, \"ratio\": {:.4}, \"least\": {:.4}, \"largest\": {:.4}}}",
        median(without),
        median(with),
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1]
    );
}

/// Steps per second, logits included.
fn plain(engine: &mut Engine, tokens: &[u32]) -> f64 {
    let id = engine.create().expect("a sequence");
    engine.step(&[SequenceTokens::last(id, &PROMPT)], &()).expect("a step");
    let start = Instant::now();
    for token in &tokens[..TOKENS] {
        engine.step(&[SequenceTokens::last(id, &[*token])], &()).expect("a step");
    }
    let seconds = start.elapsed().as_secs_f64();
    engine.drop_sequence(id);
    TOKENS as f64 / seconds
}

/// Generates with the sampling of `kernmill run`.
fn generate(serving: &mut Serving) -> Answer {
    let sampler = SamplerParams { temperature: 0.6, top_p: 0.9, seed: Some(1), ..SamplerParams::default() };
    let greedy = Request::greedy(PROMPT.to_vec(), TOKENS as u32 + 1);
    serving.submit(Request { sampler, drafts: false, ..greedy }).expect("a request that can be served");
    let mut answer = None;
    while answer.is_none() {
        let on_event = &mut |_, event| {
            if let RequestEvent::Done(done) = event {
                answer = Some(*done);
            }
        };
        serving.tick(on_event).expect("tokens are generated");
    }
    let answer = answer.expect("a text");
    assert_eq!(answer.stepped as usize, TOKENS, "nothing ends the text");
    answer
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
