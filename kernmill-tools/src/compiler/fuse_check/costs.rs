//! The savings of a fused-op spec, by the cost model and measured.

use super::measure::medians;
use kernmill_compiler::fuse::{FusedSet, KernelTemplate, value_bytes};
use kernmill_compiler::graph::Graph;
use kernmill_compiler::machine::Description;
use kernmill_compiler::pipeline::{Compiled, CompilerOptions, compile};
use kernmill_compiler::quant::Preset;
use kernmill_compiler::quant::choose::FormatChoices;
use kernmill_compiler::select::cost::MACHINE;
use kernmill_plan::target::{Level, Tuning};
use serde::{Deserialize, Serialize};

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
