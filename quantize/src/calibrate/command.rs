//! The options of calibration.

use super::measure;
use super::texts::CalibrationTexts;
use crate::forward::LayeredModel;
use crate::report::QuantizedModel;
use crate::state::WorkState;
use kernmill::compiler::{FusedSet, SourceModel};
use kernmill::locate::{Located, locate};
use kernmill::observe::Observer;
use kernmill::{Error, Result};
use kernmill_checkpoint::gguf::Imatrix;
use kernmill_os::output::NewFile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Texts to calibrate on, and what is kept of it.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct CalibrationArgs {
    /// Text to measure the inputs of matrices on: a file; a .jsonl file of "text" or "messages"; or
    /// `default`, a text of the program. Several are joined
    #[arg(long, value_name = "FILE")]
    calibration: Vec<PathBuf>,
    /// Tokens to calibrate on, taken evenly from all texts
    #[arg(long, value_name = "N", default_value = "16384", value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,
    /// Write the importance matrix of the texts
    #[arg(long, value_name = "FILE.gguf", requires = "calibration")]
    save_imatrix: Option<PathBuf>,
    /// Only calibrate, and write the importance matrix
    #[arg(long, requires = "save_imatrix", conflicts_with_all = ["output", "aim", "report", "keep"])]
    calibrate_only: bool,
}

impl CalibrationArgs {
    /// Files that are read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.calibration.iter()
    }

    /// Tokens that are asked for.
    pub(crate) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// The place of the importance matrix.
    pub(crate) fn saved(&self) -> Option<&Path> {
        self.save_imatrix.as_deref()
    }

    /// Whether nothing else is asked for.
    pub(crate) fn is_alone(&self) -> bool {
        self.calibrate_only
    }

    /// The importance matrix as the one thing that was written.
    pub(crate) fn alone(self) -> Result<QuantizedModel> {
        let path = self.save_imatrix.ok_or_else(|| Error::failed("nothing to write"))?;
        let about = "an importance matrix; --imatrix takes it".to_owned();
        Ok(QuantizedModel { path, about })
    }

    /// The model and the texts to run it on, if there are some.
    ///
    /// # Errors
    /// If the texts or the model cannot be used.
    pub(crate) fn open(&self, path: &Path) -> Result<Option<Calibration>> {
        if self.calibration.is_empty() {
            return Ok(None);
        }
        let model = open(path)?;
        let texts = CalibrationTexts::read(&self.calibration, self.tokens as usize, &model)?;
        Ok(Some(Calibration { model, texts }))
    }

    /// Runs the texts, saves their importance matrix, and adds it to another one.
    ///
    /// # Errors
    /// If the model cannot be run, the file cannot be written, or the other one is of another model.
    pub(crate) fn added_to(
        &self,
        other: Option<Imatrix>,
        layers: &LayeredModel<'_>,
        texts: &CalibrationTexts,
        (state, observer): (&WorkState, &dyn Observer),
    ) -> Result<Imatrix> {
        let measured = state.kept_or("calibration", || measure(layers, texts, observer))?;
        if let Some(path) = &self.save_imatrix {
            let new = NewFile::create(path).map_err(Error::read(path))?;
            let written = new.file().write_all(&measured.to_gguf()).and_then(|()| new.finish());
            written.map_err(Error::write(path))?;
        }
        let Some(mut sums) = other else { return Ok(measured) };
        sums.merge(measured).map_err(|error| Error::bad_input(format!("--imatrix: {error}")))?;
        Ok(sums)
    }
}

/// A model, and texts to run it on.
pub(crate) struct Calibration {
    pub(crate) model: SourceModel,
    pub(crate) texts: CalibrationTexts,
}

impl Calibration {
    /// The model layer by layer.
    ///
    /// # Errors
    /// If its weights do not fit it.
    pub(crate) fn layers(&self, threads: usize) -> Result<LayeredModel<'_>> {
        LayeredModel::new(self.model.graph.clone(), &self.model.checkpoint, threads)
    }
}

/// The model of a file, as far as it is needed to run it.
fn open(path: &Path) -> Result<SourceModel> {
    match locate(path)? {
        Located::Source(files) => SourceModel::open(&files, FusedSet::builtin()),
        Located::Plan(_) => {
            Err(Error::input(path, "it is a plan, expected a model with weights as they are"))
        }
    }
}
