//! How much the model's guesses change when the weights of one matrix are rounded, measured: the divergence
//! (KL) from the model as it is, over some tokens.

use crate::forward::gemm::PanelMatrix;
use crate::forward::{LayeredModel, WeightChange};
use crate::state::WorkState;
use kernmill::observe::{Observer, Unit};
use kernmill::{Error, Result};
use kernmill_compiler::interp::NodeRun;
use kernmill_compiler::ir::{Role, TensorId};
use kernmill_os::threads::share;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows of logits that are in memory at once, for each thread.
const LOGIT_ROWS: usize = 64;
/// Bytes of the rows of all matrices that are probed together.
const GROUP_BYTES: usize = 1 << 30;

/// Tensors of the graph that are changed together: those of one matrix of the file.
pub(crate) struct ProbedSite {
    pub(crate) tensors: Vec<TensorId>,
}

/// A model and what it says of some tokens, which other versions of it are compared with.
pub(crate) struct SensitivityProbe<'a, 'm> {
    model: &'a LayeredModel<'m>,
    windows: &'a [Vec<u32>],
    head: PanelMatrix,
    bias: Option<Vec<f32>>,
    /// Logits of each window.
    logits: Vec<Vec<f32>>,
}

/// A site's texts on their way through the model.
struct SiteRuns {
    site: usize,
    runs: Vec<NodeRun>,
}

impl<'a, 'm> SensitivityProbe<'a, 'm> {
    /// Runs the model as it is.
    ///
    /// # Errors
    /// If it has no logits, or its weights cannot be read.
    pub(crate) fn new(
        model: &'a LayeredModel<'m>,
        windows: &'a [Vec<u32>],
    ) -> Result<SensitivityProbe<'a, 'm>> {
        if model.head().is_none() {
            return Err(Error::bad_input(
                "--calibration: the model makes no logits, whose change is measured",
            ));
        }
        let (head, bias) = model.head_weights(None)?;
        let mut probe = SensitivityProbe { model, windows, head, bias, logits: Vec::new() };
        let mut runs: Vec<NodeRun> = windows.iter().map(|ids| model.text(ids)).collect();
        for part in 0..model.parts() {
            let weights = model.weights(part, None)?;
            model.run(part, &mut runs, &weights, &|_| None, &|_, _| None::<()>)?;
        }
        probe.logits = probe.by_run(&runs, |run, _| {
            let mut all = Vec::new();
            probe.each_block(run, &probe.head, |_, logits| all.extend_from_slice(logits));
            all
        });
        Ok(probe)
    }

    fn tokens(&self) -> usize {
        self.windows.iter().map(Vec::len).sum()
    }

    /// The divergence for each site, in nats a token, with the weights of that site alone changed.
    ///
    /// # Errors
    /// If weights cannot be read.
    pub(crate) fn sites(
        &self,
        sites: &[ProbedSite],
        change: &WeightChange<'_>,
        (state, observer): (&WorkState, &dyn Observer),
    ) -> Result<Vec<f64>> {
        let (_, head_id) = self.model.head_ids();
        let width = self.model.graph.value(self.model.head().expect("it was checked").0.inputs[0]).ty.cols();
        let group = (GROUP_BYTES / (12 * width * self.tokens()).max(1)).max(8);
        let progress = observer.begin("measuring sensitivities", Unit::Count, sites.len() as u64);
        let mut found = vec![0.0; sites.len()];
        let mut order: Vec<usize> = (0..sites.len()).collect();
        order.sort_by_key(|site| self.first_part(&sites[*site], head_id));
        for (at, group) in order.chunks(group).enumerate() {
            let divergences =
                state.kept_or(&format!("sensitivities-{at}"), || self.group(sites, group, change))?;
            let pairs = group.iter().zip(divergences);
            pairs.for_each(|(site, divergence)| found[*site] = divergence);
            progress.advance(group.len() as u64);
        }
        Ok(found)
    }

    /// The divergences for some sites, which begin in ascending parts.
    fn group(&self, sites: &[ProbedSite], group: &[usize], change: &WeightChange<'_>) -> Result<Vec<f64>> {
        let (_, head_id) = self.model.head_ids();
        let mut base: Vec<NodeRun> = self.windows.iter().map(|ids| self.model.text(ids)).collect();
        let mut begun: Vec<SiteRuns> = Vec::new();
        for part in 0..self.model.parts() {
            let weights = self.model.weights(part, None)?;
            let mut here = Vec::new();
            for site in group.iter().filter(|site| self.first_part(&sites[**site], head_id) == part) {
                let mut runs = base.clone();
                let changed =
                    self.model.changed(&sites[*site].tensors, Some(head_id), change, &self.all_ids())?;
                self.model.run(part, &mut runs, &weights, &|_| Some(&changed), &|_, _| None::<()>)?;
                here.push(SiteRuns { site: *site, runs });
            }
            let mut runs: Vec<NodeRun> = begun.iter_mut().flat_map(|of| of.runs.drain(..)).collect();
            self.model.run(part, &mut runs, &weights, &|_| None, &|_, _| None::<()>)?;
            let mut runs = runs.into_iter();
            begun.iter_mut().for_each(|of| of.runs.extend(runs.by_ref().take(self.windows.len())));
            self.model.run(part, &mut base, &weights, &|_| None, &|_, _| None::<()>)?;
            begun.extend(here);
        }
        let mut found = BTreeMap::new();
        for SiteRuns { site, runs } in begun {
            let own = match sites[site].tensors.contains(&head_id) {
                true => Some(self.model.head_weights(Some(change))?.0),
                false => None,
            };
            found.insert(site, self.divergence(&runs, own.as_ref().unwrap_or(&self.head)));
        }
        Ok(group.iter().map(|site| found[site]).collect())
    }

    /// The divergence with all weights changed at once, in nats a token.
    ///
    /// # Errors
    /// If weights cannot be read.
    pub(crate) fn together(&self, change: &WeightChange<'_>, observer: &dyn Observer) -> Result<f64> {
        let progress = observer.begin("measuring the whole", Unit::Count, self.model.parts() as u64);
        let mut runs: Vec<NodeRun> = self.windows.iter().map(|ids| self.model.text(ids)).collect();
        for part in 0..self.model.parts() {
            let weights = self.model.weights(part, Some(change))?;
            let is_table = |id: &TensorId| self.model.graph.tensor(*id).role == Role::Table;
            let mut tables: Vec<TensorId> = self
                .model
                .nodes(part)
                .iter()
                .flat_map(|node| node.tensors.clone())
                .filter(is_table)
                .collect();
            tables.dedup();
            let (_, head_id) = self.model.head_ids();
            let changed = self.model.changed(&tables, Some(head_id), change, &self.all_ids())?;
            self.model.run(part, &mut runs, &weights, &|_| Some(&changed), &|_, _| None::<()>)?;
            progress.advance(1);
        }
        let (head, _) = self.model.head_weights(Some(change))?;
        Ok(self.divergence(&runs, &head))
    }

    /// The divergence of another model of the same graph, in nats a token.
    ///
    /// # Errors
    /// If weights cannot be read.
    pub(crate) fn of(&self, other: &LayeredModel<'_>, observer: &dyn Observer) -> Result<f64> {
        let progress = observer.begin("measuring the file", Unit::Count, other.parts() as u64);
        let mut runs: Vec<NodeRun> = self.windows.iter().map(|ids| other.text(ids)).collect();
        for part in 0..other.parts() {
            let weights = other.weights(part, None)?;
            other.run(part, &mut runs, &weights, &|_| None, &|_, _| None::<()>)?;
            progress.advance(1);
        }
        Ok(self.divergence(&runs, &other.head_weights(None)?.0))
    }

    /// Tokens of all windows, each once.
    fn all_ids(&self) -> Vec<u32> {
        let ids: BTreeSet<u32> = self.windows.iter().flatten().copied().collect();
        ids.into_iter().collect()
    }

    /// The first part that has a tensor of the site; the last one for the logits' matrix.
    fn first_part(&self, site: &ProbedSite, head: TensorId) -> usize {
        let has = |part: &usize| {
            let mut tensors = self.model.nodes(*part).iter().flat_map(|node| &node.tensors);
            tensors.any(|id| *id != head && site.tensors.contains(id))
        };
        (0..self.model.parts()).find(has).unwrap_or(self.model.parts() - 1)
    }

    fn divergence(&self, runs: &[NodeRun], head: &PanelMatrix) -> f64 {
        let vocab = head.rows();
        let sums = self.by_run(runs, |run, window| {
            let mut sum = 0.0;
            self.each_block(run, head, |row, logits| {
                let base = &self.logits[window][row * vocab..][..logits.len()];
                let rows = base.chunks_exact(vocab).zip(logits.chunks_exact(vocab));
                sum += rows.map(|(base, other)| divergence_of_row(base, other)).sum::<f64>();
            });
            sum
        });
        sums.into_iter().sum::<f64>() / self.tokens() as f64
    }

    /// Logits of a run, block by block, each with the number of its first row.
    fn each_block(&self, run: &NodeRun, head: &PanelMatrix, mut take: impl FnMut(usize, &[f32])) {
        let (node, behind) = self.model.head().expect("it was checked");
        let cols = self.model.graph.value(node.inputs[0]).ty.cols();
        let ids = run.tokens();
        for (at, x) in run.rows(node.inputs[0]).chunks(LOGIT_ROWS * cols).enumerate() {
            let mut logits = head.product(x);
            if let Some(bias) = &self.bias {
                let rows = logits.chunks_exact_mut(bias.len());
                rows.for_each(|row| row.iter_mut().zip(bias).for_each(|(y, b)| *y += b));
            }
            if behind.is_empty() {
                take(at * LOGIT_ROWS, &logits);
                continue;
            }
            let mut block = self.model.text(&ids[at * LOGIT_ROWS..][..x.len() / cols]);
            block.set_rows(node.output, logits);
            behind.iter().for_each(|node| block.eval(node));
            take(at * LOGIT_ROWS, block.rows(self.model.graph.output));
        }
    }

    /// Does something with every run, on all threads; results come in the order of the runs. It is told which
    /// window a run is of.
    fn by_run<T: Send>(&self, runs: &[NodeRun], work: impl Fn(&NodeRun, usize) -> T + Sync) -> Vec<T> {
        let made: Vec<Mutex<Option<T>>> = runs.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        share(self.model.threads().min(runs.len()), || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = runs.get(at) else { break };
                let result = work(run, at % self.windows.len());
                *made[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        });
        let taken = made.into_iter().map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner));
        taken.map(|made| made.expect("every run was taken")).collect()
    }
}

/// The divergence of other logits from `base`, in nats. With `d` their differences and `p` the base's
/// probabilities it is `ln(sum p e^d) - sum p d`; the parts of first order cancel before they are summed.
fn divergence_of_row(base: &[f32], other: &[f32]) -> f64 {
    let largest = base.iter().fold(f32::NEG_INFINITY, |most, x| if *x > most { *x } else { most });
    let (mut all, mut first, mut rest) = (0.0f64, 0.0f64, 0.0f64);
    for (base, other) in base.iter().zip(other) {
        let p = f64::from(base - largest).exp();
        if p == 0.0 {
            continue;
        }
        let d = f64::from(other - base);
        all += p;
        first += p * d;
        // e^d - 1 - d.
        rest += p * if d.abs() < 1e-2 { d * d * (0.5 + d * (1.0 / 6.0 + d / 24.0)) } else { d.exp_m1() - d };
    }
    let (first, rest) = (first / all, rest / all);
    rest + ((first + rest).ln_1p() - (first + rest))
}

#[cfg(test)]
mod tests {
    use super::divergence_of_row;

    #[test]
    fn a_divergence_is_that_of_its_definition() {
        let softmax = |x: &[f32]| {
            let e: Vec<f64> = x.iter().map(|x| f64::from(*x).exp()).collect();
            let sum: f64 = e.iter().sum();
            e.into_iter().map(|e| e / sum).collect::<Vec<f64>>()
        };
        let base = [1.5f32, -2.0, 0.25, 3.0];
        for other in [
            [1.5f32, -2.0, 0.25, 3.0],
            [1.0, 0.0, 0.5, 2.0],
            [1.501, -2.002, 0.2505, 3.0],
            [9.0, 0.0, 0.0, 0.0],
        ] {
            let (p, q) = (softmax(&base), softmax(&other));
            let expected: f64 = p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum();
            let found = divergence_of_row(&base, &other);
            assert!((found - expected).abs() <= 1e-9 * expected.max(1e-6), "{found} {expected}");
        }
        // Equal differences everywhere are no divergence.
        let moved = base.map(|x| x + 0.5);
        assert!(divergence_of_row(&base, &moved).abs() < 1e-12);
    }
}
