//! `--emit` of a model that is about to run: what was compiled, or what its plan still has of it.

use crate::emit::{Emit, Stage};
use crate::failure::{Failure, Result};
use crate::listing;
#[cfg(feature = "compiler")]
use crate::stages::{self, Stages};
use kernmill::Error;
use kernmill::{Origin, Prepared};
#[cfg(feature = "compiler")]
use kernmill_kernels::disasm;
use kernmill_plan::program::Program;
use kernmill_runtime::Plan;

/// Prints or writes the stages that are wanted.
///
/// # Errors
/// When a plan does not have one of them, or it cannot be written.
pub fn emit_prepared(prepared: &Prepared, emit: &Emit) -> Result<()> {
    match prepared.origin() {
        Origin::Plan(plan) => emit.write(None, &|stage| contents(plan.plan(), plan.program(), stage)),
        #[cfg(feature = "compiler")]
        Origin::Compiled(model, compiled) => {
            let compiled = std::slice::from_ref(compiled);
            let stages = Stages { spec: &model.source.text, graph: &model.graph, compiled };
            emit.write(None, &|stage| stages.contents(stage))
        }
    }
}

/// The stages that a plan still has.
fn contents(plan: &Plan, program: &Program, stage: Stage) -> Result<Vec<u8>> {
    match stage {
        Stage::Spec => Ok(plan.file().spec().map_err(|source| Error::in_plan(plan, source))?.into_bytes()),
        #[cfg(feature = "compiler")]
        Stage::Asm => Ok(disasm::blob(&program.code).into_bytes()),
        Stage::Plan => Ok(listing::program(program).into_bytes()),
        #[cfg(feature = "compiler")]
        Stage::Obj => stages::object(program),
        other => Err(Failure::BadInput(format!(
            "--emit {}: a plan has only {}; kernmill explain shows the others",
            other.name(),
            if cfg!(feature = "compiler") { "spec, asm, plan and obj" } else { "spec and plan here" }
        ))),
    }
}
