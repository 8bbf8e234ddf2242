//! Models that have been compiled: a plan file.

use crate::emit::{Emit, Stage};
use crate::failure::{Failure, Result};
use crate::listing;
use crate::model::{Loaded, Model, ModelArgs, Times, WeightsIn, check_memory, engine};
use crate::nano;
use crate::options::Target;
use crate::output;
#[cfg(feature = "compiler")]
use crate::regenerate::regenerate;
#[cfg(feature = "compiler")]
use crate::stages;
#[cfg(feature = "compiler")]
use kernmill_kernels::disasm;
use kernmill_os::memory::{available_memory, lies_in_memory};
use kernmill_plan::program::Program;
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::{MemoryNeed, Plan, PlanError, PlanImage, TokenizerHandle};
use std::path::Path;
use std::time::Instant;

/// A plan that has been checked, with its weights mapped.
pub struct PlanModel {
    plan: Plan,
    image: PlanImage,
    times: Times,
}

impl PlanModel {
    /// Opens a plan, takes the target to run, and maps the weights.
    pub fn open(path: &Path, args: &ModelArgs) -> Result<PlanModel> {
        let start = Instant::now();
        let plan = Plan::open(path)?;
        #[cfg(feature = "compiler")]
        if let Some((image, compile)) = generated_image(&plan, args, start)? {
            let times = Times { compile, open: start.elapsed().as_secs_f64() - compile, ..Times::default() };
            return Ok(PlanModel { plan, image, times });
        }
        if let Some(chunk) = args.compile.chunk.filter(|chunk| *chunk > plan.metadata().chunk) {
            return Err(Failure::BadInput(format!(
                "--chunk {chunk}: expected at most {}, for which {} was compiled; {REGENERATE} compiles for more",
                plan.metadata().chunk,
                path.display()
            )));
        }
        let image = own_image(&plan, args)?;
        let times = Times { open: start.elapsed().as_secs_f64(), ..Times::default() };
        Ok(PlanModel { plan, image, times })
    }
}

impl PlanModel {
    /// Weights that do not stay in memory are read from the disk for every token. On a file system in memory they do stay.
    fn too_large_for_memory(&self, shape: KvShape, threads: usize) -> Option<String> {
        let program = self.image.program();
        let available = available_memory()?.saturating_sub(MemoryNeed::of(program, shape, threads).total());
        if program.weight_bytes <= available || lies_in_memory(self.plan.file().source()) {
            return None;
        }
        Some(format!(
            "{}: {:.3} GB of weights, but {:.3} GB of memory are left for them: they will be read from the disk again and again",
            self.plan.path().display(),
            program.weight_bytes as f64 / 1e9,
            available as f64 / 1e9
        ))
    }
}

impl Model for PlanModel {
    fn vocab(&self) -> usize {
        self.image.program().model.vocab as usize
    }

    fn longest(&self) -> u32 {
        self.image.program().model.max_context
    }

    fn example(&self) -> Option<&'static str> {
        nano::example(&self.plan.file().spec().ok()?)
    }

    fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        if self.image.tokenizer().is_none() {
            self.image = self.image.clone().with_tokenizer(self.plan.tokenizer());
        }
        self.image.tokenizer().cloned()
    }

    fn leave_tokenizer(&mut self) {
        self.image = self.image.clone().with_tokenizer(None);
    }

    fn end_tokens(&self) -> Result<Vec<u32>> {
        Ok(self.plan.metadata().end_tokens.clone())
    }

    fn load(self: Box<Self>, args: &ModelArgs, emit: &Emit, context: u32, sequences: u32) -> Result<Loaded> {
        emit.write(None, &|stage| contents(&self.plan, self.image.program(), stage))?;
        let threads = args.threads();
        let program = self.image.program();
        let largest = program.classes.last().map_or(1, |class| class.max_tokens);
        let shape = KvShape {
            context,
            sequences,
            chunk: args.compile.chunk.unwrap_or(largest).min(context).min(largest),
        };
        args.lora.check_fit(program)?;
        check_memory(program, shape, threads, args.max_memory, WeightsIn::File)?;
        if !args.compile.quiet
            && let Some(note) = self.too_large_for_memory(shape, threads)
        {
            output::note(format_args!("note: {note}"));
        }
        engine(&self.image, shape, args, self.times)
    }
}

/// With the plan's own code.
fn own_image(plan: &Plan, args: &ModelArgs) -> Result<PlanImage> {
    let wanted = match args.target {
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

/// With code generated anew, if that is asked for; and the seconds that it took since `start`. Nobody's spec is compiled unasked.
#[cfg(feature = "compiler")]
fn generated_image(plan: &Plan, args: &ModelArgs, start: Instant) -> Result<Option<(PlanImage, f64)>> {
    if !args.regenerate {
        return Ok(None);
    }
    let generated = regenerate(plan, args)?;
    let seconds = start.elapsed().as_secs_f64();
    // SAFETY: the compiler of this process made the program.
    let image = unsafe { plan.image_with(generated) }?;
    Ok(Some((image, seconds)))
}

/// The stages that a plan still has.
fn contents(plan: &Plan, program: &Program, stage: Stage) -> Result<Vec<u8>> {
    match stage {
        Stage::Spec => Ok(plan.file().spec().map_err(|source| wrong(plan, source))?.into_bytes()),
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

/// A failed read of a part of a plan.
pub fn wrong(plan: &Plan, source: kernmill_plan::file::check::FileError) -> Failure {
    PlanError::File { path: plan.path().to_owned(), source }.into()
}

/// Which target runs, and why not another one.
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

/// What generates code anew.
const REGENERATE: &str = if cfg!(feature = "compiler") {
    "--regenerate"
} else {
    "a kernmill with the compiler, by run --regenerate,"
};

/// A plan without a fitting target can still be run.
fn with_help(error: PlanError) -> Failure {
    match error {
        PlanError::NoTarget { .. } => Failure::BadInput(format!(
            "{error}; {REGENERATE} generates code for this CPU, kernmill compile --target writes a plan with it"
        )),
        other => other.into(),
    }
}
