//! MODEL, `--spec` and `--weights`: which model a command works on.

use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
#[cfg(feature = "pull")]
use crate::progress::Terminal;
#[cfg(feature = "compiler")]
use kernmill::hub;
use kernmill::locate::{self, Content, Located};
use kernmill_checkpoint::file_kind::FileKind;
use std::path::{Path, PathBuf};

/// Which model.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GivenArgs {
    /// Model: a plan that `kernmill compile` wrote, a checkpoint's directory, a GGUF file, or a spec (TOML)
    /// with --weights. Without any of them: the embedded nano model
    #[cfg(feature = "compiler")]
    #[arg(value_name = "MODEL", help_heading = None::<&'static str>)]
    pub model: Option<PathBuf>,
    /// Model: a plan that `kernmill compile` wrote
    #[cfg(not(feature = "compiler"))]
    #[arg(value_name = "PLAN", required_unless_present = "named", help_heading = None::<&'static str>)]
    pub model: Option<PathBuf>,
    /// As MODEL, for those who know it by this name
    #[arg(short = 'm', long = "model", value_name = "MODEL", hide = true)]
    pub named: Option<PathBuf>,
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the
    /// weights
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "SPEC")]
    pub spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors, or shards and their index; or a GGUF file. Its
    /// tokenizer.json is used if there is one
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "DIR|FILE.gguf")]
    pub weights: Option<PathBuf>,
    /// Look for a MODEL of the form ORG/NAME that is no path here in the cache of Hugging Face's tools
    #[cfg(feature = "compiler")]
    #[arg(long)]
    pub hf_cache: bool,
    /// Do not offer to fetch a MODEL of the form ORG/NAME
    #[cfg(feature = "pull")]
    #[arg(long)]
    pub offline: bool,
}

/// Options that say how a model is compiled: a plan is compiled already.
pub const OF_COMPILING: [&str; 9] =
    ["spec", "weights", "preset", "kv-format", "no-fuse", "fused", "without-fusion", "no-adapters", "tune"];

impl GivenArgs {
    /// Takes what stands behind --model as the model, if it is there. What the command line has in the place
    /// of MODEL is what follows it then.
    pub fn take_named(&mut self, explicit: &Explicit) -> Option<PathBuf> {
        let named = self.named.take()?;
        self.model.replace(named).filter(|_| !explicit.is_from_environment("MODEL"))
    }

    /// Looks at the files.
    ///
    /// # Errors
    /// When one is not there or of no use, or they contradict each other.
    pub fn resolve(&self, explicit: &Explicit) -> Result<Located> {
        if self.named.is_some() && self.model.is_some() && !explicit.is_from_environment("MODEL") {
            return Err(Failure::BadInput("--model is given, and MODEL too: give one of them".to_owned()));
        }
        let Some(model) = self.named.as_ref().or(self.model.as_ref()) else { return self.without_model() };
        #[cfg(feature = "compiler")]
        let model = &hub::resolve(model, self.hf_cache)?;
        #[cfg(feature = "pull")]
        let model = &kernmill::pull::resolve(model, self.offline, &*Terminal::observer(false))?;
        match locate::look(model)? {
            Content::File(FileKind::Plan) => Ok(Located::Plan(model.clone())),
            content => self.with_source(model, content, explicit),
        }
    }

    #[cfg(not(feature = "compiler"))]
    fn without_model(&self) -> Result<Located> {
        Err(Failure::BadInput("no plan is given, and this kernmill has no compiler".to_owned()))
    }

    #[cfg(not(feature = "compiler"))]
    fn with_source(&self, model: &Path, content: Content, _explicit: &Explicit) -> Result<Located> {
        Err(locate::no_plan(model, &content).into())
    }
}

#[cfg(feature = "compiler")]
impl GivenArgs {
    fn without_model(&self) -> Result<Located> {
        Ok(Located::Source(locate::of_parts(self.spec.as_deref(), self.weights.as_deref())?))
    }

    fn with_source(&self, model: &Path, content: Content, explicit: &Explicit) -> Result<Located> {
        if content == Content::File(FileKind::Text) {
            explicit.refuse(&["spec"], &format!("{} is a spec itself; give one of them", model.display()))?;
            return Ok(Located::Source(locate::of_spec(model, self.weights.as_deref())?));
        }
        // What the environment says gives way to the command line.
        let spec = self.spec.as_deref().filter(|_| !explicit.is_from_environment("spec"));
        let files = locate::of_checkpoint(model, content, spec)?;
        let because = format!("{} is a checkpoint itself; give one of them", model.display());
        explicit.refuse(&["weights"], &because)?;
        Ok(Located::Source(files))
    }
}
