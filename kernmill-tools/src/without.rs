//! Tools without the compiler.

/// A plan is as it was compiled.
pub fn compile_as_usual(_options: &mut kernmill::CompileOptions) {}

/// Stages of what was compiled: nothing is, here.
pub mod stages {
    use crate::stage::Stage;
    use kernmill::Result;
    use kernmill::compiler::{Compiled, SourceModel};
    use kernmill_plan::program::Program;

    /// The stages that are shown of a plan here, for messages.
    pub const OF_PLANS: &str = "spec and plan here";

    /// Code is not shown here.
    pub fn code(_program: &Program, _stage: Stage) -> Option<Result<Vec<u8>>> {
        None
    }

    /// There is no such model here.
    ///
    /// # Errors
    /// Never.
    pub fn of_compiled(model: &SourceModel, _compiled: &Compiled, _stage: Stage) -> Result<Vec<u8>> {
        match *model {}
    }
}
