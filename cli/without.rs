//! Options of a kernmill without the compiler, in place of those that say how a model is compiled.

use crate::emit::Emit;
use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use crate::inspect::Inspect;
use crate::logits::Logits;
use crate::tokens::Tokens;
use kernmill::locate::{Content, Located, locate};
use kernmill::{CompileOptions, ModelMakes};
use std::path::{Path, PathBuf};

/// The end of `--help`.
pub const HELP: &str = include_str!("help/kernmill-of-plans.txt");

commands! {
    /// Commands that are here in part.
    More {
        Tokens(Tokens),
        Logits(Box<Logits>),
        Inspect(Inspect),
    }
}

/// Which model.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GivenArgs {
    /// Model: a plan that `kernmill compile` wrote
    #[arg(value_name = "PLAN", required_unless_present = "named", help_heading = None::<&'static str>)]
    pub model: Option<PathBuf>,
    /// As MODEL, for those who know it by this name
    #[arg(short = 'm', long = "model", value_name = "MODEL", hide = true)]
    pub named: Option<PathBuf>,
}

impl GivenArgs {
    /// The path as it is.
    pub fn found(&self, model: &Path, _explicit: &Explicit) -> Result<PathBuf> {
        Ok(model.to_owned())
    }

    /// There is no model but a plan.
    pub fn without_model(&self) -> Result<Located> {
        Err(Failure::BadInput("no plan is given, and this kernmill has no compiler".to_owned()))
    }

    /// Refuses anything but a plan.
    pub fn with_source(&self, model: &Path, _content: Content, _explicit: &Explicit) -> Result<Located> {
        Ok(locate(model)?)
    }
}

/// How a model is run.
#[derive(Clone, Debug, clap::Args)]
pub struct CompileArgs {
    /// Prompt tokens that are run at once; by default 512, for amx alone 2,048, or what a plan is made for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub chunk: Option<u32>,
}

impl CompileArgs {
    /// The library's form of it.
    pub fn library(&self, _anew: &AnewArgs, _kept: &KeptArgs, _emit: &Emit) -> Result<CompileOptions> {
        Ok(CompileOptions::default())
    }

    /// A plan makes what it was compiled for.
    pub fn makes(&self, usual: ModelMakes) -> ModelMakes {
        usual
    }

    /// Nothing is compiled here.
    pub fn check_source(&self, _explicit: &Explicit) -> Result<()> {
        Ok(())
    }
}

/// A plan's code is that of its file.
#[derive(Clone, Debug, clap::Args)]
pub struct AnewArgs {}

/// Nothing is compiled that could be kept.
#[derive(Clone, Debug, clap::Args)]
pub struct KeptArgs {}
