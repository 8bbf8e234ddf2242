//! Models that have been compiled: a plan file.

use crate::compiler::generated_image;
use crate::error::{Error, Result};
use crate::nano;
use crate::options::Options;
use crate::target::Target;
use kernmill_os::memory::{available_memory, lies_in_memory};
use kernmill_os::text::size;
use kernmill_plan::program::Program;
use kernmill_runtime::{Plan, PlanError, PlanImage, TokenizerHandle};
use std::path::Path;
use std::time::Instant;

/// A plan file that has been checked. Its weights are mapped, not read.
pub struct PlanModel {
    plan: Plan,
    image: PlanImage,
    /// Seconds that it took to generate code, and to read and check the plan.
    times: (f64, f64),
}

impl PlanModel {
    /// Opens the plan at `path`, chooses the target to run, and maps the weights.
    ///
    /// # Errors
    /// When the file is no plan, is damaged, may be written by other users (docs/user/security.md), or has no
    /// target that this CPU can run.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<PlanModel> {
        let start = Instant::now();
        let plan = Plan::open(path)?;
        if let Some((image, compile)) = generated_image(&plan, options, start)? {
            let times = (compile, start.elapsed().as_secs_f64() - compile);
            return Ok(PlanModel { plan, image, times });
        }
        if let Some(chunk) = options.chunk.filter(|chunk| *chunk > plan.metadata().chunk) {
            return Err(Error::bad_input(format!(
                "--chunk {chunk}: expected at most {}, for which {} was compiled; {REGENERATE} compiles for more",
                plan.metadata().chunk,
                path.display()
            )));
        }
        let image = own_image(&plan, options)?;
        Ok(PlanModel { plan, image, times: (0.0, start.elapsed().as_secs_f64()) })
    }
}

impl PlanModel {
    /// Weights that do not stay in memory beside so many bytes of `others` are read from the disk for every
    /// token. On a file system in memory they do stay.
    pub(crate) fn too_large_for_memory(&self, others: u64) -> Option<String> {
        let program = self.image.program();
        let available = available_memory()?.saturating_sub(others);
        if program.weight_bytes <= available || lies_in_memory(self.plan.file().source()) {
            return None;
        }
        Some(format!(
            "{}: {} of weights, but {} of memory are left for them: they will be read from the disk again and again",
            self.plan.path().display(),
            size(program.weight_bytes),
            size(available)
        ))
    }
}

impl PlanModel {
    /// The opened plan file: its metadata, targets and sections.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The program of the target that was chosen: its kernels, steps and buffers.
    pub fn program(&self) -> &Program {
        self.image.program()
    }

    /// Image of the plan, with its tokenizer if [`PlanModel::tokenizer`] was asked for it.
    pub(crate) fn image(&self) -> &PlanImage {
        &self.image
    }

    pub(crate) fn times(&self) -> (f64, f64) {
        self.times
    }

    pub(crate) fn example(&self) -> Option<&'static str> {
        nano::example(&self.plan.file().spec().ok()?)
    }

    pub(crate) fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        if self.image.tokenizer().is_none() {
            self.image = self.image.clone().with_tokenizer(self.plan.tokenizer());
        }
        self.image.tokenizer().cloned()
    }

    pub(crate) fn leave_tokenizer(&mut self) {
        self.image = self.image.clone().with_tokenizer(None);
    }
}

/// An image with the plan's own code.
fn own_image(plan: &Plan, options: &Options) -> Result<PlanImage> {
    let wanted = match options.target {
        Target::Native => None,
        Target::Level(level) => Some(level),
    };
    if let Some(error) = plan.untrusted() {
        return Err(error.into());
    }
    let target = plan.choose(wanted).map_err(with_help)?;
    match wanted {
        None => tracing::info!("{}: {}", plan.path().display(), why(plan, target)),
        Some(level) => {
            tracing::info!("{}: target {} runs, as asked for", plan.path().display(), level.name())
        }
    }
    Ok(plan.image(target)?)
}

/// A sentence that says why target number `target` of the plan runs, and why none of the others.
pub fn why(plan: &Plan, target: usize) -> String {
    let targets = plan.targets();
    let others = targets.iter().enumerate().filter(|(index, _)| *index != target);
    let others: Vec<String> = others.map(|(_, other)| format!("{}: {}", other.name, other.fit)).collect();
    let name = &targets[target].name;
    match others.is_empty() {
        true => format!("target {name} runs, the only one"),
        false => format!("target {name} runs, the highest that runs here ({})", others.join("; ")),
    }
}

/// The command that generates code anew.
const REGENERATE: &str = if cfg!(feature = "compiler") {
    "--regenerate"
} else {
    "a kernmill with the compiler, by run --regenerate,"
};

/// A plan without a fitting target can still be run.
fn with_help(error: PlanError) -> Error {
    match error {
        PlanError::NoTarget { .. } => Error::bad_input(format!(
            "{error}; {REGENERATE} generates code for this CPU, kernmill compile --target writes a plan with it"
        )),
        other => other.into(),
    }
}
