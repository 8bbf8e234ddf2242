//! MODEL, `--spec` and `--weights`: which model a command works on, told by what is in the files.

use crate::explicit::Explicit;
use crate::failure::{Failure, Result};
use kernmill_checkpoint::file_kind::FileKind;
#[cfg(feature = "compiler")]
use kernmill_checkpoint::{INDEX_FILE, SINGLE_FILE};
#[cfg(feature = "compiler")]
use kernmill_compiler::import::instead_of_config;
#[cfg(feature = "compiler")]
use kernmill_os::output::directory;
#[cfg(feature = "compiler")]
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The spec that lies in a checkpoint's directory, where `config.json` cannot say what it says.
#[cfg(feature = "compiler")]
pub const SPEC_FILE: &str = "kernmill.toml";
/// The config of a published checkpoint.
#[cfg(feature = "compiler")]
pub const CONFIG_FILE: &str = "config.json";

/// Which model.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GivenArgs {
    /// Model: a plan that `kernmill compile` wrote, a checkpoint's directory, a GGUF file, or a spec (TOML) with --weights. Without
    /// any of them: the embedded nano model
    #[cfg(feature = "compiler")]
    #[arg(value_name = "MODEL", help_heading = None::<&'static str>)]
    pub model: Option<PathBuf>,
    /// Model: a plan that `kernmill compile` wrote
    #[cfg(not(feature = "compiler"))]
    #[arg(value_name = "PLAN", required = true, help_heading = None::<&'static str>)]
    pub model: Option<PathBuf>,
    /// Model spec (TOML). Without it, the spec is imported from the GGUF file, or the config.json beside the weights
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "SPEC")]
    pub spec: Option<PathBuf>,
    /// Checkpoint: a directory with model.safetensors, or shards and their index; or a GGUF file. Its tokenizer.json is used if there
    /// is one
    #[cfg(feature = "compiler")]
    #[arg(long, value_name = "DIR|FILE.gguf")]
    pub weights: Option<PathBuf>,
}

/// What was given.
#[derive(Debug)]
pub enum Given {
    /// A plan.
    Plan(PathBuf),
    /// What is compiled here.
    #[cfg(feature = "compiler")]
    Source(Source),
}

/// Files of a model that is compiled here. Without either it is the embedded one.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Spec. Without it, the weights say what the model is.
    pub spec: Option<PathBuf>,
    /// Directory with a checkpoint, or GGUF file.
    pub weights: Option<PathBuf>,
}

/// Options that say how a model is compiled: a plan is compiled already.
pub const OF_COMPILING: [&str; 8] =
    ["spec", "weights", "preset", "no-fuse", "fused", "without-fusion", "no-adapters", "tune"];

impl GivenArgs {
    /// Looks at the files.
    ///
    /// # Errors
    /// When one is not there or of no use, or they contradict each other.
    pub fn resolve(&self, explicit: &Explicit) -> Result<Given> {
        let Some(model) = &self.model else { return self.without_model() };
        match look(model)? {
            Content::File(FileKind::Plan) => Ok(Given::Plan(model.clone())),
            content => self.with_source(model, content, explicit),
        }
    }

    #[cfg(not(feature = "compiler"))]
    fn without_model(&self) -> Result<Given> {
        Err(Failure::BadInput("no plan is given, and this kernmill has no compiler".to_owned()))
    }

    #[cfg(not(feature = "compiler"))]
    fn with_source(&self, model: &Path, content: Content, _explicit: &Explicit) -> Result<Given> {
        let is = match content {
            Content::Directory => "it is a directory",
            Content::Stream => "it is a pipe or a device",
            Content::File(kind) => kind.describe(),
        };
        Err(Failure::input(model, format!("{is}, expected a plan: this kernmill has no compiler")))
    }
}

#[cfg(feature = "compiler")]
impl GivenArgs {
    fn without_model(&self) -> Result<Given> {
        let spec = self.spec.as_deref().map(spec_file).transpose()?;
        let source = match (&self.weights, spec) {
            (Some(weights), Some(spec)) => Source { spec: Some(spec), weights: Some(checkpoint(weights)?) },
            (Some(weights), None) => {
                let weights = checkpoint(weights)?;
                Source { spec: own_spec(&weights)?, weights: Some(weights) }
            }
            (None, spec) => with_spec(spec, None)?,
        };
        Ok(Given::Source(source))
    }

    fn with_source(&self, model: &Path, content: Content, explicit: &Explicit) -> Result<Given> {
        let is_spec = content == Content::File(FileKind::Text);
        // What the environment says gives way to the command line.
        let option = |name: &str, path: &Option<PathBuf>| match path {
            Some(path) if !explicit.is_from_environment(name) => Some(path.clone()),
            _ => None,
        };
        if !is_spec {
            let weights = checkpoint_in(model, content)?;
            let because = format!("{} is a checkpoint itself; give one of them", model.display());
            explicit.refuse(&["weights"], &because)?;
            let spec = match option("spec", &self.spec) {
                Some(spec) => Some(spec_file(&spec)?),
                None => own_spec(&weights)?,
            };
            return Ok(Given::Source(Source { spec, weights: Some(weights) }));
        }
        explicit.refuse(&["spec"], &format!("{} is a spec itself; give one of them", model.display()))?;
        let weights = self.weights.as_deref().map(checkpoint).transpose()?;
        Ok(Given::Source(with_spec(Some(model.to_owned()), weights)?))
    }
}

/// A spec that lies in a checkpoint's directory belongs to that checkpoint.
#[cfg(feature = "compiler")]
fn with_spec(spec: Option<PathBuf>, weights: Option<PathBuf>) -> Result<Source> {
    let beside =
        spec.as_deref().filter(|spec| spec.file_name() == Some(OsStr::new(SPEC_FILE))).map(directory);
    let weights = weights.or_else(|| beside.filter(|dir| has_weights(dir)).map(Path::to_owned));
    Ok(Source { spec, weights })
}

#[cfg(feature = "compiler")]
fn has_weights(dir: &Path) -> bool {
    [SINGLE_FILE, INDEX_FILE].iter().any(|file| dir.join(file).exists())
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Directory,
    /// A pipe or a device.
    Stream,
    File(FileKind),
}

fn look(path: &Path) -> Result<Content> {
    if path.is_dir() {
        return Ok(Content::Directory);
    }
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(Content::Stream);
    }
    match FileKind::of_file(path) {
        Ok(kind) => Ok(Content::File(kind)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(not_there(path, &error)),
        Err(error) => Err(Failure::input(path, error)),
    }
}

/// A path that is not there may be the name of a published model.
fn not_there(path: &Path, error: &std::io::Error) -> Failure {
    let text = path.to_string_lossy();
    let is_name = |part: &str| {
        let letters = part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        letters && part.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    match text.split_once('/') {
        Some((owner, name)) if is_name(owner) && is_name(name) && !Path::new(owner).exists() => {
            Failure::input(
                path,
                format!(
                    "{error}. If it is the name of a model on a hub: kernmill downloads nothing; fetch its files \
                     first, for example by `hf download {text} --local-dir {name}`, and give the directory {name}"
                ),
            )
        }
        _ => Failure::input(path, error),
    }
}

/// The checkpoint that `--weights` names.
#[cfg(feature = "compiler")]
fn checkpoint(path: &Path) -> Result<PathBuf> {
    match look(path)? {
        Content::File(FileKind::Plan) => Err(Failure::input(
            path,
            "it is a plan, whose weights are packed: give it as MODEL, without --weights",
        )),
        Content::File(FileKind::Text) => {
            Err(Failure::input(path, "it is text, expected a checkpoint: a directory or a GGUF file"))
        }
        content => checkpoint_in(path, content),
    }
}

/// The checkpoint that a directory or file is, or belongs to.
#[cfg(feature = "compiler")]
fn checkpoint_in(path: &Path, content: Content) -> Result<PathBuf> {
    match content {
        Content::Directory | Content::File(FileKind::Gguf) => Ok(path.to_owned()),
        // A file of another name may be one of several whole models in its directory.
        Content::File(FileKind::Safetensors) if path.file_name() != Some(OsStr::new(SINGLE_FILE)) => {
            Ok(path.to_owned())
        }
        Content::File(FileKind::Safetensors) => Ok(directory(path).to_owned()),
        Content::File(FileKind::Json)
            if [CONFIG_FILE, INDEX_FILE].map(OsStr::new).contains(&path.file_name().unwrap_or_default()) =>
        {
            Ok(directory(path).to_owned())
        }
        Content::Stream => {
            Err(Failure::input(path, "it is a pipe or a device, expected a file or a directory"))
        }
        // Its name is enough to say what is wrong in it.
        Content::File(_) if path.extension() == Some(OsStr::new("gguf")) => Ok(path.to_owned()),
        Content::File(kind) => Err(Failure::input(
            path,
            format!(
                "{}; expected a plan, a checkpoint's directory, a GGUF file or a spec (TOML)",
                kind.describe()
            ),
        )),
    }
}

/// The spec that a checkpoint brings beside its weights, if it does not say by `config.json` or as GGUF file what it is.
#[cfg(feature = "compiler")]
fn own_spec(weights: &Path) -> Result<Option<PathBuf>> {
    if !weights.is_dir() {
        return Ok(None);
    }
    let spec = weights.join(SPEC_FILE);
    if spec.exists() {
        return Ok(Some(spec));
    }
    if weights.join(CONFIG_FILE).exists() {
        return Ok(None);
    }
    let plans_and_gguf = std::fs::read_dir(weights).map_err(Failure::read(weights))?;
    let mut files: Vec<PathBuf> = plans_and_gguf
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "gguf" || end == "plan"))
        .collect();
    files.sort();
    let help = match (files.first(), instead_of_config(weights)) {
        (Some(file), _) => format!("; or give a file in it, such as {}", file.display()),
        (None, Some(instead)) => format!("; {instead}"),
        (None, None) => String::new(),
    };
    Err(Failure::input(
        weights,
        format!(
            "no {CONFIG_FILE} in this directory, expected a checkpoint: {CONFIG_FILE}, model.safetensors and \
                 tokenizer.json; without {CONFIG_FILE}, give the model's spec with --spec{help}"
        ),
    ))
}

/// The file that `--spec` names.
#[cfg(feature = "compiler")]
fn spec_file(path: &Path) -> Result<PathBuf> {
    match look(path)? {
        Content::Stream | Content::File(FileKind::Text | FileKind::Empty) => Ok(path.to_owned()),
        Content::Directory if path.join(SPEC_FILE).exists() => Ok(path.join(SPEC_FILE)),
        Content::Directory => Err(Failure::input(path, "it is a directory, expected a model spec (TOML)")),
        Content::File(kind) => {
            Err(Failure::input(path, format!("{}; expected a model spec (TOML)", kind.describe())))
        }
    }
}

#[cfg(feature = "compiler")]
impl Source {
    /// Whether there is a spec, and no weights for it.
    pub fn lacks_weights(&self) -> bool {
        self.spec.is_some() && self.weights.is_none()
    }

    /// Fails when there are no weights.
    ///
    /// # Errors
    /// When the spec stands alone.
    pub fn need_weights(&self) -> Result<()> {
        match (&self.spec, &self.weights) {
            (Some(spec), None) => Err(Failure::BadInput(format!(
                "--weights is missing: {spec} is a spec, which has no weights; give a checkpoint of it with --weights, or have \
                 random weights made with `kernmill synth {spec} -o DIR`",
                spec = spec.display()
            ))),
            _ => Ok(()),
        }
    }
}
