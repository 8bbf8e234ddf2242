//! How commands fail: what is shown, and the exit status.

use kernmill_compiler::build::BuildError;
use kernmill_compiler::checkpoint::CheckpointError;
use kernmill_compiler::import::ImportError;
use kernmill_compiler::pack::PackWeightsError;
use kernmill_compiler::pipeline::CompileError;
use kernmill_compiler::plan_file::PlanPartsError;
use kernmill_compiler::spec::SpecError;
use kernmill_compiler::synth::SynthError;
use kernmill_kernels::generate::GenerateError;
use kernmill_plan::file::check::FileError;
use kernmill_runtime::measure::MeasureError;
use kernmill_runtime::tokenizer::TokenizerError;
use kernmill_runtime::{EngineError, ErrorKind, LoadError, PlanError};
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::fmt::Display;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong, or asks for what this machine or version cannot do: exit status 2.
    BadInput(String),
    /// A spec is wrong: exit status 2, shown with the source line.
    Spec(SpecError),
    /// The work itself failed: exit status 1.
    Work(String),
    /// Whoever read the output has gone: silent, exit status 1.
    ReaderGone,
}

/// Result of commands.
pub type Result<T> = std::result::Result<T, Failure>;

const BAD_INPUT: u8 = 2;
const WORK: u8 = 1;

impl Failure {
    /// Bad input at `path`.
    pub fn input(path: &Path, what: impl Display) -> Failure {
        Failure::BadInput(format!("{}: {what}", path.display()))
    }

    /// Reading an input file failed.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
        move |error| Failure::input(path, error)
    }

    /// Writing a result failed.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
        move |error| Failure::Work(format!("{}: {error}", path.display()))
    }

    /// Shows it on standard error; the exit status.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::BadInput(message) => {
                eprintln!("error: {message}");
                BAD_INPUT.into()
            }
            Failure::Spec(error) => {
                eprint!("{}", excerpt(&error));
                BAD_INPUT.into()
            }
            Failure::Work(message) => {
                eprintln!("error: {message}");
                WORK.into()
            }
            Failure::ReaderGone => WORK.into(),
        }
    }
}

/// The error with its place in the spec; coloured on a terminal only.
fn excerpt(error: &SpecError) -> String {
    let terminal = std::io::stderr().is_terminal();
    let mut theme = if terminal { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    theme.characters.error = "error:".to_owned();
    let mut text = String::new();
    match GraphicalReportHandler::new_themed(theme).render_report(&mut text, error) {
        Ok(()) => text.trim_start().to_owned(),
        Err(_) => format!("error: {error:?}\n"),
    }
}

/// The fault is kernmill's.
fn defect(error: impl Display) -> Failure {
    Failure::Work(format!("{error} (this is a defect of kernmill: please report it)"))
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Failure {
        Failure::Spec(error)
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Failure {
        Failure::BadInput(error.to_string())
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        Failure::BadInput(error.to_string())
    }
}

impl From<TokenizerError> for Failure {
    fn from(error: TokenizerError) -> Failure {
        Failure::BadInput(error.to_string())
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Failure {
        match error {
            CompileError::MemoryCheck(_) | CompileError::Program(_) => Failure::Work(error.to_string()),
            CompileError::Fuse(_) => defect(error),
            _ => Failure::BadInput(error.to_string()),
        }
    }
}

impl From<BuildError<CheckpointError>> for Failure {
    fn from(error: BuildError<CheckpointError>) -> Failure {
        match error {
            BuildError::Memory { .. } => Failure::BadInput(error.to_string()),
            BuildError::Pack(error) => error.into(),
            BuildError::Region(_) => Failure::Work(error.to_string()),
        }
    }
}

impl From<PackWeightsError<CheckpointError>> for Failure {
    fn from(error: PackWeightsError<CheckpointError>) -> Failure {
        match error {
            PackWeightsError::Source(_) | PackWeightsError::Weight { .. } => {
                Failure::BadInput(error.to_string())
            }
        }
    }
}

impl From<PlanPartsError> for Failure {
    fn from(error: PlanPartsError) -> Failure {
        match error {
            PlanPartsError::Large { .. } | PlanPartsError::Sections { .. } => {
                Failure::BadInput(error.to_string())
            }
            _ => Failure::Work(error.to_string()),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Failure {
        match error {
            PlanError::Map { .. } | PlanError::File { source: FileError::Read(_), .. } => {
                Failure::Work(error.to_string())
            }
            _ => Failure::BadInput(error.to_string()),
        }
    }
}

impl From<SynthError> for Failure {
    fn from(error: SynthError) -> Failure {
        match error {
            SynthError::Io { .. } => Failure::Work(error.to_string()),
            _ => Failure::BadInput(error.to_string()),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        match (error.kind(), &error) {
            (ErrorKind::Bug, _) => defect(error),
            (ErrorKind::BadInput, _) | (_, EngineError::Load(LoadError::Cpu { .. })) => {
                Failure::BadInput(error.to_string())
            }
            (ErrorKind::Unsupported, _) => Failure::Work(error.to_string()),
        }
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Failure {
        match error {
            MeasureError::Cpu(_) => Failure::BadInput(error.to_string()),
            _ => Failure::Work(error.to_string()),
        }
    }
}

impl From<GenerateError> for Failure {
    fn from(error: GenerateError) -> Failure {
        // Its message asks for the report.
        Failure::Work(error.to_string())
    }
}
