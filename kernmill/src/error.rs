//! Why a model cannot be opened or run.

use kernmill_chat::{Refused, TurnError};
use kernmill_checkpoint::CheckpointError;
use kernmill_checkpoint::peft::PeftError;
#[cfg(feature = "compiler")]
use kernmill_compiler::{
    import::ImportError, pack::PackWeightsError, pack::region::BuildError, pipeline::CompileError,
    plan_file::PlanPartsError, spec::SpecError, synth::SynthError,
};
#[cfg(feature = "compiler")]
use kernmill_kernels_gen::generate::GenerateError;
use kernmill_os::files::failed_by_system;
use kernmill_plan::file::check::FileError;
#[cfg(feature = "compiler")]
use kernmill_runtime::measure::MeasureError;
use kernmill_runtime::sampler::SamplerError;
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{AdapterError, EngineError, Plan, PlanError};
use kernmill_serve::Refusal;
use std::error::Error as StdError;
use std::fmt::Display;
use std::path::Path;

/// Why a model cannot be opened or run, as one line that says what, where, and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is wrong, or asks for what this machine or version cannot do.
    #[error("{0}")]
    BadInput(String),
    /// A spec is wrong. The error names the place in its text.
    #[cfg(feature = "compiler")]
    #[error(transparent)]
    Spec(Box<SpecError>),
    /// The scheduler does not take a request up: later it may.
    #[error("the request is refused: {0}")]
    Refused(Refusal),
    /// Another stage of the model cannot be reached: later it may.
    #[error("{0}")]
    Unavailable(String),
    /// The work itself failed: a disk is full, a thread cannot be made, or kernmill has a defect.
    #[error("{0}")]
    Work(String),
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A part of a plan cannot be read.
    pub fn in_plan(plan: &Plan, source: FileError) -> Error {
        PlanError::File { path: plan.path().to_owned(), source }.into()
    }

    /// Bad input at `path`.
    pub fn input(path: &Path, what: impl Display) -> Error {
        Error::BadInput(format!("{}: {what}", path.display()))
    }

    /// Reading an input file failed: the input is wrong, or the system fails.
    pub fn read<E: StdError + 'static>(path: &Path) -> impl FnOnce(E) -> Error + '_ {
        move |error| Error::of(&error, format!("{}: {error}", path.display()))
    }

    /// An error that says `message`: the input is wrong, or the system fails.
    pub(crate) fn of(error: &(dyn StdError + 'static), message: String) -> Error {
        if failed_by_system(error) { Error::Work(message) } else { Error::BadInput(message) }
    }

    /// Writing a result failed.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |error| Error::Work(format!("{}: {error}", path.display()))
    }
}

impl From<Refused> for Error {
    fn from(error: Refused) -> Error {
        Error::BadInput(error.to_string())
    }
}

impl From<TurnError> for Error {
    fn from(error: TurnError) -> Error {
        Error::BadInput(error.to_string())
    }
}

impl From<SamplerError> for Error {
    fn from(error: SamplerError) -> Error {
        EngineError::Sampler(error).into()
    }
}

#[cfg(feature = "compiler")]
impl From<SynthError> for Error {
    fn from(error: SynthError) -> Error {
        match error {
            SynthError::Io { .. } | SynthError::Checkpoint(_) => Error::Work(error.to_string()),
            _ => Error::BadInput(error.to_string()),
        }
    }
}

impl From<TokenizerError> for Error {
    fn from(error: TokenizerError) -> Error {
        kernmill_serve::Error::from(error).into()
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Error {
        match error {
            PlanError::Map { .. } | PlanError::File { source: FileError::Read(_), .. } => {
                Error::Work(error.to_string())
            }
            _ => Error::of(&error, error.to_string()),
        }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Error {
        kernmill_serve::Error::from(error).into()
    }
}

impl From<kernmill_serve::Error> for Error {
    fn from(error: kernmill_serve::Error) -> Error {
        match error {
            kernmill_serve::Error::BadInput(what) => Error::BadInput(what),
            kernmill_serve::Error::Refused(refusal) => Error::Refused(refusal),
            kernmill_serve::Error::Unavailable(why) => Error::Unavailable(why),
            other => Error::Work(other.to_string()),
        }
    }
}

impl From<AdapterError> for Error {
    fn from(error: AdapterError) -> Error {
        EngineError::Adapter(error).into()
    }
}

impl From<PeftError> for Error {
    fn from(error: PeftError) -> Error {
        AdapterError::from(error).into()
    }
}

impl From<CheckpointError> for Error {
    fn from(error: CheckpointError) -> Error {
        Error::of(&error, error.to_string())
    }
}

#[cfg(feature = "compiler")]
impl From<SpecError> for Error {
    fn from(error: SpecError) -> Error {
        Error::Spec(Box::new(error))
    }
}

#[cfg(feature = "compiler")]
impl From<ImportError> for Error {
    fn from(error: ImportError) -> Error {
        Error::of(&error, error.to_string())
    }
}

#[cfg(feature = "compiler")]
impl From<CompileError> for Error {
    fn from(error: CompileError) -> Error {
        match error {
            CompileError::Generate(GenerateError::Large { .. }) => Error::BadInput(error.to_string()),
            // Their messages ask for the report.
            CompileError::MemoryCheck(_) | CompileError::Program(_) | CompileError::Generate(_) => {
                Error::Work(error.to_string())
            }
            _ => Error::BadInput(error.to_string()),
        }
    }
}

#[cfg(feature = "compiler")]
impl From<BuildError<CheckpointError>> for Error {
    fn from(error: BuildError<CheckpointError>) -> Error {
        match error {
            BuildError::Memory { .. } => Error::BadInput(error.to_string()),
            BuildError::Pack(error) => error.into(),
            BuildError::Region(_) => Error::Work(error.to_string()),
        }
    }
}

#[cfg(feature = "compiler")]
impl From<PackWeightsError<CheckpointError>> for Error {
    fn from(error: PackWeightsError<CheckpointError>) -> Error {
        match error {
            PackWeightsError::Source(_) | PackWeightsError::Weight { .. } => {
                Error::of(&error, error.to_string())
            }
        }
    }
}

#[cfg(feature = "compiler")]
impl From<PlanPartsError> for Error {
    fn from(error: PlanPartsError) -> Error {
        match error {
            PlanPartsError::Large { .. } | PlanPartsError::Sections { .. } => {
                Error::BadInput(error.to_string())
            }
            _ => Error::Work(error.to_string()),
        }
    }
}

#[cfg(feature = "compiler")]
impl From<GenerateError> for Error {
    fn from(error: GenerateError) -> Error {
        match error {
            GenerateError::Large { .. } => Error::BadInput(error.to_string()),
            // Its message asks for the report.
            _ => Error::Work(error.to_string()),
        }
    }
}

#[cfg(feature = "compiler")]
impl From<MeasureError> for Error {
    fn from(error: MeasureError) -> Error {
        match error {
            MeasureError::Cpu(_) => Error::BadInput(error.to_string()),
            _ => Error::Work(error.to_string()),
        }
    }
}
