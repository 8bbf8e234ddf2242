//! MODEL, `--spec` and `--weights`: which model a command works on.

pub use crate::compiler::GivenArgs;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use kernmill::locate::{self, Content, Located};
use kernmill_tools::FileKind;
use std::path::PathBuf;

/// Options that say how a model is compiled: a plan is compiled already. --tune is not among them, where code
/// is generated anew.
pub const OF_COMPILING: [&str; 9] = [
    "spec",
    "weights",
    "preset",
    "kv-format",
    "vectors",
    "no-fuse",
    "fused",
    "without-fusion",
    "no-adapters",
];

impl GivenArgs {
    /// Takes what stands behind --model as the model, if it is there. Text in the place of MODEL on the
    /// command line then follows it.
    pub fn take_named(&mut self, explicit: &Explicit) -> Option<PathBuf> {
        let named = self.named.take()?;
        self.model.replace(named).filter(|_| !explicit.is_from_environment("MODEL"))
    }

    /// Looks at the files.
    pub fn resolve(&self, explicit: &Explicit) -> Result<Located> {
        if self.named.is_some() && self.model.is_some() && !explicit.is_from_environment("MODEL") {
            return Err(Failure::BadInput("--model is given, and MODEL too: give one of them".to_owned()));
        }
        let Some(model) = self.named.as_ref().or(self.model.as_ref()) else { return self.without_model() };
        let model = &self.found(model, explicit)?;
        match locate::look(model)? {
            Content::File(FileKind::Plan) => Ok(Located::Plan(model.clone())),
            content => self.with_source(model, content, explicit),
        }
    }
}
