//! `kernmill eval`: how good a model is, and what a change of it costs.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::model::{self, ModelArgs};
use crate::{output, version};
use kernmill_tools::eval::{EvalCommand, Outcome, Told};

/// Measures how good a model is, and what a change of it costs, with statistics
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("help/eval.txt"))]
pub struct Eval {
    #[command(subcommand)]
    command: EvalCommand<ModelArgs>,
}

impl Eval {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        let open = |args: &ModelArgs| {
            let located = args.given.resolve(explicit)?;
            self.command.outputs().into_iter().try_for_each(|path| located.check_apart(path))?;
            model::open(args, &Emit::NONE, explicit)
        };
        let Outcome { report, failed } = self.command.run::<Failure>(&open)?;
        match report {
            Told::Text(text) => output::show(text)?,
            Told::Json(schema, report) => output::print(version::report(schema, report))?,
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}
