//! Batches of a compiled program, step by step.

use super::items::{StepRows, shared_step};
use super::machine::SimulatedMachine;
use super::schedule::{Fetches, SharedStep, StepTimes, schedule};
use crate::pipeline::Compiled;
use kernmill_plan::program::{Routing, Step};
use std::collections::BTreeMap;

/// A step of a batch that was simulated.
pub struct SimulatedStep<'a> {
    /// The step.
    pub step: &'a Step,
    /// The routings of its class.
    pub routings: &'a [Routing],
    /// Rows that it runs over.
    pub rows: StepRows,
    /// Times of the step.
    pub times: StepTimes,
}

/// The steps of a batch of `tokens` tokens of one sequence after `depth` others, of whose last one the logits
/// are wanted. Steps for adapters alone are left out.
pub fn simulate<'a>(
    compiled: &'a Compiled,
    machine: &SimulatedMachine,
    tokens: usize,
    depth: usize,
) -> Vec<SimulatedStep<'a>> {
    let Some(class) = compiled.program.classes.iter().find(|class| class.max_tokens as usize >= tokens)
    else {
        return Vec::new();
    };
    // From there on only the wanted row is left, which is the last one.
    let wanted_only = class.wanted_only.as_ref().map_or(usize::MAX, |wanted| wanted.step as usize);
    let all = StepRows { tokens, depth };
    let wanted = StepRows { tokens: 1, depth: depth + tokens - 1 };
    let over_batch = class.steps.iter().enumerate();
    let over_batch = over_batch.map(|(at, step)| (step, if at >= wanted_only { wanted } else { all }));
    let over_slab = class.logit_steps.iter().map(|step| (step, wanted));
    let always = over_batch.chain(over_slab).filter(|(step, _)| step.lora_targets.is_empty());
    let steps: Vec<(&Step, StepRows)> = always.collect();
    let shared: Vec<SharedStep> =
        steps.iter().map(|(step, rows)| shared_step(compiled, step, *rows, machine)).collect();
    // A worker that waits fetches for the next step that reads weights.
    let wanted = |at: usize| shared[at + 1..].iter().find_map(|step| step.ahead).unwrap_or(0);
    // Steps of the same kernel over the same rows take the same time, after the same waits.
    let mut known = BTreeMap::new();
    let mut done: Vec<u64> = Vec::new();
    let one = |(at, (step, rows)): (usize, &(&'a Step, StepRows))| {
        let before = std::mem::take(&mut done);
        let fetches = Fetches { done: &before, wanted: wanted(at) };
        let key = (step.kernel, *rows, before.clone(), fetches.wanted);
        let (times, fetched) =
            known.entry(key).or_insert_with(|| schedule(&shared[at], machine, fetches, |_, _| {}));
        // Nothing has been read yet of what was fetched for a later step.
        let kept = before.iter().filter(|_| shared[at].ahead.is_none()).chain(std::iter::repeat(&0));
        done = fetched.iter().zip(kept).map(|(new, kept)| (new + kept).min(fetches.wanted)).collect();
        SimulatedStep { step, routings: &class.routings, rows: *rows, times: *times }
    };
    steps.iter().enumerate().map(one).collect()
}
