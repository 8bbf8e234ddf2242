//! The gain and the cost of drafts: `cargo bench --bench drafts -- PLAN [ROUNDS]`.
//!
//! Two engines over the same weights make a text, one with drafts and one without, in turns of a tenth of a
//! second: a shared machine's memory changes within seconds, and so both see the same. `copy` has a passage
//! of 400 tokens in its prompt and repeats it: a mask allows the passage's next token alone, so that a model
//! of random weights copies as a trained one may. Log-probabilities are asked for, so that every step
//! computes all logits, as it would without the mask. `free` is drawn text of 128 tokens behind a prompt of
//! 64, in which little repeats itself. Prompts are not timed. Prints a line of JSON for each, with the
//! medians in tokens per second and the median and quartiles of the rounds' ratios.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use kernmill_runtime::draft::SuffixDrafter;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, Guide, GuideError, Plan, SamplerParams, TokenMask};
use kernmill_serve::{Answer, Request, RequestEvent, SchedulerConfig, Serving};
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
fn make(turns: &Turns, own: usize, serving: &mut Serving, request: Request) -> (Answer, f64) {
    turns.wait(own);
    serving.submit(request).expect("a request that can be served");
    let (mut spent, mut begun, mut answer) = (Duration::ZERO, None, None);
    while answer.is_none() {
        let on_event = &mut |_, event| match event {
            RequestEvent::Token(_) => drop(begun.get_or_insert_with(Instant::now)),
            RequestEvent::Done(done) => answer = Some(*done),
        };
        serving.tick(on_event).expect("a step");
        if let Some(start) = begun.filter(|start| start.elapsed() >= TURN && answer.is_none()) {
            spent += start.elapsed();
            turns.pass(own, false);
            turns.wait(own);
            begun = Some(Instant::now());
        }
    }
    spent += begun.map_or(Duration::ZERO, |start| start.elapsed());
    turns.pass(own, true);
    let answer = answer.expect("a text");
    let rate = (answer.tokens.len() as f64 - 1.0) / spent.as_secs_f64();
    (answer, rate)
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
    let [mut one, mut other] = [(); 2].map(|()| {
        let engine = Engine::new(&image, EngineConfig { pool, ..EngineConfig::default() });
        Serving::new(engine.expect("an engine"), SchedulerConfig::default()).expect("a configuration")
    });
    let vocab = one.engine().model().vocab;
    for name in ["copy", "free"] {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut plain, mut drafted, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (mut checked, mut accepted) = (0, 0);
        for round in 0..=rounds {
            let mut text: Vec<u32> =
                (0..if name == "copy" { PASSAGE } else { 64 }).map(|_| rng.u32(..vocab)).collect();
            let mut request = Request {
                sampler: SamplerParams { temperature: 1.0, seed: Some(round), ..SamplerParams::default() },
                drafts: false,
                ..Request::greedy(Vec::new(), 128)
            };
            if name == "copy" {
                let rest = text[BEGUN..].to_vec();
                text.extend_from_within(..BEGUN);
                request.max_tokens = rest.len() as u32;
                request.guide = Some(Box::new(Copy { text: rest, at: 0, vocab: vocab as usize }));
                request.logprobs = Some(0);
            }
            request.prompt = text;
            let with = Request { drafter: Some(SuffixDrafter::boxed()), ..request.clone() };
            // The sequence that begins has the other's prompt behind its own.
            let turns = Turns { state: Mutex::new((round as usize % 2, [false; 2])), ..Turns::default() };
            let ((a, plain_rate), (b, drafted_rate)) = std::thread::scope(|scope| {
                let (turns, one) = (&turns, &mut one);
                let plain = scope.spawn(move || make(turns, 0, one, request));
                let drafted = make(turns, 1, &mut other, with);
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
