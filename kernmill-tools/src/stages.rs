//! The stages of the compiler as text, and its code as an object file.

#[cfg(feature = "compiler")]
pub use crate::compiler::stages::{EmitOutputs, StageSources, disassembly, fingerprints};
use crate::compiler::stages::{OF_PLANS, code, of_compiled};
use crate::given::in_plan;
use crate::listing;
pub use crate::stage::{NO_OBJECT, Stage};
use kernmill::{Error, Origin, Prepared, Result};
use kernmill_plan::program::Program;
use kernmill_runtime::Plan;

/// A stage that a plan still has: text, or an object file.
///
/// # Errors
/// When it has not, or it cannot be read.
pub fn of_plan(plan: &Plan, program: &Program, stage: Stage) -> Result<Vec<u8>> {
    match stage {
        Stage::Spec => Ok(plan.file().spec().map_err(|source| in_plan(plan, source))?.into_bytes()),
        Stage::Plan => Ok(listing::program(program).into_bytes()),
        other => code(program, other).unwrap_or_else(|| {
            Err(Error::bad_input(format!(
                "--emit {}: a plan has only {OF_PLANS}; kernmill explain shows the others",
                other.name()
            )))
        }),
    }
}

/// A stage of a model that is about to run: of its compilation, or what its plan still has.
///
/// # Errors
/// As those of [`of_plan`].
pub fn of_prepared(prepared: &Prepared, stage: Stage) -> Result<Vec<u8>> {
    match prepared.origin() {
        Origin::Plan(plan) => of_plan(plan.plan(), plan.program(), stage),
        Origin::Compiled(model, compiled) => of_compiled(model, compiled, stage),
    }
}
