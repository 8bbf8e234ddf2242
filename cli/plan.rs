//! Models that have been compiled: a plan file.

use crate::emit::{Emit, Stage};
use crate::failure::{Failure, Result};
use crate::listing;
use crate::model::{Loaded, ModelArgs, Target, Times, check_memory, engine};
use crate::regenerate::regenerate;
use kernmill_kernels::disasm;
use kernmill_plan::program::{ModelInfo, Program};
use kernmill_runtime::kv::KvShape;
use kernmill_runtime::load::Distrust;
use kernmill_runtime::{Plan, PlanError, PlanImage, TokenizerHandle};
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
        let mut times = Times::default();
        let distrust = plan.distrust();
        let image = if args.regenerate || distrust.is_some() {
            if let Some(reason) = distrust.filter(|_| !args.compile.quiet) {
                note_distrust(path, reason);
            }
            let generated = regenerate(&plan, args.target)?;
            times.compile = start.elapsed().as_secs_f64();
            plan.image_with(generated)?
        } else {
            let wanted = match args.target {
                Target::Native => None,
                Target::Level(level) => Some(level),
            };
            let target = plan.choose(wanted).map_err(with_help)?;
            if args.verbose {
                match wanted {
                    None => eprintln!("{}: {}", path.display(), why(&plan, target)),
                    Some(level) => {
                        eprintln!("{}: target {} runs, as asked for", path.display(), level.name())
                    }
                }
            }
            plan.image(target)?
        };
        times.open = start.elapsed().as_secs_f64() - times.compile;
        Ok(PlanModel { plan, image, times })
    }

    /// Model facts.
    pub fn info(&self) -> &ModelInfo {
        &self.image.program.model
    }

    /// Its tokenizer, if it has one, which is being read from now on.
    pub fn tokenizer(&mut self) -> Option<TokenizerHandle> {
        if self.image.tokenizer.is_none() {
            self.image.tokenizer = self.plan.tokenizer();
        }
        self.image.tokenizer.clone()
    }

    /// Tokens by which its texts end.
    pub fn end_tokens(&self) -> Vec<u32> {
        self.plan.metadata().end_tokens.clone()
    }

    /// Starts an engine.
    pub fn load(self, args: &ModelArgs, emit: &Emit, context: u32, sequences: u32) -> Result<Loaded> {
        emit.write(&|stage| text(&self.plan, &self.image.program, stage))?;
        let threads = args.threads();
        let program = &self.image.program;
        let largest = program.classes.last().map_or(1, |class| class.max_tokens);
        let shape = KvShape { context, sequences, chunk: args.compile.chunk.min(context).min(largest) };
        check_memory(program, shape, threads, args.max_memory)?;
        engine(&self.image, shape, threads, self.times)
    }
}

/// The stages that a plan still has.
pub fn text(plan: &Plan, program: &Program, stage: Stage) -> Result<String> {
    match stage {
        Stage::Spec => Ok(plan.file().spec().map_err(|source| wrong(plan, source))?),
        Stage::Asm => Ok(disasm::blob(&program.code)),
        Stage::Plan => Ok(listing::program(program)),
        other => Err(Failure::BadInput(format!(
            "--emit {}: a plan has only spec, asm and plan; kernmill explain shows the others",
            other.name()
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

fn note_distrust(path: &Path, reason: Distrust) {
    eprintln!(
        "note: {}: the plan's machine code is not used ({reason}): kernels are generated anew from its spec",
        path.display()
    );
}

/// A plan without a fitting target can still be run.
fn with_help(error: PlanError) -> Failure {
    match error {
        PlanError::NoTarget { .. } => Failure::BadInput(format!(
            "{error}; --regenerate generates code for this CPU, kernmill compile --target writes a plan with it"
        )),
        other => other.into(),
    }
}
