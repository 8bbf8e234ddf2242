//! Failures of what only a kernmill with the compiler does.

use super::as_in_library;
use kernmill_tools::{BuildError, CheckpointError, CompileError, ImportError};
use kernmill_tools::{PackWeightsError, PlanPartsError, SpecError, SynthError};

as_in_library!(SpecError, CheckpointError, ImportError, CompileError, BuildError<CheckpointError>);
as_in_library!(PackWeightsError<CheckpointError>, PlanPartsError, SynthError);
