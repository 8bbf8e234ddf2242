//! The command: its arguments, and its work.

use crate::aim::{self, SizeAim};
use crate::calibrate::{CalibrationArgs, MeasuredTypes};
use crate::file::{QuantizedFile, bits_per_weight, source};
use crate::recipe::{Candidate, KeepRule, TypeRecipe};
use crate::report::{QuantizedModel, SizeReport};
use crate::sizing::Sizing;
use crate::state::{WorkKey, WorkState};
use kernmill::locate::locate;
use kernmill::observe::Observer;
use kernmill::{Error, Result};
use kernmill_checkpoint::Checkpoint;
use kernmill_checkpoint::gguf::{Gguf, Imatrix, is_gguf};
use kernmill_compiler::synth::GgufTypes;
use kernmill_os::files::lead_to_same_file;
use kernmill_os::float_env::FloatEnv;
use kernmill_os::output::NewFile;
use kernmill_os::text::size;
use std::io::Write;
use std::path::PathBuf;

/// The arguments of `kernmill quantize`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct QuantizeArgs {
    /// Model in BF16, F16 or F32: a GGUF file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// GGUF file to write
    #[arg(short, long, value_name = "FILE.gguf", required_unless_present = "calibrate_only")]
    output: Option<PathBuf>,
    #[command(flatten)]
    aim: AimArgs,
    /// Importance matrix, as llama-imatrix writes it (GGUF or .dat): errors count by the size of inputs.
    /// Several add up
    #[arg(long, value_name = "FILE")]
    imatrix: Vec<PathBuf>,
    #[command(flatten)]
    calibration: CalibrationArgs,
    /// Rounding of weights
    #[arg(long, value_enum, value_name = "HOW", requires_if("gptq", "calibration"))]
    method: Option<RoundingMethod>,
    /// Type of the matrices whose name the regular expression finds, whatever else is asked for
    #[arg(long, value_name = "REGEX=TYPE")]
    keep: Vec<KeepRule>,
    /// Round blocks of few bits again, where the model has no others
    #[arg(long)]
    requantize: bool,
    /// Directory to keep what is done in: the same work goes on from there after it was stopped
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Write what became of each tensor, and the error that it has, as JSON
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
}

/// A way for weights to become integers.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum RoundingMethod {
    /// Each by itself
    Fit,
    /// Errors of a row make up for each other: the default with --calibration
    Gptq,
}

/// Which types matrices get, or what they are chosen for.
#[derive(Debug, clap::Args)]
#[group(id = "aim", multiple = false)]
struct AimArgs {
    /// Types of the matrices: a mix as files are called, such as q4_k_m, or all:q4_k for one everywhere
    #[arg(long = "type", value_name = "NAME")]
    #[arg(required_unless_present_any = ["bits", "bytes", "max_kl", "calibrate_only"])]
    types: Option<GgufTypes>,
    /// Bits for each weight of the whole file at most: every matrix gets the type that serves this best
    #[arg(long, value_name = "B", value_parser = aim::bits)]
    bits: Option<f64>,
    /// Bytes of the file at most, such as 5.2G
    #[arg(long, value_name = "SIZE", value_parser = aim::bytes)]
    bytes: Option<u64>,
    /// Divergence from the model at most, in nats a token, as measured on --calibration
    #[arg(long, value_name = "NATS", value_parser = aim::nats, requires = "calibration")]
    max_kl: Option<f64>,
}

impl AimArgs {
    fn sized(&self) -> Option<SizeAim> {
        let bits = self.bits.map(SizeAim::Bits);
        bits.or(self.bytes.map(SizeAim::Bytes)).or(self.max_kl.map(SizeAim::Divergence))
    }
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
        let state = self.state(&gguf, &checkpoint)?;
        let calibration = self.calibration.open(&self.model)?;
        let layers = calibration.as_ref().map(|calibration| calibration.layers(threads)).transpose()?;
        let calibrated = calibration.as_ref().map(|calibration| &calibration.texts).zip(layers.as_ref());
        let imatrix = match (self.merged()?, calibrated) {
            (imatrix, None) => imatrix,
            (imatrix, Some((texts, layers))) => {
                Some(self.calibration.added_to(imatrix, layers, texts, (&state, observer))?)
            }
        };
        let Some(output) = self.output.clone().filter(|_| !self.calibration.is_alone()) else {
            return self.calibration.alone();
        };
        let types = self.aim.types;
        let recipe = TypeRecipe { types, keep: self.keep.clone(), requantize: self.requantize };
        let candidates = recipe.candidates(&gguf)?;
        if let Some(imatrix) = &imatrix {
            note_unknown(&candidates, &checkpoint, imatrix, observer)?;
        }
        let mut sources = Vec::new();
        for candidate in &candidates {
            sources.push(source(&checkpoint, candidate, imatrix.as_ref())?);
        }
        let measured =
            calibrated.map(|(texts, layers)| MeasuredTypes::new(layers, texts, &candidates, &sources));
        let read = self.imatrix.iter().chain(self.calibration.files()).next().map(PathBuf::as_path);
        let mut file = QuantizedFile {
            gguf: &gguf,
            checkpoint: &checkpoint,
            imatrix: read.zip(imatrix.as_ref()),
            file_type: types.and_then(GgufTypes::number),
            tensors: candidates.iter().map(|candidate| (candidate, candidate.types[0])).collect(),
            threads,
            texts: layers.as_ref().zip(calibrated.map(|(texts, _)| texts)).filter(|_| self.makes_up()),
        };
        let mut divergence = None;
        if let Some(aim) = self.aim.sized() {
            let beside = file.bytes()? - candidates.iter().map(|it| it.bytes(it.types[0])).sum::<u64>();
            let sized = Sizing { candidates: &candidates, sources: &sources, aim, beside, threads };
            let chosen = sized.types(measured.as_ref(), (&state, observer))?;
            file.tensors =
                candidates.iter().zip(&chosen.places).map(|(it, &at)| (it, it.types[at])).collect();
            divergence = chosen.divergence;
        }
        let bits = bits_per_weight(&file.tensors);
        let written = file.write(&output, &state, observer)?;
        if let (Some(measured), Some(divergence)) = (&measured, &mut divergence)
            && self.makes_up()
        {
            divergence.made_up(&written.tensors);
            divergence.measured = measured.of_file(&output, observer)?;
        }
        let report = SizeReport { divergence, ..written };
        if let Some(path) = &self.report {
            let json =
                serde_json::to_string_pretty(&report).map_err(|error| Error::failed(error.to_string()))?;
            let new = NewFile::create(path).map_err(Error::read(path))?;
            let written = new.file().write_all(json.as_bytes()).and_then(|()| new.finish());
            written.map_err(Error::write(path))?;
        }
        let before = size(checkpoint.bytes());
        let about = format!("{bits:.3} bits a weight, made of {before}; `kernmill run` takes it");
        Ok(QuantizedModel { path: output, about })
    }

    /// The state of the work, which goes on from there.
    fn state(&self, gguf: &Gguf, checkpoint: &Checkpoint) -> Result<WorkState> {
        let Some(dir) = &self.state else { return Ok(WorkState::none()) };
        let QuantizeArgs { aim, keep, requantize, .. } = self;
        let arguments =
            format!("{aim:?} {keep:?} {requantize} {} {}", self.makes_up(), self.calibration.tokens());
        let read: Vec<&PathBuf> = self.imatrix.iter().chain(self.calibration.files()).collect();
        let mut key = WorkKey::new(&format!("{arguments} {read:?}"));
        let keys = gguf.stored_keys().map_err(Error::read(&self.model))?;
        let head = format!("{keys:?} {:?}", gguf.tensors());
        for file in checkpoint.files() {
            key.model(file, head.as_bytes())?;
        }
        // Others are the program's own text, or an error later on.
        for file in read.into_iter().filter(|file| file.is_file()) {
            key.file(file)?;
        }
        WorkState::open(dir, &key)
    }

    /// Whether rounding makes up for its errors.
    fn makes_up(&self) -> bool {
        self.method != Some(RoundingMethod::Fit)
    }

    fn open(&self) -> Result<Gguf> {
        if !is_gguf(&self.model) {
            let what = "expected a GGUF file: checkpoints in safetensors are not quantised yet; llama.cpp's \
                convert_hf_to_gguf.py makes a GGUF file of one";
            return Err(Error::input(&self.model, what));
        }
        let located = locate(&self.model)?;
        let outputs = [
            ("--output", self.output.as_deref()),
            ("--save-imatrix", self.calibration.saved()),
            ("--report", self.report.as_deref()),
        ];
        for (at, (option, output)) in outputs.into_iter().enumerate() {
            let Some(output) = output else { continue };
            located.check_apart(output)?;
            NewFile::check(output).map_err(Error::read(output))?;
            let mut read = self.imatrix.iter().chain(self.calibration.files());
            if read.any(|read| lead_to_same_file(read, output)) {
                return Err(Error::input(output, "it is read as well: give the output another name"));
            }
            if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| *other == Some(output)) {
                return Err(Error::bad_input(format!("{option}: {other} has that name too: give another")));
            }
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
