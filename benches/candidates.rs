//! Every candidate of the kernels of a GPT-OSS-20B layer and of its unembedding, timed; the cost model's pick
//! beside the best.
//!
//! `cargo bench --bench candidates -- [LEVEL] [TOKENS,..]` prints one JSON object per line: a group at a
//! number of tokens, with what each candidate takes here (the median of several runs with two threads, in
//! turns, and the least, which neighbours on a shared machine change less) and by the model; the pick, the
//! best, and their ratio. The levels are this machine's best one, or the one named; token counts 1 to 64, or
//! those named. Weights are random, and so is the routing.

#![allow(clippy::print_stdout)]

use kernmill_compiler::front::spec::{Spec, lower};
use kernmill_compiler::ir::{Graph, Role};
use kernmill_compiler::passes::select::{KernelChoice, Pick};
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_os::region::WeightRegion;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::target::Level;
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::profile::Detail;
use kernmill_runtime::{Engine, EngineConfig, LogitRows, PlanImage, SequenceTokens, Steps};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Ids that occur: only their rows of the embedding are filled.
const IDS: u32 = 1024;
/// Turns at most, and time after which no new one starts.
const TURNS: usize = 61;
const TIME: Duration = Duration::from_secs(5);
/// Turns from one with logits, which read more than all the rest, to the next.
const LOGITS_EVERY: usize = 6;
/// Most rows whose logits are wanted: a slab.
const WANTED: usize = 16;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let mut level = *Level::supported().last().expect("x86-64-v3 or better");
    let mut tokens = vec![1, 2, 4, 8, 16, 32, 64];
    for argument in &arguments {
        match Level::from_name(argument) {
            Some(named) => level = named,
            None => {
                let number = |part: &str| part.parse().expect("a level's name, or token counts with commas");
                tokens = argument.split(',').map(number).collect();
            }
        }
    }
    let graph = one_layer();
    let base = compiled(&graph, CompilerOptions::new(level));
    let weights = fill(&base);
    for tokens in tokens {
        measure(&graph, level, &base, &weights, tokens);
    }
}

fn one_layer() -> Graph {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/model-specs/gpt-oss-20b.toml");
    let text = std::fs::read_to_string(path).expect("the spec is in the repository");
    let small = text.replace("layers         = 24", "layers         = 1");
    assert_ne!(small, text, "the spec's number of layers");
    lower(&Spec::parse("gpt-oss-20b.toml", &small).expect("a good spec")).expect("a good spec")
}

fn compiled(graph: &Graph, options: CompilerOptions) -> Compiled {
    compile(graph, &options).expect("the spec compiles")
}

/// Random weights whose scales and products are normal numbers.
fn fill(compiled: &Compiled) -> Arc<WeightRegion> {
    let mut region = WeightRegion::anonymous(compiled.layout.bytes as usize).expect("memory for the weights");
    let bytes = region.as_mut_slice();
    let mut rng = fastrand::Rng::with_seed(1);
    for (tensor, placement) in compiled.fused.graph.tensors.iter().zip(&compiled.layout.placements) {
        let length = match tensor.role {
            Role::Table => u64::from(IDS) * placement.tile_stride,
            _ => placement.bytes,
        };
        // mxfp4 scales are powers of two from 2^-7 to 1; everything else has both signs and at most 2 as f16,
        // bf16 or f32.
        let (fixed, free) = match tensor.format {
            WeightFormat::Mxfp4 => (0x78, 0x07),
            _ => (0x38, 0x87),
        };
        let (fixed, free) = (u64::from_ne_bytes([fixed; 8]), u64::from_ne_bytes([free; 8]));
        for chunk in bytes[placement.offset as usize..][..length as usize].chunks_mut(8) {
            let word = fixed | rng.u64(..) & free;
            chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
        }
    }
    region.freeze().expect("memory that can be protected")
}

/// A program and the times of each group, in seconds.
struct Runner {
    engine: Engine,
    choices: Vec<KernelChoice>,
    times: BTreeMap<&'static str, Vec<f64>>,
}

/// The group that a kind of step belongs to.
fn group(step: &str) -> Option<&'static str> {
    match step {
        "qkv_prologue" | "qkv" => Some("qkv"),
        "linear_residual" => Some("linear_residual"),
        "moe_prologue" | "moe_gate_up" => Some("moe_gate_up"),
        "moe_down" => Some("moe_down"),
        "logits" => Some("logits"),
        _ => None,
    }
}

impl Runner {
    fn new(compiled: &Compiled, weights: &Arc<WeightRegion>, tokens: usize) -> Runner {
        // SAFETY: the compiler of this process made the program.
        let image = unsafe { PlanImage::generated(compiled.program.clone(), Arc::clone(weights)) };
        let pool = PoolConfig { threads: Some(2), ..PoolConfig::default() };
        let config =
            EngineConfig { pool, context: Some(512), sequences: 1, chunk: None, ..EngineConfig::default() };
        let class = compiled.selections.iter().find(|class| class.max_tokens >= tokens);
        Runner {
            engine: Engine::new(&image, config).expect("an engine"),
            choices: class.expect("a class for so many tokens").choices.clone(),
            times: BTreeMap::new(),
        }
    }

    fn run(&mut self, ids: &[u32], logits: bool) {
        let id = self.engine.create().expect("room for a sequence");
        let logits = match (logits, ids.len() <= WANTED) {
            (false, _) => LogitRows::None,
            (true, true) => LogitRows::All,
            (true, false) => LogitRows::Last,
        };
        self.engine.start_meter(Detail::Steps);
        self.engine
            .extend(&[SequenceTokens { sequence: id, tokens: ids, logits, allowed: &[] }], &())
            .expect("a step");
        let profile = self.engine.stop_meter();
        self.engine.drop_sequence(id);
        let mut seconds: BTreeMap<&'static str, f64> = BTreeMap::new();
        for step in &profile.steps {
            if let Some(group) = group(&step.name) {
                *seconds.entry(group).or_default() += step.seconds;
            }
        }
        for (group, seconds) in seconds {
            self.times.entry(group).or_default().push(seconds);
        }
    }

    fn median(&self, group: &str) -> f64 {
        let mut times = self.times[group].clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn least(&self, group: &str) -> f64 {
        self.times[group].iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn choice(&self, group: &str) -> Option<&KernelChoice> {
        self.choices.iter().find(|choice| choice.kind() == group)
    }
}

fn measure(graph: &Graph, level: Level, base: &Compiled, weights: &Arc<WeightRegion>, tokens: usize) {
    let mut rng = fastrand::Rng::with_seed(tokens as u64);
    let ids: Vec<u32> = (0..tokens).map(|_| rng.u32(0..IDS)).collect();
    let mut picked = Runner::new(base, weights, tokens);
    let forced = |n| {
        let options = CompilerOptions { chunk: tokens, kernels: Pick::Nth(n), ..CompilerOptions::new(level) };
        Runner::new(&compiled(graph, options), weights, tokens)
    };
    let mut all = vec![forced(0)];
    let most = all[0].choices.iter().map(|choice| choice.candidates.len()).max().unwrap_or(1);
    all.extend((1..most).map(forced));
    let start = Instant::now();
    for turn in 0..TURNS {
        // Now forwards, now backwards: whoever comes first is not always the same.
        let mut runners: Vec<&mut Runner> = all.iter_mut().chain([&mut picked]).collect();
        if turn % 2 == 1 {
            runners.reverse();
        }
        runners.into_iter().for_each(|runner| runner.run(&ids, turn % LOGITS_EVERY == 0));
        if turn > 2 * LOGITS_EVERY && start.elapsed() > TIME {
            break;
        }
    }
    for group in picked.times.keys() {
        let pick = picked.median(group);
        let mut best = ("the pick".to_owned(), pick);
        let mut lines = Vec::new();
        for (n, runner) in all.iter().enumerate() {
            let Some(choice) = runner.choice(group).filter(|choice| n < choice.candidates.len()) else {
                continue;
            };
            let (candidate, model) = &choice.candidates[n];
            let seconds = runner.median(group);
            if seconds < best.1 {
                best = (candidate.to_string(), seconds);
            }
            lines.push(format!(
                "{{\"candidate\": \"{candidate}\", \"microseconds\": {:.1}, \"least\": {:.1}, \"model\": {:.1}}}",
                seconds * 1e6,
                runner.least(group) * 1e6,
                model / 1e3
            ));
        }
        let name =
            picked.choice(group).map_or(String::new(), |choice| choice.candidates[choice.pick].0.to_string());
        println!(
            "{{\"level\": \"{}\", \"tokens\": {tokens}, \"group\": \"{group}\", \"candidates\": [{}], \
             \"pick\": \"{name}\", \"pick_microseconds\": {:.1}, \"best\": \"{}\", \"pick_over_best\": \
             {:.3}}}",
            level.name(),
            lines.join(", "),
            pick * 1e6,
            best.0,
            pick / best.1
        );
    }
}
