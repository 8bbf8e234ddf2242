//! How long a model's kernels really take, with a spec and without it.

use kernmill_compiler::graph::Graph;
use kernmill_compiler::pack::region::build_weights;
use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::testing::{RandomWeights, random_weights};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, SeqId, SequenceTokens, Steps};
use std::time::{Duration, Instant};

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
