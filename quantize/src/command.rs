//! The command: its arguments, and its work.

use crate::allocate::{SizedCost, allocate};
use crate::file::{QuantizedFile, bits_per_weight, source, weights};
use crate::recipe::{Candidate, KeepRule, TypeRecipe};
use crate::rows::{MatrixSource, RowsError, RowsJob, fit_rows};
use kernmill::locate::locate;
use kernmill::observe::{Observer, Unit};
use kernmill::{Error, Result};
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::blocks::TensorType;
use kernmill_checkpoint::gguf::{Gguf, Imatrix, is_gguf};
use kernmill_compiler::synth::GgufTypes;
use kernmill_os::files::lead_to_same_file;
use kernmill_os::float_env::FloatEnv;
use kernmill_os::output::NewFile;
use kernmill_os::text::size;
use std::convert::Infallible;
use std::io::Write;
use std::path::PathBuf;

/// Rows of a matrix that show what a type costs it.
const SAMPLED_ROWS: usize = 128;

/// The arguments of `kernmill quantize`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct QuantizeArgs {
    /// Model in BF16, F16 or F32: a GGUF file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// GGUF file to write
    #[arg(short, long, value_name = "FILE.gguf")]
    output: PathBuf,
    /// Types of the matrices: a mix as files are called, such as q4_k_m, or all:q4_k for one everywhere
    #[arg(long = "type", value_name = "NAME", required_unless_present = "bits")]
    types: Option<GgufTypes>,
    /// Bits for each weight of the whole file at most: every matrix gets the type that serves this best
    #[arg(long, value_name = "B", conflicts_with = "types", value_parser = bits)]
    bits: Option<f64>,
    /// Importance matrix, as llama-imatrix writes it (GGUF or .dat): errors count by the size of inputs.
    /// Several add up
    #[arg(long, value_name = "FILE")]
    imatrix: Vec<PathBuf>,
    /// Type of the matrices whose name the regular expression finds, whatever else is asked for
    #[arg(long, value_name = "REGEX=TYPE")]
    keep: Vec<KeepRule>,
    /// Round blocks of few bits again, where the model has no others
    #[arg(long)]
    requantize: bool,
    /// Write what became of each tensor, and the error that it has, as JSON
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
}

/// A file that was written.
#[derive(Debug)]
pub struct QuantizedModel {
    /// The file.
    pub path: PathBuf,
    /// Size and use of the file, in a few words.
    pub about: String,
}

fn bits(text: &str) -> std::result::Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|bits| (1.0..=32.0).contains(bits)).ok_or("expected a number from 1 to 32".to_owned())
}

impl QuantizeArgs {
    /// Does the work with as many threads as the machine runs at once.
    ///
    /// # Errors
    /// If an input is wrong, or the work fails. Nothing is left at the output's place then.
    pub fn run(self, observer: &dyn Observer) -> Result<QuantizedModel> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        self.run_with(threads, observer)
    }

    /// Does the work with up to this many threads, which changes nothing of the file.
    pub(crate) fn run_with(self, threads: usize, observer: &dyn Observer) -> Result<QuantizedModel> {
        let _env = FloatEnv::standard();
        let gguf = self.open()?;
        let checkpoint = gguf.clone().into_checkpoint().map_err(Error::read(&self.model))?;
        let imatrix = self.merged()?;
        let recipe = TypeRecipe { types: self.types, keep: self.keep.clone(), requantize: self.requantize };
        let candidates = recipe.candidates(&gguf)?;
        if let Some(imatrix) = &imatrix {
            note_unknown(&candidates, &checkpoint, imatrix, observer)?;
        }
        let tensors = match self.bits {
            Some(bits) => self.sized(candidates, bits, &checkpoint, imatrix.as_ref(), threads, observer)?,
            None => candidates.into_iter().map(Candidate::with_first).collect(),
        };
        let file = QuantizedFile {
            gguf: &gguf,
            checkpoint: &checkpoint,
            imatrix: self.imatrix.first().map(PathBuf::as_path).zip(imatrix.as_ref()),
            file_type: self.types.and_then(GgufTypes::number),
            tensors,
            threads,
        };
        let bits = bits_per_weight(&file.tensors);
        let report = file.write(&self.output, observer)?;
        if let Some(path) = &self.report {
            let json =
                serde_json::to_string_pretty(&report).map_err(|error| Error::failed(error.to_string()))?;
            let new = NewFile::create(path).map_err(Error::read(path))?;
            let written = new.file().write_all(json.as_bytes()).and_then(|()| new.finish());
            written.map_err(Error::write(path))?;
        }
        let before = size(checkpoint.bytes());
        let about = format!("{bits:.3} bits a weight, made of {before}; `kernmill run` takes it");
        Ok(QuantizedModel { path: self.output, about })
    }

    fn open(&self) -> Result<Gguf> {
        if !is_gguf(&self.model) {
            let what = "expected a GGUF file: checkpoints in safetensors are not quantised yet; llama.cpp's \
                convert_hf_to_gguf.py makes a GGUF file of one";
            return Err(Error::input(&self.model, what));
        }
        let located = locate(&self.model)?;
        for output in [Some(&self.output), self.report.as_ref()].into_iter().flatten() {
            located.check_apart(output)?;
            NewFile::check(output).map_err(Error::read(output))?;
            if self.imatrix.iter().any(|read| lead_to_same_file(read, output)) {
                return Err(Error::input(output, "it is read as well: give the output another name"));
            }
        }
        if self.report.as_ref() == Some(&self.output) {
            return Err(Error::bad_input("--report: it is the output too: give another name"));
        }
        Gguf::open(&self.model).map_err(|error| Error::bad_input(error.to_string()))
    }

    /// The sums of all importance matrices.
    fn merged(&self) -> Result<Option<Imatrix>> {
        let mut merged: Option<Imatrix> = None;
        for path in &self.imatrix {
            let read = Imatrix::open(path).map_err(|error| Error::bad_input(error.to_string()))?;
            match &mut merged {
                None => merged = Some(read),
                Some(sums) => sums.merge(read).map_err(|error| Error::input(path, error))?,
            }
        }
        Ok(merged)
    }

    /// The types with which all tensors together have no more than `bits` for each weight.
    fn sized<'a>(
        &self,
        candidates: Vec<Candidate<'a>>,
        bits: f64,
        checkpoint: &Checkpoint,
        imatrix: Option<&Imatrix>,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<Vec<(Candidate<'a>, TensorType)>> {
        let mut sources = Vec::new();
        for candidate in &candidates {
            sources.push(source(checkpoint, candidate, imatrix)?);
        }
        let costs = costs(&candidates, &sources, threads, observer)?;
        let budget = (bits * weights(candidates.iter()) as f64 / 8.0) as u64;
        let chosen = allocate(&costs, budget).map_err(|least| {
            let least = 8.0 * least as f64 / weights(candidates.iter()) as f64;
            // Rounded up: with what is said, it goes.
            let least = (least * 1000.0).ceil() / 1000.0;
            Error::bad_input(format!("--bits {bits}: the smallest types make {least:.3} bits a weight"))
        })?;
        let typed = |(candidate, at): (Candidate<'a>, usize)| {
            let kind = candidate.types[at];
            (candidate, kind)
        };
        Ok(candidates.into_iter().zip(chosen).map(typed).collect())
    }
}

/// The cost of each type for each tensor: its squared relative error, seen in some rows, times the tensor's
/// sensitivity.
fn costs(
    candidates: &[Candidate<'_>],
    sources: &[MatrixSource<'_>],
    threads: usize,
    observer: &dyn Observer,
) -> Result<Vec<Vec<SizedCost>>> {
    let mut jobs = Vec::new();
    for (candidate, source) in
        candidates.iter().zip(sources).filter(|(candidate, _)| candidate.types.len() > 1)
    {
        let step = source.rows.div_ceil(SAMPLED_ROWS);
        jobs.extend(candidate.types.iter().map(|kind| RowsJob { source, kind: *kind, step }));
    }
    let progress =
        observer.begin("comparing types", Unit::Count, jobs.iter().map(|job| job.count() as u64).sum());
    let squares = fit_rows(&jobs, threads, &|job: usize, _, bytes: &[u8]| {
        let row_bytes = jobs[job].source.cols / jobs[job].kind.elements * jobs[job].kind.bytes;
        progress.advance((bytes.len() / row_bytes) as u64);
        Ok::<(), Infallible>(())
    });
    let squares = squares.map_err(|error| match error {
        RowsError::Taken(never) => match never {},
        RowsError::Unfit(job, row, unfit) => {
            let name = jobs[job].source.name();
            Error::bad_input(format!("tensor `{name}`, row {row}: {} fits no type of few bits", unfit.value))
        }
    })?;
    let mut squares = squares.into_iter();
    let of = |candidate: &Candidate<'_>| -> Vec<SizedCost> {
        let cost = |kind: &TensorType| {
            let bytes = candidate.bytes(*kind);
            let cost = match candidate.types.len() {
                1 => 0.0,
                _ => squares.next().map_or(0.0, |it| candidate.sensitivity * it.relative_error().powi(2)),
            };
            SizedCost { bytes, cost }
        };
        candidate.types.iter().map(cost).collect()
    };
    Ok(candidates.iter().map(of).collect())
}

/// Says which matrices an importance matrix knows nothing of.
fn note_unknown(
    candidates: &[Candidate<'_>],
    checkpoint: &Checkpoint,
    imatrix: &Imatrix,
    observer: &dyn Observer,
) -> Result<()> {
    let (mut unknown, mut unreached, mut known) = (Vec::new(), 0, 0);
    for candidate in candidates.iter().filter(|candidate| candidate.types != [candidate.info.kind]) {
        let source = source(checkpoint, candidate, Some(imatrix))?;
        known += usize::from(source.importance().is_known);
        unreached += source.importance().unreached.len();
        if !source.importance().is_known {
            unknown.push(candidate.info.name.as_str());
        }
    }
    if known == 0 && !unknown.is_empty() {
        return Err(Error::bad_input(format!(
            "--imatrix: it has no entry for any matrix of the model, such as `{}`: is it of another model?",
            unknown[0]
        )));
    }
    match unknown[..] {
        [] => {}
        [one] => {
            observer.note(&format!("the importance matrix has no entry for `{one}`: its errors count alike"))
        }
        [first, ..] => observer.note(&format!(
            "the importance matrix has no entry for {} matrices, such as `{first}`: their errors count alike",
            unknown.len()
        )),
    }
    if unreached > 0 {
        observer.note(&format!(
            "no token of the importance matrix reached {unreached} of the experts' matrices: their errors count alike"
        ));
    }
    Ok(())
}
