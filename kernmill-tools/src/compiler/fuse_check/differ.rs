//! Compiled kernels against the interpreter, on random models that a fused-op spec applies to.

use kernmill_compiler::emit::pack::pack_weights;
use kernmill_compiler::interp::{Interpreter, LoraTargetAdapter};
use kernmill_compiler::ir::Graph;
use kernmill_compiler::ir::lora::with_adapters;
use kernmill_compiler::output::region::build_weights;
use kernmill_compiler::passes::fuse::{FusedSet, FusedSpec, fuse, sample, sample_function};
use kernmill_compiler::passes::quant::choose::FormatChoices;
use kernmill_compiler::passes::quant::{Preset, quantise_chosen};
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_compiler::testing::{RandomWeights, Rng, pack_adapter, random_adapter, random_weights};
use kernmill_plan::adapter::{Adapters, LoraTarget, LoraTargetShape};
use kernmill_plan::target::Level;
use kernmill_runtime::adapter::{AdapterPackError, PackedAdapter};
use kernmill_runtime::guarded::{Flush, Guarded, GuardedConfig};
use kernmill_runtime::pool::PoolConfig;
use kernmill_runtime::{Engine, EngineConfig, PlanImage, SequenceTokens, Steps};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The trial that runs. It is reported beforehand, for the case that it ends the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CurrentTrial {
    /// Number of the random model; `None` while costs are measured.
    pub model: Option<u64>,
    /// The function that the model is of, if it is not the rule's.
    pub function: Option<String>,
    /// Preset, level, and batches.
    pub what: String,
    /// Level.
    pub level: String,
}

/// The outcome of the random models of a spec.
#[derive(Default, Serialize, Deserialize)]
pub struct DiffOutcome {
    /// Random models in which the spec applied.
    pub samples: usize,
    /// Comparisons: a model, a preset, a level, with an adapter or without, a way to cut the tokens into
    /// batches.
    pub runs: usize,
    /// Rows of logits compared.
    pub rows: usize,
    /// The differences to the interpreter, a message for each comparison.
    pub mismatches: Vec<String>,
    /// Why models were of no use: the distinct reasons, each with the presets that it was met in.
    pub reasons: BTreeMap<String, BTreeSet<String>>,
}

impl DiffOutcome {
    fn reason(&mut self, preset: Option<Preset>, reason: String) {
        if self.reasons.len() < REASONS || self.reasons.contains_key(&reason) {
            self.reasons.entry(reason).or_default().extend(preset.map(|preset| preset.name().to_owned()));
        }
    }
}

/// Reasons that are kept.
const REASONS: usize = 8;

/// The subject of trials, and their outcome so far.
struct Trials<'a> {
    set: &'a FusedSet,
    levels: &'a [Level],
    /// Told what comes next.
    at: &'a mut dyn FnMut(CurrentTrial),
    outcome: DiffOutcome,
    /// The first model in which the spec applied, and the preset.
    example: Option<(Graph, Preset)>,
}

/// The model and the inputs that are compared.
struct ComparedModel<'a> {
    graph: &'a Graph,
    weights: &'a RandomWeights,
    tokens: &'a [u32],
    /// Number of the model.
    seed: u64,
    of: Of<'a>,
}

/// An adapter by LoRA target.
type AdapterTargets = [Option<LoraTargetAdapter>];

/// Batches that the tokens of a run are cut into (the last size repeats): one row, several rows and an odd
/// rest, all.
const PIECES: [&[usize]; 3] = [&[1], &[7, 9, 3], &[TOKENS]];
/// Batches that the tokens of a run are cut into where all have an adapter: kernels for few and for many
/// rows.
const ADAPTED_PIECES: [&[usize]; 1] = [&[7, 9, 3]];
/// Sizes of the batches that run between pages that fault.
const GUARDED_PIECES: [usize; 4] = [1, 2, 9, 17];
/// Ranks at random LoRA targets: padded, and of more than a tile.
const RANKS: [usize; 2] = [3, 20];
/// Tokens of a run.
const TOKENS: usize = 29;
/// Largest batch of the kernels.
const CHUNK: usize = 24;

/// Runs the random models of these numbers of a spec: its rule's, or of each of its functions. The first one
/// in which it applied comes back with the outcome.
pub fn run(
    spec: &FusedSpec,
    set: &FusedSet,
    seeds: Range<u64>,
    levels: &[Level],
    at: &mut dyn FnMut(CurrentTrial),
) -> (DiffOutcome, Option<(Graph, Preset)>) {
    let mut trials = Trials { set, levels, at, outcome: DiffOutcome::default(), example: None };
    for seed in seeds {
        if let Some(rule) = &spec.rule {
            match sample(rule, seed) {
                Ok(graph) => trials.one(&graph, seed, Of::Rule(&rule.name)),
                Err(error) => trials.outcome.reason(None, format!("no model could be made: {error}")),
            }
        }
        for function in &spec.functions {
            match sample_function(function, seed) {
                Ok(graph) => trials.one(&graph, seed, Of::Function(&function.name)),
                Err(error) => trials.outcome.reason(None, format!("{}: {error}", function.name)),
            }
        }
    }
    (trials.outcome, trials.example)
}

/// The purpose of a random model.
#[derive(Clone, Copy)]
enum Of<'a> {
    Rule(&'a str),
    Function(&'a str),
}

impl Trials<'_> {
    /// Remembers a model for costs; one of the default preset is the best.
    fn example(&mut self, graph: &Graph, preset: Preset) {
        let better = |known: &(Graph, Preset)| known.1 != Preset::Faithful && preset == Preset::Faithful;
        if self.example.as_ref().is_none_or(better) {
            self.example = Some((graph.clone(), preset));
        }
    }

    /// One model in every preset in which the rule applies.
    fn one(&mut self, graph: &Graph, seed: u64, of: Of<'_>) {
        let weights = random_weights(graph, seed);
        let tokens: Vec<u32> = (0..TOKENS as u64)
            .map(|i| ((seed.wrapping_mul(7).wrapping_add(i * 5)) % graph.vocab as u64) as u32)
            .collect();
        let before = self.outcome.runs;
        for preset in [Preset::Exact, Preset::Faithful, Preset::Bf16] {
            let case = ComparedModel { graph, weights: &weights, tokens: &tokens, seed, of };
            if let Err(reason) = self.preset(&case, preset) {
                self.outcome.reason(Some(preset), reason);
            }
        }
        self.outcome.samples += usize::from(self.outcome.runs > before);
    }

    /// One model in one preset, on every level; or why it is of no use.
    fn preset(&mut self, case: &ComparedModel<'_>, preset: Preset) -> Result<(), String> {
        let choices = FormatChoices::assumed(case.graph);
        let quantised =
            quantise_chosen(case.graph, preset, Some(&choices)).map_err(|error| error.to_string())?;
        // Programs have branches for adapters, which shrinks are groups of.
        let adapted =
            with_adapters(&quantised, preset.adapter_format()).map_err(|error| error.to_string())?;
        let (mut plain, mut with_adapter) = (None, None);
        for level in self.levels {
            let (fused, report) = fuse(&adapted, self.set.rules(), *level);
            if let Of::Rule(rule) = case.of
                && !fused.groups.iter().any(|group| group.rule.as_deref() == Some(rule))
            {
                let misses = report.near_misses.iter().filter(|miss| miss.rule == rule);
                misses.for_each(|miss| self.outcome.reason(Some(preset), miss.reason.clone()));
                continue;
            }
            if plain.is_none() {
                plain = Some(case.interpret(&quantised, None)?);
            }
            let expected = plain.as_deref().unwrap_or_default();
            let options = CompilerOptions {
                preset,
                choices: Some(choices.clone()),
                chunk: CHUNK,
                fused: self.set.clone(),
                ..CompilerOptions::new(*level)
            };
            let what = format!("model {}, {}, {}", case.seed, preset.name(), level.name());
            self.next(case, *level, &what);
            let compiled = match compile(case.graph, &options) {
                Ok(compiled) => compiled,
                Err(error) => {
                    self.outcome.reason(Some(preset), error.to_string());
                    continue;
                }
            };
            self.example(case.graph, preset);
            self.compare(case, &compiled, None, expected, &what);
            let adapter = random(&compiled, case.seed);
            if !adapter.is_empty() {
                if with_adapter.is_none() {
                    with_adapter = Some(case.interpret(&adapted, Some(&adapter))?);
                }
                let expected = with_adapter.as_deref().unwrap_or_default();
                self.compare(case, &compiled, Some(&adapter), expected, &format!("{what}, with an adapter"));
            }
        }
        Ok(())
    }

    /// Says what comes next.
    fn next(&mut self, case: &ComparedModel<'_>, level: Level, what: &str) {
        let function = match case.of {
            Of::Rule(_) => None,
            Of::Function(name) => Some(name.to_owned()),
        };
        let (what, level) = (what.to_owned(), level.name().to_owned());
        (self.at)(CurrentTrial { model: Some(case.seed), function, what, level });
    }

    /// Every way to cut the tokens into batches against the interpreter's logits.
    fn compare(
        &mut self,
        case: &ComparedModel<'_>,
        compiled: &Compiled,
        adapter: Option<&AdapterTargets>,
        expected: &[f32],
        what: &str,
    ) {
        let level = compiled.program.level;
        let all = if adapter.is_some() { &ADAPTED_PIECES[..] } else { &PIECES };
        for pieces in all {
            let what = format!("{what}, batches {pieces:?}");
            self.next(case, level, &what);
            self.check(case, case.logits(compiled, adapter, pieces), expected, &what);
        }
        if adapter.is_none() {
            for flush in [Flush::End, Flush::Start] {
                let what =
                    format!("{what}, batches {GUARDED_PIECES:?}, between pages that fault ({flush:?})");
                self.next(case, level, &what);
                self.check(case, case.guarded(compiled, flush), expected, &what);
            }
        }
    }

    fn check(
        &mut self,
        case: &ComparedModel<'_>,
        actual: Result<Vec<f32>, String>,
        expected: &[f32],
        what: &str,
    ) {
        self.outcome.runs += 1;
        let actual = match actual {
            Ok(actual) => actual,
            Err(error) => return self.outcome.mismatches.push(format!("{what}: {error}")),
        };
        self.outcome.rows += case.tokens.len();
        let differ = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
        let vocab = case.graph.vocab;
        if actual.len() != expected.len() {
            let message = format!("{what}: {} logits, expected {}", actual.len(), expected.len());
            self.outcome.mismatches.push(message);
        } else if let Some(at) = actual.iter().zip(expected).position(differ) {
            self.outcome.mismatches.push(format!(
                "{what}: token {} logit {}: {} instead of {}",
                at / vocab,
                at % vocab,
                actual[at],
                expected[at]
            ));
        }
    }
}

/// A random adapter for the LoRA targets of a program: the same at every level.
fn random(compiled: &Compiled, seed: u64) -> Vec<Option<LoraTargetAdapter>> {
    let mut rng = Rng::new(seed);
    let lora_targets = compiled.program.model.adapters.iter().flat_map(|adapters| &adapters.lora_targets);
    let mut one = |lora_target: &LoraTarget| {
        let (rank, dora) = (rng.pick(&RANKS), rng.one_in(2));
        random_adapter(lora_target, rank, dora, &mut rng)
    };
    lora_targets.map(|lora_target| Some(one(lora_target))).collect()
}

impl ComparedModel<'_> {
    fn interpret(&self, graph: &Graph, adapter: Option<&AdapterTargets>) -> Result<Vec<f32>, String> {
        let weights = self.weights.for_graph(graph);
        let mut interpreter = Interpreter::new(graph, &weights).map_err(|error| error.to_string())?;
        if let Some(adapter) = adapter {
            interpreter.set_adapters(&[adapter.to_vec()]);
            interpreter.use_adapter(0, 1);
        }
        interpreter.extend(0, self.tokens).map_err(|error| error.to_string())
    }

    /// The logits of kernels whose every operand lies against a page that faults.
    fn guarded(&self, compiled: &Compiled, flush: Flush) -> Result<Vec<f32>, String> {
        let mut bytes = vec![0; compiled.layout.bytes as usize];
        let source = self.weights.source(self.graph);
        pack_weights(&compiled.fused.graph, &compiled.layout, &source, &mut bytes, 1, &|_| {})
            .map_err(|error| error.to_string())?;
        let config = GuardedConfig { context: 32, sequences: 1, workers: 2, flush };
        // SAFETY: the compiler of this process made the code, and the process is there to run it.
        let mut guarded = unsafe { Guarded::new(&compiled.program, &bytes, config)? };
        let (mut out, mut rest, mut turn) = (Vec::new(), self.tokens, 0);
        while !rest.is_empty() {
            let size = GUARDED_PIECES[turn.min(GUARDED_PIECES.len() - 1)].min(rest.len());
            let (piece, after) = rest.split_at(size);
            out.extend(guarded.run(&[(0, piece)])?);
            (rest, turn) = (after, turn + 1);
        }
        Ok(out)
    }

    fn logits(
        &self,
        compiled: &Compiled,
        adapter: Option<&AdapterTargets>,
        pieces: &[usize],
    ) -> Result<Vec<f32>, String> {
        let source = self.weights.source(self.graph);
        let weights = build_weights(compiled, &source, 1, &|_| {}).map_err(|error| error.to_string())?;
        // SAFETY: the compiler of this process made the program.
        let image = unsafe { PlanImage::generated(compiled.program.clone(), weights) };
        let pool = PoolConfig { threads: Some(2), ..PoolConfig::default() };
        let config =
            EngineConfig { pool, context: Some(64), sequences: 1, chunk: None, ..EngineConfig::default() };
        let mut engine = Engine::new(&image, config).map_err(|error| error.to_string())?;
        let id = engine.create().map_err(|error| error.to_string())?;
        if let (Some(adapter), Some(lora_targets)) = (adapter, &compiled.program.model.adapters) {
            let packed = packed(lora_targets, adapter).map_err(|error| error.to_string())?;
            let slot = engine.place_adapter(Arc::new(packed)).map_err(|error| error.to_string())?;
            engine.use_adapter(id, slot).map_err(|error| error.to_string())?;
        }
        let (mut out, mut rest, mut turn) = (Vec::new(), self.tokens, 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(pieces[turn.min(pieces.len() - 1)].min(rest.len()));
            let step = engine.extend_in_order(&[SequenceTokens::all(id, piece)], &mut |row| {
                out.extend_from_slice(row.logits)
            });
            step.map_err(|error| error.to_string())?;
            (rest, turn) = (after, turn + 1);
        }
        Ok(out)
    }
}

fn packed(adapters: &Adapters, data: &AdapterTargets) -> Result<PackedAdapter, AdapterPackError> {
    let shape =
        |data: &LoraTargetAdapter| LoraTargetShape { rank: data.rank, factors: data.factors.is_some() };
    let shapes: Vec<Option<LoraTargetShape>> = data.iter().map(|data| data.as_ref().map(shape)).collect();
    PackedAdapter::pack(adapters, &shapes, &mut |lora_target, layout, bytes| match &data[lora_target] {
        Some(data) => Ok(pack_adapter(&adapters.lora_targets[lora_target], data, layout, bytes)?),
        None => Ok(()),
    })
}
