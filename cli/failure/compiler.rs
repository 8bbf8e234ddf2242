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
use kernmill_os::terminal::errors_have_colours;
use kernmill_os::text::message;
use std::borrow::Cow;

/// A wrong spec, with its place in the text.
pub(super) fn spec(error: &SpecError) -> Failure {
    // A spec that has control characters itself is shown without them, and without colours.
    let plain = error.excerpt(false);
    Failure::Spec(match message(&plain) {
        Cow::Owned(cleaned) => cleaned,
        Cow::Borrowed(_) => error.excerpt(errors_have_colours()),
    })
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
