//! `kernmill inspect`: what is in a plan; or the format, size and loss of every tensor of a model.

use crate::aside::Aside;
#[cfg(feature = "compiler")]
use crate::compiler::preset_parser;
use crate::explicit::Explicit;
use crate::failure::Result;
use crate::given::{GivenArgs, OF_COMPILING};
use crate::options::{FormArgs, ThreadsArgs, target_parser};
use crate::output;
use crate::version;
use kernmill::Target;
use kernmill::locate::Located;
use kernmill_tools::{Plan, listing};
#[cfg(feature = "compiler")]
use kernmill_tools::{Preset, stages, tensors::TensorList};

/// Shows what is in a plan; or what a preset makes of a model's weights
///
/// Of a plan: its sections, tensors, targets, and the steps of the target that runs here. Of a model: each
/// tensor's format and size, and for 4 bits the error that decides.
#[derive(Debug, clap::Args)]
#[cfg_attr(feature = "compiler", command(after_help = include_str!("help/inspect.txt")))]
#[cfg_attr(not(feature = "compiler"), command(after_help = include_str!("help/inspect-of-plans.txt")))]
pub struct Inspect {
    #[command(flatten)]
    given: GivenArgs,
    /// Read all of the plan, weights included, and compare every hash
    #[arg(long)]
    verify: bool,
    /// Show the plan's machine code, of functions whose names contain KERNEL
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, default_missing_value = "")]
    disasm: Option<String>,
    /// Which of the plan's targets to show; native is the one that runs here
    #[arg(long, value_name = "LEVEL", default_value = "native", value_parser = target_parser())]
    target: Target,
    /// Quantisation, as for the other commands
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "PRESET", default_value = "fast", value_parser = preset_parser())]
    preset: Preset,
    #[command(flatten)]
    threads: ThreadsArgs,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    aside: Aside,
}

impl Inspect {
    /// Runs the command.
    pub fn execute(self, explicit: &Explicit) -> Result<()> {
        match self.given.resolve(explicit)? {
            Located::Plan(path) => {
                explicit.refuse(&OF_COMPILING, "a plan says itself how it was compiled")?;
                if self.form.json {
                    explicit.refuse(&["disasm"], "machine code is not shown as JSON; leave out --json")?;
                    explicit.refuse(&["target"], "--json shows every target; leave out one of them")?;
                }
                self.show_plan(&Plan::open(&path)?)
            }
            #[cfg(not(feature = "compiler"))]
            Located::Source(_) => unreachable!("what is no plan was refused"),
            #[cfg(feature = "compiler")]
            Located::Source(source) => {
                explicit.refuse(
                    &["verify", "disasm", "target"],
                    "expected a plan, which alone has code and hashes",
                )?;
                let list = TensorList::of(&source, self.preset, self.threads.number(), &self.aside)?;
                version::show(self.form.json, "kernmill.inspect-model/1", || list.json(), || list.text())
            }
        }
    }

    fn show_plan(&self, plan: &Plan) -> Result<()> {
        if self.verify {
            listing::verify(plan, self.threads.number(), &self.aside)?;
        }
        let target = listing::shown(plan, self.target)?;
        #[cfg(feature = "compiler")]
        if let Some(part) = &self.disasm {
            let (program, _) =
                plan.file().program(target).map_err(|source| kernmill_tools::in_plan(plan, source))?;
            return output::show(stages::disassembly(&program, part)?);
        }
        let verified = if self.verify { "every hash fits\n" } else { "" };
        if self.form.json {
            return output::print(version::report("kernmill.inspect-plan/1", listing::plan_json(plan)?));
        }
        output::show(listing::plan(plan, Some(target))? + verified)
    }
}
