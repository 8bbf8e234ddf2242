//! Which model a command works on, where one may be compiled here.

use crate::explicit::Explicit;
use crate::failure::Result;
use kernmill::locate::{self, Content, Located};
use kernmill_tools::FileKind;
use std::path::{Path, PathBuf};

/// Which model.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GivenArgs {
    /// Model: a plan that `kernmill compile` wrote, a checkpoint's directory, a GGUF file, or a spec (TOML)
    /// with --weights. Without any of them: the embedded nano model
    #[arg(value_name = "MODEL", help_heading = None::<&'static str>)]
    pub model: Option<PathBuf>,
    /// As MODEL, for those who know it by this name
    #[arg(short = 'm', long = "model", value_name = "MODEL", hide = true)]
    pub named: Option<PathBuf>,
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the
    /// weights
    #[arg(long, value_name = "SPEC")]
    pub spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors, or shards and their index; or a GGUF file. Its
    /// tokenizer.json is used if there is one
    #[arg(long, value_name = "DIR|FILE.gguf")]
    pub weights: Option<PathBuf>,
    /// Look for a MODEL of the form ORG/NAME that is no path here in the cache of Hugging Face's tools
    #[arg(long)]
    pub hf_cache: bool,
    /// Do not offer to fetch a MODEL of the form ORG/NAME
    #[cfg(feature = "pull")]
    #[arg(long)]
    pub offline: bool,
}

impl GivenArgs {
    /// The place of the model that a name on a hub stands for, or the path as it is.
    #[cfg_attr(not(feature = "pull"), expect(unused_variables))]
    pub fn found(&self, model: &Path, explicit: &Explicit) -> Result<PathBuf> {
        let model = kernmill::of_hub(model, self.hf_cache)?;
        #[cfg(feature = "pull")]
        let model = kernmill::pull::resolve(&model, self.offline, &explicit.aside())?;
        Ok(model)
    }

    /// The model where no MODEL is given.
    pub fn without_model(&self) -> Result<Located> {
        Ok(Located::Source(locate::of_parts(self.spec.as_deref(), self.weights.as_deref())?))
    }

    /// The model at a path that is no plan.
    pub fn with_source(&self, model: &Path, content: Content, explicit: &Explicit) -> Result<Located> {
        if content == Content::File(FileKind::Text) {
            explicit.refuse(&["spec"], &format!("{} is a spec itself; give one of them", model.display()))?;
            return Ok(Located::Source(locate::of_parts(Some(model), self.weights.as_deref())?));
        }
        // A spec from the environment gives way to the command line.
        let spec = self.spec.as_deref().filter(|_| !explicit.is_from_environment("spec"));
        let files = locate::of_checkpoint(model, content, spec)?;
        let because = format!("{} is a checkpoint itself; give one of them", model.display());
        explicit.refuse(&["weights"], &because)?;
        Ok(Located::Source(files))
    }
}
