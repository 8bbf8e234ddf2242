//! Models that are compiled in this process: specs, checkpoints, and writing plans.
//! The compiler's errors become those of the library here.

mod cache;
mod compile;
mod memory;
mod nano;
mod opened;
mod options;
mod regenerate;
mod source;

use crate::error::{Error, ErrorKind};
pub use compile::{compile_plan, write_plan};
use kernmill_checkpoint::CheckpointError;
use kernmill_compiler::front::import::ImportError;
pub(crate) use kernmill_compiler::front::import::instead_of_config;
use kernmill_compiler::front::spec::SpecError;
use kernmill_compiler::output::plan_file::PlanPartsError;
use kernmill_compiler::output::region::BuildError;
pub use kernmill_compiler::passes::fuse::FusedSet;
pub use kernmill_compiler::passes::quant::Preset;
use kernmill_compiler::pipeline::CompileError;
pub(crate) use kernmill_compiler::pipeline::Compiled;
use kernmill_compiler::synth::SynthError;
use kernmill_compiler::weights::PackWeightsError;
use kernmill_kernels_gen::generate::GenerateError;
use kernmill_runtime::measure::MeasureError;
pub use opened::OpenedSource;
pub(crate) use opened::{CompiledModel, Found, Made};
pub use options::CompileOptions;
pub(crate) use regenerate::generated_image;
pub use regenerate::{PlanOrigin, origin, source};
pub use source::{SourceModel, SpecSource, choices};

impl From<SynthError> for Error {
    fn from(error: SynthError) -> Error {
        let kind = match error {
            SynthError::Io { .. } | SynthError::Checkpoint(_) => ErrorKind::Work,
            _ => ErrorKind::BadInput,
        };
        Error::because(kind, error)
    }
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Error {
        Error::because(ErrorKind::BadInput, error)
    }
}

impl From<ImportError> for Error {
    fn from(error: ImportError) -> Error {
        Error::of(error)
    }
}

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Error {
        let kind = match error {
            CompileError::Generate(GenerateError::Large { .. }) => ErrorKind::BadInput,
            // Their messages ask for the report.
            CompileError::MemoryCheck(_) | CompileError::Program(_) | CompileError::Generate(_) => {
                ErrorKind::Work
            }
            _ => ErrorKind::BadInput,
        };
        Error::because(kind, error)
    }
}

impl From<BuildError<CheckpointError>> for Error {
    fn from(error: BuildError<CheckpointError>) -> Error {
        match error {
            BuildError::Memory { .. } => Error::because(ErrorKind::BadInput, error),
            BuildError::Pack(error) => error.into(),
            BuildError::Region(_) => Error::because(ErrorKind::Work, error),
        }
    }
}

impl From<PackWeightsError<CheckpointError>> for Error {
    fn from(error: PackWeightsError<CheckpointError>) -> Error {
        Error::of(error)
    }
}

impl From<PlanPartsError> for Error {
    fn from(error: PlanPartsError) -> Error {
        let kind = match error {
            PlanPartsError::Large { .. } | PlanPartsError::Sections { .. } => ErrorKind::BadInput,
            _ => ErrorKind::Work,
        };
        Error::because(kind, error)
    }
}

impl From<GenerateError> for Error {
    fn from(error: GenerateError) -> Error {
        let kind = match error {
            GenerateError::Large { .. } => ErrorKind::BadInput,
            // A fault of kernmill: the message asks the user to report it.
            _ => ErrorKind::Work,
        };
        Error::because(kind, error)
    }
}

impl From<MeasureError> for Error {
    fn from(error: MeasureError) -> Error {
        let kind = match error {
            MeasureError::Cpu(_) => ErrorKind::BadInput,
            _ => ErrorKind::Work,
        };
        Error::because(kind, error)
    }
}
