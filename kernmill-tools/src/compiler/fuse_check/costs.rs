//! The savings of a fused-op spec: by the cost model, and by the time that kernels take with it and without.

use kernmill_compiler::ir::Graph;
use kernmill_compiler::machine::Description;
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::passes::fuse::{FusedSet, KernelTemplate, value_bytes};
use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::select::costs_of_machine::MACHINE;
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_compiler::testing::{RandomWeights, random_weights};
use kernmill_plan::target::{Level, Tuning};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, SeqId, SequenceTokens, Steps};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The costs of a model without a fused-op spec and with it.
#[derive(Serialize, Deserialize)]
pub struct SpecCosts {
    /// Name of the model.
    pub model: String,
    /// Preset of the model.
    pub preset: String,
    /// Costs without the spec.
    pub before: Cost,
    /// Costs with the spec.
    pub after: Cost,
}

/// The cost of running a model.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// Barriers of a run over one token.
    pub barriers: usize,
    /// Bytes of intermediate values that are written per token.
    pub bytes: usize,
    /// Microseconds of a batch of one token by the cost model, attention excepted.
    pub microseconds_1: f64,
    /// Microseconds of a batch of 512 tokens by the cost model, attention excepted.
    pub microseconds_512: f64,
    /// Microseconds of a batch of one token, measured with one worker: the median of several. `None` for a
    /// model that is too large for that.
    pub measured_1: Option<f64>,
    /// Microseconds of a batch of 512 tokens, measured as `measured_1` is.
    pub measured_512: Option<f64>,
}

const CHUNK: usize = 512;

impl SpecCosts {
    /// Costs of the spec called `name`, on the described machine or for `level`; `None` when the model does
    /// not compile. Code that this CPU cannot run is not measured.
    pub fn of(
        name: &str,
        graph: &Graph,
        preset: Preset,
        set: &FusedSet,
        (level, machine): (Level, Option<&Description>),
    ) -> Option<SpecCosts> {
        let level = machine.map_or(level, |machine| machine.level(preset));
        let without = set.clone().without(name).ok()?;
        // Steps for adapters alone run only with one: they count where the spec is about nothing else.
        let adapters = set.rules().any(|rule| rule.name == name && rule.template == KernelTemplate::Shrink);
        let cost = |fused: &FusedSet| {
            let choices = Some(FormatChoices::assumed(graph));
            let options = CompilerOptions {
                preset,
                choices,
                adapters,
                chunk: CHUNK,
                fused: fused.clone(),
                tuning: machine.map_or(Tuning::Generic, |machine| machine.family),
                machine: machine.map_or(MACHINE, Description::costs),
                ..CompilerOptions::new(level)
            };
            let compiled = compile(graph, &options).ok()?;
            Some((Cost::of(&compiled), compiled))
        };
        let ((mut before, plain), (mut after, fused)) = (cost(&without)?, cost(set)?);
        let runs = level.missing().is_empty();
        if let Some(measured) = runs.then(|| medians(graph, [&plain, &fused], CHUNK)).flatten() {
            for (cost, [one, many]) in [&mut before, &mut after].into_iter().zip(measured) {
                (cost.measured_1, cost.measured_512) = (Some(one), Some(many));
            }
        }
        Some(SpecCosts { model: graph.name.clone(), preset: preset.name().to_owned(), before, after })
    }
}

impl Cost {
    fn of(compiled: &Compiled) -> Cost {
        let model = &compiled.model;
        let selection = |tokens: usize| compiled.selections.iter().find(|class| class.max_tokens >= tokens);
        let time = |tokens: usize| -> f64 {
            let uses = selection(tokens).map_or(&[][..], |class| &class.uses);
            uses.iter().map(|one| model.kernel(&one.kernel, tokens)).sum::<f64>() / 1e3
        };
        Cost {
            barriers: selection(1).map_or(0, |class| class.uses.len()),
            bytes: value_bytes(&compiled.fused),
            microseconds_1: time(1),
            microseconds_512: time(CHUNK),
            measured_1: None,
            measured_512: None,
        }
    }
}

/// Elements of weights above which nothing is measured: random ones would take long to make.
const MAX_ELEMENTS: usize = 32 << 20;
/// Batches of each size that are timed at most, in turn with those of the other side, and how long that may
/// take.
const BATCHES: usize = 41;
const BUDGET: Duration = Duration::from_millis(1500);

/// Microseconds of a batch of one token and of `chunk` tokens by each of two programs of a model: medians of
/// several, the programs in turn. `None` for a model that is too large to measure on the side, or cannot be
/// run here.
pub fn medians(graph: &Graph, both: [&Compiled; 2], chunk: usize) -> Option<[[f64; 2]; 2]> {
    let elements = graph.tensors.iter().map(|tensor| tensor.shape.iter().product::<usize>());
    if elements.sum::<usize>() > MAX_ELEMENTS || graph.max_context <= chunk {
        return None;
    }
    let weights = random_weights(graph, 1);
    let mut sides = Vec::with_capacity(2);
    for compiled in both {
        sides.push(Side::new(graph, &weights, compiled, chunk)?);
    }
    let one = in_turn(&mut sides, graph.vocab, 1)?;
    let many = in_turn(&mut sides, graph.vocab, chunk)?;
    Some([[one[0], many[0]], [one[1], many[1]]])
}

/// A program that is ready to run.
struct Side {
    engine: Engine,
    sequence: SeqId,
}

impl Side {
    fn new(graph: &Graph, weights: &RandomWeights, compiled: &Compiled, chunk: usize) -> Option<Side> {
        let weights = build_weights(compiled, &weights.source(graph), 1, &|_| {}).ok()?;
        // SAFETY: the compiler of this process made the program.
        let image = unsafe { PlanImage::generated(compiled.program.clone(), weights) };
        let context = Some(chunk as u32 + 1);
        let pool = PoolConfig { threads: Some(1), ..PoolConfig::default() };
        let config = EngineConfig { pool, context, sequences: 1, chunk: None, ..EngineConfig::default() };
        let mut engine = Engine::new(&image, config).ok()?;
        let sequence = engine.create().ok()?;
        Some(Side { engine, sequence })
    }

    /// Runs a batch from an empty sequence on.
    fn time(&mut self, tokens: &[u32]) -> Option<Duration> {
        self.engine.truncate(self.sequence, 0).ok()?;
        let start = Instant::now();
        self.engine.extend(&[SequenceTokens::last(self.sequence, tokens)], &()).ok()?;
        Some(start.elapsed())
    }
}

/// The medians of batches of `count` tokens.
fn in_turn(sides: &mut [Side], vocab: usize, count: usize) -> Option<[f64; 2]> {
    let tokens: Vec<u32> = (0..count).map(|i| (i * 7 % vocab) as u32).collect();
    let mut times = [Vec::new(), Vec::new()];
    let start = Instant::now();
    // The first two warm up.
    for batch in 0..BATCHES + 2 {
        for (side, times) in sides.iter_mut().zip(&mut times) {
            let time = side.time(&tokens)?;
            times.extend((batch >= 2).then_some(time));
        }
        if times[0].len() >= 3 && start.elapsed() > BUDGET {
            break;
        }
    }
    Some(times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e6
    }))
}
