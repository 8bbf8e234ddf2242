//! What drafts gain and cost: `cargo bench --bench drafts -- PLAN [ROUNDS]`.
//!
//! One engine makes texts with drafts and without in turns. `copy` has a passage of 400 tokens in its prompt
//! and repeats it: a mask allows the passage's next token alone, so that a model of random weights copies as
//! a trained one may. `free` is drawn text of 128 tokens behind a prompt of 64, in which little repeats
//! itself. Prints a line of JSON for each, with the medians in tokens per second and the median and quartiles
//! of the rounds' ratios.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_runtime::draft::SuffixDrafter;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{
    Engine, EngineConfig, GenerateParams, Guide, GuideError, Plan, SamplerParams, Summary, TokenMask,
};
use std::ops::ControlFlow;
use std::path::Path;

/// Tokens of the passage, and those of them that the prompt has once more.
const PASSAGE: usize = 400;
const BEGUN: usize = 4;

/// Allows one text alone.
#[derive(Clone, Debug)]
struct Copy {
    text: Vec<u32>,
    at: usize,
    vocab: usize,
}

impl Guide for Copy {
    fn allowed(&mut self) -> Result<Option<TokenMask>, GuideError> {
        let mut mask = TokenMask::new(self.vocab, false);
        let next = self.text.get(self.at);
        next.iter().for_each(|token| mask.set(**token, true));
        Ok(next.map(|_| mask))
    }

    fn accept(&mut self, _: u32) -> Result<(), GuideError> {
        self.at += 1;
        Ok(())
    }

    fn forced(&mut self) -> Vec<u32> {
        Vec::new()
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [plan, rest @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!("usage: cargo bench --bench drafts -- PLAN [ROUNDS]");
    };
    let rounds = rest.first().map_or(5, |text| text.parse().expect("a number"));
    let plan = Plan::open(Path::new(plan)).expect("a plan");
    let image = plan.image(plan.choose(None).expect("a target for this CPU")).expect("weights");
    let pool = PoolConfig { pin: true, ..PoolConfig::default() };
    let mut engine =
        Engine::new(&image, EngineConfig { pool, ..EngineConfig::default() }).expect("an engine");
    let vocab = engine.model().vocab;
    for name in ["copy", "free"] {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut plain, mut drafted, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (mut checked, mut accepted) = (0, 0);
        for round in 0..=rounds {
            let mut text: Vec<u32> =
                (0..if name == "copy" { PASSAGE } else { 64 }).map(|_| rng.u32(..vocab)).collect();
            let mut params = GenerateParams {
                max_tokens: 128,
                sampler: SamplerParams { temperature: 1.0, seed: Some(round), ..SamplerParams::default() },
                ..GenerateParams::default()
            };
            if name == "copy" {
                let rest = text[BEGUN..].to_vec();
                text.extend_from_within(..BEGUN);
                params.max_tokens = rest.len();
                params.guide = Some(Box::new(Copy { text: rest, at: 0, vocab: vocab as usize }));
            }
            let mut run = |with_drafts: bool| {
                let drafter = with_drafts.then(SuffixDrafter::boxed);
                let params = GenerateParams { drafter, ..params.clone() };
                engine.generate(&text, &params, &mut |_| ControlFlow::Continue(())).expect("a text")
            };
            let (a, b): (Summary, Summary) = if round % 2 == 0 {
                let a = run(false);
                (a, run(true))
            } else {
                let b = run(true);
                (run(false), b)
            };
            assert_eq!(a.tokens, b.tokens);
            // Weights come from the disk at first.
            if round > 0 {
                plain.push(a.decode_rate());
                drafted.push(b.decode_rate());
                ratios.push(b.decode_rate() / a.decode_rate());
                checked += b.drafts.tokens;
                accepted += b.drafts.accepted;
            }
        }
        let ratio = |part| quantile(&mut ratios.clone(), part);
        println!(
            "{{\"text\": \"{name}\", \"rounds\": {rounds}, \"plain\": {:.2}, \"drafts\": {:.2}, \"ratio\": {:.4}, \
             \"q1\": {:.4}, \"q3\": {:.4}, \"checked\": {checked}, \"accepted\": {accepted}}}",
            quantile(&mut plain, 0.5),
            quantile(&mut drafted, 0.5),
            ratio(0.5),
            ratio(0.25),
            ratio(0.75)
        );
    }
}

/// The value that `part` (0 to 1) of the values are below.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}
