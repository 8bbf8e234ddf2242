//! Weights of some nodes in f32: matrices packed for products, vectors as the interpreter has them.

use super::gemm::PanelMatrix;
use kernmill::Result;
use kernmill_checkpoint::CheckpointError;
use kernmill_compiler::interp::NodeRun;
use kernmill_compiler::ir::{Graph, Node, Role, Tensor, TensorId};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource};
use kernmill_os::threads::share;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Changes a matrix: it gets the tensor, the number of the expert, the first row, and the rows.
pub(crate) type WeightChange<'c> = dyn Fn(&Tensor, usize, &mut [f32]) + Sync + 'c;

/// Weights of a part of the model.
pub(crate) struct PartWeights {
    /// By tensor, one for each expert.
    pub(super) matrices: BTreeMap<TensorId, Vec<PanelMatrix>>,
    vectors: BTreeMap<TensorId, Vec<f32>>,
}

/// Weights that some texts run with in place of the model's.
#[derive(Default)]
pub(crate) struct ChangedWeights {
    pub(super) matrices: BTreeMap<TensorId, Vec<PanelMatrix>>,
    /// Rows of tables.
    pub(super) rows: BTreeMap<(TensorId, usize), Vec<f32>>,
}

impl PartWeights {
    pub(super) fn read(
        graph: &Graph,
        nodes: &[Node],
        weights: &CheckpointWeights<'_>,
        change: Option<&WeightChange<'_>>,
        threads: usize,
    ) -> Result<PartWeights> {
        let mut tensors: Vec<TensorId> = nodes.iter().flat_map(|node| node.tensors.clone()).collect();
        tensors.sort_unstable();
        tensors.dedup();
        let mut vectors = BTreeMap::new();
        for id in &tensors {
            let tensor = graph.tensor(*id);
            if matches!(tensor.role, Role::Vector | Role::ExpertVector) {
                vectors.insert(*id, vector(tensor, weights)?);
            }
        }
        let is_matrix = |id: &TensorId| matches!(graph.tensor(*id).role, Role::Matrix | Role::ExpertMatrix);
        tensors.retain(is_matrix);
        Ok(PartWeights { matrices: matrices(graph, &tensors, weights, change, threads)?, vectors })
    }

    pub(super) fn vector(&self, tensor: TensorId) -> Option<&[f32]> {
        self.vectors.get(&tensor).map(Vec::as_slice)
    }

    pub(super) fn set_vectors(&self, text: &mut NodeRun) {
        self.vectors.iter().for_each(|(id, elements)| text.set_weight(*id, elements.clone()));
    }

    pub(super) fn take_vectors(&self, text: &mut NodeRun) {
        self.vectors.keys().for_each(|id| text.set_weight(*id, Vec::new()));
    }
}

impl ChangedWeights {
    /// Changes tensors; of tables, the rows of some tokens.
    pub(super) fn read(
        graph: &Graph,
        tensors: &[TensorId],
        weights: &CheckpointWeights<'_>,
        change: &WeightChange<'_>,
        tokens: &[u32],
        threads: usize,
    ) -> Result<ChangedWeights> {
        let mut changed = ChangedWeights::default();
        let (tables, rest): (Vec<TensorId>, Vec<TensorId>) =
            tensors.iter().partition(|id| graph.tensor(**id).role == Role::Table);
        changed.matrices = matrices(graph, &rest, weights, Some(change), threads)?;
        for id in tables {
            let tensor = graph.tensor(id);
            for at in tokens.iter().map(|token| *token as usize) {
                let mut row = Vec::new();
                weights.f32_rows(tensor, 0, at..at + 1, &mut row)?;
                change(tensor, 0, &mut row);
                changed.rows.insert((id, at), row);
            }
        }
        Ok(changed)
    }
}

fn vector(tensor: &Tensor, weights: &CheckpointWeights<'_>) -> Result<Vec<f32>> {
    let (experts, n) = match tensor.role {
        Role::ExpertVector => (tensor.shape[0], tensor.shape[1]),
        _ => (1, tensor.shape[0]),
    };
    let (mut all, mut elements) = (Vec::new(), Vec::new());
    for expert in 0..experts {
        weights.f32_rows(tensor, expert, 0..n, &mut elements)?;
        all.extend(elements.iter().map(|x| if tensor.plus == 0.0 { *x } else { x + tensor.plus }));
    }
    Ok(all)
}

/// Matrices of tensors, one for each expert.
fn matrices(
    graph: &Graph,
    tensors: &[TensorId],
    weights: &CheckpointWeights<'_>,
    change: Option<&WeightChange<'_>>,
    threads: usize,
) -> Result<BTreeMap<TensorId, Vec<PanelMatrix>>> {
    let experts = |id: &TensorId| {
        let tensor = graph.tensor(*id);
        if tensor.role == Role::ExpertMatrix { tensor.shape[0] } else { 1 }
    };
    let all: Vec<(TensorId, usize)> =
        tensors.iter().flat_map(|id| (0..experts(id)).map(move |expert| (*id, expert))).collect();
    let made: Vec<Mutex<Option<PanelMatrix>>> = all.iter().map(|_| Mutex::new(None)).collect();
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None::<CheckpointError>));
    // A change has threads of its own.
    let threads = if change.is_some() { 1 } else { threads.min(all.len()) };
    share(threads, || {
        let mut rows = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((id, expert)) = all.get(at) else { break };
            let tensor = graph.tensor(*id);
            let [.., n, cols] = tensor.shape[..] else { continue };
            if let Err(error) = weights.f32_rows(tensor, *expert, 0..n, &mut rows) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                next.store(all.len(), Ordering::Relaxed);
                break;
            }
            if let Some(change) = change {
                change(tensor, *expert, &mut rows);
            }
            *made[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(PanelMatrix::new(&rows, cols));
            weights.done_with(tensor, *expert, 0..n);
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error.into());
    }
    let mut read: BTreeMap<TensorId, Vec<PanelMatrix>> = BTreeMap::new();
    for ((id, _), matrix) in all.into_iter().zip(made) {
        let matrix = matrix.into_inner().unwrap_or_else(PoisonError::into_inner);
        read.entry(id).or_default().extend(matrix);
    }
    Ok(read)
}
