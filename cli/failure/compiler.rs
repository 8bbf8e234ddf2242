//! Failures of what only a kernmill with the compiler does.

use super::{Failure, as_in_library};
use kernmill_checkpoint::CheckpointError;
use kernmill_compiler::import::ImportError;
use kernmill_compiler::pack::PackWeightsError;
use kernmill_compiler::pack::region::BuildError;
use kernmill_compiler::pipeline::CompileError;
use kernmill_compiler::plan_file::PlanPartsError;
use kernmill_compiler::spec::SpecError;
use kernmill_compiler::synth::SynthError;
use kernmill_os::text::message;
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::borrow::Cow;
use std::io::IsTerminal;

/// The error with its place in the spec; coloured on a terminal only. A spec that has control characters
/// itself is shown without them, and without colours.
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

/// A wrong spec, with its place in the text.
pub(super) fn spec(error: &SpecError) -> Failure {
    Failure::Spec(excerpt(error))
}

as_in_library!(
    SpecError,
    CheckpointError,
    ImportError,
    CompileError,
    BuildError<CheckpointError>,
    PackWeightsError<CheckpointError>,
    PlanPartsError,
    SynthError,
);
