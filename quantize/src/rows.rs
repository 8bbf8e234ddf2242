//! Rows of a model's matrices, fitted to types by several threads: the same bytes for any number of them.

use crate::fit::{BlockFitter, UnfitWeight};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use kernmill::Error;
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::gguf::{Gguf, GgufTensor, Imatrix};
use kernmill_checkpoint::{Checkpoint, TensorView};
use kernmill_os::threads::share;
use kernmill_plan::format::read_stored;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Weights that a thread fits before it takes the next.
const ITEM_WEIGHTS: usize = 1 << 17;

/// How much the errors of a matrix's columns count.
pub(crate) struct Importance {
    /// For each expert; the first for all where there is one alone.
    columns: Vec<Vec<f32>>,
    /// Whether an importance matrix has an entry for it.
    pub(crate) is_known: bool,
    /// Experts that no token reached.
    pub(crate) unreached: Vec<usize>,
}

/// A matrix of the model, all experts' rows one after the other.
pub(crate) struct MatrixSource<'a> {
    checkpoint: &'a Checkpoint,
    view: TensorView<'a>,
    pub(crate) cols: usize,
    pub(crate) rows: usize,
    row_bytes: usize,
    importance: Importance,
}

/// Squares of a matrix, each weighted by its column's importance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WeightedSquares {
    /// Squares of the errors.
    pub(crate) error: f64,
    /// Squares of the weights.
    pub(crate) weights: f64,
}

/// Rows of a matrix that become rows of a type.
pub(crate) struct RowsJob<'a> {
    pub(crate) source: &'a MatrixSource<'a>,
    pub(crate) kind: TensorType,
    /// Every so many rows one is taken.
    pub(crate) step: usize,
}

impl WeightedSquares {
    /// `||W - Q|| / ||W||`; 0 where all weights are 0.
    pub(crate) fn relative_error(self) -> f64 {
        if self.weights > 0.0 { (self.error / self.weights).sqrt() } else { 0.0 }
    }
}

impl Importance {
    /// The importance of a matrix's columns, from an importance matrix if it has them.
    fn of(imatrix: Option<&Imatrix>, info: &GgufTensor) -> Importance {
        let cols = info.shape[info.shape.len() - 1];
        let experts =
            if info.shape.len() > 2 { info.shape[..info.shape.len() - 2].iter().product() } else { 1 };
        let entry = imatrix.and_then(|imatrix| imatrix.entries.get(&info.name));
        let means = |expert| entry.and_then(|entry| entry.means(expert, experts, cols));
        let columns: Vec<Option<Vec<f32>>> = (0..experts).map(means).collect();
        let unreached: Vec<usize> = (0..experts).filter(|expert| columns[*expert].is_none()).collect();
        if unreached.len() == experts {
            return Importance { columns: vec![vec![1.0; cols]], is_known: false, unreached: Vec::new() };
        }
        let columns = columns.into_iter().map(|means| means.unwrap_or_else(|| vec![1.0; cols])).collect();
        Importance { columns, is_known: true, unreached }
    }

    fn row(&self, row: usize, rows: usize) -> &[f32] {
        &self.columns[row * self.columns.len() / rows]
    }

    /// The importance of the columns of an expert's matrix.
    pub(crate) fn of_expert(&self, expert: usize) -> &[f32] {
        self.columns.get(expert).unwrap_or(&self.columns[0])
    }
}

impl<'a> MatrixSource<'a> {
    /// A tensor of the model; `None` if the checkpoint lacks it.
    pub(crate) fn new(
        checkpoint: &'a Checkpoint,
        info: &GgufTensor,
        imatrix: Option<&Imatrix>,
    ) -> Option<MatrixSource<'a>> {
        let view = checkpoint.tensor(&info.name)?;
        let cols = *info.shape.last()?;
        let rows = info.shape.iter().product::<usize>() / cols;
        let row_bytes = info.kind.row_bytes(cols)?;
        Some(MatrixSource {
            checkpoint,
            view,
            cols,
            rows,
            row_bytes,
            importance: Importance::of(imatrix, info),
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.view.name
    }

    pub(crate) fn importance(&self) -> &Importance {
        &self.importance
    }

    /// Appends some rows in f32.
    pub(crate) fn read(&self, rows: Range<usize>, out: &mut Vec<f32>) {
        let bytes = rows.start * self.row_bytes..rows.end * self.row_bytes;
        for row in rows {
            self.view.encoding.decode(self.view.dtype, self.stored(row), out);
        }
        self.checkpoint.release(self.view.name, bytes);
    }

    /// Bytes of a row as they are.
    fn stored(&self, row: usize) -> &'a [u8] {
        &self.view.data[row * self.row_bytes..][..self.row_bytes]
    }
}

impl RowsJob<'_> {
    /// Rows that are taken.
    pub(crate) fn count(&self) -> usize {
        self.source.rows.div_ceil(self.step)
    }

    fn items(&self) -> impl Iterator<Item = Range<usize>> {
        let (count, rows) = (self.count(), (ITEM_WEIGHTS / self.source.cols).max(1));
        (0..count).step_by(rows).map(move |start| start..(start + rows).min(count))
    }

    /// Appends some of the rows in the type, and returns their squares.
    fn fit(
        &self,
        rows: Range<usize>,
        fitter: Option<&BlockFitter>,
        out: &mut Vec<u8>,
    ) -> Result<WeightedSquares, (usize, UnfitWeight)> {
        let (mut x, mut squares) = (Vec::new(), WeightedSquares::default());
        for row in rows.map(|row| row * self.step) {
            let importance = self.source.importance.row(row, self.source.rows);
            x.clear();
            self.source.view.encoding.decode(self.source.view.dtype, self.source.stored(row), &mut x);
            squares.error += match fitter {
                Some(fitter) => fitter.row(&x, importance, out).map_err(|unfit| (row, unfit))?,
                None => rounded(self.kind, &x, importance, out),
            };
            squares.weights += x
                .iter()
                .zip(importance)
                .map(|(x, count)| f64::from(*count) * f64::from(*x).powi(2))
                .sum::<f64>();
        }
        Ok(squares)
    }
}

/// Appends numbers in a type without blocks, and returns their weighted squared error.
fn rounded(kind: TensorType, x: &[f32], importance: &[f32], out: &mut Vec<u8>) -> f64 {
    let back = rounded_plain(kind, x, out);
    let error = |((x, back), count): ((&f32, &f32), &f32)| {
        f64::from(*count) * (f64::from(*x) - f64::from(*back)).powi(2)
    };
    x.iter().zip(&back).zip(importance).map(error).sum()
}

/// Appends numbers in a type without blocks, and returns what is read from there.
fn rounded_plain(kind: TensorType, x: &[f32], out: &mut Vec<u8>) -> Vec<f32> {
    let mut back = vec![0.0; x.len()];
    match kind.name {
        "F16" => {
            let mut halves = vec![f16::ZERO; x.len()];
            halves.convert_from_f32_slice(x);
            halves.convert_to_f32_slice(&mut back);
            out.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        }
        "BF16" => {
            let halves: Vec<bf16> = x.iter().map(|x| bf16::from_f32(*x)).collect();
            back.iter_mut().zip(&halves).for_each(|(back, half)| *back = half.to_f32());
            out.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        }
        _ => {
            back.copy_from_slice(x);
            out.extend(x.iter().flat_map(|x| x.to_le_bytes()));
        }
    }
    back
}

/// Rounds rows to a type and back. Rows that the type cannot hold stay as they are.
pub(crate) fn round_rows(kind: TensorType, rows: &mut [f32], importance: &[f32], threads: usize) {
    let cols = importance.len();
    let fitter = kind.encoding.format().map(BlockFitter::new);
    let item = (ITEM_WEIGHTS / cols).max(1) * cols;
    let items: Vec<Mutex<&mut [f32]>> = rows.chunks_mut(item).map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    share(threads.min(items.len()), || {
        let (mut bytes, mut back) = (Vec::new(), Vec::new());
        while let Some(rows) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut rows = rows.lock().expect("each is taken once");
            for row in rows.chunks_exact_mut(cols) {
                bytes.clear();
                back.clear();
                match (&fitter, kind.encoding.format()) {
                    (Some(fitter), Some(format)) => {
                        if fitter.row(row, importance, &mut bytes).is_ok() {
                            read_stored(format, &bytes, &mut back);
                            row.copy_from_slice(&back);
                        }
                    }
                    _ => row.copy_from_slice(&rounded_plain(kind, row, &mut bytes)),
                }
            }
        }
    });
}

/// Why the rows of a job were not fitted.
pub(crate) enum RowsError<E> {
    /// A weight that the type cannot hold: the job, the row and the weight.
    Unfit(usize, usize, UnfitWeight),
    /// The error of the one who took the rows.
    Taken(E),
}

/// Tells of a weight that a type cannot hold.
pub(crate) fn unfit_weight(
    gguf: &Gguf,
    name: &str,
    kind: TensorType,
    row: usize,
    unfit: UnfitWeight,
) -> Error {
    let UnfitWeight { index, value } = unfit;
    let what = format!(
        "tensor `{name}`, row {row}, column {index}: {value} does not fit {}, whose largest is 65504",
        kind.name
    );
    Error::input(gguf.path(), what)
}

/// Takes the job, the first row and the bytes of a piece.
pub(crate) type TakeRows<'a, E> = dyn Fn(usize, usize, &[u8]) -> Result<(), E> + Sync + 'a;

/// Fits the rows of some jobs with up to `threads` threads. `take` gets the job, the first row and the bytes
/// of each piece, in any order and from any thread; returned are the squares of each job.
pub(crate) fn fit_rows<E: Send>(
    jobs: &[RowsJob<'_>],
    threads: usize,
    take: &TakeRows<'_, E>,
) -> Result<Vec<WeightedSquares>, RowsError<E>> {
    let items: Vec<(usize, Range<usize>)> =
        jobs.iter().enumerate().flat_map(|(job, of)| of.items().map(move |rows| (job, rows))).collect();
    let fitters: Vec<Option<BlockFitter>> =
        jobs.iter().map(|job| job.kind.encoding.format().map(BlockFitter::new)).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; items.len()]));
    let failure: Mutex<Option<(usize, RowsError<E>)>> = Mutex::new(None);
    share(threads, || {
        let mut out = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((job, rows)) = items.get(at) else { break };
            out.clear();
            let fitted = jobs[*job].fit(rows.clone(), fitters[*job].as_ref(), &mut out);
            let fitted = fitted.map_err(|(row, unfit)| RowsError::Unfit(*job, row, unfit));
            let done = fitted.and_then(|squares| match take(*job, rows.start, &out) {
                Ok(()) => Ok(squares),
                Err(error) => Err(RowsError::Taken(error)),
            });
            let source = jobs[*job].source;
            let bytes = rows.start * jobs[*job].step * source.row_bytes
                ..rows.end * jobs[*job].step * source.row_bytes;
            source.checkpoint.release(source.view.name, bytes);
            match done {
                Ok(squares) => found.lock().expect("no panic holds it")[at] = Some(squares),
                Err(error) => {
                    // The first in order is told, whichever thread met it.
                    let mut failure = failure.lock().expect("no panic holds it");
                    if failure.as_ref().is_none_or(|(first, _)| at < *first) {
                        *failure = Some((at, error));
                    }
                    next.store(items.len(), Ordering::Relaxed);
                }
            }
        }
    });
    if let Some((_, error)) = failure.into_inner().expect("no panic holds it") {
        return Err(error);
    }
    // In the order of the rows, so that sums do not depend on the threads.
    let mut all = vec![WeightedSquares::default(); jobs.len()];
    for ((job, _), squares) in items.iter().zip(found.into_inner().expect("no panic holds it")) {
        let squares: WeightedSquares = squares.expect("every item was done");
        all[*job].error += squares.error;
        all[*job].weights += squares.weights;
    }
    Ok(all)
}
