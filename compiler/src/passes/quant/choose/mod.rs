//! Which matrices have 4 bits in preset `fast`: decided tensor by tensor, from the weights.
//!
//! Candidates are the attention's projections and the unembedding, where the checkpoint has them as numbers
//! and not in blocks, which stay as they are. Each is fitted to int4; the ones that lose more than
//! [`MAX_RELATIVE_ERROR`] stay int8.

use crate::ir::{Graph, MatrixRows, Node, NodeId, TensorId, Uses};
use crate::weights::{PackWeightsError, WeightSource, locate};
use kernmill_os::float_env::FloatEnv;
use kernmill_os::threads::share;
use kernmill_plan::format::int4::{self, Squares};
use kernmill_plan::format::{BLOCK, WeightFormat};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest `||W - Q|| / ||W||` of a matrix in int4, for every model.
///
/// The outputs of a matrix have about the relative error of its weights, whatever the model. Bits per byte
/// rise with its square: less than 1 % even if every matrix were at the limit (measured,
/// docs/dev/numerics.md). Normal weights are at 0.081, weights with the tails of a Laplace distribution at
/// 0.103.
pub const MAX_RELATIVE_ERROR: f64 = 0.12;

/// Rows that a thread fits at once; sums over them are added in ascending order, so that the number of
/// threads changes nothing.
const ITEM_ROWS: usize = 64;

/// Where a matrix stands in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixClass {
    /// A projection to queries, keys or values, or of the attention's output.
    Attention,
    /// The matrix whose products are the logits.
    Unembedding,
}

impl MatrixClass {
    /// Name for listings.
    pub fn name(self) -> &'static str {
        match self {
            MatrixClass::Attention => "attention",
            MatrixClass::Unembedding => "unembedding",
        }
    }
}

/// A matrix that may have 4 bits, and what was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatChoice {
    /// The matrix.
    pub tensor: TensorId,
    /// Where it stands.
    pub lora_target: MatrixClass,
    /// `||W - Q|| / ||W||` in int4; `None` when no weights were looked at.
    pub error: Option<f64>,
    /// int4 or int8.
    pub format: WeightFormat,
}

/// The decision for every candidate of a graph, in the order of its tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormatChoices {
    /// One for each candidate.
    pub list: Vec<FormatChoice>,
}

impl FormatChoices {
    /// Every candidate in int4, whatever its weights: what a spec compiles to as long as no tensor exceeds
    /// the limit.
    pub fn assumed(graph: &Graph) -> FormatChoices {
        let all = candidates(graph).into_iter();
        let choice = |(tensor, lora_target)| FormatChoice {
            tensor,
            lora_target,
            error: None,
            format: WeightFormat::Int4,
        };
        FormatChoices { list: all.map(choice).collect() }
    }

    /// Fits every candidate with `threads` threads and decides. `progress` is called, from any thread, with
    /// the elements done since its last call.
    ///
    /// # Errors
    /// The source's, or a weight that int4 cannot have; of several, the first.
    pub fn measured<S: WeightSource>(
        graph: &Graph,
        source: &S,
        threads: usize,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<FormatChoices, PackWeightsError<S::Error>> {
        let _env = FloatEnv::standard();
        let mut choices = FormatChoices::assumed(graph);
        let squares = measure(graph, &choices, source, threads, progress)?;
        for (choice, squares) in choices.list.iter_mut().zip(squares) {
            let error = squares.relative_error();
            choice.error = Some(error);
            choice.format = decide(error);
        }
        Ok(choices)
    }

    /// Elements of all candidates: what [`FormatChoices::measured`] has to do.
    pub fn elements(&self, graph: &Graph) -> u64 {
        self.list.iter().map(|choice| elements(graph, choice.tensor)).sum()
    }

    /// Elements of the candidates that have 4 bits.
    pub fn elements_at_4_bits(&self, graph: &Graph) -> u64 {
        let chosen = self.list.iter().filter(|choice| choice.format == WeightFormat::Int4);
        chosen.map(|choice| elements(graph, choice.tensor)).sum()
    }

    /// The decision for a tensor, if it is a candidate.
    pub fn of(&self, tensor: TensorId) -> Option<&FormatChoice> {
        self.list.iter().find(|choice| choice.tensor == tensor)
    }
}

fn decide(error: f64) -> WeightFormat {
    if error <= MAX_RELATIVE_ERROR { WeightFormat::Int4 } else { WeightFormat::Int8 }
}

fn elements(graph: &Graph, tensor: TensorId) -> u64 {
    graph.tensor(tensor).shape.iter().map(|n| *n as u64).product()
}

/// The matrices that may have 4 bits, in a graph of any preset.
pub fn candidates(graph: &Graph) -> BTreeMap<TensorId, MatrixClass> {
    let uses = Uses::new(graph);
    let fits = |tensor: &TensorId| {
        let tensor = graph.tensor(*tensor);
        let blocks = tensor.shape.last().is_some_and(|k| k.is_multiple_of(BLOCK));
        blocks && !tensor.stored.is_blocked()
    };
    let after_attention = after_attention(graph);
    let before = before(graph, &uses);
    let lora_target = |node: &Node| {
        node.op.matmul().filter(|op| op.rows == MatrixRows::All)?;
        match after_attention[node.inputs[0].0 as usize] {
            true => Some(MatrixClass::Attention),
            false => before[node.output.0 as usize],
        }
    };
    let mut lora_targets = BTreeMap::new();
    let mut elsewhere = Vec::new();
    for node in &graph.nodes {
        let Some(matrix) = node.tensors.first().filter(|tensor| fits(tensor)) else { continue };
        match lora_target(node) {
            Some(lora_target) => {
                lora_targets.insert(*matrix, lora_target);
            }
            None => elsewhere.push(*matrix),
        }
    }
    // A matrix that serves elsewhere too has the format of that other place.
    for matrix in elsewhere {
        lora_targets.remove(&matrix);
    }
    lora_targets
}

/// By value: whether it is an attention's output, or comes from one.
fn after_attention(graph: &Graph) -> Vec<bool> {
    let mut after = vec![false; graph.values.len()];
    for node in &graph.nodes {
        let from = || node.inputs.iter().any(|input| after[input.0 as usize]);
        after[node.output.0 as usize] = node.op.attention().is_some() || (node.kind().passes && from());
    }
    after
}

/// By value: whether it leads to an attention or to the logits.
fn before(graph: &Graph, uses: &Uses) -> Vec<Option<MatrixClass>> {
    let mut before = vec![None; graph.values.len()];
    for node in graph.nodes.iter().rev() {
        let by_user = |user: &NodeId| {
            let user = graph.node(*user);
            match user.op.attention() {
                Some(_) => Some(MatrixClass::Attention),
                None => before[user.output.0 as usize].filter(|_| user.kind().passes),
            }
        };
        before[node.output.0 as usize] = match node.output == graph.output {
            true => Some(MatrixClass::Unembedding),
            false => uses.users(node.output).iter().find_map(by_user),
        };
    }
    before
}

/// Rows of a candidate that are fitted at once.
struct CandidateRows {
    /// Index of the choice.
    choice: usize,
    rows: Range<usize>,
}

/// Sums over each candidate.
fn measure<S: WeightSource>(
    graph: &Graph,
    choices: &FormatChoices,
    source: &S,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Squares>, PackWeightsError<S::Error>> {
    let mut items = Vec::new();
    for (choice, FormatChoice { tensor, .. }) in choices.list.iter().enumerate() {
        let n = graph.tensor(*tensor).shape[0];
        let starts = (0..n).step_by(ITEM_ROWS);
        items.extend(starts.map(|start| CandidateRows { choice, rows: start..n.min(start + ITEM_ROWS) }));
    }
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Squares, _>>>> = items.iter().map(|_| Mutex::default()).collect();
    let work = || {
        let mut rows = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            let result = measure_item(graph, choices.list[item.choice].tensor, &item.rows, source, &mut rows);
            progress(rows.len() as u64);
            let failed = result.is_err();
            *results[index].lock().expect("no panic holds it") = Some(result);
            if failed {
                // Items before this one are in hand already; those after it do not matter.
                next.store(items.len(), Ordering::Relaxed);
            }
        }
    };
    share(threads, work);
    let mut sums = vec![Squares::default(); choices.list.len()];
    for (item, result) in items.iter().zip(results) {
        match result.into_inner().expect("no panic holds it") {
            Some(Ok(squares)) => sums[item.choice] += squares,
            Some(Err(error)) => return Err(error),
            // Left out because of an error in an earlier item.
            None => {}
        }
    }
    Ok(sums)
}

fn measure_item<S: WeightSource>(
    graph: &Graph,
    tensor: TensorId,
    range: &Range<usize>,
    source: &S,
    rows: &mut Vec<f32>,
) -> Result<Squares, PackWeightsError<S::Error>> {
    let tensor = graph.tensor(tensor);
    source.f32_rows(tensor, 0, range.clone(), rows)?;
    let k = tensor.shape[1];
    assert_eq!(rows.len(), range.len() * k, "rows of {} from the source", tensor.name);
    let squares = int4::squares(k, rows).map_err(|error| locate(tensor, 0, range.start, error))?;
    source.done_with(tensor, 0, range.clone());
    Ok(squares)
}

#[cfg(test)]
mod tests;
