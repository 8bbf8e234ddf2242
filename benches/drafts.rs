//! What drafts gain and cost: `cargo bench --bench drafts -- PLAN [ROUNDS]`.
//!
//! Two engines over the same weights make a text, one with drafts and one without, in turns of a tenth of a
//! second: a shared machine's memory changes within seconds, and so both see the same. `copy` has a passage
//! of 400 tokens in its prompt and repeats it: a mask allows the passage's next token alone, so that a model
//! of random weights copies as a trained one may. `free` is drawn text of 128 tokens behind a prompt of 64,
//! in which little repeats itself. Prompts are not timed. Prints a line of JSON for each, with the medians in
//! tokens per second and the median and quartiles of the rounds' ratios.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_runtime::draft::SuffixDrafter;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{
    Engine, EngineConfig, GenerateParams, Guide, GuideError, Plan, SamplerParams, Summary, TokenMask,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tokens of the passage, and those of them that the prompt has once more.
const PASSAGE: usize = 400;
const BEGUN: usize = 4;
/// How long one engine runs before the other goes on.
const TURN: Duration = Duration::from_millis(100);

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

/// Whose turn it is, and who has ended.
#[derive(Default)]
struct Turns {
    state: Mutex<(usize, [bool; 2])>,
    changed: Condvar,
}

impl Turns {
    fn wait(&self, own: usize) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(state, |(whose, _)| *whose != own));
    }

    fn pass(&self, own: usize, has_ended: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1[own] = has_ended;
        if !state.1[1 - own] {
            state.0 = 1 - own;
            self.changed.notify_all();
        }
    }
}

/// Makes a text in turns with the other engine: what it is, and tokens per second behind the first one.
fn make(
    turns: &Turns,
    own: usize,
    engine: &mut Engine,
    prompt: &[u32],
    params: GenerateParams,
) -> (Summary, f64) {
    turns.wait(own);
    let (mut spent, mut begun) = (Duration::ZERO, None);
    let summary = engine.generate(prompt, &params, &mut |_| {
        let start = *begun.get_or_insert_with(Instant::now);
        if start.elapsed() >= TURN {
            spent += start.elapsed();
            turns.pass(own, false);
            turns.wait(own);
            begun = Some(Instant::now());
        }
        ControlFlow::Continue(())
    });
    spent += begun.map_or(Duration::ZERO, |start| start.elapsed());
    turns.pass(own, true);
    let summary = summary.expect("a text");
    let rate = (summary.tokens.len() as f64 - 1.0) / spent.as_secs_f64();
    (summary, rate)
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
    let [mut one, mut other] = [(); 2]
        .map(|()| Engine::new(&image, EngineConfig { pool, ..EngineConfig::default() }).expect("an engine"));
    let vocab = one.model().vocab;
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
            let with = GenerateParams { drafter: Some(SuffixDrafter::boxed()), ..params.clone() };
            // Who begins has the other's prompt behind its own.
            let turns = Turns { state: Mutex::new((round as usize % 2, [false; 2])), ..Turns::default() };
            let ((a, plain_rate), (b, drafted_rate)) = std::thread::scope(|scope| {
                let (turns, text, one) = (&turns, &text, &mut one);
                let plain = scope.spawn(move || make(turns, 0, one, text, params));
                let drafted = make(turns, 1, &mut other, text, with);
                (plain.join().expect("no panic"), drafted)
            });
            assert_eq!(a.tokens, b.tokens);
            // Weights come from the disk at first.
            if round > 0 {
                plain.push(plain_rate);
                drafted.push(drafted_rate);
                ratios.push(drafted_rate / plain_rate);
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
