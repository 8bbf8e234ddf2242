//! Costs of types as they were measured: each matrix in its smallest type by itself, the others by their
//! errors beside that one's.

use super::probe::{ProbedSite, SensitivityProbe};
use super::texts::CalibrationTexts;
use crate::allocate::SizedCost;
use crate::forward::LayeredModel;
use crate::recipe::Candidate;
use crate::rows::{MatrixSource, round_rows};
use crate::state::WorkState;
use kernmill::observe::Observer;
use kernmill::{Error, Result};
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::gguf::Gguf;
use kernmill_compiler::ir::{Role, Tensor, TensorId, of_expert};
use std::collections::BTreeMap;
use std::path::Path;

/// Tokens that sensitivities are measured on, about.
const PROBE_TOKENS: usize = 512;
/// Windows that they are in.
const PROBE_WINDOWS: usize = 4;

/// A model whose tensors may get other types, and what that would do.
pub(crate) struct MeasuredTypes<'a, 'c> {
    model: &'a LayeredModel<'a>,
    windows: Vec<Vec<u32>>,
    candidates: &'a [Candidate<'c>],
    sources: &'a [MatrixSource<'a>],
    /// The candidate that a tensor's matrix is, by its name and that of the expert's.
    by_name: BTreeMap<&'a str, usize>,
}

impl<'a, 'c> MeasuredTypes<'a, 'c> {
    pub(crate) fn new(
        model: &'a LayeredModel<'a>,
        texts: &CalibrationTexts,
        candidates: &'a [Candidate<'c>],
        sources: &'a [MatrixSource<'a>],
    ) -> MeasuredTypes<'a, 'c> {
        let names = candidates.iter().map(|candidate| candidate.info.name.as_str());
        let by_name = names.enumerate().map(|(at, name)| (name, at)).collect();
        MeasuredTypes { model, windows: windows(&texts.windows), candidates, sources, by_name }
    }

    /// Tokens that are measured on.
    pub(crate) fn tokens(&self) -> usize {
        self.windows.iter().map(Vec::len).sum()
    }

    /// Turns squared relative errors of every type into divergences, in nats a token.
    ///
    /// # Errors
    /// If the model makes no logits, or weights cannot be read.
    pub(crate) fn costs(
        &self,
        squares: Vec<Vec<SizedCost>>,
        (state, observer): (&WorkState, &dyn Observer),
    ) -> Result<Vec<Vec<SizedCost>>> {
        let probe = SensitivityProbe::new(self.model, &self.windows)?;
        let mut sites: BTreeMap<&str, Vec<TensorId>> = BTreeMap::new();
        for (at, tensor) in self.model.graph.tensors.iter().enumerate() {
            let is_choice = self.candidate(tensor, 0).is_some_and(|at| self.candidates[at].types.len() > 1);
            if is_choice && matches!(tensor.role, Role::Matrix | Role::ExpertMatrix | Role::Table) {
                sites.entry(&tensor.source.name).or_default().push(TensorId(at as u32));
            }
        }
        let probed: Vec<ProbedSite> =
            sites.values().map(|tensors| ProbedSite { tensors: tensors.clone() }).collect();
        let change = self.change(|at| self.candidates[at].types[0]);
        let found = probe.sites(&probed, &change, (state, observer))?;
        let mut costs = squares;
        for (tensors, divergence) in sites.values().zip(found) {
            let tensor = self.model.graph.tensor(tensors[0]);
            let experts = if tensor.source.is_gathered() { tensor.shape[0] } else { 1 };
            for at in (0..experts).filter_map(|expert| self.candidate(tensor, expert)) {
                let first = costs[at][0].cost;
                let factor = if first > 0.0 { divergence / (first * experts as f64) } else { 0.0 };
                costs[at].iter_mut().for_each(|of| of.cost *= factor);
            }
        }
        Ok(costs)
    }

    /// The divergence with the types at these places, in nats a token.
    ///
    /// # Errors
    /// If weights cannot be read.
    pub(crate) fn divergence(&self, chosen: &[usize], observer: &dyn Observer) -> Result<f64> {
        let probe = SensitivityProbe::new(self.model, &self.windows)?;
        probe.together(&self.change(|at| self.candidates[at].types[chosen[at]]), observer)
    }

    /// The divergence of a file that was written, in nats a token.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn of_file(&self, path: &Path, observer: &dyn Observer) -> Result<f64> {
        let checkpoint = Gguf::open(path).and_then(Gguf::into_checkpoint).map_err(Error::read(path))?;
        let other = self.model.with(&checkpoint);
        SensitivityProbe::new(self.model, &self.windows)?.of(&other, observer)
    }

    fn candidate(&self, tensor: &Tensor, expert: usize) -> Option<usize> {
        self.by_name.get(&*of_expert(&tensor.source.name, expert)).copied()
    }

    /// Rounds the rows of a tensor to the type of its candidate.
    fn change(
        &self,
        kind: impl Fn(usize) -> TensorType + Sync,
    ) -> impl Fn(&Tensor, usize, &mut [f32]) + Sync {
        move |tensor, expert, rows| {
            let Some(at) = self.candidate(tensor, expert) else { return };
            let kind = kind(at);
            if kind == self.candidates[at].info.kind {
                return;
            }
            let place = if tensor.source.is_gathered() { 0 } else { expert };
            round_rows(kind, rows, self.sources[at].importance().of_expert(place), self.model.threads());
        }
    }
}

/// Beginnings of windows from all over the texts.
fn windows(all: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let count = PROBE_WINDOWS.min(all.len());
    let length = PROBE_TOKENS / PROBE_WINDOWS;
    let window = |at: usize| {
        let window = &all[at * all.len() / count];
        window[..length.min(window.len())].to_vec()
    };
    (0..count).map(window).collect()
}
