//! The savings by rows of the unembedding that a form leaves unread: `cargo bench --bench allowed_rows --
//! PLAN [ROUNDS] [TEXTS]`, of a model with the vocabulary of GPT-OSS.
//!
//! One engine makes texts of digits and words of lists, of free strings, and of no form, in turns with all
//! logits and with those of allowed tokens alone. Prints a line of JSON for each form: whether all texts were
//! equal, tokens, bytes of weights and seconds of a step, and the median and quartiles of the rounds' ratios.

#![allow(clippy::print_stderr, clippy::print_stdout)]

#[path = "../constrain/tests/constrain/o200k.rs"]
mod o200k;

use kernmill_constrain::{Constraint, Lexicon, Rule};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::profile::Detail;
use kernmill_runtime::{Engine, EngineConfig, Plan};
use kernmill_serve::{Request, RequestEvent, RequestId, SchedulerConfig, Serving};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Most tokens of a text.
const TOKENS: u32 = 48;

fn forms() -> Vec<(&'static str, Option<Rule>)> {
    let object = |properties: serde_json::Value| {
        let names: Vec<String> = properties.as_object().expect("members").keys().cloned().collect();
        let schema = serde_json::json!({
            "type": "object", "properties": properties, "required": names, "additionalProperties": false,
        });
        Some(Rule::JsonSchema(schema))
    };
    let digits = object(serde_json::json!({
        "level": { "enum": ["debug", "info", "warning", "error", "critical"] },
        "code": { "type": "integer", "minimum": 0, "maximum": 99_999_999 },
        "state": { "enum": ["open", "closed", "pending", "unknown"] },
        "values": {
            "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 99_999_999 },
            "minItems": 8, "maxItems": 8,
        },
    }));
    let strings =
        object(serde_json::json!({ "name": { "type": "string", "minLength": 100, "maxLength": 200 } }));
    vec![("digits and enums", digits), ("strings", strings), ("none", None)]
}

/// The texts of a form, the seconds of their steps, steps, and bytes of weights.
struct Run {
    texts: Vec<Vec<u32>>,
    seconds: f64,
    steps: u64,
    bytes: u64,
}

fn run(serving: &mut Serving, form: Option<&Constraint>, texts: usize, seed: u64, all: bool) -> Run {
    serving.engine().compute_all_logits(all);
    serving.engine().start_meter(Detail::Totals);
    let vocab = serving.engine().model().vocab.min(190_000);
    let mut rng = fastrand::Rng::with_seed(seed);
    let (steps, mut seconds, mut made) = (serving.stats().steps, 0.0, Vec::new());
    for _ in 0..texts {
        let prompt: Vec<u32> = (0..4).map(|_| rng.u32(..vocab)).collect();
        let constraint = form.cloned();
        // No drafts: one step for each token that is not forced.
        let request = Request { constraint, drafts: false, ..Request::greedy(prompt, TOKENS) };
        serving.submit(request).expect("a request");
        let start = Instant::now();
        while !serving.is_empty() {
            let take = &mut |_: RequestId, event| {
                if let RequestEvent::Done(answer) = event {
                    made.push(answer.tokens);
                }
            };
            serving.tick(take).expect("a step");
        }
        seconds += start.elapsed().as_secs_f64();
    }
    let bytes = serving.engine().stop_meter().total.weight_bytes;
    Run { texts: made, seconds, steps: serving.stats().steps - steps, bytes }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [plan, rest @ ..] = args.as_slice() else {
        // `cargo bench` without arguments, and `cargo test --benches`.
        return eprintln!("usage: cargo bench --bench allowed_rows -- PLAN [ROUNDS] [TEXTS]");
    };
    let number =
        |at: usize, otherwise| rest.get(at).map_or(otherwise, |text| text.parse().expect("a number"));
    let (rounds, texts): (usize, usize) = (number(0, 7), number(1, 4));
    let plan = Plan::open(Path::new(plan)).expect("a plan");
    let image = plan.image(plan.choose(None).expect("a target for this CPU")).expect("weights");
    let config = EngineConfig {
        pool: PoolConfig { pin: true, ..PoolConfig::default() },
        context: Some(256),
        ..EngineConfig::default()
    };
    let engine = Engine::new(&image, config).expect("an engine");
    let width = engine.model().vocab as usize;
    let lexicon =
        Lexicon::new(Arc::new(o200k::O200k::new()), width, &[200_002, 199_999]).expect("a vocabulary");
    let mut serving = Serving::new(engine, SchedulerConfig::default()).expect("a serving");
    for (name, rule) in forms() {
        let form = rule.map(|rule| Constraint::new(&lexicon, &rule).expect("a form"));
        let (mut equal, mut ratios, mut both) = (true, Vec::new(), [Vec::new(), Vec::new()]);
        let (mut bytes, mut tokens, mut steps) = ([0.0; 2], 0, 0);
        for round in 0..=rounds {
            let mut one = |all| run(&mut serving, form.as_ref(), texts, round as u64, all);
            let [all, some] = if round % 2 == 0 {
                let all = one(true);
                [all, one(false)]
            } else {
                let some = one(false);
                [one(true), some]
            };
            equal &= all.texts == some.texts;
            tokens += some.texts.iter().map(Vec::len).sum::<usize>();
            steps += some.steps;
            bytes = [&all, &some].map(|run| run.bytes as f64 / run.steps as f64);
            // Weights come from the disk at first.
            if round > 0 {
                ratios.push(all.seconds / some.seconds);
                for (list, run) in both.iter_mut().zip([&all, &some]) {
                    list.push(run.texts.iter().map(Vec::len).sum::<usize>() as f64 / run.seconds);
                }
            }
        }
        let mut ratio = |part| quantile(&mut ratios, part);
        let (median, q1, q3) = (ratio(0.5), ratio(0.25), ratio(0.75));
        println!(
            "{{\"form\": {name:?}, \"rounds\": {rounds}, \"texts\": {}, \"equal\": {equal}, \"tokens\": {tokens}, \
             \"steps\": {steps}, \"all_bytes\": {:.0}, \"allowed_bytes\": {:.0}, \"all\": {:.2}, \
             \"allowed\": {:.2}, \"ratio\": {median:.3}, \"q1\": {q1:.3}, \"q3\": {q3:.3}}}",
            texts * (rounds + 1),
            bytes[0],
            bytes[1],
            quantile(&mut both[0], 0.5),
            quantile(&mut both[1], 0.5),
        );
    }
}

/// The value that `part` (0 to 1) of the values are below.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}
