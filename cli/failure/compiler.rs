//! Failures of what only a kernmill with the compiler does.

use super::Failure;
use kernmill_checkpoint::CheckpointError;
use kernmill_compiler::build::BuildError;
use kernmill_compiler::import::ImportError;
use kernmill_compiler::pack::PackWeightsError;
use kernmill_compiler::pipeline::CompileError;
use kernmill_compiler::plan_file::PlanPartsError;
use kernmill_compiler::spec::SpecError;
use kernmill_compiler::synth::SynthError;
use kernmill_kernels::generate::GenerateError;
use kernmill_os::text::message;
use kernmill_runtime::measure::MeasureError;
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::borrow::Cow;
use std::io::IsTerminal;

/// The error with its place in the spec; coloured on a terminal only. A spec that has control characters itself is shown without them, and
/// without colours.
fn excerpt(error: &SpecError) -> String {
    let plain = render(error, GraphicalTheme::unicode_nocolor());
    match message(&plain) {
        Cow::Owned(cleaned) => cleaned,
        Cow::Borrowed(_) if std::io::stderr().is_terminal() => render(error, GraphicalTheme::unicode()),
        Cow::Borrowed(_) => plain,
    }
}

fn render(error: &SpecError, mut theme: GraphicalTheme) -> String {
    theme.characters.error = "error:".to_owned();
    let mut text = String::new();
    match GraphicalReportHandler::new_themed(theme).render_report(&mut text, error) {
        Ok(()) => text.trim_start().to_owned(),
        Err(_) => format!("error: {error:?}\n"),
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Failure {
        Failure::Spec(excerpt(&error))
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

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Failure {
        match error {
            CompileError::MemoryCheck(_) | CompileError::Program(_) => Failure::Work(error.to_string()),
            CompileError::Generate(error) => error.into(),
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

impl From<SynthError> for Failure {
    fn from(error: SynthError) -> Failure {
        match error {
            SynthError::Io { .. } | SynthError::Checkpoint(_) => Failure::Work(error.to_string()),
            _ => Failure::BadInput(error.to_string()),
        }
    }
}

impl From<GenerateError> for Failure {
    fn from(error: GenerateError) -> Failure {
        match error {
            GenerateError::Large { .. } => Failure::BadInput(error.to_string()),
            // Its message asks for the report.
            _ => Failure::Work(error.to_string()),
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
