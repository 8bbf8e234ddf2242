//! Compiled kernels against the interpreter, on random models that a fused-op spec applies to.

use kernmill_compiler::adapt::with_adapters;
use kernmill_compiler::build::build_weights;
use kernmill_compiler::choose::Choices;
use kernmill_compiler::fuse::{FusedSet, FusedSpec, fuse, sample, sample_function};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::interp::{Interpreter, RawTensor, SiteAdapter};
use kernmill_compiler::pack::MemorySource;
use kernmill_compiler::pipeline::{Compiled, Options, compile};
use kernmill_compiler::quant::{Preset, quantise_chosen};
use kernmill_compiler::testing::{RandomWeights, Rng, pack_adapter, random_adapter, random_weights};
use kernmill_plan::adapter::{Adapters, Site, SiteShape};
use kernmill_plan::target::Level;
use kernmill_runtime::adapter::{AdapterPackError, PackedAdapter};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, Want};
use std::sync::Arc;

/// What came out.
#[derive(Default)]
pub struct Outcome {
    /// Random models in which the spec applied.
    pub samples: usize,
    /// Comparisons: a model, a preset, a level, with an adapter or without, a way to cut the tokens into batches.
    pub runs: usize,
    /// Rows of logits compared.
    pub rows: usize,
    /// What differed.
    pub mismatches: Vec<String>,
    /// The first model in which the spec applied, and the preset.
    pub example: Option<(Graph, Preset)>,
    /// Why models were of no use: the distinct reasons.
    pub reasons: Vec<String>,
}

impl Outcome {
    /// Remembers a model for costs; one of the default preset is the best.
    fn example(&mut self, graph: &Graph, preset: Preset) {
        let better = |known: &(Graph, Preset)| known.1 != Preset::Faithful && preset == Preset::Faithful;
        if self.example.as_ref().is_none_or(better) {
            self.example = Some((graph.clone(), preset));
        }
    }

    fn reason(&mut self, reason: String) {
        if !self.reasons.contains(&reason) && self.reasons.len() < 8 {
            self.reasons.push(reason);
        }
    }
}

/// What a model is compared on.
struct Case<'a> {
    graph: &'a Graph,
    weights: &'a RandomWeights,
    tokens: &'a [u32],
}

/// An adapter by site.
type Adapter = [Option<SiteAdapter>];

/// Batches that the tokens of a run are cut into (the last size repeats): one row, several rows and an odd rest, all.
const PIECES: [&[usize]; 3] = [&[1], &[7, 9, 3], &[TOKENS]];
/// The same where all tokens have an adapter: kernels for few and for many rows.
const ADAPTED_PIECES: [&[usize]; 1] = [&[7, 9, 3]];
/// Ranks at random sites: padded, and of more than a tile.
const RANKS: [usize; 2] = [3, 20];
/// Tokens of a run.
const TOKENS: usize = 29;
/// Largest batch of the kernels.
const CHUNK: usize = 24;

/// Runs `samples` random models of a spec: its rule's, or of each of its functions.
pub fn run(spec: &FusedSpec, set: &FusedSet, samples: u32) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 0..u64::from(samples) {
        if let Some(rule) = &spec.rule {
            match sample(rule, seed) {
                Ok(graph) => one(&graph, seed, Some(&rule.name), set, &mut outcome),
                Err(error) => outcome.reason(format!("no model could be made: {error}")),
            }
        }
        for function in &spec.functions {
            match sample_function(function, seed) {
                Ok(graph) => one(&graph, seed, None, set, &mut outcome),
                Err(error) => outcome.reason(format!("{}: {error}", function.name)),
            }
        }
    }
    outcome
}

/// One model in every preset in which `rule` applies.
fn one(graph: &Graph, seed: u64, rule: Option<&str>, set: &FusedSet, outcome: &mut Outcome) {
    let weights = random_weights(graph, seed);
    let tokens: Vec<u32> =
        (0..TOKENS as u64).map(|i| ((seed * 7 + i * 5) % graph.vocab as u64) as u32).collect();
    let mut applied = false;
    for preset in [Preset::Exact, Preset::Faithful, Preset::Bf16] {
        let choices = Choices::assumed(graph);
        let quantised = match quantise_chosen(graph, preset, Some(&choices)) {
            Ok(quantised) => quantised,
            Err(error) => {
                outcome.reason(error.to_string());
                continue;
            }
        };
        // Programs have branches for adapters, which shrinks are groups of.
        let adapted = match with_adapters(&quantised, preset.adapter_format()) {
            Ok(adapted) => adapted,
            Err(error) => {
                outcome.reason(error.to_string());
                continue;
            }
        };
        let interpret = |graph: &Graph, adapter: Option<&Adapter>| {
            let mut interpreter = Interpreter::new(graph, &weights.for_graph(graph))?;
            if let Some(adapter) = adapter {
                interpreter.set_adapters(&[adapter.to_vec()]);
                interpreter.use_adapter(0, 1);
            }
            interpreter.extend(0, &tokens)
        };
        let (mut plain, mut with_adapter) = (None, None);
        for level in Level::supported() {
            let (fused, report) = fuse(&adapted, set.rules(), level);
            if let Some(rule) = rule
                && !fused.groups.iter().any(|group| group.rule.as_deref() == Some(rule))
            {
                let misses = report.near_misses.iter().filter(|miss| miss.rule == rule);
                misses.for_each(|miss| {
                    outcome.reason(format!("{}, {}: {}", preset.name(), level.name(), miss.reason))
                });
                continue;
            }
            let expected = match plain.get_or_insert_with(|| interpret(&quantised, None)) {
                Ok(expected) => &*expected,
                Err(error) => {
                    outcome.reason(error.to_string());
                    break;
                }
            };
            let options = Options {
                preset,
                choices: Some(choices.clone()),
                chunk: CHUNK,
                fused: set.clone(),
                ..Options::new(level)
            };
            let what = format!("model {seed}, {}, {}", preset.name(), level.name());
            match compile(graph, &options) {
                Ok(compiled) => {
                    outcome.samples += usize::from(!applied);
                    applied = true;
                    outcome.example(graph, preset);
                    let case = Case { graph, weights: &weights, tokens: &tokens };
                    case.compare(&compiled, None, expected, &what, outcome);
                    let adapter = random(&compiled, seed);
                    if adapter.is_empty() {
                        continue;
                    }
                    match with_adapter.get_or_insert_with(|| interpret(&adapted, Some(&adapter))) {
                        Ok(expected) => {
                            let what = format!("{what}, with an adapter");
                            case.compare(&compiled, Some(&adapter), expected, &what, outcome);
                        }
                        Err(error) => outcome.reason(error.to_string()),
                    }
                }
                Err(error) => outcome.reason(format!("{what}: {error}")),
            }
        }
    }
}

/// A random adapter for the sites of a program: the same at every level.
fn random(compiled: &Compiled, seed: u64) -> Vec<Option<SiteAdapter>> {
    let mut rng = Rng::new(seed);
    let sites = compiled.program.model.adapters.iter().flat_map(|adapters| &adapters.sites);
    let mut one = |site: &Site| {
        let (rank, dora) = (rng.pick(&RANKS), rng.one_in(2));
        random_adapter(site, rank, dora, &mut rng)
    };
    sites.map(|site| Some(one(site))).collect()
}

impl Case<'_> {
    /// Every way to cut the tokens into batches against the interpreter's logits.
    fn compare(
        &self,
        compiled: &Compiled,
        adapter: Option<&Adapter>,
        expected: &[f32],
        what: &str,
        outcome: &mut Outcome,
    ) {
        let all = if adapter.is_some() { &ADAPTED_PIECES[..] } else { &PIECES };
        for pieces in all {
            outcome.runs += 1;
            let actual = match self.logits(compiled, adapter, pieces) {
                Ok(actual) => actual,
                Err(error) => {
                    outcome.mismatches.push(format!("{what}: {error}"));
                    continue;
                }
            };
            outcome.rows += self.tokens.len();
            let differ = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
            let vocab = self.graph.vocab;
            if actual.len() != expected.len() {
                outcome.mismatches.push(format!(
                    "{what}: {} logits, expected {}",
                    actual.len(),
                    expected.len()
                ));
            } else if let Some(at) = actual.iter().zip(expected).position(differ) {
                outcome.mismatches.push(format!(
                    "{what}, batches {pieces:?}: token {} logit {}: {} instead of {}",
                    at / vocab,
                    at % vocab,
                    actual[at],
                    expected[at]
                ));
            }
        }
    }

    fn logits(
        &self,
        compiled: &Compiled,
        adapter: Option<&Adapter>,
        pieces: &[usize],
    ) -> Result<Vec<f32>, String> {
        let mut source = MemorySource::default();
        for (tensor, raw) in self.graph.tensors.iter().zip(&self.weights.raw) {
            match raw {
                RawTensor::Mxfp4 { blocks, scales } => {
                    source.mxfp4.insert(tensor.name.clone(), (blocks.clone(), scales.clone()));
                }
                other => {
                    source.f32.insert(tensor.name.clone(), other.to_f32());
                }
            }
        }
        let weights = build_weights(compiled, &source, 1, &|_| {}).map_err(|error| error.to_string())?;
        // SAFETY: the compiler of this process made the program.
        let image = unsafe { PlanImage::generated(compiled.program.clone(), weights) };
        let pool = PoolConfig { threads: Some(2), ..PoolConfig::default() };
        let config = EngineConfig { pool, context: Some(64), sequences: 1, chunk: None };
        let mut engine = Engine::new(&image, config).map_err(|error| error.to_string())?;
        let id = engine.create().map_err(|error| error.to_string())?;
        if let (Some(adapter), Some(sites)) = (adapter, &compiled.program.model.adapters) {
            let packed = packed(sites, adapter).map_err(|error| error.to_string())?;
            let slot = engine.place_adapter(Arc::new(packed)).map_err(|error| error.to_string())?;
            engine.use_adapter(id, slot).map_err(|error| error.to_string())?;
        }
        let (mut out, mut rest, mut turn) = (Vec::new(), self.tokens, 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(pieces[turn.min(pieces.len() - 1)].min(rest.len()));
            let step = engine.step(&[(id, piece)], Want::All, &mut |_, row| out.extend_from_slice(row));
            step.map_err(|error| error.to_string())?;
            (rest, turn) = (after, turn + 1);
        }
        Ok(out)
    }
}

fn packed(adapters: &Adapters, data: &Adapter) -> Result<PackedAdapter, AdapterPackError> {
    let shape = |data: &SiteAdapter| SiteShape { rank: data.rank, factors: data.factors.is_some() };
    let shapes: Vec<Option<SiteShape>> = data.iter().map(|data| data.as_ref().map(shape)).collect();
    PackedAdapter::pack(adapters, &shapes, &mut |site, layout, bytes| match &data[site] {
        Some(data) => Ok(pack_adapter(&adapters.sites[site], data, layout, bytes)?),
        None => Ok(()),
    })
}
