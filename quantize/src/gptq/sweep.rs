//! One layer after the other: its inputs are taken, its matrices are rounded for them, and the texts go on
//! with the new weights.

use super::factor::InputFactors;
use super::moments::InputMoments;
use super::piece::{SweptPart, SweptTensor};
use super::rounding::{ProductErrors, RowRounder};
use crate::fit::{BlockFitter, UnfitWeight};
use crate::forward::{LayeredModel, ProductInput};
use crate::recipe::Candidate;
use crate::rows::{MatrixSource, WeightedSquares, round_rows, unfit_weight};
use crate::state::WorkState;
use kernmill::observe::{Observer, Unit};
use kernmill::{Error, Result};
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::gguf::{Gguf, NewGguf};
use kernmill_compiler::interp::NodeRun;
use kernmill_compiler::ir::{MatrixRows, Role, Tensor, TensorId, ValueId, of_expert};
use kernmill_compiler::weights::{CheckpointWeights, WeightSource};
use kernmill_os::threads::share;
use kernmill_plan::format::{WeightFormat, read_stored};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows that a thread rounds before it takes the next.
const ITEM_ROWS: usize = 96;

/// A model whose matrices are rounded layer by layer.
pub(crate) struct LayerSweep<'a, 'c> {
    gguf: &'a Gguf,
    model: &'a LayeredModel<'a>,
    windows: &'a [Vec<u32>],
    tensors: &'a [(&'a Candidate<'c>, TensorType)],
    sources: &'a [MatrixSource<'a>],
    by_name: BTreeMap<&'a str, usize>,
    /// By tensor, the part that it is rounded in, if it is one of them.
    parts: Vec<Option<usize>>,
}

/// Takes a tensor and its bytes.
pub(crate) type TakeSwept<'t> = dyn Fn(usize, &[u8]) -> Result<()> + 't;

/// An input of a part, and the matrices that meet it.
struct PartInput<'a> {
    value: (ValueId, Option<ValueId>),
    /// The first of the products' tensors.
    first: &'a str,
    cols: usize,
    experts: usize,
    sites: Vec<&'a Tensor>,
}

/// The rows of an input in a text.
struct SeenRows {
    x: Vec<f32>,
    /// The expert of each slot, and how many slots share a row.
    routes: Option<(Vec<u32>, usize)>,
}

/// Rows of a matrix that are rounded alike.
struct RoundedRows<'a> {
    tensor: usize,
    rows: Range<usize>,
    format: WeightFormat,
    importance: &'a [f32],
    factors: Option<&'a InputFactors>,
}

/// A piece of them, as bytes, with its errors.
type RoundedPiece = (Vec<u8>, WeightedSquares, ProductErrors);

/// The error is a row and a weight that no block can hold.
type PieceResult = std::result::Result<RoundedPiece, (usize, UnfitWeight)>;

impl<'a, 'c> LayerSweep<'a, 'c> {
    /// A sweep for these tensors and their new types. Those with whole blocks that one part of the model
    /// multiplies with are rounded.
    pub(crate) fn new(
        gguf: &'a Gguf,
        (model, windows): (&'a LayeredModel<'a>, &'a [Vec<u32>]),
        tensors: &'a [(&'a Candidate<'c>, TensorType)],
        sources: &'a [MatrixSource<'a>],
    ) -> LayerSweep<'a, 'c> {
        let names = tensors.iter().map(|(candidate, _)| candidate.info.name.as_str());
        let by_name: BTreeMap<&str, usize> = names.enumerate().map(|(at, name)| (name, at)).collect();
        let mut used: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); tensors.len()];
        for part in 0..model.parts() {
            for node in model.nodes(part).iter().filter(|node| node.op.matmul().is_some()) {
                let tensor = model.graph.tensor(node.tensors[0]);
                for expert in 0..experts(tensor) {
                    if let Some(at) = by_name.get(&*of_expert(&tensor.source.name, expert)) {
                        used[*at].insert(part);
                    }
                }
            }
        }
        let is_rounded = |at: usize| {
            let (candidate, kind) = &tensors[at];
            *kind != candidate.info.kind && kind.encoding.format().is_some() && used[at].len() == 1
        };
        let parts = (0..tensors.len()).map(|at| used[at].first().copied().filter(|_| is_rounded(at)));
        LayerSweep { gguf, model, windows, tensors, sources, parts: parts.collect(), by_name }
    }

    /// Whether a tensor is rounded here.
    pub(crate) fn has(&self, tensor: usize) -> bool {
        self.parts[tensor].is_some()
    }

    /// Rounds all of them. Returned is what became of each, by tensor.
    ///
    /// # Errors
    /// If weights cannot be read or fit no block, or `take` fails.
    pub(crate) fn run(
        &self,
        (state, observer): (&WorkState, &dyn Observer),
        take: &TakeSwept<'_>,
    ) -> Result<BTreeMap<usize, SweptTensor>> {
        let weights = |at: &usize| (self.sources[*at].rows * self.sources[*at].cols) as u64;
        let all = (0..self.tensors.len()).filter(|at| self.has(*at)).map(|at| weights(&at)).sum();
        let progress = observer.begin("quantising layer by layer", Unit::Count, all);
        let mut runs: Vec<NodeRun> = self.windows.iter().map(|ids| self.model.text(ids)).collect();
        let mut swept = BTreeMap::new();
        for part in 0..self.model.parts() {
            let made = match self.inputs(part) {
                inputs if inputs.is_empty() => SweptPart::new(),
                inputs => state.kept_or(&format!("layer-{part}"), || self.part(part, &inputs, &runs))?,
            };
            progress.advance(made.keys().filter(|at| self.has(**at)).map(weights).sum());
            if part + 1 < self.model.parts() {
                self.advance(part, &made, &mut runs)?;
            }
            for (tensor, (bytes, became)) in made {
                take(tensor, &bytes)?;
                swept.insert(tensor, became);
            }
        }
        Ok(swept)
    }

    /// Rounds the matrices of a part.
    fn part(&self, part: usize, inputs: &[PartInput<'_>], runs: &[NodeRun]) -> Result<SweptPart> {
        let seen = self.seen(part, inputs, runs)?;
        let mut made = SweptPart::new();
        for (input, seen) in inputs.iter().zip(&seen) {
            for expert in 0..input.experts {
                for (tensor, bytes, became) in self.round(input, expert, seen)? {
                    let all = made.entry(tensor).or_default();
                    all.0.extend(bytes);
                    all.1.add(&became);
                }
            }
        }
        Ok(made)
    }

    /// Inputs of the matrices that are rounded in a part.
    fn inputs(&self, part: usize) -> Vec<PartInput<'a>> {
        let model: &'a LayeredModel<'a> = self.model;
        let graph = &model.graph;
        let mut inputs: Vec<PartInput<'a>> = Vec::new();
        let mut seen = BTreeSet::new();
        for node in model.nodes(part) {
            let Some(op) = node.op.matmul() else { continue };
            let tensor = graph.tensor(node.tensors[0]);
            let mut places = (0..experts(tensor)).filter_map(|expert| self.place(tensor, expert));
            if !places.any(|at| self.parts[at] == Some(part)) || !seen.insert(&tensor.source.name) {
                continue;
            }
            let routing = (op.rows == MatrixRows::Expert).then(|| node.inputs[1]);
            let value = (node.inputs[0], routing);
            match inputs.iter_mut().find(|input| input.value == value) {
                Some(input) => input.sites.push(tensor),
                None => inputs.push(PartInput {
                    value,
                    first: &tensor.name,
                    cols: graph.value(node.inputs[0]).ty.cols(),
                    experts: experts(tensor),
                    sites: vec![tensor],
                }),
            }
        }
        inputs
    }

    /// The rows of some inputs, by input and text. The texts stay where they are.
    fn seen(&self, part: usize, inputs: &[PartInput<'_>], runs: &[NodeRun]) -> Result<Vec<Vec<SeenRows>>> {
        let see = |_: usize, input: &ProductInput<'_>| {
            let at = inputs.iter().position(|of| of.first == input.tensor.name)?;
            let routes = input.routing.map(|(routes, slots)| {
                (routes.iter().map(|route| route.expert).collect::<Vec<u32>>(), slots)
            });
            Some((at, SeenRows { x: input.x.to_vec(), routes }))
        };
        let weights = self.model.weights(part, None)?;
        let seen = self.model.run(part, &mut runs.to_vec(), &weights, &|_| None, &see)?;
        let mut by_input: Vec<Vec<SeenRows>> = inputs.iter().map(|_| Vec::new()).collect();
        seen.into_iter().flatten().for_each(|(at, rows)| by_input[at].push(rows));
        Ok(by_input)
    }

    /// Rounds the matrices of an expert for its rows of an input.
    fn round(
        &self,
        input: &PartInput<'_>,
        expert: usize,
        seen: &[SeenRows],
    ) -> Result<Vec<(usize, Vec<u8>, SweptTensor)>> {
        let mut made = Vec::new();
        let threads = self.model.threads();
        let rows = seen.iter().flat_map(|text| text.of_expert(expert, input.cols));
        // Moments of fewer rows say more about chance than about the model.
        let count = rows.clone().count();
        let moments = (2 * count >= input.cols).then(|| InputMoments::of(rows, input.cols, threads));
        let factors = moments.and_then(|moments| InputFactors::of(&moments, threads));
        for tensor in &input.sites {
            let Some(at) = self.place(tensor, expert).filter(|at| self.has(*at)) else { continue };
            let (source, kind) = (&self.sources[at], self.tensors[at].1);
            let Some(format) = kind.encoding.format() else { continue };
            let (place, places) = if tensor.source.is_gathered() { (0, 1) } else { (expert, input.experts) };
            let each = source.rows / places;
            let importance = source.importance().of_expert(place);
            let rows = place * each..(place + 1) * each;
            let work = RoundedRows { tensor: at, rows, format, importance, factors: factors.as_ref() };
            let mut piece = SweptTensor::default();
            let mut all = Vec::new();
            for (bytes, squares, products) in self.rounded(&work)? {
                piece.add(&SweptTensor { squares, products, plain: Vec::new() });
                all.extend(bytes);
            }
            piece.plain.extend(factors.is_none().then_some(place));
            made.push((at, all, piece));
        }
        Ok(made)
    }

    /// The pieces of some rows, in their order.
    fn rounded(&self, work: &RoundedRows<'_>) -> Result<Vec<RoundedPiece>> {
        let source = &self.sources[work.tensor];
        let items: Vec<usize> = work.rows.clone().step_by(ITEM_ROWS).collect();
        let made: Vec<Mutex<Option<PieceResult>>> = items.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        share(self.model.threads().min(items.len()), || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(&start) = items.get(at) else { break };
                let rows = start..(start + ITEM_ROWS).min(work.rows.end);
                let piece = work.piece(source, rows).map_err(|(row, unfit)| (start + row, unfit));
                *made[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(piece);
            }
        });
        let pieces =
            made.into_iter().filter_map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner));
        let unfit = |(row, unfit): (usize, UnfitWeight)| {
            let (candidate, kind) = &self.tensors[work.tensor];
            unfit_weight(self.gguf, &candidate.info.name, *kind, row, unfit)
        };
        pieces.collect::<std::result::Result<_, _>>().map_err(unfit)
    }

    fn place(&self, tensor: &Tensor, expert: usize) -> Option<usize> {
        self.by_name.get(&*of_expert(&tensor.source.name, expert)).copied()
    }

    /// Runs the texts through a part with its new weights.
    fn advance(&self, part: usize, made: &SweptPart, runs: &mut [NodeRun]) -> Result<()> {
        let threads = self.model.threads();
        let layer = self.layer(made)?;
        let layer = layer.into_checkpoint()?;
        let new = CheckpointWeights::of_some(&layer);
        let failure = Mutex::new(None);
        let change = |tensor: &Tensor, expert: usize, rows: &mut [f32]| {
            let Some(at) = self.place(tensor, expert) else { return };
            let (candidate, kind) = &self.tensors[at];
            if made.contains_key(&at) {
                let mut all = Vec::with_capacity(rows.len());
                match new.f32_rows(tensor, expert, 0..rows.len() / self.sources[at].cols, &mut all) {
                    Ok(()) => rows.copy_from_slice(&all),
                    Err(error) => {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(Error::from(error));
                    }
                }
            } else if *kind != candidate.info.kind {
                let place = if tensor.source.is_gathered() { 0 } else { expert };
                round_rows(*kind, rows, self.sources[at].importance().of_expert(place), threads);
            }
        };
        let weights = self.model.weights(part, Some(&change))?;
        let is_table = |id: &TensorId| self.model.graph.tensor(*id).role == Role::Table;
        let tables: BTreeSet<TensorId> =
            self.model.nodes(part).iter().flat_map(|node| node.tensors.clone()).filter(is_table).collect();
        let tables: Vec<TensorId> = tables.into_iter().collect();
        let ids: BTreeSet<u32> = self.windows.iter().flatten().copied().collect();
        let ids: Vec<u32> = ids.into_iter().collect();
        // A table is rounded by itself, whichever tensor makes logits.
        let changed = self.model.changed(&tables, None, &change, &ids)?;
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        self.model.run(part, runs, &weights, &|_| Some(&changed), &|_, _| None::<()>)?;
        Ok(())
    }

    /// The new tensors of a part, as a file in memory.
    fn layer(&self, made: &SweptPart) -> Result<Gguf> {
        let mut file = NewGguf { keys: self.gguf.stored_keys()?, ..NewGguf::default() };
        let is_needed = |key: &str| !["tokenizer.", "split."].iter().any(|start| key.starts_with(start));
        file.keys.retain(|(key, _)| is_needed(key) && key != "general.alignment");
        for (at, (bytes, _)) in made {
            let (candidate, kind) = &self.tensors[*at];
            let dims: Vec<u64> = candidate.info.shape.iter().rev().map(|&dim| dim as u64).collect();
            file.add(&candidate.info.name, &dims, kind.number, bytes.len() as u64);
        }
        let offsets = file.offsets();
        let mut data = file.head(&offsets);
        let start = data.len();
        for ((bytes, _), offset) in made.values().zip(offsets) {
            data.resize(start + offset as usize, 0);
            data.extend(bytes);
        }
        Ok(Gguf::from_bytes("a layer", data)?)
    }
}

fn experts(tensor: &Tensor) -> usize {
    if tensor.role == Role::ExpertMatrix { tensor.shape[0] } else { 1 }
}

impl SeenRows {
    /// The rows that an expert meets; all of an input without experts.
    fn of_expert(&self, expert: usize, cols: usize) -> impl Iterator<Item = &[f32]> + Clone {
        let row = move |at: usize| &self.x[at * cols..][..cols];
        let (count, slots) = match &self.routes {
            None => (self.x.len() / cols, 1),
            Some((routes, slots)) => (routes.len(), *slots),
        };
        let is_its = move |slot: &usize| match &self.routes {
            None => true,
            Some((routes, _)) => routes[*slot] as usize == expert,
        };
        (0..count).filter(is_its).map(move |slot| row(slot / slots))
    }
}

impl RoundedRows<'_> {
    fn piece(&self, source: &MatrixSource<'_>, rows: Range<usize>) -> PieceResult {
        let (mut x, mut bytes) = (Vec::new(), Vec::new());
        source.read(rows, &mut x);
        let cols = source.cols;
        let products = match self.factors {
            Some(factors) => RowRounder::new(self.format, factors, self.importance).rows(&x, &mut bytes)?,
            None => {
                let fitter = BlockFitter::new(self.format);
                for (at, row) in x.chunks_exact(cols).enumerate() {
                    fitter.row(row, self.importance, &mut bytes).map_err(|unfit| (at, unfit))?;
                }
                ProductErrors::default()
            }
        };
        let mut back = Vec::with_capacity(x.len());
        read_stored(self.format, &bytes, &mut back);
        let mut squares = WeightedSquares::default();
        for (row, back) in x.chunks_exact(cols).zip(back.chunks_exact(cols)) {
            for ((x, back), count) in row.iter().zip(back).zip(self.importance) {
                let [x, back, count] = [*x, *back, *count].map(f64::from);
                squares.error += count * (x - back).powi(2);
                squares.weights += count * x.powi(2);
            }
        }
        Ok((bytes, squares, products))
    }
}
