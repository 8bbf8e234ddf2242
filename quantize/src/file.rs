//! The GGUF file that is written: the metadata of the one that it is made of, and tensors in their new types.

use crate::calibrate::CalibrationTexts;
use crate::forward::LayeredModel;
use crate::gptq::{LayerSweep, SweptTensor};
use crate::recipe::Candidate;
use crate::report::{SizeReport, TensorReport};
use crate::rows::{MatrixSource, RowsError, RowsJob, WeightedSquares, fit_rows, unfit_weight};
use crate::state::WorkState;
use kernmill::observe::{Observer, Progress, Unit};
use kernmill::{Error, Result, check_space};
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::gguf::{Gguf, Imatrix, NewGguf};
use kernmill_os::output::NewFile;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The version of the arithmetic of blocks.
const QUANTIZATION_VERSION: u32 = 2;

/// A file to be.
pub(crate) struct QuantizedFile<'a> {
    pub(crate) gguf: &'a Gguf,
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) imatrix: Option<(&'a Path, &'a Imatrix)>,
    /// Number of the types together, if they have one.
    pub(crate) file_type: Option<u32>,
    /// Every tensor and its new type.
    pub(crate) tensors: Vec<(&'a Candidate<'a>, TensorType)>,
    pub(crate) threads: usize,
    /// A model and texts to round the matrices for.
    pub(crate) texts: Option<(&'a LayeredModel<'a>, &'a CalibrationTexts)>,
}

impl QuantizedFile<'_> {
    /// Bytes of the file.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let file = self.head()?;
        Ok(file.head(&file.offsets()).len() as u64 + file.data_bytes())
    }

    /// Writes the file: it appears whole or not at all.
    pub(crate) fn write(
        &self,
        path: &Path,
        state: &WorkState,
        observer: &dyn Observer,
    ) -> Result<SizeReport> {
        let file = self.head()?;
        let offsets = file.offsets();
        let head = file.head(&offsets);
        let start = head.len() as u64;
        let bytes = start + file.data_bytes();
        check_space(path, bytes)?;
        let new = NewFile::create_file(path).map_err(Error::read(path))?;
        let begun = new.file().set_len(bytes).and_then(|()| new.file().write_all_at(&head, 0));
        begun.map_err(Error::write(path))?;
        let imatrix = self.imatrix.map(|(_, imatrix)| imatrix);
        let mut sources = Vec::new();
        for (candidate, _) in &self.tensors {
            sources.push(source(self.checkpoint, candidate, imatrix)?);
        }
        let sweep = self.texts.map(|(model, texts)| {
            LayerSweep::new(self.gguf, (model, &texts.windows), &self.tensors, &sources)
        });
        let (mut kept, mut jobs, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (((candidate, kind), source), offset)) in
            self.tensors.iter().zip(&sources).zip(&offsets).enumerate()
        {
            if *kind == candidate.info.kind {
                kept.push((candidate.info, start + offset));
            } else if !sweep.as_ref().is_some_and(|sweep| sweep.has(at)) {
                jobs.push(RowsJob { source, kind: *kind, step: 1 });
                places.push((format!("tensor-{at}"), start + offset));
            }
        }
        let weights: usize = jobs.iter().map(|job| job.count() * job.source.cols).sum();
        let progress = observer.begin("quantising", Unit::Count, weights as u64);
        for (info, at) in kept {
            new.file().write_all_at(self.gguf.data(info), at).map_err(Error::write(path))?;
            self.checkpoint.release(&info.name, 0..usize::MAX);
        }
        let mut squares = Vec::new();
        for (job, (name, to)) in jobs.iter().zip(places) {
            let (bytes, of_job) = state.kept_or(&name, || self.fitted(job, &*progress))?;
            new.file().write_all_at(&bytes, to).map_err(Error::write(path))?;
            squares.push(of_job);
        }
        drop(progress);
        let swept = match &sweep {
            None => BTreeMap::new(),
            Some(sweep) => sweep.run((state, observer), &|at, bytes| {
                new.file().write_all_at(bytes, start + offsets[at]).map_err(Error::write(path))
            })?,
        };
        new.finish().map_err(Error::write(path))?;
        Ok(self.report(&sources, squares.into_iter(), &swept, bytes))
    }

    /// A tensor with each weight fitted by itself.
    fn fitted(&self, job: &RowsJob<'_>, progress: &dyn Progress) -> Result<(Vec<u8>, WeightedSquares)> {
        let row_bytes = job.source.cols / job.kind.elements * job.kind.bytes;
        let all = Mutex::new(vec![0; job.source.rows * row_bytes]);
        let fitted = fit_rows(std::slice::from_ref(job), self.threads, &|_, row, bytes: &[u8]| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all[row * row_bytes..][..bytes.len()].copy_from_slice(bytes);
            progress.advance((bytes.len() / row_bytes * job.source.cols) as u64);
            Ok::<(), Infallible>(())
        });
        let squares = fitted.map_err(|error| match error {
            RowsError::Taken(never) => match never {},
            RowsError::Unfit(_, row, unfit) => {
                unfit_weight(self.gguf, job.source.name(), job.kind, row, unfit)
            }
        })?;
        Ok((all.into_inner().unwrap_or_else(PoisonError::into_inner), squares[0]))
    }

    /// Metadata, and what describes the tensors.
    fn head(&self) -> Result<NewGguf> {
        let mut file = NewGguf::default();
        let is_own = |key: &str| key.starts_with("split.") || key == "general.alignment";
        let keys = self.gguf.stored_keys().map_err(Error::read(self.gguf.path()))?;
        file.keys = keys.into_iter().filter(|(key, _)| !is_own(key)).collect();
        file.set("general.quantization_version", QUANTIZATION_VERSION);
        file.remove("general.file_type");
        if let Some(number) = self.file_type {
            file.set("general.file_type", number);
        }
        if let Some((path, imatrix)) = self.imatrix {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            file.set("quantize.imatrix.file", &*name);
            file.set("quantize.imatrix.entries_count", imatrix.entries.len() as u32);
            file.set("quantize.imatrix.chunks_count", imatrix.chunks);
            if let Some(dataset) = imatrix.datasets.first() {
                file.set("quantize.imatrix.dataset", dataset.as_str());
            }
        }
        for (candidate, kind) in &self.tensors {
            let dims: Vec<u64> = candidate.info.shape.iter().rev().map(|&dim| dim as u64).collect();
            file.add(&candidate.info.name, &dims, kind.number, candidate.bytes(*kind));
        }
        Ok(file)
    }

    /// `squares` has those of the tensors that were neither kept nor swept.
    fn report(
        &self,
        sources: &[MatrixSource<'_>],
        mut squares: impl Iterator<Item = WeightedSquares>,
        swept: &BTreeMap<usize, SweptTensor>,
        bytes: u64,
    ) -> SizeReport {
        let tensor = |at: usize| {
            let ((candidate, kind), source) = (&self.tensors[at], &sources[at]);
            let is_kept = *kind == candidate.info.kind;
            let swept = swept.get(&at);
            let squares = match swept {
                Some(swept) => Some(swept.squares),
                None if is_kept => None,
                None => squares.next(),
            };
            TensorReport {
                name: candidate.info.name.clone(),
                shape: candidate.info.shape.clone(),
                from: candidate.info.kind.name,
                to: kind.name,
                bytes: candidate.bytes(*kind),
                relative_error: squares.map_or(0.0, WeightedSquares::relative_error),
                product_error: swept.and_then(SweptTensor::product_error),
                fitted_plainly: swept.map_or(Vec::new(), |swept| swept.plain.clone()),
                has_importance: source.importance().is_known,
                unreached_experts: source.importance().unreached.clone(),
            }
        };
        let tensors: Vec<TensorReport> = (0..self.tensors.len()).map(tensor).collect();
        SizeReport { bits_per_weight: bits_per_weight(&self.tensors), bytes, divergence: None, tensors }
    }
}

/// Bits for each weight, over all tensors.
pub(crate) fn bits_per_weight(tensors: &[(&Candidate<'_>, TensorType)]) -> f64 {
    let bytes: u64 = tensors.iter().map(|(candidate, kind)| candidate.bytes(*kind)).sum();
    8.0 * bytes as f64 / weights(tensors.iter().map(|(candidate, _)| *candidate)) as f64
}

/// Weights of some tensors.
pub(crate) fn weights<'a, 't: 'a>(candidates: impl Iterator<Item = &'a Candidate<'t>>) -> u64 {
    candidates.map(|candidate| candidate.info.shape.iter().product::<usize>() as u64).sum()
}

/// The matrix of a candidate.
pub(crate) fn source<'a>(
    checkpoint: &'a Checkpoint,
    candidate: &Candidate<'_>,
    imatrix: Option<&Imatrix>,
) -> Result<MatrixSource<'a>> {
    let source = MatrixSource::new(checkpoint, candidate.info, imatrix);
    source.ok_or_else(|| Error::failed(format!("tensor `{}` is gone", candidate.info.name)))
}
